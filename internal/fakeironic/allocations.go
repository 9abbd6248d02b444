package fakeironic

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

var allocationSchemaMembers = map[string]kind{
	"candidate_nodes": listKind, "extra": objectKind, "name": textKind, "node": textKind, "owner": textKind, "resource_class": classKind,
	"traits": listKind, "uuid": textKind,
}

// routeAllocations answers /v1/allocations.
func (s *Server) routeAllocations(c *call) (reply, error) {
	if c.minor < 52 {
		refused := fault(http.StatusNotFound, "The API version does not allow allocations")
		if c.method == http.MethodPost {
			refused.status = http.StatusMethodNotAllowed
		}
		refused.router = s.legacy()
		return reply{}, refused
	}
	if len(c.path) == 1 {
		switch c.method {
		case http.MethodGet:
			return s.listAllocations(c)
		case http.MethodPost:
			return s.createAllocation(c)
		}
		return reply{}, methodNotAllowed("DELETE, GET, PATCH, POST")
	}
	if len(c.path) > 2 {
		return reply{}, routerFault(http.StatusNotFound, "")
	}
	ref := c.path[1]
	if !isUUID(ref) && !validName(ref) {
		if s.legacy() {
			return reply{}, fault(http.StatusBadRequest, "Expected UUID or name for allocation_ident: %s", ref)
		}
		return reply{}, fault(http.StatusBadRequest, "Expected a logical name or UUID but received %s.", ref)
	}
	if c.method == http.MethodPatch && c.minor < 57 {
		return reply{}, fault(http.StatusMethodNotAllowed, "The API version does not allow updating allocations")
	}
	a := s.findAllocation(ref)
	if a == nil || a.uuid == ref && !isUUID(ref) {
		return reply{}, fault(http.StatusNotFound, "Allocation %s could not be found.", ref)
	}
	switch c.method {
	case http.MethodGet:
		fields, err := allocationQuery(c, "fields")
		if err != nil {
			return reply{}, err
		}
		return ok(http.StatusOK, showAllocation(c, a, fields)), nil
	case http.MethodPatch:
		return s.patchAllocation(c, a)
	case http.MethodDelete:
		return done(http.StatusNoContent), s.deleteAllocation(a)
	}
	return reply{}, methodNotAllowed("DELETE, GET, PATCH")
}

// allocationQuery checks the query parameters and returns the fields that they select; nil means all.
func allocationQuery(c *call, accepted ...string) ([]string, error) {
	if err := c.accept(accepted...); err != nil {
		return nil, err
	}
	if !c.query.Has("fields") {
		return nil, nil
	}
	fields := splitList(c.query["fields"])
	for _, name := range fields {
		if !slices.Contains(allocationFields, name) {
			return nil, fault(http.StatusBadRequest, "Schema error: %s is not one of %s", pyRepr(name), pyRepr(clone(allocationFields)))
		}
		if name == "owner" && c.minor < 60 {
			return nil, notAcceptable()
		}
	}
	return fields, nil
}

