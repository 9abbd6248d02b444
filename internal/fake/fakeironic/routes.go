package fakeironic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakehttp"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/conductor"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/procedure"
)

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.exchange(r, s.handle).Write(w) }

// RoundTrip answers one request without a socket. It makes the Server an http.RoundTripper.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	return fakehttp.RoundTrip(r, func(r *http.Request) api.Reply { return s.exchange(r, s.handle) })
}

// exchange applies Reject, lets handle answer the request and logs it.
func (s *Server) exchange(r *http.Request, handle func(*http.Request, []byte) api.Reply) api.Reply {
	body, arrived := fakehttp.Content(r), time.Now()

	var rejection *Rejection
	if s.Reject != nil {
		rejection = s.Reject(fakehttp.Shown(r, body))
	}

	var answer api.Reply
	if rejection == nil || rejection.After {
		answer = handle(r, body)
	}
	if rejection != nil {
		answer = rejection.reply()
		s.afterRejection(rejection, r, body)
	}

	s.Log(fakehttp.Request{
		Time: arrived, Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Status: answer.Status, Body: string(body),
	})
	return answer
}

// afterRejection schedules what becomes of a request after its answer.
func (s *Server) afterRejection(with *Rejection, r *http.Request, body []byte) {
	if with.Late == 0 && with.Fails == "" {
		return
	}
	defer s.lock()()
	if with.Late > 0 {
		later := r.Clone(context.WithoutCancel(r.Context()))
		s.conductor.After(with.Late, func() { s.serve(later, body) })
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) < 3 || parts[1] != "nodes" {
		return
	}
	if n := s.conductor.Find(parts[2]); n != nil {
		s.conductor.ChangeLater(n, func() string { return with.Fails })
	}
}

func (s *Server) handle(r *http.Request, body []byte) api.Reply {
	defer s.lock()()
	return s.serve(r, body)
}

// lock locks the mutex, runs all events that are due and returns the function that unlocks.
func (s *Server) lock() func() {
	s.mu.Lock()
	s.conductor.Settings = s.settings()
	s.conductor.Groups = s.groupsOf
	s.conductor.CatchUp(time.Now())
	return s.mu.Unlock
}

// settings returns the fields that concern the conductor.
func (s *Server) settings() conductor.Settings {
	return conductor.Settings{
		MaxMinor:            s.maxMinor(),
		StepTime:            s.StepTime,
		UnlockDelay:         s.UnlockDelay,
		ParentNodeDefect:    s.ParentNodeDefect,
		MaxConcurrentDeploy: s.MaxConcurrentDeploy,
		MaxConcurrentClean:  s.MaxConcurrentClean,
		DiscoveryKeepsPower: s.DiscoveryKeepsPower,
		FastTrack:           s.FastTrack,
		SwitchPorts:         s.SwitchPorts,
		Skips:               s.Skips,
		LLDP:                s.LLDP,
		ParsesLLDP:          s.ParsesLLDP,
		Disks:               s.disksOf,
		Writes: func(n *conductor.Node, serial, what string) {
			if s.Writes != nil {
				s.Writes(public(n), serial, what)
			}
		},
		ImageFault: s.ImageFault,
		Answers:    s.answers,
		Fail: func(n *conductor.Node, verb string) string {
			if s.Fail == nil {
				return ""
			}
			return s.Fail(public(n), verb)
		},
		CleaningSteps: s.cleaningSteps,
		Abandons:      func(n *conductor.Node, verb string) bool { return s.Abandons != nil && s.Abandons(public(n), verb) },
	}
}

// answers reports whether a BMC answers.
func (s *Server) answers(bmc string) bool {
	return !strings.Contains(strings.TrimSuffix(bmc, ".")+":", ".invalid:") && (s.Answers == nil || s.Answers(bmc))
}

