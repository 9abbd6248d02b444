package fakeironic

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/conductor"
)

func (s *Server) routeTraits(c *api.Call, n *conductor.Node, rest []string) (api.Reply, error) {
	switch {
	case c.Minor >= 37:
	case c.Method == http.MethodPut:
		return api.Reply{}, api.RouterFault(http.StatusMethodNotAllowed, "")
	case c.Method == http.MethodDelete:
		return api.Reply{}, api.RouterFault(http.StatusNotFound, "")
	default:
		return api.Reply{}, api.NotAcceptable()
	}
	if len(rest) > 1 {
		return api.Reply{}, api.RouterFault(http.StatusNotFound, "")
	}
	if c.Method == http.MethodGet && len(rest) == 0 {
		return api.OK(http.StatusOK, api.Ordered{{"traits", n.Traits()}}), nil
	}
	var traits []string
	var err error
	switch {
	case c.Method == http.MethodPut && len(rest) == 0:
		traits, err = readTraits(c)
	case c.Method == http.MethodPut:
		err = api.CheckTrait("trait", rest[0])
		traits = append(n.Traits(), rest[0])
	case c.Method == http.MethodDelete && len(rest) == 0:
		traits = []string{}
	case c.Method == http.MethodDelete:
		traits = n.Traits()
		at := slices.Index(traits, rest[0])
		if at < 0 {
			return api.Reply{}, api.Fault(http.StatusNotFound, "Node %s doesn't have a trait '%s'", n.Str("uuid"), rest[0])
		}
		traits = slices.Delete(traits, at, at+1)
	default:
		return api.Reply{}, api.MethodNotAllowed("DELETE, GET, PUT")
	}
	if err != nil {
		return api.Reply{}, err
	}
	if err := s.conductor.SetTraits(n, traits); err != nil {
		return api.Reply{}, err
	}
	answer := api.Done(http.StatusNoContent)
	if c.Method == http.MethodPut && len(rest) == 1 {
		answer.Header.Set("Location", c.Base+"/v1/nodes/"+c.Path[1]+"/traits/"+rest[0])
	}
	return answer, nil
}

func readTraits(c *api.Call) ([]string, error) {
	body, err := c.Object("body")
	if err != nil {
		return nil, err
	}
	if err := (api.Schema{Name: "body", Members: map[string]api.Kind{"traits": {Types: []string{"array"}}}}).Check(body); err != nil {
		return nil, err
	}
	if _, given := body["traits"]; !given {
		return nil, api.Fault(http.StatusBadRequest, "A single node trait may be added via PUT /v1/nodes/<node "+
			"identifier>/traits/<trait> with no body, or all node traits may be replaced via PUT /v1/nodes/<node identifier>/traits with "+
			"the list of traits specified in the request body.")
	}
	if err := api.CheckTexts("body", body["traits"]); err != nil {
		return nil, err
	}
	traits := api.Texts(body["traits"])
	for _, trait := range traits {
		if err := api.CheckTrait("body", trait); err != nil {
			return nil, err
		}
	}
	return traits, nil
}

func (s *Server) nodeSchema() api.Schema {
	members := map[string]api.Kind{
		"automated_clean": api.BoolKind, "boot_mode": api.TextKind, "chassis_uuid": api.TextKind, "conductor_group": api.TextKind,
		"console_enabled": api.BoolKind, "description": {Types: api.TextKind.Types, MaxLength: maxDescription}, "driver": api.StringKind,
		"driver_info": api.ObjectKind, "extra": api.ObjectKind, "instance_info": api.ObjectKind, "instance_uuid": api.TextKind,
		"lessee":      api.TextKind,
		"maintenance": api.BoolKind, "name": api.TextKind, "network_data": api.ObjectKind, "owner": api.TextKind,
		"properties":     api.ObjectKind,
		"resource_class": api.ClassKind, "retired": api.BoolKind, "retired_reason": api.TextKind, "secure_boot": api.BoolKind,
		"shard": api.TextKind,
		"uuid":  api.TextKind,
	}
	for _, k := range api.InterfaceKinds {
		if k != "firmware" || !s.legacy() {
			members[k+"_interface"] = api.TextKind
		}
	}
	if !s.legacy() {
		members["parent_node"] = api.TextKind
		members["disable_power_off"] = api.BoolKind
		members["instance_name"] = api.Kind{Types: api.TextKind.Types, MaxLength: 255}
	}
	return api.Schema{Name: "node", Members: members, Required: []string{"driver"}}
}

