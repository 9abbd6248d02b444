package datasources_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// addNode enrolls a node by hand, with further fields, and returns its UUID.
func addNode(t *testing.T, s *site.Site, name string, fields map[string]any) string {
	t.Helper()
	body := map[string]any{"driver": "fake-hardware", "name": s.Name(name), "resource_class": s.Class()}
	for key, value := range fields {
		body[key] = value
	}
	id, _ := s.Must(http.MethodPost, "nodes", body)["uuid"].(string)
	t.Cleanup(func() {
		s.Must(http.MethodPut, "nodes/"+id+"/maintenance", map[string]any{}) // else Ironic refuses to delete a node with an instance
		s.Must(http.MethodDelete, "nodes/"+id, nil)
	})
	return id
}

// data returns the HCL of a data source with settings.
func data(kind, name string, settings ...string) string {
	return fmt.Sprintf("data %q %q {\n  %s\n}\n", kind, name, strings.Join(settings, "\n  "))
}

// test reads a configuration of data sources, and expects an error or runs checks.
func test(t *testing.T, config, want string, checks ...statecheck.StateCheck) {
	t.Helper()
	step := resource.TestStep{Config: config, ConfigStateChecks: checks}
	if want != "" {
		step.ExpectError = regexp.MustCompile("(?i)" + strings.ReplaceAll(regexp.QuoteMeta(want), " ", `[\s│]+`)) // the CLI wraps lines
	}
	acctest.Test(t, step)
}

func is(address, attribute string, value knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(address, tfjsonpath.New(attribute), value)
}

func TestAccHostDataSource_byAnyKey(t *testing.T) {
	s := site.Start(t, nil)
	const instance = "6a0d3a2e-5b3c-4c9a-9a55-0c1f00000000"
	reserved := instance[:28] + s.Name("")[1:]
	bmc := s.Name("bmc") + ".example.com"
	id := addNode(t, s, "h", map[string]any{
		"driver": "ipmi", "driver_info": map[string]any{"ipmi_address": bmc, "ipmi_password": "hunter22"}, "description": "the one",
		"lessee":        "carol",
		"properties":    map[string]any{"cpus": 4, "capabilities": "boot_mode:uefi,tier:1"},
		"extra":         map[string]any{"rack": map[string]any{"row": 3}, "terraform_metal_enrolled": "our own note"},
		"instance_uuid": reserved,
	})
	addNode(t, s, "other", map[string]any{"driver": "ipmi", "driver_info": map[string]any{"ipmi_address": "other-" + bmc}})
	for _, mac := range []string{s.MAC(2), s.MAC(1)} {
		s.Must(http.MethodPost, "ports", map[string]any{"node_uuid": id, "address": mac})
	}
	s.Must(http.MethodPut, "nodes/"+id+"/traits", map[string]any{"traits": []string{"CUSTOM_NVME", "CUSTOM_GPU"}})
	s.Must(http.MethodPut, "nodes/"+id+"/maintenance", map[string]any{"reason": "fan"})

	config := s.Provider()
	var checks []statecheck.StateCheck
	for by, value := range map[string]string{
		"id": id, "name": s.Name("h"), "mac": strings.ToUpper(s.MAC(1)), "bmc_address": bmc, "instance_id": reserved,
	} {
		config += data("metal_host", by, fmt.Sprintf("%s = %q", by, value))
		checks = append(checks, is("data.metal_host."+by, "id", knownvalue.StringExact(id)),
			is("data.metal_host."+by, by, knownvalue.StringExact(value)))
	}
	const address = "data.metal_host.name"
	test(t, config, "", append(checks,
		is(address, "driver", text("ipmi")), is(address, "bmc_address", text(bmc)), is(address, "provision_state", text("enroll")),
		is(address, "power_state", knownvalue.Null()), is(address, "resource_class", text(s.Class())),
		is(address, "description", text("the one")),
		is(address, "owner", knownvalue.Null()), is(address, "lessee", text("carol")), is(address, "instance_id", text(reserved)),
		is(address, "allocation_id", knownvalue.Null()), is(address, "maintenance", knownvalue.Bool(true)),
		is(address, "maintenance_reason", text("fan")),
		is(address, "retired", knownvalue.Bool(false)), is(address, "mac", knownvalue.Null()),
		is(address, "macs", knownvalue.ListExact([]knownvalue.Check{text(s.MAC(1)), text(s.MAC(2))})),
		is(address, "traits", knownvalue.SetExact([]knownvalue.Check{text("CUSTOM_GPU"), text("CUSTOM_NVME")})),
		is(address, "capabilities", knownvalue.MapExact(map[string]knownvalue.Check{"boot_mode": text("uefi"), "tier": text("1")})),
		is(address, "properties_json", text(`{"capabilities":"boot_mode:uefi,tier:1","cpus":4}`)),
		is(address, "extra_json", text(`{"rack":{"row":3}}`)),
		is(address, "driver_info_json", text(fmt.Sprintf(`{"ipmi_address":%q,"ipmi_password":"******"}`, bmc))),
	)...)
}

