package fakeironic

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/conductor"
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

func interfacesChangeable(s conductor.State) bool {
	return slices.Contains(strings.Split(interfaceStates, ", "), string(s))
}

func (s *Server) patchNode(c *api.Call, ref string) (api.Reply, error) {
	if err := c.Accept("reset_interfaces"); err != nil {
		return api.Reply{}, err
	}
	ops, err := c.Patch()
	if err != nil {
		return api.Reply{}, err
	}
	reset, _ := api.ParseBool(c.Query.Get("reset_interfaces"))
	if c.Query.Has("reset_interfaces") && c.Minor < 45 {
		return api.Reply{}, api.NotAcceptable()
	}
	if err := s.checkNodePatch(c, ops, reset); err != nil {
		return api.Reply{}, err
	}
	n, err := s.nodeByRef(c, ref)
	if err != nil {
		return api.Reply{}, err
	}
	if err := s.authorizePatch(c, n, ops); err != nil {
		return api.Reply{}, err
	}
	if err := s.checkPatchState(c, n, ref, ops); err != nil {
		return api.Reply{}, err
	}
	patched, err := s.patchedFields(n, ops)
	if err != nil {
		return api.Reply{}, err
	}
	if err := s.checkNodeChange(n, patched, reset); err != nil {
		return api.Reply{}, err
	}
	if !s.legacy() {
		nameInstance(patched, ops)
	}
	s.conductor.SaveNode(n, patched)
	return api.OK(http.StatusOK, json.RawMessage(s.renderSaved(c, n))), nil
}

// nameInstance gives an instance without a name the display_name of instance_info, when a client changes that.
func nameInstance(patched map[string]any, ops []api.PatchOp) {
	name := api.Text(api.Object(patched["instance_info"])["display_name"])
	changes := slices.ContainsFunc(ops, func(op api.PatchOp) bool { return op.Field() == "instance_info" })
	if changes && name != "" && api.Text(patched["instance_name"]) == "" {
		patched["instance_name"] = name
	}
}

// checkNodePatch makes the checks that need only the patch.
func (s *Server) checkNodePatch(c *api.Call, ops []api.PatchOp, reset bool) error {
	if err := api.CheckPatchable(ops, s.patchableNodeFields()); err != nil {
		return err
	}
	for _, op := range ops {
		if since, _ := api.NodeFieldSince(op.Field()); since > c.Minor && op.Op != "remove" {
			return api.NotAcceptable()
		}
		if op.Path == "/automated_clean" && op.Op == "remove" {
			return api.Fault(http.StatusInternalServerError, "'value'")
		}
	}
	if reset && len(api.PatchValues(ops, "/driver")) == 0 {
		return api.Fault(http.StatusBadRequest, "The reset_interfaces parameter can only be used when changing the node's driver.")
	}
	for _, description := range api.PatchValues(ops, "/description") {
		if len([]rune(api.Text(description))) > maxDescription {
			return api.Fault(http.StatusBadRequest, "Cannot update node with description exceeding %d characters", maxDescription)
		}
	}
	for _, data := range api.PatchValues(ops, "/network_data") {
		if data == nil {
			continue
		}
		if err := api.CheckNetworkData(api.Object(data), s.legacy()); err != nil {
			return err
		}
	}
	return nil
}

// checkPatchState refuses a patch while an operation is in progress on the node.
func (s *Server) checkPatchState(c *api.Call, n *conductor.Node, ref string, ops []api.PatchOp) error {
	freesInstance := len(ops) == 1 && ops[0].Op == "remove" && ops[0].Path == "/instance_uuid"
	switch {
	case n.Flag("maintenance") && freesInstance:
	case n.Str("target_provision_state") != "" && !n.State().PatchableInTransition():
		return api.Fault(http.StatusConflict, "Node %s can not be updated while a state transition is in progress.", ref)
	case n.State() == conductor.Inspecting && c.Minor >= 39:
		return api.Fault(http.StatusConflict, "Cannot update node \"%s\" while it is in state \"%s\".", n.Str("uuid"), conductor.Inspecting)
	case len(api.PatchValues(ops, "/owner")) > 0:
		if a := s.conductor.AllocationOf(n); a != nil && a.Owner != "" {
			return api.Fault(http.StatusConflict,
				"Cannot update owner of node \"%s\" while it is allocated to an allocation with an  owner.", n.Str("uuid"))
		}
	}
	for _, name := range api.PatchValues(ops, "/name") {
		if err := checkNodeName(name, "Node "+ref+": Cannot change name to invalid name "); err != nil {
			return err
		}
	}
	return nil
}

