package fakeoneview

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakehttp"
)

// The paths of the API below /rest.
const (
	pathHardware  = "server-hardware"
	pathTypes     = "server-hardware-types"
	pathGroups    = "enclosure-groups"
	pathNetworks  = "ethernet-networks"
	pathTemplates = "server-profile-templates"
	pathProfiles  = "server-profiles"
	pathTasks     = "tasks"
	pathLogin     = "login-sessions"
)

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.exchange(r).Write(w) }

// RoundTrip answers one request without a socket. It makes the Server an http.RoundTripper.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	return fakehttp.RoundTrip(r, s.exchange)
}

// exchange applies the faults, answers the request and logs it.
func (s *Server) exchange(r *http.Request) Reply {
	body := fakehttp.Content(r)
	effects := s.strike(r)
	for _, effect := range effects {
		if effect.Before != nil {
			effect.Before()
		}
	}
	arrived, answer := s.answer(r, body, effects)
	for _, effect := range effects {
		if effect.Change != nil {
			effect.Change(&answer)
		}
		if effect.After != nil {
			effect.After()
		}
	}
	logged := fakehttp.Request{
		Time: arrived, Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Status: answer.Status, Body: string(body),
	}
	if answer.Drop {
		logged.Status = 0
	}
	s.Log(logged)
	return answer
}

// answer handles one request. If one of the effects is a refusal, the request has no effect.
func (s *Server) answer(r *http.Request, body []byte, effects []Effect) (time.Time, Reply) {
	defer s.lock()()
	s.countDown()
	c := newCall(r, body, effects)
	victims := s.victims(c)
	answer := s.refusal(effects)
	if late := lateness(effects); answer != nil && late > 0 {
		s.after(late, nil, func() { s.remember(c, s.victims(c), s.handle(c).Status) })
	}
	if answer == nil {
		handled := s.handle(c)
		answer = &handled
	}
	s.remember(c, victims, answer.Status)
	return s.now, *answer
}

// refusal returns the first refusal among the effects, nil if there is none.
func (s *Server) refusal(effects []Effect) *Reply {
	for _, effect := range effects {
		if effect.Refuse != nil {
			copied := *effect.Refuse
			if copied.Header = copied.Header.Clone(); copied.Header == nil {
				copied.Header = http.Header{}
			}
			return &copied
		}
	}
	return nil
}

// lateness returns how much later a refused request takes effect; zero: never.
func lateness(effects []Effect) (late time.Duration) {
	for _, effect := range effects {
		late = max(late, effect.Late)
	}
	return late
}

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
	case pathTypes, pathGroups, pathNetworks, "enclosures", "scopes":
		return s.routeCatalog(c)
	case pathTemplates:
		return s.routeTemplates(c)
	case pathProfiles:
		return s.routeProfiles(c)
	case pathTasks:
		return s.routeTasks(c)
	}
	return Reply{}, notFound(c.uri)
}

func (s *Server) routeHardware(c *call) (Reply, error) {
	if id := c.at(2); id == "" || id == "*" || id == "schema" || id == "firmware-compliance" || id == "discovery" {
		return s.hardwareCollection(c)
	}
	h := s.findHardware("/rest/" + pathHardware + "/" + c.at(2))
	if h == nil {
		return Reply{}, notFound(c.uri)
	}
	if c.method != http.MethodGet {
		return s.changeHardware(c, h)
	}
	if c.at(3) == "" {
		return s.entity(c, s.hardwareDocument(c, h)), nil
	}
	if part := h.part(c); part != nil {
		return jsonReply(http.StatusOK, part), nil
	}
	return Reply{}, notFound(c.uri)
}

func (s *Server) routeProfiles(c *call) (Reply, error) {
	if c.at(2) == "" {
		return s.profileCollection(c)
	}
	if answer, found := s.available(c); found && c.method == http.MethodGet {
		return answer, nil
	}
	p := s.findProfile("/rest/" + pathProfiles + "/" + c.at(2))
	switch {
	case p == nil:
		return Reply{}, profileNotFound()
	case c.at(3) != "" && c.method == http.MethodGet:
		return s.profilePart(c, p)
	case c.at(3) != "":
		return Reply{}, notFound(c.uri)
	case c.method == http.MethodGet:
		return s.entity(c, s.profileDocument(c, p)), nil
	}
	return s.changeProfile(c, p)
}

func (s *Server) profileCollection(c *call) (Reply, error) {
	switch c.method {
	case http.MethodGet:
		documents := []map[string]any{}
		for _, p := range s.profiles {
			documents = append(documents, s.profileDocument(c, p))
		}
		return s.list(c, pathProfiles, documents)
	case http.MethodPost:
		return s.postProfile(c)
	case http.MethodDelete:
		return s.deleteProfiles(c)
	}
	return Reply{}, methodNotAllowed(c.method)
}

func (s *Server) changeProfile(c *call, p *profile) (Reply, error) {
	switch c.method {
	case http.MethodPut:
		return s.putProfile(c, p)
	case http.MethodPatch:
		return s.patchProfile(c, p)
	case http.MethodDelete:
		return s.deleteProfile(c, p)
	}
	return Reply{}, methodNotAllowed(c.method)
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
