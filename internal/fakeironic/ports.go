package fakeironic

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// port is a network card.
type port struct {
	uuid, address string
	node          *node
	fields        map[string]any // all but uuid, address and node_uuid
}

// routePorts answers /v1/ports; onNode limits it to the ports of one node.
func (s *Server) routePorts(c *call, rest []string, onNode *node) (reply, error) {
	switch {
	case len(rest) == 0 && c.method == http.MethodGet:
		return s.listPorts(c, onNode, false)
	case len(rest) == 1 && rest[0] == "detail" && c.method == http.MethodGet:
		return s.listPorts(c, onNode, true)
	case len(rest) == 0 && c.method == http.MethodPost && onNode == nil:
		return s.createPort(c)
	case len(rest) == 0 && (c.method == http.MethodPatch || c.method == http.MethodDelete):
		return reply{}, fault(http.StatusBadRequest, "Missing mandatory parameter: port_uuid")
	case len(rest) == 0:
		return reply{}, methodNotAllowed("DELETE, GET, PATCH, POST")
	case len(rest) > 1:
		return reply{}, routerFault(http.StatusNotFound, "")
	}
	if !isUUID(rest[0]) && s.legacy() {
		return reply{}, fault(http.StatusBadRequest, "Expected UUID for port_uuid: %s", rest[0])
	}
	if !isUUID(rest[0]) && !validName(rest[0]) {
		return reply{}, fault(http.StatusBadRequest, "Expected UUID or name for port_ident: %s", rest[0])
	}
	p := s.findPort(rest[0])
	if p == nil {
		return reply{}, fault(http.StatusNotFound, "Port %s could not be found.", rest[0])
	}
	switch c.method {
	case http.MethodGet:
		if err := c.accept("fields"); err != nil {
			return reply{}, err
		}
		fields, err := portQueryFields(c)
		if err != nil {
			return reply{}, err
		}
		return ok(http.StatusOK, showPort(c, p, fields)), nil
	case http.MethodPatch:
		return s.patchPort(c, p)
	case http.MethodDelete:
		return done(http.StatusNoContent), s.deletePort(p)
	}
	return reply{}, methodNotAllowed("DELETE, GET, PATCH")
}

func (s *Server) findPort(ref string) *port {
	for _, p := range s.ports {
		if p.uuid == ref || text(p.fields["name"]) == ref && ref != "" {
			return p
		}
	}
	return nil
}

func (s *Server) listPorts(c *call, onNode *node, detail bool) (reply, error) {
	err := c.accept("node", "node_uuid", "address", "limit", "marker", "sort_key", "sort_dir", "fields", "portgroup", "detail", "shard")
	if err != nil {
		return reply{}, err
	}
	asked, _ := parseBool(c.query.Get("detail"))
	detail = detail || asked
	fields, err := portQueryFields(c)
	if err != nil {
		return reply{}, err
	}
	if detail && fields != nil {
		return reply{}, fault(http.StatusBadRequest, "Can not specify ?detail=True and fields in the same request.")
	}
	if fields == nil && !detail {
		fields = []string{"uuid", "address"}
	}
	if !c.query.Has("node") && c.query.Has("node_uuid") && !isUUID(c.query.Get("node_uuid")) {
		return reply{}, fault(http.StatusBadRequest, "Expected UUID for node_uuid: %s", c.query.Get("node_uuid"))
	}
	for _, key := range []string{"node", "node_uuid"} {
		if ref := c.query.Get(key); ref != "" {
			if onNode = s.find(ref); onNode == nil {
				return reply{}, fault(http.StatusNotFound, "Node %s could not be found.", ref)
			}
		}
	}
	// Ironic ignores an empty address and answers with all ports.
	address := strings.ToLower(c.query.Get("address"))
	if address != "" {
		if address, err = readMAC(address); err != nil {
			return reply{}, err
		}
	}
	var selected []*port
	for _, p := range s.ports {
		if s.lists(c, "port", p.node) && (onNode == nil || p.node == onNode) && (address == "" || p.address == address) {
			selected = append(selected, p)
		}
	}
	page, err := paged(c, fields, selected, func(p *port) string { return p.uuid }, func(marker string) error {
		if s.findPort(marker) == nil {
			return fault(http.StatusNotFound, "Port %s could not be found.", marker)
		}
		return nil
	})
	if err != nil {
		return reply{}, err
	}
	if detail {
		fields = nil
	}
	items := make([]json.RawMessage, len(page.items))
	for i, p := range page.items {
		items[i] = encode(showPort(c, p, fields))
	}
	return page.reply("ports", items), nil
}

