package host_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// deployedHost is a configuration with the host "h", with further settings, and its deployment.
func deployedHost(s *site.Site, settings ...string) string {
	return hostConfig(s, append([]string{acctest.Target("available")}, settings...)...) + acctest.Deployment("metal_host.h.id",
		acctest.Image("v1"))
}

// Ironic changes the interfaces of a deployed node in maintenance only. One apply sets maintenance, changes them, and restores
// maintenance.
func TestAccHost_interfacesChangeOnDeployedNode(t *testing.T) {
	s := site.Start(t, nil)
	has := func(bios string, maintenance bool, reason any) []statecheck.StateCheck {
		return []statecheck.StateCheck{nodeHas(s, map[string]any{
			"bios_interface": bios, "maintenance": maintenance, "maintenance_reason": reason, "provision_state": "active",
		})}
	}
	const noBIOS, fan = `hardware_interfaces = { bios = "no-bios" }`, "maintenance = true\n  maintenance_reason = \"fan\""
	acctest.Test(t,
		resource.TestStep{Config: deployedHost(s), ConfigStateChecks: has("fake", false, nil)},
		resource.TestStep{Config: deployedHost(s, noBIOS), ConfigStateChecks: has("no-bios", false, nil)},
		resource.TestStep{
			Config:      deployedHost(s, `hardware_interfaces = { bios = "no-such-interface" }`),
			ExpectError: regexp.MustCompile("no-such-interface"),
		},
		resource.TestStep{
			Config: deployedHost(s, noBIOS), ConfigPlanChecks: hostPlan(plancheck.ResourceActionNoop),
			ConfigStateChecks: has("no-bios", false, nil),
		},
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
				s.Must(http.MethodPut, "nodes/"+s.Name("h")+"/maintenance", map[string]any{"reason": machine.ReasonChanging})
			},
			Config: deployedHost(s, noBIOS), ConfigPlanChecks: hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: has("no-bios", false, nil),
		},
	)
}

// Ironic refuses another class while the node is deployed: the plan says so.
func TestAccHost_classOfDeployedNodeIsFixed(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	class, other := `resource_class = "`+s.Name("web")+`"`, `resource_class = "`+s.Name("db")+`"`
	w := acctest.NewWorkspace(t, deployedHost(s, class))
	w.Must("apply", "-auto-approve")
	w.Configure(deployedHost(s, other))
	output, code := w.Run("plan")
	if code == 0 {
		t.Errorf("the plan promises another class:\n%s", output)
	}
	acctest.Mention(t, output, "Class of a deployed node is fixed", "Destroy its metal_deployment first")
	w.Configure(hostConfig(s, acctest.Target("available"), class))
	w.Must("apply", "-auto-approve")
	w.Configure(hostConfig(s, acctest.Target("available"), other))
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// Without bmc, the settings of the driver are removed. The driver stays: a node needs one.
func TestAccHost_bmcIsRemovedInPlace(t *testing.T) {
	s := site.Start(t, nil)
	step := func(settings string, want map[string]any) resource.TestStep {
		return resource.TestStep{Config: enrolled(s, settings), ConfigStateChecks: []statecheck.StateCheck{nodeHas(s, want)}}
	}
	const redfish = "redfish-virtualmedia://192.0.2.38/redfish/v1/Systems/1"
	removed := map[string]any{
		"driver": "redfish", "boot_interface": "ipxe",
		"driver_info": map[string]any{"redfish_address": nil, "redfish_system_id": nil, "redfish_username": nil, "redfish_password": nil},
	}
	first := []resource.TestStep{
		step(bmc.Block(redfish, withPassword("secret", 1)), map[string]any{"driver": "redfish", "boot_interface": "redfish-virtual-media"}),
		step("", removed),
	}
	if s.Fake == nil { // a BMC that comes later is verified, and a real Ironic cannot reach this one
		acctest.Test(t, first...)
		return
	}
	acctest.Test(t, append(first,
		step(bmc.Block(redfish, withPassword("secret", 2)), map[string]any{
			"boot_interface": "redfish-virtual-media",
			"driver_info":    map[string]any{"redfish_password": "******"},
		}),
		resource.TestStep{
			PreConfig: func() { s.Fake.Set(s.Name("h"), "provision_state", "active") },
			Config:    enrolled(s), ConfigStateChecks: []statecheck.StateCheck{nodeHas(s, removed)},
		},
		resource.TestStep{PreConfig: func() { s.Fake.Set(s.Name("h"), "provision_state", "enroll") }, Config: enrolled(s)},
	)...)
}
