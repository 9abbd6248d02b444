package doctor

import (
	"cmp"
	"fmt"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/states"
)

// checkMachines says which machines have failed, do not get on, or wait for an operator: a check for each.
func checkMachines(s *sight) []Check {
	const name = "machines"
	if s.nodes.err != nil {
		return []Check{s.unknown(name, s.nodes.err)}
	}
	var found []Check
	for i := range s.nodes.value {
		if c := machineCheck(&s.nodes.value[i], s.now, s.o.StuckAfter); c != nil {
			found = append(found, *c)
		}
	}
	sum := Check{Name: name, Result: OK, Fact: fmt.Sprintf("Ironic shows %s. None has failed, is stuck or waits for an operator.", count(len(s.nodes.value), "machine"))}
	if len(found) > 0 {
		sum.Fact = fmt.Sprintf("Ironic shows %s, of which %d failed, stuck or waiting for an operator.", count(len(s.nodes.value), "machine"), len(found))
		sum.Result = Problem
		if len(found) > most {
			sum.Fact += fmt.Sprintf(" The first %d follow.", most)
			found = found[:most]
		}
	}
	return append([]Check{sum}, found...)
}

// machineCheck says what is wrong with a machine; nil: nothing.
func machineCheck(n *ironic.Node, now time.Time, stuckAfter time.Duration) *Check {
	state := ironic.State(n.ProvisionState)
	c := &Check{Name: "machine " + cmp.Or(n.Name, n.UUID), Result: Problem}
	since := fmt.Sprintf("since %s", ago(n.ProvisionUpdatedAt, now))
	switch old := now.Sub(n.ProvisionUpdatedAt) > stuckAfter; {
	case states.OperationFailed(n):
		failed := machine.FailedOn(n, "", "", nil)
		c.Fact, c.Next = failure.Ended("The last operation has failed: "+failed.Error()), failed.Advice
		if failed.Hint != "" {
			c.Next += " " + failed.Hint
		}
	case states.IsStuck(n) && now.Sub(n.ProvisionUpdatedAt) > time.Minute:
		c.Fact = fmt.Sprintf("Node %s is in state %q %s, but no conductor works on it any more.", label(n), n.ProvisionState, since)
		c.Next = "Restart its conductor, which lets the operation fail; then apply again. See the log of the conductor."
	case states.InProgress(state) && old:
		c.Fact = fmt.Sprintf("Node %s is in state %q %s.", label(n), n.ProvisionState, since)
		c.Next = "See the log of the conductor that works on it (" + cmp.Or(n.Reservation, "baremetal node show has its name") + ")."
		if states.AwaitsAgent(state) {
			c.Next = "Ironic waits for its ramdisk on the machine: look at the console of the machine. Ironic lets the operation fail after its own time-out; the verb abort ends it."
		}
	case states.Held(state):
		c.Result = Warning
		c.Fact = fmt.Sprintf("A step holds node %s in state %q %s, until an operator ends that.", label(n), n.ProvisionState, since)
		c.Next = "Go on or end it: metal unhold " + ironic.NodeArgument(n) + ", or metal abort."
	default:
		return nil
	}
	return c
}

// maintenanceReasons are those that this provider gives, with what ends the maintenance.
var maintenanceReasons = map[string]string{
	machine.ReasonChanging:  "a run was changing interfaces or ports, and was perhaps killed: apply again, which ends the maintenance",
	sharing.ReasonInUse:     "OneView users have the server: metal oneview sync ends the maintenance when it is free",
	sharing.ReasonMigrating: "a migration was perhaps interrupted: run metal oneview migrate again",
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
		if !n.Maintenance {
			continue
		}
		why, ours := maintenanceReasons[n.MaintenanceReason]
		if !ours {
			others++
			continue
		}
		c.Details = append(c.Details, fmt.Sprintf("%s (%q): %s", label(n), n.MaintenanceReason, why))
	}
	c.Fact = fmt.Sprintf("%s in maintenance because of this provider, and %d for other reasons.", are(len(c.Details), "machine"), others)
	if len(c.Details) > 0 {
		c.Result, c.Next = Warning, "If no run works on them now, do what the details say."
	}
	c.Details = fold(c.Details)
	return []Check{c}
}
