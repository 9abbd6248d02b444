package simulate_test

import (
	"fmt"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/seed"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
)

// one configures one thing.
func one(address string, settings object) configuration { return configuration{address: settings} }

// more adds settings to a configuration.
func (c configuration) more(address string, settings object) configuration {
	for name, value := range settings {
		c[address][name] = value
	}
	return c
}

// free is a manageable machine with a BMC.
func free(settings object) configuration {
	return one("metal_host.a", bmcHost("a")).more("metal_host.a", object{"target_state": "manageable"}).more("metal_host.a", settings)
}

// hostDetails are settings of a host that change in its record only.
func hostDetails(n string) object {
	network := `{"links": [{"id": "eth` + n + `", "type": "phy", "ethernet_mac_address": "52:54:00:aa:bb:01"}],
		"networks": [], "services": []}`
	return object{
		"description": "number " + n, "owner": "alice" + n, "lessee": "bob" + n, "shard": "s" + n, "conductor_group": "rack" + n,
		"extra":      object{"rack": n},
		"properties": object{"cpus": n, "cpu_arch": "x86_64"}, "capabilities": object{"tier": n},
		"root_device": object{"serial": "disk" + n}, "skip_block_devices": []any{object{"serial": "data" + n}},
		"driver_info": object{"deploy_kernel": "http://images.test/kernel" + n}, "driver_info_wo": object{"snmp_password": secret},
		"driver_info_wo_version": n,
		"network_data":           network, "traits": []any{"CUSTOM_" + n}, "automated_clean": n == "1", "disable_power_off": n == "1",
		"cleaning_runbook": "wipe" + n,
		"resource_class":   "class" + n, "on_failure": "warn", "power_off_mode": "graceful", "hardware_drift": "warn",
		"inspect_triggers": object{"n": "1"},
		"timeouts":         object{"create": "50m", "update": "5" + n + "m", "delete": "50m"},
		"bmc": object{
			"address": "redfish-virtualmedia://bmc-a.test/redfish/v1/Systems/1", "username": "user" + n, "password": "stored" + n,
			"verify_ca": n == "1",
		},
	}
}

// portDetails are settings of ports and port groups.
func portDetails(n string) object {
	return object{
		"ports": object{
			macOf("a", 0): object{
				"category": "fast" + n, "description": "port " + n, "extra_json": `{"slot": "` + n + `"}`, "name": "eth" + n,
				"physical_network": "physnet" + n,
				"port_group":       "bond" + n, "pxe_enabled": n == "1", "vendor": "acme" + n,
				"local_link_connection": object{"switch_id": "0a:1b:2c:3d:4e:0" + n, "port_id": "Ethernet" + n, "switch_info": "leaf" + n},
			},
			macOf("a", 1): object{"is_smartnic": n == "1", "local_link_connection": object{"hostname": "nic" + n, "port_id": "rep" + n}},
		},
		"port_groups": object{"bond" + n: object{
			"category": "fast" + n, "extra_json": `{"n":"` + n + `"}`, "mac": "52:54:00:00:99:0" + n, "mode": "802.3ad",
			"physical_network": "physnet" + n,
			"properties":       object{"miimon": "10" + n}, "standalone_ports": n == "1",
		}},
	}
}

// allInterfaces are the interfaces of a host.
func allInterfaces(deploy, boot string) object {
	all := object{"deploy": deploy, "boot": boot}
	for kind, value := range map[string]string{
		"bios": "no-bios", "console": "no-console", "firmware": "no-firmware", "inspect": "agent", "management": "redfish",
		"network": "noop", "power": "redfish",
		"raid": "no-raid", "rescue": "no-rescue", "storage": "noop", "vendor": "no-vendor",
	} {
		all[kind] = value
	}
	return all
}

// volumes are a configuration of RAID volumes.
func volumes(name string) object {
	return object{"delete_existing": true, "volumes": []any{
		object{
			"level": "1", "size_gb": "100", "name": name, "root": true, "number_of_physical_disks": 2, "disk_type": "ssd",
			"interface_type": "sas", "share_physical_disks": true,
		},
		object{"level": "0", "size_gb": "MAX", "controller": "RAID.1", "physical_disks": []any{"Disk.3", "Disk.4"}},
	}}
}

// serveRacks lets the conductor serve two groups.
func serveRacks(s *site) {
	for i, group := range []string{"rack1", "rack2"} {
		s.fake.AddSeed(&seed.Seed{Nodes: []object{{
			"uuid": fmt.Sprintf("00000000-0000-4000-8000-0000000000f%d", i), "name": "spare-" + group, "driver": "fake-hardware",
			"resource_class":  fleetClass,
			"conductor_group": group, "provision_state": "available",
		}}})
	}
}

