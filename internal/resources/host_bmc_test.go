package resources_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/compare"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
)

// bmc is the HCL of a BMC with an address and further settings.
func bmc(address string, settings ...string) string {
	return "bmc = {\n    address = " + quoted(address) + "\n    " + strings.Join(settings, "\n    ") + "\n  }"
}

// withPassword is the HCL of a write-only password.
func withPassword(password string, version int) string {
	return fmt.Sprintf("username = \"root\"\n    password_wo = %q\n    password_wo_version = %d", password, version)
}

// enrolled is a configuration with a host of a real driver that is only enrolled: nobody has such BMCs.
func enrolled(s *acctest.Site, settings ...string) string {
	return s.Provider() + hostBlock(s.Name("h"), append([]string{target("enroll")}, settings...)...)
}

func TestAccHost_bmcAddressBecomesDriverAndItsSettings(t *testing.T) {
	for _, tt := range []struct {
		name, bmc string
		want      map[string]any
	}{
		{"ipmi", bmc("ipmi://192.0.2.1", `username = "root"`), map[string]any{
			"driver": "ipmi", "driver_info": map[string]any{"ipmi_address": "192.0.2.1", "ipmi_username": "root", "ipmi_port": nil, "ipmi_password": nil},
		}},
		{"ipmi with a port", bmc("ipmi://192.0.2.1:6230", withPassword("secret", 1)), map[string]any{
			"driver": "ipmi", "driver_info": map[string]any{"ipmi_address": "192.0.2.1", "ipmi_port": "6230", "ipmi_password": "******"},
		}},
		{"bare address", bmc("192.0.2.1"), map[string]any{"driver": "ipmi", "driver_info": map[string]any{"ipmi_address": "192.0.2.1"}}},
		{"redfish", bmc("redfish://192.0.2.1/redfish/v1/Systems/1", withPassword("secret", 1)), map[string]any{
			"driver": "redfish", "boot_interface": "ipxe", "driver_info": map[string]any{
				"redfish_address": "https://192.0.2.1", "redfish_system_id": "/redfish/v1/Systems/1", "redfish_username": "root",
				"redfish_password": "******", "redfish_verify_ca": nil,
			},
		}},
		{"redfish over http", bmc("redfish+http://[2001:db8::1]:8000/redfish/v1/Systems/1/", `verify_ca = false`), map[string]any{
			"driver": "redfish", "driver_info": map[string]any{
				"redfish_address": "http://[2001:db8::1]:8000", "redfish_system_id": "/redfish/v1/Systems/1", "redfish_verify_ca": false,
			},
		}},
		{"redfish-virtualmedia", bmc("redfish-virtualmedia+https://192.0.2.1/redfish/v1/Systems/1"), map[string]any{
			"driver": "redfish", "boot_interface": "redfish-virtual-media", "driver_info": map[string]any{"redfish_address": "https://192.0.2.1"},
		}},
		{"an interface that is written wins", bmc("redfish-virtualmedia://192.0.2.1/redfish/v1/Systems/1") + "\n  interfaces = { boot = \"pxe\", deploy = \"ramdisk\" }", map[string]any{
			"driver": "redfish", "boot_interface": "pxe", "deploy_interface": "ramdisk",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := acctest.Start(t, nil)
			test(t, resource.TestStep{Config: enrolled(s, tt.bmc), ConfigStateChecks: []statecheck.StateCheck{nodeHas(s, tt.want)}})
		})
	}
}

func TestAccHost_bmcChangesInPlace(t *testing.T) {
	s := acctest.Start(t, nil)
	stays := statecheck.CompareValue(compare.ValuesSame())
	step := func(settings string, want map[string]any) resource.TestStep {
		return resource.TestStep{
			Config:            enrolled(s, settings),
			ConfigStateChecks: []statecheck.StateCheck{stays.AddStateValue(hostAddress, tfjsonpath.New("id")), nodeHas(s, want)},
		}
	}
	test(t,
		step(bmc("ipmi://192.0.2.1:6230", withPassword("secret", 1)), map[string]any{"driver": "ipmi", "driver_info": map[string]any{"ipmi_port": "6230"}}),
		step(bmc("ipmi://192.0.2.2", withPassword("secret", 1)), map[string]any{
			"driver": "ipmi", "driver_info": map[string]any{"ipmi_address": "192.0.2.2", "ipmi_port": nil, "ipmi_password": "******"},
		}),
		step(bmc("redfish://192.0.2.2/redfish/v1/Systems/1", `username = "admin"`), map[string]any{
			"driver": "redfish", "boot_interface": "ipxe", "power_interface": "redfish", "driver_info": map[string]any{
				"redfish_address": "https://192.0.2.2", "redfish_username": "admin", "ipmi_address": nil, "ipmi_username": nil, "ipmi_password": nil,
			},
		}),
		step(bmc("redfish-virtualmedia://192.0.2.2/redfish/v1/Systems/1", `username = "root"`), map[string]any{
			"boot_interface": "redfish-virtual-media", "driver_info": map[string]any{"redfish_username": "root"},
		}),
		step(bmc("redfish://192.0.2.2/redfish/v1/Systems/1"), map[string]any{"boot_interface": "ipxe", "driver_info": map[string]any{"redfish_username": nil}}),
		step("driver = \"ipmi\"\n  driver_info = { ipmi_address = \"192.0.2.3\" }", map[string]any{
			"driver": "ipmi", "driver_info": map[string]any{"ipmi_address": "192.0.2.3", "redfish_address": nil, "redfish_system_id": nil},
		}),
	)
}

