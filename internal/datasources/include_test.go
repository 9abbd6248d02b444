package datasources_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

var (
	text = knownvalue.StringExact
	null = knownvalue.Null()
	yes  = knownvalue.Bool(true)
	no   = knownvalue.Bool(false)
)

func object(attributes map[string]knownvalue.Check) knownvalue.Check {
	return knownvalue.ObjectExact(attributes)
}

func mapOf(entries map[string]knownvalue.Check) knownvalue.Check { return knownvalue.MapExact(entries) }

// including is a data source of a node with include.
func including(s *site.Site, name, node string, parts ...string) string {
	return data("metal_host", name, "name = "+acctest.Quoted(s.Name(node)), fmt.Sprintf("include = [%s]", strings.Join(parts, ", ")))
}

// setting describes a BIOS setting without a registry.
func plainSetting(value string) knownvalue.Check {
	return object(map[string]knownvalue.Check{
		"value": text(value), "type": null, "allowable_values": null, "lower_bound": null, "upper_bound": null, "min_length": null,
		"max_length": null,
		"read_only":  null, "reset_required": null, "unique": null,
	})
}

// On every Ironic: what the drivers fake-hardware and ipmi tell.
func TestAccHostDataSource_includesParts(t *testing.T) {
	s := site.Start(t, nil)
	fake, ipmi := addNode(t, s, "fake", nil),
		addNode(t, s, "ipmi", map[string]any{"driver": "ipmi", "driver_info": map[string]any{"ipmi_address": s.Name("bmc")}})
	s.Verb(fake, "manage", "manageable")
	s.Must(http.MethodPut, "nodes/"+fake+"/states/provision", map[string]any{"target": "clean", "clean_steps": []any{map[string]any{
		"interface": "bios", "step": "apply_configuration", "args": map[string]any{"settings": []any{map[string]any{
			"name":  "BootMode",
			"value": "Uefi",
		}, map[string]any{"name": "Cores", "value": 8}}},
	}}})
	s.Await(fake, "provision_state", "manageable")
	s.Must(http.MethodPut, "nodes/"+fake+"/states/console", map[string]any{"enabled": true})
	s.Await(fake, "console_enabled", true)

	config := s.Provider() + including(s, "fake", "fake", `"bios_settings"`, `"validation"`, `"console"`) +
		including(s, "ipmi", "ipmi", `"bios_settings"`, `"validation"`, `"console"`)
	well := object(map[string]knownvalue.Check{"ok": yes, "reason": null})
	checks := []statecheck.StateCheck{
		is("data.metal_host.fake", "bios_settings",
			mapOf(map[string]knownvalue.Check{"BootMode": plainSetting("Uefi"), "Cores": plainSetting("8")})),
		is("data.metal_host.fake", "validation",
			knownvalue.MapPartial(map[string]knownvalue.Check{"power": well, "deploy": well, "raid": well})),
		is("data.metal_host.fake", "console", object(map[string]knownvalue.Check{"enabled": yes, "type": null, "url": null})),
		is("data.metal_host.fake", "console_enabled", yes), is("data.metal_host.fake", "inventory", null),
		is("data.metal_host.fake", "raid", null),
		is("data.metal_host.ipmi", "bios_settings", mapOf(nil)),
		is("data.metal_host.ipmi", "console", object(map[string]knownvalue.Check{"enabled": no, "type": null, "url": null})),
		is("data.metal_host.ipmi", "boot_mode", null), is("data.metal_host.ipmi", "secure_boot", null),
		is("data.metal_host.ipmi", "console_enabled", no),
		// no-bios, no-console, no-raid and others are not there.
		is("data.metal_host.ipmi", "validation",
			knownvalue.MapPartial(map[string]knownvalue.Check{"power": well, "boot": object(map[string]knownvalue.Check{
				"ok": no, "reason": text("Node " + ipmi + " does not have any port associated with it"),
			})})),
	}
	for _, kind := range []string{"bios", "console", "raid", "rescue"} {
		config += fmt.Sprintf("output %q {\n  value = can(data.metal_host.ipmi.validation[%q])\n}\n", kind, kind)
		checks = append(checks, statecheck.ExpectKnownOutputValue(kind, no))
	}
	if s.Newest() >= 86 {
		config += including(s, "components", "fake", `"firmware"`)
		checks = append(checks, is("data.metal_host.components", "firmware", mapOf(nil)),
			is("data.metal_host.components", "bios_settings", null))
	}
	t.Run("included", func(t *testing.T) { test(t, config, "", checks...) })
	if s.Newest() < 86 {
		t.Run("firmware", func(t *testing.T) {
			test(t, s.Provider()+including(s, "h", "fake", `"bios_settings"`, `"firmware"`), `include = ["firmware"] needs API 1.86`)
		})
	}
}