// wipes are two runbooks for automated cleaning.
func wipes() configuration {
	steps := []any{object{"interface": "deploy", "step": "erase_devices"}}
	return configuration{
		"metal_runbook.w1": {"name": "wipe1", "traits": []any{"CUSTOM_1"}, "steps": steps},
		"metal_runbook.w2": {"name": "wipe2", "traits": []any{"CUSTOM_2"}, "steps": steps},
	}
}

// consoled is a manageable machine with a console.
func consoled(settings object) configuration {
	return free(object{
		"bmc": bmcAt("ipmi", "a"), "hardware_interfaces": object{"console": "ipmitool-socat"},
		"driver_info": object{"ipmi_terminal_port": "9001"},
	}).more("metal_host.a", settings)
}

// pair are two manageable hosts. The second has further settings.
func pair(settings object) configuration {
	second := bmcHost("b")
	second["target_state"] = "manageable"
	return free(object{}).plus(one("metal_host.b", second)).more("metal_host.b", settings)
}

// cards is a manageable machine with a RAID controller and firmware that Ironic updates.
func cards(settings object) configuration {
	return free(object{
		"hardware_interfaces": object{"raid": "redfish", "firmware": "redfish", "deploy": "ramdisk"},
	}).more("metal_host.a", settings)
}

// firmware is an image for the BMC.
func firmware() object {
	return object{"bmc": object{"url": "http://images.test/2.0.bin", "version": "2.0"}}
}

// secured is a host whose firmware starts only signed code; nil: the host says nothing about that.
func secured(is any) configuration { return free(object{"boot_mode": "uefi", "secure_boot": is}) }

// retired is a host that is retired, or no longer.
func retired(is bool) configuration {
	config := free(object{"target_state": "available", "retired": is})
	if is {
		config["metal_host.a"]["retired_reason"] = "old"
	}
	return config
}

// replaced is a deployment that a new image replaces.
func replaced(image string) configuration {
	return with(installed(image), "metal_deployment.a", "on_change", "replace")
}

// hostScenes are steps in the lives of hosts with all their settings.
func hostScenes() []scene {
	return []scene{
		{name: "details of a new host", from: []configuration{wipes()}, to: free(hostDetails("1")).plus(wipes()), prepare: serveRacks},
		{
			name: "details of a host", from: []configuration{wipes(), free(hostDetails("1")).plus(wipes())},
			to: free(hostDetails("2")).plus(wipes()), prepare: serveRacks,
		},
		{name: "details of its ports", from: []configuration{free(portDetails("1"))}, to: free(portDetails("2"))},
		{
			name: "interfaces", from: []configuration{free(object{})},
			to: free(object{"hardware_interfaces": allInterfaces("direct", "redfish-virtual-media")}),
		},
		{
			name: "RAID", from: []configuration{cards(object{})},
			to: cards(object{"raid": volumes("v1"), "hardware_changes": object{"disable_ramdisk": true}}),
		},
		{name: "firmware", from: []configuration{cards(object{})}, to: cards(object{"firmware": firmware()})},
		{name: "secure boot", from: []configuration{secured(nil)}, to: secured(true)},
		{name: "console", from: []configuration{consoled(object{})}, to: consoled(object{"console": "enabled"})},
		{name: "inspect a new host", to: free(object{"inspect": true})},
		{name: "retire", from: []configuration{free(object{"target_state": "available"})}, to: retired(true)},
		{name: "end a retirement", from: []configuration{retired(true)}, to: retired(false)},
		{
			name: "reason of a maintenance", from: []configuration{free(object{})},
			to: free(object{"maintenance": true, "maintenance_reason": "fan"}),
		},
		{
			name: "host of an agent", to: one("metal_host.a", object{"name": "a", "power_control": "agent", "target_state": "enroll"}),
			prepare: func(s *site) { s.fake.FastTrack = true },
		},
		{name: "part of a host", from: []configuration{pair(object{})}, to: pair(object{"parent_node": reference{"metal_host.a", "id"}})},
		{
			name: "replace a machine", from: []configuration{installed("v1")},
			to: with(installed("v1"), "metal_host.a", "replaced", object{"part": "machine", "on": "1"}),
		},
		{
			name: "replace a mainboard", from: []configuration{installed("v1")},
			to: with(installed("v1"), "metal_host.a", "replaced", object{"part": "mainboard", "on": "1"}),
		},
		{name: "forget a host", from: []configuration{free(object{"on_destroy": "forget"})}, to: configuration{}},
	}
}

