package fakeironic

import (
	"slices"
	"sync"
)

// hold keeps nodes in transient states.
type hold struct {
	states []string
	kept   []func() // the ends of their phases, in the order in which they were due
}

// Hold keeps every node that is in one of the transient states, or enters one, in that state until release is called. Without
// states it keeps nodes in every transient state. StepTime counts as well: a node leaves the state when both have ended. Clients can
// still abort or undeploy a node that is kept, where Ironic allows that. release may be called more than once.
func (s *Server) Hold(states ...string) (release func()) {
	defer s.lock()()
	h := &hold{states: states}
	s.holds = append(s.holds, h)
	return sync.OnceFunc(func() {
		defer s.lock()()
		s.holds = slices.DeleteFunc(s.holds, func(other *hold) bool { return other == h })
		for _, end := range h.kept {
			s.after(0, end)
		}
	})
}

// keeps reports whether a hold keeps a node in its state. Then it remembers what ends the phase.
func (s *Server) keeps(n *node, end func()) bool {
	for _, h := range s.holds {
		if len(h.states) == 0 || slices.Contains(h.states, string(n.state())) {
			h.kept = append(h.kept, end)
			return true
		}
	}
	return false
}
