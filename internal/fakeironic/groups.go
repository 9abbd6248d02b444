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