// deploymentDetails are settings of a deployment.
func deploymentDetails(n string) configuration {
	config := installed("v" + n)
	config["metal_host.a"]["traits"] = []any{"CUSTOM_1", "CUSTOM_2"}
	return config.more("metal_deployment.a", object{
		"image": object{
			"url": "http://images.test/v" + n, "checksum": acctest.Checksum(n), "disk_format": "raw", "type": "partition",
			"kernel":  "http://images.test/kernel" + n,
			"ramdisk": "http://images.test/ramdisk" + n, "root_gb": 10, "swap_mb": 1024,
		},
		"config_drive": object{
			"hostname": "host" + n, "user_data": "#cloud-config " + n, "meta_data": `{"n":"` + n + `"}`,
			"vendor_data":  `{"v": "` + n + `"}`,
			"network_data": `{"links": [], "networks": [], "services": []}`,
		},
		"deploy_steps": []any{
			object{
				"interface": "bios", "step": "apply_configuration", "priority": 90,
				"args": `{"settings": [{"name": "BootMode", "value": "Bios"}]}`,
			},
		},
		"capabilities":  object{"boot_mode": "uefi"},
		"traits":        []any{"CUSTOM_" + n},
		"root_device":   object{"serial": "disk" + n},
		"instance_info": object{"key": n}, "instance_name": "web" + n, "max_attempts": 1 + len(n), "on_change": "rebuild",
		"on_destroy": "undeploy",
		"timeouts":   object{"create": "50m", "update": "50m", "delete": "5" + n + "m"},
	})
}

// driven is a deployment with a config drive.
func driven(drive object) configuration {
	return installed("v1").more("metal_deployment.a", object{"config_drive": drive})
}

// isoDetails are settings of a live ISO.
func isoDetails(n string) configuration {
	return booted("v"+n, "n"+n).more("metal_deployment.a", object{"live_iso": object{
		"url": "http://images.test/v" + n + ".iso", "host_content": object{"network": "n" + n},
		"shared_content": object{"proxy": "p" + n}, "contains": object{"network": "n" + n, "proxy": "p" + n},
		"quiet_period": "1s", "built_at": "1999-01-0" + n + "T00:00:00Z", "installing": n == "1", "registered": n == "1",
		"reboot_policy": "affected", "version": "v" + n,
	}})
}

// deploymentScenes are steps in the lives of deployments with all their settings.
func deploymentScenes() []scene {
	pulled := func(n string) configuration {
		return installed("v1").more("metal_deployment.a", object{
			"image": object{
				"url": "oci://images.test/v" + n + ":1", "checksum": acctest.Checksum(n), "pull_secret_wo": secret, "pull_secret_wo_version": n,
			},
		})
	}
	triggered := func(n string) configuration {
		return installed("v1").more("metal_deployment.a", object{
			"rebuild_triggers": object{"n": n}, "ready_check": readyCheck(flapper, "a"),
		})
	}
	answering := func(n string) configuration {
		check := object{
			"http":    object{"url": "http://prompt.a" + webHost + "/health", "contains": "ready", "status_codes": []any{200}},
			"timeout": "10m",
		}
		return installed("v"+n).more("metal_deployment.a", object{"ready_check": check})
	}
	kept := installed("v1").more("metal_deployment.a", object{"on_destroy": "forget"})
	bare := installed("v1")
	delete(bare, "metal_deployment.a")
	return []scene{
		{name: "details of a deployment", from: []configuration{deploymentDetails("1")}, to: deploymentDetails("2")},
		{name: "details of a first deployment", to: deploymentDetails("1")},
		{
			name: "drive of a URL", from: []configuration{driven(object{"content_base64": "H4sIAAAAAAAAAwMAAAAAAAAAAAA="})},
			to: driven(object{"url": "http://images.test/drive"}),
		},
		{
			name: "drive with a secret", from: []configuration{driven(object{"user_data_wo": userSecret, "user_data_wo_version": "1"})},
			to: driven(object{"user_data_wo": userSecret, "user_data_wo_version": "2"}),
		},
		{
			name: "drive with secret meta data",
			from: []configuration{driven(object{"meta_data_wo": `{"admin_pass":"` + userSecret + `"}`, "meta_data_wo_version": "1"})},
			to:   driven(object{"meta_data_wo": `{"admin_pass":"` + userSecret + `"}`, "meta_data_wo_version": "2"}),
		},
		{name: "rebuild again", from: []configuration{triggered("1")}, to: triggered("2")},
		{name: "image of a registry", from: []configuration{pulled("1")}, to: pulled("2")},
		{name: "details of a live ISO", from: []configuration{isoDetails("1")}, to: isoDetails("2")},
		{name: "machine that answers over HTTP", from: []configuration{answering("1")}, to: answering("2")},
		{name: "deploy or quarantine", to: quarantined(), prepare: stock},
		{name: "forget a deployment", from: []configuration{kept}, to: bare},
		{name: "replace", from: []configuration{replaced("v1")}, to: replaced("v2")},
		{
			name: "VIF of a port", from: []configuration{with(connected("1"), "metal_deployment.a", "power_state", "on")},
			to: with(connected("1"), "metal_deployment.a", "vifs", []any{object{"id": vifOf(1)["id"], "mac": mac}}),
		},
		{name: "restart after a service", from: []configuration{inGroup("Bios", "v1")}, to: inGroup("Uefi", "v2")},
	}
}

