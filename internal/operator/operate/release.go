package operate

import (
	"context"
	"fmt"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/operation"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Reservation is what holds a node: an allocation, or an instance UUID that a client has written on it.
type Reservation struct {
	Allocation *ironic.Allocation // nil: none
	Node       *ironic.Node       // nil: the allocation has none, or it does not exist any more
}

// Is reports whether two reservations are the same one of the same node, and r finds the node as other did.
func (r Reservation) Is(other Reservation) bool {
	allocation, node, instance := r.ids()
	a, n, i := other.ids()
	same := allocation == a && node == n && instance == i
	return same && (r.Node == nil || machine.AssumedOf(other.Node).Changes(r.Node) == "")
}

func (r Reservation) ids() (allocation, node, instance string) {
	if r.Allocation != nil {
		allocation = r.Allocation.UUID
	}
	if r.Node != nil {
		node, instance = r.Node.UUID, r.Node.InstanceUUID
	}
	return allocation, node, instance
}

// Label names a reservation for people.
func (r Reservation) Label() string {
	switch {
	case r.Allocation == nil:
		return "the reservation of node " + ironic.NodeLabel(r.Node)
	case r.Allocation.Name == "":
		return "allocation " + r.Allocation.UUID
	}
	return fmt.Sprintf("allocation %s (%s)", r.Allocation.Name, r.Allocation.UUID)
}

// FindAllocation reads an allocation, by name or UUID, and its node.
func FindAllocation(ctx context.Context, client Reader, ref string) (r Reservation, err error) {
	if r.Allocation, err = client.Allocation(ctx, ref); err != nil || r.Allocation.NodeUUID == "" {
		return r, err
	}
	if r.Node, err = client.Node(ctx, r.Allocation.NodeUUID); api.IsNotFound(err) {
		r.Node, err = nil, nil
	}
	return r, err
}

// FindReservation reads a node, by name or UUID, and the allocation that has reserved it.
func FindReservation(ctx context.Context, client Reader, ref string) (r Reservation, err error) {
	if r.Node, err = client.Node(ctx, ref); err != nil || r.Node.AllocationUUID == "" {
		return r, err
	}
	if r.Allocation, err = client.Allocation(ctx, r.Node.AllocationUUID); api.IsNotFound(err) {
		r.Allocation, err = nil, nil
	}
	return r, err
}

func unseenAllocation(node *ironic.Node) string {
	return "allocation " + node.AllocationUUID + " has reserved it, which Ironic does not show to this user: it is of another project. " +
		"Use credentials of that project"
}

func releaseCommand(node *ironic.Node) string {
	if node.AllocationUUID != "" {
		return "metal release " + node.AllocationUUID
	}
	return "metal release --node " + ironic.NodeArgument(node)
}

// DecideRelease says what giving up a reservation does.
func DecideRelease(r Reservation) Plan {
	node, id := r.Node, ""
	if r.Allocation != nil {
		id = r.Allocation.UUID
	}
	switch {
	case node == nil:
		return Plan{Harm: Restarts, Does: "deletes the allocation, which has no node" + atWorkOn(r)}
	case r.Allocation == nil && node.AllocationUUID != "":
		return Plan{Refused: unseenAllocation(node)}
	case r.Allocation == nil && node.InstanceUUID == "":
		return Plan{Nothing: true, Does: "does nothing, because the node is not reserved"}
	case r.Allocation != nil && node.InstanceUUID != id:
		return Plan{Harm: Restarts, Does: "deletes the allocation, which has lost its node" + atWorkOn(r)}
	case notes.InQuarantineFor(node, id):
		return Plan{Harm: Erases, Does: "ends the quarantine of node " + ironic.NodeLabel(node) +
			", which undeploys it and erases its disks"}
	}
	if why := notReleasable(node); why != "" {
		return Plan{Refused: why}
	}
	plan := Plan{Harm: Restarts, Does: "makes node " + ironic.NodeLabel(node) + " free for others" + atWorkOn(r)}
	if mark := notes.CreationOf(node.Extra, notes.MarkReservation); r.Allocation == nil &&
		(mark == nil || mark.Instance != node.InstanceUUID) {
		plan = Plan{Harm: Cuts, Does: fmt.Sprintf("removes instance UUID %s from the node, which another client, such as Nova, "+
			"has reserved", node.InstanceUUID)}
	}
	if atWorkOn(r) != "" {
		plan.Harm = Cuts
	}
	return plan
}

// notReleasable returns why the reservation of a node cannot be given up; "" if it can.
func notReleasable(node *ironic.Node) string {
	name := ironic.NodeArgument(node)
	switch state := ironic.State(node.ProvisionState); {
	case states.BeingDeployed(state):
		return "it is being deployed. To end that and free the machine, run: metal undeploy --release " + name
	case states.IsOccupied(node):
		return "something is deployed on it. To undeploy it and give the reservation up, run: metal undeploy --release " + name +
			". Without its allocation, the machine would go on running without a reservation"
	case states.IsInProgress(node):
		return "an operation on it is in progress. Run the command again when that has ended"
	case deploy.NeedsCleaning(node, node.InstanceUUID):
		return "a run was killed after it had undeployed the machine without cleaning, so that its disks keep data. Run: metal " +
			"undeploy " + name
	}
	return ""
}

// atWorkOn names the run that has begun what a reservation is for and has not finished it, as the end of a sentence; "" if there is none.
func atWorkOn(r Reservation) string {
	mark := (*notes.Creation)(nil)
	if r.Allocation != nil {
		mark = notes.CreationOf(r.Allocation.Extra, notes.MarkCreation)
	}
	if r.Node != nil {
		if on := notes.CreationOf(r.Node.Extra, notes.MarkReservation); on != nil && on.Instance == r.Node.InstanceUUID &&
			(mark == nil || on.Done.IsZero()) {
			mark = on
		}
	}
	if mark == nil || !mark.Done.IsZero() {
		return ""
	}
	return fmt.Sprintf("; %s, is at work on it or was killed", mark)
}

// Release gives up a reservation, as destroying a metal_allocation does. A reservation without an allocation ends as with a
// metal_deployment that was never deployed. VIFs of the machine are detached.
func Release(ctx context.Context, site *machine.Site, r Reservation) (err error) {
	if plan := DecideRelease(r); plan.Refused != "" {
		return machine.RefusedFor(r.Node, plan.Refused)
	}
	var traced *operation.Trace
	if r.Node != nil {
		ctx, traced = operation.Begin(ctx, "release", r.Node, site.Ironic)
		defer func() { traced.End(err) }()
	}
	if r.Node != nil && (r.Allocation == nil || r.Node.InstanceUUID == r.Allocation.UUID) {
		m := site.Record(r.Node)
		m.PartOf(traced)
		if err := disconnect(ctx, m); err != nil {
			return err
		}
		if r.Allocation == nil {
			_, err := deploy.Undeploy(ctx, m, r.Node.InstanceUUID, "", UndeployTimeout)
			return err
		}
		if id := r.Allocation.UUID; isNoted(r.Node, id) && !notes.InQuarantineFor(r.Node, id) {
			if _, err := deploy.Undeploy(ctx, m, id, id, UndeployTimeout); err != nil { // it removes the note
				return err
			}
		}
	}
	return allocate.Release(ctx, site, r.Allocation.UUID, r.Allocation.NodeUUID, deploy.EndLeftQuarantine)
}

// disconnect detaches the VIFs of a machine on which nothing is deployed. Ironic detaches those of a machine that it undeploys.
func disconnect(ctx context.Context, m *machine.Machine) error {
	if !deploy.KeepsVIFs(m.Node()) {
		return nil
	}
	attached, err := m.Site().Ironic.VIFs(ctx, m.Node().UUID)
	if err != nil {
		return err
	}
	var vifs []deploy.VIF
	for _, id := range attached {
		vifs = append(vifs, deploy.VIF{ID: id})
	}
	return deploy.DisconnectVIFs(ctx, m, m.Node().InstanceUUID, vifs)
}
