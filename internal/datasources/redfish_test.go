package datasources_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakebmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// What a BMC tells reaches the data source through a real Ironic. Ironic 21.4 reads neither firmware nor what a BMC heard by LLDP.
func TestAccBMC_hardwareIsReadBack(t *testing.T) {
	s := site.StartWithBMCs(t, nil)
	if s.Fake != nil {
		t.Skip("the fake Ironic reads no BMC")
	}
	b := bmc.Start(t, s, "m", fakebmc.Config{
		MACs: []string{s.MAC(1), s.MAC(2)}, Drives: []int64{480e9}, Model: "R1", Serial: "SN1",
		Heard: map[string]fakebmc.Announcement{
			"1":     {Chassis: "52:54:00:ee:00:01", Port: "45:74:68:31", System: "leaf-1"},
			"NIC.9": {Chassis: "52:54:00:ee:00:02", Port: "Ethernet1/9"},
		},
	})
	id := addNode(t, s, "n", b.Node("ipxe"))
	s.Verb(id, "manage", "manageable")
	recent := s.Newest() >= 115
	parts := []string{`"inventory"`, `"bios_settings"`, `"validation"`}
	if recent {
		s.Verb(id, "inspect", "manageable")
		parts = append(parts, `"firmware"`, `"neighbors"`)
	}
	setting := func(value, kind string, readOnly knownvalue.Check, known map[string]knownvalue.Check) knownvalue.Check {
		all := map[string]knownvalue.Check{"value": text(value), "type": text(kind), "read_only": readOnly}
		for name, check := range known {
			all[name] = check
		}
		return knownvalue.ObjectPartial(all)
	}
	well := object(map[string]knownvalue.Check{"ok": yes, "reason": null})
	checks := []statecheck.StateCheck{
		is("data.metal_host.n", "bios_settings", knownvalue.MapPartial(map[string]knownvalue.Check{
			"QuietBootDelay": setting("5", "Integer", no, map[string]knownvalue.Check{
				"lower_bound": knownvalue.Int64Exact(0),
				"upper_bound": knownvalue.Int64Exact(60),
			}),
			"NumLock":       setting("true", "Boolean", no, nil),
			"BoardRevision": setting("A2", "String", yes, nil),
		})),
		is("data.metal_host.n", "validation", knownvalue.MapPartial(map[string]knownvalue.Check{
			"power": well, "management": well,
			"bios": well, "raid": well,
		})),
		is("data.metal_host.n", "boot_mode", text("uefi")), is("data.metal_host.n", "secure_boot", no),
		is("data.metal_host.n", "raid", null),
	}
	if recent {
		component := func(version, model knownvalue.Check) knownvalue.Check {
			return knownvalue.ObjectPartial(map[string]knownvalue.Check{
				"current_version": version, "initial_version": version,
				"model": model,
			})
		}
		neighbour := func(card, id, name, port knownvalue.Check) knownvalue.Check {
			return object(map[string]knownvalue.Check{
				"interface": card, "switch_id": id, "switch_name": name, "port_id": port,
				"port_description": null,
			})
		}
		checks = append(checks,
			is("data.metal_host.n", "firmware", knownvalue.MapPartial(map[string]knownvalue.Check{
				"bios": component(text("1.00"), null), "bmc": component(knownvalue.NotNull(), text("R1")),
				"nic:SN1-NIC": component(knownvalue.NotNull(), text("Contoso NIC")),
			})),
			is("data.metal_host.n", "neighbors", mapOf(map[string]knownvalue.Check{
				s.MAC(1): neighbour(text("1"), text("52:54:00:ee:00:01"), text("leaf-1"), text("Eth1")),
				"NIC.9":  neighbour(null, text("52:54:00:ee:00:02"), null, text("Ethernet1/9")),
			})),
		)
	} else {
		checks = append(checks, is("data.metal_host.n", "inventory", null))
	}
	test(t, s.Provider()+including(s, "n", "n", parts...), "", checks...)
}
