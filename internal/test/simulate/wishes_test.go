package simulate_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// checkWish checks that what there is at the site is what is configured, after an apply that has succeeded.
func (l *tale) checkWish() {
	if len(l.faults) > 0 {
		return
	}
	l.checkBMCs()
	for address, settings := range l.config {
		i := l.space.state()[address]
		if i == nil && strings.HasPrefix(address, dataPrefix) {
			continue
		}
		if i == nil {
			l.broken("%s is not in the state", address)
			continue
		}
		switch kindName(address) {
		case "metal_host":
			if n, exists := l.fake.Node(i.value.GetAttr("id").AsString()); exists {
				l.checkHost(address, settings, n)
			} else {
				l.broken("%s does not exist", address)
			}
		case "metal_deployment":
			if n, exists := l.fake.Node(i.value.GetAttr("id").AsString()); exists {
				l.checkDeployment(address, settings, i, n)
			}
		}
	}
}

// must records a broken promise unless what is at the site is what is wanted.
func (l *tale) must(address, what string, now, wanted any) {
	if fmt.Sprint(now) != fmt.Sprint(wanted) {
		l.broken("%s: %s is %v, configured is %v", address, what, now, wanted)
	}
}

func (l *tale) checkHost(address string, settings object, n fakeironic.Node) {
	l.must(address, "the name", n.Name, settings["name"])
	info, _ := n.Raw["driver_info"].(object)
	if bmc, _ := settings["bmc"].(object); bmc != nil {
		kind := "redfish"
		if url, _ := bmc["address"].(string); strings.HasPrefix(url, "ipmi://") {
			kind = "ipmi"
		}
		l.must(address, kind+"_username", info[kind+"_username"], bmc["username"])
		l.must(address, kind+"_password", info[kind+"_password"], bmc["password_wo"])
		if url, _ := bmc["address"].(string); !strings.Contains(url, "://"+bmcOf(n)) {
			l.broken("%s: the BMC is %s, configured is %s", address, bmcOf(n), url)
		}
	}
	interfaces, _ := settings["hardware_interfaces"].(object)
	for kind, wanted := range interfaces {
		l.must(address, kind+"_interface", n.Raw[kind+"_interface"], wanted)
	}
	if ports, configured := settings["ports"].(object); configured {
		l.must(address, "the MAC addresses of its ports", l.macsOf(n), sorted(ports))
	}
	target, _ := settings["target_state"].(string)
	switch {
	case n.ProvisionState == target, runsSomething(n), target == "":
	case len(l.space.replan(l.t, l.config).changes[address].warnings) > 0: // it says so
	default:
		l.broken("%s: the node is in state %s, reserved by %q, configured is %s, and no plan says so", address, n.ProvisionState,
			n.InstanceUUID, target)
	}
}

// sorted returns the keys of an object in order.
func sorted(of object) []string {
	keys := []string{}
	for key := range of {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// portsOf returns the ports of a node.
func (l *tale) portsOf(n fakeironic.Node) (found []object) {
	_, answer := l.call(l.t, http.MethodGet, "ports/detail", nil)
	all, _ := answer["ports"].([]any)
	for _, one := range all {
		if port, _ := one.(object); port["node_uuid"] == n.UUID {
			found = append(found, port)
		}
	}
	return found
}

func (l *tale) macsOf(n fakeironic.Node) []string {
	macs := object{}
	for _, port := range l.portsOf(n) {
		macs[port["address"].(string)] = true
	}
	return sorted(macs)
}

func (l *tale) checkDeployment(address string, settings object, i *instance, n fakeironic.Node) {
	wanted := "active"
	if settings["rescue"] != nil {
		wanted = "rescue"
	}
	// perhaps by another client; changes wait for its end
	if n.ProvisionState == "rescue" || settings["rescue"] == nil && strings.Contains(n.ProvisionState, "rescue") {
		return
	}
	l.must(address, "the state", n.ProvisionState, wanted)
	info, _ := n.Raw["instance_info"].(object)
	if image, _ := settings["image"].(object); image != nil {
		l.must(address, "the image", info["image_source"], image["url"])
	}
	if iso := i.value.GetAttr("live_iso"); !iso.IsNull() { // the state keeps what the machine runs
		l.must(address, "the live ISO that runs", l.fake.BootedISO(n.UUID), iso.GetAttr("url").AsString())
	}
	if vifs, configured := settings["vifs"].([]any); configured {
		attached, expected := object{}, object{}
		for _, vif := range vifs {
			expected[vif.(object)["id"].(string)] = true
		}
		for _, port := range l.portsOf(n) {
			if internal, _ := port["internal_info"].(object); internal["tenant_vif_port_id"] != nil {
				attached[internal["tenant_vif_port_id"].(string)] = true
			}
		}
		l.must(address, "the VIFs", sorted(attached), sorted(expected))
	}
	if drive, _ := settings["config_drive"].(object); drive != nil && drive["hostname"] != l.recorded {
		text, _ := json.Marshal(info["configdrive"])
		if hostname, _ := drive["hostname"].(string); !strings.Contains(string(text), `"`+hostname+`"`) {
			l.broken("%s: the config drive %s is not for %s", address, shortened(text), hostname)
		}
	}
	if power, _ := settings["power_state"].(string); power != "" {
		l.must(address, "the power", n.PowerState, "power "+power)
	}
	if protected, configured := settings["protected"].(bool); configured {
		l.must(address, "protected", n.Raw["protected"], protected)
	}
	if allocation := i.value.GetAttr("allocation_id"); allocation != cty.NilVal && !allocation.IsNull() {
		l.must(address, "the allocation", n.AllocationUUID, allocation.AsString())
	}
}
