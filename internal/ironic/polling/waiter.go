package polling

import (
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

type wait struct {
	since, last time.Time     // when it started, and when it was last answered
	gap         time.Duration // time to the next poll
	state       string        // of the object, by the last poll
	entered     time.Time     // when a poll first showed that state; at first, when the wait started
}

// waiter waits for one poll: of an object, or of all objects if it has no wait.
type waiter[T any] struct {
	id     string
	wait   *wait
	listAt time.Time // when it needs a list; zero: it needs none
	fails  api.Patience
	got    chan poll[T]
}

type poll[T any] struct {
	all   map[string]*T
	value *T
	asked time.Time // when the request began
	err   error

	missing bool // the list lacks the object: it was deleted, or moved between two pages
}

// outlasts reports whether a waiter continues after a poll has failed; mu is held. What waits for all objects has begun nothing, and so
// does not continue if Ironic denies them.
func (m *waiter[T]) outlasts(err error) bool {
	if m.wait == nil {
		return api.MayPass(err)
	}
	return m.fails.Outlasts(err)
}

func (m *wait) young() bool { return time.Since(m.since) < youngFor }

func (m *wait) due() time.Time { return m.last.Add(m.gap) }

// answered records a poll that showed a state; "" if the state is unknown.
func (m *wait) answered(state string, longest time.Duration) {
	m.last = time.Now()
	if state != m.state && m.state != "" {
		m.entered = m.last
	}
	m.state = state
	if m.young() {
		m.gap = min(m.gap*3/2, longest)
	} else {
		m.gap = intervalAfter(m.last.Sub(m.entered), longest)
	}
}

func (m *wait) failed(longest time.Duration) {
	m.last = time.Now()
	if m.young() {
		m.gap = min(m.gap*3/2, longest)
	} else {
		m.gap = longest
	}
}

// intervalAfter returns the interval between polls of an object that has been in its state for some time. It bounds the delay that
// polling adds to an operation.
func intervalAfter(inState, longest time.Duration) time.Duration {
	return min(max(inState/oldShare, oldFirst), longest)
}