func TestAccHostDataSource_notFound(t *testing.T) {
	s := site.Start(t, nil)
	for _, tt := range []struct{ name, settings, want string }{
		{"id", `id = "6a0d3a2e-5b3c-4c9a-9a55-0c1f5e7d4b21"`, `Could not find the host with id "6a0d3a2e-5b3c-4c9a-9a55-0c1f5e7d4b21"`},
		{"name", `name = "no-such-host"`, `Could not find the host with name "no-such-host"`},
		{"mac", `mac = "52:00:00:00:00:01"`, `no port has the MAC address 52:00:00:00:00:01`},
		{"bmc_address", `bmc_address = "nowhere.example.com"`, `no node has the BMC address nowhere.example.com`},
		{
			"instance_id", `instance_id = "6a0d3a2e-5b3c-4c9a-9a55-0c1f5e7d4b21"`,
			`no node is reserved by 6a0d3a2e-5b3c-4c9a-9a55-0c1f5e7d4b21`,
		},
		{"nothing to look for", ``, `Exactly one of these attributes must be configured`},
		{"two ways", "name = \"a\"\n  mac = \"52:00:00:00:00:01\"", `Exactly one of these attributes must be configured`},
	} {
		t.Run(tt.name, func(t *testing.T) { test(t, s.Provider()+data("metal_host", "h", tt.settings), tt.want) })
	}
}