// serve authenticates a request, negotiates its API version and answers it, while the server is locked.
func (s *Server) serve(r *http.Request, body []byte) api.Reply {
	c := api.NewCall(r, body, s.maxMinor(), s.conductor.Now)
	if refused := s.authenticate(r); refused != nil {
		return refused.Reply()
	}
	who, refused := s.identify(r)
	if refused != nil {
		return refused.Reply()
	}
	c.Caller = who
	path := strings.Trim(r.URL.Path, "/")
	if path == "" && s.legacy() {
		return s.root(c)
	}
	minor, refused := s.negotiate(r.Header)
	if refused != nil {
		// The application answers version discovery, at / in 39 and at /v1 in 21.4; the router answers all other paths.
		refused.Router = path != "" && (path != "v1" || !s.legacy())
		return refused.Reply()
	}
	c.Minor = minor

	answer, err := s.root(c), error(nil)
	if path != "" {
		answer, err = s.route(c)
	}
	bare := false // the router's own answers have no version headers
	if err != nil {
		var known *api.Error
		if !errors.As(err, &known) {
			known = api.Fault(http.StatusInternalServerError, "%s", err)
		}
		bare = known.Router
		answer = known.Reply()
	}
	if !bare {
		s.addVersionHeaders(answer.Header, minor)
	}
	answer.Header.Set("Openstack-Request-Id", "req-"+api.NewUUID())
	if !s.legacy() {
		answer.Header.Set("X-Openstack-Request-Id", answer.Header.Get("Openstack-Request-Id"))
	}
	return answer
}

func (s *Server) route(c *api.Call) (api.Reply, error) {
	if len(c.Path) == 0 {
		if c.Method != http.MethodGet && c.Method != http.MethodHead {
			return api.Reply{}, api.MethodNotAllowed("GET")
		}
		return s.v1(c), nil
	}
	if err := s.authorize(c); err != nil {
		return api.Reply{}, err
	}
	switch c.Path[0] {
	case "nodes":
		return s.routeNodes(c)
	case "ports":
		return s.routePorts(c, c.Path[1:], nil)
	case "portgroups":
		return s.routePortgroups(c, c.Path[1:], nil)
	case "allocations":
		return s.routeAllocations(c)
	case "drivers":
		return s.routeDrivers(c)
	case "conductors":
		return s.routeConductors(c)
	case "chassis":
		if len(c.Path) == 3 && c.Path[2] == "nodes" && c.Method == http.MethodGet {
			c.Query.Set("chassis_uuid", c.Path[1])
			return s.listNodes(c, false)
		}
		return s.routeChassis(c)
	case "continue_inspection":
		return s.continueInspection(c)
	case "deploy_templates":
		return s.templates.Route(c, procedure.DeployTemplates)
	case "runbooks":
		return s.runbooks.Route(c, procedure.Runbooks)
	case "inspection_rules":
		return s.rules.Route(c)
	}
	return s.routeUnmodelled(c)
}

func (s *Server) routeNodes(c *api.Call) (api.Reply, error) {
	switch {
	case len(c.Path) == 1 && c.Method == http.MethodGet:
		return s.listNodes(c, false)
	case len(c.Path) == 1 && c.Method == http.MethodPost:
		return s.createNode(c)
	case len(c.Path) == 1 && (c.Method == http.MethodPatch || c.Method == http.MethodDelete),
		len(c.Path) > 2 && c.Path[1] == "" && slices.Contains([]string{"maintenance", "states"}, c.Path[2]):
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Missing mandatory parameter: node_ident")
	case len(c.Path) == 1:
		return api.Reply{}, api.MethodNotAllowed("DELETE, GET, PATCH, POST")
	case len(c.Path) == 2 && c.Path[1] == "detail" && c.Method == http.MethodGet:
		return s.listNodes(c, true)
	case len(c.Path) == 3 && c.Path[2] == "allocation":
		return s.nodeAllocation(c, c.Path[1])
	case len(c.Path) == 2 && c.Method == http.MethodPatch:
		return s.patchNode(c, c.Path[1])
	}
	n, err := s.nodeByRef(c, c.Path[1])
	if err != nil {
		return s.missingNode(c, err)
	}
	if len(c.Path) > 2 {
		return s.routeNode(c, n, c.Path[2], c.Path[3:])
	}
	switch c.Method {
	case http.MethodGet:
		return s.showNode(c, n)
	case http.MethodDelete:
		return api.Done(http.StatusNoContent), s.deleteNode(n)
	}
	return api.Reply{}, api.MethodNotAllowed("DELETE, GET, PATCH")
}

// missingNode is the answer for a node that does not exist.
func (s *Server) missingNode(c *api.Call, err error) (api.Reply, error) {
	if len(c.Path) > 2 && c.Path[2] == "ports" {
		return api.Reply{}, api.Fault(http.StatusNotFound, "Portgroup None could not be found.")
	}
	return api.Reply{}, err
}

