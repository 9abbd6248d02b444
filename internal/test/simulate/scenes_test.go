package simulate_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
)

// scene is a step in a life, which is lived many times with different faults.
type scene struct {
	name   string
	from   []configuration // are applied before, one after the other
	to     configuration   // is applied while a fault occurs
	newest string          // the newest API version of Ironic; "": the newest

	detail  bool          // it is about details, and meets only some of the mishaps that others meet, too
	block   object        // the provider block
	prepare func(s *site) // prepares Ironic and the machines; nil: nothing
	before  func(s *site) // lets another client do something just before; nil: nothing
	act     act           // happens in place of the apply while a fault occurs; nil: the apply
}

// bmcHost is a host with a BMC of its own, which boots what it is told.
func bmcHost(name string) object {
	return object{
		"name": name, "resource_class": "baremetal", "target_state": "available", "bmc": bmcAt("redfish-virtualmedia", name),
		"hardware_interfaces": object{"deploy": "ramdisk", "rescue": "agent"}, "ports": object{macOf(name, 0): object{}},
	}
}

// bmcAt are the settings of the BMC of a machine, reached by a scheme.
func bmcAt(scheme, machine string) object {
	address := scheme + "://bmc-" + machine + ".test"
	if scheme != "ipmi" {
		address += "/redfish/v1/Systems/1"
	}
	return object{"address": address, "username": "root", "password_wo": secret, "password_wo_version": "1"}
}

// macOf is the MAC address of a card of a machine.
func macOf(machine string, card int) string {
	sum := 0
	for _, r := range machine {
		sum = (sum*31 + int(r)) & 0xffff
	}
	return fmt.Sprintf("52:54:02:%02x:%02x:%02x", sum>>8, sum&0xff, card)
}

// booted is a configuration of a machine that runs from a live ISO.
func booted(image, content string) configuration {
	return configuration{
		"metal_host.a": bmcHost("a"),
		"metal_deployment.a": {
			"node_id": reference{"metal_host.a", "id"},
			"live_iso": object{
				"url": "http://images.test/" + image + ".iso", "host_content": object{"network": content},
				"quiet_period": "0s",
			},
		},
	}
}

// installed is a configuration of a machine with a BMC on which an image is installed.
func installed(image string) configuration {
	host := bmcHost("a")
	host["hardware_interfaces"] = object{"deploy": "direct", "rescue": "agent"}
	return configuration{"metal_host.a": host, "metal_deployment.a": {
		"node_id": reference{"metal_host.a", "id"}, "image": imageAt("http://images.test/" + image),
	}}
}

// imageAt returns an image with the checksum of its own: images at other addresses have other content.
func imageAt(url string) object { return object{"url": url, "checksum": acctest.Checksum(url)} }

// scenes are the steps in lives.
func scenes() []scene {
	triggered := func(n string) configuration {
		return with(installed("v1"), "metal_deployment.a", "restart_triggers", object{"n": n})
	}
	gently := func(n string) configuration {
		return with(triggered(n), "metal_deployment.a", "power_off_mode", "graceful")
	}
	powered := func(state string) configuration {
		return with(installed("v1"), "metal_deployment.a", "power_state", state)
	}
	rescued := func(version int) configuration {
		return with(installed("v1"), "metal_deployment.a", "rescue",
			object{"password_wo": secret, "password_wo_version": strconv.Itoa(version)})
	}
	host := func(setting string, value any) configuration {
		return configuration{"metal_host.a": with(configuration{"a": bmcHost("a")}, "a", setting, value)["a"]}
	}
	serviced := with(installed("v1"), "metal_host.a", "bios_settings", object{"BootMode": "Bios"})
	serviced = with(serviced, "metal_host.a", "hardware_changes", object{"on_active": "service"})
	details := slices.Concat(
		hostScenes(), deploymentScenes(), allocationScenes(), procedureScenes(), actionScenes(), commandScenes(), readScenes(),
		siteScenes(), oneviewScenes(),
	)
	for i := range details {
		details[i].detail = true
	}
	return slices.Concat([]scene{
		{name: "create", to: oneOfEach("v1")},
		{name: "create with a BMC", to: installed("v1")},
		{name: "destroy", from: []configuration{installed("v1")}, to: configuration{}},
		{name: "destroy with an allocation", from: []configuration{oneOfEach("v1")}, to: configuration{}},
		{name: "rebuild", from: []configuration{installed("v1")}, to: installed("v2")},
		{name: "restart", from: []configuration{triggered("1")}, to: triggered("2")},
		{name: "restart softly", from: []configuration{gently("1")}, to: gently("2")},
		{name: "switch off", from: []configuration{powered("on")}, to: powered("off")},
		{name: "switch on", from: []configuration{powered("off")}, to: powered("on")},
		{name: "rescue", from: []configuration{installed("v1")}, to: rescued(1)},
		{name: "rescue again", from: []configuration{installed("v1"), rescued(1)}, to: rescued(2)},
		{name: "end a rescue", from: []configuration{installed("v1"), rescued(1)}, to: installed("v1")},
		{name: "adopt", to: adopting()},
		{name: "another VIF", from: []configuration{connected("1")}, to: connected("2")},
		{name: "protect", from: []configuration{installed("v1")}, to: with(installed("v1"), "metal_deployment.a", "protected", true)},
		{name: "boot a live ISO", to: booted("v1", "n1")},
		{name: "another live ISO", from: []configuration{booted("v1", "n1")}, to: booted("v2", "n2")},
		{name: "another live ISO, rebuilt", from: []configuration{booted("v1", "n1")}, to: booted("v2", "n2"), newest: "1.82"},
		{
			name: "BIOS settings of a free host", from: []configuration{host("description", "d")},
			to: host("bios_settings", object{"BootMode": "Bios"}),
		},
		{name: "BIOS settings of a deployed host", from: []configuration{installed("v1")}, to: serviced},
		{name: "boot mode", from: []configuration{host("boot_mode", "uefi")}, to: host("boot_mode", "bios")},
		{name: "inspect", from: []configuration{host("description", "d")}, to: host("inspect_triggers", object{"n": "1"})},
		{name: "maintenance", from: []configuration{host("description", "d")}, to: host("maintenance", true)},
		{name: "power of a host", from: []configuration{host("power_state", "off")}, to: host("power_state", "on")},
		{name: "another BMC password and name", from: []configuration{installed("v1")}, to: renamed(installed("v1"))},
		{name: "another address of the image", from: []configuration{installed("v1")}, to: mirrored(installed("v1"))},
		{name: "recable", from: []configuration{cabled("bond0")}, to: cabled("bond1")},
		{name: "group", to: groupOf("a", 3)},
		{name: "group grows under another name", from: []configuration{groupOf("a", 1)}, to: groupOf("b", 3)},
		{name: "group shrinks", from: []configuration{groupOf("a", 3)}, to: groupOf("a", 1)},
	}, details)
}

// mirrored is a configuration whose image comes from another server.
func mirrored(config configuration) configuration {
	image := maps.Clone(config["metal_deployment.a"]["image"].(object))
	image["url"] = "http://mirror.test/v1"
	return with(config, "metal_deployment.a", "image", image)
}

// renamed is a configuration with another name and another password of the host.
func renamed(config configuration) configuration {
	bmc := bmcAt("redfish-virtualmedia", "a")
	bmc["password_wo_version"] = "2"
	return with(with(config, "metal_host.a", "bmc", bmc), "metal_host.a", "name", "b")
}
