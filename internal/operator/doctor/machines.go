package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/evidence"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/reason"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/show"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

// checkMachines says which machines have failed, do not get on, or wait for an operator: a check for each.
func checkMachines(s *sight) []Check {
	const name = "machines"
	if s.nodes.err != nil {
		return []Check{s.unknown(name, s.nodes.err)}
	}
	found, alike := s.shared()
	bad := 0
	for _, group := range alike {
		bad += len(group)
	}
	for i := range s.nodes.value {
		n := &s.nodes.value[i]
		c := machineCheck(n, s.now, s.o.StuckAfter)
		if c == nil || slices.ContainsFunc(alike, func(group []*ironic.Node) bool { return slices.Contains(group, n) }) {
			continue
		}
		bad++
		c.Details = s.evidence[n.UUID]
		found = append(found, *c)
	}
	sum := Check{Name: name, Result: OK, Fact: fmt.Sprintf("Ironic shows %s. None has failed, is stuck or waits for an operator.",
		words.Count(len(s.nodes.value), "machine"))}
	if len(found) > 0 {
		sum.Fact = fmt.Sprintf("Ironic shows %s, of which %d failed, stuck or waiting for an operator.",
			words.Count(len(s.nodes.value), "machine"), bad)
		sum.Result = Problem
		if len(found) > most {
			sum.Fact += fmt.Sprintf(" The first %d follow.", most)
			found = found[:most]
		}
	}
	return append([]Check{sum}, found...)
}

// shared returns a check for each reason for which several machines have failed, and these machines.
func (s *sight) shared() (found []Check, alike [][]*ironic.Node) {
	byReason, others := map[string][]*ironic.Node{}, []*ironic.Node{}
	for i := range s.nodes.value {
		n := &s.nodes.value[i]
		if f := machine.FailureOf(n); f != nil && f.Reason != "" {
			byReason[f.Reason] = append(byReason[f.Reason], n)
		} else if !states.OperationFailed(n) && ironic.State(n.ProvisionState) != nodes.Enroll {
			others = append(others, n)
		}
	}
	for _, why := range reason.All() {
		group := byReason[why.ID]
		if len(group) < 2 {
			continue
		}
		first := group[0]
		c := Check{
			Name: "reason " + why.ID, Result: Problem,
			Fact: strings.TrimSpace(fmt.Sprintf("%d machines have failed for this reason: %s %s", len(group), why.Meaning,
				evidence.Common(group, others))),
			Next: fmt.Sprintf("%s Then see metal show of each machine.", machine.Why(first).Next),
		}
		for _, n := range group {
			c.Details = append(c.Details, fmt.Sprintf("%s is in state %q since %s", label(n), n.ProvisionState,
				clock.Text(n.ProvisionUpdatedAt, s.now)))
		}
		c.Details = append(fold(c.Details), fmt.Sprintf("Ironic says of %s: %s", label(first),
			failure.Ended(cmp.Or(first.LastError, first.MaintenanceReason))))
		c.Details = append(c.Details, s.evidence[first.UUID]...)
		found, alike = append(found, c), append(alike, group)
	}
	return found, alike
}

// machineCheck says what is wrong with a machine; nil: nothing.
func machineCheck(n *ironic.Node, now time.Time, stuckAfter time.Duration) *Check {
	state := ironic.State(n.ProvisionState)
	c := &Check{Name: "machine " + cmp.Or(n.Name, n.UUID), Result: Problem, Next: strings.Join(show.NextSteps(n, now), " ")}
	since := fmt.Sprintf("since %s", clock.Text(n.ProvisionUpdatedAt, now))
	inState, _ := clock.Age(n.ProvisionUpdatedAt, now)
	switch {
	case n.Fault != "" && !states.Failed(state):
		c.Fact = fmt.Sprintf("Node %s has the fault %q, so that Ironic has put it into maintenance.", label(n), n.Fault)
		if n.LastError != "" {
			c.Fact += " " + failure.Ended("Ironic says: "+api.FirstLine(n.LastError))
		}
	case states.OperationFailed(n):
		c.Fact = failure.Ended("The last operation has failed: " + machine.FailedOn(n, "", "", nil).Error())
	case states.IsStuck(n) && inState > time.Minute:
		c.Fact = fmt.Sprintf("Node %s is in state %q %s, but no conductor works on it any more.", label(n), n.ProvisionState, since)
	case states.InProgress(state) && inState > stuckAfter:
		c.Fact = fmt.Sprintf("Node %s is in state %q %s.", label(n), n.ProvisionState, since)
	case states.Held(state):
		c.Result = Warning
		c.Fact = fmt.Sprintf("A step holds node %s in state %q %s, until an operator ends that.", label(n), n.ProvisionState, since)
	default:
		return nil
	}
	return c
}

// checkMaintenance says which machines are in maintenance because of this provider, and how many because of others.
func checkMaintenance(s *sight) []Check {
	const name = "maintenance"
	if s.nodes.err != nil {
		return []Check{s.unknown(name, s.nodes.err)}
	}
	c := Check{Name: name, Result: OK}
	others := 0
	for i := range s.nodes.value {
		n := &s.nodes.value[i]
		if ends := show.EndsMaintenance(n); ends != "" {
			c.Details = append(c.Details, fmt.Sprintf("%s (%q): %s", label(n), n.MaintenanceReason, ends))
		} else if n.Maintenance {
			others++
		}
	}
	c.Fact = fmt.Sprintf("%s in maintenance because of this provider, and %d for other reasons.", are(len(c.Details), "machine"), others)
	if len(c.Details) > 0 {
		c.Result, c.Next = Warning, "If no run works on them now, do what the details say."
	}
	c.Details = fold(c.Details)
	return []Check{c}
}

// checkHealth says which machines report a health that is not OK. Where Ironic tells no health, it says nothing.
func checkHealth(s *sight) []Check {
	c := Check{Name: "health", Result: OK}
	told := 0
	for i := range s.nodes.value {
		n := &s.nodes.value[i]
		if n.Health != "" {
			told++
		}
		if !machine.Unwell(n.Health) {
			continue
		}
		if n.Health == "Critical" {
			c.Result = Problem
		} else if c.Result == OK {
			c.Result = Warning
		}
		c.Details = append(c.Details, fmt.Sprintf("%s: %s", label(n), n.Health))
	}
	if told == 0 {
		return nil
	}
	c.Fact = fmt.Sprintf("Ironic tells the health of %s. That of %d is not OK.", words.Count(told, "machine"), len(c.Details))
	if len(c.Details) > 0 {
		c.Next = show.LookAtBMC
	}
	slices.Sort(c.Details)
	c.Details = fold(c.Details)
	return []Check{c}
}