// createPort answers POST /v1/ports.
func (s *Server) createPort(c *call) (reply, error) {
	body, err := c.object("port")
	if err != nil {
		return reply{}, err
	}
	if ident, given := body["node_ident"]; given && c.minor >= 94 {
		delete(body, "node_ident")
		if n := s.find(text(ident)); n != nil {
			body["node_uuid"] = n.str("uuid")
		}
	}
	if err := s.portSchema().check(body); err != nil {
		return reply{}, err
	}
	if err := checkPortValues(c, body); err != nil {
		return reply{}, err
	}
	mac, err := readMAC(body["address"])
	if err != nil {
		return reply{}, err
	}
	n := s.nodeByUUID[text(body["node_uuid"])]
	if n == nil {
		return reply{}, fault(http.StatusBadRequest, "Node %s could not be found.", text(body["node_uuid"]))
	}
	if err := n.locked(); err != nil {
		return reply{}, err
	}
	if s.portByMAC[mac] != nil {
		return reply{}, fault(http.StatusConflict, "A port with MAC address %s already exists.", mac)
	}
	uuid := text(body["uuid"])
	if uuid == "" {
		uuid = newUUID()
	}
	if s.findPort(uuid) != nil {
		return reply{}, fault(http.StatusConflict, "A port with UUID %s already exists.", uuid)
	}
	if err := s.uniquePortName(nil, body); err != nil {
		return reply{}, err
	}
	if err := s.checkMembership(c, n, nil, body, func(string) bool { return true }); err != nil {
		return reply{}, err
	}
	p := s.addPort(n, uuid, mac, body)
	return c.created("ports/"+p.uuid, coarseTimes(showPort(c, p, nil))), nil
}

// uniquePortName refuses a name that another port has, on any node.
func (s *Server) uniquePortName(p *port, body map[string]any) error {
	name := text(body["name"])
	if other := s.findPort(name); name != "" && other != nil && other != p {
		return fault(http.StatusConflict, "A port with name %s already exists.", name)
	}
	return nil
}

// addPort stores a new port.
func (s *Server) addPort(n *node, uuid, mac string, body map[string]any) *port {
	p := &port{uuid: uuid, address: mac, node: n, fields: map[string]any{}}
	for _, f := range portFields {
		p.fields[f.name] = f.initial
		if f.kind.types != nil && slices.Contains(f.kind.types, "object") || f.name == "internal_info" {
			p.fields[f.name] = map[string]any{}
		}
		if value := body[f.name]; value != nil {
			p.fields[f.name] = value
		}
	}
	p.fields["created_at"] = timestamp(s.now)
	s.ports = append(s.ports, p)
	s.portByMAC[mac] = p
	return p
}

// checkPortValues checks versions, UUIDs, booleans and the connection to the switch.
func checkPortValues(c *call, body map[string]any) error {
	for _, key := range []string{"uuid", "node_uuid", "portgroup_uuid"} {
		if value := body[key]; value != nil && !isUUID(text(value)) {
			return fault(http.StatusBadRequest, "Expected UUID for %s: %s", key, text(value))
		}
	}
	for _, key := range []string{"is_smartnic", "pxe_enabled"} {
		if value := body[key]; value != nil {
			b, valid := parseBool(value)
			if !valid {
				return notBool(key, value)
			}
			body[key] = b
		}
	}
	for _, f := range portFields {
		if _, given := body[f.name]; given && f.since > c.minor {
			return notAcceptable()
		}
	}
	return checkLink(body)
}

// connectivity lists the attributes of a port that cannot change while its node is in use.
var connectivity = []string{"local_link_connection", "physical_network", "portgroup_uuid", "pxe_enabled"}

