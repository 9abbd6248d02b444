package conductor

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic/switches"
)

func (c *Conductor) hasPort(n *Node) bool {
	for _, p := range c.Ports {
		if p.Node == n {
			return true
		}
	}
	return false
}

// AnyPort reports whether a port has one of the MAC addresses.
func (c *Conductor) AnyPort(macs []string) bool {
	for _, mac := range macs {
		if c.PortByMAC[mac] != nil {
			return true
		}
	}
	return false
}

// portField is an attribute of a port.
type portField struct {
	Name    string
	Since   int
	Kind    api.Kind
	initial any
}

// PortFields are the attributes of a port in the order of Ironic's answers.
var PortFields = []portField{
	{"created_at", 1, api.Kind{}, nil},
	{"updated_at", 1, api.Kind{}, nil},
	{"available_for_dynamic_portgroup", 111, api.BoolKind, true},
	{"category", 101, api.Kind{Types: api.TextKind.Types, MaxLength: 80}, nil},
	{"description", 97, api.Kind{Types: api.TextKind.Types, MaxLength: 255}, nil},
	{"extra", 1, api.ObjectKind, nil},
	{"internal_info", 18, api.Kind{}, nil},
	{"is_smartnic", 53, api.BoolKind, false},
	{"local_link_connection", 19, api.ObjectKind, nil},
	{"name", 88, api.TextKind, nil},
	{"physical_network", 34, api.Kind{Types: api.TextKind.Types, MaxLength: 64}, nil},
	{"portgroup_uuid", 24, api.TextKind, nil},
	{"pxe_enabled", 19, api.BoolKind, true},
	{"vendor", 100, api.Kind{Types: api.TextKind.Types, MaxLength: 32}, nil},
}

// Port is a network card.
type Port struct {
	Uuid, Address string
	Node          *Node
	Fields        map[string]any // all but uuid, address and node_uuid
}

// AddPort stores a new port.
func (c *Conductor) AddPort(n *Node, uuid, mac string, body map[string]any) *Port {
	p := &Port{Uuid: uuid, Address: mac, Node: n, Fields: map[string]any{}}
	for _, f := range PortFields {
		p.Fields[f.Name] = f.initial
		if f.Kind.Types != nil && slices.Contains(f.Kind.Types, "object") || f.Name == "internal_info" {
			p.Fields[f.Name] = map[string]any{}
		}
		if value := body[f.Name]; value != nil {
			p.Fields[f.Name] = value
		}
	}
	p.Fields["created_at"] = api.Timestamp(c.Now)
	c.Ports = append(c.Ports, p)
	c.PortByMAC[mac] = p
	return p
}

// SavePort stores a patched port.
func (c *Conductor) SavePort(p *Port, mac string, body map[string]any, ops []api.PatchOp) {
	for _, op := range ops {
		key := op.Field()
		if key == "address" || key == "node_uuid" {
			continue
		}
		value := body[key]
		for _, f := range PortFields {
			if f.Name == key && value == nil {
				value = f.initial
				if slices.Contains(f.Kind.Types, "object") {
					value = map[string]any{}
				}
			}
		}
		p.Fields[key] = value
	}
	delete(c.PortByMAC, p.Address)
	p.Address = mac
	c.PortByMAC[mac] = p
	p.Fields["updated_at"] = api.Timestamp(c.Now)
}

// RemovePort removes a port.
func (c *Conductor) RemovePort(p *Port) {
	delete(c.PortByMAC, p.Address)
	c.Ports = slices.DeleteFunc(c.Ports, func(other *Port) bool { return other == p })
}

// tenantVIF is the key of a port's internal_info that names the attached VIF.
const tenantVIF = "tenant_vif_port_id"

// VIF returns the VIF that is attached to a port, "" if there is none.
func (p *Port) VIF() string { return api.Text(api.Object(p.Fields["internal_info"])[tenantVIF]) }

// setVIF attaches a VIF to a port, or detaches it if the VIF is empty.
func (p *Port) setVIF(vif string) {
	info := api.Object(api.Clone(p.Fields["internal_info"]))
	delete(info, tenantVIF)
	if vif != "" {
		info[tenantVIF] = vif
	}
	p.Fields["internal_info"] = info
}

// PortsWithVIF returns the ports of a node to which a VIF is attached.
func (c *Conductor) PortsWithVIF(n *Node) (found []*Port) {
	for _, p := range c.Ports {
		if p.Node == n && p.VIF() != "" {
			found = append(found, p)
		}
	}
	return found
}

// AttachVIF attaches a VIF to a free port of the node, one with PXE if there is one, or to the port that the client has named.
func (c *Conductor) AttachVIF(n *Node, vif, uuid string) error {
	var free []*Port
	for _, p := range c.Ports {
		switch {
		case p.Node != n:
		case p.VIF() == vif:
			return api.Fault(http.StatusConflict, "Unable to attach VIF because VIF %s is already attached to Ironic Port %s", vif, p.Uuid)
		case p.VIF() == "" && (uuid == "" || p.Uuid == uuid):
			free = append(free, p)
		}
	}
	if len(free) == 0 {
		return api.Fault(http.StatusBadRequest, "Unable to attach VIF %s, not enough free physical ports.", vif)
	}
	at := max(0, slices.IndexFunc(free, func(p *Port) bool { return p.Fields["pxe_enabled"] == true }))
	free[at].setVIF(vif)
	return nil
}

// DetachVIF detaches a VIF from the node.
func (c *Conductor) DetachVIF(n *Node, vif string) error {
	for _, p := range c.PortsWithVIF(n) {
		if p.VIF() == vif {
			p.setVIF("")
			return nil
		}
	}
	return api.Fault(http.StatusBadRequest, "Unable to detach VIF %s from node %s because it is not attached to it.", vif, n.Str("uuid"))
}

