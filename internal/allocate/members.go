package allocate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// RefreshGroup reads the members of a group again, and reports whether any of them exists. A member whose allocation is gone has
// neither an ID nor a node afterwards, unless the provider will create the allocation again.
func RefreshGroup(ctx context.Context, site *machine.Site, g *Group) (exists bool, err error) {
	if _, err := site.Ironic.AllocationsForPlan(ctx); err != nil { // one list instead of a request for each member
		return false, err
	}
	var found atomic.Bool
	errs := eachMember(g.Members, func(m *GroupMember) error {
		if m.ID == "" {
			return nil
		}
		InState(site, m.ID)
		is, err := refreshMember(ctx, site, g, m)
		if is {
			found.Store(true)
		}
		return err
	})
	return found.Load(), worst(errs)
}

// FindLeftovers returns the names of the allocations that a killed run has created for a group which does not have them: the run was killed
// while the group grew. ReserveGroup takes them over or releases them, and ReleaseLeftovers releases them.
func FindLeftovers(ctx context.Context, site *machine.Site, g *Group) (names []string, err error) {
	all, err := site.Ironic.AllocationsForPlan(ctx)
	if err != nil {
		return nil, err
	}
	isBroken := false
	for _, a := range all {
		isBroken = isBroken || isUnfinishedMember(site, g, a)
	}
	for _, a := range all {
		if isLeftover(site, g, a, isBroken) {
			names = append(names, a.Name)
		}
	}
	return names, nil
}

// ReleaseLeftovers releases the Leftovers of a group that is deleted, and no others.
func ReleaseLeftovers(ctx context.Context, site *machine.Site, g *Group) error {
	if len(g.Leftovers) == 0 {
		return nil
	}
	all, err := site.Ironic.ListAllocations(ctx, nil)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(a ironic.Allocation) bool { return !slices.Contains(g.Leftovers, a.Name) })
	return releaseLeftovers(ctx, site, g, all, false)
}

func refreshMember(ctx context.Context, site *machine.Site, g *Group, m *GroupMember) (exists bool, err error) {
	a, err := site.Ironic.AllocationForRefresh(ctx, m.ID)
	switch {
	case api.IsNotFound(err):
		suspended, err := site.IsSuspended(ctx, m.ID, m.NodeID)
		if err == nil && !suspended {
			m.clear()
		}
		return suspended, err
	case err != nil:
		return false, err
	}
	m.Name, m.NodeID = a.Name, a.NodeUUID
	if a.NodeUUID == "" {
		m.NodeName, m.Domain = "", ""
		return true, nil
	}
	node, err := site.Ironic.NodeForRefresh(ctx, a.NodeUUID)
	switch {
	case api.IsNotFound(err):
		return true, nil
	case err != nil:
		return true, err
	}
	m.NodeName, m.Domain = node.Name, g.Spread.Domain(node)
	return true, nil
}

// RenameMembers gives the allocations of members their names (API 1.57). It leaves out those that do not exist any more.
func RenameMembers(ctx context.Context, site *machine.Site, members []*GroupMember) error {
	return worst(eachMember(members, func(m *GroupMember) error {
		if m.ID == "" {
			return nil
		}
		done, _, err := site.Hold(ctx, m.ID) // an undeployment would create it again with the old name
		if err != nil {
			return err
		}
		defer done()
		if err := site.Ironic.UpdateAllocation(ctx, m.ID, &m.Name, nil, nil); err != nil && !api.IsNotFound(err) {
			return fmt.Errorf("rename allocation %s to %s: %w", m.ID, m.Name, err)
		}
		return nil
	}))
}

// ReleaseGroup releases members, and returns an error for each of them, or nil. See Release.
func ReleaseGroup(ctx context.Context, site *machine.Site, members []*GroupMember, end QuarantineEnd) []error {
	return eachMember(members, func(m *GroupMember) error {
		if m.ID == "" {
			return nil
		}
		return Release(ctx, site, m.ID, m.NodeID, end)
	})
}

// ReleaseMembers releases members that leave their group, and returns an error for each of them, or nil. It waits until nothing is deployed
// on their nodes: the deployments are deleted in the same apply, in any order. After the time-out, the error says what is deployed.
func ReleaseMembers(ctx context.Context, site *machine.Site, members []*GroupMember, timeout time.Duration) []error {
	deadline := time.Now().Add(timeout)
	return eachMember(members, func(m *GroupMember) error {
		if m.ID == "" {
			return nil
		}
		err := releaseIdle(ctx, site, *m, deadline)
		if err == nil {
			m.ID, m.NodeID = "", ""
		}
		return err
	})
}

