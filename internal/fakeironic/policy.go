package fakeironic

import (
	"net/http"
	"slices"
	"strings"
)

// Caller is a user as Keystone describes it for a token.
type Caller struct {
	Project string   // ID of the project of the token; empty with another scope
	System  bool     // the token has the scope of the system
	Roles   []string // admin implies manager, manager implies member, member implies reader
}

// Policy selects the rules that a Server with Keystone enforces (oslo.policy's enforce_scope and enforce_new_defaults).
type Policy string

// The policies.
const (
	PolicyDefault Policy = ""       // both are true
	PolicyLegacy  Policy = "legacy" // both are false
)

// rank is how much a role may do: each role may do what the ones before it may do. Zero in a rule is no role.
type rank int

const (
	_ rank = iota
	asReader
	asMember
	asManager
	asAdmin
)

var ranks = map[string]rank{"reader": asReader, "member": asMember, "manager": asManager, "admin": asAdmin}

// rankOf returns the highest rank of a user.
func rankOf(who *Caller) (highest rank) {
	for _, role := range who.Roles {
		highest = max(highest, ranks[role])
	}
	return highest
}

// isAdmin reports whether a user has the role admin.
func isAdmin(who *Caller) bool { return rankOf(who) >= asAdmin }

// project returns the project of a request. Without Keystone, Ironic believes the header.
func (c *call) project() string {
	if c.caller == nil {
		return c.header.Get("X-Project-Id")
	}
	return c.caller.Project
}

// isSystem reports whether the token of the user has the scope of the system.
func (c *call) isSystem() bool { return c.caller != nil && c.caller.System }

// target are the projects to which the object of a request belongs.
type target struct{ owner, lessee string }

func targetOf(n *node) target {
	if n == nil {
		return target{}
	}
	return target{owner: n.str("owner"), lessee: n.str("lessee")}
}

// identify finds the user of a request by its token, as keystonemiddleware does.
func (s *Server) identify(r *http.Request) (*Caller, *apiError) {
	if s.Identify == nil || isPublic(s, r) {
		return nil, nil
	}
	if who, known := s.Identify(r.Header.Get("X-Auth-Token")); known {
		return &who, nil
	}
	return nil, &apiError{
		status: http.StatusUnauthorized, text: "The request you have made requires authentication.", keystone: true,
		header: http.Header{"Www-Authenticate": {`Keystone uri="http://keystone.test/v3"`}},
	}
}

// grants reports whether a rule lets the user of a request do something with an object.
func (p Policy) grants(c *call, name string, t target) bool {
	who := c.caller
	if who == nil {
		return true
	}
	r, has := rights[name], rankOf(who)
	atLeast := func(least rank) bool { return least > 0 && has >= least }
	legacy := p == PolicyLegacy
	switch {
	case who.System && atLeast(r.system), atLeast(r.any),
		who.Project != "" && (who.Project == t.owner && atLeast(r.owner) || who.Project == t.lessee && atLeast(r.lessee)):
		return true
	case legacy && r.formerly != "":
		return p.grants(c, r.formerly, t)
	}
	return legacy && !r.recent && has == asAdmin
}

// enforce refuses what a rule does not grant.
func (p Policy) enforce(c *call, name string, t target) error {
	if c.caller == nil {
		return nil
	}
	if r := rights[name]; r.isSystemOnly(c.legacy()) && !c.caller.System && p == PolicyDefault {
		return fault(http.StatusInternalServerError, `"baremetal:%s": "%s" requires a scope of ['system'], request was made with project scope.`,
			name, systemChecks[r.system])
	}
	if !p.grants(c, name, t) {
		return fault(http.StatusForbidden, "Access was denied to the following resource: baremetal:%s", name)
	}
	return nil
}

// sees reports whether a node exists for the user of a request.
func (s *Server) sees(c *call, n *node) bool { return s.Policy.grants(c, "node:get", targetOf(n)) }

// seen is find for the nodes that exist for the user of a request.
func (s *Server) seen(c *call, ref string) *node {
	if n := s.find(ref); n != nil && s.sees(c, n) {
		return n
	}
	return nil
}