func (s *Server) listAllocations(c *call) (reply, error) {
	fields, err := allocationQuery(c, "node", "resource_class", "state", "owner", "fields", "limit", "marker", "sort_key", "sort_dir")
	if err != nil {
		return reply{}, err
	}
	var onNode *node
	if ref := c.query.Get("node"); ref != "" {
		if onNode = s.find(ref); onNode == nil {
			return reply{}, fault(http.StatusBadRequest, "Node %s could not be found.", ref)
		}
	}
	if c.query.Has("owner") && c.minor < 60 {
		return reply{}, notAcceptable()
	}
	if key := c.query.Get("sort_key"); key != "" && key != "id" && !slices.Contains(allocationFields, key) {
		return reply{}, fault(http.StatusBadRequest, "The sort_key value \"%s\" is an invalid field for sorting", key)
	}
	var selected []*allocation
	for _, a := range s.allocations {
		matches := func(key, value string) bool { return !c.query.Has(key) || c.query.Get(key) == value }
		mine := s.Policy.grants(c, "allocation:list_all", target{}) || c.caller.Project == a.owner
		if mine && (onNode == nil || a.node == onNode) && matches("resource_class", a.class) && matches("state", string(a.state)) && matches("owner", a.owner) {
			selected = append(selected, a)
		}
	}
	page, err := paged(c, fields, selected, func(a *allocation) string { return a.uuid }, func(marker string) error {
		if s.findAllocation(marker) == nil {
			return fault(http.StatusNotFound, "Allocation %s could not be found.", marker)
		}
		return nil
	})
	if err != nil {
		return reply{}, err
	}
	items := make([]json.RawMessage, len(page.items))
	for i, a := range page.items {
		items[i] = encode(showAllocation(c, a, fields))
	}
	return page.reply("allocations", items), nil
}

// createAllocation answers POST /v1/allocations. The state in the answer is "allocating" unless the body has a node.
func (s *Server) createAllocation(c *call) (reply, error) {
	body, err := c.object("allocation")
	if err != nil {
		return reply{}, err
	}
	if err := s.ownAllocation(c, body); err != nil {
		return reply{}, err
	}
	a, backfill, err := s.newAllocation(c, body)
	if err != nil {
		return reply{}, err
	}
	s.allocations = append(s.allocations, a)
	if backfill != nil {
		if err := s.backfill(a, backfill); err != nil {
			return reply{}, err
		}
	} else if isUUID(a.uuid) {
		s.after(0, func() { s.allocate(a) })
	}
	return c.created("allocations/"+a.uuid, coarseTimes(showAllocation(c, a, nil))), nil
}

// newAllocation checks the body of a POST in Ironic's order. It returns the allocation and the node to backfill, if any.
func (s *Server) newAllocation(c *call, body map[string]any) (*allocation, *node, error) {
	if err := s.checkAllocationBody(c, body); err != nil {
		return nil, nil, err
	}
	a := &allocation{
		uuid: text(body["uuid"]), name: text(body["name"]), owner: text(body["owner"]), class: text(body["resource_class"]), state: allocating,
		candidates: []string{}, traits: append([]string{}, texts(body["traits"])...), extra: object(body["extra"]), createdAt: timestamp(s.now),
	}
	var backfill *node
	if ref := text(body["node"]); ref != "" {
		if c.minor < 58 {
			return nil, nil, fault(http.StatusBadRequest, "Cannot set node when creating an allocation in this API version")
		}
		if backfill = s.seen(c, ref); backfill == nil {
			return nil, nil, fault(http.StatusBadRequest, "Node %s could not be found.", ref)
		}
		if a.class == "" {
			a.class = backfill.str("resource_class")
		}
		if a.uuid == "" {
			a.uuid = backfill.str("instance_uuid")
		}
	} else if a.class == "" {
		return nil, nil, fault(http.StatusBadRequest, "The resource_class field is mandatory when not backfilling")
	}
	for _, ref := range texts(body["candidate_nodes"]) {
		n := s.find(ref)
		if n == nil || !s.Policy.grants(c, "allocation:create_restricted", target{}) && !s.lists(c, "node", n) {
			return nil, nil, fault(http.StatusBadRequest, "Nodes cannot be found: %s", ref)
		}
		a.candidates = append(a.candidates, n.str("uuid"))
	}
	if a.uuid == "" {
		a.uuid = newUUID()
	}
	if s.findAllocation(a.uuid) != nil {
		return nil, nil, fault(http.StatusConflict, "An allocation with UUID %s already exists.", a.uuid)
	}
	if a.name != "" && s.findAllocation(a.name) != nil {
		return nil, nil, fault(http.StatusConflict, "An allocation with name %s already exists.", a.name)
	}
	return a, backfill, nil
}

