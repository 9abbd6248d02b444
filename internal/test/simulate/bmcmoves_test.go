package simulate_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// bmcTheme is about hosts whose BMCs, drivers, interfaces, names and network cards change and swap.
func bmcTheme() theme {
	return theme{name: "BMCs", begin: func(l *tale) {
		for _, name := range []string{"a", "b", "c"}[:2+l.below(2)] {
			host := bmcHost(name)
			if host["hardware_interfaces"] = (object{"deploy": "ramdisk", "boot": "ipxe"}); l.below(2) == 0 {
				delete(host, "hardware_interfaces")
			}
			host["target_state"] = l.one("available", "manageable", "available")
			l.config["metal_host."+name] = host
		}
		l.apply()
	}, moves: []move{
		changeScheme, changeScheme, changeInterface, changeInterface, changePassword, moveBMC, swapBMCs, renameHost, swapNames, swapMACs,
		takeMAC, addPort,
		bondHost, changeTarget, deployOn, deployOn, undeployFrom, changeDeployment, changeDriver,
	}}
}

// one returns one of several values.
func (l *tale) one(of ...any) any { return of[l.below(len(of))] }

// hosts returns the addresses of the configured hosts.
func (l *tale) hosts() []string { return l.configured("metal_host.") }

func (l *tale) deployments() []string { return l.configured("metal_deployment.") }

// configured returns the addresses with a prefix.
func (l *tale) configured(prefix string) (all []string) {
	for _, address := range slices.Sorted(maps.Keys(l.config)) {
		if strings.HasPrefix(address, prefix) {
			all = append(all, address)
		}
	}
	return all
}

// host returns a configured host; nil if there is none.
func (l *tale) host() (address string, settings object) {
	all := l.hosts()
	if len(all) == 0 {
		return "", nil
	}
	address = all[l.below(len(all))]
	return address, l.config[address]
}

// deploymentOf returns the address of the deployment on a host.
func deploymentOf(host string) string {
	return strings.Replace(host, "metal_host.", "metal_deployment.", 1)
}

func changeScheme(l *tale) string {
	address, host := l.host()
	bmc, _ := host["bmc"].(object)
	if bmc == nil || l.config[deploymentOf(address)] != nil {
		return ""
	}
	before, _ := bmc["address"].(string)
	machine := strings.TrimPrefix(strings.Split(strings.SplitN(before, "://", 2)[1], ".")[0], "bmc-")
	scheme, _ := l.one("ipmi", "redfish", "redfish-virtualmedia").(string)
	bmc["address"] = bmcAt(scheme, machine)["address"]
	if bmc["address"] == before {
		return ""
	}
	if l.below(2) == 0 {
		bmc["password_wo_version"] = l.next("v")
	}
	return fmt.Sprintf("%s: the BMC is at %s, not %s", address, bmc["address"], before)
}

// changeDriver configures a host with driver and driver_info_wo instead of bmc, or with another driver.
func changeDriver(l *tale) string {
	address, host := l.host()
	if l.config[deploymentOf(address)] != nil {
		return ""
	}
	machine := strings.TrimPrefix(address, "metal_host.")
	delete(host, "bmc")
	if host["driver_info_wo_version"] == nil {
		host["driver_info_wo_version"] = "1"
	}
	host["driver"] = l.one("ipmi", "redfish")
	if host["driver"] == "ipmi" {
		host["driver_info"], host["driver_info_wo"] = object{"ipmi_address": "bmc-" + machine + ".test"}, object{"ipmi_password": secret}
	} else {
		host["driver_info"] = object{"redfish_address": "https://bmc-" + machine + ".test", "redfish_system_id": "/redfish/v1/Systems/1"}
		host["driver_info_wo"] = object{"redfish_password": secret}
	}
	return fmt.Sprintf("%s: driver %s", address, host["driver"])
}

func changeInterface(l *tale) string {
	address, host := l.host()
	if l.config[deploymentOf(address)] != nil {
		return ""
	}
	interfaces, _ := host["hardware_interfaces"].(object)
	if interfaces == nil {
		interfaces = object{}
	}
	kind, _ := l.one("deploy", "boot", "inspect", "rescue").(string)
	value, _ := map[string]any{
		"deploy": l.one("direct", "ramdisk"), "boot": l.one("ipxe", "pxe"), "inspect": l.one("agent", "no-inspect"),
		"rescue": l.one("agent", "no-rescue"),
	}[kind].(string)
	if interfaces[kind] == value {
		delete(interfaces, kind)
		value = "the default"
	} else {
		interfaces[kind] = value
	}
	if host["hardware_interfaces"] = interfaces; len(interfaces) == 0 {
		delete(host, "hardware_interfaces")
	}
	return fmt.Sprintf("%s: %s interface %s", address, kind, value)
}

func changePassword(l *tale) string {
	address, host := l.host()
	bmc, _ := host["bmc"].(object)
	if bmc == nil {
		return ""
	}
	version := l.next("v")
	bmc["password_wo_version"], bmc["password_wo"] = version, secret+"-"+version
	return address + ": another password"
}

// moveBMC gives a BMC a new address, or the address that another host has.
func moveBMC(l *tale) string {
	address, host := l.host()
	bmc, _ := host["bmc"].(object)
	if bmc == nil {
		return ""
	}
	if other, settings := l.host(); other != address && settings["bmc"] != nil && l.below(2) == 0 {
		bmc["address"] = settings["bmc"].(object)["address"]
		return address + ": the BMC of " + other
	}
	scheme, _, _ := strings.Cut(bmc["address"].(string), "://")
	bmc["address"] = bmcAt(scheme, l.next("moved"))["address"]
	return address + ": another address of the BMC"
}