// stock adds free machines.
func stock(s *site) { s.fake.AddFleet(groupNodes, fleetClass) }

// quarantined is a deployment that tries another machine if one fails.
func quarantined() configuration {
	return configuration{
		"metal_allocation.a": {"name": "a", "resource_class": fleetClass},
		"metal_deployment.a": {
			"node_id": reference{"metal_allocation.a", "node_id"}, "allocation_id": reference{"metal_allocation.a", "id"},
			"on_failure": "quarantine", "max_nodes": 2,
			"image": imageAt("http://images.test/v1"),
		},
	}
}

// inGroup is a machine of a rollout group that is serviced and rebuilt.
func inGroup(mode, image string) configuration {
	order := object{"group": "databases", "max_unavailable": 1, "pause": "5s", "canary": 1, "max_failures": 2}
	config := installed(image).more("metal_deployment.a", object{
		"rollout": order, "ready_check": readyCheck(prompt, "a"), "on_failure": "keep",
	})
	return config.more("metal_host.a", object{
		"bios_settings": object{"BootMode": mode}, "hardware_changes": object{"on_active": "service", "rollout": cloned(order)},
	})
}

// needs are what allocations ask of a machine.
func needs() object {
	return object{
		"cabling": false, "hardware_as_expected": false, "capabilities": object{"tier": "1"}, "conductor_group": "rack1",
		"cpu_arch": "x86_64", "exclude": []any{"c"},
		"min_cpus": 1, "min_disk_gb": 1, "min_memory_mb": 1,
	}
}

// delivered is a new machine that enters the pool only with its memory, and what else a lock file has.
func delivered(memory int, settings object) configuration {
	return one("metal_host.a", bmcHost("a")).more("metal_host.a", object{
		"inspect": true, "expect_hardware": object{
			"memory_mb": memory, "cpus": 32, "disks": []any{object{"count": 1, "type": "ssd"}}, "bios": object{"BootMode": "Bios"},
			"firmware": object{"bios": "1.0"},
		},
	}).more("metal_host.a", settings)
}

// qualified is a host whose machine is burned in before it enters the pool.
func qualified(settings object) configuration {
	config := one("metal_host.a", bmcHost("a")).more("metal_host.a", object{
		"hardware_interfaces": object{"deploy": "direct"}, "qualification": object{
			"steps":      []any{object{"interface": "deploy", "step": "burnin_cpu", "args": "{}"}, object{"interface": "deploy", "step": "burnin_disk"}},
			"parameters": `{"agent_burnin_cpu_timeout":60}`, "valid_for": "1d", "on_failure": "retry", "timeout": "12h",
		},
	})
	return config.more("metal_host.a", settings)
}

// equip lets the next inspection of a machine find a serial number and a memory.
func equip(s *site, serial string, memory float64) {
	inventory, _ := fakeironic.SampleInventory(1)["inventory"].(object)
	inventory["memory"] = object{"physical_mb": memory}
	inventory["system_vendor"].(object)["serial_number"] = serial
	s.fake.SetInventory("a", inventory, nil)
}

// stocked are free hosts that meet the needs.
func stocked() configuration {
	config := configuration{}
	for _, name := range []string{"a", "b", "c"} {
		config["metal_host."+name] = bmcHost(name)
		config.more("metal_host."+name, object{
			"properties":      object{"cpus": "4", "memory_mb": "4096", "local_gb": "100", "cpu_arch": "x86_64"},
			"capabilities":    object{"tier": "1"},
			"conductor_group": "rack1", "traits": []any{"CUSTOM_1"}, "owner": "alice", "extra": object{"rack": "r" + name},
		})
	}
	return config
}

