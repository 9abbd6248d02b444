package fakeironic

import (
	"net/http"
	"slices"
)

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

// routePortgroups answers /v1/portgroups; onNode limits it to the portgroups of one node. They cannot be changed.
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

// routeVIFs answers /v1/nodes/{node}/vifs. With the noop network interface attaching does nothing that can be read back.
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
