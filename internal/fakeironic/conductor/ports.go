package conductor

import (
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic/api"
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
