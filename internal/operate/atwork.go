package operate

import (
	"fmt"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/marks"
)

// aliveFor is how long a run counts as alive after the last trace of it: its own note, or a change of the node's state. A run that works on a
// machine changes its state sooner, except while it waits for a slot.
const aliveFor = time.Hour

// atWork says which run of Terraform works on a machine at a time, and what to do; "" if none does. A killed run leaves the same notes, so that
// they count only while they are fresh.
func atWork(n *ironic.Node, now time.Time) string {
	for _, key := range marks.All {
		if mark := marks.CreationOf(n.Extra, key); mark != nil && mark.Done.IsZero() && isFresh(n, mark.Since, now) {
			return working(mark.String(), "creates what is on it", now)
		}
	}
	if t := marks.TurnOf(n); t != nil && !t.Failed && (t.Until.IsZero() || t.Until.After(now)) && isFresh(n, t.Since, now) {
		return working(fmt.Sprintf("run %s, whose turn began at %s", t.Run, t.Since.UTC().Format(time.RFC3339)), "changes it as a member of group "+t.Group, now)
	}
	if c := marks.CheckOf(n, now); c != nil {
		return working("a run, since "+c.Since.UTC().Format(time.RFC3339)+",", "checks whether it is ready", now)
	}
	return ""
}

// isFresh reports whether a note that a run has left at a time tells that the run is alive.
func isFresh(n *ironic.Node, since, now time.Time) bool {
	last := since
	if n.ProvisionUpdatedAt.After(last) {
		last = n.ProvisionUpdatedAt
	}
	return now.Sub(since) < marks.MarkAge && now.Sub(last) < aliveFor
}

// working says which run works on a machine.
func working(run, does string, now time.Time) string {
	return fmt.Sprintf("%s %s. Wait for the end of the run, or stop it. If it was killed, its notes count no more an hour after its last step; it is %s now", run, does, now.UTC().Format(time.RFC3339))
}
