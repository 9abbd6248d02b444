package fakeironic

import (
	"net/http"
	"slices"
)

// chassis groups nodes. It is the only resource of Ironic that a client can create under its own UUID without a conductor.
type chassis struct {
	uuid, createdAt, updatedAt string
	description                any
	extra                      map[string]any
}

func (s *Server) findChassis(uuid string) *chassis {
	for _, ch := range s.chassis {
		if ch.uuid == uuid {
			return ch
		}
	}
	return nil
}

func (ch *chassis) show(c *call, detail bool) ordered {
	out := ordered{{"uuid", ch.uuid}}
	if detail {
		out = append(out, member{"created_at", ch.createdAt}, member{"updated_at", orNull(ch.updatedAt)}, member{"extra", ch.extra},
			member{"nodes", []any{c.links("chassis/" + ch.uuid + "/nodes")}})
	}
	return append(out, member{"description", ch.description}, member{"links", c.links("chassis/" + ch.uuid)})
}

var chassisSchema = schema{name: "chassis", members: map[string]kind{
	"uuid": textKind, "extra": objectKind, "description": {types: []string{"string", "null"}, maxLength: 255},
}}

// routeChassis answers /v1/chassis.
func (s *Server) routeChassis(c *call) (reply, error) {
	if len(c.path) == 1 && c.method == http.MethodPost {
		return s.createChassis(c)
	}
	detail := len(c.path) == 2 && c.path[1] == "detail"
	if len(c.path) == 1 || detail {
		if c.method != http.MethodGet {
			return reply{}, methodNotAllowed("GET, POST")
		}
		list := []any{}
		for _, ch := range s.chassis {
			list = append(list, ch.show(c, detail || c.query.Get("detail") != "" || c.query.Get("fields") != ""))
		}
		return ok(http.StatusOK, ordered{{"chassis", list}}), nil
	}
	if !isUUID(c.path[1]) {
		return reply{}, fault(http.StatusBadRequest, "Expected UUID for chassis_uuid: %s", c.path[1])
	}
	ch := s.findChassis(c.path[1])
	if ch == nil {
		return reply{}, fault(http.StatusNotFound, "Chassis %s could not be found.", c.path[1])
	}
	switch c.method {
	case http.MethodGet:
		return ok(http.StatusOK, ch.show(c, true)), nil
	case http.MethodPatch:
		return s.patchChassis(c, ch)
	case http.MethodDelete:
		return done(http.StatusNoContent), s.deleteChassis(ch)
	}
	return reply{}, methodNotAllowed("DELETE, GET, PATCH")
}

func (s *Server) createChassis(c *call) (reply, error) {
	body, err := c.object("chassis")
	if err != nil {
		return reply{}, err
	}
	if err := chassisSchema.check(body); err != nil {
		return reply{}, err
	}
	uuid := text(body["uuid"])
	if uuid == "" {
		uuid = newUUID()
	}
	if !isUUID(uuid) {
		return reply{}, fault(http.StatusBadRequest, "Expected UUID for uuid: %s", uuid)
	}
	if s.findChassis(uuid) != nil {
		return reply{}, fault(http.StatusConflict, "A chassis with UUID %s already exists.", uuid)
	}
	ch := &chassis{uuid: uuid, createdAt: timestamp(s.now), description: body["description"], extra: object(body["extra"])}
	s.chassis = append(s.chassis, ch)
	return c.created("chassis/"+uuid, ch.show(c, true)), nil
}

func (s *Server) patchChassis(c *call, ch *chassis) (reply, error) {
	ops, err := c.patch()
	if err != nil {
		return reply{}, err
	}
	if err := checkPatchable(ops, []string{"extra", "description"}); err != nil {
		return reply{}, err
	}
	document := map[string]any{"extra": clone(ch.extra), "description": ch.description}
	if err := applyPatch(document, ops); err != nil {
		return reply{}, err
	}
	if err := chassisSchema.check(document); err != nil {
		return reply{}, err
	}
	ch.extra, ch.description, ch.updatedAt = object(document["extra"]), document["description"], timestamp(s.now)
	return ok(http.StatusOK, ch.show(c, true)), nil
}

func (s *Server) deleteChassis(ch *chassis) error {
	for _, n := range s.nodes {
		if n.str("chassis_uuid") == ch.uuid {
			return fault(http.StatusBadRequest, "Cannot complete the requested action because chassis %s contains nodes.", ch.uuid)
		}
	}
	s.chassis = slices.DeleteFunc(s.chassis, func(other *chassis) bool { return other == ch })
	return nil
}

// portgroup is a bond of ports.
type portgroup struct {
	uuid, name, address, mode string
	createdAt                 string
	standalone                bool
	extra, properties         map[string]any
	node                      *node
}

var portgroupSchema = schema{name: "portgroup", required: []string{"node_uuid"}, members: map[string]kind{
	"uuid": textKind, "name": textKind, "address": textKind, "mode": textKind, "extra": objectKind, "properties": objectKind,
	"node_uuid": textKind, "standalone_ports_supported": boolKind,
}}

