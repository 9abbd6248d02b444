package fakeironic

import (
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
)

// handle authenticates a request, finds its API version and answers it.
func (s *Server) handle(r *http.Request, body []byte) reply {
	defer s.lock()()
	c := newCall(r, body)
	if refused := s.authenticate(r); refused != nil {
		return refused.reply()
	}
	path := strings.Trim(r.URL.Path, "/")
	if path == "" && s.legacy() {
		return s.root(c)
	}
	if path != "" && path != "v1" && !strings.HasPrefix(path, "v1/") {
		return routerFault(http.StatusNotFound, "").reply()
	}
	minor, refused := s.negotiate(r.Header)
	if refused != nil {
		// Discovery is the application's, all below is behind the router. 39 has its discovery at /, 21.4 looks at /v1.
		refused.router = path != "" && (path != "v1" || !s.legacy())
		return refused.reply()
	}
	c.minor = minor

	answer, err := s.root(c), error(nil)
	if path != "" {
		answer, err = s.route(c)
	}
	bare := false // the router's own answers carry no versions
	if err != nil {
		var known *apiError
		if !errors.As(err, &known) {
			known = fault(http.StatusInternalServerError, "%s", err)
		}
		bare = known.router
		answer = known.reply()
	}
	if !bare {
		s.addVersionHeaders(answer.header, minor)
	}
	answer.header.Set("Openstack-Request-Id", "req-"+newUUID())
	return answer
}

