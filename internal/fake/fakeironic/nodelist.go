package fakeironic

import (
	"encoding/json"
	"net/http"
	"slices"
	"sort"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/conductor"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/policy"
)

// viewFor returns the view of a node for the user of a request. It has the given fields; nil means all.
func (s *Server) viewFor(c *api.Call, n *conductor.Node, fields []string) conductor.View {
	return conductor.View{Minor: c.Minor, Base: c.Base, Fields: strings.Join(fields, ","), Hidden: s.Policy.Hidden(c, targetOf(n), fields)}
}

// render encodes a node as JSON: those fields of the view that the API version has, hidden ones redacted. It keeps the text until the node
// changes.
func (s *Server) render(c *api.Call, n *conductor.Node, v conductor.View) json.RawMessage {
	if out, found := n.Rendered[v]; found {
		return out
	}
	var wanted map[string]bool
	if v.Fields != "" {
		wanted = map[string]bool{}
		for _, name := range strings.Split(v.Fields, ",") {
			wanted[name] = true
		}
	}
	uuid := n.Str("uuid")
	var out api.Ordered
	for _, f := range api.NodeFields {
		if f.Since > c.Minor || wanted != nil && !wanted[f.Name] {
			continue
		}
		value := shownField(c, n, f.Name)
		if slices.Contains(strings.Split(v.Hidden, ","), f.Name) {
			value = policy.Redaction(f.Name)
		}
		out = append(out, api.Member{f.Name, value})
	}
	path := "nodes/" + uuid
	out = append(out, api.Member{"links", c.Links(path)})
	if wanted == nil {
		out = append(out, api.Member{"ports", c.Links(path + "/ports")})
		for _, sub := range []struct {
			name  string
			since int
		}{{"states", 14}, {"portgroups", 24}, {"volume", 32}} {
			if c.Minor >= sub.since {
				out = append(out, api.Member{sub.name, c.Links(path + "/" + sub.name)})
			}
		}
	}
	if n.Rendered == nil {
		n.Rendered = map[conductor.View][]byte{}
	}
	rendered := api.Encode(out)
	n.Rendered[v] = rendered
	return rendered
}

// shownField returns the value of a field as the API shows it, with masked secrets.
func shownField(c *api.Call, n *conductor.Node, name string) any {
	value := n.Fields[name]
	switch name {
	case "driver_info":
		return api.Mask(api.Object(value), c.Legacy())
	case "instance_info":
		return api.MaskInstanceInfo(api.Object(value), c.Legacy())
	case "driver_internal_info":
		info := api.Object(value)
		if api.Text(info["agent_secret_token"]) != "" {
			info = api.Object(api.Clone(info))
			info["agent_secret_token"] = api.Stars
		}
		return info
	case "provision_state":
		if c.Minor < 2 && value == string(conductor.Available) {
			return nil
		}
	}
	return value
}

type nodeFilter struct {
	name  string
	since int
	keep  func(n *conductor.Node, value string) bool
}

func fieldIs(field string) func(*conductor.Node, string) bool {
	return func(n *conductor.Node, value string) bool { return n.Str(field) == value }
}

func flagIs(test func(*conductor.Node) bool) func(*conductor.Node, string) bool {
	return func(n *conductor.Node, value string) bool {
		wanted, _ := api.ParseBool(value)
		return test(n) == wanted
	}
}

var nodeFilters = []nodeFilter{
	{"instance_uuid", 1, fieldIs("instance_uuid")},
	{"associated", 1, flagIs(func(n *conductor.Node) bool { return n.Str("instance_uuid") != "" })},
	{"maintenance", 1, flagIs(func(n *conductor.Node) bool { return n.Flag("maintenance") })},
	{"chassis_uuid", 1, fieldIs("chassis_uuid")},
	{"provision_state", 9, fieldIs("provision_state")},
	{"driver", 16, fieldIs("driver")},
	{"resource_class", 21, fieldIs("resource_class")},
	{"fault", 42, fieldIs("fault")},
	{"conductor_group", 46, func(n *conductor.Node, v string) bool { return strings.EqualFold(n.Str("conductor_group"), v) }},
	{"conductor", 49, fieldIs("conductor")},
	{"owner", 50, fieldIs("owner")},
	{"description_contains", 51, func(n *conductor.Node, v string) bool { return strings.Contains(n.Str("description"), v) }},
	{"retired", 61, flagIs(func(n *conductor.Node) bool { return n.Flag("retired") })},
	{"lessee", 65, fieldIs("lessee")},
	{"project", 65, func(n *conductor.Node, v string) bool { return n.Str("owner") == v || n.Str("lessee") == v }},
	{"shard", 82, func(n *conductor.Node, v string) bool {
		return slices.Contains(strings.Split(v, ","), n.Str("shard")) && n.Str("shard") != ""
	}},
	{"sharded", 82, flagIs(func(n *conductor.Node) bool { return n.Str("shard") != "" })},
	{"parent_node", 83, fieldIs("parent_node")},
	{"include_children", 83, func(*conductor.Node, string) bool { return true }},
	{"instance_name", 104, fieldIs("instance_name")},
}

