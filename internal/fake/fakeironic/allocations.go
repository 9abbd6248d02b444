package fakeironic

import (
	"net/http"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/conductor"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/policy"
)

var allocationFields = []string{
	"uuid", "created_at", "updated_at", "candidate_nodes", "extra", "last_error", "name", "owner", "resource_class", "state",
	"traits", "node_uuid",
}

// showAllocation returns the allocation as the API shows it, with the given fields; nil means all.
func showAllocation(c *api.Call, a *conductor.Allocation, fields []string) api.Ordered {
	nodeUUID := ""
	if a.Node != nil {
		nodeUUID = a.Node.Str("uuid")
	}
	values := map[string]any{
		"uuid": a.Uuid, "created_at": a.CreatedAt, "updated_at": api.OrNull(a.UpdatedAt), "candidate_nodes": a.Candidates, "extra": a.Extra,
		"last_error": api.OrNull(a.LastError), "name": api.OrNull(a.Name), "owner": api.OrNull(a.Owner),
		"resource_class": api.OrNull(a.Class),
		"state":          string(a.State), "traits": a.Traits, "node_uuid": api.OrNull(nodeUUID),
	}
	var out api.Ordered
	for _, name := range allocationFields {
		if name == "owner" && c.Minor < 60 || fields != nil && !slices.Contains(fields, name) {
			continue
		}
		out = append(out, api.Member{name, values[name]})
	}
	return append(out, api.Member{"links", c.Links("allocations/" + a.Uuid)})
}

var allocationSchemaMembers = map[string]api.Kind{
	"candidate_nodes": api.ListKind, "extra": api.ObjectKind, "name": api.TextKind, "node": api.TextKind, "owner": api.TextKind,
	"resource_class": api.ClassKind,
	"traits":         api.ListKind, "uuid": api.TextKind,
}

func (s *Server) routeAllocations(c *api.Call) (api.Reply, error) {
	if c.Minor < 52 {
		refused := api.Fault(http.StatusNotFound, "The API version does not allow allocations")
		if c.Method == http.MethodPost {
			refused.Status = http.StatusMethodNotAllowed
		}
		refused.Router = s.legacy()
		return api.Reply{}, refused
	}
	if len(c.Path) == 1 {
		switch c.Method {
		case http.MethodGet:
			return s.listAllocations(c)
		case http.MethodPost:
			return s.createAllocation(c)
		}
		return api.Reply{}, api.MethodNotAllowed("DELETE, GET, PATCH, POST")
	}
	if len(c.Path) > 2 {
		return api.Reply{}, api.RouterFault(http.StatusNotFound, "")
	}
	ref := c.Path[1]
	if !api.IsUUID(ref) && !api.ValidName(ref) {
		if s.legacy() {
			return api.Reply{}, api.Fault(http.StatusBadRequest, "Expected UUID or name for allocation_ident: %s", ref)
		}
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Expected a logical name or UUID but received %s.", ref)
	}
	if c.Method == http.MethodPatch && c.Minor < 57 {
		return api.Reply{}, api.Fault(http.StatusMethodNotAllowed, "The API version does not allow updating allocations")
	}
	a := s.conductor.FindAllocation(ref)
	if a == nil || a.Uuid == ref && !api.IsUUID(ref) {
		return api.Reply{}, api.Fault(http.StatusNotFound, "Allocation %s could not be found.", ref)
	}
	switch c.Method {
	case http.MethodGet:
		fields, err := allocationQuery(c, "fields")
		return api.OK(http.StatusOK, showAllocation(c, a, fields)), err
	case http.MethodPatch:
		return s.patchAllocation(c, a)
	case http.MethodDelete:
		return api.Done(http.StatusNoContent), s.conductor.DeleteAllocation(a)
	}
	return api.Reply{}, api.MethodNotAllowed("DELETE, GET, PATCH")
}

// allocationQuery checks the query parameters and returns the fields that they select; nil means all.
func allocationQuery(c *api.Call, accepted ...string) ([]string, error) {
	if err := c.Accept(accepted...); err != nil {
		return nil, err
	}
	if !c.Query.Has("fields") {
		return nil, nil
	}
	fields := api.SplitList(c.Query["fields"])
	for _, name := range fields {
		if !slices.Contains(allocationFields, name) {
			return nil, api.Fault(http.StatusBadRequest, "Schema error: %s is not one of %s", api.PyRepr(name),
				api.PyRepr(api.Clone(allocationFields)))
		}
		if name == "owner" && c.Minor < 60 {
			return nil, api.NotAcceptable()
		}
	}
	return fields, nil
}

