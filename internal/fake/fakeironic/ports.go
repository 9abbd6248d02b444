package fakeironic

import (
	"net/http"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/conductor"
)

// portSchema is the schema of new and patched ports.
func (s *Server) portSchema() api.Schema {
	rules := api.Schema{Name: "port", Required: []string{"address", "node_uuid"}}
	rules.Members = map[string]api.Kind{"uuid": api.TextKind, "address": api.StringKind, "node_uuid": api.TextKind}
	for _, f := range conductor.PortFields {
		if len(f.Kind.Types) > 0 && f.Since <= s.maxMinor() {
			rules.Members[f.Name] = f.Kind
		}
	}
	return rules
}

// showPort returns the port as the API shows it, with the given fields; nil means all.
func showPort(c *api.Call, p *conductor.Port, fields []string) api.Ordered {
	wants := func(name string) bool { return fields == nil || slices.Contains(fields, name) }
	var out api.Ordered
	for _, m := range (api.Ordered{{"uuid", p.Uuid}, {"address", p.Address}, {"node_uuid", p.Node.Str("uuid")}}) {
		if wants(m.Key) {
			out = append(out, m)
		}
	}
	for _, f := range conductor.PortFields {
		if c.Minor >= f.Since && wants(f.Name) {
			out = append(out, api.Member{f.Name, p.Fields[f.Name]})
		}
	}
	return append(out, api.Member{"links", c.Links("ports/" + p.Uuid)})
}

// portQueryFields returns the fields that the query selects; nil means all.
func portQueryFields(c *api.Call) ([]string, error) {
	if !c.Query.Has("fields") {
		return nil, nil
	}
	fields := api.SplitList(c.Query["fields"])
	for _, name := range fields {
		known := slices.Contains([]string{"uuid", "address", "node_uuid"}, name)
		for _, f := range conductor.PortFields {
			if f.Name == name {
				known = true
				if f.Since > c.Minor {
					return nil, api.NotAcceptable()
				}
			}
		}
		if !known {
			return nil, api.Fault(http.StatusBadRequest, "Field(s) \"%s\" are not valid", name)
		}
	}
	return fields, nil
}

func portFieldSince(name string) int {
	for _, f := range conductor.PortFields {
		if f.Name == name {
			return f.Since
		}
	}
	return 0
}

// patchablePortFields are the fields of a port that PATCH may change.
func (s *Server) patchablePortFields() []string {
	if s.legacy() {
		return []string{
			"address", "extra", "is_smartnic", "local_link_connection", "node_uuid", "physical_network", "portgroup_uuid", "pxe_enabled",
		}
	}
	return []string{
		"address", "extra", "is_smartnic", "local_link_connection", "node_ident", "node_uuid", "physical_network", "portgroup_uuid",
		"pxe_enabled", "name", "description", "vendor", "category", "available_for_dynamic_portgroup",
	}
}

// routePorts answers /v1/ports; onNode limits it to the ports of one node.
func (s *Server) routePorts(c *api.Call, rest []string, onNode *conductor.Node) (api.Reply, error) {
	switch {
	case len(rest) == 0 && c.Method == http.MethodGet:
		return s.listPorts(c, onNode, false)
	case len(rest) == 1 && rest[0] == "detail" && c.Method == http.MethodGet:
		return s.listPorts(c, onNode, true)
	case len(rest) == 0 && c.Method == http.MethodPost && onNode == nil:
		return s.createPort(c)
	case len(rest) == 0 && (c.Method == http.MethodPatch || c.Method == http.MethodDelete):
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Missing mandatory parameter: port_uuid")
	case len(rest) == 0:
		return api.Reply{}, api.MethodNotAllowed("DELETE, GET, PATCH, POST")
	case len(rest) > 1:
		return api.Reply{}, api.RouterFault(http.StatusNotFound, "")
	}
	if !api.IsUUID(rest[0]) && s.legacy() {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Expected UUID for port_uuid: %s", rest[0])
	}
	if !api.IsUUID(rest[0]) && !api.ValidName(rest[0]) {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Expected UUID or name for port_ident: %s", rest[0])
	}
	p := s.findPort(rest[0])
	if p == nil {
		return api.Reply{}, api.Fault(http.StatusNotFound, "Port %s could not be found.", rest[0])
	}
	switch c.Method {
	case http.MethodGet:
		if err := c.Accept("fields"); err != nil {
			return api.Reply{}, err
		}
		fields, err := portQueryFields(c)
		if err != nil {
			return api.Reply{}, err
		}
		return api.OK(http.StatusOK, showPort(c, p, fields)), nil
	case http.MethodPatch:
		return s.patchPort(c, p)
	case http.MethodDelete:
		return api.Done(http.StatusNoContent), s.deletePort(p)
	}
	return api.Reply{}, api.MethodNotAllowed("DELETE, GET, PATCH")
}