// lists reports whether a list of nodes, or of their parts, has a node for the user of a request.
func (s *Server) lists(c *call, kind string, n *node) bool {
	t := targetOf(n)
	return s.Policy.grants(c, kind+":list_all", target{}) || c.caller.Project == t.owner || c.caller.Project == t.lessee
}

// authorize refuses a request that the policy does not grant, before it is looked at otherwise. What depends on more than the path, the node and
// its owner is refused elsewhere: patches of nodes, and new allocations.
func (s *Server) authorize(c *call) error {
	if c.caller == nil || len(c.path) == 0 {
		return nil
	}
	key := c.method + " " + c.path[0]
	switch c.path[0] {
	case "nodes":
		if len(c.path) > 1 && c.path[1] != "detail" {
			return s.authorizeNode(c)
		}
		if c.method == http.MethodPost && s.Policy.grants(c, "node:create:self_owned_node", target{}) {
			return nil
		}
	case "ports", "portgroups":
		return s.authorizePart(c, strings.TrimSuffix(c.path[0], "s"))
	case "allocations":
		return s.authorizeAllocation(c)
	case "drivers":
		if len(c.path) > 2 && c.path[2] == "properties" {
			key += "/properties"
		}
	case "runbooks":
		return s.authorizeRunbook(c)
	}
	if name, ruled := requestRules[key]; ruled {
		return s.Policy.enforce(c, name, target{})
	}
	return nil
}

// authorizeNode is authorize for a node and its parts. A node that does not exist for the user is left to the handler.
func (s *Server) authorizeNode(c *call) error {
	n := s.seen(c, c.path[1])
	if n == nil || len(c.path) == 2 && c.method == http.MethodPatch {
		return nil
	}
	if len(c.path) == 2 && c.method == http.MethodDelete && s.Policy.grants(c, "node:delete:self_owned_node", targetOf(n)) {
		return nil
	}
	parts := c.path[2:]
	for length := len(parts); length >= 0; length-- { // the longest path that has a rule
		key := c.method + " " + strings.Join(append([]string{"node"}, parts[:length]...), "/")
		if name, ruled := requestRules[key]; ruled {
			return s.Policy.enforce(c, name, targetOf(n))
		}
	}
	return nil
}

// authorizePart is authorize for ports and port groups, which belong to the owner of their node.
func (s *Server) authorizePart(c *call, kind string) error {
	if c.method == http.MethodPost {
		body, err := c.object(kind)
		if err != nil {
			return err
		}
		return s.Policy.enforce(c, kind+":create", targetOf(s.seen(c, text(body["node_uuid"]))))
	}
	if len(c.path) == 1 || c.path[1] == "detail" {
		if s.Policy.grants(c, kind+":list_all", target{}) {
			return nil
		}
		return s.Policy.enforce(c, kind+":list", target{})
	}
	var n *node
	if p := s.findPort(c.path[1]); kind == "port" && p != nil {
		n = p.node
	}
	if g := s.findPortgroup(c.path[1]); kind == "portgroup" && g != nil {
		n = g.node
	}
	switch {
	case n == nil:
		return nil
	case !s.sees(c, n):
		return fault(http.StatusNotFound, "%s could not be found.", strings.ToUpper(kind[:1])+kind[1:]+" "+c.path[1])
	}
	return s.Policy.enforce(c, requestRules[c.method+" "+kind], targetOf(n))
}

// authorizeAllocation is authorize for allocations that exist, and for their list.
func (s *Server) authorizeAllocation(c *call) error {
	if len(c.path) == 1 {
		if c.method != http.MethodGet || s.Policy.grants(c, "allocation:list_all", target{}) {
			return nil
		}
		return s.Policy.enforce(c, "allocation:list", target{})
	}
	a := s.findAllocation(c.path[1])
	if a == nil {
		return nil
	}
	if t := (target{owner: a.owner}); s.Policy.grants(c, "allocation:get", t) {
		return s.Policy.enforce(c, requestRules[c.method+" allocation"], t)
	}
	return fault(http.StatusNotFound, "Allocation %s could not be found.", c.path[1])
}