func (g *portgroup) show(c *call, detail bool) ordered {
	out := ordered{{"uuid", g.uuid}, {"name", orNull(g.name)}, {"address", orNull(g.address)}}
	if detail {
		out = append(out, member{"node_uuid", g.node.str("uuid")}, member{"mode", g.mode}, member{"standalone_ports_supported", g.standalone},
			member{"extra", g.extra}, member{"properties", g.properties}, member{"internal_info", map[string]any{}},
			member{"created_at", g.createdAt}, member{"updated_at", nil}, member{"ports", c.links("portgroups/" + g.uuid + "/ports")})
	}
	for _, later := range []struct {
		since int
		name  string
		value any
	}{{102, "physical_network", nil}, {103, "category", nil}, {111, "dynamic_portgroup", false}} {
		if detail && c.minor >= later.since {
			out = append(out, member{later.name, later.value})
		}
	}
	return append(out, member{"links", c.links("portgroups/" + g.uuid)})
}

func (s *Server) findPortgroup(ref string) *portgroup {
	for _, g := range s.portgroups {
		if g.uuid == ref || g.name == ref && ref != "" {
			return g
		}
	}
	return nil
}

// routePortgroups answers /v1/portgroups; onNode limits it to one node. The server does not support PATCH of portgroups.
func (s *Server) routePortgroups(c *call, rest []string, onNode *node) (reply, error) {
	if c.minor < 23 {
		return reply{}, routerFault(http.StatusNotFound, "")
	}
	detail := len(rest) == 1 && rest[0] == "detail"
	switch {
	case len(rest) == 0 && c.method == http.MethodPost && onNode == nil:
		return s.createPortgroup(c)
	case (len(rest) == 0 || detail) && c.method == http.MethodGet:
		if ref := c.query.Get("node"); ref != "" {
			if onNode = s.find(ref); onNode == nil {
				return reply{}, fault(http.StatusNotFound, "Node %s could not be found.", ref)
			}
		}
		list := []any{}
		for _, g := range s.portgroups {
			if onNode == nil || g.node == onNode {
				list = append(list, g.show(c, detail || c.query.Get("detail") != ""))
			}
		}
		return ok(http.StatusOK, ordered{{"portgroups", list}}), nil
	case len(rest) == 0:
		return reply{}, methodNotAllowed("GET, POST")
	}
	g := s.findPortgroup(rest[0])
	if g == nil {
		return reply{}, fault(http.StatusNotFound, "Portgroup %s could not be found.", rest[0])
	}
	switch c.method {
	case http.MethodGet:
		return ok(http.StatusOK, g.show(c, true)), nil
	case http.MethodDelete:
		return done(http.StatusNoContent), s.deletePortgroup(g)
	}
	return reply{}, methodNotAllowed("DELETE, GET")
}

func (s *Server) createPortgroup(c *call) (reply, error) {
	body, err := c.object("portgroup")
	if err != nil {
		return reply{}, err
	}
	if err := portgroupSchema.check(body); err != nil {
		return reply{}, err
	}
	n := s.nodeByUUID[text(body["node_uuid"])]
	if n == nil {
		return reply{}, fault(http.StatusBadRequest, "Node %s could not be found.", text(body["node_uuid"]))
	}
	g := &portgroup{
		uuid: text(body["uuid"]), name: text(body["name"]), address: text(body["address"]), mode: text(body["mode"]),
		createdAt: timestamp(s.now), standalone: true, extra: object(body["extra"]), properties: object(body["properties"]), node: n,
	}
	if g.uuid == "" {
		g.uuid = newUUID()
	}
	if g.mode == "" {
		g.mode = "active-backup"
	}
	if alone, valid := parseBool(body["standalone_ports_supported"]); valid {
		g.standalone = alone
	}
	for _, other := range s.portgroups {
		switch {
		case other.uuid == g.uuid:
			return reply{}, fault(http.StatusConflict, "A portgroup with UUID %s already exists.", g.uuid)
		case g.name != "" && other.name == g.name:
			return reply{}, fault(http.StatusConflict, "A portgroup with name %s already exists.", g.name)
		case g.address != "" && other.address == g.address:
			return reply{}, fault(http.StatusConflict, "A portgroup with MAC address %s already exists.", g.address)
		}
	}
	s.portgroups = append(s.portgroups, g)
	return c.created("portgroups/"+g.uuid, g.show(c, true)), nil
}

func (s *Server) deletePortgroup(g *portgroup) error {
	if err := g.node.locked(); err != nil {
		return err
	}
	for _, p := range s.ports {
		if text(p.fields["portgroup_uuid"]) == g.uuid {
			status := http.StatusBadRequest
			if s.legacy() {
				status = http.StatusInternalServerError
			}
			return fault(status, "Cannot complete the requested action because portgroup 1 contains ports.")
		}
	}
	s.portgroups = slices.DeleteFunc(s.portgroups, func(other *portgroup) bool { return other == g })
	return nil
}

// routeVIFs answers /v1/nodes/{node}/vifs. The noop network interface accepts attachments and does not store them.
func (s *Server) routeVIFs(c *call, n *node, rest []string) (reply, error) {
	if c.minor < 28 {
		return reply{}, routerFault(http.StatusNotFound, "")
	}
	switch {
	case c.method == http.MethodGet && len(rest) == 0:
		return ok(http.StatusOK, ordered{{"vifs", []any{}}}), nil
	case c.method == http.MethodPost && len(rest) == 0:
		body, err := c.object("vif")
		if err != nil {
			return reply{}, err
		}
		if text(body["id"]) == "" {
			return reply{}, fault(http.StatusBadRequest, "Schema error for vif: 'id' is a required property")
		}
		return done(http.StatusNoContent), n.locked()
	case c.method == http.MethodDelete && len(rest) == 1:
		return done(http.StatusNoContent), n.locked()
	}
	return reply{}, methodNotAllowed("GET, POST")
}