func (s *Server) findPort(ref string) *conductor.Port {
	for _, p := range s.conductor.Ports {
		if p.Uuid == ref || api.Text(p.Fields["name"]) == ref && ref != "" {
			return p
		}
	}
	return nil
}

func (s *Server) listPorts(c *api.Call, onNode *conductor.Node, detail bool) (api.Reply, error) {
	err := c.Accept("node", "node_uuid", "address", "limit", "marker", "sort_key", "sort_dir", "fields", "portgroup", "detail", "shard")
	if err != nil {
		return api.Reply{}, err
	}
	asked, _ := api.ParseBool(c.Query.Get("detail"))
	detail = detail || asked
	fields, err := portQueryFields(c)
	if err != nil {
		return api.Reply{}, err
	}
	if detail && fields != nil {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Can not specify ?detail=True and fields in the same request.")
	}
	if fields == nil && !detail {
		fields = []string{"uuid", "address"}
	}
	if !c.Query.Has("node") && c.Query.Has("node_uuid") && !api.IsUUID(c.Query.Get("node_uuid")) {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Expected UUID for node_uuid: %s", c.Query.Get("node_uuid"))
	}
	for _, key := range []string{"node", "node_uuid"} {
		if ref := c.Query.Get(key); ref != "" {
			if onNode = s.conductor.Find(ref); onNode == nil {
				return api.Reply{}, api.Fault(http.StatusNotFound, "Node %s could not be found.", ref)
			}
		}
	}
	// Ironic ignores an empty address and answers with all ports.
	address := strings.ToLower(c.Query.Get("address"))
	if address != "" {
		if address, err = api.ReadMAC(address); err != nil {
			return api.Reply{}, err
		}
	}
	group := s.findPortgroup(c.Query.Get("portgroup"))
	if ref := c.Query.Get("portgroup"); ref != "" && group == nil {
		return api.Reply{}, api.Fault(http.StatusNotFound, "Portgroup %s could not be found.", ref)
	}
	var selected []*conductor.Port
	for _, p := range s.conductor.Ports {
		if s.lists(c, "port", p.Node) && (onNode == nil || p.Node == onNode) && (address == "" || p.Address == address) &&
			(group == nil || p.Fields["portgroup_uuid"] == group.uuid) {
			selected = append(selected, p)
		}
	}
	shown := fields
	if detail {
		shown = nil
	}
	return api.Listing[*conductor.Port]{
		Key: "ports", Noun: "Port", Fields: fields,
		ID:    func(p *conductor.Port) string { return p.Uuid },
		Known: func(id string) bool { return s.findPort(id) != nil },
		Show:  func(p *conductor.Port) (any, error) { return showPort(c, p, shown), nil },
	}.Reply(c, selected)
}

