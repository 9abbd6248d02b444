package fakeironic

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/conductor"
)

type portgroup struct {
	number                    int // of its row in the database
	uuid, name, address, mode string
	category                  string
	dynamic                   bool   // Ironic has made it for VIFs
	physicalNetwork           string // of its ports; since 39, Ironic takes it from the first one
	createdAt, updatedAt      string
	standalone                bool
	extra, properties         map[string]any
	node                      *conductor.Node
}

// portgroupSchema is the schema of new and patched port groups.
func (s *Server) portgroupSchema(name string) api.Schema {
	rules := api.Schema{Name: name, Required: []string{"node_uuid"}, Members: map[string]api.Kind{
		"uuid": api.TextKind, "name": api.TextKind, "address": api.TextKind, "mode": api.TextKind, "extra": api.ObjectKind,
		"properties": api.ObjectKind,
		"node_uuid":  api.StringKind, "standalone_ports_supported": api.BoolKind,
	}}
	if s.maxMinor() >= 102 {
		rules.Members["physical_network"] = api.Kind{Types: api.TextKind.Types, MaxLength: 64}
	}
	if s.maxMinor() >= 103 {
		rules.Members["category"] = api.Kind{Types: api.TextKind.Types, MaxLength: 80}
	}
	return rules
}

// show returns the group as the API shows it, with the given fields; nil means all.
func (g *portgroup) show(c *api.Call, fields []string) api.Ordered {
	all := []struct {
		since int
		name  string
		value any
	}{
		{23, "uuid", g.uuid},
		{23, "created_at", g.createdAt},
		{23, "updated_at", api.OrNull(g.updatedAt)},
		{23, "address", api.OrNull(g.address)},
		{103, "category", api.OrNull(g.category)},
		{111, "dynamic_portgroup", g.dynamic},
		{23, "extra", g.extra},
		{23, "internal_info", g.node.InternalInfoOf(g.uuid)},
		{26, "mode", api.OrNull(g.mode)},
		{23, "name", api.OrNull(g.name)},
		{102, "physical_network", api.OrNull(g.physicalNetwork)},
		{26, "properties", g.properties},
		{23, "standalone_ports_supported", g.standalone},
		{23, "node_uuid", g.node.Str("uuid")},
	}
	var out api.Ordered
	for _, f := range all {
		if (c.Minor >= f.since || c.Legacy() && f.since == 26) && (fields == nil || slices.Contains(fields, f.name)) {
			out = append(out, api.Member{f.name, f.value})
		}
	}
	out = append(out, api.Member{"links", c.Links("portgroups/" + g.uuid)})
	if fields == nil {
		out = append(out, api.Member{"ports", c.Links("portgroups/" + g.uuid + "/ports")})
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
func (s *Server) portsOf(g *portgroup) (members []*conductor.Port) {
	for _, p := range s.conductor.Ports {
		if api.Text(p.Fields["portgroup_uuid"]) == g.uuid {
			members = append(members, p)
		}
	}
	return members
}

// groupsOf returns the port groups of a node.
func (s *Server) groupsOf(n *conductor.Node) (groups []conductor.Group) {
	for _, g := range s.portgroups {
		if g.node == n {
			groups = append(groups, conductor.Group{UUID: g.uuid, Address: g.address, Extra: g.extra})
		}
	}
	return groups
}

// routePortgroups answers /v1/portgroups; onNode limits it to one node.
func (s *Server) routePortgroups(c *api.Call, rest []string, onNode *conductor.Node) (api.Reply, error) {
	if c.Minor < 23 {
		return api.Reply{}, api.RouterFault(http.StatusNotFound, "")
	}
	detail := len(rest) == 1 && rest[0] == "detail"
	switch {
	case len(rest) == 0 && c.Method == http.MethodPost && onNode == nil:
		return s.createPortgroup(c)
	case (len(rest) == 0 || detail) && c.Method == http.MethodGet:
		return s.listPortgroups(c, onNode, detail)
	case len(rest) == 0:
		return api.Reply{}, api.MethodNotAllowed("GET, POST")
	}
	g := s.findPortgroup(rest[0])
	if g == nil {
		return api.Reply{}, api.Fault(http.StatusNotFound, "Portgroup %s could not be found.", rest[0])
	}
	switch c.Method {
	case http.MethodGet:
		shown, err := selected(c, g.show(c, nil))
		return api.OK(http.StatusOK, shown), err
	case http.MethodPatch:
		return s.patchPortgroup(c, g)
	case http.MethodDelete:
		return api.Done(http.StatusNoContent), s.deletePortgroup(g)
	}
	return api.Reply{}, api.MethodNotAllowed("DELETE, GET, PATCH")
}

func (s *Server) listPortgroups(c *api.Call, onNode *conductor.Node, detail bool) (api.Reply, error) {
	if err := c.Accept("node", "address", "limit", "marker", "sort_key", "sort_dir", "fields", "detail"); err != nil {
		return api.Reply{}, err
	}
	if ref := c.Query.Get("node"); ref != "" {
		if onNode = s.conductor.Find(ref); onNode == nil {
			return api.Reply{}, api.Fault(http.StatusNotFound, "Node %s could not be found.", ref)
		}
	}
	fields, err := c.Fields("uuid", "address", "name")
	if err != nil {
		return api.Reply{}, err
	}
	if detail {
		fields = nil
		c.Minor = s.maxMinor() // 39 shows the fields of all versions (api/controllers/v1/portgroup.py: detail)
	}
	var selected []*portgroup
	for _, g := range s.portgroups {
		if s.lists(c, "portgroup", g.node) && (onNode == nil || g.node == onNode) &&
			(!c.Query.Has("address") || g.address == strings.ToLower(c.Query.Get("address"))) {
			selected = append(selected, g)
		}
	}
	return api.Listing[*portgroup]{
		Key: "portgroups", Noun: "Portgroup", Fields: fields,
		ID:    func(g *portgroup) string { return g.uuid },
		Known: func(id string) bool { return s.findPortgroup(id) != nil },
		Show:  func(g *portgroup) (any, error) { return g.show(c, fields), nil },
	}.Reply(c, selected)
}

func (s *Server) createPortgroup(c *api.Call) (api.Reply, error) {
	body, err := c.Object("portgroup")
	if err != nil {
		return api.Reply{}, err
	}
	if c.Minor < 26 && (api.Text(body["mode"]) != "" || len(api.Object(body["properties"])) > 0) {
		return api.Reply{}, api.NotAcceptable()
	}
	g := &portgroup{uuid: api.NewUUID(), mode: "active-backup", standalone: true, createdAt: api.Timestamp(s.conductor.Now)}
	if err := s.readPortgroup(g, s.portgroupSchema("portgroup"), body); err != nil {
		return api.Reply{}, err
	}
	if uuid := api.Text(body["uuid"]); uuid != "" {
		g.uuid = uuid
	}
	if g.node = s.conductor.NodeByUUID[api.Text(body["node_uuid"])]; g.node == nil {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Node %s could not be found.", api.Text(body["node_uuid"]))
	}
	if g.name != "" && !api.ValidName(g.name) {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Cannot create portgroup with invalid name %s", api.PyRepr(g.name))
	}
	if err := s.uniquePortgroup(g); err != nil {
		return api.Reply{}, err
	}
	s.groupsMade++
	g.number = s.groupsMade
	s.portgroups = append(s.portgroups, g)
	return c.Created("portgroups/"+g.uuid, api.CoarseTimes(g.show(c, nil))), nil
}

// readPortgroup checks a new or patched document, and copies it into a group.
func (s *Server) readPortgroup(g *portgroup, rules api.Schema, body map[string]any) (err error) {
	if err := rules.Check(body); err != nil {
		return err
	}
	for _, key := range []string{"uuid", "node_uuid"} {
		if value := body[key]; value != nil && !api.IsUUID(api.Text(value)) {
			return api.Fault(http.StatusBadRequest, "Expected UUID for %s: %s", key, api.Text(value))
		}
	}
	if value := body["standalone_ports_supported"]; value != nil {
		valid := false
		if g.standalone, valid = api.ParseBool(value); !valid {
			return api.NotBool("standalone_ports_supported", value)
		}
	}
	g.address = ""
	if body["address"] != nil {
		if g.address, err = api.ReadMAC(body["address"]); err != nil {
			return err
		}
	}
	if mode, given := body["mode"]; given {
		g.mode = api.Text(mode)
	}
	g.name, g.physicalNetwork, g.category = api.Text(body["name"]), api.Text(body["physical_network"]), api.Text(body["category"])
	g.extra, g.properties = api.Object(body["extra"]), api.Object(body["properties"])
	return nil
}

// uniquePortgroup refuses a UUID, a name or an address that another group has, on any node.
func (s *Server) uniquePortgroup(g *portgroup) error {
	for _, other := range s.portgroups {
		switch {
		case other == g:
		case other.uuid == g.uuid:
			return api.Fault(http.StatusConflict, "A portgroup with UUID %s already exists.", g.uuid)
		case g.name != "" && other.name == g.name:
			return api.Fault(http.StatusConflict, "A portgroup with name %s already exists.", g.name)
		case g.address != "" && other.address == g.address:
			return api.Fault(http.StatusConflict, "A portgroup with MAC address %s already exists.", g.address)
		}
	}
	return nil
}

// patchPortgroup changes a group. Unlike a port, a group can change in every state of its node.
func (s *Server) patchPortgroup(c *api.Call, g *portgroup) (api.Reply, error) {
	ops, err := c.Patch()
	if err != nil {
		return api.Reply{}, err
	}
	allowed := []string{"address", "extra", "mode", "name", "node_uuid", "properties", "standalone_ports_supported"}
	if !s.legacy() {
		allowed = append(allowed, "physical_network", "category")
	}
	if err := api.CheckPatchable(ops, allowed); err != nil {
		return api.Reply{}, err
	}
	for _, op := range ops {
		switch {
		case c.Minor < 26 && (op.Path == "/mode" || op.Path == "/properties"): // but not what is in them
			return api.Reply{}, api.NotAcceptable()
		case op.Path == "/mode" && op.Op == "remove":
			return api.Reply{}, api.Fault(http.StatusBadRequest, "'mode' is a mandatory attribute and can not be removed")
		case op.Path == "/node_uuid" && op.Value != g.node.Str("uuid"):
			return api.Reply{}, s.movedTo(op.Value)
		case op.Path == "/name" && api.Text(op.Value) != "" && !api.ValidName(api.Text(op.Value)):
			return api.Reply{}, api.Fault(http.StatusBadRequest, "Portgroup %s: Cannot change name to invalid name '%s'", g.uuid, op.Value)
		}
	}
	document := map[string]any{
		"name": api.OrNull(g.name), "address": api.OrNull(g.address), "mode": api.OrNull(g.mode), "extra": api.Clone(g.extra),
		"properties": api.Clone(g.properties), "standalone_ports_supported": g.standalone, "node_uuid": g.node.Str("uuid"),
	}
	if s.maxMinor() >= 102 {
		document["physical_network"] = api.OrNull(g.physicalNetwork)
	}
	if s.maxMinor() >= 103 {
		document["category"] = api.OrNull(g.category)
	}
	if err := api.ApplyPatch(document, ops); err != nil {
		return api.Reply{}, err
	}
	next := *g
	if err := s.readPortgroup(&next, s.portgroupSchema("patch"), document); err != nil {
		return api.Reply{}, err
	}
	if err := g.node.Locked(); err != nil {
		return api.Reply{}, err
	}
	if fault := s.conductor.NetworkFault(g.node); fault != "" {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "%s", fault)
	}
	s.portgroups = slices.DeleteFunc(s.portgroups, func(other *portgroup) bool { return other == g })
	err = s.uniquePortgroup(&next)
	if err == nil {
		*g = next
		g.updatedAt = api.Timestamp(s.conductor.Now)
	}
	if s.portgroups = append(s.portgroups, g); err != nil {
		return api.Reply{}, err
	}
	// Ironic looks at the first operation only
	if len(api.PatchValues(ops, "/physical_network")) > 0 && ops[0].Field() == "physical_network" {
		for _, p := range s.portsOf(g) {
			p.Fields["physical_network"], p.Fields["updated_at"] = api.OrNull(g.physicalNetwork), api.Timestamp(s.conductor.Now)
		}
	}
	return api.OK(http.StatusOK, api.CoarseTimes(g.show(c, nil))), nil
}

// deletePortgroup deletes a group without ports. Ironic 21.4 compares the UUID with a column of numbers, so the database finds the ports of
// the group whose number the UUID begins with.
func (s *Server) deletePortgroup(g *portgroup) error {
	if err := g.node.Locked(); err != nil {
		return err
	}
	mistaken := func(other *portgroup) bool {
		return float64(other.number) == leadingNumber(g.uuid) && len(s.portsOf(other)) > 0
	}
	switch {
	case s.legacy() && slices.ContainsFunc(s.portgroups, mistaken):
		return api.Fault(http.StatusBadRequest, "Cannot complete the requested action because portgroup %s contains ports.", g.uuid)
	case len(s.portsOf(g)) > 0 && s.legacy():
		return api.Fault(http.StatusInternalServerError, "Unexpected error raised by RPC")
	case len(s.portsOf(g)) > 0:
		return api.Fault(http.StatusBadRequest, "Cannot complete the requested action because portgroup 1 contains ports.")
	}
	s.portgroups = slices.DeleteFunc(s.portgroups, func(other *portgroup) bool { return other == g })
	return nil
}

// leadingNumber returns the number that a text begins with, as MariaDB reads it; 0 if it begins with none.
func leadingNumber(s string) float64 {
	n, _ := strconv.ParseFloat(leadingDigits.FindString(s), 64) // infinity if it is too large
	return n
}

var leadingDigits = regexp.MustCompile(`^[0-9]+(e[0-9]+)?`)

// checkMembership applies Ironic's rules about ports in groups to a new or changed port. given are the attributes that the request
// sets, and p is the port as it is, nil for a new one.
func (s *Server) checkMembership(c *api.Call, n *conductor.Node, p *conductor.Port, body map[string]any, sets func(key string) bool) error {
	ref := api.Text(body["portgroup_uuid"])
	if ref == "" {
		return nil
	}
	g := s.findPortgroup(ref)
	switch {
	case g == nil:
		return api.Fault(http.StatusBadRequest, "Portgroup %s could not be found.", ref)
	case g.node != n && p == nil:
		status := http.StatusBadRequest
		if s.legacy() {
			status = http.StatusInternalServerError
		}
		return api.Fault(status, "Port can not be added to a portgroup belonging to a different node.")
	case p == nil && !g.standalone && body["pxe_enabled"] == true:
		return api.Fault(http.StatusConflict, "Port group %s doesn't support standalone ports. This port cannot be created as a member "+
			"of that portgroup as the port's 'pxe_enabled' field was set to True.", g.uuid)
	case p != nil && c.Minor >= 102 && sets("physical_network"):
		return api.Fault(http.StatusBadRequest, "physical_network cannot be changed while the port belongs to a portgroup.")
	case p != nil && !sets("portgroup_uuid") && !sets("physical_network"):
		return nil
	}
	network := api.Text(body["physical_network"])
	others := slices.DeleteFunc(s.portsOf(g), func(other *conductor.Port) bool { return other == p })
	current, fixed := g.physicalNetwork, g.physicalNetwork != ""
	if len(others) > 0 {
		current, fixed = api.Text(others[0].Fields["physical_network"]), true
	}
	if fixed && network != current {
		return api.Fault(http.StatusConflict, "Port with physical network %s cannot become a member of port group %s which has ports in "+
			"physical network %s.",
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
