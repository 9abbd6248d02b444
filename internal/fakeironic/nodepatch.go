package fakeironic

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// patchableNodeFields returns the fields of a node that PATCH may change.
func (s *Server) patchableNodeFields() []string {
	fields := []string{
		"automated_clean", "bios_interface", "boot_interface", "chassis_uuid", "conductor_group", "console_interface", "deploy_interface",
		"description", "driver", "driver_info", "extra", "inspect_interface", "instance_info", "instance_uuid", "lessee", "maintenance",
		"management_interface", "name", "network_data", "network_interface", "owner", "power_interface", "properties", "protected",
		"protected_reason", "raid_interface", "rescue_interface", "resource_class", "retired", "retired_reason", "shard",
		"storage_interface", "vendor_interface",
	}
	if !s.legacy() {
		fields = append(fields, "disable_power_off", "instance_name")
		slices.Sort(fields)
		fields = append(fields, "parent_node", "firmware_interface")
	}
	return fields
}

// interfaceStates are the states in which a client can change interfaces, resource_class and the instance_uuid of an
// allocation.
const interfaceStates = "enroll, inspecting, inspect wait, manageable, available"

func interfacesChangeable(s state) bool {
	return slices.Contains(strings.Split(interfaceStates, ", "), string(s))
}

// patchNode answers PATCH /v1/nodes/{node}.
func (s *Server) patchNode(c *call, ref string) (reply, error) {
	if err := c.accept("reset_interfaces"); err != nil {
		return reply{}, err
	}
	ops, err := c.patch()
	if err != nil {
		return reply{}, err
	}
	reset, _ := parseBool(c.query.Get("reset_interfaces"))
	if c.query.Has("reset_interfaces") && c.minor < 45 {
		return reply{}, notAcceptable()
	}
	if err := s.checkNodePatch(c, ops, reset); err != nil {
		return reply{}, err
	}
	n, err := s.nodeByRef(c, ref)
	if err != nil {
		return reply{}, err
	}
	if err := s.authorizePatch(c, n, ops); err != nil {
		return reply{}, err
	}
	if err := s.checkPatchState(c, n, ref, ops); err != nil {
		return reply{}, err
	}
	patched, err := s.patchedFields(n, ops)
	if err != nil {
		return reply{}, err
	}
	if err := s.checkNodeChange(n, patched, reset); err != nil {
		return reply{}, err
	}
	s.saveNode(n, patched)
	return ok(http.StatusOK, json.RawMessage(s.renderSaved(c, n))), nil
}

// checkNodePatch makes the checks that need only the patch.
func (s *Server) checkNodePatch(c *call, ops []patchOp, reset bool) error {
	if err := checkPatchable(ops, s.patchableNodeFields()); err != nil {
		return err
	}
	for _, op := range ops {
		if since, _ := nodeFieldSince(op.field()); since > c.minor && op.op != "remove" {
			return notAcceptable()
		}
		if op.path == "/automated_clean" && op.op == "remove" {
			return fault(http.StatusInternalServerError, "'value'")
		}
	}
	if reset && len(patchValues(ops, "/driver")) == 0 {
		return fault(http.StatusBadRequest, "The reset_interfaces parameter can only be used when changing the node's driver.")
	}
	for _, description := range patchValues(ops, "/description") {
		if len([]rune(text(description))) > maxDescription {
			return fault(http.StatusBadRequest, "Cannot update node with description exceeding %d characters", maxDescription)
		}
	}
	for _, data := range patchValues(ops, "/network_data") {
		if data == nil {
			continue
		}
		if err := checkNetworkData(object(data), s.legacy()); err != nil {
			return err
		}
	}
	return nil
}

// checkPatchState refuses a patch while an operation is in progress on the node.
func (s *Server) checkPatchState(c *call, n *node, ref string, ops []patchOp) error {
	freesInstance := len(ops) == 1 && ops[0].op == "remove" && ops[0].path == "/instance_uuid"
	switch {
	case n.flag("maintenance") && freesInstance:
	case n.str("target_provision_state") != "" && !n.state().patchableInTransition():
		return fault(http.StatusConflict, "Node %s can not be updated while a state transition is in progress.", ref)
	case n.state() == inspecting && c.minor >= 39:
		return fault(http.StatusConflict, "Cannot update node \"%s\" while it is in state \"%s\".", n.str("uuid"), inspecting)
	case len(patchValues(ops, "/owner")) > 0:
		if a := s.allocationOf(n); a != nil && a.owner != "" {
			return fault(http.StatusConflict,
				"Cannot update owner of node \"%s\" while it is allocated to an allocation with an  owner.", n.str("uuid"))
		}
	}
	for _, name := range patchValues(ops, "/name") {
		if err := checkNodeName(name, "Node "+ref+": Cannot change name to invalid name "); err != nil {
			return err
		}
	}
	return nil
}