func (s *Server) createPort(c *api.Call) (api.Reply, error) {
	body, err := c.Object("port")
	if err != nil {
		return api.Reply{}, err
	}
	if ident, given := body["node_ident"]; given && c.Minor >= 94 {
		delete(body, "node_ident")
		if n := s.conductor.Find(api.Text(ident)); n != nil {
			body["node_uuid"] = n.Str("uuid")
		}
	}
	if err := s.portSchema().Check(body); err != nil {
		return api.Reply{}, err
	}
	if err := checkPortValues(c, body, nil); err != nil {
		return api.Reply{}, err
	}
	mac, err := api.ReadMAC(body["address"])
	if err != nil {
		return api.Reply{}, err
	}
	n := s.conductor.NodeByUUID[api.Text(body["node_uuid"])]
	if n == nil {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Node %s could not be found.", api.Text(body["node_uuid"]))
	}
	if err := n.Locked(); err != nil {
		return api.Reply{}, err
	}
	if s.conductor.PortByMAC[mac] != nil {
		return api.Reply{}, api.Fault(http.StatusConflict, "A port with MAC address %s already exists.", mac)
	}
	uuid := api.Text(body["uuid"])
	if uuid == "" {
		uuid = api.NewUUID()
	}
	if s.findPort(uuid) != nil {
		return api.Reply{}, api.Fault(http.StatusConflict, "A port with UUID %s already exists.", uuid)
	}
	if err := s.uniquePortName(nil, body); err != nil {
		return api.Reply{}, err
	}
	if err := s.checkMembership(c, n, nil, body, func(string) bool { return true }); err != nil {
		return api.Reply{}, err
	}
	p := s.conductor.AddPort(n, uuid, mac, body)
	return c.Created("ports/"+p.Uuid, api.CoarseTimes(showPort(c, p, nil))), nil
}

// uniquePortName refuses a name that another port has, on any node.
func (s *Server) uniquePortName(p *conductor.Port, body map[string]any) error {
	name := api.Text(body["name"])
	if other := s.findPort(name); name != "" && other != nil && other != p {
		return api.Fault(http.StatusConflict, "A port with name %s already exists.", name)
	}
	return nil
}

// patchVersioned are the fields of a port whose API version Ironic checks in a PATCH. It writes the others, and does not show them.
var patchVersioned = []string{"pxe_enabled", "local_link_connection", "portgroup_uuid", "physical_network", "is_smartnic"}

// checkPortValues checks the versions of some fields, nil means all, UUIDs, booleans and the connection to the switch.
func checkPortValues(c *api.Call, body map[string]any, versioned []string) error {
	for _, key := range []string{"uuid", "node_uuid", "portgroup_uuid"} {
		if value := body[key]; value != nil && !api.IsUUID(api.Text(value)) {
			return api.Fault(http.StatusBadRequest, "Expected UUID for %s: %s", key, api.Text(value))
		}
	}
	for _, key := range []string{"is_smartnic", "pxe_enabled"} {
		if value := body[key]; value != nil {
			b, valid := api.ParseBool(value)
			if !valid {
				return api.NotBool(key, value)
			}
			body[key] = b
		}
	}
	for _, f := range conductor.PortFields {
		if _, given := body[f.Name]; given && f.Since > c.Minor && (versioned == nil || slices.Contains(versioned, f.Name)) {
			return api.NotAcceptable()
		}
	}
	return api.CheckLink(body)
}

// connectivity lists the attributes of a port that cannot change while its node is in use.
var connectivity = []string{"local_link_connection", "physical_network", "portgroup_uuid", "pxe_enabled"}

