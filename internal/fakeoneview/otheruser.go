package fakeoneview

import (
	"fmt"
	"slices"
	"time"
)

// NewProfile says what AddProfile makes.
type NewProfile struct {
	Name        string // a free one when empty
	HardwareURI string
	TemplateURI string // the template that it is made from and linked to; empty makes one without sections
	Unlinked    bool   // it is made from the template and not linked to it
}

// AddProfile puts a profile on a server at once, with no task, and returns its URI. It panics when there is no such hardware or
// template, or when the hardware has a profile.
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

// nextNumber makes names unique.
func (s *Server) nextNumber() int {
	s.sequence++
	return s.sequence
}

// TakeHardware is the other user of the appliance who takes a server: it gets a profile of theirs and is switched on. It
// returns the URI of the profile, "" when the server has one already. It panics when there is no such hardware.
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

// ReleaseHardware is the other user who gives a server back: it is switched off and its profile, whoever made it, is gone.
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

// EditProfile is the other user who edits a profile: it gets a new eTag. edit must not call the Server. It panics when there
// is no such profile.
func (s *Server) EditProfile(uri string, edit func(document map[string]any)) {
	defer s.lock()()
	p := s.mustProfile(uri)
	edit(p.document)
	p.document = clone(p.document)
	s.touchProfile(p)
}

// MoveProfile is the other user who gives a profile, whoever made it, to another server: it is theirs then, and that server is
// switched on. It panics when there is no such profile or hardware, or when the hardware has a profile.
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

// PowerOn is the other user who switches a server on.
func (s *Server) PowerOn(uri string) {
	defer s.lock()()
	h := s.mustHardware(uri)
	h.Power = On
	s.touch(h)
}

// MarkOthers makes a profile another user's, so that touching it is harm. It panics when there is none.
func (s *Server) MarkOthers(profileURI string) {
	defer s.lock()()
	s.mustProfile(profileURI).foreign = true
}

// Restart restarts the appliance: sessions are gone, what was at work ends half done with its task Interrupted, and for the
// given time every answer is 503. That tasks end so is not proven.
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

// working are the operations that have not ended.
func (s *Server) working() []*operation {
	return slices.DeleteFunc(slices.Clone(s.operations), func(op *operation) bool { return op.over })
}