// two returns two hosts; nil if there are not so many.
func (l *tale) two() (first, second object) {
	all := l.hosts()
	if len(all) < 2 {
		return nil, nil
	}
	at := l.below(len(all))
	return l.config[all[at]], l.config[all[(at+1)%len(all)]]
}

func swapBMCs(l *tale) string {
	first, second := l.two()
	if first == nil || first["bmc"] == nil || second["bmc"] == nil || len(l.deployments()) > 0 {
		return ""
	}
	first["bmc"], second["bmc"] = second["bmc"], first["bmc"]
	for _, host := range []object{first, second} {
		bmc, _ := host["bmc"].(object)
		bmc["password_wo_version"] = l.next("v")
	}
	return fmt.Sprintf("the hosts %s and %s swap their BMCs", first["name"], second["name"])
}

func renameHost(l *tale) string {
	address, host := l.host()
	if host == nil {
		return ""
	}
	host["name"] = l.next("renamed")
	return fmt.Sprintf("%s: name %s", address, host["name"])
}

func swapNames(l *tale) string {
	first, second := l.two()
	if first == nil {
		return ""
	}
	first["name"], second["name"] = second["name"], first["name"]
	return fmt.Sprintf("the hosts %s and %s swap their names", first["name"], second["name"])
}

func swapMACs(l *tale) string {
	first, second := l.two()
	if first == nil || first["ports"] == nil || second["ports"] == nil {
		return ""
	}
	first["ports"], second["ports"] = second["ports"], first["ports"]
	first["port_groups"], second["port_groups"] = second["port_groups"], first["port_groups"]
	return fmt.Sprintf("the hosts %s and %s swap their network cards", first["name"], second["name"])
}

// takeMAC moves a network card from one host to another.
func takeMAC(l *tale) string {
	first, second := l.two()
	from, _ := first["ports"].(object)
	to, _ := second["ports"].(object)
	if len(from) < 2 || to == nil || first["port_groups"] != nil {
		return ""
	}
	mac := sorted(from)[0]
	delete(from, mac)
	to[mac] = object{}
	return fmt.Sprintf("network card %s moves from %s to %s", mac, first["name"], second["name"])
}

func addPort(l *tale) string {
	address, host := l.host()
	ports, _ := host["ports"].(object)
	if ports == nil {
		return ""
	}
	l.names++
	mac := macOf(address, l.names)
	ports[mac] = object{"physical_network": l.one("prov", "data")}
	return fmt.Sprintf("%s: another network card %s", address, mac)
}

// bondHost puts the ports of a host into a group, or dissolves it.
func bondHost(l *tale) string {
	address, host := l.host()
	ports, _ := host["ports"].(object)
	if ports == nil {
		return ""
	}
	dissolves := host["port_groups"] != nil
	if delete(host, "port_groups"); !dissolves {
		host["port_groups"] = object{"bond0": object{"mode": "802.3ad"}}
	}
	for _, mac := range sorted(ports) {
		port, _ := ports[mac].(object)
		if port["port_group"] = "bond0"; dissolves {
			delete(port, "port_group")
		}
	}
	return fmt.Sprintf("%s: a group of its ports: %t", address, !dissolves)
}

func changeTarget(l *tale) string {
	address, host := l.host()
	if host == nil || l.config[deploymentOf(address)] != nil {
		return ""
	}
	target := "available"
	if host["target_state"] == target {
		target = "manageable"
	}
	host["target_state"] = target
	return fmt.Sprintf("%s: target_state %s", address, target)
}

// deployOn deploys an image on a host.
func deployOn(l *tale) string {
	address, host := l.host()
	deployment := deploymentOf(address)
	if host == nil || l.config[deployment] != nil || host["target_state"] != "available" {
		return ""
	}
	interfaces, _ := host["hardware_interfaces"].(object)
	if interfaces["deploy"] == "ramdisk" { // it writes no image
		return ""
	}
	l.config[deployment] = object{"node_id": reference{address, "id"}, "image": imageAt("http://images.test/v1")}
	return "deploy on " + address
}

func undeployFrom(l *tale) string {
	for _, address := range l.deployments() {
		delete(l.config, address)
		return "remove " + address
	}
	return ""
}

// changeDeployment changes what runs on a machine, or restarts it.
func changeDeployment(l *tale) string {
	all := l.deployments()
	if len(all) == 0 {
		return ""
	}
	address := all[l.below(len(all))]
	settings := l.config[address]
	image, _ := settings["image"].(object)
	switch which := l.below(5); {
	case which == 0 && image != nil:
		image["url"] = "http://images.test/" + l.next("v")
		return address + ": another image"
	case which == 1 && image != nil:
		settings["config_drive"] = object{"hostname": l.next("host"), "user_data_wo": userSecret, "user_data_wo_version": "1"}
		return address + ": another config drive"
	case which == 2:
		settings["restart_triggers"], settings["power_off_mode"] = object{"n": l.next("restart")}, l.one("hard", "soft", "graceful")
		return address + ": restart"
	case which == 3:
		settings["rebuild_triggers"] = object{"n": l.next("rebuild")}
		return address + ": rebuild"
	}
	settings["power_state"] = l.one("on", "off")
	return fmt.Sprintf("%s: power %s", address, settings["power_state"])
}
