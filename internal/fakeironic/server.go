// Package fakeironic is an OpenStack Ironic in memory. It keeps state, advances with the clock and refuses what real Ironic
// refuses. Tests and the fakeironic program share it.
//
// It follows Ironic's documentation and the observed answers of Ironic 21.4 (API 1.82) and 39 (API 1.115). It knows nothing
// about its clients.
//
// routes.go finds the function that answers a request. call.go, document.go and values.go read requests and write answers as
// Ironic does. operation.go has the work of the conductor, which goes on between requests, and machine.go the hardware behind a
// node. The other files have a kind of object, or one of its parts, each.
package fakeironic

import (
	"bytes"
	"container/heap"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Server is one Ironic with one conductor. Its zero value is an empty Ironic that supports API versions up to 1.115.
// Callers must not change the fields while the Server answers requests. A Server is safe for concurrent use and starts no
// goroutine: each request first runs the events that were due before it, each with the time at which it was due.
type Server struct {
	// MaxMicroversion is the highest supported API version; empty means "1.115". At "1.82" and below the server behaves as
	// Ironic 21.4 where 21.4 and 39 differ.
	MaxMicroversion string

	// StepTime is the duration of each transient state (verifying, cleaning, deploying, wait call-back, deleting, inspecting)
	// and of each power change. With zero it has ended by the next request.
	StepTime time.Duration

	// UnlockDelay is how long a node stays locked after an operation has reached its last state. The server writes last_error
	// at the end of it. Real conductors write state, error and lock one after the other, and clients can see the steps.
	UnlockDelay time.Duration

	// Username and Password are the http_basic credentials. With an empty Username the server needs none.
	Username, Password string

	// Identify, if set, is Keystone: it returns the user of a token, or false for an unknown one. The server then enforces its Policy. It must
	// not call methods of the Server.
	Identify func(token string) (Caller, bool)
	Policy   Policy

	// ParentNodeDefect makes any PATCH of a node set parent_node to the node itself, as 29.0.5 and 35.0.1 in Debian do.
	// Ironic can no longer deploy or undeploy such a node, or change its power.
	ParentNodeDefect bool

	// MaxConcurrentDeploy and MaxConcurrentClean are the conductor's max_concurrent_deploy and max_concurrent_clean.
	// Zero means no limit.
	MaxConcurrentDeploy, MaxConcurrentClean int

	// Discovery creates a node for every unknown machine that posts its inventory to /v1/continue_inspection, as Ironic does
	// since 24.1 (API 1.90) with [auto_discovery]enabled. The nodes get DiscoveryDriver; empty means "fake-hardware".
	Discovery       bool
	DiscoveryDriver string

	// DiscoveryKeepsPower is [inspector]power_off = false. Without it the server switches discovered machines off. Where it
	// cannot, for example with the driver ipmi, which has no credentials yet, it loses the inventory and sets last_error.
	DiscoveryKeepsPower bool

	// FastTrack is [deploy]fast_track: an agent that runs on a machine is used without a restart. The power interface agent needs it.
	FastTrack bool

	// DefaultResourceClass is the resource class of nodes that are created without one, such as discovered nodes.
	DefaultResourceClass string

	// Fail, if set, is called once at the end of every operation on a node. verb is the requested provision verb or power
	// target. If it returns a text, the operation fails with that last_error. An undeploy is two operations: the tear-down
	// (node.ProvisionState is deleting) and the cleaning after it (cleaning). Fail must not call methods of the Server.
	Fail func(node Node, verb string) string

	// Skips, if set, is asked for every step of a manual cleaning or a service, such as "raid.create_configuration". If it returns
	// true, the step is left out without an error, as Ironic does with the steps of [api]disallow_clean_steps and
	// disallow_service_steps. Skips must not call methods of the Server.
	Skips func(step string) bool

	// IgnoresSoftOff, if set, says whether the operating system of a machine ignores a request to shut down: a soft power off then
	// fails after its time-out, 10 minutes by default, and the machine stays on. It must not call methods of the Server.
	IgnoresSoftOff func(node Node) bool

	// NoSoftPower is a power interface that can switch a machine off only the hard way: the server refuses soft power changes.
	NoSoftPower bool

	// ImageFault, if set, is called for every ISO that the conductor would fetch: the boot_iso of a deployment or rebuild with
	// the deploy interface ramdisk, when it starts, and an image attached as virtual media. If it returns a text, such as "Got
	// HTTP code 404 instead of 200 in response to HEAD request.", the fetch fails with it: the deployment ends in deploy failed
	// with the machine off, the drive keeps its image, and last_error has the text. The server never fetches anything.
	// ImageFault must not call methods of the Server.
	ImageFault func(url string) string

	// Reject, if set, is called first for every request. If it returns a Rejection, that replaces the answer. It may read the
	// body of the request and need not restore it. Reject may call methods of the Server.
	Reject func(r *http.Request) *Rejection

	mu       sync.Mutex
	now      time.Time // time of the event or request that the server handles
	events   eventQueue
	sequence int
	happened int // events that have run

	nodes       []*node // in order of creation
	nodeByUUID  map[string]*node
	nodeByName  map[string]*node
	ports       []*port
	portByMAC   map[string]*port
	portgroups  []*portgroup
	allocations []*allocation
	chassis     []*chassis
	templates   procedureList
	runbooks    procedureList
	rules       ruleList

	requests []Request
	visits   []visit
	holds    []*hold
}

// Request is one logged request.
type Request struct {
	Time   time.Time
	Method string
	Path   string
	Query  string // raw
	Status int    // 0 if the answer was dropped
	Body   string
}

// Requests returns the log of all requests since the start or the last ResetRequests.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// ResetRequests empties the log of requests.
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
	_, _ = w.Write(r.body) // fails only if the client has gone
}

