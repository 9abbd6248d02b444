package simulate_test

import "net/http"

// moments finds the moments of an apply in which a kill leaves something else behind than a kill just before. What a killed process leaves
// is what Ironic has and what Terraform has saved; that differs only when a request has changed something, when Ironic has moved on by
// itself, and when a state was saved.
type moments struct {
	saved func() int // how many states were saved so far
	lost  bool       // they will be lost, so that only a kill after one was saved is another one

	begun                 bool
	lastEvents, lastSaved int
}

// begins reports whether a request begins a moment. A kill after a request that changes something is one. So is a kill before a request
// if Ironic or Terraform have moved on since the request before; otherwise it leaves the same as the kill after that.
func (m *moments) begins(s *site, r *http.Request, after bool) bool {
	saved := m.saved()
	if m.lost && saved == 0 {
		return false
	}
	if after {
		return r.Method != http.MethodGet
	}
	if m.lost {
		saved = 0
	}
	events := s.fake.Events()
	moved := !m.begun || events != m.lastEvents || saved != m.lastSaved
	m.begun, m.lastEvents, m.lastSaved = true, events, saved
	return moved
}

// saves returns a function that counts the states that are saved from now on.
func (w *workspace) saves() func() int {
	count := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.history)
	}
	before := count()
	return func() int { return count() - before }
}
