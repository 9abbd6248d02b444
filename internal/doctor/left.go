package doctor

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/marks"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/states"
)

// checkMarks says which notes of runs are still on machines that have no operation in progress. A run that is alive leaves some, too, while its
// machines wait; so they are a warning when they are old.
func checkMarks(s *sight) []Check {
	const name = "marks of runs"
	if s.nodes.err != nil {
		return []Check{s.unknown(name, s.nodes.err)}
	}
	c := Check{Name: name, Result: OK}
	var quarantine []string
	for i := range s.nodes.value {
		n := &s.nodes.value[i]
		for _, left := range leftOn(n, s.now, s.o.StuckAfter) {
			c.Details = append(c.Details, label(n)+": "+left)
		}
		if q := marks.QuarantineOf(n); q != nil {
			quarantine = append(quarantine, label(n)+": "+q.String())
		}
	}
	for i := range s.allocations.value {
		a := &s.allocations.value[i]
		if mark := marked(a.Extra, marks.MarkCreation); mark != nil && s.now.Sub(mark.Since) > s.o.StuckAfter {
			c.Details = append(c.Details, fmt.Sprintf("allocation %s: its creation by %s is not finished", cmp.Or(a.Name, a.UUID), mark))
		}
	}
	c.Fact = "No run has left anything unfinished."
	if len(c.Details) > 0 {
		c.Result = Warning
		c.Fact = fmt.Sprintf("Runs have left %s, for longer than %s, on what has no operation in progress.", count(len(c.Details), "mark"), short(s.o.StuckAfter))
		c.Next = "If a run still works, or waits for a slot, do nothing. Otherwise it was killed: apply the same configuration again, or run the same command of metal, which goes on from there."
	}
	c.Details = fold(c.Details)
	checks := []Check{c}
	if len(quarantine) > 0 {
		checks = append(checks, Check{
			Name: "quarantine", Result: Warning, Fact: are(len(quarantine), "machine") + " in quarantine: retired, and not allocated.", Details: fold(quarantine),
			Next: "Repair the machine, then end the quarantine: metal unretire NODE.",
		})
	}
	return checks
}

// leftOn says what a run has left on a machine at rest, if it is older than a time.
func leftOn(n *ironic.Node, now time.Time, age time.Duration) (left []string) {
	if strings.HasPrefix(n.Name, ironic.ProbeName) {
		return []string{"a run has created this node to test Ironic for a defect, which takes seconds. The next run that tests deletes it"}
	}
	old := func(since time.Time) bool { return now.Sub(since) > age }
	if states.IsInProgress(n) {
		return nil
	}
	if mark := marked(n.Extra, marks.MarkCreation); mark != nil && old(mark.Since) {
		left = append(left, fmt.Sprintf("the creation of its host by %s is not finished", mark))
	}
	if mark := marked(n.Extra, marks.MarkReservation); mark != nil && old(mark.Since) {
		left = append(left, fmt.Sprintf("its deployment by %s is not finished", mark))
	}
	if operation := marks.UnfinishedOperation(n, now); operation != nil && old(operation.Since) {
		left = append(left, fmt.Sprintf("not finished: %s. Its goal is: %s", operation, operation.Goal))
	}
	if turn := marks.TurnOf(n); turn != nil && (turn.Until.IsZero() && old(turn.Since) || !turn.Until.IsZero() && old(turn.Until)) {
		left = append(left, turnText(turn, now))
	}
	if spec := marks.SuspendedAllocation(n); spec != nil && old(n.ProvisionUpdatedAt) {
		left = append(left, fmt.Sprintf("allocation %s, which Ironic has deleted with the instance, was not created again", cmp.Or(spec.Name, spec.UUID)))
	}
	return left
}

// turnText describes the note of a rollout.
func turnText(turn *marks.Turn, now time.Time) string {
	text := fmt.Sprintf("run %s began its turn in rollout group %s", turn.Run, turn.Group)
	if !turn.Since.IsZero() {
		text += " " + ago(turn.Since, now)
	}
	switch {
	case turn.Failed:
		text += "; the change has failed"
	case !turn.Until.IsZero():
		text += "; it has ended, and the note is still there"
	default:
		text += "; it has not ended"
	}
	return text
}

// checkAllocations says which allocations have failed.
func checkAllocations(s *sight) []Check {
	const name = "allocations"
	if s.allocations.err != nil {
		return []Check{s.unknown(name, s.allocations.err)}
	}
	c := Check{Name: name, Result: OK}
	for i := range s.allocations.value {
		a := &s.allocations.value[i]
		if a.State == ironic.AllocationError {
			c.Details = append(c.Details, fmt.Sprintf("%s, class %s: %s", cmp.Or(a.Name, a.UUID), a.ResourceClass, cmp.Or(a.LastError, "without a reason")))
		}
	}
	c.Fact = fmt.Sprintf("%s, of which %d failed.", there(len(s.allocations.value), "allocation"), len(c.Details))
	if len(c.Details) > 0 {
		c.Result, c.Next = Warning, "Ironic does not try them again. Apply again, or delete them: baremetal allocation delete NAME."
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
		if n == nil || profile.InProgress || states.IsInProgress(n) || s.now.Sub(profile.Created) < s.o.StuckAfter {
			continue
		}
		c.Details = append(c.Details, fmt.Sprintf("%s of %s, made %s", profile.Name, label(n), ago(profile.Created, s.now)))
	}
	c.Fact = "Runs have left no temporary server profile."
	if len(c.Details) > 0 {
		c.Result = Warning
		c.Fact = fmt.Sprintf("Runs have left %s.", count(len(c.Details), "temporary server profile"))
		c.Next = "metal oneview sync --once removes what no run uses."
	}
	c.Details = fold(c.Details)
	return []Check{c}
}
