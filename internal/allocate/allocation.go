package allocate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// allocationLost is how long an allocation may stay in state allocating. After that its conductor has lost it, and it must be
// created again (reference/ironic.md#lost-allocations). Each time that it is created again, it may take twice as long.
const allocationLost = time.Minute

func marked(extra map[string]any, mark *notes.Creation) map[string]any {
	all := map[string]any{string(notes.MarkCreation): mark.Value()}
	maps.Copy(all, extra)
	return all
}

// finishAllocation takes over the allocation of a name that a killed run has created; nil if there is none, or if it is another one.
func finishAllocation(ctx context.Context, site *machine.Site, r *Request) (a *ironic.Allocation, by *notes.Creation, err error) {
	if r.Name == "" {
		return nil, nil, nil
	}
	read := func(ctx context.Context) (*notes.Creation, error) {
		if a, err = site.Ironic.Allocation(ctx, r.Name); err != nil {
			return nil, err
		}
		on, err := extraOf(ctx, site, a)
		if err != nil {
			return nil, err
		}
		mark, err := begunBy(ctx, site, r, a, on)
		switch {
		case err != nil:
			return nil, errors.Join(err, notes.ErrTakenOver)
		case mark == nil:
			return nil, site.Run.RefuseTakeOver(notes.CreationOf(a.Extra, notes.MarkCreation))
		}
		return mark, nil
	}
	_, err = read(ctx)
	if err == nil {
		by, err = site.Run.Finishing(ctx, a.UUID, notes.MarkCreation, read, func(ctx context.Context, patch ironic.Patch) error {
			return site.Ironic.PatchAllocation(ctx, a.UUID, patch)
		})
	}
	if err == nil {
		a, err = site.Ironic.Allocation(ctx, a.UUID) // with the mark of this run
	}
	if errors.Is(err, notes.ErrTakenOver) || api.IsNotFound(err) {
		return nil, nil, nil
	}
	return a, by, err
}

// begunBy returns the mark of the killed run that has created an allocation; nil if the creation of the request may not take the allocation
// over. on is the extra of its node.
func begunBy(ctx context.Context, site *machine.Site, r *Request, a *ironic.Allocation, on map[string]any) (*notes.Creation, error) {
	mark := notes.CreationOf(a.Extra, notes.MarkCreation)
	isLeft := site.Run.Unfinished(mark, on) || r.isBroken && site.Run.IsDead(mark) && site.Run.IsRecent(mark)
	if !isLeft || !r.mayTakeOver(mark) {
		return nil, nil //nolint:nilnil // it is another one
	}
	same, err := sameRequest(ctx, site, r, a)
	if err != nil || !same {
		return nil, err
	}
	return mark, nil
}

// leftovers are the allocations of the site, read once: a run needs them only to warn.
type leftovers struct {
	all routine.Shared[[]ironic.Allocation]
}

// LeftAllocations returns the allocations without a name that killed runs have created for the class of a new one. They cannot be
// recognised, so no run takes them over. All creations of the run share one list.
func LeftAllocations(ctx context.Context, site *machine.Site, spec ironic.AllocationSpec) (left []ironic.Allocation, err error) {
	if spec.Name != "" {
		return nil, nil
	}
	known := machine.Kept(site, func(*machine.Site) *leftovers { return &leftovers{} })
	all, err := known.all.Get(ctx, func(ctx context.Context) ([]ironic.Allocation, error) { return site.Ironic.ListAllocations(ctx, nil) })
	for _, a := range all {
		mark := notes.CreationOf(a.Extra, notes.MarkCreation)
		if a.Name == "" && a.ResourceClass == spec.ResourceClass && site.Run.IsLeft(mark, nil) {
			left = append(left, a)
		}
	}
	return left, err
}

// extraOf returns the extra of the node of an allocation; nil if it has none.
func extraOf(ctx context.Context, site *machine.Site, a *ironic.Allocation) (map[string]any, error) {
	if a.NodeUUID == "" {
		return nil, nil
	}
	node, err := site.Ironic.Node(ctx, a.NodeUUID)
	if err != nil {
		return nil, err
	}
	return node.Extra, nil
}

