package host_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// onSteppable starts a machine at a BMC on which Ironic can take steps, and returns configurations of its host.
func onSteppable(
	t *testing.T, s *site.Site, config fakebmc.Config, interfaces string,
) (b *bmc.Controller, host func(settings ...string) string) {
	t.Helper()
	mac, iso := s.MAC(1), bmc.ServeISO(t)
	config.MACs, config.Machine = []string{mac}, bmc.NewAgent(t, s, mac)
	b = bmc.Start(t, s, "m", config)
	username, password := b.Credentials()
	fixed := []string{
		bmc.Block(b.Address("redfish"), "username = "+acctest.Quoted(username), "password = "+acctest.Quoted(password)),
		fmt.Sprintf("ports = { %q = { pxe_enabled = true } }", mac),
		fmt.Sprintf("driver_info = { deploy_kernel = %q, deploy_ramdisk = %q }", iso.URL("kernel"), iso.URL("ramdisk")),
		"hardware_interfaces = { " + interfaces + " }",
		"automated_clean = false",
	}
	return b, func(settings ...string) string {
		return s.Provider() + acctest.HostBlock(s.Name("h"), append(fixed, settings...)...)
	}
}

// BIOS settings and volumes reach the machine through the BMC, and the registry of the BMC decides what a plan accepts.
func TestAccBMC_hardwareSettings(t *testing.T) {
	t.Parallel()
	s := startStepsSite(t)
	b, host := onSteppable(t, s, fakebmc.Config{Drives: []int64{480e9, 480e9}}, `boot = "ipxe", bios = "redfish", raid = "redfish"`)
	w := acctest.NewWorkspace(t, host())
	w.Must(acctest.Apply()...)
	defer acctest.Destroy(t, s, w)

	w.Configure(host(`bios_settings = { QuietBootDelay = 61, ProcTurbo = "Disabled", BoardRevision = "B1" }`))
	acctest.Fails(t, w, []string{"plan"}, "QuietBootDelay cannot be 61. It must be 0 to 60.", "The machine has no BIOS setting ProcTurbo",
		`BoardRevision is read-only; its value is "A2"`)

	const settings = `bios_settings = { QuietBootDelay = 10, ProcTurboMode = "Disabled", NumLock = false }`
	const volumes = `raid = { delete_existing = true, volumes = [{ level = "1", size_gb = 100, root = true, number_of_physical_disks = 2 }] }`
	w.Configure(host(settings, volumes))
	output := w.Must(acctest.Apply()...)
	acctest.Mention(t, output, "All RAID volumes are deleted", "Hardware change restarts the machine")
	wantPending(t, w)
	acctest.NoChanges(t, w)
	acctest.NoDrift(t, w)
	have := biosOf(s, s.Name("h"))
	if have["QuietBootDelay"] != "10" || have["ProcTurboMode"] != "Disabled" || have["NumLock"] != "0" && have["NumLock"] != "False" {
		t.Errorf("the BIOS has %v", have)
	}
	wantVolumes(t, s.Node(s.Name("h")), "1 100")
	if b.Count(fakebmc.Configured) < 2 {
		t.Errorf("the history of the BMC is %v", b.History())
	}
}

// Firmware reaches the machine through the BMC. Afterwards the versions are read back, and an equal version sends nothing.
func TestAccBMC_hardwareFirmware(t *testing.T) {
	t.Parallel()
	s := startStepsSite(t)
	if status, _ := s.CallAt("1.86", http.MethodGet, "nodes?limit=1", nil); status == http.StatusNotAcceptable {
		t.Skip("this Ironic does not update firmware")
	}
	b, host := onSteppable(t, s, fakebmc.Config{UpdateTime: time.Second, RestartTime: 3 * time.Second},
		`boot = "ipxe", firmware = "redfish"`)
	image := func(component, file string) string {
		return fmt.Sprintf(`%s = { url = "http://127.0.0.1/%s-%s", version = "2.0" }`, component, component, file)
	}
	w := acctest.NewWorkspace(t, host(`timeouts = { create = "10m", update = "10m" }`))
	w.Must(acctest.Apply()...)
	defer acctest.Destroy(t, s, w)
	w.Configure(host("firmware = { " + image("bios", "2.0.bin") + ", " + image("bmc", "2.0.bin") + " }"))
	w.Must(acctest.Apply()...)
	wantPending(t, w)
	acctest.NoChanges(t, w)
	changes := len(b.History())
	w.Configure(host("firmware = { " + image("bios", "copy-2.0.bin") + ", " + image("bmc", "2.0.bin") + " }"))
	w.Must(acctest.Apply()...)
	if now := len(b.History()); now != changes {
		t.Errorf("an equal version was sent: %v", b.History()[changes:])
	}
	acctest.NoChanges(t, w)
}