func (s *Server) patchPort(c *api.Call, p *conductor.Port) (api.Reply, error) {
	ops, err := c.Patch()
	if err != nil {
		return api.Reply{}, err
	}
	var allowed []string
	for _, f := range conductor.PortFields {
		if len(f.Kind.Types) > 0 && f.Since <= s.maxMinor() {
			allowed = append(allowed, f.Name)
		}
	}
	if err := api.CheckPatchable(ops, s.patchablePortFields()); err != nil {
		return api.Reply{}, err
	}
	for _, op := range ops {
		switch {
		case op.Field() == "node_uuid" && op.Value != p.Node.Str("uuid"):
			return api.Reply{}, s.movedTo(op.Value)
		case op.Op == "remove" && (op.Path == "/pxe_enabled" || op.Path == "/is_smartnic"):
			return api.Reply{}, api.Fault(http.StatusInternalServerError, "Field `%s' cannot be None", op.Field())
		}
	}
	document := api.Object(api.Clone(p.Fields))
	document["address"], document["node_uuid"] = p.Address, p.Node.Str("uuid")
	if err := api.ApplyPatch(document, ops); err != nil {
		return api.Reply{}, err
	}
	body := map[string]any{"node_uuid": document["node_uuid"]}
	for _, key := range append([]string{"address"}, allowed...) {
		if value, left := document[key]; left && (value != nil || key == "address") &&
			(portFieldSince(key) <= c.Minor || slices.ContainsFunc(ops, func(op api.PatchOp) bool { return op.Field() == key })) {
			body[key] = value
		}
	}
	rules := s.portSchema()
	rules.Name = "patch"
	if err := rules.Check(body); err != nil {
		return api.Reply{}, err
	}
	if err := checkPortValues(c, body, patchVersioned); err != nil {
		return api.Reply{}, err
	}
	mac, err := api.ReadMAC(body["address"])
	if err != nil {
		return api.Reply{}, err
	}
	if err := s.checkPortChange(c, p, mac, body, ops); err != nil {
		return api.Reply{}, err
	}
	switch refused, failed := s.conductor.PortChanged(p, body); {
	case refused != "":
		return api.Reply{}, api.Fault(http.StatusBadRequest, "%s", refused)
	case failed != "":
		return api.Reply{}, api.Fault(http.StatusInternalServerError, "Failed to configure the switch: %s", failed)
	}
	s.conductor.SavePort(p, mac, body, ops)
	return api.OK(http.StatusOK, api.CoarseTimes(showPort(c, p, nil))), nil
}

// checkPortChange applies the conductor's rules about ports of nodes in use.
func (s *Server) checkPortChange(c *api.Call, p *conductor.Port, mac string, body map[string]any, ops []api.PatchOp) error {
	n := p.Node
	if err := n.Locked(); err != nil {
		return err
	}
	if mac != p.Address {
		if (n.Str("instance_uuid") != "" || n.State() == conductor.Active) && !n.Flag("maintenance") {
			return api.Fault(http.StatusConflict, "Cannot update hardware address for port %s as node %s is active or has "+
				"instance UUID assigned",
				p.Uuid, n.Str("uuid"))
		}
		if s.conductor.PortByMAC[mac] != nil {
			return api.Fault(http.StatusConflict, "A port with MAC address %s already exists.", mac)
		}
	}
	var changed []string
	for _, op := range ops {
		key := op.Field()
		if slices.Contains(connectivity, key) && !slices.Contains(changed, key) && api.PyRepr(p.Fields[key]) != api.PyRepr(body[key]) {
			changed = append(changed, key)
		}
	}
	free := n.State() == conductor.Enroll || n.State() == conductor.Inspecting || n.State() == conductor.InspectWait ||
		n.State() == conductor.Manageable
	if len(changed) > 0 && !free && !n.Flag("maintenance") {
		return api.Fault(http.StatusConflict, "Port %s can not have any connectivity attributes (portgroup_id, local_link_connection, "+
			"physical_network, pxe_enabled) updated unless node %s is in a enroll, inspecting, inspect wait, manageable state or in "+
			"maintenance mode. The current state is %s.",
			p.Uuid, n.Str("uuid"), n.State())
	}
	if err := s.uniquePortName(p, body); err != nil {
		return err
	}
	if fault := s.conductor.NetworkFault(n); fault != "" {
		return api.Fault(http.StatusBadRequest, "%s", fault)
	}
	return s.checkMembership(c, n, p, body, func(key string) bool {
		return slices.ContainsFunc(ops, func(op api.PatchOp) bool { return op.Field() == key })
	})
}

func (s *Server) deletePort(p *conductor.Port) error {
	if err := p.Node.Locked(); err != nil {
		return err
	}
	if vif := p.VIF(); vif != "" && !p.Node.Flag("maintenance") {
		use := "use"
		if s.legacy() {
			use = "tenant use"
		}
		return api.Fault(http.StatusConflict, "Cannot delete the port %s as it is bound to VIF %s for %s.", p.Uuid, vif, use)
	}
	s.conductor.RemovePort(p)
	return nil
}
