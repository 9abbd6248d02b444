package fakeironic

import (
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/conductor"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/policy"
)

// Caller is a user as Keystone describes it for a token.
type Caller = api.Caller

// Policy selects the rules that a Server with Keystone enforces (oslo.policy's enforce_scope and enforce_new_defaults).
type Policy = policy.Policy

// The policies.
const (
	PolicyDefault = policy.Default // both are true
	PolicyLegacy  = policy.Legacy  // both are false
)

// identify finds the user of a request by its token, as keystonemiddleware does.
func (s *Server) identify(r *http.Request) (*api.Caller, *api.Error) {
	if s.Identify == nil || isPublic(s, r) {
		return nil, nil
	}
	if who, known := s.Identify(r.Header.Get("X-Auth-Token")); known {
		return &who, nil
	}
	return nil, &api.Error{
		Status: http.StatusUnauthorized, Text: "The request you have made requires authentication.", Keystone: true,
		Header: http.Header{"Www-Authenticate": {`Keystone uri="http://keystone.test/v3"`}},
	}
}

// authorize refuses a request that the policy does not grant, before it is looked at otherwise. What depends on more than the path, the
// node and its owner is refused elsewhere: patches of nodes, and new allocations.
func (s *Server) authorize(c *api.Call) error {
	if c.Caller == nil || len(c.Path) == 0 {
		return nil
	}
	key := c.Method + " " + c.Path[0]
	switch c.Path[0] {
	case "nodes":
		if len(c.Path) > 1 && c.Path[1] != "detail" {
			return s.authorizeNode(c)
		}
		if c.Method == http.MethodPost && s.Policy.Grants(c, "node:create:self_owned_node", policy.Target{}) {
			return nil
		}
	case "ports", "portgroups":
		return s.authorizePart(c, strings.TrimSuffix(c.Path[0], "s"))
	case "allocations":
		return s.authorizeAllocation(c)
	case "drivers":
		if len(c.Path) > 2 && c.Path[2] == "properties" {
			key += "/properties"
		}
	case "runbooks":
		return s.authorizeRunbook(c)
	}
	if name, ruled := policy.RequestRules[key]; ruled {
		return s.Policy.Enforce(c, name, policy.Target{})
	}
	return nil
}

// authorizeNode is authorize for a node and its parts. A node that does not exist for the user is left to the handler.
func (s *Server) authorizeNode(c *api.Call) error {
	n := s.seen(c, c.Path[1])
	if n == nil || len(c.Path) == 2 && c.Method == http.MethodPatch {
		return nil
	}
	if len(c.Path) == 2 && c.Method == http.MethodDelete && s.Policy.Grants(c, "node:delete:self_owned_node", targetOf(n)) {
		return nil
	}
	parts := c.Path[2:]
	for length := len(parts); length >= 0; length-- { // the longest path that has a rule
		key := c.Method + " " + strings.Join(append([]string{"node"}, parts[:length]...), "/")
		if name, ruled := policy.RequestRules[key]; ruled {
			return s.Policy.Enforce(c, name, targetOf(n))
		}
	}
	return nil
}

// authorizePart is authorize for ports and port groups, which belong to the owner of their node.
func (s *Server) authorizePart(c *api.Call, kind string) error {
	if c.Method == http.MethodPost {
		body, err := c.Object(kind)
		if err != nil {
			return err
		}
		return s.Policy.Enforce(c, kind+":create", targetOf(s.seen(c, api.Text(body["node_uuid"]))))
	}
	if len(c.Path) == 1 || c.Path[1] == "detail" {
		if s.Policy.Grants(c, kind+":list_all", policy.Target{}) {
			return nil
		}
		return s.Policy.Enforce(c, kind+":list", policy.Target{})
	}
	var n *conductor.Node
	if p := s.findPort(c.Path[1]); kind == "port" && p != nil {
		n = p.Node
	}
	if g := s.findPortgroup(c.Path[1]); kind == "portgroup" && g != nil {
		n = g.node
	}
	switch {
	case n == nil:
		return nil
	case !s.sees(c, n):
		return api.Fault(http.StatusNotFound, "%s could not be found.", strings.ToUpper(kind[:1])+kind[1:]+" "+c.Path[1])
	}
	return s.Policy.Enforce(c, policy.RequestRules[c.Method+" "+kind], targetOf(n))
}