// listNodes answers GET /v1/nodes and, with detail, GET /v1/nodes/detail.
func (s *Server) listNodes(c *api.Call, detail bool) (api.Reply, error) {
	for _, key := range []string{"detail", "fields"} {
		if detail && c.Query.Has(key) {
			return api.Reply{}, api.Fault(http.StatusBadRequest, "Unexpected arguments: %s", key)
		}
	}
	keep, err := s.nodeSelection(c)
	if err != nil {
		return api.Reply{}, err
	}
	fields, detail, err := s.nodeListFields(c, detail)
	if err != nil {
		return api.Reply{}, err
	}
	var selected []*conductor.Node
	for _, n := range s.conductor.Nodes {
		if keep(n) && s.lists(c, "node", n) {
			selected = append(selected, n)
		}
	}
	if err := sortNodes(c, selected); err != nil {
		return api.Reply{}, err
	}
	shown := fields
	if detail {
		shown = nil
	}
	return api.Listing[*conductor.Node]{
		Key: "nodes", Noun: "Node", Fields: withoutLinks(fields, detail),
		ID:    func(n *conductor.Node) string { return n.Str("uuid") },
		Known: func(id string) bool { return s.conductor.NodeByUUID[id] != nil },
		Show:  func(n *conductor.Node) (any, error) { return s.render(c, n, s.viewFor(c, n, shown)), nil },
	}.Reply(c, selected)
}

