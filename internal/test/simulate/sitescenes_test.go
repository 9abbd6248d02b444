package simulate_test

import (
	"net/http"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// siteScenes are steps with settings of the provider block, discovered machines, and machines that fail.
func siteScenes() []scene {
	block := object{
		"auth_type": "http_basic", "username": "metal", "password": secret, "api_timeout": "1m", "request_timeout": "50s",
		"microversion": "1.95", "on_change": "replace",
		"rollout": object{"canary": 1, "max_failures": 2},
		"provisioning_limit": object{
			"max_concurrent": 2, "scope": "all", "coordination": "ironic", "stuck_after": "30m",
			"exempt_boot_interfaces": []any{"*virtual-media"},
		},
	}
	login := func(s *site) { s.fake.Username, s.fake.Password = "metal", secret }
	discovers := func(s *site) {
		s.fake.Discovery, s.fake.DefaultResourceClass = true, "discovered"
		s.fake.Discover(fakeironic.SampleInventory(1))
		s.fake.Discover(fakeironic.SampleInventory(2))
		<-time.After(10 * time.Minute) // until Ironic has inspected them
	}
	discovery := func(max int) configuration {
		return one("metal_discovery_import.a", object{
			"name": "rack", "name_template": object{"prefix": "r-", "hardware_details": "serial-number"}, "name_style": "dns",
			"filter":            object{"min_cpus": "1"},
			"discovered_before": "2030-01-01T00:00:00Z", "max_hosts": max, "on_collision": "append-mac", "exclude": []any{"SN-9"},
			"include": []any{"RK000001", "RK000002"}, "names": object{"SN-8": "eight"},
		})
	}
	drift := free(object{"bios_settings": object{"BootMode": "Uefi"}})
	return []scene{
		{
			name: "another image on a site with a login", from: []configuration{installed("v1")}, to: installed("v2"), block: block,
			prepare: login,
		},
		{name: "discover", to: discovery(2), prepare: discovers},
		{name: "discover more", from: []configuration{discovery(1)}, to: discovery(2), prepare: discovers},
		{name: "list what is discovered", to: one("data.metal_discovered_hosts.a", object{
			"name_template": object{"prefix": "r-", "hardware_details": "serial-number"}, "name_style": "dns",
			"filter": object{"min_cpus": "1"},
		}), prepare: discovers},
		{
			name: "lost BIOS settings", from: []configuration{drift}, to: drift, block: object{"hardware_drift": "plan"},
			before: func(s *site) { s.fake.ResetBIOS("a") },
		},
		{name: "a machine without a DIMM", to: delivered(147456, object{})},
		{
			name: "a DIMM that was put in", from: []configuration{delivered(147456, object{})},
			to:     delivered(147456, object{"inspect_triggers": object{"n": "1"}}),
			before: func(s *site) { equip(s, "SN1", 147456) },
		},
		{
			name: "another machine without a DIMM", from: []configuration{delivered(131072, object{})},
			to:     delivered(131072, object{"replaced": object{"part": "machine", "on": "1"}}),
			before: func(s *site) { equip(s, "SN2", 114688) },
		},
		{name: "a machine is burned in", to: qualified(object{})},
		{
			name: "a machine is burned in by a runbook", to: one("metal_runbook.a", object{
				"name": "CUSTOM_1", "traits": []any{"CUSTOM_1"}, "steps": []any{object{"interface": "deploy", "step": "burnin_cpu"}},
			}).plus(qualified(object{
				"traits": []any{"CUSTOM_1"}, "qualification": object{"runbook": reference{"metal_runbook.a", "name"}, "on_failure": "retry"},
			})),
		},
		{
			name: "a qualification lapses", from: []configuration{qualified(object{})}, to: qualified(object{}),
			before: func(*site) { <-time.After(25 * time.Hour) },
		},
		{
			name: "a qualified machine is replaced", from: []configuration{qualified(object{})},
			to: qualified(object{"replaced": object{"part": "machine", "on": "1"}}),
		},
		{
			name: "lost record", from: []configuration{drift}, to: drift, block: object{"lost_records": "refuse"}, detail: true,
			before: func(s *site) { _, _, _ = s.send(http.MethodDelete, "nodes/a", nil) }, // the plan shows whether it is gone
		},
		{
			name: "restore a lost record", from: []configuration{installed("v1")}, to: installed("v1"),
			block: object{"lost_records": "restore"}, detail: true,
			before: func(s *site) {
				s.fake.Set("a", "maintenance", true)
				_, _, _ = s.send(http.MethodDelete, "nodes/a", nil)
			},
		},
	}
}
