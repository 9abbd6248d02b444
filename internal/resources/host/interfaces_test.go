package host_test

import (
	"fmt"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// bootChange saves a plan, and returns how it changes boot_interface; "?" is what only the apply tells.
func bootChange(w *acctest.Workspace) string {
	change := w.Save()[acctest.HostAddress]
	before, after := change.Before["boot_interface"], change.After["boot_interface"]
	switch {
	case change.Unknown["boot_interface"] == true:
		return "?"
	case before == after:
		return ""
	}
	return fmt.Sprintf("%v>%v", before, after)
}

// A saved plan has the boot interface that it changes. The apply does that, also if another client changes the interface meanwhile, and the
// next plan is empty.
func TestFakeHost_planHasBootInterfaceThatChanges(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	name := s.Name("h")
	config := func(scheme string, settings ...string) string {
		return s.Provider() + acctest.HostBlock(name, append(settings, bmc.Block(scheme+"://192.0.2.61/redfish/v1/Systems/1"))...)
	}
	w := acctest.NewWorkspace(t, "")
	defer acctest.Destroy(t, s, w)
	for _, step := range []struct{ name, config, want string }{
		{"new", config("redfish-virtualmedia"), "?"},
		{"another attribute", config("redfish-virtualmedia", `description = "x"`), ""},
		{"another interface", config("redfish-virtualmedia", `hardware_interfaces = { rescue = "agent" }`), ""},
		{
			"the interface", config("redfish-virtualmedia", `hardware_interfaces = { boot = "redfish-https" }`),
			"redfish-virtual-media>redfish-https",
		},
		{"an interface that is set no more", config("redfish-virtualmedia"), "redfish-https>redfish-virtual-media"},
		{"one that is known later", config("redfish-virtualmedia", `hardware_interfaces = { boot = terraform_data.later.output }`) +
			"resource \"terraform_data\" \"later\" {\n  input = \"ipxe\"\n}\n", "?"},
		{"a scheme", config("redfish-virtualmedia"), "ipxe>redfish-virtual-media"},
		{"a scheme without one", config("redfish"), "redfish-virtual-media>ipxe"},
		{"a driver", config("idrac-virtualmedia"), "ipxe>idrac-redfish-virtual-media"},
	} {
		w.Configure(step.config)
		if got := bootChange(w); got != step.want {
			t.Errorf("%s: the plan changes %q, want %q", step.name, got, step.want)
		}
		if step.name == "the interface" {
			s.Fake.Set(name, "boot_interface", "ipxe")
		}
		w.Must("apply", "saved")
		acctest.NoChanges(t, w)
		if got := bootChange(w); got != "" {
			t.Errorf("%s: the next plan changes %q", step.name, got)
		}
	}
}
