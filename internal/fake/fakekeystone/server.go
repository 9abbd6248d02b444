// Package fakekeystone is a Keystone in memory: version 3 of the identity API, as far as clients need it to get, show and revoke tokens. It
// answers over sockets (ServeHTTP) and without them (RoundTrip).
package fakekeystone

import (
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakehttp"
)

// Server is one Keystone. Its zero value has no users. Callers must not change the fields while it answers requests; they may call Change.
// A Server is safe for concurrent use.
type Server struct {
	Domains     []Domain
	Projects    []Project
	Users       []User
	Credentials []Credential
	Catalog     []Service

	TokenLife time.Duration // zero: an hour
	Path      string        // where the API begins, before /v3, such as "/identity"; empty: at the root

	// RepeatsSecrets lets Keystone repeat the credentials that it refuses, as a proxy before it may do.
	RepeatsSecrets bool

	// Reject, if set, is called first for every request. If it returns a Rejection, that replaces the answer, and the request has no
	// effect.
	Reject func(r *http.Request) *Rejection

	mu       sync.Mutex
	down     bool
	tokens   map[string]*token
	issued   int
	requests []Request
}

// Rejection replaces the answer to a request: the client sees Status and Body, or a broken connection if Status is zero.
type Rejection struct {
	Status int
	Body   string
}

// Request is one logged request.
type Request struct {
	Time   time.Time
	Method string
	Path   string
	Asked  string // of a request for a token: method, user and scope, such as "password a-member@Default for tenant-a@Default"; no secrets
	Status int    // 0 if the answer was dropped
}

// Requests returns the log of all requests.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Change calls a function that changes the fields, such as the roles of a user, while no request is answered. Keystone computes roles when
// it shows a token, so tokens that exist lose and gain them, too.
func (s *Server) Change(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// SetDown stops Keystone, or starts it again with the same data. Without sockets, connections are refused meanwhile; a server with a socket
// closes them without an answer.
func (s *Server) SetDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

type reply = fakehttp.Reply

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.exchange(r).Write(w) }

// RoundTrip answers one request without a socket. It makes the Server an http.RoundTripper.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	down := s.down
	s.mu.Unlock()
	if down {
		return nil, syscall.ECONNREFUSED
	}
	return fakehttp.RoundTrip(r, s.exchange)
}

func (s *Server) exchange(r *http.Request) reply {
	body := fakehttp.Content(r)
	entry := Request{Time: time.Now(), Method: r.Method, Path: r.URL.Path}
	s.mu.Lock()
	reject := s.Reject
	s.mu.Unlock()
	var rejection *Rejection
	if reject != nil {
		rejection = reject(fakehttp.Shown(r, body))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return reply{Drop: true}
	}
	answer := reply{Header: http.Header{}}
	if rejection == nil {
		answer = s.handle(r, body, &entry)
	} else {
		answer.Status, answer.Body = rejection.Status, []byte(rejection.Body)
	}
	entry.Status, answer.Drop = answer.Status, answer.Status == 0
	s.requests = append(s.requests, entry)
	return answer
}

func (s *Server) handle(r *http.Request, body []byte, entry *Request) reply {
	path, found := strings.CutPrefix(strings.TrimRight(r.URL.Path, "/"), s.Path)
	if !found {
		return fail(http.StatusNotFound, "The resource could not be found.")
	}
	scheme := "http"
	if r.TLS != nil || r.URL.Scheme == "https" {
		scheme = "https"
	}
	base := scheme + "://" + r.Host + s.Path + "/v3/"
	version := map[string]any{"id": "v3.14", "status": "stable", "links": []any{map[string]any{"rel": "self", "href": base}}}
	switch r.Method + " " + path {
	case "GET ":
		return answer(http.StatusMultipleChoices, map[string]any{"versions": map[string]any{"values": []any{version}}})
	case "GET /v3":
		return answer(http.StatusOK, map[string]any{"version": version})
	case "POST /v3/auth/tokens":
		return s.authenticate(body, entry)
	case "GET /v3/auth/tokens":
		return s.show(r, func(id string, t *token) reply { return s.render(http.StatusOK, id, t) })
	case "DELETE /v3/auth/tokens":
		return s.show(r, func(id string, _ *token) reply {
			delete(s.tokens, id)
			return reply{Status: http.StatusNoContent, Header: http.Header{}}
		})
	}
	return fail(http.StatusNotFound, "The resource could not be found.")
}
