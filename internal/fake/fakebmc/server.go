// Package fakebmc is a BMC in memory that speaks Redfish: sessions, systems, managers, virtual media, BIOS settings, storage,
// firmware updates with tasks, and the power of the machine behind it. Tests and the fakebmc program share it.
//
// It follows DMTF's specification (DSP0266) and schemas. It knows nothing about its clients. A Server serves many machines, each
// under /redfish/v1/Systems/NAME with a password of its own. What is behind a BMC is a Machine: Simulated, or for example a
// virtual one. Package ipmi has another face of the same BMC.
//
// Besides the REST API it has a history of each machine (Booted, PoweredOff, Inserted, ...), faults that tests inject, the quirks
// of some vendors, and a log of requests.
package fakebmc

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakehttp"
)

// Server serves the BMCs of some machines. Its zero value has none. Callers must not change the fields while the Server answers
// requests. A Server is safe for concurrent use.
type Server struct {
	fakehttp.Journal

	// SessionTime ends a session that has had no request for this time; zero means 30 minutes.
	SessionTime time.Duration

	mu       sync.Mutex
	bmcs     []*BMC // in the order of Add
	sessions map[string]*session
	tasks    []*task
	sequence int
	faults   []*injected
}

// Add adds a BMC. It panics if there is one with that name.
func (s *Server) Add(config Config) *BMC {
	config.defaults()
	b := &BMC{
		config: config, machine: config.Machine, password: config.Password,
		led: "Off", override: overrideNone, duration: overrideDisabled, mode: modeUEFI,
		drives:   map[string]*medium{driveCD: {}, driveUSB: {}},
		firmware: map[string]string{componentBMC: "1.00", componentBIOS: "1.00", componentNIC: "1.00"},
	}
	b.bios.now, b.bios.pending = biosDefaults(), object{}
	b.machine.Connect(b.post, func() { b.Note(PoweredOff, "") })
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.bmcs, func(other *BMC) bool { return other.config.Name == config.Name }) {
		panic("there are two BMCs named " + config.Name)
	}
	s.bmcs = append(s.bmcs, b)
	return b
}

// Request is one logged request.
type Request = fakehttp.Request

// reply is a complete answer. Status 0 breaks the connection.
type reply struct {
	status int
	header map[string]string
	body   any // nil means an empty body
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := fakehttp.Content(r)
	answer, struck := s.strike(r)
	if !struck {
		answer = s.answer(r, body)
	}
	s.Log(fakehttp.Request{Time: time.Now(), Method: r.Method, Path: r.URL.Path, Status: answer.status, Body: string(body)})
	if answer.status == 0 {
		panic(http.ErrAbortHandler)
	}
	answer.write(w)
}

func (a reply) write(w http.ResponseWriter) {
	w.Header().Set("OData-Version", "4.0")
	w.Header().Set("Cache-Control", "no-cache")
	for key, value := range a.header {
		w.Header().Set(key, value)
	}
	if a.body == nil {
		w.WriteHeader(a.status)
		return
	}
	if xml, is := a.body.(string); is {
		w.Header().Set("Content-Type", "application/xml; charset=utf-8")
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, xml) // fails only if the client has gone
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(a.body) // fails only if the client has gone
}

func (s *Server) answer(r *http.Request, body []byte) reply {
	c := &call{Server: s, method: r.Method, path: strings.TrimRight(r.URL.Path, "/"), request: r}
	res, names := find(c.path)
	if len(names) > 0 {
		c.name = names[len(names)-1]
	}
	if s.restarting(names) {
		return reply{}
	}
	if c.path == root+"/$metadata" && c.method == http.MethodGet {
		return reply{status: http.StatusOK, body: metadata}
	}
	if fault := c.admit(res, names); fault != nil {
		return fault.reply()
	}
	if res == nil || c.missing(res, names) {
		return problem(http.StatusNotFound, "ResourceMissingAtURI", "The resource at the URI %s was not found.", c.path).reply()
	}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &c.body); err != nil {
			return problem(http.StatusBadRequest, "MalformedJSON", "The request body submitted was malformed JSON and could not "+
				"be parsed.").reply()
		}
	}
	c.hasBody = len(body) > 0
	answer, fault := c.serve(res)
	if fault != nil {
		return fault.reply()
	}
	return answer
}

// metadata names no schemas: clients that need them know those of DMTF.
const metadata = `<?xml version="1.0" encoding="UTF-8"?>
<edmx:Edmx xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx" Version="4.0"><edmx:DataServices/></edmx:Edmx>
`

// restarting reports whether the BMC of the machine in the path restarts, or, without one, all BMCs.
func (s *Server) restarting(names []string) bool {
	s.mu.Lock()
	bmcs := slices.Clone(s.bmcs)
	s.mu.Unlock()
	down := 0
	for _, b := range bmcs {
		is := b.Restarting()
		if is && slices.Contains(names, b.config.Name) {
			return true
		}
		if is {
			down++
		}
	}
	return down > 0 && down == len(bmcs)
}
