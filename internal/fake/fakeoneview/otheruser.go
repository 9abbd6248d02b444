package fakeoneview

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// NewProfile is a profile to add.
type NewProfile struct {
	Name        string // empty means an unused name
	HardwareURI string
	TemplateURI string // its template; empty means a profile without sections
	Unlinked    bool   // do not link it to the template
}

// AddProfile adds a profile to a server at once, without a task, and returns its URI. It panics if there is no such hardware
// or template, or if the hardware has a profile.
func (s *Server) AddProfile(n NewProfile) string {
	defer s.lock()()
	h := s.mustHardware(n.HardwareURI)
	if h.profile != nil {
		panic("fakeoneview: server hardware " + h.Name + " has a profile already")
	}
	return s.addProfile(h, n).uri
}

func (s *Server) addProfile(h *hardware, n NewProfile) *profile {
	fill(&n.Name, fmt.Sprintf("profile-%d", s.nextNumber()))
	p := &profile{uri: "/rest/" + pathProfiles + "/" + newUUID(), created: s.now, modified: s.now}
	p.document = map[string]any{
		"serverHardwareTypeUri": h.TypeURI, "enclosureGroupUri": orNull(h.GroupURI),
		"macType": "Physical", "wwnType": "Physical", "serialNumberType": "Physical",
	}
	if n.TemplateURI != "" {
		t := s.findTemplate(n.TemplateURI)
		if t == nil {
			panic("fakeoneview: there is no template " + n.TemplateURI)
		}
		p.document = s.newProfile(&call{version: 1600}, t)
		if !n.Unlinked {
			p.template = t
		}
	}
	p.document["name"] = n.Name
	p.document = clone(p.document)
	s.profiles = append(s.profiles, p)
	s.assign(p, h)
	s.settle(p, OK)
	return p
}

// nextNumber returns a number for a unique name.
func (s *Server) nextNumber() int {
	s.sequence++
	return s.sequence
}

// TakeHardware acts as another user who uses a free server: it adds the user's profile and switches the server on. It returns
// the URI of the profile, "" if the server has a profile already. It panics if there is no such hardware.
func (s *Server) TakeHardware(uri string) string {
	defer s.lock()()
	h := s.mustHardware(uri)
	if h.profile != nil {
		return ""
	}
	s.conclude(h.busy)
	p := s.addProfile(h, NewProfile{Name: fmt.Sprintf("other-user-%d", s.nextNumber())})
	p.foreign = true
	h.Power = On
	return p.uri
}

// ReleaseHardware acts as another user who frees a server: it removes the server's profile and switches the server off. It
// panics if there is no such hardware.
func (s *Server) ReleaseHardware(uri string) {
	defer s.lock()()
	h := s.mustHardware(uri)
	s.conclude(h.busy)
	if h.profile != nil {
		s.conclude(h.profile.operation)
	}
	if h.profile != nil {
		s.remove(h.profile)
	}
	h.Power = Off
	s.touch(h)
}

// EditProfile acts as another user who edits a profile, which gets a new eTag. edit must not call the Server. EditProfile
// panics if there is no such profile.
func (s *Server) EditProfile(uri string, edit func(document map[string]any)) {
	defer s.lock()()
	p := s.mustProfile(uri)
	edit(p.document)
	p.document = clone(p.document)
	s.touchProfile(p)
}

// MoveProfile acts as another user who moves a profile to another server: the profile becomes the user's, and the server is
// switched on. It panics if there is no such profile or hardware, or if the hardware has a profile.
func (s *Server) MoveProfile(uri, hardwareURI string) {
	defer s.lock()()
	p, h := s.mustProfile(uri), s.mustHardware(hardwareURI)
	if h.profile != nil {
		panic("fakeoneview: server hardware " + h.Name + " has a profile already")
	}
	s.conclude(p.operation)
	s.free(p)
	s.assign(p, h)
	s.settle(p, OK)
	p.foreign = true
	h.Power = On
}

// PowerOn acts as another user who switches a server on. It panics if there is no such hardware.
func (s *Server) PowerOn(uri string) {
	defer s.lock()()
	h := s.mustHardware(uri)
	h.Power = On
	s.touch(h)
}

// MarkOthers makes a profile another user's, so that changes of it count as harm. It panics if there is no such profile.
func (s *Server) MarkOthers(profileURI string) {
	defer s.lock()()
	s.mustProfile(profileURI).foreign = true
}

// Restart restarts the appliance: all sessions end, operations in progress stop half done with their tasks Interrupted, and for
// the time down every answer is 503. How tasks of a real appliance end is not known.
func (s *Server) Restart(down time.Duration) {
	defer s.lock()()
	clear(s.sessions)
	s.downTill = s.now.Add(down)
	s.held = nil
	for _, op := range s.working() {
		op.over = true
		if op.begun {
			op.broken()
		}
		s.setTask(op.task, TaskInterrupted, op.failed, op.task.percent)
	}
}

// working returns the operations in progress.
func (s *Server) working() []*operation {
	return slices.DeleteFunc(slices.Clone(s.operations), func(op *operation) bool { return op.over })
}

// Harm returns what clients did to another user: every DELETE, PUT and PATCH of another user's profile, and every change of
// power of a server with such a profile. Profiles made by TakeHardware, moved by MoveProfile or marked by MarkOthers are another
// user's. Failed attempts count, also those that a fault stopped, except for answers 401, 404 and 412; the last means that
// If-Match protected the profile.
func (s *Server) Harm() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.harm...)
}

// victims returns the other users' profiles that a call is about to change, or that are on the server that it changes.
func (s *Server) victims(c *call) []*profile {
	if c.method != http.MethodPut && c.method != http.MethodPatch && c.method != http.MethodDelete {
		return nil
	}
	var touched []*profile
	switch {
	case c.at(1) == pathHardware:
		if h := s.findHardware("/rest/" + pathHardware + "/" + c.at(2)); h != nil && h.profile != nil {
			touched = append(touched, h.profile)
		}
	case c.at(1) == pathProfiles && c.at(2) != "":
		if p := s.findProfile("/rest/" + pathProfiles + "/" + c.at(2)); p != nil {
			touched = append(touched, p)
		}
	case c.at(1) == pathProfiles && c.method == http.MethodDelete:
		touched, _ = s.chosen(c) // an invalid filter matches no profile
	}
	var victims []*profile
	for _, p := range touched {
		if p.foreign {
			victims = append(victims, p)
		}
	}
	return victims
}

// remember logs what a call did to the victims.
func (s *Server) remember(c *call, victims []*profile, status int) {
	if status == http.StatusUnauthorized || status == http.StatusNotFound || status == http.StatusPreconditionFailed {
		return
	}
	for _, p := range victims {
		server := "no hardware"
		if p.hardware != nil {
			server = p.hardware.Name
		}
		s.harm = append(s.harm, fmt.Sprintf("%s %s %s: answered %d; profile %q of another user on %s", c.method, c.uri, c.body, status,
			p.name(), server))
	}
}