// A graphical console has a secret in its URL.
func TestAccHostDataSource_includesAGraphicalConsole(t *testing.T) {
	s := site.Start(t, nil)
	s.SkipBefore(t, 115)
	id := addNode(t, s, "h", map[string]any{"console_interface": "fake-graphical"})
	s.Must(http.MethodPut, "nodes/"+id+"/states/console", map[string]any{"enabled": true})
	s.Await(id, "console_enabled", true)
	config := s.Provider() + including(s, "h", "h", `"console"`)
	test(t, config, "", is("data.metal_host.h", "console", object(map[string]knownvalue.Check{
		"enabled": yes, "type": text("vnc"), "url": knownvalue.StringRegexp(regexp.MustCompile(`\?path=websockify%3Fnode%3D` + id +
			`%26token%3D.+`)),
	})))
	w := acctest.NewWorkspace(t, config+"output \"console\" {\n  value = data.metal_host.h.console.url\n}\n")
	acctest.Fails(t, w, []string{"plan"}, "Output refers to sensitive values")
}

// What a machine with a BMC tells, part by part: each costs a request, and only if it is asked for.
func TestFakeHostDataSource_asksForWhatIsIncluded(t *testing.T) {
	s := site.StartFake(t, nil)
	id := addNode(t, s, "h", map[string]any{
		"driver": "redfish", "driver_info": map[string]any{"redfish_address": "https://192.0.2.46"}, "raid_interface": "redfish",
	})
	s.Verb(id, "manage", "manageable")
	s.Fake.SetInventory(id, map[string]any{"interfaces": []any{}}, nil)
	requests := map[string][]string{
		``: {"inventory"}, `[]`: nil, `["inventory"]`: {"inventory"}, `["neighbors"]`: {"inventory"},
		`["inventory", "neighbors"]`: {"inventory"}, `["bios_settings"]`: {"bios"},
		`["firmware"]`: {"firmware"}, `["validation"]`: {"validate"}, `["console"]`: {"states/console"},
		`["bios_settings", "firmware"]`: {"bios", "firmware"},
	}
	for _, include := range slices.Sorted(maps.Keys(requests)) {
		setting := ""
		if include != "" {
			setting = "include = " + include
		}
		w := acctest.NewWorkspace(t, s.Provider()+data("metal_host", "h", "id = "+acctest.Quoted(id), setting))
		s.Fake.ResetRequests()
		w.Must("plan")
		var asked []string
		for _, r := range s.Fake.Requests() {
			if rest, found := strings.CutPrefix(r.Path, "/v1/nodes/"+id+"/"); found {
				asked = append(asked, rest)
			}
		}
		if slices.Sort(asked); !slices.Equal(asked, requests[include]) {
			t.Errorf("include %s asks for %v, want %v", include, asked, requests[include])
		}
	}
	test(t, s.Provider()+including(s, "h", "h", `"sensors"`), `value must be one of: ["inventory" "neighbors"`)
}