// releaseIdle releases a member as soon as nothing is deployed on its node. After the deadline, it returns an error that says what is
// deployed.
func releaseIdle(ctx context.Context, site *machine.Site, m GroupMember, deadline time.Time) error {
	for {
		node, err := tryRelease(ctx, site, m, deadline)
		if err != nil || node == nil {
			return err
		}
		if time.Now().After(deadline) {
			return memberInUse(node)
		}
		for inUse(node, m.ID) {
			polled, _, err := site.Ironic.PollNode(ctx, m.NodeID, time.Until(deadline))
			switch {
			case errors.Is(err, api.ErrNoPoll):
				return memberInUse(node)
			case api.IsNotFound(err):
				return site.Ironic.DeleteAllocation(ctx, m.ID)
			case err != nil:
				return err
			}
			node = polled
		}
	}
}

// tryRelease releases a member, or returns its node if something is deployed on it. If this run undeploys the node, it waits for that.
func tryRelease(ctx context.Context, site *machine.Site, m GroupMember, deadline time.Time) (*ironic.Node, error) {
	held, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	done, _, err := site.Hold(held, m.ID)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil:
		defer done()
	}
	if m.NodeID != "" {
		node, rerr := site.Ironic.Node(ctx, m.NodeID)
		switch {
		case rerr == nil && (err != nil || inUse(node, m.ID)):
			return node, nil
		case rerr != nil && !api.IsNotFound(rerr):
			return nil, rerr
		}
	}
	if err != nil {
		return nil, err
	}
	return nil, site.Ironic.DeleteAllocation(ctx, m.ID)
}

// inUse reports whether something is deployed on the node of an allocation, or whether the allocation is created again once the node is
// undeployed.
func inUse(node *ironic.Node, allocation string) bool {
	if node.InstanceUUID == "" {
		spec := notes.SuspendedAllocation(node)
		return spec != nil && spec.UUID == allocation
	}
	return node.InstanceUUID == allocation && !states.Parked(ironic.State(node.ProvisionState))
}

// Departure is what a member gives up to move to another node.
type Departure struct {
	ID, NodeID string // its allocation and its node
	NodeName   string
	Value      string // in replace_members

	done bool // the node is retired, and the allocation is gone
}

// Done reports whether the member has given up its node.
func (d *Departure) Done() bool { return d != nil && d.done }

// Move makes a member give up its node and get another one.
func (m *GroupMember) Move(value string) {
	m.Leaves = &Departure{ID: m.ID, NodeID: m.NodeID, NodeName: m.NodeName, Value: value}
	m.clear()
}

// isToLeave reports whether a member still has the node that it gives up.
func (m *GroupMember) isToLeave() bool { return m.Leaves != nil && !m.Leaves.done }

// CheckDepartures waits until no node that members give up is being undeployed any more. It returns an error if something else is deployed
// on one of them: this apply has not destroyed its deployment before
// (reference/terraform.md#a-destruction-before-the-update-of-what-it-depends-on).
func CheckDepartures(ctx context.Context, site *machine.Site, members []*GroupMember, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	return errors.Join(eachMember(members, func(m *GroupMember) error {
		if !m.isToLeave() {
			return nil
		}
		node, err := site.Ironic.Node(ctx, m.Leaves.NodeID)
		for err == nil && !states.IsOccupied(node) && !states.Parked(ironic.State(node.ProvisionState)) {
			var polled *ironic.Node
			if polled, _, err = site.Ironic.PollNode(ctx, node.UUID, time.Until(deadline)); err == nil {
				node = polled
			}
		}
		switch {
		case api.IsNotFound(err):
			return nil
		case errors.Is(err, api.ErrNoPoll):
			return memberInUse(node)
		case err == nil && states.IsOccupied(node) && !notes.InQuarantineFor(node, m.Leaves.ID):
			return stillDeployed(m, node)
		}
		return err
	})...)
}

// staying adds to an error of KindShortGroup which members keep the nodes that they were to give up.
func (g *Group) staying(short *failure.Error) *failure.Error {
	var stay []string
	for _, m := range g.Members {
		if m.isToLeave() {
			stay = append(stay, fmt.Sprintf("%s (node %s)", m.Name, cmp.Or(m.Leaves.NodeName, m.Leaves.NodeID)))
		}
	}
	if len(stay) > 0 {
		short.Advice += " Members that were to move keep their nodes, which are not retired: " + strings.Join(stay, ", ") +
			". To deploy on these nodes again, set replace_members back to what it was before."
	}
	return short
}

// leaveNodes lets the members of a group that move give up their nodes.
func leaveNodes(ctx context.Context, site *machine.Site, g *Group, timeout time.Duration) error {
	return worst(eachMember(g.lacking(), func(m *GroupMember) error {
		if !m.isToLeave() {
			return nil
		}
		err := leaveNode(ctx, site, g, m, timeout)
		m.Leaves.done = err == nil
		return err
	}))
}

