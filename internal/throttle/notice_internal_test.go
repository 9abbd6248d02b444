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
			l.stats.admitted(time.Minute, time.Second)
			if got := l.Notices(); len(got) != c.want || c.want > 0 && !strings.Contains(got[0].Detail, "Only the machines that this user can see count") {
				t.Errorf("got %v", got)
			}
		})
	}
}