// ownAllocation refuses a new allocation that the policy does not grant, and sets the owner of others.
func (s *Server) ownAllocation(c *call, body map[string]any) error {
	if c.caller == nil {
		return nil
	}
	owner, project := text(body["owner"]), c.caller.Project
	legacy := s.Policy == PolicyLegacy
	if !s.Policy.grants(c, "allocation:create", target{}) || legacy && owner == "" && !isAdmin(c.caller) {
		if err := s.Policy.enforce(c, "allocation:create_restricted", target{}); err != nil {
			return err
		}
		body["owner"] = orNull(project)
		return nil
	}
	if c.caller.System || legacy {
		return nil
	}
	if owner != "" && owner != project && !s.Policy.grants(c, "allocation:create_restricted", target{}) {
		return fault(http.StatusForbidden, "Cannot create allocation with an owner Project ID value %s not matching the requestor Project ID %s. "+
			"Policy baremetal:allocation:create_restricted is required for this capability.", owner, project)
	}
	if owner == "" {
		body["owner"] = project
	}
	return nil
}

// authorizeRunbook is authorize for runbooks. All may read the public ones.
func (s *Server) authorizeRunbook(c *call) error {
	name := requestRules[c.method+" runbooks"]
	if len(c.path) == 1 {
		return s.Policy.enforce(c, name, target{})
	}
	p := s.runbooks.find(c.path[1])
	if p == nil || p.public && c.method == http.MethodGet {
		return nil
	}
	return s.Policy.enforce(c, strings.Replace(name, "list", "get", 1), target{owner: text(p.owner)})
}

// authorizePatch refuses a patch of a node that the policy does not grant.
func (s *Server) authorizePatch(c *call, n *node, ops []patchOp) error {
	if c.caller == nil {
		return nil
	}
	var names []string
	generic := false
	for _, op := range ops {
		name := patchRight(op, c.legacy())
		generic = generic || name == ""
		if name != "" {
			names = append(names, name)
		}
	}
	if generic || len(names) == 0 {
		names = append(names, "node:update")
	}
	for _, name := range names {
		if err := s.Policy.enforce(c, name, targetOf(n)); err != nil {
			return err
		}
	}
	return nil
}

// patchRight returns the rule of an operation of a patch; empty for the one of all other fields.
func patchRight(op patchOp, legacy bool) string {
	for _, r := range patchRules {
		if strings.HasPrefix(op.path, r.path) && (!r.recent || !legacy) {
			return r.name
		}
	}
	kind, isInterface := strings.CutSuffix(strings.TrimPrefix(op.path, "/"), "_interface")
	if isInterface && slices.Contains(interfaceKinds, kind) {
		return "node:update:driver_interfaces"
	}
	if off, isBool := parseBool(op.value); strings.HasPrefix(op.path, "/automated_clean") && isBool && !off {
		return "node:disable_cleaning"
	}
	return ""
}

// hidden returns the fields of a node that the policy hides from the user of a request, joined by commas. 21.4 knows owner and lessee only if
// the request asks for them; fields are those that it asks for, nil means all.
func (p Policy) hidden(c *call, t target, fields []string) string {
	if c.caller == nil || p.grants(c, "node:get:filter_threshold", target{}) {
		return ""
	}
	if c.legacy() && fields != nil {
		if !slices.Contains(fields, "owner") {
			t.owner = ""
		}
		if !slices.Contains(fields, "lessee") {
			t.lessee = ""
		}
	}
	var names []string
	for _, field := range []string{"last_error", "reservation", "driver_internal_info", "driver_info"} {
		if !p.grants(c, "node:get:"+field, t) {
			names = append(names, field)
		}
	}
	return strings.Join(names, ",")
}

// redaction is what Ironic answers in place of a hidden field.
func redaction(field string) any {
	switch field {
	case "last_error":
		return "** Value Redacted - Requires baremetal:node:get:last_error permission. **"
	case "driver_internal_info":
		return map[string]any{"content": "** Redacted - Requires baremetal:node:get:driver_internal_info permission. **"}
	case "driver_info":
		return map[string]any{"content": "** Redacted - requires baremetal:node:get:driver_info permission. **"}
	}
	return "** Redacted - requires baremetal:node:get:" + field + " permission. **"
}
