package fakeironic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// nodeSchema is the schema of a new node.
func (s *Server) nodeSchema() schema {
	members := map[string]kind{
		"automated_clean": boolKind, "boot_mode": textKind, "chassis_uuid": textKind, "conductor_group": textKind,
		"console_enabled": boolKind, "description": {types: textKind.types, maxLength: maxDescription}, "driver": stringKind,
		"driver_info": objectKind, "extra": objectKind, "instance_info": objectKind, "instance_uuid": textKind, "lessee": textKind,
		"maintenance": boolKind, "name": textKind, "network_data": objectKind, "owner": textKind, "properties": objectKind,
		"resource_class": classKind, "retired": boolKind, "retired_reason": textKind, "secure_boot": boolKind, "shard": textKind,
		"uuid": textKind,
	}
	for _, k := range interfaceKinds {
		if k != "firmware" || !s.legacy() {
			members[k+"_interface"] = textKind
		}
	}
	if !s.legacy() {
		members["parent_node"] = textKind
		members["disable_power_off"] = boolKind
		members["instance_name"] = textKind
	}
	return schema{name: "node", members: members, required: []string{"driver"}}
}

const maxDescription = 4096

// reservedNames are words in the API's own paths.
var reservedNames = []string{"maintenance", "management", "states", "vendor_passthru", "detail", "validate"}

func checkNodeName(name any, complaint string) error {
	given, isText := name.(string)
	if isText && slices.Contains(reservedNames, given) {
		return fault(http.StatusBadRequest, "The word \"%s\" is reserved and can not be used as a node name. Reserved words are: %s.",
			given, strings.Join(reservedNames, ", "))
	}
	if !isText || !validName(given) || isUUID(given) {
		return fault(http.StatusBadRequest, "%s'%s'", complaint, pyText(name))
	}
	return nil
}

// nodeByRef returns the node with the UUID or name in a path.
func (s *Server) nodeByRef(c *call, ref string) (*node, error) {
	if !isUUID(ref) && !validName(ref) {
		return nil, routerFault(http.StatusBadRequest, "Expected UUID or name for node: %s", ref)
	}
	if !s.legacy() && c.minor >= 91 && strings.HasSuffix(ref, ".json") {
		return nil, &apiError{status: http.StatusInternalServerError, empty: true}
	}
	if n := s.seen(c, ref); n != nil {
		return n, nil
	}
	return nil, fault(http.StatusNotFound, "Node %s could not be found.", ref)
}

// createNode answers POST /v1/nodes.
func (s *Server) createNode(c *call) (reply, error) {
	body, err := c.object("node")
	if err != nil {
		return reply{}, err
	}
	if err := s.checkNewNode(c, body); err != nil {
		return reply{}, err
	}
	if text(body["resource_class"]) == "" {
		body["resource_class"] = orNull(s.DefaultResourceClass)
	}
	if c.caller != nil && !c.isSystem() { // it owns what it creates
		body["owner"] = c.project()
	}
	fields := s.newNodeFields(c, body)
	if err := settleInterfaces(fields); err != nil {
		return reply{}, err
	}
	n := s.addNode(fields)
	return c.created("nodes/"+n.str("uuid"), json.RawMessage(s.renderNew(c, n))), nil
}

// renderNew encodes a node that was just created, with created_at in whole seconds.
func (s *Server) renderNew(c *call, n *node) []byte {
	created := n.fields["created_at"]
	n.put("created_at", coarse(created))
	out := s.render(c, n, s.viewFor(c, n, nil))
	n.put("created_at", created)
	return out
}

