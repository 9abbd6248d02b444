package deployment_test

import (
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

func TestAccLiveISO_unsuitableBootInterface(t *testing.T) {
	t.Parallel()
	s, iso := site.Start(t, nil), bmc.ServeISO(t)
	node := addLiveNode(t, s, 1, map[string]any{"boot_interface": "fake"})
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), liveISO(iso.URL("v1"))))
	acctest.Fails(t, w, []string{"plan"}, "Boot interface boots no ramdisk", "also of a live_iso", "and fake does not",
		`hardware_interfaces = { boot = "ipxe" }`)
	site.WantVerbs(t, s, node)
}

// byHand makes a node of a discovered machine without a BMC, which only a person can switch.
func byHand(s *site.Site, node string) {
	s.Patch(node, "add", "/extra/terraform_metal_discovery", map[string]any{"owner": "rack12", "name": s.Name("n1")})
}

func TestAccLiveISO_hostWithoutBMC(t *testing.T) {
	t.Parallel()
	s, iso := site.Start(t, nil), bmc.ServeISO(t)
	node := addLiveNode(t, s, 1, nil)
	byHand(s, node)
	config := func(version, own string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), liveISO(iso.URL(version), `host_content = { nmstate = `+
			acctest.Quoted(own)+` }`))
	}
	w := acctest.NewWorkspace(t, config("v1", "uid/1"))
	w.Must("apply", "-auto-approve")
	w.Configure(config("v2", "uid/1"))
	acctest.NoChanges(t, w)
	watch := watchPower(t, s)
	w.Configure(config("v2", "uid/2"))
	output := w.Must("apply", "-auto-approve")
	acctest.Mention(t, output, "0 added, 1 changed, 0 destroyed", "Machine has to be restarted by hand",
		"needs a new live ISO: its own configuration changed, and Ironic cannot switch its power (obsolete: host.nmstate). After this "+
			"apply, restart it with the new image yourself.")
	bootStatusIs(t, w, "manual", true, "host.nmstate")
	for range 2 { // it stays until a person has restarted the machine
		output, changes := w.Plan()
		if changes {
			t.Errorf("the plan is not empty:\n%s", output)
		}
		wantWarned(t, output)
		w.Must("apply", "-refresh-only", "-auto-approve")
		bootStatusIs(t, w, "manual", true, "host.nmstate")
	}
	watch.wantStarts(t, s, map[string]int{node: 0})

	<-time.After(1100 * time.Millisecond) // times are compared by the second
	s.Must("PUT", "nodes/"+node+"/states/power", map[string]any{"target": "rebooting"})
	s.Await(node, "power_state", "power on")
	acctest.NoChanges(t, w)
	w.Must("apply", "-refresh-only", "-auto-approve")
	bootStatusIs(t, w, "none", false)

	w.Configure(config("v3", "uid/3")) // and again
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "Machine has to be restarted by hand")
	bootStatusIs(t, w, "manual", true, "host.nmstate")
	w.Must("destroy", "-auto-approve")
	s.Patch(node, "remove", "/extra/terraform_metal_discovery", nil)
}
