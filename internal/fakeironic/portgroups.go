package fakeironic

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// portgroup is a bond of ports.
type portgroup struct {
	uuid, name, address, mode string
	physicalNetwork           string // of its ports; since 39, Ironic takes it from the first one
	createdAt, updatedAt      string
	standalone                bool
	extra, properties         map[string]any
	node                      *node
}

// portgroupSchema is the schema of new and patched port groups.
func (s *Server) portgroupSchema(name string) schema {
	rules := schema{name: name, required: []string{"node_uuid"}, members: map[string]kind{
		"uuid": textKind, "name": textKind, "address": textKind, "mode": textKind, "extra": objectKind, "properties": objectKind,
		"node_uuid": stringKind, "standalone_ports_supported": boolKind,
	}}
	if s.maxMinor() >= 102 {
		rules.members["physical_network"] = kind{types: textKind.types, maxLength: 64}
	}
	if s.maxMinor() >= 103 {
		rules.members["category"] = kind{types: textKind.types, maxLength: 80}
	}
	return rules
}

// show returns the group as the API shows it, with the given fields; nil means all.
func (g *portgroup) show(c *call, fields []string) ordered {
	all := []struct {
		since int
		name  string
		value any
	}{
		{23, "uuid", g.uuid},
		{23, "created_at", g.createdAt},
		{23, "updated_at", orNull(g.updatedAt)},
		{23, "address", orNull(g.address)},
		{103, "category", nil},
		{111, "dynamic_portgroup", false},
		{23, "extra", g.extra},
		{23, "internal_info", map[string]any{}},
		{26, "mode", orNull(g.mode)},
		{23, "name", orNull(g.name)},
		{102, "physical_network", orNull(g.physicalNetwork)},
		{26, "properties", g.properties},
		{23, "standalone_ports_supported", g.standalone},
		{23, "node_uuid", g.node.str("uuid")},
	}
	var out ordered
	for _, f := range all {
		if c.minor >= f.since && (fields == nil || slices.Contains(fields, f.name)) {
			out = append(out, member{f.name, f.value})
		}
	}
	out = append(out, member{"links", c.links("portgroups/" + g.uuid)})
	if fields == nil {
		out = append(out, member{"ports", c.links("portgroups/" + g.uuid + "/ports")})
	}
	return out
}

func (s *Server) findPortgroup(ref string) *portgroup {
	for _, g := range s.portgroups {
		if g.uuid == ref || g.name == ref && ref != "" {
			return g
		}
	}
	return nil
}

// portsOf returns the ports in a group.
func (s *Server) portsOf(g *portgroup) (members []*port) {
	for _, p := range s.ports {
		if text(p.fields["portgroup_uuid"]) == g.uuid {
			members = append(members, p)
		}
	}
	return members
}

// routePortgroups answers /v1/portgroups; onNode limits it to one node.
func (s *Server) routePortgroups(c *call, rest []string, onNode *node) (reply, error) {
	if c.minor < 23 {
		return reply{}, routerFault(http.StatusNotFound, "")
	}
	detail := len(rest) == 1 && rest[0] == "detail"
	switch {
	case len(rest) == 0 && c.method == http.MethodPost && onNode == nil:
		return s.createPortgroup(c)
	case (len(rest) == 0 || detail) && c.method == http.MethodGet:
		return s.listPortgroups(c, onNode, detail)
	case len(rest) == 0:
		return reply{}, methodNotAllowed("GET, POST")
	}
	g := s.findPortgroup(rest[0])
	if g == nil {
		return reply{}, fault(http.StatusNotFound, "Portgroup %s could not be found.", rest[0])
	}
	switch c.method {
	case http.MethodGet:
		return ok(http.StatusOK, g.show(c, nil)), nil
	case http.MethodPatch:
		return s.patchPortgroup(c, g)
	case http.MethodDelete:
		return done(http.StatusNoContent), s.deletePortgroup(g)
	}
	return reply{}, methodNotAllowed("DELETE, GET, PATCH")
}

