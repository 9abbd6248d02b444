package operate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/slots"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// aliveFor is how long a run counts as alive after it has written a note, or has begun to deploy the machine, if nothing else tells that it
// is.
const aliveFor = time.Hour

// Seen is what decides what an operation does to a machine, besides its node.
type Seen struct {
	Now   time.Time       // by the clock of the site
	Alive map[string]bool // the runs and commands that lock records name: they are at work, or their machines wait for a slot
}

// Look sees what decides what an operation does to machines. It reads the lock records only if a run has left a note of unfinished work on
// one of them. Records that the user may not see tell nothing.
func Look(ctx context.Context, site *machine.Site, machines []ironic.Node) Seen {
	seen := Seen{Now: site.Ironic.ServerNow()}
	if !slices.ContainsFunc(machines, isMarked) {
		return seen
	}
	records, err := slots.Find(ctx, site.Ironic)
	if err != nil {
		site.Ironic.Logger().DebugContext(ctx, "could not read all lock records", "error", err)
	}
	seen.Alive = slots.Alive(records, seen.Now)
	return seen
}

// isMarked reports whether a run or a command has left a note on a node that says that it works on the machine. The mark of a creation that
// has ended says no more.
func isMarked(n ironic.Node) bool {
	unfinished := func(key notes.Mark) bool {
		mark := notes.CreationOf(n.Extra, key)
		return mark != nil && mark.Done.IsZero()
	}
	return slices.ContainsFunc(notes.All, unfinished) || len(notes.TurnsOf(&n)) > 0 || notes.OperationOf(&n) != nil
}

// atWork names the run of Terraform, or the other command of metal, that may be at work on a machine; "" if there is none. A killed one
// leaves the same notes, so that they count only while something tells that it may be alive. The same command goes on with what an earlier
// one has begun, unless a lock record says that that one is alive.
func atWork(command string, n *ironic.Node, seen Seen) string {
	for _, key := range notes.All {
		if mark := notes.CreationOf(n.Extra, key); mark != nil && mark.Done.IsZero() && seen.mayLive(mark.Run, mark.Since, n) {
			return mark.String()
		}
	}
	for _, t := range notes.TurnsOf(n) {
		if t.Failed || !t.Until.IsZero() && t.Rest(seen.Now) == 0 || !seen.mayLive(t.Run, t.Since, n) {
			continue
		}
		return fmt.Sprintf("run %s, whose turn in group %s began at %s", t.Run, t.Group, t.Since.UTC().Format(time.RFC3339))
	}
	if c := notes.CheckOf(n, seen.Now); c != nil {
		return fmt.Sprintf("a run, which began to check at %s whether it is ready", c.Since.UTC().Format(time.RFC3339))
	}
	o := notes.OperationOf(n)
	if o == nil || !o.Failed.IsZero() || o.IsOver(n, seen.Now) {
		return ""
	}
	if seen.Alive[o.Run] || o.Command != command && seen.mayLive(o.Run, o.Since, n) {
		return o.String()
	}
	return ""
}

// mayLive reports whether the run that has left a note on a node at a time may be alive. Other changes of the state tell nothing: Ironic
// and operators make them, too.
func (s Seen) mayLive(run string, since time.Time, n *ironic.Node) bool {
	deploys := states.BeingDeployed(ironic.State(n.ProvisionState)) && clock.IsYoung(n.ProvisionUpdatedAt, s.Now, aliveFor)
	return s.Alive[run] || clock.IsYoung(since, s.Now, aliveFor) || deploys && clock.IsYoung(since, s.Now, notes.MarkAge)
}
