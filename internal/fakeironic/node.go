package fakeironic

import (
	"sort"
	"time"
)

// Node is a copy of a node as the database has it.
type Node struct {
	UUID, Name, ResourceClass    string
	ProvisionState               string
	PowerState, TargetPowerState string
	InstanceUUID, AllocationUUID string
	LastError, MaintenanceReason string
	Reservation                  string
	Maintenance                  bool
	Traits                       []string
	Raw                          map[string]any // every attribute of the API by its name, nothing masked
}

// node is a node in the database.
type node struct {
	order     int
	fields    map[string]any // every attribute of the API by its name, nothing masked; timestamps are text
	work      *operation     // what the conductor is doing with it; nil when it is idle
	inventory map[string]any // inventory and plugin_data; nil when it was never inspected
	// introspection is what ironic-inspector knows; nil when it has not discovered the node.
	introspection map[string]any
	machine       machine
	history       []any           // what has failed, oldest first (API 1.78); Ironic keeps it when last_error is cleared
	rendered      map[view][]byte // answers made since the last change
}

// Nodes returns copies of all nodes in the order of their creation.
func (s *Server) Nodes() []Node {
	defer s.lock()()
	out := make([]Node, len(s.nodes))
	for i, n := range s.nodes {
		out[i] = n.public()
	}
	return out
}

// Node returns a copy of the node with that UUID or name.
func (s *Server) Node(ref string) (Node, bool) {
	defer s.lock()()
	n := s.find(ref)
	if n == nil {
		return Node{}, false
	}
	return n.public(), true
}

// Set changes an attribute of a node in the database, as an operator or a conductor may: no rule is checked. Whatever the
// conductor was doing with the node ends when its provision_state is set. Unknown nodes are ignored.
func (s *Server) Set(ref, field string, value any) {
	defer s.lock()()
	n := s.find(ref)
	if n == nil {
		return
	}
	value = clone(value)
	switch field {
	case "provision_state":
		n.work = nil
		n.put("reservation", nil)
		n.put("target_provision_state", nil)
		s.enter(n, state(text(value)))
		return
	case "name":
		delete(s.nodeByName, n.str("name"))
		if name := text(value); name != "" {
			s.nodeByName[name] = n
		}
	case "traits":
		traits := texts(value)
		sort.Strings(traits)
		value = traits
	}
	n.put(field, value)
	n.put("updated_at", timestamp(s.now))
}

// SetInventory stores what an inspection would have found. Unknown nodes are ignored.
func (s *Server) SetInventory(ref string, inventory, pluginData map[string]any) {
	defer s.lock()()
	if n := s.find(ref); n != nil {
		n.inventory = map[string]any{"inventory": clone(inventory), "plugin_data": clone(pluginData)}
	}
}

// visit records that a node entered a provision state.
type visit struct {
	time  time.Time
	node  string
	state state
}

// Walk returns the provision states that the node has been in, oldest first. It works for deleted nodes by their UUID.
func (s *Server) Walk(ref string) []string {
	defer s.lock()()
	if n := s.find(ref); n != nil {
		ref = n.str("uuid")
	}
	var states []string
	for _, v := range s.visits {
		if v.node == ref {
			states = append(states, string(v.state))
		}
	}
	return states
}

// MaxBusy is the highest number of nodes that were in transient states at the same time. When states are given, only
// these count.
func (s *Server) MaxBusy(states ...string) int {
	defer s.lock()()
	busy, peak := map[string]bool{}, 0
	for _, v := range s.visits {
		if counts := contains(states, string(v.state)) || len(states) == 0 && v.state.transient(); counts {
			busy[v.node] = true
		} else {
			delete(busy, v.node)
		}
		peak = max(peak, len(busy))
	}
	return peak
}

// find returns the node with that UUID or name, or nil.
func (s *Server) find(ref string) *node {
	if n, found := s.nodeByUUID[ref]; found {
		return n
	}
	return s.nodeByName[ref]
}

// public copies the node.
func (n *node) public() Node {
	return Node{
		UUID: n.str("uuid"), Name: n.str("name"), ResourceClass: n.str("resource_class"),
		ProvisionState: n.str("provision_state"),
		PowerState:     n.str("power_state"), TargetPowerState: n.str("target_power_state"),
		InstanceUUID: n.str("instance_uuid"), AllocationUUID: n.str("allocation_uuid"),
		LastError: n.str("last_error"), MaintenanceReason: n.str("maintenance_reason"),
		Reservation: n.str("reservation"),
		Maintenance: n.flag("maintenance"),
		Traits:      n.traits(),
		Raw:         object(clone(n.fields)),
	}
}

// put changes a field. All changes go through here, because answers are kept until the next change.
func (n *node) put(field string, value any) {
	n.fields[field] = value
	n.rendered = nil
}

// note writes into driver_internal_info.
func (n *node) note(key string, value any) {
	info := object(clone(n.fields["driver_internal_info"]))
	info[key] = value
	n.put("driver_internal_info", info)
}

// str is a text field; null is "".
func (n *node) str(field string) string { return text(n.fields[field]) }

// flag is a boolean field; null is false.
func (n *node) flag(field string) bool {
	b, _ := n.fields[field].(bool)
	return b
}

func (n *node) traits() []string {
	list, _ := n.fields["traits"].([]string)
	return append([]string{}, list...)
}

func (n *node) state() state { return state(n.str("provision_state")) }

// enter puts the node into a provision state.
func (s *Server) enter(n *node, to state) {
	n.put("provision_state", string(to))
	n.put("provision_updated_at", timestamp(s.now))
	n.put("updated_at", timestamp(s.now))
	s.visits = append(s.visits, visit{time: s.now, node: n.str("uuid"), state: to})
}