// The values of all parts of a machine with a BMC.
func TestFakeHostDataSource_showsTheHardware(t *testing.T) {
	s := site.StartFake(t, nil)
	id := addNode(t, s, "h", map[string]any{"driver": "redfish", "driver_info": map[string]any{"redfish_address": "https://192.0.2.46"}})
	s.Verb(id, "manage", "manageable")
	s.Fake.Set(id, "instance_name", "web-0")
	s.Fake.SetBIOS(id,
		fakeironic.BIOSSetting{Name: "Cores", Value: "8", Type: "Integer", Lower: 0, Upper: 64},
		fakeironic.BIOSSetting{Name: "NumLock", Value: "1", Type: "Boolean"},
		fakeironic.BIOSSetting{Name: "BootMode", Value: "Uefi", Type: "Enumeration", Allowed: []string{"Bios", "Uefi"}},
		fakeironic.BIOSSetting{Name: "Tag", Value: "a", Type: "String", Lower: 0, Upper: 63, ReadOnly: true},
	)
	s.Fake.SetInventory(id, map[string]any{"interfaces": []any{
		map[string]any{"name": "eno1", "mac_address": strings.ToUpper(s.MAC(1))},
		map[string]any{"name": "eno1.100", "mac_address": s.MAC(1)}, // a VLAN hears no announcements
		map[string]any{"name": "eno2", "mac_address": s.MAC(2)},
		map[string]any{"name": "eno3", "mac_address": s.MAC(3)},
	}}, map[string]any{
		"lldp_raw": map[string]any{"eno1": []any{
			[]any{1, "04525400ee0001"},
			[]any{2, "0545746831"},
			[]any{4, "757020"},
			[]any{5, "6c6561662d31"},
		}, "eno1.100": []any{}, "eno2": []any{}},
		"parsed_lldp": map[string]any{"NIC.1-1": map[string]any{
			"switch_chassis_id": "52:54:00:ee:00:02",
			"switch_port_id":    "Ethernet1/18",
		}},
	})
	s.Fake.Set(id, "raid_config", map[string]any{"last_updated": "2026-11-26 05:00:00", "logical_disks": []any{
		map[string]any{"id": "1", "name": "os", "controller": "RAID.1", "size_gb": 446, "raid_level": "1"},
		map[string]any{
			"volume_name": "data", "size_gb": "MAX", "raid_level": "5", "is_root_volume": true,
			"physical_disks": []any{"sda", map[string]any{"size": ">100"}},
		},
	}})
	setting := func(value, kind string, known map[string]knownvalue.Check) knownvalue.Check {
		all := map[string]knownvalue.Check{
			"value": text(value), "type": text(kind), "allowable_values": null, "lower_bound": null, "upper_bound": null,
			"min_length": null, "max_length": null,
			"read_only": no, "reset_required": yes, "unique": no,
		}
		maps.Copy(all, known)
		return object(all)
	}
	whole := knownvalue.Int64Exact
	neighbour := func(card, id, name, port, description knownvalue.Check) knownvalue.Check {
		return object(map[string]knownvalue.Check{
			"interface": card, "switch_id": id, "switch_name": name, "port_id": port,
			"port_description": description,
		})
	}
	volume := func(known map[string]knownvalue.Check) knownvalue.Check {
		all := map[string]knownvalue.Check{
			"id": null, "name": null, "level": null, "size_gb": null, "controller": null, "root": null,
			"physical_disks": null,
		}
		maps.Copy(all, known)
		return object(all)
	}
	raid := object(map[string]knownvalue.Check{
		"updated_at": text("2026-11-26 05:00:00"),
		"volumes": knownvalue.ListExact([]knownvalue.Check{
			volume(map[string]knownvalue.Check{
				"id": text("1"), "name": text("os"), "controller": text("RAID.1"), "size_gb": text("446"),
				"level": text("1"),
			}),
			volume(map[string]knownvalue.Check{
				"name": text("data"), "size_gb": text("MAX"), "level": text("5"), "root": yes,
				"physical_disks": knownvalue.SetExact([]knownvalue.Check{text("sda")}),
			}),
		}),
	})
	const h = "data.metal_host.h"
	test(t, s.Provider()+including(s, "h", "h", `"bios_settings"`, `"firmware"`, `"neighbors"`)+
		data("metal_hosts", "all", "name_regex = "+acctest.Quoted("^"+regexp.QuoteMeta(s.Name("h"))+"$")), "",
		is(h, "bios_settings", mapOf(map[string]knownvalue.Check{
			"Cores":   setting("8", "Integer", map[string]knownvalue.Check{"lower_bound": whole(0), "upper_bound": whole(64)}),
			"NumLock": setting("true", "Boolean", nil),
			"BootMode": setting("Uefi", "Enumeration",
				map[string]knownvalue.Check{"allowable_values": knownvalue.ListExact([]knownvalue.Check{text("Bios"), text("Uefi")})}),
			"Tag": setting("a", "String", map[string]knownvalue.Check{
				"min_length": whole(0), "max_length": whole(63),
				"read_only": yes,
			}),
		})),
		is(h, "firmware", knownvalue.MapPartial(map[string]knownvalue.Check{
			"nic:NIC0001": object(map[string]knownvalue.Check{
				"current_version": text("22.5.7"), "initial_version": text("22.5.7"), "last_version_flashed": null, "updated_at": null,
				"vendor": text("Example Networks"), "model": text("E810"), "serial_number": text("NIC0001"),
			}),
			"bios": knownvalue.ObjectPartial(map[string]knownvalue.Check{"current_version": text("2.18.0"), "vendor": null}),
		})),
		is(h, "neighbors", mapOf(map[string]knownvalue.Check{
			s.MAC(1):  neighbour(text("eno1"), text("52:54:00:ee:00:01"), text("leaf-1"), text("Eth1"), text("up")),
			s.MAC(2):  neighbour(text("eno2"), null, null, null, null),
			"NIC.1-1": neighbour(null, text("52:54:00:ee:00:02"), null, text("Ethernet1/18"), null),
		})),
		is(h, "raid", raid), is(h, "boot_mode", text("uefi")), is(h, "secure_boot", no), is(h, "instance_name", text("web-0")),
		is("data.metal_hosts.all", "hosts", knownvalue.ListExact([]knownvalue.Check{knownvalue.ObjectPartial(map[string]knownvalue.Check{
			"raid": raid, "boot_mode": text("uefi"), "secure_boot": no, "health": text("OK"), "console_enabled": no,
			"instance_name": text("web-0"), "power_state": text("off"),
		})})),
	)
}

