package fakeironic

import (
	"net/http"
	"regexp"
	"slices"
	"sort"
	"time"
)

// Node is a copy of a node in the database.
type Node struct {
	UUID, Name, ResourceClass    string
	ProvisionState               string
	PowerState, TargetPowerState string
	InstanceUUID, AllocationUUID string
	LastError, MaintenanceReason string
	Reservation                  string
	Maintenance                  bool
	Traits                       []string
	Raw                          map[string]any // all attributes of the API by name, unmasked
}

// node is a node in the database.
type node struct {
	order     int
	fields    map[string]any // all attributes of the API by name, unmasked; timestamps are strings
	work      *operation     // operation in progress; nil if there is none
	inventory map[string]any // inventory and plugin_data; nil if it was never inspected
	// introspection is the data of ironic-inspector; nil if ironic-inspector has not discovered the node.
	introspection map[string]any
	machine       machine
	history       []any           // failures, oldest first (API 1.78); Ironic keeps them when it clears last_error
	rendered      map[view][]byte // JSON encoded since the last change
}

// Nodes returns copies of all nodes in order of creation.
func (s *Server) Nodes() []Node {
	defer s.lock()()
	out := make([]Node, len(s.nodes))
	for i, n := range s.nodes {
		out[i] = public(n)
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
	return public(n), true
}

// Set changes an attribute of a node in the database without checks. Setting provision_state ends the node's operation in
// progress. Set does nothing if the node does not exist.
func (s *Server) Set(ref, field string, value any) {
	defer s.lock()()
	if n := s.find(ref); n != nil {
		s.set(n, field, clone(value))
	}
}

// set changes an attribute of a node without checks.
func (s *Server) set(n *node, field string, value any) {
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

// SetInventory stores the result of an inspection. It does nothing if the node does not exist.
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

// Walk returns the provision states that the node has been in, oldest first. It finds deleted nodes by their UUID.
func (s *Server) Walk(ref string) []string {
	defer s.lock()()
	if n := s.find(ref); n != nil {
		ref = n.str("uuid")
	}
	return s.walk(ref)
}

// walk returns the provision states that the node with the UUID has been in.
func (s *Server) walk(uuid string) (states []string) {
	for _, v := range s.visits {
		if v.node == uuid {
			states = append(states, string(v.state))
		}
	}
	return states
}

// MaxBusy returns the highest number of nodes that were in transient states at the same time. If states are given, it counts
// only nodes in these states.
func (s *Server) MaxBusy(states ...string) int {
	defer s.lock()()
	return s.maxBusy(states)
}

// maxBusy returns the highest number of nodes that were in some states at the same time; no states are all transient ones.
func (s *Server) maxBusy(states []string) int {
	busy, peak := map[string]bool{}, 0
	for _, v := range s.visits {
		if counts := slices.Contains(states, string(v.state)) || len(states) == 0 && v.state.transient(); counts {
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
func public(n *node) Node {
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

// put changes a field. All changes must use it, because it empties the cache of rendered answers.
func (n *node) put(field string, value any) {
	n.fields[field] = value
	n.rendered = nil
}

// note sets a key of driver_internal_info.
func (n *node) note(key string, value any) {
	info := object(clone(n.fields["driver_internal_info"]))
	info[key] = value
	n.put("driver_internal_info", info)
}

// str returns a string field; "" if it is null.
func (n *node) str(field string) string { return text(n.fields[field]) }

// flag returns a boolean field; false if it is null.
func (n *node) flag(field string) bool {
	b, _ := n.fields[field].(bool)
	return b
}

// traits returns a copy of the traits.
func (n *node) traits() []string {
	list, _ := n.fields["traits"].([]string)
	return append([]string{}, list...)
}

// state returns the provision state.
func (n *node) state() state { return state(n.str("provision_state")) }

// enter moves the node to a provision state.
func (s *Server) enter(n *node, to state) {
	n.put("provision_state", string(to))
	n.put("provision_updated_at", timestamp(s.now))
	n.put("updated_at", timestamp(s.now))
	s.visits = append(s.visits, visit{time: s.now, node: n.str("uuid"), state: to})
}

// locked returns the error for a node that is locked, nil if it is not.
func (n *node) locked() error {
	if holder := n.str("reservation"); holder != "" {
		return fault(http.StatusConflict,
			"Node %s is locked by host %s, please retry after the current operation is completed.", n.str("uuid"), holder)
	}
	return nil
}

// protectedFault is the error of an operation that a protected node refuses.
func protectedFault(n *node) error {
	return fault(http.StatusForbidden, "Node %s is protected and cannot be undeployed, rebuilt or deleted", n.str("uuid"))
}

// inMaintenance is the error of an operation that a node in maintenance refuses.
func inMaintenance(operation string, n *node) error {
	return fault(http.StatusBadRequest, "The %s operation can't be performed on node %s because it's in maintenance mode.",
		operation, n.str("uuid"))
}

// byInstance returns the node with that instance_uuid, or nil.
func (s *Server) byInstance(instance string) *node {
	for _, n := range s.nodes {
		if n.str("instance_uuid") == instance {
			return n
		}
	}
	return nil
}

const maxTraits = 50

// traitPattern matches custom traits and some of the standard traits.
var traitPattern = regexp.MustCompile(`^(CUSTOM_[A-Z0-9_]+|HW_CPU_X86_(VMX|SVM|SGX|AVX2?|AVX512F)|HW_CPU_HYPERTHREADING|HW_NUMA_ROOT|HW_GPU_API_VULKAN|` +
	`STORAGE_DISK_(HDD|SSD)|COMPUTE_NODE|COMPUTE_MANAGED_PCI_DEVICE|MISC_SHARES_VIA_AGGREGATE|OWNER_NOVA)$`)

// checkTrait refuses a text that is not a trait; schema names the body in the error.
func checkTrait(schema, trait string) error {
	if traitPattern.MatchString(trait) && len(trait) <= 255 {
		return nil
	}
	if schema != "" {
		schema = " for " + schema
	}
	return fault(http.StatusBadRequest, "Schema error%s: %s is not valid under any of the given schemas. Possible root cause: %s does not match "+
		"'^CUSTOM_[A-Z0-9_]+$'", schema, pyRepr(trait), pyRepr(trait))
}

// routeTraits answers /v1/nodes/{node}/traits.
func (s *Server) routeTraits(c *call, n *node, rest []string) (reply, error) {
	if c.minor < 37 {
		return reply{}, notAcceptable()
	}
	if len(rest) > 1 {
		return reply{}, routerFault(http.StatusNotFound, "")
	}
	if c.method == http.MethodGet && len(rest) == 0 {
		return ok(http.StatusOK, ordered{{"traits", n.traits()}}), nil
	}
	var traits []string
	var err error
	switch {
	case c.method == http.MethodPut && len(rest) == 0:
		traits, err = readTraits(c)
	case c.method == http.MethodPut:
		err = checkTrait("trait", rest[0])
		traits = append(n.traits(), rest[0])
	case c.method == http.MethodDelete && len(rest) == 0:
		traits = []string{}
	case c.method == http.MethodDelete:
		traits = n.traits()
		at := slices.Index(traits, rest[0])
		if at < 0 {
			return reply{}, fault(http.StatusNotFound, "Node %s doesn't have a trait '%s'", n.str("uuid"), rest[0])
		}
		traits = slices.Delete(traits, at, at+1)
	default:
		return reply{}, methodNotAllowed("DELETE, GET, PUT")
	}
	if err != nil {
		return reply{}, err
	}
	if err := s.setTraits(n, traits); err != nil {
		return reply{}, err
	}
	answer := done(http.StatusNoContent)
	if c.method == http.MethodPut && len(rest) == 1 {
		answer.header.Set("Location", c.base+"/v1/nodes/"+c.path[1]+"/traits/"+rest[0])
	}
	return answer, nil
}

func readTraits(c *call) ([]string, error) {
	body, err := c.object("body")
	if err != nil {
		return nil, err
	}
	if err := (schema{name: "body", members: map[string]kind{"traits": {types: []string{"array"}}}}).check(body); err != nil {
		return nil, err
	}
	if _, given := body["traits"]; !given {
		return nil, fault(http.StatusBadRequest, "A single node trait may be added via PUT /v1/nodes/<node identifier>/traits/<trait> with no "+
			"body, or all node traits may be replaced via PUT /v1/nodes/<node identifier>/traits with the list of traits specified in the request body.")
	}
	if err := checkTexts("body", body["traits"]); err != nil {
		return nil, err
	}
	traits := texts(body["traits"])
	for _, trait := range traits {
		if err := checkTrait("body", trait); err != nil {
			return nil, err
		}
	}
	return traits, nil
}

// setTraits replaces the traits of a node, sorted and without duplicates.
func (s *Server) setTraits(n *node, traits []string) error {
	sort.Strings(traits)
	traits = slices.Compact(traits)
	if len(traits) > maxTraits {
		return fault(http.StatusBadRequest, "Could not modify traits for node %d as it would exceed the maximum number of traits per node (%d vs. %d)",
			n.order, len(traits), maxTraits)
	}
	if err := n.locked(); err != nil {
		return err
	}
	n.put("traits", traits)
	n.put("updated_at", timestamp(s.now))
	return nil
}