// authorizeAllocation is authorize for allocations that exist, and for their list.
func (s *Server) authorizeAllocation(c *api.Call) error {
	if len(c.Path) == 1 {
		if c.Method != http.MethodGet || s.Policy.Grants(c, "allocation:list_all", policy.Target{}) {
			return nil
		}
		return s.Policy.Enforce(c, "allocation:list", policy.Target{})
	}
	a := s.conductor.FindAllocation(c.Path[1])
	if a == nil {
		return nil
	}
	if t := (policy.Target{Owner: a.Owner}); s.Policy.Grants(c, "allocation:get", t) {
		return s.Policy.Enforce(c, policy.RequestRules[c.Method+" allocation"], t)
	}
	return api.Fault(http.StatusNotFound, "Allocation %s could not be found.", c.Path[1])
}

// ownAllocation refuses a new allocation that the policy does not grant, and sets the owner of others.
func (s *Server) ownAllocation(c *api.Call, body map[string]any) error {
	if c.Caller == nil {
		return nil
	}
	owner, project := api.Text(body["owner"]), c.Caller.Project
	legacy := s.Policy == policy.Legacy
	if !s.Policy.Grants(c, "allocation:create", policy.Target{}) || legacy && owner == "" && !policy.IsAdmin(c.Caller) {
		if err := s.Policy.Enforce(c, "allocation:create_restricted", policy.Target{}); err != nil {
			return err
		}
		body["owner"] = api.OrNull(project)
		return nil
	}
	if c.Caller.System || legacy {
		return nil
	}
	if owner != "" && owner != project && !s.Policy.Grants(c, "allocation:create_restricted", policy.Target{}) {
		return api.Fault(http.StatusForbidden, "Cannot create allocation with an owner Project ID value %s not matching the requestor "+
			"Project ID %s. Policy baremetal:allocation:create_restricted is required for this capability.", owner, project)
	}
	if owner == "" {
		body["owner"] = project
	}
	return nil
}

// authorizeRunbook is authorize for runbooks. All may read the public ones.
func (s *Server) authorizeRunbook(c *api.Call) error {
	name := policy.RequestRules[c.Method+" runbooks"]
	if len(c.Path) == 1 {
		return s.Policy.Enforce(c, name, policy.Target{})
	}
	p := s.runbooks.Find(c.Path[1])
	if p == nil || p.Public && c.Method == http.MethodGet {
		return nil
	}
	return s.Policy.Enforce(c, strings.Replace(name, "list", "get", 1), policy.Target{Owner: api.Text(p.Owner)})
}

// authorizePatch refuses a patch of a node that the policy does not grant.
func (s *Server) authorizePatch(c *api.Call, n *conductor.Node, ops []api.PatchOp) error {
	if c.Caller == nil {
		return nil
	}
	var names []string
	generic := false
	for _, op := range ops {
		name := policy.PatchRight(op, c.Legacy())
		generic = generic || name == ""
		if name != "" {
			names = append(names, name)
		}
	}
	if generic || len(names) == 0 {
		names = append(names, "node:update")
	}
	for _, name := range names {
		if err := s.Policy.Enforce(c, name, targetOf(n)); err != nil {
			return err
		}
	}
	return nil
}

// isPublic reports whether a request needs no credentials.
func isPublic(s *Server, r *http.Request) bool {
	return r.URL.Path == "/" || r.URL.Path == "" || r.URL.Path == "/v1" || r.URL.Path == "/v1/" ||
		r.URL.Path == "/v1/continue_inspection" && s.maxMinor() >= callbackMinor
}

// authenticate checks http_basic credentials. Version discovery and the posts of ramdisks need none.
func (s *Server) authenticate(r *http.Request) *api.Error {
	if s.Username == "" || isPublic(s, r) {
		return nil
	}
	refuse := func(text string) *api.Error {
		return &api.Error{
			Status: http.StatusUnauthorized, Text: text, Basic: true,
			Header: http.Header{"Www-Authenticate": {`Basic realm="Baremetal API"`}},
		}
	}
	given := r.Header.Get("Authorization")
	if given == "" {
		return refuse("Authorization required")
	}
	kind, token, _ := strings.Cut(given, " ")
	decoded, err := base64.StdEncoding.DecodeString(token)
	user, password, found := strings.Cut(string(decoded), ":")
	if !strings.EqualFold(kind, "basic") || err != nil || !found {
		return &api.Error{Status: http.StatusBadRequest, Text: "Could not parse Authorization header", Basic: true}
	}
	if subtle.ConstantTimeCompare([]byte(user+":"+password), []byte(s.Username+":"+s.Password)) != 1 {
		return refuse("Incorrect username or password")
	}
	return nil
}