// patchedFields applies the patch to a copy of the fields and checks the result.
func (s *Server) patchedFields(n *conductor.Node, ops []api.PatchOp) (map[string]any, error) {
	document := api.Object(api.Clone(n.Fields))
	if err := api.ApplyPatch(document, ops); err != nil {
		return nil, err
	}
	body := map[string]any{}
	checked := s.nodeSchema()
	checked.Name = "patch"
	checked.Members["protected"] = api.BoolKind
	checked.Members["protected_reason"] = api.TextKind
	for _, key := range s.patchableNodeFields() {
		if value, left := document[key]; left {
			body[key] = value
		}
	}
	if err := checked.Check(body); err != nil {
		return nil, err
	}
	if err := checkNodeValues(body); err != nil {
		return nil, err
	}
	return s.withoutHoles(n, document, body)
}

// withoutHoles sets the fields that the patch removed to their empty values.
func (s *Server) withoutHoles(n *conductor.Node, document, body map[string]any) (map[string]any, error) {
	for _, key := range s.patchableNodeFields() {
		value := body[key]
		if value == nil {
			switch key {
			case "driver_info", "extra", "instance_info", "network_data", "properties":
				value = map[string]any{}
			case "protected":
				value = false
			case "maintenance":
				return nil, api.Fault(http.StatusInternalServerError, "Field `maintenance' cannot be None")
			case "conductor_group":
				if _, left := document[key]; !left {
					return nil, api.Fault(http.StatusInternalServerError, "'conductor_group'")
				}
				return nil, api.Fault(http.StatusInternalServerError, "'NoneType' object has no attribute 'lower'")
			}
		}
		document[key] = value
	}
	document["traits"] = n.Fields["traits"]
	return document, nil
}

// checkNodeChange makes the conductor's checks of a change to the patched fields.
func (s *Server) checkNodeChange(n *conductor.Node, patched map[string]any, reset bool) error {
	if driver, group := api.Text(patched["driver"]), api.Text(patched["conductor_group"]); !s.serves(driver, group) {
		return conductor.NoValidHost(driver, group, s.legacy())
	}
	if chassis := api.Text(patched["chassis_uuid"]); chassis != "" && s.findChassis(chassis) == nil {
		return api.Fault(http.StatusBadRequest, "Chassis %s could not be found.", chassis)
	}
	if parent := api.Text(patched["parent_node"]); parent != "" && n.Changed(patched, "parent_node") {
		if s.conductor.Find(parent) == nil {
			return api.Fault(http.StatusBadRequest, "Unable to apply the requested parent_node '%s'. Requested value was invalid.", parent)
		}
		patched["parent_node"] = s.conductor.Find(parent).Str("uuid")
	}
	if err := checkProtection(n, patched); err != nil {
		return err
	}
	if n.Changed(patched, "driver") && n.Flag("console_enabled") {
		return api.Fault(http.StatusConflict, "Node %s can not update the driver while the console is enabled. Please stop the "+
			"console first.", n.Str("uuid"))
	}
	if err := s.checkInterfaceChange(n, patched, reset); err != nil {
		return err
	}
	if err := n.Locked(); err != nil {
		return err
	}
	if err := s.checkUnique(n, patched); err != nil {
		return err
	}
	if n.Changed(patched, "resource_class") && n.Str("resource_class") != "" && !interfacesChangeable(n.State()) {
		return api.Fault(http.StatusConflict, "Node %s can not have resource_class updated unless it is in one of allowed (%s) states.%s",
			n.Str("uuid"), interfaceStates, s.currentState(n))
	}
	if n.Str("instance_uuid") != "" && api.Text(patched["instance_uuid"]) == "" && n.Str("allocation_uuid") != "" &&
		!n.Flag("maintenance") && !interfacesChangeable(n.State()) {
		return api.Fault(http.StatusConflict, "Node %s with an allocation can not have instance_uuid removed unless it is in one of "+
			"allowed (%s) states or in maintenance mode.%s", n.Str("uuid"), interfaceStates, s.currentState(n))
	}
	return nil
}