func (s *Server) listPortgroups(c *call, onNode *node, detail bool) (reply, error) {
	if err := c.accept("node", "address", "limit", "marker", "sort_key", "sort_dir", "fields", "detail"); err != nil {
		return reply{}, err
	}
	if ref := c.query.Get("node"); ref != "" {
		if onNode = s.find(ref); onNode == nil {
			return reply{}, fault(http.StatusNotFound, "Node %s could not be found.", ref)
		}
	}
	asked, _ := parseBool(c.query.Get("detail"))
	fields := []string{"uuid", "address", "name"}
	switch {
	case (detail || asked) && c.query.Has("fields"):
		return reply{}, fault(http.StatusBadRequest, "Can not specify ?detail=True and fields in the same request.")
	case detail || asked:
		fields = nil
	case c.query.Has("fields"):
		fields = splitList(c.query["fields"])
	}
	var selected []*portgroup
	for _, g := range s.portgroups {
		if s.lists(c, "portgroup", g.node) && (onNode == nil || g.node == onNode) && (!c.query.Has("address") || g.address == strings.ToLower(c.query.Get("address"))) {
			selected = append(selected, g)
		}
	}
	page, err := paged(c, fields, selected, func(g *portgroup) string { return g.uuid }, func(marker string) error {
		if s.findPortgroup(marker) == nil {
			return fault(http.StatusNotFound, "Portgroup %s could not be found.", marker)
		}
		return nil
	})
	if err != nil {
		return reply{}, err
	}
	items := make([]json.RawMessage, len(page.items))
	for i, g := range page.items {
		items[i] = encode(g.show(c, fields))
	}
	return page.reply("portgroups", items), nil
}

func (s *Server) createPortgroup(c *call) (reply, error) {
	body, err := c.object("portgroup")
	if err != nil {
		return reply{}, err
	}
	g := &portgroup{uuid: newUUID(), mode: "active-backup", standalone: true, createdAt: timestamp(s.now)}
	if err := s.readPortgroup(c, g, s.portgroupSchema("portgroup"), body); err != nil {
		return reply{}, err
	}
	if uuid := text(body["uuid"]); uuid != "" {
		g.uuid = uuid
	}
	if g.node = s.nodeByUUID[text(body["node_uuid"])]; g.node == nil {
		return reply{}, fault(http.StatusBadRequest, "Node %s could not be found.", text(body["node_uuid"]))
	}
	if g.name != "" && !validName(g.name) {
		return reply{}, fault(http.StatusBadRequest, "Cannot create portgroup with invalid name %s", pyRepr(g.name))
	}
	if err := s.uniquePortgroup(g); err != nil {
		return reply{}, err
	}
	s.portgroups = append(s.portgroups, g)
	return c.created("portgroups/"+g.uuid, coarseTimes(g.show(c, nil))), nil
}

// readPortgroup checks a new or patched document, and copies it into a group.
func (s *Server) readPortgroup(c *call, g *portgroup, rules schema, body map[string]any) (err error) {
	if err := rules.check(body); err != nil {
		return err
	}
	for _, key := range []string{"uuid", "node_uuid"} {
		if value := body[key]; value != nil && !isUUID(text(value)) {
			return fault(http.StatusBadRequest, "Expected UUID for %s: %s", key, text(value))
		}
	}
	if c.minor < 26 && (text(body["mode"]) != "" || len(object(body["properties"])) > 0) {
		return notAcceptable()
	}
	if value := body["standalone_ports_supported"]; value != nil {
		valid := false
		if g.standalone, valid = parseBool(value); !valid {
			return notBool("standalone_ports_supported", value)
		}
	}
	g.address = ""
	if body["address"] != nil {
		if g.address, err = readMAC(body["address"]); err != nil {
			return err
		}
	}
	if mode, given := body["mode"]; given {
		g.mode = text(mode)
	}
	g.name, g.physicalNetwork = text(body["name"]), text(body["physical_network"])
	g.extra, g.properties = object(body["extra"]), object(body["properties"])
	return nil
}

// uniquePortgroup refuses a UUID, a name or an address that another group has, on any node.
func (s *Server) uniquePortgroup(g *portgroup) error {
	for _, other := range s.portgroups {
		switch {
		case other == g:
		case other.uuid == g.uuid:
			return fault(http.StatusConflict, "A portgroup with UUID %s already exists.", g.uuid)
		case g.name != "" && other.name == g.name:
			return fault(http.StatusConflict, "A portgroup with name %s already exists.", g.name)
		case g.address != "" && other.address == g.address:
			return fault(http.StatusConflict, "A portgroup with MAC address %s already exists.", g.address)
		}
	}
	return nil
}