// A part that the user may not read is null, with a warning; the others are there.
func TestFakeHostDataSource_partsThatAreNotVisible(t *testing.T) {
	s := site.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		if !strings.HasSuffix(r.URL.Path, "/validate") && !strings.HasSuffix(r.URL.Path, "/states/console") {
			return nil
		}
		return &fakeironic.Rejection{
			Status: http.StatusForbidden,
			Body:   `{"error_message": "{\"faultstring\": \"Access was denied to the following resource: baremetal:node:validate\"}"}`,
		}
	}})
	addNode(t, s, "h", map[string]any{"driver": "redfish", "driver_info": map[string]any{"redfish_address": "https://192.0.2.46"}})
	config := s.Provider() + including(s, "h", "h", `"bios_settings"`, `"validation"`, `"console"`)
	output := acctest.NewWorkspace(t, config).Must("plan")
	acctest.Mention(t, output, "Part of the host is not visible", "The attribute validation of host "+s.Name("h"),
		"baremetal:node:validate", "and one more similar warning")
	test(t, config, "", is("data.metal_host.h", "validation", null), is("data.metal_host.h", "console", null),
		is("data.metal_host.h", "bios_settings", knownvalue.MapSizeExact(6)))
}

// What the API does not have is an error by name, if the configuration asks for it, and null if it does not.
func TestFakeHostDataSource_partsOfANewerAPI(t *testing.T) {
	s := site.StartFake(t, &fakeironic.Server{MaxMicroversion: "1.82"})
	addNode(t, s, "h", nil)
	for _, tt := range []struct{ version, part, want string }{
		{"1.82", "firmware", `include = ["firmware"] needs API 1.86`},
		{"1.80", "inventory", `include = ["inventory"] needs API 1.81`},
		{"1.80", "neighbors", `include = ["neighbors"] needs API 1.81`},
	} {
		t.Run(tt.part, func(t *testing.T) {
			test(t, s.Provider("microversion = "+acctest.Quoted(tt.version))+including(s, "h", "h", `"bios_settings"`,
				acctest.Quoted(tt.part)), tt.want)
		})
	}
	t.Run("nothing", func(t *testing.T) {
		test(t, s.Provider(`microversion = "1.80"`)+data("metal_host", "h", "name = "+acctest.Quoted(s.Name("h"))), "",
			is("data.metal_host.h", "inventory", null), is("data.metal_host.h", "instance_name", null))
	})
}
