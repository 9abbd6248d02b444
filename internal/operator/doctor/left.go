package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/slots"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

// left is what a run or a command of metal has noted on something and not ended.
type left struct {
	on string
	*notes.Left
}

// checkMarks says which notes of runs are on what has no operation in progress. A run at work leaves the same notes as a killed one, so
// that they are a warning unless a lock record names the run.
func checkMarks(s *sight) []Check {
	const name = "marks of runs"
	if s.nodes.err != nil {
		return []Check{s.unknown(name, s.nodes.err)}
	}
	var all []left
	var quarantine []string
	for i := range s.nodes.value {
		n := &s.nodes.value[i]
		all = append(all, leftOn(n, s.now)...)
		if q := notes.QuarantineOf(n); q != nil {
			quarantine = append(quarantine, label(n)+": "+q.String())
		}
	}
	for i := range s.allocations.value {
		a := &s.allocations.value[i]
		if l := notes.OfAllocation(a, s.now).Left; l != nil {
			all = append(all, left{"allocation " + cmp.Or(a.Name, a.UUID), l})
		}
	}
	checks := []Check{ofLeft(name, all, slots.Alive(s.records.value, s.now), s.now)}
	if len(quarantine) > 0 {
		checks = append(checks, Check{
			Name: "quarantine", Result: Warning, Fact: are(len(quarantine), "machine") + " in quarantine: retired, and not allocated.",
			Details: fold(quarantine),
			Next:    "Repair the machine, then end the quarantine: metal unretire NODE.",
		})
	}
	return checks
}

// ofLeft is the check of what runs have noted and not ended. alive has the runs that lock records name.
func ofLeft(name string, all []left, alive map[string]bool, now time.Time) Check {
	var unsure, working, passing []string
	doubtful := false
	for _, l := range all {
		text := l.on + ": " + l.Text
		if !l.Since.IsZero() {
			text += ", written " + clock.Text(l.Since, now)
		}
		next := ""
		if l.Next != "" {
			next = ". Next: " + l.Next
		}
		switch {
		case l.Passes:
			passing = append(passing, text+next)
		case l.Failed:
			unsure = append(unsure, text+next)
		case alive[l.Run]:
			working = append(working, text+"; the run is at work, or its machines wait for a slot")
		default:
			unsure, doubtful = append(unsure, text+"; at work or killed"+next), true
		}
	}
	c := Check{
		Name: name, Result: OK, Fact: "There is no mark of an unfinished run on what has no operation in progress. Runs may be at work " +
			"all the same: see provisioning limit.",
		Details: fold(slices.Concat(unsure, working, passing)),
	}
	if len(all) > 0 {
		alive := "None of these runs is at work."
		switch n := len(working); {
		case n > 0:
			alive = fmt.Sprintf("Known to be at work: %d.", n)
		case doubtful:
			alive = "Nothing tells whether these runs are at work."
		}
		c.Fact = fmt.Sprintf("%s of unfinished runs on what has no operation in progress. %s", there(len(all), "mark"), alive)
	}
	if len(unsure) > 0 {
		c.Result = Warning
		c.Next = "If a run still works, do nothing. Otherwise it was killed or has failed: apply the same configuration again, or run " +
			"the same command of metal, which goes on from there."
	}
	return c
}

// leftOn returns what runs have noted on a machine at rest and not ended.
func leftOn(n *ironic.Node, now time.Time) (all []left) {
	switch {
	case strings.HasPrefix(n.Name, ironic.ProbeName):
		const text = "a run has created this node to test Ironic for a defect, which takes seconds. The next run that tests deletes it"
		return []left{{label(n), &notes.Left{Text: text}}}
	case states.IsInProgress(n):
		return nil
	}
	for _, l := range notes.Unfinished(n, now) {
		all = append(all, left{label(n), l})
	}
	return all
}

func checkAllocations(s *sight) []Check {
	const name = "allocations"
	if s.allocations.err != nil {
		return []Check{s.unknown(name, s.allocations.err)}
	}
	c := Check{Name: name, Result: OK}
	for i := range s.allocations.value {
		a := &s.allocations.value[i]
		if a.State == ironic.AllocationError {
			c.Details = append(c.Details, fmt.Sprintf("%s, class %s: %s", cmp.Or(a.Name, a.UUID), a.ResourceClass,
				cmp.Or(a.LastError, "without a reason")))
		}
	}
	c.Fact = fmt.Sprintf("%s, of which %d failed.", there(len(s.allocations.value), "allocation"), len(c.Details))
	if len(c.Details) > 0 {
		c.Result, c.Next = Warning, "Ironic does not try them again. Apply again, or delete them: metal release NAME."
	}
	c.Details = fold(c.Details)
	return []Check{c}
}

// checkTemporaries says which temporary profiles killed runs have left on an appliance of OneView.
func checkTemporaries(s *sight) []Check {
	const name = "OneView"
	switch {
	case s.o.OneView == nil:
		return nil
	case s.nodes.err != nil:
		return []Check{s.unknown(name, s.nodes.err)}
	case s.temporaries.err != nil:
		return []Check{s.unknown(name, s.temporaries.err)}
	}
	nodes := ironic.ByUUID(s.nodes.value, func(n *ironic.Node) string { return n.UUID })
	c := Check{Name: name, Result: OK}
	for i := range s.temporaries.value {
		profile := &s.temporaries.value[i]
		n := nodes[sharing.NodeOfTemporary(profile)] // nil: of another Ironic
		if n == nil || profile.InProgress || states.IsInProgress(n) || clock.IsYoung(profile.Created, s.now, s.o.StuckAfter) {
			continue
		}
		c.Details = append(c.Details, fmt.Sprintf("%s of %s, made %s", profile.Name, label(n), clock.Text(profile.Created, s.now)))
	}
	c.Fact = "Runs have left no temporary server profile."
	if len(c.Details) > 0 {
		c.Result = Warning
		c.Fact = fmt.Sprintf("Runs have left %s.", words.Count(len(c.Details), "temporary server profile"))
		c.Next = "metal oneview sync --once removes what no run uses."
	}
	c.Details = fold(c.Details)
	return []Check{c}
}
