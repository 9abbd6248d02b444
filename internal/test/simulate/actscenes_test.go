package simulate_test

import (
	"net/http"
	"slices"
	"strings"
)

// cleaned is a manageable machine whose disks Ironic can erase.
func cleaned() configuration {
	return free(object{"hardware_interfaces": object{"deploy": "direct", "rescue": "agent"}})
}

// factoryReset is the one step that machines run for an action.
func factoryReset() []any {
	return []any{
		object{"interface": "bios", "step": "apply_configuration", "args": `{"settings": [{"name": "BootMode", "value": "Bios"}]}`},
	}
}

// held lets another client stop a cleaning of machine a with a step that holds it.
func held(s *site) {
	s.fake.Set("a", "provision_state", "clean hold")
	s.fake.Set("a", "target_provision_state", "manageable")
}

// actionScenes are steps in which a user invokes an action.
func actionScenes() (all []scene) {
	with := func(settings object) object {
		settings["node_id"], settings["timeouts"] = "a", object{"invoke": "30m"}
		return settings
	}
	runbook := one("metal_runbook.a", object{
		"name": "CUSTOM_1", "disable_ramdisk": true, "steps": []any{object{"interface": "bios", "step": "factory_reset"}},
	})
	traits := object{"traits": []any{"CUSTOM_1"}}
	for _, is := range []struct {
		action   string
		in       configuration
		settings object
		before   func(*site)
	}{
		{"power", free(object{}), object{"action": "on"}, nil},
		{"power", installed("v1"), object{"action": "off"}, nil},
		{"power", installed("v1"), object{"action": "reboot"}, nil},
		{"power", installed("v1"), object{"action": "soft_off"}, nil},
		{"power", installed("v1"), object{"action": "soft_reboot"}, nil},
		{"clean", cleaned(), object{"steps": factoryReset(), "erase": true, "disable_ramdisk": true}, nil},
		{"clean", cleaned().more("metal_host.a", traits).plus(runbook), object{"runbook": "CUSTOM_1"}, nil},
		{"service", installed("v1"), object{"steps": factoryReset(), "disable_ramdisk": true}, nil},
		{"service", installed("v1").more("metal_host.a", traits).plus(runbook), object{"runbook": "CUSTOM_1"}, nil},
		{"inspect", cleaned(), object{}, nil},
		{"abort", cleaned(), object{}, held},
		{"unhold", cleaned(), object{}, held},
		{"nmi", installed("v1"), object{}, nil},
		{"virtual_media", installed("v1"), object{"device": "cdrom", "image_url": "http://images.test/tools.iso"}, nil},
	} {
		name := "action " + is.action
		for _, setting := range []string{"action", "runbook"} {
			if text, _ := is.settings[setting].(string); text != "" {
				name += " " + text
			}
		}
		all = append(all, scene{
			name: name, from: []configuration{is.in}, to: is.in, before: is.before, act: invoke("metal_"+is.action, with(is.settings)),
		})
	}
	return all
}

// commandScenes are steps in which an operator runs a command of the program metal.
func commandScenes() (all []scene) {
	reserved := installed("v1")
	delete(reserved, "metal_deployment.a")
	reserved["metal_allocation.a"] = object{
		"name": "a", "resource_class": "baremetal", "candidate_nodes": []any{reference{"metal_host.a", "id"}},
	}
	for _, is := range []struct {
		line   string
		in     configuration
		before func(*site)
	}{
		{"power on a", free(object{}), nil},
		{"power off a", installed("v1"), nil},
		{"power off a --soft", installed("v1"), nil},
		{"power reboot a", installed("v1"), nil},
		{"undeploy a", installed("v1"), nil},
		{"rescue a --password-file -", installed("v1"), nil},
		{"inspect a", cleaned(), nil},
		{"qualify a --steps deploy.burnin_cpu", cleaned().more("metal_host.a", object{"retired": true}), nil}, // else a failure retires it
		{"manage a", cleaned().more("metal_host.a", object{"target_state": "available"}), nil},
		{"provide a", cleaned(), nil},
		{"clean a --erase --steps bios.factory_reset", cleaned(), nil},
		{"service a --steps bios.factory_reset", installed("v1"), nil},
		{"abort a", cleaned(), held},
		{"unhold a", cleaned(), held},
		{"nmi a", installed("v1"), nil},
		{"virtual-media attach a --image-url http://images.test/tools.iso", installed("v1"), nil},
		{"virtual-media detach a", installed("v1"), nil},
		{"boot-device set pxe a", installed("v1"), nil},
		{"indicator a blink", installed("v1"), nil},
		{"maintenance on a", installed("v1"), nil},
		{"maintenance off a", installed("v1"), func(s *site) { s.fake.Set("a", "maintenance", true) }},
		{"retire a", cleaned(), nil},
		{"ready a", installed("v1"), func(s *site) {
			_, _, _ = s.send(http.MethodPatch, "nodes/a", []object{{
				"op": "add", "path": "/extra/terraform_metal_turn", "value": object{"group": "databases", "run": "killed"},
			}})
		}},
		{"unretire a", cleaned(), func(s *site) { s.fake.Set("a", "retired", true) }},
		{"delete a", cleaned(), nil},
		{"release a", reserved, nil},
		{"console a", consoled(object{}), nil},
		{"freeze --reason night --until 20s", cleaned(), nil},
		{"thaw", cleaned(), nil},
		{"unrescue a", installed("v1"), func(s *site) { s.fake.Set("a", "provision_state", "rescue") }},
	} {
		args := append(strings.Fields(is.line), "--yes", "--yes-erase", "a")
		if name, _, _ := strings.Cut(is.line, " "); slices.Contains([]string{"console", "freeze", "indicator", "thaw"}, name) {
			args = strings.Fields(is.line)
		}
		all = append(all, scene{
			name: "metal " + is.line, from: []configuration{is.in}, to: is.in, before: is.before, act: command(args...),
		})
	}
	return all
}
