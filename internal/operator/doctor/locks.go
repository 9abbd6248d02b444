package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/slots"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// errTakenOver is why a stale record was not deleted.
var errTakenOver = errors.New("a run has taken it over, or deleted it, meanwhile")

// removeStale deletes the records that dead runs have left. By object, it returns nil for those that it has deleted, and why it has not
// deleted the others.
func removeStale(ctx context.Context, client *ironic.Client, records []slots.Found) map[string]error {
	ctx, stop := context.WithTimeout(ctx, slots.WatchFor)
	defer stop()
	var left []slots.Found
	for _, r := range records {
		if r.Standing() == throttle.Left {
			left = append(left, r)
		}
	}
	done := map[string]error{}
	// together: each is watched for a minute or more
	for i, err := range routine.Each(len(left), len(left), func(i int) error {
		removed, err := slots.RemoveLeft(ctx, client, left[i])
		if err == nil && !removed {
			err = errTakenOver
		}
		return err
	}) {
		done[left[i].Object] = err
	}
	return done
}

// checkLimit says how many machines take a slot of the provisioning limit, and how many wait.
func checkLimit(s *sight) []Check {
	const name = "provisioning limit"
	if err := cmp.Or(s.nodes.err, s.limitless); err != nil {
		return []Check{s.unknown(name, err)}
	}
	taking, stuck, exempt := s.o.Limit.Slots(slots.MachinesOf(s.nodes.value), s.now)
	nodes := ironic.ByUUID(s.nodes.value, func(n *ironic.Node) string { return n.UUID })
	busy, taken := map[string]int{}, map[string]int{} // by what is in progress, by scope
	for _, b := range taking {
		taken[b.Scope]++
		if m := slots.MachineOf(nodes[b.ID]); m.Busy {
			busy[m.State]++
		} else {
			busy["power on"]++
		}
	}
	var parts []string
	for _, state := range slices.Sorted(maps.Keys(busy)) {
		parts = append(parts, fmt.Sprintf("%s %d", state, busy[state]))
	}
	c := Check{Name: name, Result: OK, Fact: have(len(taking), "machine") + " an operation in progress that takes a slot"}
	if len(parts) > 0 {
		c.Fact += ": " + strings.Join(parts, ", ")
	}
	limit, full := limitText(s.o.Limit, taken)
	c.Fact += "." + limit
	c.Details = full
	if len(stuck) > 0 {
		c.Fact += " " + are(len(stuck), "machine") + fmt.Sprintf(" stuck: in one state for over %s. Others may take the slots.",
			words.Short(s.o.Limit.StuckAfter))
	}
	if exempt > 0 {
		c.Fact += " " + needs(exempt, "exempt machine") + " none."
	}
	waiting := 0
	for _, r := range s.records.value {
		for _, w := range r.WaitingAt(s.now) {
			waiting += w.Machines
			c.Details = append(c.Details, fmt.Sprintf("run %s waits with %s for a slot, the first one since %s; its limit is %d", w.Run,
				words.Count(w.Machines, "machine"), clock.Text(w.Since, s.now), w.Max))
		}
	}
	c.Details = fold(c.Details)
	switch all := s.records.err == nil; {
	case waiting > 0 && all:
		c.Fact += fmt.Sprintf(" %s for a slot.", waits(waiting))
	case waiting > 0:
		c.Fact += fmt.Sprintf(" At least %s for a slot: see lock records.", waits(waiting))
	case !all:
		c.Fact += " Whether machines wait for a slot is not known: see lock records."
	}
	return []Check{c}
}

// limitText says how many slots there are, and in which groups of machines none is free. taken are the slots that are taken, by scope.
func limitText(limit throttle.Limit, taken map[string]int) (text string, full []string) {
	scope := map[throttle.Scope]string{
		throttle.ScopeAll: "", throttle.ScopeConductorGroup: "conductor group",
		throttle.ScopeShard: "shard",
	}[limit.Scope]
	switch {
	case limit.Max == 0:
		return "", nil
	case scope == "" && taken[""] >= limit.Max:
		return fmt.Sprintf(" The limit is %d, so that no slot is free.", limit.Max), nil
	case scope == "":
		return fmt.Sprintf(" The limit is %d.", limit.Max), nil
	}
	for _, name := range slices.Sorted(maps.Keys(taken)) {
		if taken[name] >= limit.Max {
			full = append(full, fmt.Sprintf("no slot is free in %s %q", scope, name))
		}
	}
	return fmt.Sprintf(" The limit is %d for each %s.", limit.Max, scope), full
}

func waits(n int) string {
	if n == 1 {
		return "1 machine waits"
	}
	return fmt.Sprintf("%d machines wait", n)
}

// checkFreeze says who has frozen the site, and why.
func checkFreeze(s *sight) []Check {
	if s.freeze == nil {
		return nil
	}
	return []Check{{
		Name: "freeze", Result: Warning, Fact: fmt.Sprintf("The site is %s. No run begins anything on a machine.", s.freeze),
		Next: "When the reason is over: metal thaw.",
	}}
}

// checkLocks says which lock records there are, and which ones dead runs have left.
func checkLocks(s *sight) []Check {
	const name = "lock records"
	if s.connect != nil {
		return []Check{s.unknown(name, errNoIronic)}
	}
	c := Check{Name: name, Result: OK, telling: true}
	stale, kept := 0, 0
	for _, r := range s.records.value {
		said := fmt.Sprintf("%s: %s; %s", r.Object, r.Description, heldBy(r, s.now))
		err, tried := s.removed[r.Object]
		switch {
		case tried && err == nil:
			said += "; deleted now"
		case errors.Is(err, errTakenOver):
			said += "; " + err.Error()
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
	c.Fact = "There is none: no run holds the lock or waits for a slot. Runs may be at work all the same: " +
		"see provisioning limit."
	switch n := len(s.records.value); {
	case n == 0 && s.records.err != nil && !api.IsForbidden(s.records.err):
		return []Check{s.unknown(name, s.records.err)}
	case n == 0 && s.records.err != nil:
		c.Fact = "There is none that this user may see: others may hold the lock, or have machines that wait for a slot."
	case n > 0:
		c.Fact = fmt.Sprintf("%s, of which %d stale.", there(n, "lock record"), stale)
	}
	switch {
	case kept > 0:
		c.Result, c.Next = Warning, "Delete the records with credentials that have the right."
	case stale > 0:
		c.Result, c.Next = Warning, "The run that had a stale record was killed. The next run takes the record over; metal doctor "+
			"--remove-stale watches it for a minute, and deletes it."
	}
	if s.records.err != nil {
		c.Fact += " Ironic does not show this user all records: " + failure.Sentence(s.records.err)
		if !api.IsForbidden(s.records.err) {
			c.Result = Unknown
		}
	}
	return []Check{c}
}

func heldBy(r slots.Found, now time.Time) string {
	run := "an unknown run"
	if r.Run != "" {
		run = "run " + r.Run
	}
	doing := "held by " + run + ", renewed "
	if r.Released {
		doing = "released by " + run + " while machines wait, "
	}
	return doing + clock.Text(now.Add(-r.Age), now)
}
