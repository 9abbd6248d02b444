package operate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout/turns"
)

// UndeployTimeout is how long undeploying a machine may take by default, with the cleaning after it.
const UndeployTimeout = 2 * time.Hour

// Undeploy returns the operation that ends what is deployed on machines, as destroying a metal_deployment does. A machine keeps the
// allocation that has reserved it, unless release is true. pool removes temporary server profiles; nil: there is no appliance.
func Undeploy(pool *sharing.Pool, release bool) Operation {
	return Operation{
		Command: "undeploy", Instead: "node undeploy", Doing: "undeploy", Timeout: UndeployTimeout, Worst: Erases,
		Decide: func(node *ironic.Node) Plan { return decideUndeploy(node, release) },
		Do: func(ctx context.Context, m *machine.Machine, timeout time.Duration) error {
			return undeploy(ctx, m, pool, release, timeout)
		},
		Note: func(node *ironic.Node) string { return erased(node) },
	}
}

// holder returns whose deployment an undeployment of a node ends, and the allocation that it creates again; "" if there is none.
func holder(node *ironic.Node) (instanceID, allocation string) {
	suspended, boot := notes.SuspendedAllocation(node), deploy.BootNoteOf(node)
	switch {
	case node.InstanceUUID != "":
		return node.InstanceUUID, node.AllocationUUID
	case suspended != nil:
		return suspended.UUID, suspended.UUID
	case boot != nil && boot.Again != nil:
		return boot.Again.Instance, ""
	}
	return "", ""
}

func decideUndeploy(node *ironic.Node, release bool) Plan {
	id, allocation := holder(node)
	state := ironic.State(node.ProvisionState)
	deleting := node.InstanceUUID != "" && states.LosesReservation(node) // Ironic has begun, and removes the reservation halfway
	unfinished := deleting || states.UndeployUnfinished(node) || node.InstanceUUID == "" && allocation != "" && !states.IsOccupied(node)
	kept := allocationAfter(allocation, release, unfinished)
	if states.IsOccupied(node) || states.UndeployUnfinished(node) {
		if why := notUndeployable(node); why != "" {
			return Plan{Refused: why}
		}
	}
	if states.IsOccupied(node) && !states.UndeployUnfinished(node) && id == "" {
		return Plan{Refused: "something is deployed on it without a reservation, so that its owner is not known. To undeploy it, reserve " +
			"it first: baremetal node set " +
			ironic.NodeArgument(node) + " --instance-uuid UUID"}
	}
	switch {
	case deleting, states.UndeployUnfinished(node) && states.InProgress(state):
		return Plan{Does: "waits for the end of its undeployment" + kept}
	case states.IsOccupied(node) && deploy.StaysUncleaned(node):
		return Plan{Harm: Cuts, Does: "undeploys it without cleaning, so that its disks keep their data (automated_clean is false)" + kept}
	case states.IsOccupied(node):
		return Plan{Harm: Erases, Does: "undeploys it, which erases its disks" + kept}
	case states.UndeployUnfinished(node), deploy.NeedsCleaning(node, id), unfinished && !states.InPool(node):
		return Plan{Harm: Erases, Does: "ends its undeployment, which erases its disks" + kept}
	case unfinished:
		return Plan{Does: "ends its undeployment" + kept}
	case isNoted(node, node.InstanceUUID) && !release:
		return Plan{Does: "removes what its undeployment has left on it" + allocationAfter(allocation, false, false)}
	case node.InstanceUUID != "" && release:
		return Plan{Refused: "nothing is deployed on it. To give its reservation up, run: " + releaseCommand(node)}
	}
	return Plan{Nothing: true, Does: "does nothing, because nothing is deployed on it"}
}

// isNoted reports whether a node has the note that an allocation is to be created again.
func isNoted(node *ironic.Node, allocation string) bool {
	spec := notes.SuspendedAllocation(node)
	return spec != nil && spec.UUID == allocation
}

// allocationAfter says what becomes of the allocation of a machine that is undeployed, as the end of a sentence; "" without one.
func allocationAfter(allocation string, release, gone bool) string {
	switch {
	case allocation == "":
		return ""
	case release:
		return ", and gives up allocation " + allocation
	case gone:
		return ", and creates allocation " + allocation + " again"
	}
	return ", and keeps allocation " + allocation
}

func notUndeployable(node *ironic.Node) string {
	move := states.NextMove(states.GoalUndeployed, ironic.State(node.ProvisionState), false)
	switch {
	case node.Protected && node.ProtectedReason != "":
		return fmt.Sprintf("it is protected in Ironic (%s). %s", node.ProtectedReason, failure.AdviseProtected)
	case node.Protected:
		return "it is protected in Ironic. " + failure.AdviseProtected
	case machine.ByAgent(node):
		return deploy.NeedsCredentials
	case move.Kind == states.Refuse:
		return move.Reason.String()
	}
	return ""
}

func undeploy(ctx context.Context, m *machine.Machine, pool *sharing.Pool, release bool, timeout time.Duration) error {
	if node := m.Node(); !release && node.AllocationUUID != "" {
		if _, err := m.Site().Ironic.Allocation(ctx, node.AllocationUUID); api.IsNotFound(err) {
			return machine.RefusedFor(node, unseenAllocation(node)+", or give the allocation up with --release: Ironic deletes it with "+
				"what is deployed, and no other client could create it again")
		} else if err != nil {
			return fmt.Errorf("read allocation %s: %w", node.AllocationUUID, err)
		}
	}
	id, allocation := holder(m.Node())
	again := allocation
	if release && m.Node().InstanceUUID != "" {
		again = "" // Ironic deletes it with the instance
	}
	lost, err := deploy.Undeploy(ctx, m, id, again, timeout)
	if err = errors.Join(err, pool.EndTemporaryOf(ctx, m.Node(), timeout)); err != nil {
		return err
	}
	turns.Clear(ctx, m, false)
	turns.Clear(ctx, m, true)
	switch {
	case release && again != "" && lost == "":
		return allocate.Release(ctx, m.Site(), again, m.Node().UUID, deploy.EndLeftQuarantine)
	case release || lost == "":
		return nil
	}
	notice := deploy.LostAllocation(ironic.NodeLabel(m.Node()), allocation, lost)
	return &failure.Error{
		Node: m.Node(), Fact: strings.TrimSuffix(notice.Detail, "."),
		Action: "The machine is free. Its metal_allocation reserves another node with the next apply.",
	}
}

// erased says what the cleaning after an undeployment has erased; "" if no look has seen that.
func erased(node *ironic.Node) string {
	e := notes.ErasureOf(node)
	if !e.IsOver() || e.Failed || node.ProvisionUpdatedAt.Sub(e.Ended).Abs() > clock.Slack { // it is of an earlier undeployment
		return ""
	}
	return fmt.Sprintf("cleaned, as its run noted, by %s, %s", strings.Join(e.Steps, ", "), e.Ended.Sub(e.Began).Round(time.Second))
}