// sameRequest reports whether an allocation was requested with the same class, traits, owner and nodes, or with nodes that meet the
// requirements.
func sameRequest(ctx context.Context, site *machine.Site, r *Request, a *ironic.Allocation) (bool, error) {
	spec := r.AllocationSpec
	same := func(wanted, have []string) bool {
		return slices.Equal(slices.Sorted(slices.Values(wanted)), slices.Sorted(slices.Values(have)))
	}
	if (machine.Tenant{Project: site.Ironic.Project()}).IsForeign(a.Owner, spec.Owner) || spec.Owner != "" && a.Owner == "" ||
		!same(spec.Traits, a.Traits) {
		return false, nil
	}
	var candidates []string
	for _, ref := range spec.CandidateNodes {
		node, err := site.Ironic.Node(ctx, ref)
		if err != nil {
			return false, err
		}
		candidates = append(candidates, node.UUID)
	}
	if r.Require != nil {
		strange := func(id string) bool { return !slices.Contains(candidates, id) }
		if spec.ResourceClass != a.ResourceClass || len(candidates) > 0 && slices.ContainsFunc(a.CandidateNodes, strange) {
			return false, nil
		}
		return meets(ctx, site, r, a)
	}
	if spec.Node == "" {
		return spec.ResourceClass == a.ResourceClass && same(candidates, a.CandidateNodes), nil
	}
	node, err := site.Ironic.Node(ctx, spec.Node)
	return err == nil && node.UUID == a.NodeUUID, err
}

// meets reports whether the nodes of an allocation meet the requirements of a request: the one that it has reserved, or its candidates.
func meets(ctx context.Context, site *machine.Site, r *Request, a *ironic.Allocation) (bool, error) {
	ids := a.CandidateNodes
	if a.NodeUUID != "" {
		ids = []string{a.NodeUUID}
	}
	for _, id := range ids {
		node, err := site.Ironic.Node(ctx, id)
		if err != nil {
			return false, err
		}
		v := r.Require.judge(node, nil, site.Ironic.ServerNow())
		if v.asks != "" {
			inventory, _, err := inventoryOf(ctx, site, node, inventoriesOfRun)
			if err != nil {
				return false, err
			}
			v = r.Require.judge(node, inventory, site.Ironic.ServerNow())
		}
		if v != (verdict{}) {
			return false, nil
		}
	}
	return len(ids) > 0, nil
}

// EndAllocation is Machine.EndCreation for an allocation.
func EndAllocation(ctx context.Context, site *machine.Site, a *ironic.Allocation, failed error) error {
	return site.Run.EndCreation(ctx, "allocation "+a.UUID, a.Extra, failed, func(ctx context.Context) (map[string]any, error) {
		now, err := site.Ironic.Allocation(ctx, a.UUID)
		if err != nil {
			return nil, err
		}
		return now.Extra, nil
	}, func(ctx context.Context, patch ironic.Patch) error {
		return site.Ironic.PatchAllocation(ctx, a.UUID, patch)
	})
}

// ForgetAllocationMark removes the mark of an earlier run from an allocation that Terraform has in state. It only logs a failure.
func ForgetAllocationMark(ctx context.Context, site *machine.Site, a *ironic.Allocation) {
	if !site.Run.IsDead(notes.CreationOf(a.Extra, notes.MarkCreation)) {
		return
	}
	if err := site.Ironic.UpdateAllocation(ctx, a.UUID, nil, nil, []string{string(notes.MarkCreation)}); err != nil {
		site.Ironic.Logger().WarnContext(ctx, "could not remove the mark of an earlier creation", "allocation", a.UUID, "error", err)
	}
}

// AwaitAllocation waits until an allocation is active. a is the allocation as last seen, for example in the answer to its creation. It
// deletes an allocation that ends in state error, because Ironic keeps its name and never retries it, and returns a an error of
// KindNoMatch. The allocation stays when the user interrupts the run, when the time-out ends, and with an error of KindUnwatched.
func AwaitAllocation(ctx context.Context, site *machine.Site, r Request, a *ironic.Allocation,
	timeout time.Duration,
) (*ironic.Allocation, error) {
	a, err := awaitActive(ctx, site, r, a, timeout)
	if err == nil {
		site.Ironic.ForgetNode(a.NodeUUID)
	}
	return a, err
}

