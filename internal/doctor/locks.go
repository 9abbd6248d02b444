package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/slots"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/states"
)

// removeStale deletes the records that dead runs have left. By object, it returns nil for those that it has deleted, and why it has not deleted
// the others.
func removeStale(ctx context.Context, client *ironic.Client, records []slots.Found) map[string]error {
	done := map[string]error{}
	for _, r := range records {
		if r.Standing() != throttle.Left {
			continue
		}
		removed, err := slots.RemoveLeft(ctx, client, r)
		if err == nil && !removed {
			continue // it is gone, or a run uses it again
		}
		done[r.Object] = err
	}
	return done
}

// checkLimit says how many machines take a slot of the provisioning limit, and how many wait.
func checkLimit(s *sight) []Check {
	const name = "provisioning limit"
	if s.nodes.err != nil {
		return []Check{s.unknown(name, s.nodes.err)}
	}
	busy := map[string]int{}
	total := 0
	for i := range s.nodes.value {
		n := &s.nodes.value[i]
		if takesSlot(n) {
			busy[n.ProvisionState]++
			total++
		}
	}
	var parts []string
	for _, state := range slices.Sorted(maps.Keys(busy)) {
		parts = append(parts, fmt.Sprintf("%s %d", state, busy[state]))
	}
	c := Check{Name: name, Result: OK, Fact: have(total, "machine") + " an operation in progress that takes a slot"}
	if len(parts) > 0 {
		c.Fact += ": " + strings.Join(parts, ", ")
	}
	c.Fact += "."
	waiting := 0
	for _, r := range s.records.value {
		for _, w := range r.WaitingAt(s.now) {
			waiting += w.Machines
			c.Details = append(c.Details, fmt.Sprintf("run %s waits with %s for a slot, the first one since %s; its limit is %d", w.Run, count(w.Machines, "machine"), ago(w.Since, s.now), w.Max))
		}
	}
	if waiting > 0 {
		c.Fact += fmt.Sprintf(" %s for a slot.", waits(waiting))
	}
	return []Check{c}
}

// takesSlot reports whether a machine takes a slot of the limit.
func takesSlot(n *ironic.Node) bool {
	faulty := n.Maintenance && n.Fault != ""
	return !faulty && (states.Has(ironic.State(n.ProvisionState), states.Busy) || n.TargetPowerState == "power on")
}

func waits(n int) string {
	if n == 1 {
		return "1 machine waits"
	}
	return fmt.Sprintf("%d machines wait", n)
}

// checkLocks says which lock records there are, and which ones dead runs have left.
func checkLocks(s *sight) []Check {
	const name = "lock records"
	if s.connect != nil {
		return []Check{s.unknown(name, errNoIronic)}
	}
	c := Check{Name: name, Result: OK}
	stale, kept := 0, 0
	for _, r := range s.records.value {
		said := fmt.Sprintf("%s: %s; %s", r.Object, r.Description, heldBy(r, s.now))
		err, tried := s.removed[r.Object]
		switch {
		case tried && err == nil:
			said += "; deleted now"
		case r.Standing() == throttle.Left:
			stale++
			said += "; stale"
			if tried {
				kept++
				said += ", and could not be deleted: " + err.Error()
			}
		}
		c.Details = append(c.Details, said)
	}
	c.Details = fold(c.Details)
	c.Fact = "There is none: at this moment nobody holds the lock, and no machine waits for a slot. Runs may be at work all the same: see provisioning limit."
	if n := len(s.records.value); n > 0 {
		c.Fact = fmt.Sprintf("%s, of which %d stale.", there(n, "lock record"), stale)
	}
	switch {
	case kept > 0:
		c.Result, c.Next = Warning, "Delete the records with credentials that have the right."
	case stale > 0:
		c.Result, c.Next = Warning, "The run that had a stale record was killed. The next run takes the record over; metal doctor --remove-stale deletes it now."
	}
	if s.records.err != nil {
		c.Fact += " Ironic does not show this user all records: " + failure.Sentence(s.records.err)
		if !api.IsForbidden(s.records.err) {
			c.Result = Unknown
		}
	}
	return []Check{c}
}

// heldBy says who has a record.
func heldBy(r slots.Found, now time.Time) string {
	run := "an unknown run"
	if r.Run != "" {
		run = "run " + r.Run
	}
	doing := "held by " + run + ", renewed "
	if r.Released {
		doing = "released by " + run + " while machines wait, "
	}
	return doing + ago(now.Add(-r.Age), now)
}
