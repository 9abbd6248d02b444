package notes

import (
	"sync"
)

// Set is what a run has noted of something. Its zero value is empty, and it is safe for concurrent use.
type Set[T comparable] struct {
	mu  sync.Mutex
	all map[T]bool
}

// Add adds something, and reports whether the set did not have it.
func (s *Set[T]) Add(what T) (added bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[what] {
		return false
	}
	if s.all == nil {
		s.all = map[T]bool{}
	}
	s.all[what] = true
	return true
}

// Has reports whether the set has something.
func (s *Set[T]) Has(what T) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[what]
}

// Remove removes something.
func (s *Set[T]) Remove(what T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, what)
}
