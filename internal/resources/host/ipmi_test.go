package host_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc/ipmi"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// details are the details of the events of a kind in the history of a machine.
func details(b *bmc.Controller, kind fakebmc.Kind) []string {
	var all []string
	for _, e := range b.History(kind) {
		all = append(all, e.Detail)
	}
	return all
}

// A machine with IPMI lives as one with Redfish: verified, on, restarted with another boot device, asked to shut down.
func TestAccBMC_ipmiPowerAndBootDevice(t *testing.T) {
	t.Parallel()
	s := site.StartWithBMCs(t, nil)
	b := bmc.Start(t, s, "m", fakebmc.Config{})
	b.StartIPMI("127.1.0.1:0")
	block := strings.Replace(b.IPMIBlock(), b.IPMI, b.IPMI+"?privilegelevel=OPERATOR", 1)
	w := acctest.NewWorkspace(t, onBMC(s, block, `power_state = "on"`, `driver_info = { ipmi_cipher_suite = "3" }`))
	w.Must(acctest.Apply()...)
	wantPower(t, b, true)
	acctest.NoChanges(t, w)
	acctest.NoDrift(t, w)
	commands, boots := []string{"On"}, []string{"None"}
	if s.Fake == nil { // the fake Ironic does not set the boot device at a BMC
		node := "nodes/" + s.Name("h")
		for _, device := range []map[string]any{{"boot_device": "pxe", "persistent": false}, {"boot_device": "disk", "persistent": true}} {
			s.Must(http.MethodPut, node+"/management/boot_device", device)
			s.Must(http.MethodPut, node+"/states/power", map[string]any{"target": "rebooting"})
			s.Await(s.Name("h"), "target_power_state", nil)
			s.Await(s.Name("h"), "power_state", "power on")
		}
		commands, boots = append(commands, "ForceOff", "On", "ForceOff", "On"), append(boots, "Pxe", "Hdd")
		if b.Server.Count(ipmi.Method, "Set System Boot Options") != 4 { // two keep the flags for longer than a minute
			t.Errorf("the BMC was sent %v", b.Server.Requests())
		}
	}
	w.Configure(onBMC(s, block, `power_state = "off"`, `power_off_mode = "graceful"`, `driver_info = { ipmi_cipher_suite = "17" }`))
	acctest.NeverMention(t, w.Must(acctest.Apply()...), "Power was cut")
	wantPower(t, b, false)
	acctest.NoChanges(t, w)
	commands = append(commands, "GracefulShutdown")
	if got := details(b, fakebmc.Commanded); !slices.Equal(got, commands) {
		t.Errorf("the BMC was told %v, want %v", got, commands)
	}
	if got := details(b, fakebmc.Booted); !slices.Equal(got, boots) {
		t.Errorf("the machine has booted %v, want %v", got, boots)
	}
	w.Must("destroy", "-auto-approve")
}

// Ironic says the same of a wrong password and of a BMC that is silent: the provider says how to find out. What is mended then works.
func TestAccBMC_ipmiFailures(t *testing.T) {
	t.Parallel()
	s := site.StartWithBMCs(t, nil)
	b := bmc.Start(t, s, "m", fakebmc.Config{})
	b.StartIPMI("127.1.0.2:0")
	config := func(block string) string { return onBMC(s, block, `power_state = "on"`) }
	w := acctest.NewWorkspace(t, config(bmc.Block("ipmi://"+b.IPMI, `username = "admin"`, `password_wo = "not-this-one"`,
		"password_wo_version = 1")))
	host, port, _ := strings.Cut(b.IPMI, ":")
	ask := []string{
		`is in state "enroll"`, "The BMC did not answer over IPMI, or refused", "IPMI call failed: power status",
		"a wrong password", "no answer",
		"ipmitool -v -I lanplus -H '" + host + "' -p '" + port + "' -U 'admin' -E power status",
	}
	output := acctest.Fails(t, w, acctest.Apply(), ask...)
	site.Until(t, "the BMC to notice the wrong password", func() bool { return b.Count(fakebmc.LoginRefused) > 0 })
	if strings.Contains(output+w.State(), "not-this-one") {
		t.Error("the password is in the output or in state")
	}

	w.Configure(config(b.IPMIBlock()))
	plug := b.Server.Unplug()
	acctest.Fails(t, w, acctest.Apply(), ask...)
	plug()

	_, end := b.Server.Inject(fakebmc.Fault{Method: ipmi.Method, Path: "Chassis Control", Accept: true, Count: fakebmc.Always})
	acctest.Fails(t, w, acctest.Apply(), `is "power off", not "power on"`, "Check the machine's BMC",
		"Failed to set node power state to power on")
	if end(); b.On() || b.Count(fakebmc.Commanded) != 0 {
		t.Errorf("the history is %v", b.History())
	}

	_, end = b.Server.Inject(fakebmc.Fault{Method: ipmi.Method, Path: "Get Chassis Status", Status: 0xc0}) // busy, once
	defer end()
	if s.Fake != nil {
		end() // it does not repeat a command
	}
	w.Must(acctest.Apply()...)
	wantPower(t, b, true)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}