// awaitActive is AwaitAllocation after which lists may still show the node without the reservation.
func awaitActive(
	ctx context.Context, site *machine.Site, r Request, a *ironic.Allocation, timeout time.Duration,
) (*ironic.Allocation, error) {
	spec := r.spec()
	deadline, renewed, patience := time.Now().Add(timeout), time.Now(), allocationLost
	for {
		switch a.State {
		case ironic.AllocationActive:
			site.Ironic.ForgetAllocation(a.UUID)
			return a, nil
		case ironic.AllocationError:
			return a, abandon(ctx, site, r, a)
		case ironic.AllocationAllocating:
		}
		if time.Since(renewed) > patience {
			site.Ironic.Logger().InfoContext(ctx, "allocation is still allocating, so it is created again", "allocation", spec.UUID, "name",
				spec.Name, "after", patience)
			renewed, patience = time.Now(), 2*patience // Ironic may only be slow, and begins anew
			if err := renew(ctx, site, spec); err != nil {
				return a, err
			}
		}
		polled, err := site.Ironic.PollAllocation(ctx, spec.UUID, time.Until(deadline))
		if unseen := failure.Unwatched(ctx, "allocation "+spec.UUID, string(a.State), err); failure.IsUnwatched(unseen) &&
			!api.IsNotFound(err) {
			return a, unseen
		}
		if errors.Is(err, api.ErrNoPoll) {
			return nil, fmt.Errorf("allocation %s is still allocating after %s", spec.UUID, timeout)
		}
		if err != nil {
			return nil, err
		}
		a = polled
	}
}

// ReservedNodeOf returns the node of an allocation for which Reserve has waited; nil if the allocation has none. A list that many
// allocations share answers for a node that it shows free: that Ironic has reserved it since is known. From then on, refreshes read
// the node with its reservation.
func ReservedNodeOf(ctx context.Context, site *machine.Site, a *ironic.Allocation) (*ironic.Node, error) {
	if a.NodeUUID == "" {
		return nil, nil //nolint:nilnil // the time-out has ended, or the user has interrupted the run
	}
	defer site.Ironic.ForgetNode(a.NodeUUID)
	node, err := site.Ironic.NodeForRefresh(ctx, a.NodeUUID)
	if err != nil || node.InstanceUUID == a.UUID || node.InstanceUUID == "" && states.InPool(node) {
		return node, err
	}
	return site.Ironic.Node(ctx, a.NodeUUID)
}

// QuarantineEnd finishes the quarantine that a killed run has begun on a node because a deployment failed for an allocation. It reports
// whether there was one. See EndLeftQuarantine.
type QuarantineEnd func(ctx context.Context, s *machine.Site, node *ironic.Node, allocation string) (ended bool, err error)

// Release deletes an allocation. It lets end finish a quarantine of the node, and returns an error of KindRefused if anything else is
// deployed on it: in maintenance, Ironic would delete the allocation and leave the machine running without a reservation
// (reference/ironic.md#deleting-a-node).
func Release(ctx context.Context, site *machine.Site, id, nodeID string, end QuarantineEnd) error {
	if nodeID != "" {
		node, err := site.Ironic.Node(ctx, nodeID)
		ended := false
		if err == nil && node.InstanceUUID == id && end != nil {
			ended, err = end(ctx, site, node, id)
		}
		switch {
		case api.IsNotFound(err):
		case err != nil:
			return err
		case node.InstanceUUID != id, ended:
		case states.IsOccupied(node):
			return machine.RefusedFor(node, "something is deployed on it. Destroy its metal_deployment first, or undeploy it with `metal "+
				"undeploy`. To leave the machine running with its reservation, remove the resource that reserves it from the state: "+
				"terraform state rm <its address>")
		}
	}
	return site.Ironic.DeleteAllocation(ctx, id)
}

// renew deletes a lost allocation and creates it again with the same UUID.
func renew(ctx context.Context, site *machine.Site, spec ironic.AllocationSpec) error {
	if err := site.Ironic.DeleteAllocation(ctx, spec.UUID); err != nil {
		return err
	}
	_, err := failure.CreateAllocation(ctx, site.Ironic, spec)
	return err
}