// patchPortgroup changes a group. Unlike a port, a group can change in every state of its node.
func (s *Server) patchPortgroup(c *call, g *portgroup) (reply, error) {
	ops, err := c.patch()
	if err != nil {
		return reply{}, err
	}
	allowed := []string{"address", "extra", "mode", "name", "node_uuid", "properties", "standalone_ports_supported"}
	if !s.legacy() {
		allowed = append(allowed, "physical_network", "category")
	}
	if err := checkPatchable(ops, allowed); err != nil {
		return reply{}, err
	}
	for _, op := range ops {
		switch {
		case op.path == "/mode" && op.op == "remove":
			return reply{}, fault(http.StatusBadRequest, "'mode' is a mandatory attribute and can not be removed")
		case op.path == "/node_uuid" && op.value != g.node.str("uuid"):
			return reply{}, fault(http.StatusInternalServerError, "Unexpected error raised by RPC")
		case op.path == "/name" && text(op.value) != "" && !validName(text(op.value)):
			return reply{}, fault(http.StatusBadRequest, "Portgroup %s: Cannot change name to invalid name %s", g.uuid, pyRepr(op.value))
		}
	}
	document := map[string]any{
		"name": orNull(g.name), "address": orNull(g.address), "mode": orNull(g.mode), "extra": clone(g.extra), "properties": clone(g.properties),
		"standalone_ports_supported": g.standalone, "node_uuid": g.node.str("uuid"),
	}
	if s.maxMinor() >= 102 {
		document["physical_network"] = orNull(g.physicalNetwork)
	}
	if err := applyPatch(document, ops); err != nil {
		return reply{}, err
	}
	next := *g
	if err := s.readPortgroup(c, &next, s.portgroupSchema("patch"), document); err != nil {
		return reply{}, err
	}
	if err := g.node.locked(); err != nil {
		return reply{}, err
	}
	s.portgroups = slices.DeleteFunc(s.portgroups, func(other *portgroup) bool { return other == g })
	err = s.uniquePortgroup(&next)
	if err == nil {
		*g = next
		g.updatedAt = timestamp(s.now)
	}
	s.portgroups = append(s.portgroups, g)
	if err != nil {
		return reply{}, err
	}
	if len(patchValues(ops, "/physical_network")) > 0 {
		for _, p := range s.portsOf(g) {
			p.fields["physical_network"] = orNull(g.physicalNetwork)
		}
	}
	return ok(http.StatusOK, coarseTimes(g.show(c, nil))), nil
}

func (s *Server) deletePortgroup(g *portgroup) error {
	if err := g.node.locked(); err != nil {
		return err
	}
	switch {
	case len(s.portsOf(g)) > 0 && s.legacy():
		return fault(http.StatusInternalServerError, "Unexpected error raised by RPC")
	case len(s.portsOf(g)) > 0:
		return fault(http.StatusBadRequest, "Cannot complete the requested action because portgroup 1 contains ports.")
	}
	s.portgroups = slices.DeleteFunc(s.portgroups, func(other *portgroup) bool { return other == g })
	return nil
}

// checkMembership applies Ironic's rules about ports in groups to a new or changed port. given are the attributes that the request
// sets, and p is the port as it is, nil for a new one.
func (s *Server) checkMembership(c *call, n *node, p *port, body map[string]any, sets func(key string) bool) error {
	ref := text(body["portgroup_uuid"])
	if ref == "" {
		return nil
	}
	g := s.findPortgroup(ref)
	switch {
	case g == nil:
		return fault(http.StatusBadRequest, "Portgroup %s could not be found.", ref)
	case g.node != n && p == nil:
		status := http.StatusBadRequest
		if s.legacy() {
			status = http.StatusInternalServerError
		}
		return fault(status, "Port can not be added to a portgroup belonging to a different node.")
	case p == nil && !g.standalone && body["pxe_enabled"] == true:
		return fault(http.StatusConflict, "Port group %s doesn't support standalone ports. This port cannot be created as a member of that portgroup "+
			"as the port's 'pxe_enabled' field was set to True.", g.uuid)
	case p != nil && c.minor >= 102 && sets("physical_network"):
		return fault(http.StatusBadRequest, "physical_network cannot be changed while the port belongs to a portgroup.")
	case p != nil && !sets("portgroup_uuid") && !sets("physical_network"):
		return nil
	}
	network := text(body["physical_network"])
	others := slices.DeleteFunc(s.portsOf(g), func(other *port) bool { return other == p })
	current, fixed := g.physicalNetwork, g.physicalNetwork != ""
	if len(others) > 0 {
		current, fixed = text(others[0].fields["physical_network"]), true
	}
	if fixed && network != current {
		return fault(http.StatusConflict, "Port with physical network %s cannot become a member of port group %s which has ports in physical network %s.",
			orNone(network), g.uuid, orNone(current))
	}
	if !s.legacy() {
		g.physicalNetwork = network
	}
	return nil
}

// orNone is how Python prints a text that may be missing.
func orNone(s string) string {
	if s == "" {
		return "None"
	}
	return s
}
