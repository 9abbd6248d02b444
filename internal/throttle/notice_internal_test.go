package throttle

import (
	"strings"
	"testing"
	"time"
)

// partial is a site of which the user may see only a part.
type partial struct{ Site }

func (partial) Partial() bool { return true }

// Machines may wait although slots are free, because Ironic answers slowly. Only a wait that the limit caused is told.
func TestNotices_tellOnlyWaitsThatTheLimitCaused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		waiting, want int
	}{{"all were admitted", 2, 0}, {"one had to stay", 3, 1}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := &Limiter{limit: Limit{Max: 2}, site: partial{}}
			l.stats.decided(Census{}, Decision{Go: make([]Ticket, 2)}, nil, c.waiting)
			l.stats.admitted("m00", time.Minute, time.Second)
			if got := l.Notices(); len(got) != c.want || c.want > 0 &&
				!strings.Contains(got[0].Detail, "Only the machines that this user can see count") {
				t.Errorf("got %v", got)
			}
		})
	}
}

// A machine that waits for several operations, such as cleaning and deploying, is one machine. The longest of its waits counts.
func TestNotices_countMachinesNotWaits(t *testing.T) {
	t.Parallel()
	l := &Limiter{limit: Limit{Max: 2}, site: partial{}}
	l.stats.decided(Census{}, Decision{}, nil, 1)
	for _, id := range []string{"m00", "m01", "m00", "m01"} {
		l.stats.admitted(id, time.Minute, time.Second)
	}
	l.stats.admitted("m00", time.Hour, time.Second)
	got := l.Notices()
	if len(got) != 1 || got[0].Summary != "Machines waited for a slot: 2 so far" || !strings.Contains(got[0].Detail, "was 1h0m0s") {
		t.Errorf("got %v", got)
	}
}
