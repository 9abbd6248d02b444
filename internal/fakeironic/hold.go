package fakeironic

import (
	"slices"
	"sync"
)

// hold keeps nodes in transient states, and power changes from ending.
type hold struct {
	states []string
	kept   []func() // the ends of phases and power changes, in the order in which they were due
}

// Hold keeps every node that is in one of the transient states, or enters one, in that state until release is called. With "power on"
// or "power off" it keeps the change to that power from ending, and without states it keeps everything. StepTime counts as well: a node
// leaves the state when both have ended. Clients can still abort or undeploy a node that is kept, where Ironic allows that. release may
// be called more than once.
func (s *Server) Hold(states ...string) (release func()) {
	defer s.lock()()
	letGo := s.hold(states)
	return sync.OnceFunc(func() {
		defer s.lock()()
		letGo()
	})
}

// hold keeps nodes in transient states, or all changes without states, until letGo is called.
func (s *Server) hold(states []string) (letGo func()) {
	h := &hold{states: states}
	s.holds = append(s.holds, h)
	return func() {
		s.holds = slices.DeleteFunc(s.holds, func(other *hold) bool { return other == h })
		for _, end := range h.kept {
			s.after(0, end)
		}
	}
}

// keeps reports whether a hold keeps a node in a transient state or in a change to a power state. Then it remembers what ends that.
func (s *Server) keeps(in string, end func()) bool {
	for _, h := range s.holds {
		if len(h.states) == 0 || slices.Contains(h.states, in) {
			h.kept = append(h.kept, end)
			return true
		}
	}
	return false
}