const maxDescription = 4096

// reservedNames are words in the API's own paths.
var reservedNames = []string{"maintenance", "management", "states", "vendor_passthru", "detail", "validate"}

func checkNodeName(name any, complaint string) error {
	given, isText := name.(string)
	if isText && slices.Contains(reservedNames, given) {
		return api.Fault(http.StatusBadRequest, "The word \"%s\" is reserved and can not be used as a node name. Reserved words are: %s.",
			given, strings.Join(reservedNames, ", "))
	}
	if !isText || !api.ValidName(given) || api.IsUUID(given) {
		return api.Fault(http.StatusBadRequest, "%s'%s'", complaint, api.PyText(name))
	}
	return nil
}

// nodeByRef returns the node with the UUID or name in a path.
func (s *Server) nodeByRef(c *api.Call, ref string) (*conductor.Node, error) {
	if !api.IsUUID(ref) && !api.ValidName(ref) {
		return nil, api.RouterFault(http.StatusBadRequest, "Expected UUID or name for node: %s", ref)
	}
	if !s.legacy() && c.Minor >= 91 && strings.HasSuffix(ref, ".json") {
		return nil, &api.Error{Status: http.StatusInternalServerError, Empty: true}
	}
	if n := s.seen(c, ref); n != nil {
		return n, nil
	}
	return nil, api.Fault(http.StatusNotFound, "Node %s could not be found.", ref)
}

func (s *Server) createNode(c *api.Call) (api.Reply, error) {
	body, err := c.Object("node")
	if err != nil {
		return api.Reply{}, err
	}
	if err := s.checkNewNode(c, body); err != nil {
		return api.Reply{}, err
	}
	if api.Text(body["resource_class"]) == "" {
		body["resource_class"] = api.OrNull(s.DefaultResourceClass)
	}
	if c.Caller != nil && !c.IsSystem() { // it owns what it creates
		body["owner"] = c.Project()
	}
	fields := s.newNodeFields(c, body)
	if err := s.conductor.SettleInterfaces(fields); err != nil {
		return api.Reply{}, err
	}
	n := s.conductor.AddNode(fields)
	return c.Created("nodes/"+n.Str("uuid"), json.RawMessage(s.renderNew(c, n))), nil
}

// renderNew encodes a node that was just created, with created_at in whole seconds.
func (s *Server) renderNew(c *api.Call, n *conductor.Node) []byte {
	created := n.Fields["created_at"]
	n.Put("created_at", api.Coarse(created))
	out := s.render(c, n, s.viewFor(c, n, nil))
	n.Put("created_at", created)
	return out
}

