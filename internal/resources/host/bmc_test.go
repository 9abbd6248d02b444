package host_test

import (
	"fmt"
	"maps"
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

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// withPassword is the HCL of a write-only password.
func withPassword(password string, version int) string {
	return fmt.Sprintf("username = \"root\"\n    password_wo = %q\n    password_wo_version = %d", password, version)
}

// enrolled is a configuration with a host of a real driver that is only enrolled, because its BMC does not exist.
func enrolled(s *site.Site, settings ...string) string {
	return s.Provider() + acctest.HostBlock(s.Name("h"), append([]string{acctest.Target("enroll")}, settings...)...)
}

func TestAccHost_bmcAddressSetsDriver(t *testing.T) {
	for _, tt := range []struct {
		name, bmc string
		want      map[string]any
	}{
		{"ipmi", bmc.Block("ipmi://192.0.2.11", `username = "root"`), map[string]any{
			"driver": "ipmi", "driver_info": map[string]any{
				"ipmi_address": "192.0.2.11", "ipmi_username": "root", "ipmi_port": nil,
				"ipmi_password": nil,
			},
		}},
		{"ipmi with a port", bmc.Block("ipmi://192.0.2.12:6230", withPassword("secret", 1)), map[string]any{
			"driver": "ipmi", "driver_info": map[string]any{"ipmi_address": "192.0.2.12", "ipmi_port": "6230", "ipmi_password": "******"},
		}},
		{
			"bare address", bmc.Block("192.0.2.13"),
			map[string]any{"driver": "ipmi", "driver_info": map[string]any{"ipmi_address": "192.0.2.13"}},
		},
		{"redfish", bmc.Block("redfish://192.0.2.14/redfish/v1/Systems/1", withPassword("secret", 1)), map[string]any{
			"driver": "redfish", "boot_interface": "ipxe", "driver_info": map[string]any{
				"redfish_address": "https://192.0.2.14", "redfish_system_id": "/redfish/v1/Systems/1", "redfish_username": "root",
				"redfish_password": "******", "redfish_verify_ca": nil,
			},
		}},
		{"redfish over http", bmc.Block("redfish+http://[2001:db8::1]:8000/redfish/v1/Systems/1/", `verify_ca = false`), map[string]any{
			"driver": "redfish", "driver_info": map[string]any{
				"redfish_address": "http://[2001:db8::1]:8000", "redfish_system_id": "/redfish/v1/Systems/1", "redfish_verify_ca": false,
			},
		}},
		{"redfish-virtualmedia", bmc.Block("redfish-virtualmedia+https://192.0.2.15/redfish/v1/Systems/1"), map[string]any{
			"driver": "redfish", "boot_interface": "redfish-virtual-media",
			"driver_info": map[string]any{"redfish_address": "https://192.0.2.15"},
		}},
		{"configured interface", bmc.Block("redfish-virtualmedia://192.0.2.16/redfish/v1/Systems/1") +
			"\n  hardware_interfaces = { boot = \"pxe\", deploy = \"ramdisk\" }", map[string]any{
			"driver": "redfish", "boot_interface": "pxe", "deploy_interface": "ramdisk",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := site.Start(t, nil)
			acctest.Test(t, resource.TestStep{Config: enrolled(s, tt.bmc), ConfigStateChecks: []statecheck.StateCheck{nodeHas(s, tt.want)}})
		})
	}
}

func TestAccHost_bmcChangesInPlace(t *testing.T) {
	s := site.Start(t, nil)
	stays := statecheck.CompareValue(compare.ValuesSame())
	step := func(settings string, want map[string]any) resource.TestStep {
		return resource.TestStep{
			Config:            enrolled(s, settings),
			ConfigStateChecks: []statecheck.StateCheck{stays.AddStateValue(acctest.HostAddress, tfjsonpath.New("id")), nodeHas(s, want)},
		}
	}
	acctest.Test(t,
		step(bmc.Block("ipmi://192.0.2.21:6230", withPassword("secret", 1)),
			map[string]any{"driver": "ipmi", "driver_info": map[string]any{"ipmi_port": "6230"}}),
		step(bmc.Block("ipmi://192.0.2.22", withPassword("secret", 1)), map[string]any{
			"driver": "ipmi", "driver_info": map[string]any{"ipmi_address": "192.0.2.22", "ipmi_port": nil, "ipmi_password": "******"},
		}),
		step(bmc.Block("redfish://192.0.2.22/redfish/v1/Systems/1", `username = "admin"`), map[string]any{
			"driver": "redfish", "boot_interface": "ipxe", "power_interface": "redfish", "driver_info": map[string]any{
				"redfish_address": "https://192.0.2.22", "redfish_username": "admin", "ipmi_address": nil, "ipmi_username": nil,
				"ipmi_password": nil,
			},
		}),
		step(bmc.Block("redfish-virtualmedia://192.0.2.22/redfish/v1/Systems/1", `username = "root"`), map[string]any{
			"boot_interface": "redfish-virtual-media", "driver_info": map[string]any{"redfish_username": "root"},
		}),
		step(bmc.Block("redfish://192.0.2.22/redfish/v1/Systems/1"),
			map[string]any{"boot_interface": "ipxe", "driver_info": map[string]any{"redfish_username": nil}}),
		step("driver = \"ipmi\"\n  driver_info = { ipmi_address = \"192.0.2.23\" }", map[string]any{
			"driver": "ipmi", "driver_info": map[string]any{"ipmi_address": "192.0.2.23", "redfish_address": nil, "redfish_system_id": nil},
		}),
	)
}

// A host that was inspected is not inspected again when its BMC gets another address.
func TestFakeHost_newBMCAddressInspectsNothing(t *testing.T) {
	s := site.StartFake(t, nil)
	config := func(address string, version int) string {
		return s.Provider() + acctest.HostBlock(s.Name("h"), bmc.Block(address, withPassword("secret", version)), `inspect = true`,
			acctest.Target("available"))
	}
	var id string
	acctest.Test(t,
		resource.TestStep{
			Config:            config("redfish://192.0.2.24/redfish/v1/Systems/1", 1),
			ConfigStateChecks: []statecheck.StateCheck{hostIs("power_managed", knownvalue.Bool(true))},
			Check: func(state *terraform.State) error {
				id = state.RootModule().Resources[acctest.HostAddress].Primary.ID
				s.Fake.ResetRequests()
				return nil
			},
		},
		resource.TestStep{
			Config:            config("redfish://192.0.2.25/redfish/v1/Systems/1", 2),
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{hostIs("provision_state", knownvalue.StringExact("available"))},
			Check: func(*terraform.State) error {
				if sent := site.Verbs(s, id); len(sent) > 0 {
					return fmt.Errorf("the node was sent %v", sent)
				}
				return nil
			},
		},
	)
}

// bmcSchemes are addresses of BMCs with all schemes of Redfish, and the driver and interfaces of their nodes.
var bmcSchemes = map[string]map[string]any{
	"redfish://192.0.2.51/redfish/v1/Systems/1": {
		"driver": "redfish", "boot_interface": "ipxe",
		"raid_interface": "redfish",
	},
	"redfish-virtualmedia+http://[2001:db8::52]/redfish/v1/Systems/1":   {"driver": "redfish", "boot_interface": "redfish-virtual-media"},
	"redfish-uefihttp+https://192.0.2.53:8443/redfish/v1/Systems/1":     {"driver": "redfish", "boot_interface": "redfish-https"},
	"ilo5-redfish://192.0.2.54/redfish/v1/Systems/1":                    {"driver": "redfish", "boot_interface": "ipxe"},
	"ilo5-virtualmedia+http://192.0.2.55:8000/redfish/v1/Systems/1":     {"driver": "redfish", "boot_interface": "redfish-virtual-media"},
	"idrac-redfish://[2001:db8::56]:8443/redfish/v1/Systems/System.E.1": {"driver": "idrac", "boot_interface": "ipxe"},
	"idrac-virtualmedia+https://192.0.2.57/redfish/v1/Systems/S.1": {
		"driver":         "idrac",
		"boot_interface": "idrac-redfish-virtual-media",
	},
}

func TestAccHost_everySchemeMakesValidNode(t *testing.T) {
	for address, want := range bmcSchemes {
		scheme, _, _ := strings.Cut(address, ":")
		t.Run(scheme, func(t *testing.T) {
			s := site.Start(t, nil)
			if strings.HasPrefix(scheme, "redfish-uefihttp") {
				s.SkipBefore(t, 90) // Ironic 21.4 has no redfish-https
			}
			if want["driver"] == "idrac" {
				want = maps.Clone(want)
				for _, kind := range []string{"bios", "management", "power", "raid", "vendor"} {
					want[kind+"_interface"] = "idrac-redfish"
				}
			}
			config := enrolled(s, bmc.Block(address, withPassword("secret", 1)))
			valid := func(*terraform.State) error {
				verdicts := s.Must(http.MethodGet, "nodes/"+s.Name("h")+"/validate", nil)
				for _, kind := range []string{"power", "management", "bios", "raid", "inspect"} {
					if verdict, _ := verdicts[kind].(map[string]any); verdict["result"] != true {
						return fmt.Errorf("%s: %v", kind, verdict)
					}
				}
				return nil
			}
			acctest.Test(t,
				resource.TestStep{Config: config, ConfigStateChecks: []statecheck.StateCheck{nodeHas(s, want)}, Check: valid},
				resource.TestStep{RefreshState: true},
				resource.TestStep{
					Config: config, ConfigPlanChecks: hostPlan(plancheck.ResourceActionNoop),
					ConfigStateChecks: []statecheck.StateCheck{
						statecheck.ExpectKnownValue(acctest.HostAddress, tfjsonpath.New("bmc").AtMapKey("address"),
							knownvalue.StringExact(address)),
					},
				},
			)
		})
	}
}

// Only what differs between two schemes changes, and an interface that another client changes is put back.
func TestAccHost_schemeChangesInPlace(t *testing.T) {
	s := site.Start(t, nil)
	stays := statecheck.CompareValue(compare.ValuesSame())
	step := func(scheme, driver, boot, others string) resource.TestStep {
		return resource.TestStep{
			Config: enrolled(s, bmc.Block(scheme+"://192.0.2.58/redfish/v1/Systems/1", withPassword("secret", 1))),
			ConfigStateChecks: []statecheck.StateCheck{
				stays.AddStateValue(acctest.HostAddress, tfjsonpath.New("id")),
				nodeHas(s, map[string]any{
					"driver": driver, "boot_interface": boot, "raid_interface": others, "power_interface": others,
					"driver_info": map[string]any{
						"redfish_address": "https://192.0.2.58", "redfish_username": "root",
						"redfish_password": "******",
					},
				}),
			},
		}
	}
	drift := step("idrac-redfish", "idrac", "ipxe", "idrac-redfish")
	drift.PreConfig = func() { s.Patch(s.Name("h"), "replace", "/raid_interface", "no-raid") }
	drift.ConfigPlanChecks = hostPlan(plancheck.ResourceActionUpdate)
	chosen := enrolled(s, bmc.Block("idrac-redfish://192.0.2.58/redfish/v1/Systems/1", withPassword("secret", 1)),
		`hardware_interfaces = { raid = "no-raid" }`)
	acctest.Test(t,
		step("redfish", "redfish", "ipxe", "redfish"),
		step("idrac-virtualmedia", "idrac", "idrac-redfish-virtual-media", "idrac-redfish"),
		step("idrac-redfish", "idrac", "ipxe", "idrac-redfish"),
		drift,
		resource.TestStep{Config: chosen, ConfigStateChecks: []statecheck.StateCheck{nodeHas(s,
			map[string]any{"raid_interface": "no-raid", "bios_interface": "idrac-redfish"})}},
		step("ilo5-virtualmedia", "redfish", "redfish-virtual-media", "redfish"),
		step("redfish-virtualmedia", "redfish", "redfish-virtual-media", "redfish"),
		step("redfish", "redfish", "ipxe", "redfish"),
	)
}

func TestAccHost_bmcAddressDrift(t *testing.T) {
	s := site.Start(t, nil)
	config := enrolled(s, bmc.Block("redfish://192.0.2.26/redfish/v1/Systems/1", `username = "root"`))
	has := map[string]any{"driver_info": map[string]any{"redfish_address": "https://192.0.2.26", "redfish_username": "root"}}
	acctest.Test(t,
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig:         func() { s.Patch(s.Name("h"), "replace", "/driver_info/redfish_address", "https://192.0.2.27") },
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
				s.Must(http.MethodPatch, "nodes/"+s.Name("h")+"?reset_interfaces=true",
					[]any{map[string]any{"op": "replace", "path": "/driver", "value": "ipmi"}})
			},
			Config:            config,
			ConfigPlanChecks:  hostPlan(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{nodeHas(s, map[string]any{"driver": "redfish", "power_interface": "redfish"})},
		},
	)
}

