// Package fakeoneview is an HPE OneView appliance in memory: sessions, server hardware, server profile templates, server
// profiles and tasks. It advances with the clock and refuses what the real appliance refuses. Tests and the fakeoneview program
// share it.
//
// Besides the REST API it has methods that act as another user of the appliance (TakeHardware, EditProfile, ...), faults that
// tests inject, and a log of harm: what clients did to another user's profiles and to the power of their servers.
//
// It follows HPE's documentation, captured answers and the SDKs. It knows nothing about its clients. Comments say where the
// behaviour of a real appliance is not known, as does reference/oneview.md#what-the-fake-answers-without-evidence-of-an-appliance; clients
// must not depend on it there.
package fakeoneview

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakehttp"
)

// Server is one appliance. Its zero value has no hardware and accepts every login. Callers must not change the fields while the
// Server answers requests. A Server is safe for concurrent use and starts no goroutine: each request first runs the events that
// were due before it, each with the time at which it was due.
type Server struct {
	fakehttp.Journal

	// CurrentVersion and MinimumVersion are the ends of the range of X-API-Version; zero means 8600 and 300. The range must
	// not begin below 200, the first version with templates.
	CurrentVersion, MinimumVersion int

	// Username, Password and Domain are the only account. With an empty Username every login succeeds; an empty Domain means
	// LOCAL.
	Username, Password, Domain string

	// LoginMessage makes a login without loginMsgAck fail.
	LoginMessage bool

	// SessionLimit is the highest number of open sessions; zero means 960.
	SessionLimit int

	// IdleTimeout ends a session without requests for this time; zero means 24 hours.
	IdleTimeout time.Duration

	// StepTime is the duration of each state of a task: New, Starting, Running. With zero a task has ended by the next
	// request, unless a hook runs meanwhile.
	StepTime time.Duration

	// PageLimit lowers the highest number of members on a page. Zero means the appliance's limits: 64 profiles or templates,
	// 256 of other resources.
	PageLimit int

	// EmptyProfileURI shows a missing serverProfileUri as "" instead of null.
	EmptyProfileURI bool

	// LateProfileURI shows serverProfileUri on the hardware when the profile is applied, instead of when it is created. It is
	// not known which of the two real appliances do.
	LateProfileURI bool

	// SpellURI, if set, changes the spelling of URIs in resources, for example letter case or a slash at the end. In requests
	// the appliance accepts all such spellings.
	SpellURI func(uri string) string

	// PlainConflicts answers 409 instead of failing the task if the server is on or has a profile.
	PlainConflicts bool

	// MissingIfMatch is the status for a DELETE or PUT without If-Match from API version 500 on; zero means 403, as the documentation
	// says. 412 has been observed. With 200 it is no fault of a DELETE, because HPE's Python SDK sends it so.
	MissingIfMatch int

	mu       sync.Mutex
	now      time.Time // time of the event or request that the server handles
	downTill time.Time // until then the restarting appliance answers 503
	events   []event   // the earliest first
	sequence int

	faults   []*injected
	harm     []string
	sessions map[string]*session

	hardware   []*hardware // each list in order of creation
	templates  []*template
	profiles   []*profile
	tasks      []*task
	types      []named      // server hardware types
	groups     []named      // enclosure groups
	operations []*operation // all, including those that have ended
	held       []*operation // operations that wait for a number of requests (SlowTask)
}

// Reply is a complete answer.
type Reply = fakehttp.Reply

// lock locks the mutex, runs all events that are due and returns the function that unlocks.
func (s *Server) lock() func() {
	s.mu.Lock()
	if s.sessions == nil {
		s.sessions = map[string]*session{}
	}
	s.catchUp(time.Now())
	return s.mu.Unlock
}

// event is an action of the appliance at a point in time.
type event struct {
	at     time.Time
	before func() // hook of a test; runs without the lock, so that it can call the Server
	run    func()
}

// after schedules the hook before and then run for d after s.now: after what is due then already.
func (s *Server) after(d time.Duration, before, run func()) {
	e := event{at: s.now.Add(d), before: before, run: run}
	place := sort.Search(len(s.events), func(i int) bool { return s.events[i].at.After(e.at) })
	s.events = slices.Insert(s.events, place, e)
}

// catchUp runs all events that are due, each at its own time.
func (s *Server) catchUp(now time.Time) {
	for len(s.events) > 0 && !s.events[0].at.After(now) {
		e := s.events[0]
		s.events = s.events[1:]
		if e.before != nil {
			s.mu.Unlock()
			e.before()
			s.mu.Lock()
		}
		s.now = e.at
		e.run()
	}
	if now.After(s.now) {
		s.now = now
	}
}

// timestamp formats a time as OneView does.
func timestamp(t time.Time) string {
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// milliseconds formats a time as OneView does in eTags.
func milliseconds(t time.Time) string {
	return strconv.FormatInt(t.UnixMilli(), 10)
}

// named is a resource with a name only.
type named struct{ uri, name string }

// addNamed finds or creates a resource by name and returns its URI.
func (s *Server) addNamed(all *[]named, category, name string) string {
	for _, n := range *all {
		if n.name == name {
			return n.uri
		}
	}
	made := named{uri: "/rest/" + category + "/" + strings.ToUpper(newUUID()), name: name}
	*all = append(*all, made)
	return made.uri
}

// later returns now, or one millisecond after last if now is not later.
func later(now, last time.Time) time.Time {
	if now.UnixMilli() > last.UnixMilli() {
		return now
	}
	return last.Add(time.Millisecond)
}