// nodeSelection checks the filters of the list and combines them.
func (s *Server) nodeSelection(c *api.Call) (func(*conductor.Node) bool, error) {
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
		if !c.Query.Has(f.name) {
			continue
		}
		if c.Minor < f.since && f.name == "provision_state" {
			return nil, api.NotAcceptable()
		}
		if c.Minor < f.since {
			return nil, api.NotAcceptableBefore(f.since)
		}
		value := c.Query.Get(f.name)
		if err := s.checkFilter(f.name, value, len(c.Query[f.name]) > 1); err != nil {
			return nil, err
		}
		tests = append(tests, test{f, value})
	}
	if err := c.Accept(known...); err != nil {
		return nil, err
	}
	children, _ := api.ParseBool(c.Query.Get("include_children"))
	children = children || c.Query.Has("parent_node")
	return func(n *conductor.Node) bool {
		if !children && n.Str("parent_node") != "" {
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

func (s *Server) checkFilter(name, value string, repeated bool) error {
	switch name {
	case "provision_state":
		if repeated || !conductor.State(value).Known() {
			return api.Fault(http.StatusBadRequest, "Provision state %q is not valid", value)
		}
	case "instance_uuid", "chassis_uuid":
		if !api.IsUUID(value) {
			return api.Fault(http.StatusBadRequest, "Expected UUID for %s: %s", name, value)
		}
		if name == "chassis_uuid" && s.findChassis(value) == nil {
			return api.Fault(http.StatusNotFound, "Chassis %s could not be found.", value)
		}
	case "fault":
		valid := []string{"power failure", "clean failure", "rescue abort failure"}
		if !s.legacy() {
			valid = append(valid, "service failure")
		}
		if !slices.Contains(valid, value) {
			return api.Fault(http.StatusBadRequest, "Unrecognized fault \"%s\" is specified, allowed faults are (%s)",
				value, "'"+strings.Join(valid, "', '")+"'")
		}
	case "associated", "maintenance", "retired", "sharded", "include_children":
		if _, valid := api.ParseBool(value); !valid {
			return api.NotBool(name, value)
		}
	}
	return nil
}

// nodeListFields returns the fields that the list shows, or all if it shows every field.
func (s *Server) nodeListFields(c *api.Call, detail bool) (fields []string, all bool, err error) {
	if c.Query.Has("detail") {
		if c.Minor < 43 {
			return nil, false, api.Fault(http.StatusBadRequest, "Invalid query parameter ?detail=%s received.",
				api.PyBool(c.Query.Get("detail")))
		}
		asked, valid := api.ParseBool(c.Query.Get("detail"))
		if !valid {
			return nil, false, api.NotBool("detail", c.Query.Get("detail"))
		}
		detail = detail || asked
	}
	if !c.Query.Has("fields") {
		return api.SummaryFields, detail, nil
	}
	if detail {
		return nil, false, api.Fault(http.StatusBadRequest, "Can not specify ?detail=True and fields in the same request.")
	}
	fields = api.SplitList(c.Query["fields"])
	for _, name := range fields {
		since, known := api.NodeFieldSince(name)
		if !known || since > s.maxMinor() || name == "conductor" || name == "chassis_uuid" || name == "allocation_uuid" {
			return nil, false, api.Fault(http.StatusInternalServerError, "type object 'Node' has no attribute '%s'", name)
		}
		if since > c.Minor {
			return nil, false, api.NotAcceptable()
		}
		if isTimestamp(name) && len(s.conductor.Nodes) > 0 {
			return nil, false, api.Fault(http.StatusBadRequest, "Field %s is not a valid field.", name)
		}
	}
	return append(fields, "links"), false, nil
}

// isTimestamp reports whether a field is a timestamp. Ironic shows those only together with all other fields: a query cannot select them.
func isTimestamp(name string) bool { return name == "created_at" || name == "updated_at" }

// withoutLinks returns the fields that the link to the next page names; none for a list with all fields.
func withoutLinks(fields []string, detail bool) []string {
	if detail {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(fields), func(name string) bool { return name == "links" })
}

func sortNodes(c *api.Call, nodes []*conductor.Node) error {
	key, descending := c.Query.Get("sort_key"), c.Query.Get("sort_dir") == "desc"
	if direction := c.Query.Get("sort_dir"); direction != "" && direction != "asc" && direction != "desc" {
		return api.Fault(http.StatusBadRequest, "Invalid sort direction: %s. Acceptable values are 'asc' or 'desc'", direction)
	}
	if key == "" || key == "id" {
		key = ""
	} else if since, known := api.NodeFieldSince(key); !known || key == "traits" {
		quoted := "\"" + key + "\""
		if known {
			quoted = key
		}
		return api.Fault(http.StatusBadRequest, "The sort_key value %s is an invalid field for sorting", quoted)
	} else if since > c.Minor {
		return api.NotAcceptable()
	}
	sort.SliceStable(nodes, func(i, j int) bool {
		a, b := nodes[i], nodes[j]
		if descending {
			a, b = b, a
		}
		if key == "" || api.PyRepr(a.Fields[key]) == api.PyRepr(b.Fields[key]) {
			return a.Order < b.Order
		}
		return api.PyRepr(a.Fields[key]) < api.PyRepr(b.Fields[key])
	})
	return nil
}

func (s *Server) showNode(c *api.Call, n *conductor.Node) (api.Reply, error) {
	if err := c.Accept("fields"); err != nil {
		return api.Reply{}, err
	}
	if !c.Query.Has("fields") {
		return api.OK(http.StatusOK, s.render(c, n, s.viewFor(c, n, nil))), nil
	}
	fields := api.SplitList(c.Query["fields"])
	for _, name := range fields {
		since, known := api.NodeFieldSince(name)
		if !known || since > s.maxMinor() || isTimestamp(name) {
			return api.Reply{}, api.Fault(http.StatusBadRequest, "Field %s is not a valid field.", name)
		}
		if since > c.Minor {
			return api.Reply{}, api.NotAcceptable()
		}
	}
	return api.OK(http.StatusOK, s.render(c, n, s.viewFor(c, n, append(fields, "links")))), nil
}