// forgetVIFs detaches all VIFs of a node that is undeployed.
func (c *Conductor) forgetVIFs(n *Node) {
	for _, p := range c.PortsWithVIF(n) {
		p.setVIF("")
	}
}

// networkDefect returns why the network interface cannot connect the node to its networks, "" if it can.
func (c *Conductor) networkDefect(n *Node) string {
	switch n.Uses("network") {
	case switches.Interface:
		for _, p := range c.switchPorts(n) {
			if wrong := switches.Refusal(p.Switchport()); n.Uses("deploy") != "fake" && len(p.Link) > 0 && p.Switchport() != nil && wrong != "" {
				return "Deploy step deploy.switch_to_tenant_network failed: Failed to configure tenant network for port " + p.UUID + ": " + wrong
			}
		}
	case "neutron":
		if len(c.PortsWithVIF(n)) == 0 {
			return "Deploy step deploy.deploy failed: No neutron ports or portgroups are associated with node " + n.Str("uuid")
		}
	}
	return ""
}

// NetworkFault returns why the network interface ironic-networking refuses the ports and port groups of the node as they are stored, "" if it does not.
// Ironic asks it before each change of a port or group, and before operations.
func (c *Conductor) NetworkFault(n *Node) string {
	if n.Uses("network") != switches.Interface {
		return ""
	}
	return switches.Fault(c.switchPorts(n), c.Groups(n), string(n.State()))
}

// repaired returns a config drive as Ironic 39.0 writes it: without valid network data, and with a VIF, it has Neutron's
// (reference/network-data.md#config-drives-that-ironic-replaces). The networks of this Neutron have no subnets.
func (c *Conductor) repaired(n *Node, drive any) any {
	parts, isObject := drive.(map[string]any)
	network := n.Uses("network")
	if c.MaxMinor < 115 || !isObject || len(parts) == 0 || network != "flat" && network != "neutron" || validNetworkData(parts["network_data"]) {
		return drive
	}
	links := []any{}
	for i, p := range c.PortsWithVIF(n) {
		links = append(links, map[string]any{"id": fmt.Sprintf("iface%d", i), "type": "phy", "ethernet_mac_address": p.Address, "mtu": 1500, "vif_id": p.VIF()})
	}
	if len(links) > 0 {
		parts["network_data"] = map[string]any{"links": links, "networks": []any{}, "services": []any{}}
	}
	return parts
}

func validNetworkData(document any) bool {
	data := api.Object(document)
	links, _ := data["links"].([]any)
	networks, _ := data["networks"].([]any)
	services, _ := data["services"].([]any)
	for _, link := range links {
		if api.Object(link)["mtu"] == nil {
			return false
		}
	}
	return len(links)+len(networks)+len(services) > 0
}

// switchPort returns a port as the network interface ironic-networking sees it, with other fields.
func switchPort(p *Port, fields map[string]any) switches.Port {
	return switches.Port{
		UUID: p.Uuid, Group: api.Text(fields["portgroup_uuid"]), PXE: fields["pxe_enabled"] != false,
		Link: api.Object(fields["local_link_connection"]), Extra: api.Object(fields["extra"]),
	}
}

func (c *Conductor) switchPorts(n *Node) (ports []switches.Port) {
	for _, p := range c.Ports {
		if p.Node == n {
			ports = append(ports, switchPort(p, p.Fields))
		}
	}
	return ports
}

// PortChanged is what the network interface does before a change of a port is stored. It configures or resets the switch port, and returns why it refuses, or
// why the networking service does.
func (c *Conductor) PortChanged(p *Port, after map[string]any) (refused, failed string) {
	if p.Node.Uses("network") != switches.Interface {
		return "", ""
	}
	was, is := switchPort(p, p.Fields), switchPort(p, after)
	if api.PyRepr(was.Extra) == api.PyRepr(is.Extra) && api.PyRepr(was.Link) == api.PyRepr(is.Link) {
		return "", ""
	}
	if was.Switchport() != nil && is.Switchport() == nil || len(was.Link) > 0 && len(is.Link) == 0 {
		delete(c.switches, at(was))
		return "", ""
	}
	if is.Switchport() == nil || len(is.Link) == 0 {
		return "", ""
	}
	if refused = is.Fault(string(p.Node.State())); refused != "" {
		return refused, ""
	}
	if idle := []State{Enroll, Manageable, Available}; slices.Contains(idle, p.Node.State()) {
		return "", ""
	}
	if failed = switches.Refusal(is.Switchport()); failed == "" {
		delete(c.switches, at(was))
		c.configure(is)
	}
	return "", failed
}

// at names the port of a switch.
func at(p switches.Port) string {
	return api.Text(p.Link["switch_id"]) + " " + api.Text(p.Link["port_id"])
}

func (c *Conductor) configure(p switches.Port) {
	if c.switches == nil {
		c.switches = map[string]any{}
	}
	c.switches[at(p)] = p.Switchport()
}

// switchTenant configures the switch ports of a machine that was deployed.
func (c *Conductor) switchTenant(n *Node) {
	for _, p := range c.switchPorts(n) {
		if n.Uses("network") == switches.Interface && len(p.Link) > 0 && p.Switchport() != nil {
			c.configure(p)
		}
	}
}

// resetSwitches takes the VLANs off the switch ports of a node that is undeployed.
func (c *Conductor) resetSwitches(n *Node) {
	for _, p := range c.switchPorts(n) {
		delete(c.switches, at(p))
	}
}

// SwitchPort returns what a port of a switch has, nil without VLANs of Ironic.
func (c *Conductor) SwitchPort(switchID, portID string) any { return c.switches[switchID+" "+portID] }
