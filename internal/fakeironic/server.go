// Package fakeironic is an OpenStack Ironic that lives in memory: stateful, driven by the clock and strict in the same
// places as the real one. Tests and the fakeironic program share it.
//
// It is written from Ironic's documentation and from what Ironic 21.4 (API 1.82) and 39 (API 1.115) were seen to answer,
// and knows nothing of its clients.
package fakeironic

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// Server is one Ironic with one conductor. Its zero value is an empty Ironic that speaks up to API version 1.115.
// The fields must not be changed while requests are served. A Server is safe for concurrent use and starts no goroutine:
// whatever was due since the last request happens at the start of the next one, with the time at which it was due.
type Server struct {
	// MaxMicroversion is the highest API version spoken, "1.115" when empty. At "1.82" and below the server behaves as
	// Ironic 21.4 where 21.4 and 39 differ.
	MaxMicroversion string

	// StepTime is how long each transient state (verifying, cleaning, deploying, wait call-back, deleting, inspecting,
	// a change of power) lasts. With zero it is over by the next request.
	StepTime time.Duration

	// UnlockDelay is how long a node stays locked after an operation has reached its last state. A last_error is written
	// only then. Real conductors write state, error and lock one after the other, and clients can see what is between.
	UnlockDelay time.Duration

	// Username and Password switch http_basic authentication on when Username is set.
	Username, Password string

	// ParentNodeDefect makes any PATCH of a node set parent_node to the node itself, as 29.0.5 and 35.0.1 in Debian do.
	// Such a node cannot be deployed, undeployed or switched any more.
	ParentNodeDefect bool

	// MaxConcurrentDeploy and MaxConcurrentClean are the conductor's max_concurrent_deploy and max_concurrent_clean.
	// Zero is no limit.
	MaxConcurrentDeploy, MaxConcurrentClean int

	// Discovery makes a node of every unknown machine that posts its inventory to /v1/continue_inspection, as Ironic does
	// since 24.1 (API 1.90) with [auto_discovery]enabled. The nodes get DiscoveryDriver, "fake-hardware" when empty.
	Discovery       bool
	DiscoveryDriver string

	// DiscoveryKeepsPower is [inspector]power_off = false. Without it discovered machines are switched off, and where that
	// is impossible, as with the driver ipmi, which has no credentials yet, the inventory is lost and last_error tells.
	DiscoveryKeepsPower bool

	// DefaultResourceClass is the resource class of nodes that are made without one, discovered ones above all.
	DefaultResourceClass string

	// Fail, when set, is asked once at the end of every operation on a node: verb is the provision verb or power target
	// that was requested. A text that is not empty makes the operation fail with this last_error. An undeploy is two
	// operations, the tear-down (node.ProvisionState is deleting) and the cleaning after it (cleaning).
	// Fail must not call methods of the Server.
	Fail func(node Node, verb string) string

	// ImageFault, when set, is asked for every ISO that the conductor would fetch: the boot_iso of a deployment or rebuild with
	// the deploy interface ramdisk, at its start, and what is attached as virtual media. A text that is not empty is the reason
	// for which that fails, such as "Got HTTP code 404 instead of 200 in response to HEAD request.": the deployment ends in
	// deploy failed with the machine off, the drive keeps what it had, and last_error tells. Nothing is ever really fetched.
	// ImageFault must not call methods of the Server.
	ImageFault func(url string) string

	// Reject, when set, is asked about every request before anything else. When it returns a Rejection, that is the answer.
	// The body of the request can be read and need not be restored. Reject may call methods of the Server.
	Reject func(r *http.Request) *Rejection

	mu       sync.Mutex
	now      time.Time // the moment that is being worked on
	events   eventQueue
	sequence int

	nodes       []*node // in order of creation
	nodeByUUID  map[string]*node
	nodeByName  map[string]*node
	ports       []*port
	portByMAC   map[string]*port
	portgroups  []*portgroup
	allocations []*allocation
	chassis     []*chassis

	requests []Request
	visits   []visit
}

// Rejection is an answer given in the place of the real one.
type Rejection struct {
	Status int
	Header http.Header
	Body   string

	// Drop breaks the connection instead of answering.
	Drop bool

	// After lets the request take effect and only then loses its answer: the client sees Status, or a broken connection
	// when Status is zero.
	After bool
}

// Request is one logged request.
type Request struct {
	Time   time.Time
	Method string
	Path   string
	Query  string // raw
	Status int    // 0 when the answer was dropped
	Body   string
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.exchange(r, s.handle).write(w)
}

// RoundTrip answers one request in the process, without a socket. It makes the Server an http.RoundTripper.
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

// Requests returns the log of all requests since the start or the last ResetRequests.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// ResetRequests forgets the logged requests.
func (s *Server) ResetRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

// reply is a complete answer.
type reply struct {
	status int
	header http.Header
	body   []byte
	drop   bool
}

// write sends the answer to a client.
func (r reply) write(w http.ResponseWriter) {
	if r.drop {
		panic(http.ErrAbortHandler)
	}
	for key, values := range r.header {
		w.Header()[key] = values
	}
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body) // the client may be gone; nobody is left to tell
}

// exchange applies Reject, lets handle answer the request and logs it.
func (s *Server) exchange(r *http.Request, handle func(*http.Request, []byte) reply) reply {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body) // a body that breaks off is treated as one that ends there
	}
	arrived := time.Now()

	var rejection *Rejection
	if s.Reject != nil {
		shown := r.Clone(r.Context())
		shown.Body = io.NopCloser(bytes.NewReader(body))
		rejection = s.Reject(shown)
	}

	var answer reply
	if rejection == nil || rejection.After {
		answer = handle(r, body)
	}
	if rejection != nil {
		answer = rejection.reply()
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, Request{
		Time: arrived, Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Status: answer.status, Body: string(body),
	})
	return answer
}

// reply turns the rejection into the answer that the client sees.
func (r *Rejection) reply() reply {
	if r.Drop || (r.After && r.Status == 0) {
		return reply{drop: true}
	}
	header := r.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	return reply{status: r.Status, header: header, body: []byte(r.Body)}
}

// lock takes the mutex, lets everything happen that is due by now, and returns the unlock.
func (s *Server) lock() func() {
	s.mu.Lock()
	if s.nodeByUUID == nil {
		s.nodeByUUID = map[string]*node{}
		s.nodeByName = map[string]*node{}
		s.portByMAC = map[string]*port{}
	}
	s.catchUp(time.Now())
	return s.mu.Unlock
}