// abandon deletes a failed allocation and explains why no node matched. All allocations that have failed meanwhile share a list.
func abandon(ctx context.Context, site *machine.Site, r Request, a *ironic.Allocation) error {
	none := &NoMatch{Request: r, LastError: api.FirstLine(a.LastError), asked: time.Now()}
	if all, asked, err := stockSince(ctx, site, none.asked); err == nil {
		none.asked = asked
		none.Census, _, _ = examine(ctx, site, r, all, inventoriesOfRun)
		none.gaps = expect.GapsOf(r.AllocationSpec, all)
	}
	if err := site.Ironic.DeleteAllocation(context.WithoutCancel(ctx), a.UUID); err != nil {
		none.Left = true
		return errors.Join(none.Err(), fmt.Errorf("delete the failed allocation %s: %w", a.UUID, err))
	}
	return none.Err()
}

// ReservedNode is what a plan must know of the node that an allocation has reserved. It can be stored as JSON, so that each plan
// decides from the same facts until the next refresh.
type ReservedNode struct {
	UUID   string   `json:"uuid"`
	Name   string   `json:"name,omitempty"`
	Class  string   `json:"class,omitempty"`
	Traits []string `json:"traits,omitempty"`
	Owner  string   `json:"owner,omitempty"`
	Lessee string   `json:"lessee,omitempty"`
	Group  string   `json:"conductor_group,omitempty"`

	// Properties has the hardware that requirements compare.
	Properties map[string]any `json:"properties,omitempty"`

	Deployed bool   `json:"deployed,omitempty"` // something runs on it, or an operation is in progress
	Unusable string `json:"unusable,omitempty"` // why nothing can be deployed on it, such as "it is in maintenance"; empty if something can
}

// ReservedBy returns the facts about the node of an allocation. node is nil if it does not exist any more.
func ReservedBy(allocation, id string, node *ironic.Node) ReservedNode {
	if node == nil {
		return ReservedNode{UUID: id, Unusable: "it does not exist any more"}
	}
	return ReservedNode{
		UUID: node.UUID, Name: node.Name, Class: node.ResourceClass, Traits: node.Traits, Owner: node.Owner, Lessee: node.Lessee,
		Group: node.ConductorGroup, Properties: compared(node.Properties), Deployed: !states.Parked(ironic.State(node.ProvisionState)),
		Unusable: unusable(allocation, node),
	}
}

// compared returns the properties that requirements compare.
func compared(properties map[string]any) map[string]any {
	all := maps.Clone(properties)
	maps.DeleteFunc(all, func(key string, _ any) bool { return !slices.Contains(comparedProperties, key) })
	return all
}

// Lacks returns why the node does not meet requirements; "" if it does, or if only its inventory or a note could tell, as of cables.
func (n ReservedNode) Lacks(r *Requirements) string {
	facts := *r
	facts.Cabling, facts.HardwareAsExpected, facts.QualifiedWithin = false, false, ""
	node := &ironic.Node{UUID: n.UUID, Name: n.Name, ConductorGroup: n.Group, Properties: n.Properties}
	return facts.judge(node, nil, time.Time{}).lacks
}

// Label names the node in messages.
func (n ReservedNode) Label() string {
	return ironic.NodeLabel(&ironic.Node{UUID: n.UUID, Name: n.Name})
}

// unusable returns why nothing can be deployed on the node of an allocation; "" if something can, or if something runs on it.
func unusable(allocation string, node *ironic.Node) string {
	switch {
	case !states.Parked(ironic.State(node.ProvisionState)):
		return ""
	case node.InstanceUUID != "" && node.InstanceUUID != allocation:
		return "instance " + node.InstanceUUID + " has taken it"
	case node.Fault != "":
		return fmt.Sprintf("it has the fault %q", node.Fault)
	case node.Maintenance && node.MaintenanceReason != "":
		return fmt.Sprintf("it is in maintenance (%s)", node.MaintenanceReason)
	case node.Maintenance:
		return "it is in maintenance"
	}
	return ""
}
