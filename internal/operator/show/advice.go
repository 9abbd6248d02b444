package show

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

// longWait is how long Ironic may wait for its ramdisk on a machine until that is worth a look.
const longWait = 15 * time.Minute

// faultPower is the fault of a node whose BMC does not answer. Ironic ends this one when the BMC answers.
const faultPower = "power failure"

// NextSteps returns what to do about a node at a time by Ironic's clock, each a sentence or several, the most urgent first. It is empty if
// the node needs nothing. The commands in it name the node.
func NextSteps(n *ironic.Node, now time.Time) (todo []string) {
	todo = append(todo, adviseStuck(n), adviseMaintenance(n), adviseState(n, now))
	todo = append(append(todo, notes.Advice(n, now, notes.Broken)...), adviseLock(n))
	todo = append(append(todo, notes.Advice(n, now, notes.Begun)...), adviseReserved(n))
	todo = append(append(todo, notes.Advice(n, now, notes.Unused)...), adviseRetired(n), adviseHealth(n))
	return slices.DeleteFunc(todo, func(text string) bool { return text == "" })
}

// name returns how a command names a node.
func name(n *ironic.Node) string { return ironic.NodeArgument(n) }

// adviseStuck says what to do about an operation on which no conductor works.
func adviseStuck(n *ironic.Node) string {
	if !states.IsStuck(n) {
		return ""
	}
	conductor := strings.TrimSpace("the conductor " + n.Conductor)
	return fmt.Sprintf("No conductor works on this operation any more. Restart %s, which lets the operation fail. See its log for "+
		"the cause.", conductor)
}

// reasons are the reasons for which this provider and metal put a node into maintenance, with what ends it.
var reasons = map[string]string{
	machine.ReasonChanging: "A run was changing interfaces or ports of the node. If no run is at work any more, apply again, which ends " +
		"the maintenance.",
	sharing.ReasonInUse:     "OneView users have the server. Run metal oneview sync, which ends the maintenance when the server is free.",
	sharing.ReasonMigrating: "A migration of the node has begun. If it is not at work any more, run metal oneview migrate again.",
}

// EndsMaintenance says what ends the maintenance of a node that this provider or metal has begun; "" if another client or an operator has
// begun it, or if there is none.
func EndsMaintenance(n *ironic.Node) string {
	if !n.Maintenance || n.Fault != "" {
		return ""
	}
	return reasons[n.MaintenanceReason]
}

func adviseMaintenance(n *ironic.Node) string {
	ends := EndsMaintenance(n)
	switch {
	case ends != "":
		return ends
	case n.Fault == faultPower:
		return fmt.Sprintf("Ironic does not reach the BMC, and has put the node into maintenance. Check the BMC, its credentials and the "+
			"network (metal validate %s). Ironic ends the maintenance when the BMC answers.", name(n)) +
			failure.OrAskIPMI(n)
	case n.Fault != "":
		return fmt.Sprintf("Ironic has put the node into maintenance because of the fault %q. Fix the cause, then run: metal "+
			"maintenance off %s", n.Fault, name(n))
	case n.Maintenance:
		return fmt.Sprintf("The node is in maintenance, so that Ironic neither allocates nor deploys it. If its metal_host, or its "+
			"status in an inventory, asks for that, change it there, because the next apply would begin the maintenance again. "+
			"Otherwise, when the work on the machine has ended, run: metal maintenance off %s", name(n))
	}
	return ""
}

func adviseLock(n *ironic.Node) string {
	if n.Reservation == "" || states.IsInProgress(n) {
		return ""
	}
	return fmt.Sprintf("The conductor %s has locked the node, and Ironic refuses other requests until it has ended its work. If that "+
		"takes longer than a few minutes, look at the log of the conductor, and restart it.", n.Reservation)
}

func adviseRetired(n *ironic.Node) string {
	if !n.Retired || notes.QuarantineOf(n) != nil {
		return ""
	}
	return fmt.Sprintf("The node is retired, so that no allocation reserves it. If its metal_host has retired = true, change it there to "+
		"use the node again, because the next apply would retire it again. Otherwise run: metal unretire %s", name(n))
}

// adviseReserved says what to do about a reserved node on which nothing is deployed.
func adviseReserved(n *ironic.Node) string {
	switch {
	case states.InProgress(ironic.State(n.ProvisionState)), n.InstanceUUID == "", states.IsOccupied(n):
		return ""
	case n.AllocationUUID != "":
		return fmt.Sprintf("The node is reserved, and nothing is deployed on it. If the reservation is not needed any more, run: metal "+
			"release %s", n.AllocationUUID)
	}
	return fmt.Sprintf("The node is reserved without an allocation, and nothing is deployed on it. If no apply is at work and the "+
		"reservation is not needed any more, run: metal release --node %s", name(n))
}

// LookAtBMC says what to do about machines whose health is not OK.
const LookAtBMC = "The log of the BMC names the part, such as a fan, a disk or memory. Ironic reads the health again with the power " +
	"state, about once a minute, but not in maintenance."

func adviseHealth(n *ironic.Node) string {
	if !machine.Unwell(n.Health) {
		return ""
	}
	return fmt.Sprintf("The BMC reports the health %s. %s", n.Health, LookAtBMC)
}
