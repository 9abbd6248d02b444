package fakeironic

import (
	"bytes"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
)

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.exchange(r, s.handle).write(w)
}

// RoundTrip answers one request without a socket. It makes the Server an http.RoundTripper.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	answer := s.exchange(r, s.handle)
	if r.Body != nil {
		_ = r.Body.Close()
	}
	if answer.drop {
		return nil, syscall.ECONNRESET
	}
	return &http.Response{
		Status:        fmt.Sprintf("%d %s", answer.status, http.StatusText(answer.status)),
		StatusCode:    answer.status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        answer.header,
		Body:          io.NopCloser(bytes.NewReader(answer.body)),
		ContentLength: int64(len(answer.body)),
		Request:       r,
	}, nil
}

// handle answers a request.
func (s *Server) handle(r *http.Request, body []byte) reply {
	defer s.lock()()
	return s.serve(r, body)
}

// serve authenticates a request, negotiates its API version and answers it, while the server is locked.
func (s *Server) serve(r *http.Request, body []byte) reply {
	c := newCall(r, body, s.maxMinor(), s.now)
	if refused := s.authenticate(r); refused != nil {
		return refused.reply()
	}
	who, refused := s.identify(r)
	if refused != nil {
		return refused.reply()
	}
	c.caller = who
	path := strings.Trim(r.URL.Path, "/")
	if path == "" && s.legacy() {
		return s.root(c)
	}
	if path != "" && path != "v1" && !strings.HasPrefix(path, "v1/") {
		return routerFault(http.StatusNotFound, "").reply()
	}
	minor, refused := s.negotiate(r.Header)
	if refused != nil {
		// The application answers version discovery, at / in 39 and at /v1 in 21.4; the router answers all other paths.
		refused.router = path != "" && (path != "v1" || !s.legacy())
		return refused.reply()
	}
	c.minor = minor

	answer, err := s.root(c), error(nil)
	if path != "" {
		answer, err = s.route(c)
	}
	bare := false // the router's own answers have no version headers
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

// isPublic reports whether a request needs no credentials.
func isPublic(s *Server, r *http.Request) bool {
	return r.URL.Path == "/" || r.URL.Path == "" || r.URL.Path == "/v1" || r.URL.Path == "/v1/" ||
		r.URL.Path == "/v1/continue_inspection" && s.maxMinor() >= callbackMinor
}

// authenticate checks http_basic credentials. Version discovery and the posts of ramdisks need none.
func (s *Server) authenticate(r *http.Request) *apiError {
	if s.Username == "" || isPublic(s, r) {
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

// route calls the handler of the resource.
func (s *Server) route(c *call) (reply, error) {
	if len(c.path) == 0 {
		if c.method != http.MethodGet && c.method != http.MethodHead {
			return reply{}, methodNotAllowed("GET")
		}
		return s.v1(c), nil
	}
	if err := s.authorize(c); err != nil {
		return reply{}, err
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
	case "deploy_templates":
		return s.templates.route(c, deployTemplates)
	case "runbooks":
		return s.runbooks.route(c, runbooks)
	case "inspection_rules":
		return s.rules.route(c)
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

// missingNode is the answer for a node that does not exist.
func (s *Server) missingNode(c *call, err error) (reply, error) {
	if len(c.path) > 2 && c.path[2] == "ports" {
		return reply{}, fault(http.StatusNotFound, "Portgroup None could not be found.")
	}
	return reply{}, err
}

// routeNode answers /v1/nodes/{node}/{part}.
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

// negotiate returns the minor part of a request's API version. No header means 1.1.
func (s *Server) negotiate(header http.Header) (int, *apiError) {
	wanted := header.Get(versionHeader)
	if wanted == "" && !s.legacy() {
		if service, version, found := strings.Cut(header.Get("OpenStack-API-Version"), " "); found && service == "baremetal" {
			wanted = version
		}
	}
	if wanted == "" {
		return 1, nil
	}
	if strings.EqualFold(wanted, "latest") {
		return s.maxMinor(), nil
	}
	major, minor, err := parseVersion(wanted)
	if err != nil {
		return 0, routerFault(http.StatusNotAcceptable, "Invalid value for %s header", versionHeader)
	}
	if major != 1 || minor < 1 || minor > s.maxMinor() {
		complaint := "Version %s was requested but the minor version is not supported by this service. The supported version range is: [1.1, 1.%d]."
		if major != 1 {
			complaint = "Mutually exclusive versions requested. Version %s requested but not supported by this service. " +
				"The supported version range is: [1.1, 1.%d]."
		}
		refused := routerFault(http.StatusNotAcceptable, complaint, wanted, s.maxMinor())
		refused.header = http.Header{}
		s.addVersionHeaders(refused.header, 0)
		return 0, refused
	}
	return minor, nil
}

// parseVersion parses a version such as "1.82".
func parseVersion(text string) (major, minor int, err error) {
	first, second, found := strings.Cut(text, ".")
	if !found {
		return 0, 0, fmt.Errorf("version %q has no dot", text)
	}
	if major, err = strconv.Atoi(first); err != nil {
		return 0, 0, err
	}
	minor, err = strconv.Atoi(second)
	return major, minor, err
}

// addVersionHeaders sets the range of API versions and, if minor is not zero, the version in use.
func (s *Server) addVersionHeaders(header http.Header, minor int) {
	header.Set(minHeader, "1.1")
	header.Set(maxHeader, fmt.Sprintf("1.%d", s.maxMinor()))
	if minor > 0 {
		header.Set(versionHeader, fmt.Sprintf("1.%d", minor))
	}
}

// versionDocument describes API v1.
func (s *Server) versionDocument(c *call) ordered {
	return ordered{
		{"id", "v1"},
		{"links", []any{ordered{{"href", c.base + "/v1/"}, {"rel", "self"}}}},
		{"status", "CURRENT"},
		{"min_version", "1.1"},
		{"version", fmt.Sprintf("1.%d", s.maxMinor())},
	}
}

// root answers GET /.
func (s *Server) root(c *call) reply {
	return ok(http.StatusOK, ordered{
		{"name", "OpenStack Ironic API"},
		{"description", "Ironic is an OpenStack project which enables the provision and management of baremetal machines."},
		{"default_version", s.versionDocument(c)},
		{"versions", []any{s.versionDocument(c)}},
	})
}

// v1 answers GET /v1 with the resources that the API version has.
func (s *Server) v1(c *call) reply {
	document := ordered{
		{"id", "v1"},
		{"links", []any{ordered{{"href", c.base + "/v1/"}, {"rel", "self"}}}},
		{"media_types", ordered{{"base", "application/json"}, {"type", "application/vnd.openstack.ironic.v1+json"}}},
	}
	for _, resource := range []struct {
		name  string
		since int
	}{
		{"chassis", 1},
		{"nodes", 1},
		{"ports", 1},
		{"drivers", 1},
		{"portgroups", 23},
		{"conductors", 49},
		{"allocations", 52},
		{"deploy_templates", 55},
		{"runbooks", runbookMinor},
		{"inspection_rules", ruleMinor},
	} {
		if c.minor >= resource.since {
			document = append(document, member{resource.name, c.links(resource.name + "/")})
		}
	}
	return ok(http.StatusOK, append(document, member{"version", s.versionDocument(c)}))
}