// checkNewNode checks the body of a new node in Ironic's order.
func (s *Server) checkNewNode(c *api.Call, body map[string]any) error {
	if err := s.nodeSchema().Check(body); err != nil {
		return err
	}
	if data := api.Object(body["network_data"]); len(data) > 0 && api.CheckNetworkData(data, s.legacy()) != nil {
		return api.Fault(http.StatusBadRequest, "Schema error for node: %s is not valid under any of the given schemas. Possible root "+
			"cause: %s is not of type 'null'", api.PyRepr(data), api.PyRepr(data))
	}
	if err := checkNodeValues(body); err != nil {
		return err
	}
	for _, key := range api.SortedKeys(body) {
		if since, known := api.NodeFieldSince(key); known && since > c.Minor {
			return api.NotAcceptable()
		}
	}
	if name := body["name"]; name != nil {
		if err := checkNodeName(name, "Cannot create node with invalid name "); err != nil {
			return err
		}
	}
	if owner := api.Text(body["owner"]); owner != "" && !c.IsSystem() && owner != c.Project() {
		return api.Fault(http.StatusBadRequest, "Cannot create a node as a project scoped admin with an owner other than your own project.")
	}
	if chassis := api.Text(body["chassis_uuid"]); chassis != "" && s.findChassis(chassis) == nil {
		return api.Fault(http.StatusBadRequest, "Chassis %s could not be found.", chassis)
	}
	driver, group := api.Text(body["driver"]), api.Text(body["conductor_group"])
	if !s.serves(driver, group) {
		return conductor.NoValidHost(driver, group, s.legacy())
	}
	if api.Text(body["uuid"]) == "" {
		body["uuid"] = api.NewUUID()
	}
	if cpus, isText := api.Object(body["properties"])["cpus"].(string); isText && s.legacy() && strings.Trim(cpus, "0123456789") != "" {
		return api.Fault(http.StatusBadRequest, "The following properties for node %s should be non-negative integers, but provided "+
			"values are: cpus=%s", api.Text(body["uuid"]), cpus)
	}
	if uuid := api.Text(body["uuid"]); s.conductor.NodeByUUID[uuid] != nil {
		return api.Fault(http.StatusConflict, "A node with UUID %s already exists.", uuid)
	}
	if name := api.Text(body["name"]); s.conductor.NodeByName[name] != nil {
		return api.Fault(http.StatusConflict, "A node with name %s already exists.", name)
	}
	if instance := api.Text(body["instance_uuid"]); instance != "" && s.conductor.ByInstance(instance) != nil {
		return api.Fault(http.StatusConflict, "Instance %s is already associated with a node, it cannot be associated with "+
			"this other node %s",
			instance, api.Text(body["uuid"]))
	}
	return nil
}

// checkNodeValues checks UUIDs and booleans, and converts texts such as "yes" to booleans.
func checkNodeValues(body map[string]any) error {
	for _, key := range []string{"chassis_uuid", "instance_uuid", "uuid"} {
		if value := body[key]; value != nil && !api.IsUUID(api.Text(value)) {
			return api.Fault(http.StatusBadRequest, "Expected UUID for %s: %s", key, api.Text(value))
		}
	}
	for _, key := range []string{
		"automated_clean", "console_enabled", "disable_power_off", "maintenance", "protected", "retired", "secure_boot",
	} {
		value := body[key]
		if value == nil {
			continue
		}
		b, valid := api.ParseBool(value)
		if !valid {
			return api.NotBool(key, value)
		}
		body[key] = b
	}
	return nil
}

func (s *Server) newNodeFields(c *api.Call, body map[string]any) map[string]any {
	fields := map[string]any{}
	for _, f := range api.NodeFields {
		fields[f.Name] = nil
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
	fields["created_at"] = api.Timestamp(s.conductor.Now)
	for key, value := range body {
		if value != nil {
			fields[key] = value
		}
	}
	fields["conductor_group"] = api.Text(fields["conductor_group"])
	fields["provision_state"] = string(conductor.Enroll)
	if c.Minor < 11 {
		fields["provision_state"] = string(conductor.Available)
	}
	return fields
}

func (s *Server) deleteNode(n *conductor.Node) error {
	uuid := n.Str("uuid")
	if err := n.Locked(); err != nil {
		return err
	}
	if instance := n.Str("instance_uuid"); instance != "" && !n.Flag("maintenance") {
		return api.Fault(http.StatusConflict, "Node %s is associated with instance %s.", uuid, instance)
	}
	if n.Flag("protected") {
		return conductor.ProtectedFault(n)
	}
	if !n.State().Deletable() && !n.Flag("maintenance") {
		return api.Fault(http.StatusConflict, "Can not delete node \"%s\" while it is in provision state \"%s\". Valid provision states "+
			"to perform deletion are: \"('manageable', 'enroll', 'adopt failed', 'available')\", or set the node into maintenance mode",
			uuid, n.State())
	}
	s.portgroups = slices.DeleteFunc(s.portgroups, func(g *portgroup) bool { return g.node == n })
	s.conductor.RemoveNode(n)
	return nil
}
