package conductor

import (
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/switches"
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

// NetworkFault returns why the network interface ironic-networking refuses the ports and port groups of the node as they are stored, "" if
// it does not. Ironic asks it before each change of a port or group, and before operations.
func (c *Conductor) NetworkFault(n *Node) string {
	if n.Uses("network") != switches.Interface {
		return ""
	}
	return switches.Fault(c.switchPorts(n), c.switchGroups(n), string(n.State()))
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

func (c *Conductor) switchGroups(n *Node) (groups []switches.Group) {
	for _, g := range c.Groups(n) {
		groups = append(groups, switches.Group{UUID: g.UUID, Extra: g.Extra})
	}
	return groups
}

// switchDefect returns the last_error of a deployment whose switch ports cannot be configured, "" if they can.
func (c *Conductor) switchDefect(n *Node) string {
	for _, p := range c.switchPorts(n) {
		if wrong := switches.Refusal(p.Switchport()); n.Uses("deploy") != "fake" && len(p.Link) > 0 &&
			p.Switchport() != nil && wrong != "" {
			return "Deploy step deploy.switch_to_tenant_network failed: Failed to configure tenant network for port " +
				p.UUID + ": " + wrong
		}
	}
	return ""
}

// PortChanged is what the network interface does before a change of a port is stored. It configures or resets the switch port, and returns
// why it refuses, or why the networking service does.
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
