package fakeironic

import (
	"encoding/json"
	"net/http"
	"slices"
	"sort"
	"strings"
)

// nodeFilter is one filter of the node list.
type nodeFilter struct {
	name  string
	since int
	keep  func(n *node, value string) bool
}

func fieldIs(field string) func(*node, string) bool {
	return func(n *node, value string) bool { return n.str(field) == value }
}

func flagIs(test func(*node) bool) func(*node, string) bool {
	return func(n *node, value string) bool {
		wanted, _ := parseBool(value)
		return test(n) == wanted
	}
}

// nodeFilters are the filters of the node list.
var nodeFilters = []nodeFilter{
	{"instance_uuid", 1, fieldIs("instance_uuid")},
	{"associated", 1, flagIs(func(n *node) bool { return n.str("instance_uuid") != "" })},
	{"maintenance", 1, flagIs(func(n *node) bool { return n.flag("maintenance") })},
	{"chassis_uuid", 1, fieldIs("chassis_uuid")},
	{"provision_state", 9, fieldIs("provision_state")},
	{"driver", 16, fieldIs("driver")},
	{"resource_class", 21, fieldIs("resource_class")},
	{"fault", 42, fieldIs("fault")},
	{"conductor_group", 46, func(n *node, v string) bool { return strings.EqualFold(n.str("conductor_group"), v) }},
	{"conductor", 49, fieldIs("conductor")},
	{"owner", 50, fieldIs("owner")},
	{"description_contains", 51, func(n *node, v string) bool { return strings.Contains(n.str("description"), v) }},
	{"retired", 61, flagIs(func(n *node) bool { return n.flag("retired") })},
	{"lessee", 65, fieldIs("lessee")},
	{"project", 65, func(n *node, v string) bool { return n.str("owner") == v || n.str("lessee") == v }},
	{"shard", 82, func(n *node, v string) bool {
		return slices.Contains(strings.Split(v, ","), n.str("shard")) && n.str("shard") != ""
	}},
	{"sharded", 82, flagIs(func(n *node) bool { return n.str("shard") != "" })},
	{"parent_node", 83, fieldIs("parent_node")},
	{"include_children", 83, func(*node, string) bool { return true }},
	{"instance_name", 104, fieldIs("instance_name")},
}

