package throttle

import (
	"testing"
	"time"
)

// Machines may wait although slots are free, because Ironic answers slowly. Only a wait that the limit caused is told.
func TestNotices_tellOnlyWaitsThatTheLimitCaused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		waiting, want int
	}{{"all were admitted", 2, 0}, {"one had to stay", 3, 1}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := &Limiter{limit: Limit{Max: 2}}
			l.stats.decided(Census{}, Decision{Go: make([]Ticket, 2)}, nil, c.waiting)
			l.stats.admitted(time.Minute, time.Second)
			if got := l.Notices(); len(got) != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