func (s *Server) routeNode(c *api.Call, n *conductor.Node, part string, rest []string) (api.Reply, error) {
	get := c.Method == http.MethodGet
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
			return s.validation(n)
		}
	case "vmedia":
		return s.routeVmedia(c, n)
	case "volume":
		return s.routeVolume(c, "nodes/"+n.Str("uuid")+"/", rest)
	case "vendor_passthru":
		return routeVendor(c, rest)
	}
	if get {
		return s.nodeRecords(c, n, part, rest)
	}
	return api.Reply{}, api.RouterFault(http.StatusNotFound, "")
}

func (s *Server) routeStates(c *api.Call, n *conductor.Node, rest []string) (api.Reply, error) {
	if len(rest) == 0 {
		if c.Method != http.MethodGet {
			return api.Reply{}, api.MethodNotAllowed("GET")
		}
		return api.OK(http.StatusOK, states(c, n)), nil
	}
	if rest[0] == "console" && len(rest) == 1 {
		return s.routeConsole(c, n)
	}
	if c.Method == http.MethodGet {
		return api.Reply{}, api.Fault(http.StatusInternalServerError, "NodeStatesController.get() takes 2 positional arguments "+
			"but 3 were given")
	}
	if c.Method != http.MethodPut || len(rest) > 1 {
		return api.Reply{}, api.RouterFault(http.StatusNotFound, "")
	}
	switch rest[0] {
	case "provision":
		return s.putProvision(c, n)
	case "power":
		return s.putPower(c, n)
	case "boot_mode", "secure_boot":
		return s.putBoot(c, n, rest[0])
	case "raid":
		return s.putRAID(c, n)
	}
	return api.Reply{}, api.RouterFault(http.StatusNotFound, "")
}

// negotiate returns the minor part of a request's API version. No header means 1.1.
func (s *Server) negotiate(header http.Header) (int, *api.Error) {
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
		return 0, api.RouterFault(http.StatusNotAcceptable, "Invalid value for %s header", versionHeader)
	}
	if major != 1 || minor < 1 || minor > s.maxMinor() {
		complaint := "Version %s was requested but the minor version is not supported by this service. The supported version range " +
			"is: [1.1, 1.%d]."
		if major != 1 {
			complaint = "Mutually exclusive versions requested. Version %s requested but not supported by this service. " +
				"The supported version range is: [1.1, 1.%d]."
		}
		refused := api.RouterFault(http.StatusNotAcceptable, complaint, wanted, s.maxMinor())
		refused.Header = http.Header{}
		s.addVersionHeaders(refused.Header, 0)
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
func (s *Server) versionDocument(c *api.Call) api.Ordered {
	return api.Ordered{
		{"id", "v1"},
		{"links", []any{api.Ordered{{"href", c.Base + "/v1/"}, {"rel", "self"}}}},
		{"status", "CURRENT"},
		{"min_version", "1.1"},
		{"version", fmt.Sprintf("1.%d", s.maxMinor())},
	}
}

func (s *Server) root(c *api.Call) api.Reply {
	return api.OK(http.StatusOK, api.Ordered{
		{"name", "OpenStack Ironic API"},
		{"description", "Ironic is an OpenStack project which enables the provision and management of baremetal machines."},
		{"default_version", s.versionDocument(c)},
		{"versions", []any{s.versionDocument(c)}},
	})
}

// v1 answers GET /v1 with the resources that the API version has.
func (s *Server) v1(c *api.Call) api.Reply {
	document := api.Ordered{
		{"id", "v1"},
		{"links", []any{api.Ordered{{"href", c.Base + "/v1/"}, {"rel", "self"}}, api.Ordered{
			{"href", "https://docs.openstack.org//ironic/latest/contributor//webapi.html"}, {"rel", "describedby"}, {"type", "text/html"},
		}}},
		{"media_types", api.Ordered{{"base", "application/json"}, {"type", "application/vnd.openstack.ironic.v1+json"}}},
	}
	for _, resource := range []struct {
		name  string
		since int
	}{
		{"chassis", 1},
		{"nodes", 1},
		{"ports", 1},
		{"drivers", 1},
		{"lookup", since["lookup"]},
		{"heartbeat", since["heartbeat"]},
		{"portgroups", 23},
		{"volume", since["volume"]},
		{"conductors", 49},
		{"allocations", 52},
		{"events", since["events"]},
		{"deploy_templates", 55},
		{"shards", since["shards"]},
		{"runbooks", procedure.RunbookMinor},
		{"inspection_rules", procedure.RuleMinor},
	} {
		if c.Minor >= resource.since {
			document = append(document, api.Member{resource.name, c.Links(resource.name + "/")})
		}
	}
	return api.OK(http.StatusOK, append(document, api.Member{"version", s.versionDocument(c)}))
}