func (s *Server) listAllocations(c *api.Call) (api.Reply, error) {
	fields, err := allocationQuery(c, "node", "resource_class", "state", "owner", "fields", "limit", "marker", "sort_key", "sort_dir")
	if err != nil {
		return api.Reply{}, err
	}
	var onNode *conductor.Node
	if ref := c.Query.Get("node"); ref != "" {
		if onNode = s.conductor.Find(ref); onNode == nil {
			return api.Reply{}, api.Fault(http.StatusBadRequest, "Node %s could not be found.", ref)
		}
	}
	if c.Query.Has("owner") && c.Minor < 60 {
		return api.Reply{}, api.NotAcceptable()
	}
	if key := c.Query.Get("sort_key"); key != "" && key != "id" && !slices.Contains(allocationFields, key) {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "The sort_key value \"%s\" is an invalid field for sorting", key)
	}
	var selected []*conductor.Allocation
	for _, a := range s.conductor.Allocations {
		matches := func(key, value string) bool { return !c.Query.Has(key) || c.Query.Get(key) == value }
		mine := s.Policy.Grants(c, "allocation:list_all", policy.Target{}) || c.Caller.Project == a.Owner
		if mine && (onNode == nil || a.Node == onNode) && matches("resource_class", a.Class) && matches("state", string(a.State)) &&
			matches("owner", a.Owner) {
			selected = append(selected, a)
		}
	}
	return api.Listing[*conductor.Allocation]{
		Key: "allocations", Noun: "Allocation", Fields: fields,
		ID:    func(a *conductor.Allocation) string { return a.Uuid },
		Known: func(id string) bool { return s.conductor.FindAllocation(id) != nil },
		Show:  func(a *conductor.Allocation) (any, error) { return showAllocation(c, a, fields), nil },
	}.Reply(c, selected)
}

// createAllocation answers POST /v1/allocations. The state in the answer is "allocating" unless the body has a node.
func (s *Server) createAllocation(c *api.Call) (api.Reply, error) {
	body, err := c.Object("allocation")
	if err != nil {
		return api.Reply{}, err
	}
	if err := s.ownAllocation(c, body); err != nil {
		return api.Reply{}, err
	}
	a, backfill, err := s.newAllocation(c, body)
	if err != nil {
		return api.Reply{}, err
	}
	s.conductor.Allocations = append(s.conductor.Allocations, a)
	if backfill != nil {
		if err := s.conductor.Backfill(a, backfill); err != nil {
			return api.Reply{}, err
		}
	} else if api.IsUUID(a.Uuid) {
		s.conductor.After(0, func() { s.conductor.Allocate(a) })
	}
	return c.Created("allocations/"+a.Uuid, api.CoarseTimes(showAllocation(c, a, nil))), nil
}

// newAllocation checks the body of a POST in Ironic's order. It returns the allocation and the node to backfill, if any.
func (s *Server) newAllocation(c *api.Call, body map[string]any) (*conductor.Allocation, *conductor.Node, error) {
	if err := s.checkAllocationBody(c, body); err != nil {
		return nil, nil, err
	}
	a := &conductor.Allocation{
		Uuid: api.Text(body["uuid"]), Name: api.Text(body["name"]), Owner: api.Text(body["owner"]), Class: api.Text(body["resource_class"]),
		State:      conductor.Allocating,
		Candidates: []string{}, Traits: append([]string{}, api.Texts(body["traits"])...), Extra: api.Object(body["extra"]),
		CreatedAt: api.Timestamp(s.conductor.Now),
	}
	var backfill *conductor.Node
	if ref := api.Text(body["node"]); ref != "" {
		if c.Minor < 58 {
			return nil, nil, api.Fault(http.StatusBadRequest, "Cannot set node when creating an allocation in this API version")
		}
		if backfill = s.seen(c, ref); backfill == nil {
			return nil, nil, api.Fault(http.StatusBadRequest, "Node %s could not be found.", ref)
		}
		if a.Class == "" {
			a.Class = backfill.Str("resource_class")
		}
		if a.Uuid == "" {
			a.Uuid = backfill.Str("instance_uuid")
		}
	} else if a.Class == "" {
		return nil, nil, api.Fault(http.StatusBadRequest, "The resource_class field is mandatory when not backfilling")
	}
	for _, ref := range api.Texts(body["candidate_nodes"]) {
		n := s.conductor.Find(ref)
		if n == nil || !s.Policy.Grants(c, "allocation:create_restricted", policy.Target{}) && !s.lists(c, "node", n) {
			return nil, nil, api.Fault(http.StatusBadRequest, "Nodes cannot be found: %s", ref)
		}
		a.Candidates = append(a.Candidates, n.Str("uuid"))
	}
	if a.Uuid == "" {
		a.Uuid = api.NewUUID()
	}
	if s.conductor.FindAllocation(a.Uuid) != nil {
		return nil, nil, api.Fault(http.StatusConflict, "An allocation with UUID %s already exists.", a.Uuid)
	}
	if a.Name != "" && s.conductor.FindAllocation(a.Name) != nil {
		return nil, nil, api.Fault(http.StatusConflict, "An allocation with name %s already exists.", a.Name)
	}
	return a, backfill, nil
}