// plus is a configuration with more resources.
func (c configuration) plus(more configuration) configuration {
	all := c.clone()
	for address, settings := range more {
		all[address] = settings
	}
	return all
}

// allocationScenes are steps in the lives of allocations.
func allocationScenes() []scene {
	hosts := []any{reference{"metal_host.a", "id"}, reference{"metal_host.b", "id"}}
	allocation := func(n string) configuration {
		return stocked().plus(one("metal_allocation.a", object{
			"name": "a" + n, "resource_class": "baremetal", "traits": []any{"CUSTOM_1"}, "candidate_nodes": hosts[:1], "owner": "alice",
			"extra": object{"n": n}, "require": needs(),
			"on_unusable": "replace", "wait_for_capacity": "1m", "timeouts": object{"create": "5m"},
		}))
	}
	group := func(size int) configuration {
		return stocked().plus(one("metal_allocation_group.a", object{
			"name": "g", "resource_class": "baremetal", "size": size, "traits": []any{"CUSTOM_1"}, "candidate_nodes": hosts,
			"owner": "alice", "require": needs(),
			"spread_by": "extra.rack", "max_per_domain": 1, "wait_for_capacity": "1m", "timeouts": object{"create": "5m", "update": "5m"},
			"replace_members": object{"g-0": "1"},
		}))
	}
	busy := func(s *site) {
		stock(s)
		s.fake.Set("node-000", "provision_state", "active")
	}
	inventory := func(kind string) configuration {
		host, address := bmcHost("a"), kind+".a"
		host["inspect"] = true
		config := one("metal_host.a", host).plus(one(address, object{
			"name": "a", "resource_class": "baremetal", "candidate_nodes": []any{reference{"metal_host.a", "id"}},
			"wait_for_capacity": "5m",
			"require":           object{"disk_type": "ssd", "manufacturer": ".", "product": ".", "min_nic_mbps": 1000},
		}))
		if kind == "metal_allocation_group" {
			config[address]["size"] = 1
		}
		return config
	}
	fit := func(kind string, settings object) scene {
		settings["resource_class"], settings["require"] = "baremetal", object{"qualified_within": "90d"}
		return scene{
			name: kind + " of what is qualified", from: []configuration{stocked()}, to: stocked().plus(one(kind+".a", settings)),
			prepare: serveRacks, before: func(s *site) { qualify(s, "b", passed()) },
		}
	}
	return []scene{
		fit("metal_allocation", object{"name": "a"}), fit("metal_allocation_group", object{"name": "g", "size": 1}),
		{name: "allocate what was inspected", to: inventory("metal_allocation")},
		{name: "group of what was inspected", to: inventory("metal_allocation_group")},
		{
			name: "allocate a node that is busy", to: one("metal_allocation.a", object{"name": "a", "backfill_node": "node-000"}),
			prepare: busy,
		},
		{name: "details of an allocation", from: []configuration{stocked()}, to: allocation("1"), prepare: serveRacks},
		{name: "rename an allocation", from: []configuration{allocation("1")}, to: allocation("2"), prepare: serveRacks},
		{name: "details of a group", from: []configuration{group(1)}, to: group(2), prepare: serveRacks},
	}
}

// procedureScenes are steps in the lives of deploy templates, runbooks and inspection rules.
func procedureScenes() []scene {
	procedures := func(n string) configuration {
		return configuration{
			"metal_deploy_template.a": {
				"name":  "CUSTOM_A",
				"steps": []any{object{"interface": "bios", "step": "factory_reset", "priority": 90, "args": `{"n":"` + n + `"}`}},
			},
			"metal_runbook.a": {
				"name": "CUSTOM_B", "description": "number " + n, "public": n == "1", "disable_ramdisk": n == "1",
				"traits": []any{"CUSTOM_" + n},
				"steps":  []any{object{"interface": "bios", "step": "factory_reset", "args": `{"n":"` + n + `"}`}},
			},
			"metal_inspection_rule.a": {
				"description": "rule " + n, "phase": "main", "priority": 10, "sensitive": false,
				"conditions": []any{
					object{"op": "eq", "args": `{"values": ["{item}", "` + n + `"]}`, "loop": `["1", "2"]`, "multiple": "any"},
				},
				"actions": []any{
					object{"op": "set-attribute", "args": `{"path": "/extra/{item}", "value": "` + n + `"}`, "loop": `["x", "y"]`},
				},
			},
		}
	}
	return []scene{
		{name: "create procedures", to: procedures("1")},
		{name: "change procedures", from: []configuration{procedures("1")}, to: procedures("2")},
		{name: "remove procedures", from: []configuration{procedures("1")}, to: configuration{}},
	}
}