// leaveNode retires the node of a member, and then deletes the allocation. A run that is killed between these steps leaves a member that
// still has the node, so that the next run goes on.
func leaveNode(ctx context.Context, site *machine.Site, g *Group, m *GroupMember, timeout time.Duration) error {
	done, _, err := site.Hold(ctx, m.Leaves.ID)
	if err != nil {
		return err
	}
	defer done()
	on, err := site.Machine(ctx, m.Leaves.NodeID)
	switch {
	case api.IsNotFound(err):
		return site.Ironic.DeleteAllocation(ctx, m.Leaves.ID)
	case err != nil:
		return err
	case g.EndQuarantine != nil && on.Node().InstanceUUID == m.Leaves.ID:
		ended, err := g.EndQuarantine(ctx, site, on.Node(), m.Leaves.ID)
		if err == nil && ended {
			err = on.Refresh(ctx)
		}
		if err != nil {
			return err
		}
	}
	if on.Node().InstanceUUID == "" || on.Node().InstanceUUID == m.Leaves.ID { // otherwise it is not the member's any more
		if err := retire(ctx, on, g, m, timeout); err != nil {
			return fmt.Errorf("retire node %s: %w", ironic.NodeLabel(on.Node()), err)
		}
	}
	return site.Ironic.DeleteAllocation(ctx, m.Leaves.ID)
}

// retire takes the node that a member leaves out of use, and notes why. Ironic retires no available node
// (reference/ironic.md#retired-nodes). A node that is retired already keeps its reason.
func retire(ctx context.Context, on *machine.Machine, g *Group, m *GroupMember, timeout time.Duration) error {
	if on.Node().Retired {
		return nil
	}
	if states.IsOccupied(on.Node()) {
		return machine.RefusedFor(on.Node(), "something is deployed on it")
	}
	if states.InPool(on.Node()) {
		if err := on.Walk(ctx, states.GoalManageable, m.Leaves.ID, ironic.Order{}, timeout); err != nil {
			return err
		}
	}
	q := &notes.Quarantine{
		Allocation: m.Name, Group: g.Name, Value: m.Leaves.Value,
		Since: on.Site().Ironic.ServerNow().UTC().Truncate(time.Second),
	}
	var patch ironic.Patch
	patch.Set("/retired", true)
	patch.Set("/retired_reason", q.Reason())
	patch.Set("/extra/"+notes.KeyQuarantine, q)
	if _, exists := on.Node().Extra[notes.KeyAllocation]; exists { // it is not created again
		patch.Remove("/extra/" + notes.KeyAllocation)
	}
	return on.Patch(ctx, patch)
}

// FoundGroup is a group that exists in Ironic, and the allocation of its first member.
type FoundGroup struct {
	*Group
	First *ironic.Allocation
}

// FindGroups returns every group that exists in Ironic. Nothing but the names of allocations makes a group, whichever client created them.
func FindGroups(ctx context.Context, site *machine.Site) (found []*FoundGroup, err error) {
	all, err := site.Ironic.ListAllocations(ctx, nil)
	byName := ironic.ByUUID(all, func(a *ironic.Allocation) string { return a.Name })
	for i := range all {
		if name, isFirst := strings.CutSuffix(all[i].Name, MemberName("", 0)); isFirst && name != "" {
			found = append(found, groupNamed(byName, name, 0))
		}
	}
	return found, err
}

// FindGroup returns a group that exists in Ironic. ref is its name, NAME/SIZE, or the UUID of the first member.
func FindGroup(ctx context.Context, site *machine.Site, ref string) (*FoundGroup, error) {
	name, size := ref, 0
	if text, number, cut := strings.Cut(ref, "/"); cut {
		var err error
		name = text
		if size, err = strconv.Atoi(number); err != nil || size < 1 {
			return nil, fmt.Errorf("%q is not NAME/SIZE, such as k8s/10", ref)
		}
	}
	all, err := site.Ironic.ListAllocations(ctx, nil)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].UUID == ref {
			name = strings.TrimSuffix(all[i].Name, MemberName("", 0))
		}
	}
	g := groupNamed(ironic.ByUUID(all, func(a *ironic.Allocation) string { return a.Name }), name, size)
	if g.Size == 0 || g.Size < size {
		return nil, fmt.Errorf("there is no allocation with the name %s", MemberName(name, g.Size))
	}
	return g, nil
}

// groupNamed returns the group whose members have the numbers from 0 on: at most size of them, or all if size is 0.
func groupNamed(byName map[string]*ironic.Allocation, name string, size int) *FoundGroup {
	g := &Group{Name: name}
	for i := 0; size == 0 || i < size; i++ {
		a := byName[MemberName(name, i)]
		if a == nil {
			break
		}
		g.Members = append(g.Members, &GroupMember{Name: a.Name, ID: a.UUID, NodeID: a.NodeUUID})
	}
	g.Size = len(g.Members)
	return &FoundGroup{g, byName[MemberName(name, 0)]}
}

// MemberName returns the name of a member of a group.
func MemberName(group string, i int) string { return fmt.Sprintf("%s-%d", group, i) }