// What was found about the machine stays true when its BMC gets another address.
func TestFakeHost_newBMCAddressKeepsTheInventoryAndTouchesNothing(t *testing.T) {
	s := acctest.StartFake(t, nil)
	config := func(address string, version int) string {
		return s.Provider() + hostBlock(s.Name("h"), bmc(address, withPassword("secret", version)), `inspect = true`, target("available"))
	}
	var id string
	test(t,
		resource.TestStep{
			Config:            config("redfish://192.0.2.1/redfish/v1/Systems/1", 1),
			ConfigStateChecks: []statecheck.StateCheck{hostIs("inventory", knownvalue.NotNull()), hostIs("power_managed", knownvalue.Bool(true))},
			Check: func(state *terraform.State) error {
				id = state.RootModule().Resources[hostAddress].Primary.ID
				s.Fake.ResetRequests()
				return nil
			},
		},
		resource.TestStep{
			Config:            config("redfish://192.0.2.99/redfish/v1/Systems/1", 2),
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{hostIs("inventory", knownvalue.NotNull()), hostIs("provision_state", knownvalue.StringExact("available"))},
			Check: func(*terraform.State) error {
				if sent := verbs(s, id); len(sent) > 0 {
					return fmt.Errorf("the node was sent %v", sent)
				}
				return nil
			},
		},
	)
}

func TestAccHost_bmcAddressChangedBehindTheBackIsSeenAndPutBack(t *testing.T) {
	s := acctest.Start(t, nil)
	config := enrolled(s, bmc("redfish://192.0.2.1/redfish/v1/Systems/1", `username = "root"`))
	has := map[string]any{"driver_info": map[string]any{"redfish_address": "https://192.0.2.1", "redfish_username": "root"}}
	test(t,
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig:         func() { s.Patch(s.Name("h"), "replace", "/driver_info/redfish_address", "https://192.0.2.66") },
			Config:            config,
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{nodeHas(s, has)},
		},
		resource.TestStep{
			PreConfig:         func() { s.Patch(s.Name("h"), "remove", "/driver_info/redfish_username", nil) },
			Config:            config,
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{nodeHas(s, has)},
		},
		resource.TestStep{
			PreConfig: func() {
				s.Must(http.MethodPatch, "nodes/"+s.Name("h")+"?reset_interfaces=true", []any{map[string]any{"op": "replace", "path": "/driver", "value": "ipmi"}})
			},
			Config:            config,
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{nodeHas(s, map[string]any{"driver": "redfish", "power_interface": "redfish"})},
		},
	)
}

func TestFakeHost_wrongBMCSettingsAreRefusedBeforeAnythingIsAsked(t *testing.T) {
	for _, tt := range []struct{ name, settings, want string }{
		{"unknown scheme", bmc("telnet://192.0.2.1"), `The BMC address "telnet://192.0.2.1" has the unknown scheme "telnet"; known are ipmi, redfish, redfish-virtualmedia`},
		{"unknown transport", bmc("redfish+ftp://192.0.2.1/redfish/v1/Systems/1"), `unknown transport "ftp"; known are http and https`},
		{"credentials in it", bmc("ipmi://root:calvin@192.0.2.1"), "must not contain credentials; use username and password_wo"},
		{"no host", bmc("redfish:///redfish/v1/Systems/1"), "names no host"},
		{"driver too", bmc("ipmi://192.0.2.1") + "\n  driver = \"ipmi\"", `"bmc" cannot be specified when "driver" is specified`},
		{"both passwords", bmc("ipmi://192.0.2.1", `password = "a"`, `password_wo = "b"`, `password_wo_version = 1`), `cannot be specified when`},
		{"no version", bmc("ipmi://192.0.2.1", `password_wo = "b"`), `password_wo_version`},
		{"certificates with ipmi", bmc("ipmi://192.0.2.1", `verify_ca = true`), "IPMI has no certificates: remove verify_ca"},
		{"set twice", bmc("ipmi://192.0.2.1") + "\n  driver_info = { ipmi_address = \"192.0.2.2\" }", "ipmi_address follows from bmc"},
		{"neither", ``, "A new metal_host needs bmc, or driver with driver_info"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := acctest.StartFake(t, &fakeironic.Server{})
			test(t, resource.TestStep{
				Config:      s.Provider() + hostBlock(s.Name("h"), tt.settings),
				ExpectError: regexp.MustCompile(wrapped(tt.want)),
				PlanOnly:    true,
			})
			t.Cleanup(func() {
				if asked := s.Fake.Requests(); slices.ContainsFunc(asked, func(r fakeironic.Request) bool { return r.Method != http.MethodGet }) {
					t.Errorf("Ironic was asked %v", asked)
				}
			})
		})
	}
}