// authenticate checks http_basic credentials. The API's own description and posts of ramdisks are public.
func (s *Server) authenticate(r *http.Request) *apiError {
	public := r.URL.Path == "/" || r.URL.Path == "" || r.URL.Path == "/v1" || r.URL.Path == "/v1/" ||
		r.URL.Path == "/v1/continue_inspection" && s.maxMinor() >= callbackMinor
	if s.Username == "" || public {
		return nil
	}
	refuse := func(text string) *apiError {
		return &apiError{
			status: http.StatusUnauthorized, text: text, basic: true, header: http.Header{"Www-Authenticate": {`Basic realm="Baremetal API"`}},
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
		return &apiError{status: http.StatusBadRequest, text: "Could not parse Authorization header", basic: true}
	}
	if subtle.ConstantTimeCompare([]byte(user+":"+password), []byte(s.Username+":"+s.Password)) != 1 {
		return refuse("Incorrect username or password")
	}
	return nil
}

// route finds the resource.
func (s *Server) route(c *call) (reply, error) {
	if len(c.path) == 0 {
		if c.method != http.MethodGet && c.method != http.MethodHead {
			return reply{}, methodNotAllowed("GET")
		}
		return s.v1(c), nil
	}
	switch c.path[0] {
	case "nodes":
		return s.routeNodes(c)
	case "ports":
		return s.routePorts(c, c.path[1:], nil)
	case "portgroups":
		return s.routePortgroups(c, c.path[1:], nil)
	case "allocations":
		return s.routeAllocations(c)
	case "drivers":
		return s.routeDrivers(c)
	case "conductors":
		return s.routeConductors(c)
	case "chassis":
		return s.routeChassis(c)
	case "continue_inspection":
		return s.continueInspection(c)
	}
	return reply{}, routerFault(http.StatusNotFound, "")
}

// routeNodes answers /v1/nodes.
func (s *Server) routeNodes(c *call) (reply, error) {
	switch {
	case len(c.path) == 1 && c.method == http.MethodGet:
		return s.listNodes(c, false)
	case len(c.path) == 1 && c.method == http.MethodPost:
		return s.createNode(c)
	case len(c.path) == 1 && (c.method == http.MethodPatch || c.method == http.MethodDelete):
		return reply{}, fault(http.StatusBadRequest, "Missing mandatory parameter: node_ident")
	case len(c.path) == 1:
		return reply{}, methodNotAllowed("DELETE, GET, PATCH, POST")
	case len(c.path) == 2 && c.path[1] == "detail" && c.method == http.MethodGet:
		return s.listNodes(c, true)
	case len(c.path) == 3 && c.path[2] == "allocation":
		return s.nodeAllocation(c, c.path[1])
	case len(c.path) == 2 && c.method == http.MethodPatch:
		return s.patchNode(c, c.path[1])
	}
	n, err := s.nodeByRef(c, c.path[1])
	if err != nil {
		return s.missingNode(c, err)
	}
	if len(c.path) > 2 {
		return s.routeNode(c, n, c.path[2], c.path[3:])
	}
	switch c.method {
	case http.MethodGet:
		return s.showNode(c, n)
	case http.MethodDelete:
		return done(http.StatusNoContent), s.deleteNode(n)
	}
	return reply{}, methodNotAllowed("DELETE, GET, PATCH")
}

// missingNode is the answer about the parts of a node that does not exist.
func (s *Server) missingNode(c *call, err error) (reply, error) {
	if len(c.path) > 2 && c.path[2] == "ports" {
		return reply{}, fault(http.StatusNotFound, "Portgroup None could not be found.")
	}
	return reply{}, err
}

// showNode answers GET /v1/nodes/{node}.
func (s *Server) showNode(c *call, n *node) (reply, error) {
	if err := c.accept("fields"); err != nil {
		return reply{}, err
	}
	if !c.query.Has("fields") {
		return ok(http.StatusOK, s.render(c, n, viewOf(c, nil))), nil
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
	return ok(http.StatusOK, s.render(c, n, viewOf(c, append(fields, "links")))), nil
}

// routeNode answers the parts of a node.
func (s *Server) routeNode(c *call, n *node, part string, rest []string) (reply, error) {
	get := c.method == http.MethodGet
	switch part {
	case "states":
		return s.routeStates(c, n, rest)
	case "maintenance":
		return s.maintenance(c, n)
	case "traits":
		return s.routeTraits(c, n, rest)
	case "ports":
		return s.routePorts(c, rest, n)
	case "portgroups":
		return s.routePortgroups(c, rest, n)
	case "vifs":
		return s.routeVIFs(c, n, rest)
	case "management":
		return s.routeManagement(c, n, rest)
	case "validate":
		if get {
			return s.validation(c, n)
		}
	case "vmedia":
		return s.routeVmedia(c, n)
	}
	if get {
		return s.nodeRecords(c, n, part)
	}
	return reply{}, routerFault(http.StatusNotFound, "")
}

// nodeRecords answers what Ironic keeps about a node and shows only.
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
			return ok(http.StatusOK, ordered{{"bios", []any{}}}), nil
		}
	case "history":
		if c.minor >= 78 {
			return ok(http.StatusOK, ordered{{"history", append([]any{}, n.history...)}}), nil
		}
	case "firmware":
		if c.minor >= 86 {
			return ok(http.StatusOK, ordered{{"firmware", []any{}}}), nil
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

// children are the UUIDs of the nodes whose parent is n.
func (s *Server) children(n *node) []string {
	uuids := []string{}
	for _, other := range s.nodes {
		if other.str("parent_node") == n.str("uuid") {
			uuids = append(uuids, other.str("uuid"))
		}
	}
	return uuids
}

// routeStates answers /v1/nodes/{node}/states.
func (s *Server) routeStates(c *call, n *node, rest []string) (reply, error) {
	if len(rest) == 0 {
		if c.method != http.MethodGet {
			return reply{}, methodNotAllowed("GET")
		}
		return ok(http.StatusOK, states(c, n)), nil
	}
	if c.method == http.MethodGet {
		return reply{}, fault(http.StatusInternalServerError, "NodeStatesController.get() takes 2 positional arguments but 3 were given")
	}
	if c.method != http.MethodPut || len(rest) > 1 {
		return reply{}, routerFault(http.StatusNotFound, "")
	}
	switch rest[0] {
	case "provision":
		return s.putProvision(c, n)
	case "power":
		return s.putPower(c, n)
	case "boot_mode", "secure_boot":
		return s.putBoot(c, n, rest[0])
	case "console":
		return done(http.StatusAccepted), n.locked()
	case "raid":
		return s.putRAID(c, n)
	}
	return reply{}, routerFault(http.StatusNotFound, "")
}

// states are the fields of a node that change by themselves.
func states(c *call, n *node) ordered {
	var out ordered
	for _, name := range []string{
		"console_enabled", "last_error", "power_state", "provision_state", "provision_updated_at", "raid_config", "target_power_state",
		"target_provision_state", "target_raid_config", "boot_mode", "secure_boot",
	} {
		if since, _ := nodeFieldSince(name); since <= c.minor {
			out = append(out, member{name, n.fields[name]})
		}
	}
	return out
}

// putBoot changes boot_mode or secure_boot. Fake hardware cannot: the request is accepted and last_error tells.
func (s *Server) putBoot(c *call, n *node, what string) (reply, error) {
	if c.minor < 76 {
		return reply{}, routerFault(http.StatusNotFound, "")
	}
	body, err := c.object("body")
	if err != nil {
		return reply{}, err
	}
	value, given := body["target"]
	if !given {
		return reply{}, fault(http.StatusBadRequest, "Missing mandatory parameter: target")
	}
	if what == "boot_mode" && value != "uefi" && value != "bios" {
		return reply{}, fault(http.StatusBadRequest, "Invalid boot mode %s requested for node. Allowed boot modes are: bios, uefi", pyText(value))
	}
	if what == "secure_boot" {
		wanted, valid := parseBool(value)
		if !valid {
			return reply{}, notBool("target", value)
		}
		value = wanted
	}
	if err := n.locked(); err != nil {
		return reply{}, err
	}
	if n.uses("management") == "fake" {
		n.put("last_error", "Failed to change "+strings.ReplaceAll(what, "_", " ")+" to '"+pyText(value)+
			": Driver fake-hardware does not support set_"+what+" (disabled or not implemented).")
	} else {
		n.put(what, value)
	}
	answer := done(http.StatusAccepted)
	answer.header.Set("Location", c.base+"/v1/nodes/"+c.path[1]+"/states")
	return answer, nil
}

// putRAID stores the target RAID configuration.
func (s *Server) putRAID(c *call, n *node) (reply, error) {
	body, err := c.object("body")
	if err != nil {
		return reply{}, err
	}
	if _, given := body["logical_disks"]; !given && len(body) > 0 {
		return reply{}, fault(http.StatusBadRequest, "RAID config validation error: 'logical_disks' is a required property")
	}
	if disks, isList := body["logical_disks"].([]any); isList && len(disks) == 0 {
		return reply{}, fault(http.StatusBadRequest, "RAID config validation error: [] %s", map[bool]string{true: "is too short", false: "should be non-empty"}[s.legacy()])
	}
	if err := n.locked(); err != nil {
		return reply{}, err
	}
	n.put("target_raid_config", body)
	return done(http.StatusNoContent), nil
}