// patchedFields applies the patch to a copy of the fields and checks the result.
func (s *Server) patchedFields(n *node, ops []patchOp) (map[string]any, error) {
	document := object(clone(n.fields))
	if err := applyPatch(document, ops); err != nil {
		return nil, err
	}
	body := map[string]any{}
	checked := s.nodeSchema()
	checked.name = "patch"
	checked.members["protected"] = boolKind
	checked.members["protected_reason"] = textKind
	for _, key := range s.patchableNodeFields() {
		if value, left := document[key]; left {
			body[key] = value
		}
	}
	if err := checked.check(body); err != nil {
		return nil, err
	}
	if err := checkNodeValues(body); err != nil {
		return nil, err
	}
	return s.withoutHoles(n, document, body)
}

// withoutHoles sets the fields that the patch removed to their empty values.
func (s *Server) withoutHoles(n *node, document, body map[string]any) (map[string]any, error) {
	for _, key := range s.patchableNodeFields() {
		value := body[key]
		if value == nil {
			switch key {
			case "driver_info", "extra", "instance_info", "network_data", "properties":
				value = map[string]any{}
			case "protected":
				value = false
			case "maintenance":
				return nil, fault(http.StatusInternalServerError, "Field `maintenance' cannot be None")
			case "conductor_group":
				if _, left := document[key]; !left {
					return nil, fault(http.StatusInternalServerError, "'conductor_group'")
				}
				return nil, fault(http.StatusInternalServerError, "'NoneType' object has no attribute 'lower'")
			}
		}
		document[key] = value
	}
	document["traits"] = n.fields["traits"]
	return document, nil
}

// checkNodeChange makes the conductor's checks of a change to the patched fields.
func (s *Server) checkNodeChange(n *node, patched map[string]any, reset bool) error {
	if _, found := findDriver(text(patched["driver"])); !found || text(patched["conductor_group"]) != "" {
		return noValidHost(text(patched["driver"]), text(patched["conductor_group"]), s.legacy())
	}
	if chassis := text(patched["chassis_uuid"]); chassis != "" && s.findChassis(chassis) == nil {
		return fault(http.StatusBadRequest, "Chassis %s could not be found.", chassis)
	}
	if parent := text(patched["parent_node"]); parent != "" && n.changed(patched, "parent_node") {
		if s.find(parent) == nil {
			return fault(http.StatusBadRequest, "Unable to apply the requested parent_node '%s'. Requested value was invalid.", parent)
		}
		patched["parent_node"] = s.find(parent).str("uuid")
	}
	if err := checkProtection(n, patched); err != nil {
		return err
	}
	if err := s.checkInterfaceChange(n, patched, reset); err != nil {
		return err
	}
	if err := n.locked(); err != nil {
		return err
	}
	if err := s.checkUnique(n, patched); err != nil {
		return err
	}
	if n.changed(patched, "resource_class") && n.str("resource_class") != "" && !interfacesChangeable(n.state()) {
		return fault(http.StatusConflict, "Node %s can not have resource_class updated unless it is in one of allowed (%s) states.%s",
			n.str("uuid"), interfaceStates, s.currentState(n))
	}
	if n.str("instance_uuid") != "" && text(patched["instance_uuid"]) == "" && n.str("allocation_uuid") != "" &&
		!n.flag("maintenance") && !interfacesChangeable(n.state()) {
		return fault(http.StatusConflict, "Node %s with an allocation can not have instance_uuid removed unless it is in one of allowed (%s) "+
			"states or in maintenance mode.%s", n.str("uuid"), interfaceStates, s.currentState(n))
	}
	return nil
}

