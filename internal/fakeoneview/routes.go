package fakeoneview

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
)

// The paths of the API below /rest.
const (
	pathHardware  = "server-hardware"
	pathTypes     = "server-hardware-types"
	pathGroups    = "enclosure-groups"
	pathTemplates = "server-profile-templates"
	pathProfiles  = "server-profiles"
	pathTasks     = "tasks"
	pathLogin     = "login-sessions"
)

// handle answers a call. The order of the checks is: path, API version, session, resource.
func (s *Server) handle(c *call) Reply {
	answer, err := s.route(c)
	if err == nil {
		return answer
	}
	var refused *apiError
	if !errors.As(err, &refused) {
		refused = fault(http.StatusInternalServerError, "GENERIC_HTTP_500", "%s", err)
	}
	return refused.reply()
}

func (s *Server) route(c *call) (Reply, error) {
	if s.now.Before(s.downTill) {
		return Reply{}, fault(http.StatusServiceUnavailable, "APPLIANCE_STARTING", "The appliance is starting. Try again later.")
	}
	if c.at(0) != "rest" || slices.Contains(c.path, "") { // "" is an empty segment, as in //
		return Reply{}, notFound(c.uri)
	}
	if c.at(1) == "version" {
		return jsonReply(http.StatusOK, map[string]any{"currentVersion": s.current(), "minimumVersion": s.minimum()}), nil
	}
	if err := s.checkVersion(c); err != nil {
		return Reply{}, err
	}
	if err := c.checkContentType(); err != nil {
		return Reply{}, err
	}
	switch c.at(1) {
	case pathLogin:
		return s.loginSessions(c)
	case "sessions":
		return s.idleTimeout(c)
	}
	if !s.authorized(c) {
		return Reply{}, notAuthorized()
	}
	switch c.at(1) {
	case pathHardware:
		return s.routeHardware(c)
	case pathTypes:
		return s.routeNamed(c, s.types, "server-hardware-types")
	case pathGroups:
		return s.routeNamed(c, s.groups, "enclosure-groups")
	case pathTemplates:
		return s.routeTemplates(c)
	case pathProfiles:
		return s.routeProfiles(c)
	case pathTasks:
		return s.routeTasks(c)
	}
	return Reply{}, notFound(c.uri)
}

// checkVersion reads X-API-Version. A missing one means version 1, which has none of the paths.
func (s *Server) checkVersion(c *call) error {
	header := c.header.Get("X-API-Version")
	if header == "" {
		return fault(http.StatusNotFound, "GENERIC_HTTP_404", "The requested resource could not be found.")
	}
	version, err := strconv.Atoi(header)
	if err != nil || version < s.minimum() || version > s.current() {
		return fault(http.StatusPreconditionFailed, "UNSUPPORTED_API_VERSION", "The API version %q is not supported.", header)
	}
	c.version = version
	return nil
}

func (s *Server) current() int {
	if s.CurrentVersion == 0 {
		return 8600
	}
	return s.CurrentVersion
}

func (s *Server) minimum() int {
	if s.MinimumVersion == 0 {
		return min(300, s.current())
	}
	return s.MinimumVersion
}

// resourceTypes has the values of type from an API version on.
type resourceTypes struct {
	from              int
	profile, template string
}

// typesAt returns the values of type in an API version.
func typesAt(version int) resourceTypes {
	found := resourceTypes{}
	for _, t := range []resourceTypes{
		{200, "ServerProfileV5", "ServerProfileTemplateV1"},
		{300, "ServerProfileV6", "ServerProfileTemplateV2"},
		{500, "ServerProfileV7", "ServerProfileTemplateV3"},
		{600, "ServerProfileV8", "ServerProfileTemplateV4"},
		{800, "ServerProfileV9", "ServerProfileTemplateV5"},
		{1000, "ServerProfileV10", "ServerProfileTemplateV6"},
		{1200, "ServerProfileV11", "ServerProfileTemplateV7"},
		{1600, "ServerProfileV12", "ServerProfileTemplateV8"},
	} {
		if version >= t.from {
			found = t
		}
	}
	return found
}

// named is a resource with a name only.
type named struct{ uri, name string }

func (s *Server) routeNamed(c *call, all []named, category string) (Reply, error) {
	if c.method != http.MethodGet {
		return Reply{}, methodNotAllowed(c.method)
	}
	documents := []map[string]any{}
	for _, n := range all {
		document := map[string]any{"uri": n.uri, "name": n.name, "category": category, "status": "OK", "eTag": "1"}
		if c.at(2) != "" && sameURI(n.uri, "/rest/"+category+"/"+c.at(2)) {
			return s.entity(c, document), nil
		}
		documents = append(documents, document)
	}
	if c.at(2) != "" {
		return Reply{}, notFound(c.uri)
	}
	return s.list(c, category, documents)
}
