package throttle

import (
	"sync"
	"time"
)

// longestGap is how much of the time between two looks at a record counts: the site may have been silent for the rest, so that nobody could
// renew the record.
const longestGap = 15 * time.Second

// sightings are the records that this process has seen, and since when each has not changed, by this process's own clock. A run is dead if
// it has not renewed its record for the lease while the site answered. The clocks of the site do not count: they jump, and several API
// services may have several. The zero sightings are ready for use.
type sightings struct {
	mu  sync.Mutex
	all map[string]sighting
}

// sighting is what was seen of a record.
type sighting struct {
	holder   string
	renewals int
	seen     time.Duration // how long it has not changed while the site answered
	last     time.Time     // when it was last seen so
}

// standing returns the standing of a record that was asked for at a time.
func (s *sightings) standing(r *Record, asked time.Time) Standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, found := s.all[r.Name]
	if !found || was.holder != r.Holder || was.renewals != r.Renewals {
		was = sighting{holder: r.Holder, renewals: r.Renewals, last: asked}
	}
	was.seen, was.last = was.seen+min(max(asked.Sub(was.last), 0), longestGap), time.Now()
	if s.all == nil {
		s.all = map[string]sighting{}
	}
	s.all[r.Name] = was
	switch {
	case was.seen > r.lease():
		return Left
	case r.Released:
		return Released
	}
	return Held
}

// forget forgets a record that is gone, or that the site did not show: others could not renew it either.
func (s *sightings) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, name)
}