// checkProtection makes the checks of protected and retired, and clears the reasons of attributes that become false.
func checkProtection(n *node, patched map[string]any) error {
	if n.changed(patched, "maintenance") && patched["maintenance"] != true {
		patched["maintenance_reason"], patched["fault"] = nil, nil
	}
	if n.changed(patched, "protected") {
		if patched["protected"] != true {
			patched["protected_reason"] = nil
		} else if n.state() != active && n.state() != rescued {
			return fault(http.StatusConflict, "Node %s can only be made protected in provision states 'active' or 'rescue', the current state is '%s'",
				n.str("uuid"), n.state())
		}
	}
	if n.changed(patched, "retired") {
		if patched["retired"] != true {
			patched["retired_reason"] = nil
		} else if n.state() == available {
			return fault(http.StatusConflict, "Node %s can not have 'retired' set in provision state 'available', the current state is '%s'",
				n.str("uuid"), n.state())
		}
	}
	for _, field := range []string{"protected", "retired"} {
		reason := field + "_reason"
		if n.changed(patched, reason) && text(patched[reason]) != "" && patched[field] != true {
			return fault(http.StatusBadRequest, "The %s field can only be set when %s is True", reason, field)
		}
	}
	return nil
}

// checkInterfaceChange checks changes of driver and interfaces, and sets the defaults.
func (s *Server) checkInterfaceChange(n *node, patched map[string]any, reset bool) error {
	newDriver := n.changed(patched, "driver")
	settle := newDriver
	for _, kind := range interfaceKinds {
		key := kind + "_interface"
		if !n.changed(patched, key) {
			if newDriver && reset {
				patched[key] = nil
			}
			continue
		}
		if !interfacesChangeable(n.state()) && patched["maintenance"] != true {
			return fault(http.StatusConflict, "Node %s can not have %s updated unless it is in one of allowed (%s) states or in maintenance mode.%s",
				n.str("uuid"), key, interfaceStates, s.currentState(n))
		}
		settle = true
	}
	if settle {
		return settleInterfaces(patched)
	}
	return nil
}

// currentState returns the end of 39's error messages: the state of the node.
func (s *Server) currentState(n *node) string {
	if s.legacy() {
		return ""
	}
	return " Current state is '" + n.str("provision_state") + "'."
}

// checkUnique refuses a name or an instance of another node, and a second instance on the node.
func (s *Server) checkUnique(n *node, patched map[string]any) error {
	instance := text(patched["instance_uuid"])
	if n.changed(patched, "instance_uuid") && instance != "" {
		if current := n.str("instance_uuid"); current != "" {
			return fault(http.StatusConflict, "Node %s is associated with instance %s.", n.str("uuid"), current)
		}
		if s.byInstance(instance) != nil {
			return fault(http.StatusConflict, "Instance %s is already associated with a node, it cannot be associated with this other node %s",
				instance, n.str("uuid"))
		}
	}
	if name := text(patched["name"]); n.changed(patched, "name") && s.nodeByName[name] != nil {
		return fault(http.StatusConflict, "A node with name %s already exists.", name)
	}
	return nil
}

// changed reports whether the patch changes the field.
func (n *node) changed(patched map[string]any, field string) bool {
	return !reflect.DeepEqual(n.fields[field], patched[field])
}

// saveNode stores the patched fields.
func (s *Server) saveNode(n *node, patched map[string]any) {
	if n.str("allocation_uuid") != "" && text(patched["instance_uuid"]) == "" {
		s.dropAllocation(n)
		patched["allocation_uuid"] = nil
	}
	if n.changed(patched, "name") {
		delete(s.nodeByName, n.str("name"))
		if name := text(patched["name"]); name != "" {
			s.nodeByName[name] = n
		}
	}
	if s.ParentNodeDefect {
		patched["parent_node"] = n.str("uuid")
	}
	patched["updated_at"] = timestamp(s.now)
	n.fields = patched
	n.rendered = nil
}

// renderSaved encodes a node that was just patched as Ironic's answer shows it: locked, and with times in whole seconds.
func (s *Server) renderSaved(c *call, n *node) []byte {
	stored := n.fields
	n.fields = maps.Clone(stored)
	for _, key := range []string{"created_at", "updated_at", "provision_updated_at", "inspection_started_at", "inspection_finished_at"} {
		n.fields[key] = coarse(stored[key])
	}
	n.put("reservation", conductorHost)
	out := s.render(c, n, s.viewFor(c, n, nil))
	n.fields, n.rendered = stored, nil
	return out
}