func (s *Server) checkAllocationBody(c *api.Call, body map[string]any) error {
	rules := api.Schema{Name: "allocation", Members: allocationSchemaMembers}
	if !s.legacy() {
		rules.Name = ""
	}
	if err := rules.Check(body); err != nil {
		return err
	}
	for _, key := range []string{"candidate_nodes", "traits"} {
		if err := api.CheckTexts(rules.Name, body[key]); err != nil {
			return err
		}
	}
	for _, trait := range api.Texts(body["traits"]) {
		if err := api.CheckTrait(rules.Name, trait); err != nil {
			return err
		}
	}
	if _, given := body["node"]; given && c.Minor < 58 && !s.legacy() {
		return api.Fault(http.StatusBadRequest, "Schema error: Additional properties are not allowed ('node' was unexpected)")
	}
	// 39 accepts any text as a UUID. It never processes such an allocation and cannot delete it.
	if uuid := api.Text(body["uuid"]); uuid != "" && !api.IsUUID(uuid) && s.legacy() {
		return api.Fault(http.StatusBadRequest, "Expected UUID for uuid: %s", uuid)
	}
	if body["owner"] != nil && c.Minor < 60 {
		return api.NotAcceptable()
	}
	if name := api.Text(body["name"]); name != "" && !api.ValidName(name) {
		return api.Fault(http.StatusBadRequest, "Cannot create allocation with invalid name '%s'", name)
	}
	return nil
}

func (s *Server) patchAllocation(c *api.Call, a *conductor.Allocation) (api.Reply, error) {
	ops, err := c.Patch()
	if err != nil {
		return api.Reply{}, err
	}
	if err := api.CheckPatchable(ops, []string{"name", "extra"}); err != nil {
		return api.Reply{}, err
	}
	for _, value := range api.PatchValues(ops, "/name") {
		if _, isText := value.(string); value != nil && value != "" && (!isText || !api.ValidName(api.Text(value))) {
			return api.Reply{}, api.Fault(http.StatusBadRequest, "Cannot update allocation with invalid name '%s'", api.PyText(value))
		}
	}
	document := map[string]any{"name": api.OrNull(a.Name), "extra": api.Clone(a.Extra)}
	if err := api.ApplyPatch(document, ops); err != nil {
		return api.Reply{}, err
	}
	if err := (api.Schema{Name: "patch", Members: allocationSchemaMembers}).Check(document); err != nil {
		return api.Reply{}, err
	}
	name := api.Text(document["name"])
	if other := s.conductor.FindAllocation(name); name != "" && other != nil && other != a && other.Name == name {
		return api.Reply{}, api.Fault(http.StatusConflict, "An allocation with name %s already exists.", name)
	}
	a.Name, a.Extra, a.UpdatedAt = name, api.Object(document["extra"]), api.Timestamp(s.conductor.Now)
	return api.OK(http.StatusOK, showAllocation(c, a, nil)), nil
}

// nodeAllocation answers /v1/nodes/{node}/allocation. For a node that does not exist it answers 400.
func (s *Server) nodeAllocation(c *api.Call, ref string) (api.Reply, error) {
	if c.Minor < 52 {
		return api.Reply{}, api.RouterFault(http.StatusNotFound, "")
	}
	n := s.conductor.Find(ref)
	if n == nil {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Node %s could not be found.", ref)
	}
	if !s.sees(c, n) {
		return api.Reply{}, api.Fault(http.StatusNotFound, "Resource could not be found.")
	}
	a := s.conductor.AllocationOf(n)
	if a == nil {
		return api.Reply{}, api.Fault(http.StatusNotFound, "Allocation for node %s was not found", ref)
	}
	if err := s.Policy.Enforce(c, policy.RequestRules[c.Method+" allocation"], policy.Target{Owner: a.Owner}); err != nil {
		return api.Reply{}, err
	}
	switch c.Method {
	case http.MethodGet:
		fields, err := allocationQuery(c, "fields")
		return api.OK(http.StatusOK, showAllocation(c, a, fields)), err
	case http.MethodDelete:
		return api.Done(http.StatusNoContent), s.conductor.DeleteAllocation(a)
	}
	return api.Reply{}, api.MethodNotAllowed("DELETE, GET")
}