// checkNewNode checks the body of a new node in Ironic's order.
func (s *Server) checkNewNode(c *call, body map[string]any) error {
	if err := s.nodeSchema().check(body); err != nil {
		return err
	}
	if data := object(body["network_data"]); len(data) > 0 && checkNetworkData(data, s.legacy()) != nil {
		return fault(http.StatusBadRequest, "Schema error for node: %s is not valid under any of the given schemas. Possible root cause: "+
			"%s is not of type 'null'", pyRepr(data), pyRepr(data))
	}
	if err := checkNodeValues(body); err != nil {
		return err
	}
	for _, key := range sortedKeys(body) {
		if since, known := nodeFieldSince(key); known && since > c.minor {
			return notAcceptable()
		}
	}
	if name := body["name"]; name != nil {
		if err := checkNodeName(name, "Cannot create node with invalid name "); err != nil {
			return err
		}
	}
	if owner := text(body["owner"]); owner != "" && !c.isSystem() && owner != c.project() {
		return fault(http.StatusBadRequest, "Cannot create a node as a project scoped admin with an owner other than your own project.")
	}
	if chassis := text(body["chassis_uuid"]); chassis != "" && s.findChassis(chassis) == nil {
		return fault(http.StatusBadRequest, "Chassis %s could not be found.", chassis)
	}
	driver, group := text(body["driver"]), text(body["conductor_group"])
	if _, found := findDriver(driver); !found || group != "" {
		return noValidHost(driver, group, s.legacy())
	}
	if text(body["uuid"]) == "" {
		body["uuid"] = newUUID()
	}
	if cpus, isText := object(body["properties"])["cpus"].(string); isText && s.legacy() && strings.Trim(cpus, "0123456789") != "" {
		return fault(http.StatusBadRequest, "The following properties for node %s should be non-negative integers, but provided values are: cpus=%s", text(body["uuid"]), cpus)
	}
	if uuid := text(body["uuid"]); s.nodeByUUID[uuid] != nil {
		return fault(http.StatusConflict, "A node with UUID %s already exists.", uuid)
	}
	if name := text(body["name"]); s.nodeByName[name] != nil {
		return fault(http.StatusConflict, "A node with name %s already exists.", name)
	}
	if instance := text(body["instance_uuid"]); instance != "" && s.byInstance(instance) != nil {
		return fault(http.StatusConflict, "Instance %s is already associated with a node, it cannot be associated with this other node %s",
			instance, text(body["uuid"]))
	}
	return nil
}

// checkNodeValues checks UUIDs and booleans, and converts texts such as "yes" to booleans.
func checkNodeValues(body map[string]any) error {
	for _, key := range []string{"chassis_uuid", "instance_uuid", "uuid"} {
		if value := body[key]; value != nil && !isUUID(text(value)) {
			return fault(http.StatusBadRequest, "Expected UUID for %s: %s", key, text(value))
		}
	}
	for _, key := range []string{
		"automated_clean", "console_enabled", "disable_power_off", "maintenance", "protected", "retired", "secure_boot",
	} {
		value := body[key]
		if value == nil {
			continue
		}
		b, valid := parseBool(value)
		if !valid {
			return notBool(key, value)
		}
		body[key] = b
	}
	return nil
}

// newNodeFields returns the fields of a new node.
func (s *Server) newNodeFields(c *call, body map[string]any) map[string]any {
	fields := map[string]any{}
	for _, f := range nodeFields {
		fields[f.name] = nil
	}
	for _, key := range []string{
		"clean_step", "deploy_step", "driver_info", "driver_internal_info", "extra", "instance_info", "network_data", "properties",
		"raid_config", "service_step", "target_raid_config",
	} {
		fields[key] = map[string]any{}
	}
	for _, key := range []string{"console_enabled", "disable_power_off", "maintenance", "protected", "retired"} {
		fields[key] = false
	}
	fields["traits"] = []string{}
	fields["conductor"] = s.host()
	fields["created_at"] = timestamp(s.now)
	for key, value := range body {
		if value != nil {
			fields[key] = value
		}
	}
	fields["conductor_group"] = text(fields["conductor_group"])
	fields["provision_state"] = string(enroll)
	if c.minor < 11 {
		fields["provision_state"] = string(available)
	}
	return fields
}