func TestFakeHostDataSource_showsTheInventoryAndAllInterfaces(t *testing.T) {
	var leased atomic.Value // the path of an inventory that the user may not read
	s := site.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		if r.URL.Path != leased.Load() {
			return nil
		}
		return &fakeironic.Rejection{
			Status: http.StatusForbidden,
			Body:   `{"error_message": "{\"faultstring\": \"Access was denied to the following resource: baremetal:node:inventory:get\"}"}`,
		}
	}})
	for _, name := range []string{"h", "new", "leased"} {
		id := addNode(t, s, name, map[string]any{"driver": "fake-hardware", "deploy_interface": "direct"})
		if name == "leased" {
			leased.Store("/v1/nodes/" + id + "/inventory")
			s.Fake.Set(id, "driver_info", map[string]any{"content": "** Redacted - requires baremetal:node:get:driver_info permission. **"})
			s.Fake.Set(id, "last_error", "** Value Redacted - Requires baremetal:node:get:last_error permission. **")
		}
	}
	s.Fake.SetInventory(s.Name("h"), map[string]any{
		"hostname": nil, "bmc_address": "0.0.0.0", "bmc_v6address": "2001:db8::5",
		"cpu": map[string]any{"count": 8, "model_name": "Example CPU"}, "bmc_mac": "52:54:00:BC:00:01",
		"system_vendor": map[string]any{"serial_number": "SN1", "product_name": "", "firmware": map[string]any{"version": "2.10.2"}},
		"interfaces": []any{
			map[string]any{"name": "eno1", "mac_address": s.MAC(1), "lldp": []any{[]any{1, "04525400ee0001"}, []any{2, "0545746831"}}},
			map[string]any{"name": "eno2", "speed_mbps": 25000, "pci_address": "0000:18:00.1"},
		},
		"boot": map[string]any{"pxe_interface": "01-52-54-00-AA-BB-01"},
		"disks": []any{map[string]any{
			"name": "/dev/sda", "size": 960197124096, "by_path": "/dev/disk/by-path/pci-0000:3b:00.0",
			"hctl": "0:2:0:1", "wwn_with_extension": "0x50002", "wwn_vendor_extension": "0x2",
		}},
	}, map[string]any{"parsed_lldp": map[string]any{"eno2": map[string]any{
		"switch_chassis_id": "52:54:00:ee:00:02",
		"switch_port_id":    "Ethernet1/18", "switch_system_name": "leaf-2",
	}}})
	test(t, s.Provider()+data("metal_host", "h", "name = "+acctest.Quoted(s.Name("h")))+
		data("metal_host", "new", "name = "+acctest.Quoted(s.Name("new")))+
		data("metal_host", "leased", "name = "+acctest.Quoted(s.Name("leased"))), "",
		is("data.metal_host.leased", "inventory", null), is("data.metal_host.leased", "driver_info_json", null),
		is("data.metal_host.leased", "last_error", null),
		is("data.metal_host.new", "inventory", null),
		is("data.metal_host.h", "hardware_interfaces",
			knownvalue.MapPartial(map[string]knownvalue.Check{"deploy": text("direct"), "boot": text("fake")})),
		is("data.metal_host.h", "inventory", knownvalue.ObjectExact(map[string]knownvalue.Check{
			"serial_number": text("SN1"), "cpus": knownvalue.Int64Exact(8), "bmc_address": text("2001:db8::5"),
			"boot_mac":     text("52:54:00:aa:bb:01"),
			"bios_version": text("2.10.2"), "cpu_model": text("Example CPU"), "bmc_mac": text("52:54:00:bc:00:01"), "hostname": null,
			"product": null, "manufacturer": null, "cpu_arch": null, "memory_mb": null,
			"disks": knownvalue.ListExact([]knownvalue.Check{knownvalue.ObjectExact(map[string]knownvalue.Check{
				"name": text("/dev/sda"), "size_bytes": knownvalue.Int64Exact(960197124096), "model": null, "vendor": null, "serial": null,
				"wwn": null, "rotational": null,
				"by_path": text("/dev/disk/by-path/pci-0000:3b:00.0"),
				"hctl":    text("0:2:0:1"), "wwn_with_extension": text("0x50002"), "wwn_vendor_extension": text("0x2"),
			})}),
			"interfaces": knownvalue.ListExact([]knownvalue.Check{
				knownvalue.ObjectExact(map[string]knownvalue.Check{
					"name": text("eno1"), "mac": text(s.MAC(1)), "ipv4_address": null, "ipv6_address": null, "has_carrier": null,
					"product": null, "vendor": null,
					"speed_mbps": null, "pci_address": null, "switch_id": text("52:54:00:ee:00:01"), "switch_port_id": text("Eth1"),
					"switch_name": null,
				}),
				knownvalue.ObjectPartial(map[string]knownvalue.Check{
					"name": text("eno2"), "speed_mbps": knownvalue.Int64Exact(25000), "pci_address": text("0000:18:00.1"),
					"switch_id": text("52:54:00:ee:00:02"), "switch_port_id": text("Ethernet1/18"), "switch_name": text("leaf-2"),
				}),
			}),
		})),
	)
}

func TestFakeHostDataSource_showsTheHealth(t *testing.T) {
	s := site.StartFake(t, nil)
	addNode(t, s, "h", map[string]any{"driver": "redfish", "driver_info": map[string]any{"redfish_address": "https://192.0.2.46"}})
	addNode(t, s, "other", nil)
	s.Verb(s.Name("h"), "manage", "manageable")
	config := func(version string) string {
		return s.Provider(`microversion = `+acctest.Quoted(version)) + data("metal_host", "h", "name = "+acctest.Quoted(s.Name("h"))) +
			data("metal_host", "other", "name = "+acctest.Quoted(s.Name("other")))
	}
	t.Run("API 1.109", func(t *testing.T) {
		test(t, config("1.109"), "", is("data.metal_host.h", "health", knownvalue.StringExact("OK")),
			is("data.metal_host.other", "health", knownvalue.Null()))
	})
	t.Run("API 1.108", func(t *testing.T) { test(t, config("1.108"), "", is("data.metal_host.h", "health", knownvalue.Null())) })
}