func (s *Server) patchPort(c *call, p *port) (reply, error) {
	ops, err := c.patch()
	if err != nil {
		return reply{}, err
	}
	var allowed []string
	for _, f := range portFields {
		if len(f.kind.types) > 0 && f.since <= s.maxMinor() {
			allowed = append(allowed, f.name)
		}
	}
	if err := checkPatchable(ops, s.patchablePortFields()); err != nil {
		return reply{}, err
	}
	for _, op := range ops {
		switch {
		case op.field() == "node_uuid" && op.value != p.node.str("uuid"):
			return reply{}, fault(http.StatusInternalServerError, "Unexpected error raised by RPC")
		case op.op == "remove" && (op.path == "/pxe_enabled" || op.path == "/is_smartnic"):
			return reply{}, fault(http.StatusInternalServerError, "Field `%s' cannot be None", op.field())
		}
	}
	document := object(clone(p.fields))
	document["address"], document["node_uuid"] = p.address, p.node.str("uuid")
	if err := applyPatch(document, ops); err != nil {
		return reply{}, err
	}
	body := map[string]any{"node_uuid": document["node_uuid"]}
	for _, key := range append([]string{"address"}, allowed...) {
		if value, left := document[key]; left && (value != nil || key == "address") && portFieldSince(key) <= c.minor {
			body[key] = value
		}
	}
	rules := s.portSchema()
	rules.name = "patch"
	if err := rules.check(body); err != nil {
		return reply{}, err
	}
	if err := checkPortValues(c, body); err != nil {
		return reply{}, err
	}
	mac, err := readMAC(body["address"])
	if err != nil {
		return reply{}, err
	}
	if err := s.checkPortChange(c, p, mac, body, ops); err != nil {
		return reply{}, err
	}
	s.savePort(p, mac, body, ops)
	return ok(http.StatusOK, coarseTimes(showPort(c, p, nil))), nil
}

// checkPortChange applies the conductor's rules about ports of nodes in use.
func (s *Server) checkPortChange(c *call, p *port, mac string, body map[string]any, ops []patchOp) error {
	n := p.node
	if err := n.locked(); err != nil {
		return err
	}
	if mac != p.address {
		if (n.str("instance_uuid") != "" || n.state() == active) && !n.flag("maintenance") {
			return fault(http.StatusConflict, "Cannot update hardware address for port %s as node %s is active or has instance UUID assigned",
				p.uuid, n.str("uuid"))
		}
		if s.portByMAC[mac] != nil {
			return fault(http.StatusConflict, "A port with MAC address %s already exists.", mac)
		}
	}
	var changed []string
	for _, op := range ops {
		key := op.field()
		if slices.Contains(connectivity, key) && !slices.Contains(changed, key) && pyRepr(p.fields[key]) != pyRepr(body[key]) {
			changed = append(changed, key)
		}
	}
	free := n.state() == enroll || n.state() == inspecting || n.state() == inspectWait || n.state() == manageable
	if len(changed) > 0 && !free && !n.flag("maintenance") {
		return fault(http.StatusConflict, "Port %s can not have any connectivity attributes (portgroup_id, local_link_connection, physical_network, "+
			"pxe_enabled) updated unless node %s is in a enroll, inspecting, inspect wait, manageable state or in maintenance mode. The current state is %s.",
			p.uuid, n.str("uuid"), n.state())
	}
	if err := s.uniquePortName(p, body); err != nil {
		return err
	}
	return s.checkMembership(c, n, p, body, func(key string) bool {
		return slices.ContainsFunc(ops, func(op patchOp) bool { return op.field() == key })
	})
}

// savePort stores a patched port.
func (s *Server) savePort(p *port, mac string, body map[string]any, ops []patchOp) {
	for _, op := range ops {
		key := op.field()
		if key == "address" || key == "node_uuid" {
			continue
		}
		value := body[key]
		for _, f := range portFields {
			if f.name == key && value == nil {
				value = f.initial
				if slices.Contains(f.kind.types, "object") {
					value = map[string]any{}
				}
			}
		}
		p.fields[key] = value
	}
	delete(s.portByMAC, p.address)
	p.address = mac
	s.portByMAC[mac] = p
	p.fields["updated_at"] = timestamp(s.now)
}

func (s *Server) deletePort(p *port) error {
	if err := p.node.locked(); err != nil {
		return err
	}
	s.removePort(p)
	return nil
}

// removePort removes a port.
func (s *Server) removePort(p *port) {
	delete(s.portByMAC, p.address)
	s.ports = slices.DeleteFunc(s.ports, func(other *port) bool { return other == p })
}
