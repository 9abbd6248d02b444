package simulate_test

import (
	"context"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	ctymsgpack "github.com/zclconf/go-cty/cty/msgpack"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// call calls a function of the provider.
func call(name string, argument cty.Value) act {
	return func(w *workspace, p *process) error {
		w.site.played.add(functionPrefix + name)
		text, err := ctymsgpack.Marshal(argument, argument.Type())
		if !argument.Type().IsPrimitiveType() {
			text, err = ctymsgpack.Marshal(argument, cty.DynamicPseudoType)
		}
		if err != nil {
			return err
		}
		resp, err := rpc(p, func(ctx context.Context, req *tfprotov6.CallFunctionRequest) (*tfprotov6.CallFunctionResponse, error) {
			return p.server.CallFunction(ctx, req)
		}, &tfprotov6.CallFunctionRequest{Name: name, Arguments: []*tfprotov6.DynamicValue{{MsgPack: text}}})
		if err == nil && resp.Error != nil {
			w.site.broken("the function %s: %s", name, resp.Error.Text)
		}
		return err
	}
}

// inTurn does several things, up to the first that fails.
func inTurn(all ...act) act {
	return func(w *workspace, p *process) error {
		for _, one := range all {
			if err := one(w, p); err != nil {
				return err
			}
		}
		return nil
	}
}

// whatever does something that may fail: a command that looks for what is wrong fails if it finds something.
func whatever(do act) act {
	return func(w *workspace, p *process) error {
		_ = do(w, p)
		return nil
	}
}

// hears lets all network cards hear their switch.
func hears(s *site) {
	serveRacks(s)
	s.fake.ParsesLLDP = true
	s.fake.LLDP = func(mac string) []any {
		return fakeironic.Announcement("52:54:00:ee:00:01", "leaf-1", "Ethernet"+mac[len(mac)-1:])
	}
}

// equipped is a machine that has all that can be read, with an image on it.
func equipped() configuration {
	config := installed("v1").more("metal_host.a", hostDetails("1"))
	delete(config["metal_host.a"], "cleaning_runbook")
	config.more("metal_host.a", object{
		"inspect": true, "boot_mode": "uefi", "secure_boot": true, "bios_settings": object{"BootMode": "Uefi"},
		"raid":     volumes("v1"),
		"firmware": object{"bmc": object{"url": "http://images.test/2.0.bin", "version": "2.0"}},
		"hardware_interfaces": object{
			"deploy": "direct", "rescue": "agent", "raid": "redfish", "firmware": "redfish", "console": "redfish-graphical",
			"inspect": "agent",
		},
	})
	config["metal_host.a"]["ports"].(object)[macOf("a", 0)] = object{
		"expect_neighbor": object{"switch": "leaf-1", "port": "Ethernet" + macOf("a", 0)[16:]},
	}
	config["metal_allocation.a"] = object{
		"name": "a", "resource_class": "class1", "candidate_nodes": []any{reference{"metal_host.a", "id"}}, "owner": "alice1",
		"traits": []any{"CUSTOM_1"}, "extra": object{"n": "1"},
	}
	return config.more("metal_deployment.a", object{
		"node_id": reference{"metal_allocation.a", "node_id"}, "allocation_id": reference{"metal_allocation.a", "id"}, "protected": true,
		"instance_name": "web",
	})
}

// breaks lets a machine of the site fail, and Ironic find no node for an allocation of another client.
func breaks(s *site) {
	broken := object{
		"fault": "power failure", "last_error": "IPMI call failed: power status.", "maintenance": true,
		"maintenance_reason": "The BMC does not answer.",
	}
	for field, value := range broken {
		s.fake.Set("spare-rack1", field, value)
	}
	_, _, _ = s.send("POST", "allocations", object{"name": "bad", "resource_class": "none"})
	qualify(s, "spare-rack1", object{"failed": time.Now(), "words": "a bad disk", "runbook": "burn-in"})
	qualify(s, "a", passed())
}

// qualify notes a qualification on a node.
func qualify(s *site, node string, note object) {
	_, _, _ = s.send("PATCH", "nodes/"+node, []object{{"op": "add", "path": "/extra/" + notes.KeyQualification, "value": note}})
}

// passed is the note of a machine that has just passed its qualification, and was never inspected.
func passed() object {
	return object{"passed": time.Now(), "serial": "S1", "steps": []any{object{"interface": "deploy", "step": "burnin_cpu"}}}
}

// selected are the settings by which lists select the machine.
func selected() object {
	return object{
		"conductor_group": "rack1", "description_contains": "number", "driver": "redfish", "lessee": "bob1", "maintenance": false,
		"name_regex": "^a$", "owner": "alice1",
		"project": "alice1", "provision_state": "active", "resource_class": "class1", "retired": false, "shard": "s1",
	}
}

// readScenes are steps that change nothing.
func readScenes() []scene {
	parts := []any{"inventory", "neighbors", "bios_settings", "firmware", "validation", "console", "cleaning_history"}
	iso := object{
		"url": "http://images.test/v1.iso", "built_at": "1999-01-01T00:00:00Z", "contains": object{"network": "n1", "proxy": "p1"},
		"host_content": object{"network": "n1"}, "installing": false,
		"quiet_period": "0s", "reboot_policy": "affected", "registered": true, "shared_content": object{"proxy": "p1"}, "version": "1",
	}
	all := equipped().plus(configuration{
		"data.metal_host.name": {"name": "a", "include": parts}, "data.metal_host.id": {"id": reference{"metal_host.a", "id"}},
		"data.metal_host.mac":      {"mac": macOf("a", 0)},
		"data.metal_host.bmc":      {"bmc_address": "bmc-a.test"},
		"data.metal_host.instance": {"instance_id": reference{"metal_deployment.a", "instance_id"}},
		"data.metal_hosts.some":    selected(), "data.metal_hosts.all": {"associated": true},
		"data.metal_allocation.id": {"id": reference{"metal_allocation.a", "id"}}, "data.metal_allocation.name": {"name": "a"},
		"data.metal_allocation.node":  {"node": "a"},
		"data.metal_allocations.some": {"node": "a", "owner": "alice1", "resource_class": "class1", "state": "active"},
		"data.metal_hosts.none":       {"fault": "power failure"},
		"data.metal_host.spare":       {"name": "spare-rack1", "include": parts},
		"data.metal_hosts.spare":      {"conductor_group": "rack1", "fault": "power failure"},
		"data.metal_allocation.bad":   {"name": "bad"}, "data.metal_allocations.bad": {"state": "error"},
		"data.metal_capacity.all":    {"qualified_within": "90d"},
		"data.metal_boot_status.all": {"live_iso": object{"a": iso}},
	})
	hosts := selected()
	hosts["associated"] = true
	var commands []act
	for _, line := range []string{
		"list nodes", "list allocations", "show a", "history a", "timeline a --output json", "validate a", "boot-device show a",
		"doctor", "watch --once",
		"lock a --lock-file /dev/null",
	} {
		commands = append(commands, whatever(command(strings.Fields(line)...)))
	}
	procedures := procedureScenes()[0].to
	none := object{"fault": "power failure"}
	console := consoled(object{"console": "enabled"})
	return []scene{
		{
			name: "data source of a console", from: []configuration{console},
			to: console.plus(one("data.metal_host.a", object{"name": "a", "include": []any{"console"}})),
		},
		{
			name: "data sources", from: []configuration{equipped()}, to: all, prepare: hears, before: breaks,
			block: object{"provisioning_limit": object{"max_concurrent": 3}},
		},
		{name: "lists", from: []configuration{equipped().plus(procedures)}, to: equipped().plus(procedures), prepare: hears, act: inTurn(
			list("metal_host", hosts, 1), list("metal_deployment", selected(), 1), list("metal_host", none, 0),
			list("metal_deployment", none, 0),
			list("metal_allocation", object{
				"name_regex": "^a", "node": "a", "owner": "alice1", "resource_class": "class1", "state": "active",
			}, 1),
			list("metal_deploy_template", object{"name_regex": "A$"}, 1), list("metal_runbook", object{"name_regex": "B$"}, 1),
			list("metal_inspection_rule", object{"name_regex": "."}, 1),
			list("metal_allocation_group", object{"name_regex": ".", "resource_class": "class1"}, 0),
			list("metal_discovery_import", object{"name_regex": "."}, 0), list("metal_oneview_profile", object{"name_regex": "."}, 0),
		)},
		{name: "functions", to: configuration{}, act: inTurn(
			call("bmc", cty.StringVal("redfish-virtualmedia://bmc-a.test/redfish/v1/Systems/1")),
			call("network_data", cty.ObjectVal(map[string]cty.Value{"interfaces": cty.ObjectVal(map[string]cty.Value{
				"nic0": cty.ObjectVal(map[string]cty.Value{"mac": cty.StringVal(mac), "dhcp4": cty.True}),
			})})),
		)},
		{name: "commands that read", from: []configuration{equipped()}, to: equipped(), prepare: hears, act: inTurn(commands...)},
	}
}
