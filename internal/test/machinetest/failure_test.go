package machinetest_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/reason"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// impatient lets no machine boot in time, and patient all.
const (
	impatient = "deploy_callback_timeout = 20\nclean_callback_timeout = 20\ninspect_wait_timeout = 20\n"
	patient   = "deploy_callback_timeout = 1800\nclean_callback_timeout = 1800\ninspect_wait_timeout = 1800\n"
)

// wantReason fails the test unless an apply fails and says what the reason means. It logs what Ironic said.
func (r *rack) wantReason(w *acctest.Workspace, host, id, config string) {
	r.t.Helper()
	w.Configure(config)
	r.step(id, func() { acctest.Fails(r.t, w, acctest.Apply(), reason.ByID(id).Meaning) })
	_, answer := r.Call(http.MethodGet, "nodes/"+host+"/history", nil)
	events := site.Part[[]any](r.t, answer, "history")
	r.t.Logf("Ironic says %q, and %v", r.Node(host)["last_error"], events[len(events)-1])
}

// TestMetal_aBMCThatIsNotReachedNamesTheReason enrolls a machine twice: its BMC has a certificate that Ironic does not trust, and then
// refuses the password.
func TestMetal_aBMCThatIsNotReachedNamesTheReason(t *testing.T) {
	t.Parallel()
	r := startRack(t, provisioning)
	host := func(bmc string) string { return r.Provider() + acctest.HostBlock(r.Name("host"), bmc) }
	w := r.workspace("")
	defer acctest.Destroy(t, r.Site, w)
	b := bmc.StartSecure(t, r.Site, "tls", fakebmc.Config{})
	username, _ := b.Credentials()
	r.wantReason(w, r.Name("host"), "redfish-cert", host(b.Block()))
	r.wantReason(w, r.Name("host"), "redfish-auth", host(bmc.Block(b.Address("redfish-virtualmedia"), `verify_ca = false`,
		fmt.Sprintf("username = %q", username), `password = "wrong"`)))
}

// TestMetal_whatFailsNamesTheReason lets each verb fail as often as it can fail, on one machine. Other tests must not run: their machines
// would not boot in time either.
func TestMetal_whatFailsNamesTheReason(t *testing.T) {
	r := startRack(t, provisioning)
	c := r.machine(1)
	w, host := r.workspace(""), r.Name("host")
	defer acctest.Destroy(t, r.Site, w)
	available := c.host("automated_clean = false", acctest.Target("available"))
	image := func(name, checksum string, settings ...string) string {
		return available + acctest.Deployment("metal_host.h.id", append(settings,
			fmt.Sprintf("image = {\n    url = %q\n    checksum = %q\n    disk_format = \"raw\"\n  }", r.image(name), checksum))...)
	}
	right, wrong := r.image("SHA256SUMS"), acctest.Checksum("wrong")

	r.configure(impatient)
	r.wantReason(w, host, "inspection-timeout", c.host("inspect = true"))
	r.wantReason(w, host, "clean-timeout", c.host(acctest.Target("available")))
	r.wantReason(w, host, "callback-timeout", image("one.img", right))
	r.configure(patient)
	r.wantReason(w, host, "image-404", image("none.img", wrong))
	r.wantReason(w, host, "image-checksum", image("one.img", wrong))
	r.wantReason(w, host, "root-device-none", image("one.img", right, `root_device = { serial = "none" }`))
}