func (s *Server) checkAllocationBody(c *call, body map[string]any) error {
	rules := schema{name: "allocation", members: allocationSchemaMembers}
	if !s.legacy() {
		rules.name = ""
	}
	if err := rules.check(body); err != nil {
		return err
	}
	for _, key := range []string{"candidate_nodes", "traits"} {
		if err := checkTexts(rules.name, body[key]); err != nil {
			return err
		}
	}
	for _, trait := range texts(body["traits"]) {
		if err := checkTrait(rules.name, trait); err != nil {
			return err
		}
	}
	if _, given := body["node"]; given && c.minor < 58 && !s.legacy() {
		return fault(http.StatusBadRequest, "Schema error: Additional properties are not allowed ('node' was unexpected)")
	}
	// 39 accepts any text as a UUID. It never processes such an allocation and cannot delete it.
	if uuid := text(body["uuid"]); uuid != "" && !isUUID(uuid) && s.legacy() {
		return fault(http.StatusBadRequest, "Expected UUID for uuid: %s", uuid)
	}
	if body["owner"] != nil && c.minor < 60 {
		return notAcceptable()
	}
	if name := text(body["name"]); name != "" && !validName(name) {
		return fault(http.StatusBadRequest, "Cannot create allocation with invalid name '%s'", name)
	}
	return nil
}

// patchAllocation answers PATCH /v1/allocations/{allocation}.
func (s *Server) patchAllocation(c *call, a *allocation) (reply, error) {
	ops, err := c.patch()
	if err != nil {
		return reply{}, err
	}
	if err := checkPatchable(ops, []string{"name", "extra"}); err != nil {
		return reply{}, err
	}
	for _, value := range patchValues(ops, "/name") {
		if _, isText := value.(string); value != nil && value != "" && (!isText || !validName(text(value))) {
			return reply{}, fault(http.StatusBadRequest, "Cannot update allocation with invalid name '%s'", pyText(value))
		}
	}
	document := map[string]any{"name": orNull(a.name), "extra": clone(a.extra)}
	if err := applyPatch(document, ops); err != nil {
		return reply{}, err
	}
	if err := (schema{name: "patch", members: allocationSchemaMembers}).check(document); err != nil {
		return reply{}, err
	}
	name := text(document["name"])
	if other := s.findAllocation(name); name != "" && other != nil && other != a && other.name == name {
		return reply{}, fault(http.StatusConflict, "An allocation with name %s already exists.", name)
	}
	a.name, a.extra, a.updatedAt = name, object(document["extra"]), timestamp(s.now)
	return ok(http.StatusOK, showAllocation(c, a, nil)), nil
}

// nodeAllocation answers /v1/nodes/{node}/allocation. For a node that does not exist it answers 400.
func (s *Server) nodeAllocation(c *call, ref string) (reply, error) {
	if c.minor < 52 {
		return reply{}, routerFault(http.StatusNotFound, "")
	}
	n := s.find(ref)
	if n == nil {
		return reply{}, fault(http.StatusBadRequest, "Node %s could not be found.", ref)
	}
	if !s.sees(c, n) {
		return reply{}, fault(http.StatusNotFound, "Resource could not be found.")
	}
	a := s.allocationOf(n)
	if a == nil {
		return reply{}, fault(http.StatusNotFound, "Allocation for node %s was not found", strings.TrimSpace(n.str("uuid")))
	}
	if err := s.Policy.enforce(c, requestRules[c.method+" allocation"], target{owner: a.owner}); err != nil {
		return reply{}, err
	}
	switch c.method {
	case http.MethodGet:
		fields, err := allocationQuery(c, "fields")
		if err != nil {
			return reply{}, err
		}
		return ok(http.StatusOK, showAllocation(c, a, fields)), nil
	case http.MethodDelete:
		return done(http.StatusNoContent), s.deleteAllocation(a)
	}
	return reply{}, methodNotAllowed("DELETE, GET")
}
