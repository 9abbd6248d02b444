package host_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest/site"
)

// interfacesThatChange saves a plan, and returns what it changes in hardware_interfaces_all, sorted; "?" is what only the apply tells.
func interfacesThatChange(w *acctest.Workspace) string {
	change := w.Save()[acctest.HostAddress]
	before, _ := change.Before["hardware_interfaces_all"].(map[string]any)
	after, _ := change.After["hardware_interfaces_all"].(map[string]any)
	unknown, _ := change.Unknown["hardware_interfaces_all"].(map[string]any)
	if change.Unknown["hardware_interfaces_all"] == true {
		return "?"
	}
	var changes []string
	for _, kind := range slices.Sorted(maps.Keys(before)) {
		switch {
		case unknown[kind] == true:
			changes = append(changes, kind+":?")
		case after[kind] != before[kind]:
			changes = append(changes, fmt.Sprintf("%s:%v>%v", kind, before[kind], after[kind]))
		}
	}
	return strings.Join(changes, " ")
}

// A saved plan has the interfaces that it changes, and no others. The apply does that, also if another client changes an interface meanwhile, and the
// next plan is empty.
func TestFakeHost_planHasInterfacesThatChange(t *testing.T) {
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
		{"an interface", config("redfish-virtualmedia", `hardware_interfaces = { rescue = "agent" }`), "rescue:no-rescue>agent"},
		{"an interface that is set no more", config("redfish-virtualmedia"), "rescue:?"},
		{"one that is known later", config("redfish-virtualmedia", `hardware_interfaces = { rescue = terraform_data.later.output }`) + "resource \"terraform_data\" \"later\" {\n  input = \"agent\"\n}\n", "rescue:?"},
		{"a scheme", config("redfish"), "boot:redfish-virtual-media>ipxe rescue:?"},
		{"a driver", config("idrac-virtualmedia"), "bios:redfish>idrac-redfish boot:ipxe>idrac-redfish-virtual-media console:? deploy:? firmware:? inspect:? " +
			"management:redfish>idrac-redfish network:? power:redfish>idrac-redfish raid:redfish>idrac-redfish rescue:? storage:? vendor:no-vendor>idrac-redfish"},
	} {
		w.Configure(step.config)
		if got := interfacesThatChange(w); got != step.want {
			t.Errorf("%s: the plan changes %q, want %q", step.name, got, step.want)
		}
		if step.name == "another attribute" {
			s.Fake.Set(name, "vendor_interface", "no-vendor")
		}
		w.Must("apply", "saved")
		acctest.NoChanges(t, w)
		if got := interfacesThatChange(w); got != "" {
			t.Errorf("%s: the next plan changes %q", step.name, got)
		}
	}
}