// listNodes answers GET /v1/nodes and, with detail, GET /v1/nodes/detail.
func (s *Server) listNodes(c *call, detail bool) (reply, error) {
	for _, key := range []string{"detail", "fields"} {
		if detail && c.query.Has(key) {
			return reply{}, fault(http.StatusBadRequest, "Unexpected arguments: %s", key)
		}
	}
	keep, err := s.nodeSelection(c)
	if err != nil {
		return reply{}, err
	}
	fields, detail, err := s.nodeListFields(c, detail)
	if err != nil {
		return reply{}, err
	}
	var selected []*node
	for _, n := range s.nodes {
		if keep(n) && s.lists(c, "node", n) {
			selected = append(selected, n)
		}
	}
	if err := sortNodes(c, selected); err != nil {
		return reply{}, err
	}
	page, err := paged(c, withoutLinks(fields, detail), selected, func(n *node) string { return n.str("uuid") }, func(marker string) error {
		if s.nodeByUUID[marker] == nil {
			return fault(http.StatusNotFound, "Node %s could not be found.", marker)
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
	for i, n := range page.items {
		items[i] = s.render(c, n, s.viewFor(c, n, fields))
	}
	return page.reply("nodes", items), nil
}

// nodeSelection checks the filters of the list and combines them.
func (s *Server) nodeSelection(c *call) (func(*node) bool, error) {
	known := []string{"limit", "marker", "sort_key", "sort_dir", "fields", "detail"}
	type test struct {
		filter nodeFilter
		value  string
	}
	var tests []test
	for _, f := range nodeFilters {
		if f.since >= 83 && s.legacy() {
			continue
		}
		known = append(known, f.name)
		if !c.query.Has(f.name) {
			continue
		}
		if c.minor < f.since && f.name == "provision_state" {
			return nil, notAcceptable()
		}
		if c.minor < f.since {
			return nil, notAcceptableBefore(f.since)
		}
		value := c.query.Get(f.name)
		if err := s.checkFilter(f.name, value, len(c.query[f.name]) > 1); err != nil {
			return nil, err
		}
		tests = append(tests, test{f, value})
	}
	if err := c.accept(known...); err != nil {
		return nil, err
	}
	children, _ := parseBool(c.query.Get("include_children"))
	children = children || c.query.Has("parent_node")
	return func(n *node) bool {
		if !children && n.str("parent_node") != "" {
			return false
		}
		for _, t := range tests {
			if !t.filter.keep(n, t.value) {
				return false
			}
		}
		return true
	}, nil
}

// checkFilter refuses invalid values of a filter.
func (s *Server) checkFilter(name, value string, repeated bool) error {
	switch name {
	case "provision_state":
		if repeated || !state(value).known() {
			return fault(http.StatusBadRequest, "Provision state %q is not valid", value)
		}
	case "instance_uuid", "chassis_uuid":
		if !isUUID(value) {
			return fault(http.StatusBadRequest, "Expected UUID for %s: %s", name, value)
		}
		if name == "chassis_uuid" && s.findChassis(value) == nil {
			return fault(http.StatusNotFound, "Chassis %s could not be found.", value)
		}
	case "fault":
		valid := []string{"power failure", "clean failure", "rescue abort failure"}
		if !s.legacy() {
			valid = append(valid, "service failure")
		}
		if !slices.Contains(valid, value) {
			return fault(http.StatusBadRequest, "Unrecognized fault \"%s\" is specified, allowed faults are (%s)",
				value, "'"+strings.Join(valid, "', '")+"'")
		}
	case "associated", "maintenance", "retired", "sharded", "include_children":
		if _, valid := parseBool(value); !valid {
			return notBool(name, value)
		}
	}
	return nil
}

// nodeListFields returns the fields that the list shows, or all if it shows every field.
func (s *Server) nodeListFields(c *call, detail bool) (fields []string, all bool, err error) {
	if c.query.Has("detail") {
		if c.minor < 43 {
			return nil, false, fault(http.StatusBadRequest, "Invalid query parameter ?detail=%s received.", pyBool(c.query.Get("detail")))
		}
		asked, valid := parseBool(c.query.Get("detail"))
		if !valid {
			return nil, false, notBool("detail", c.query.Get("detail"))
		}
		detail = detail || asked
	}
	if !c.query.Has("fields") {
		return summaryFields, detail, nil
	}
	if detail {
		return nil, false, fault(http.StatusBadRequest, "Can not specify ?detail=True and fields in the same request.")
	}
	fields = splitList(c.query["fields"])
	for _, name := range fields {
		since, known := nodeFieldSince(name)
		if !known || since > s.maxMinor() || name == "conductor" || name == "chassis_uuid" || name == "allocation_uuid" {
			return nil, false, fault(http.StatusInternalServerError, "type object 'Node' has no attribute '%s'", name)
		}
		if since > c.minor {
			return nil, false, notAcceptable()
		}
		if isTimestamp(name) && len(s.nodes) > 0 {
			return nil, false, fault(http.StatusBadRequest, "Field %s is not a valid field.", name)
		}
	}
	return append(fields, "links"), false, nil
}

// isTimestamp reports whether a query cannot select the field; Ironic shows it only together with all others.
func isTimestamp(name string) bool { return name == "created_at" || name == "updated_at" }

// withoutLinks returns the fields for the next link.
func withoutLinks(fields []string, detail bool) []string {
	if detail {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(fields), func(name string) bool { return name == "links" })
}

// sortNodes orders the list by sort_key and sort_dir.
func sortNodes(c *call, nodes []*node) error {
	key, descending := c.query.Get("sort_key"), c.query.Get("sort_dir") == "desc"
	if direction := c.query.Get("sort_dir"); direction != "" && direction != "asc" && direction != "desc" {
		return fault(http.StatusBadRequest, "Invalid sort direction: %s. Acceptable values are 'asc' or 'desc'", direction)
	}
	if key == "" || key == "id" {
		key = ""
	} else if since, known := nodeFieldSince(key); !known || key == "traits" {
		quoted := "\"" + key + "\""
		if known {
			quoted = key
		}
		return fault(http.StatusBadRequest, "The sort_key value %s is an invalid field for sorting", quoted)
	} else if since > c.minor {
		return notAcceptable()
	}
	sort.SliceStable(nodes, func(i, j int) bool {
		a, b := nodes[i], nodes[j]
		if descending {
			a, b = b, a
		}
		if key == "" || pyRepr(a.fields[key]) == pyRepr(b.fields[key]) {
			return a.order < b.order
		}
		return pyRepr(a.fields[key]) < pyRepr(b.fields[key])
	})
	return nil
}

// showNode answers GET /v1/nodes/{node}.
func (s *Server) showNode(c *call, n *node) (reply, error) {
	if err := c.accept("fields"); err != nil {
		return reply{}, err
	}
	if !c.query.Has("fields") {
		return ok(http.StatusOK, s.render(c, n, s.viewFor(c, n, nil))), nil
	}
	fields := splitList(c.query["fields"])
	for _, name := range fields {
		since, known := nodeFieldSince(name)
		if !known || since > s.maxMinor() || isTimestamp(name) {
			return reply{}, fault(http.StatusBadRequest, "Field %s is not a valid field.", name)
		}
		if since > c.minor {
			return reply{}, notAcceptable()
		}
	}
	return ok(http.StatusOK, s.render(c, n, s.viewFor(c, n, append(fields, "links")))), nil
}

// nodeRecords answers the read-only parts of a node.
func (s *Server) nodeRecords(c *call, n *node, part string) (reply, error) {
	switch part {
	case "inventory":
		if c.minor < 81 {
			return reply{}, routerFault(http.StatusNotFound, "")
		}
		if n.inventory == nil {
			return reply{}, fault(http.StatusNotFound, "Node inventory record for node %d could not be found.", n.order)
		}
		return ok(http.StatusOK, n.inventory), nil
	case "bios":
		if c.minor >= 40 {
			return s.showBIOS(c, n)
		}
	case "history":
		if c.minor >= 78 {
			return ok(http.StatusOK, ordered{{"history", append([]any{}, n.history...)}}), nil
		}
	case "firmware":
		if c.minor >= 86 {
			return s.showFirmware(n), nil
		}
	case "children":
		if c.minor >= 83 {
			return ok(http.StatusOK, ordered{
				{"children", s.children(n)},
				{"links", ordered{{"href", c.base + "/v1/nodes?parent_node=" + n.str("uuid")}, {"rel", "children"}}},
			}), nil
		}
	}
	return reply{}, fault(http.StatusBadRequest, "Field %s is not a valid field.", part)
}

// children returns the UUIDs of the nodes with the parent n.
func (s *Server) children(n *node) []string {
	uuids := []string{}
	for _, other := range s.nodes {
		if other.str("parent_node") == n.str("uuid") {
			uuids = append(uuids, other.str("uuid"))
		}
	}
	return uuids
}