// exchange applies Reject, lets handle answer the request and logs it.
func (s *Server) exchange(r *http.Request, handle func(*http.Request, []byte) reply) reply {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body) // a truncated body counts as a short one
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
		s.afterRejection(rejection, r, body)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, Request{
		Time: arrived, Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Status: answer.status, Body: string(body),
	})
	return answer
}

// lock locks the mutex, runs all events that are due and returns the function that unlocks.
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

// event is an action of the conductor at a point in time.
type event struct {
	at    time.Time
	order int // breaks ties: first scheduled, first run
	run   func()
}

// eventQueue is a heap of events, the earliest first.
type eventQueue []event

func (q eventQueue) Len() int { return len(q) }

func (q eventQueue) Less(i, j int) bool {
	if q[i].at.Equal(q[j].at) {
		return q[i].order < q[j].order
	}
	return q[i].at.Before(q[j].at)
}

func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *eventQueue) Push(x any) {
	if e, ok := x.(event); ok {
		*q = append(*q, e)
	}
}

// Pop implements heap.Interface.
func (q *eventQueue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	*q = (*q)[:last]
	return e
}

// after schedules run for d after s.now.
func (s *Server) after(d time.Duration, run func()) {
	s.sequence++
	heap.Push(&s.events, event{at: s.now.Add(d), order: s.sequence, run: run})
}

// catchUp runs all events that are due, each at its own time.
func (s *Server) catchUp(now time.Time) {
	for len(s.events) > 0 && !s.events[0].at.After(now) {
		e, ok := heap.Pop(&s.events).(event)
		if !ok {
			return
		}
		s.now = e.at
		s.happened++
		e.run()
	}
	s.now = now
}

// Events returns how many events have run: what the conductor did by itself, and not for a request at once.
func (s *Server) Events() int {
	defer s.lock()()
	return s.happened
}

// timestamp formats a time as Ironic does.
func timestamp(t time.Time) string {
	return t.UTC().Format("2006-01-02T15:04:05.000000-07:00")
}

// coarse cuts a timestamp to whole seconds, as Ironic does in the answer to a POST.
func coarse(stamp any) any {
	text, ok := stamp.(string)
	if !ok {
		return stamp
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return stamp
	}
	return t.UTC().Format("2006-01-02T15:04:05-07:00")
}

// coarseTimes cuts created_at and updated_at to whole seconds, as Ironic does in answers to POST and PATCH.
func coarseTimes(shown ordered) ordered {
	for i := range shown {
		if shown[i].key == "created_at" || shown[i].key == "updated_at" {
			shown[i].value = coarse(shown[i].value)
		}
	}
	return shown
}

// legacyMinor is the highest API version of Ironic 21.4.
const legacyMinor = 82

const (
	newestMinor = 115 // Ironic 39

	versionHeader = "X-OpenStack-Ironic-API-Version"
	minHeader     = "X-OpenStack-Ironic-API-Minimum-Version"
	maxHeader     = "X-OpenStack-Ironic-API-Maximum-Version"
)

// maxMinor is the minor part of the highest supported API version.
func (s *Server) maxMinor() int {
	minor, err := strconv.Atoi(strings.TrimPrefix(s.MaxMicroversion, "1."))
	if err != nil {
		return newestMinor
	}
	return minor
}

// legacy reports whether the server behaves as Ironic 21.4.
func (s *Server) legacy() bool { return s.maxMinor() <= legacyMinor }