// addNode stores a new node.
func (s *Server) addNode(fields map[string]any) *node {
	s.sequence++
	n := &node{order: s.sequence, fields: fields}
	s.nodes = append(s.nodes, n)
	s.nodeByUUID[n.str("uuid")] = n
	if name := n.str("name"); name != "" {
		s.nodeByName[name] = n
	}
	s.visits = append(s.visits, visit{time: s.now, node: n.str("uuid"), state: n.state()})
	return n
}

// deleteNode answers DELETE /v1/nodes/{node}.
func (s *Server) deleteNode(n *node) error {
	uuid := n.str("uuid")
	if err := n.locked(); err != nil {
		return err
	}
	if instance := n.str("instance_uuid"); instance != "" && !n.flag("maintenance") {
		return fault(http.StatusConflict, "Node %s is associated with instance %s.", uuid, instance)
	}
	if n.flag("protected") {
		return protectedFault(n)
	}
	if !n.state().deletable() && !n.flag("maintenance") {
		return fault(http.StatusConflict, "Can not delete node \"%s\" while it is in provision state \"%s\". Valid provision states to perform "+
			"deletion are: \"('manageable', 'enroll', 'adopt failed', 'available')\", or set the node into maintenance mode", uuid, n.state())
	}
	s.portgroups = slices.DeleteFunc(s.portgroups, func(g *portgroup) bool { return g.node == n })
	s.removeNode(n)
	return nil
}

// removeNode removes a node with what belongs to it.
func (s *Server) removeNode(n *node) {
	uuid := n.str("uuid")
	s.dropAllocation(n)
	s.ports = slices.DeleteFunc(s.ports, func(p *port) bool {
		if p.node != n {
			return false
		}
		delete(s.portByMAC, p.address)
		return true
	})
	s.nodes = slices.DeleteFunc(s.nodes, func(other *node) bool { return other == n })
	delete(s.nodeByUUID, uuid)
	delete(s.nodeByName, n.str("name"))
	n.work = nil
	s.visits = append(s.visits, visit{time: s.now, node: uuid})
}

// AddFleet adds n available nodes of a resource class with the driver fake-hardware. Their names are node-000, node-001 and so
// on, without names in use. They are off and have properties, two ports and an inventory. Every second node has the trait
// CUSTOM_NVME.
func (s *Server) AddFleet(n int, class string) {
	defer s.lock()()
	for number := 0; n > 0; number++ {
		name := fmt.Sprintf("node-%03d", number)
		if s.nodeByName[name] != nil {
			continue
		}
		n--
		s.addMachine(name, class, number)
	}
}

func (s *Server) addMachine(name, class string, number int) {
	c := &call{minor: s.maxMinor(), header: http.Header{}}
	fields := s.newNodeFields(c, map[string]any{
		"uuid": newUUID(), "name": name, "driver": "fake-hardware", "resource_class": class,
		"properties": map[string]any{
			"cpus": 32.0, "memory_mb": 131072.0, "local_gb": 893.0, "cpu_arch": "x86_64", "capabilities": "boot_mode:uefi",
		},
	})
	if err := settleInterfaces(fields); err != nil {
		panic(err) // cannot happen: fake-hardware has all defaults
	}
	fields["provision_state"] = string(available)
	fields["provision_updated_at"] = timestamp(s.now)
	fields["power_state"] = powerOff
	if number%2 == 1 {
		fields["traits"] = []string{"CUSTOM_NVME"}
	}
	n := s.addNode(fields)
	for card := range 2 {
		mac := fmt.Sprintf("52:54:%02x:%02x:%02x:%02x", number>>16&0xff, number>>8&0xff, number&0xff, card)
		s.addPort(n, newUUID(), mac, map[string]any{"pxe_enabled": card == 0})
	}
	s.discover(n)
}