func TestFakeHost_wrongBMCSettingsAreRefusedOffline(t *testing.T) {
	for _, tt := range []struct{ name, settings, want string }{
		{
			"unknown scheme", bmc.Block("telnet://192.0.2.1"),
			`The BMC address "telnet://192.0.2.1" has the unknown scheme "telnet"; known are idrac-redfish,`,
		},
		{
			"removed scheme", bmc.Block("irmc://192.0.2.1"),
			`The BMC address "irmc://192.0.2.1" has the scheme irmc, which is gone from Ironic; use redfish, such as "redfish://192.0.2.1"`,
		},
		{
			"no scheme", bmc.Block("idrac.example.com/redfish/v1/Systems/System.Embedded.1"),
			`The BMC address "idrac.example.com/redfish/v1/Systems/System.Embedded.1" lacks the scheme of a driver; write "idrac-redfish://`,
		},
		{
			"unknown transport", bmc.Block("redfish+ftp://192.0.2.1/redfish/v1/Systems/1"),
			`unknown transport "ftp"; known are http and https`,
		},
		{"credentials in it", bmc.Block("ipmi://root:calvin@192.0.2.1"), "must not contain credentials; use username and password_wo"},
		{"no host", bmc.Block("redfish:///redfish/v1/Systems/1"), "has no host"},
		{
			"another driver too", bmc.Block("ipmi://192.0.2.1") + "\n  driver = \"redfish\"",
			`The driver follows from the address of bmc, and is ipmi. Remove driver here`,
		},
		{
			"both passwords", bmc.Block("ipmi://192.0.2.1", `password = "a"`, `password_wo = "b"`, `password_wo_version = 1`),
			`cannot be specified when`,
		},
		{"no version", bmc.Block("ipmi://192.0.2.1", `password_wo = "b"`), `password_wo_version`},
		{
			"blank version", bmc.Block("ipmi://192.0.2.1", `password_wo = "b"`, `password_wo_version = " "`),
			`bmc.password_wo_version: " " must not be blank.`,
		},
		{
			"version without a secret", "driver = \"redfish\"\n  driver_info_wo_version = 1",
			`"driver_info_wo" must be specified when "driver_info_wo_version" is`,
		},
		{"certificates with ipmi", bmc.Block("ipmi://192.0.2.1", `verify_ca = true`), "IPMI has no certificates. Remove verify_ca"},
		{
			"set twice", bmc.Block("ipmi://192.0.2.1") + "\n  driver_info = { ipmi_address = \"192.0.2.2\" }",
			"ipmi_address follows from bmc",
		},
		{"a page's address", bmc.Block("https://192.0.2.1/redfish/v1/Systems/1"), `write "redfish://192.0.2.1/redfish/v1/Systems/1"`},
		{"trait", "driver = \"fake-hardware\"\n  traits = [\"NVME\"]", `Write "CUSTOM_NVME"`},
		{
			"secret in driver_info", "driver = \"irmc\"\n  driver_info = { irmc_password = \"a\" }",
			"Move irmc_password to driver_info_wo, or use bmc",
		},
		{"neither", ``, "A new metal_host needs bmc, or driver with driver_info"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := site.StartFake(t, &fakeironic.Server{})
			acctest.Test(t, resource.TestStep{
				Config:      s.Provider() + acctest.HostBlock(s.Name("h"), tt.settings),
				ExpectError: regexp.MustCompile(acctest.Wrapped(tt.want)),
				PlanOnly:    true,
			})
			t.Cleanup(func() {
				if asked := s.Fake.Requests(); slices.ContainsFunc(asked, func(r fakeironic.Request) bool {
					return r.Method != http.MethodGet
				}) {
					t.Errorf("requests to Ironic: %v", asked)
				}
			})
		})
	}
}

