package resources_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// deployedHost is a whole configuration with the host "h", with further settings, and what is deployed on it.
func deployedHost(s *acctest.Site, settings ...string) string {
	return hostConfig(s, append([]string{target("available")}, settings...)...) + deployment("metal_host.h.id", image("v1"))
}

// Ironic takes other interfaces for a deployed node in maintenance only: one apply does it all, and leaves maintenance as it is
// to be.
func TestAccHost_interfacesChangeWhileSomethingIsDeployed(t *testing.T) {
	s := acctest.Start(t, nil)
	has := func(bios string, maintenance bool, reason any) []statecheck.StateCheck {
		return []statecheck.StateCheck{nodeHas(s, map[string]any{
			"bios_interface": bios, "maintenance": maintenance, "maintenance_reason": reason, "provision_state": "active",
		})}
	}
	const noBIOS, fan = `interfaces = { bios = "no-bios" }`, "maintenance = true\n  maintenance_reason = \"fan\""
	test(t,
		resource.TestStep{Config: deployedHost(s), ConfigStateChecks: has("fake", false, nil)},
		resource.TestStep{Config: deployedHost(s, noBIOS), ConfigStateChecks: has("no-bios", false, nil)},
		resource.TestStep{Config: deployedHost(s, `interfaces = { bios = "no-such-interface" }`), ExpectError: regexp.MustCompile("no-such-interface")},
		resource.TestStep{Config: deployedHost(s, noBIOS), ConfigPlanChecks: hostPlan(plancheck.ResourceActionNoop), ConfigStateChecks: has("no-bios", false, nil)},
		resource.TestStep{Config: deployedHost(s, fan), ConfigStateChecks: has("fake", true, "fan")},
		resource.TestStep{Config: deployedHost(s, fan, noBIOS), ConfigStateChecks: has("no-bios", true, "fan")},
		resource.TestStep{
			PreConfig: func() {
				s.Must(http.MethodPut, "nodes/"+s.Name("h")+"/maintenance", map[string]any{"reason": "by hand"})
			},
			Config: deployedHost(s, `description = "taken out"`), ConfigStateChecks: has("fake", false, nil),
		},
		resource.TestStep{
			PreConfig: func() {
				s.Must(http.MethodPut, "nodes/"+s.Name("h")+"/maintenance", map[string]any{"reason": "by hand"})
			},
			Config: deployedHost(s, noBIOS), ConfigStateChecks: has("no-bios", true, "by hand"),
		},
		resource.TestStep{
			PreConfig: func() { // a killed run
				s.Must(http.MethodPut, "nodes/"+s.Name("h")+"/maintenance", map[string]any{"reason": ironic.ReasonChanging})
			},
			Config: deployedHost(s, noBIOS), ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate), ConfigStateChecks: has("no-bios", false, nil),
		},
	)
}

// Without bmc Ironic forgets how to reach the machine. Its driver stays: a node needs one.
func TestAccHost_bmcIsRemovedInPlace(t *testing.T) {
	s := acctest.Start(t, nil)
	step := func(settings string, want map[string]any) resource.TestStep {
		return resource.TestStep{Config: enrolled(s, settings), ConfigStateChecks: []statecheck.StateCheck{nodeHas(s, want)}}
	}
	const redfish = "redfish-virtualmedia://192.0.2.1/redfish/v1/Systems/1"
	removed := map[string]any{
		"driver": "redfish", "boot_interface": "ipxe",
		"driver_info": map[string]any{"redfish_address": nil, "redfish_system_id": nil, "redfish_username": nil, "redfish_password": nil},
	}
	test(t,
		step(bmc(redfish, withPassword("secret", 1)), map[string]any{"driver": "redfish", "boot_interface": "redfish-virtual-media"}),
		step("", removed),
		step(bmc(redfish, withPassword("secret", 2)), map[string]any{"boot_interface": "redfish-virtual-media", "driver_info": map[string]any{"redfish_password": "******"}}),
		resource.TestStep{
			PreConfig: func() {
				if s.Fake != nil { // nobody has such a BMC
					s.Fake.Set(s.Name("h"), "provision_state", "active")
				}
			},
			Config: enrolled(s), ConfigStateChecks: []statecheck.StateCheck{nodeHas(s, removed)},
		},
		resource.TestStep{PreConfig: func() {
			if s.Fake != nil {
				s.Fake.Set(s.Name("h"), "provision_state", "enroll")
			}
		}, Config: enrolled(s)},
	)
}

// A host and its deployment that want the power differently do not take turns: the deployment has its way while it lasts.
func TestAccHost_powerIsLeftToTheDeployment(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	host := hostConfig(s, target("available"), `power_state = "off"`)
	w := acctest.NewWorkspace(t, host+deployment("metal_host.h.id", image("v1"), `power_state = "on"`))
	w.Must(apply()...)
	defer destroy(t, s, w)
	for range 2 {
		output, changes := w.Plan()
		if changes {
			t.Errorf("the plan has changes:\n%s", output)
		}
		mention(t, output, "Power is left to the deployment", "Something is deployed on host "+s.Name("h")+": its metal_deployment decides. It is on, and stays so")
		w.Must(apply()...)
	}
	if found := lacks("", s.Node(s.Name("h")), map[string]any{"power_state": "power on"}); len(found) > 0 {
		t.Errorf("the node in Ironic: %v", found)
	}
	w.Configure(hostConfig(s, target("available"), `power_state = "off"`, `description = "changed"`) +
		deployment("metal_host.h.id", image("v1"), `power_state = "on"`))
	w.Must(apply()...)
	if found := lacks("", s.Node(s.Name("h")), map[string]any{"power_state": "power on", "description": "changed"}); len(found) > 0 {
		t.Errorf("the node in Ironic: %v", found)
	}
	w.Configure(host)
	w.Must(apply()...)
	w.Must(apply()...)
	if found := lacks("", s.Node(s.Name("h")), map[string]any{"power_state": "power off"}); len(found) > 0 {
		t.Errorf("the node in Ironic, when nothing is deployed any more: %v", found)
	}
	noChanges(t, w)
}