// checkProtection makes the checks of protected and retired, and clears the reasons of attributes that become false.
func checkProtection(n *conductor.Node, patched map[string]any) error {
	if n.Changed(patched, "maintenance") && patched["maintenance"] != true {
		patched["maintenance_reason"], patched["fault"] = nil, nil
	}
	if n.Changed(patched, "protected") {
		if patched["protected"] != true {
			patched["protected_reason"] = nil
		} else if n.State() != conductor.Active && n.State() != conductor.Rescued {
			return api.Fault(http.StatusConflict, "Node %s can only be made protected in provision states 'active' or 'rescue', the "+
				"current state is '%s'",
				n.Str("uuid"), n.State())
		}
	}
	if n.Changed(patched, "retired") {
		if patched["retired"] != true {
			patched["retired_reason"] = nil
		} else if n.State() == conductor.Available {
			return api.Fault(http.StatusConflict, "Node %s can not have 'retired' set in provision state 'available', the "+
				"current state is '%s'",
				n.Str("uuid"), n.State())
		}
	}
	for _, field := range []string{"protected", "retired"} {
		reason := field + "_reason"
		if n.Changed(patched, reason) && api.Text(patched[reason]) != "" && patched[field] != true {
			return api.Fault(http.StatusBadRequest, "The %s field can only be set when %s is True", reason, field)
		}
	}
	return nil
}

// checkInterfaceChange checks changes of driver and interfaces, and sets the defaults.
func (s *Server) checkInterfaceChange(n *conductor.Node, patched map[string]any, reset bool) error {
	newDriver := n.Changed(patched, "driver")
	settle := newDriver
	for _, kind := range api.InterfaceKinds {
		key := kind + "_interface"
		if !n.Changed(patched, key) {
			if newDriver && reset {
				patched[key] = nil
			}
			continue
		}
		if !interfacesChangeable(n.State()) && patched["maintenance"] != true {
			return api.Fault(http.StatusConflict, "Node %s can not have %s updated unless it is in one of allowed (%s) states or in "+
				"maintenance mode.%s",
				n.Str("uuid"), key, interfaceStates, s.currentState(n))
		}
		settle = true
	}
	if settle {
		return s.conductor.SettleInterfaces(patched)
	}
	return nil
}

// currentState returns the end of 39's error messages: the state of the node.
func (s *Server) currentState(n *conductor.Node) string {
	if s.legacy() {
		return ""
	}
	return " Current state is '" + n.Str("provision_state") + "'."
}

// checkUnique refuses a name or an instance of another node, and a second instance on the node.
func (s *Server) checkUnique(n *conductor.Node, patched map[string]any) error {
	instance := api.Text(patched["instance_uuid"])
	if n.Changed(patched, "instance_uuid") && instance != "" {
		if current := n.Str("instance_uuid"); current != "" {
			return api.Fault(http.StatusConflict, "Node %s is associated with instance %s.", n.Str("uuid"), current)
		}
		if s.conductor.ByInstance(instance) != nil {
			return api.Fault(http.StatusConflict, "Instance %s is already associated with a node, it cannot be associated with "+
				"this other node %s",
				instance, n.Str("uuid"))
		}
	}
	if name := api.Text(patched["name"]); n.Changed(patched, "name") && s.conductor.NodeByName[name] != nil {
		return api.Fault(http.StatusConflict, "A node with name %s already exists.", name)
	}
	return nil
}

// renderSaved encodes a node that was just patched as Ironic's answer shows it: locked, and with times in whole seconds.
func (s *Server) renderSaved(c *api.Call, n *conductor.Node) []byte {
	stored := n.Fields
	n.Fields = maps.Clone(stored)
	for _, key := range []string{"created_at", "updated_at", "provision_updated_at", "inspection_started_at", "inspection_finished_at"} {
		n.Fields[key] = api.Coarse(stored[key])
	}
	n.Put("reservation", conductor.Host)
	out := s.render(c, n, s.viewFor(c, n, nil))
	n.Fields, n.Rendered = stored, nil
	return out
}