// The scheme of a BMC address may change the boot interface of a node that Terraform did not create. The plan names both, and a scheme that
// sets no boot interface keeps what the node has.
func TestFakeHost_schemeChangesBootInterfaceOfImportedNode(t *testing.T) {
	t.Parallel()
	const arrow = " -> "
	for state, title := range map[string]string{
		"manageable": "Hardware interface changes",
		"active":     "Interface of a deployed machine changes",
	} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			s := site.StartFake(t, nil)
			name := s.Name("h")
			s.Must(http.MethodPost, "nodes", map[string]any{
				"name": name, "driver": "redfish", "boot_interface": "ipxe",
				"driver_info": map[string]any{"redfish_address": "https://192.0.2.61", "redfish_system_id": "/redfish/v1/Systems/1"},
			})
			s.Fake.Set(name, "provision_state", state)
			config := func(settings ...string) string {
				return s.Provider() + "import {\n  to = metal_host.h\n  id = " + acctest.Quoted(name) + "\n}\n" +
					acctest.HostBlock(name, append(settings, `on_destroy = "forget"`)...)
			}
			plan := func(w *acctest.Workspace, scheme string) string {
				w.Configure(config(bmc.Block(scheme + "://192.0.2.61/redfish/v1/Systems/1")))
				output, _ := w.Plan()
				return output
			}
			w := acctest.NewWorkspace(t, config())
			names := []string{
				title, "its boot interface changes from ipxe to redfish-virtual-media",
				`set hardware_interfaces = { boot = "ipxe" }`,
			}
			acctest.Mention(t, plan(w, "redfish-virtualmedia"), append(names, `"ipxe" -> "redfish-virtual-media"`)...)
			for _, boot := range []string{"redfish-virtual-media", "ipxe"} {
				s.Fake.Set(name, "boot_interface", boot)
				acctest.NeverMention(t, plan(w, "redfish"), title, `"ipxe"`+arrow, `"redfish-virtual-media"`+arrow)
			}
			w.Configure(config())
			w.Must("apply", "-auto-approve")
			acctest.Mention(t, plan(w, "redfish-virtualmedia"), names...)
			w.Must("apply", "-auto-approve")
			acctest.NoChanges(t, w)
			if got := s.Node(name)["boot_interface"]; got != "redfish-virtual-media" {
				t.Errorf("the boot interface is %v", got)
			}
			acctest.Mention(t, plan(w, "redfish"), title, "its boot interface changes from redfish-virtual-media to ipxe",
				`"redfish-virtual-media" -> "ipxe"`)
			w.Must("apply", "-auto-approve")
			if got := s.Node(name)["boot_interface"]; got != "ipxe" {
				t.Errorf("the boot interface is %v", got)
			}
		})
	}
}
