package allocate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/routine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

const (
	// membersAtOnce is how many members of a group are reserved or released at once.
	membersAtOnce = 10
	// releaseGrace is how long a run that the user has interrupted may release what it has reserved for a group.
	releaseGrace = time.Minute
)

// Group is a request for the allocations of a group: either all of its members get a node, or none does.
type Group struct {
	Request        // of each member, without a name and a UUID
	Name    string // the marks of the members have it
	Size    int    // how many members the group will have
	Members []*GroupMember
	Spread  Spread

	FormerName string   // the name before a rename; "" if there is none
	Leftovers  []string // names in state: see FindLeftovers. Their marks may have a former name of the group

	EndQuarantine QuarantineEnd // ends the quarantine of the node of a released allocation; nil: the quarantine stays

	by *notes.Creation // the killed run whose members this one has taken over; nil if there is none
}

// GroupMember is an allocation of a group. One without a node needs one.
type GroupMember struct {
	Name   string // of the allocation
	ID     string // UUID of the allocation; "" if there is none
	NodeID string

	NodeName, Domain string // of the node

	Leaves *Departure // the node that it gives up before it gets another; nil: none

	request *Request           // nil if the member had a node from the start
	made    *ironic.Allocation // nil if this run has reserved nothing for it
	asked   bool               // the allocation may exist
}

func (m *GroupMember) clear() { m.ID, m.NodeID, m.NodeName, m.Domain = "", "", "", "" }

func (g *Group) lacking() []*GroupMember {
	return slices.DeleteFunc(slices.Clone(g.Members), func(m *GroupMember) bool { return m.NodeID != "" })
}

func (g *Group) used() map[string]int {
	used := map[string]int{}
	for _, m := range g.Members {
		if m.NodeID != "" {
			used[m.Domain]++
		}
	}
	return used
}

func (g *Group) prepare(site *machine.Site) {
	g.begin()
	g.group = g.Name
	if g.enough = max(enoughNodes, len(g.Members)); g.Spread.By != "" {
		g.enough = inventoriesOfRun
	}
	for _, m := range g.lacking() {
		mark := site.Run.Begun()
		mark.Group = g.Name
		request := g.Request
		request.UUID, request.Name, request.Extra = cmp.Or(m.ID, ironic.NewUUID()), m.Name, marked(nil, mark)
		if request.Require == nil {
			request.Require = &Requirements{} // the provider chooses the node of each member
		}
		m.request = &request
	}
}

// take records what an allocation has reserved. node is its node.
func (g *Group) take(m *GroupMember, a *ironic.Allocation, node *ironic.Node) {
	m.made, m.ID, m.NodeID, m.NodeName, m.Domain = a, a.UUID, node.UUID, node.Name, g.Spread.Domain(node)
}

// ReserveGroup reserves a node for each member of a group that has none. It takes over the members that a killed run has created, and
// then also returns the mark of that run. It releases what such a run has created and the group does not have. If a node is missing, if
// anything fails or if the user interrupts the run, it releases what it has reserved, and returns an error. Members that it could not
// release keep their ID. Groups of one resource class reserve one after the other, over all runs: two groups that compete for nodes could
// otherwise each get too few. ReserveGroup sends each allocation with one candidate, because Ironic chooses at random from several.
func ReserveGroup(ctx context.Context, site *machine.Site, g *Group, timeout time.Duration) (by *notes.Creation, err error) {
	if _, err := site.Ironic.Microversion(ctx); err != nil { // its answer sets the clock
		return nil, err
	}
	g.prepare(site)
	err = reserveAll(ctx, site, g, timeout)
	if err == nil {
		err = worst(eachMember(g.Members, func(m *GroupMember) error { return endMember(ctx, site, m) }))
	}
	if err != nil && !notes.IsSuperseded(err) {
		err = withdraw(ctx, site, g, err)
	}
	return g.by, err
}

// lock returns the lock under which groups of a resource class reserve. The time-out of the creation bounds the wait for it.
func (g *Group) lock(timeout time.Duration) throttle.Lock {
	return throttle.Lock{
		Name: "group:" + g.ResourceClass, Description: "terraform-provider-metal: a run reserves nodes for a group of allocations",
		For: fmt.Sprintf("reserve nodes of class %s for a group", g.ResourceClass), Wait: timeout,
	}
}

// reserveAll reserves nodes for all members, and waits for capacity if the request allows that. While it waits, nothing is reserved.
func reserveAll(ctx context.Context, site *machine.Site, g *Group, timeout time.Duration) error {
	if g.Spread.needsAllFields() || g.Require.needsAllFields() {
		if err := stockOf(site).readWhole(ctx); err != nil {
			return err
		}
	}
	if len(g.lacking()) > 0 {
		// This reads inventories before the run takes the lock. Whether there are enough nodes matters only then.
		if _, err := pick(ctx, site, g, time.Now().Add(-stockAge)); err != nil && !failure.Is(err, KindShortGroup) {
			return err
		}
	}
	for logged := false; ; logged = true {
		err := site.Locks().With(ctx, g.lock(timeout), func(ctx context.Context) error { return reserveNow(ctx, site, g, timeout) })
		short := failure.AboutOf[*NoMatch](err, KindShortGroup)
		if short == nil || !g.waits() {
			return err
		}
		if left := withdraw(ctx, site, g, nil); left != nil {
			return errors.Join(err, left)
		}
		if !logged {
			site.Ironic.Logger().InfoContext(ctx, "group of allocations waits for nodes", "group", g.Name, "nodes", short.Census.String())
		}
		for err != nil {
			oldest, stop := nextStock(ctx, site, short.asked)
			if stop != nil {
				return stop
			}
			if _, err = pick(ctx, site, g, oldest); err == nil {
				break
			}
			now := failure.AboutOf[*NoMatch](err, KindShortGroup)
			if now == nil && !api.MayPass(err) || !g.waits() {
				return err
			}
			short = cmp.Or(now, short)
		}
	}
}

// reserveNow takes over members, and reserves nodes for the others. It chooses other nodes for members that have lost theirs to another
// client.
func reserveNow(ctx context.Context, site *machine.Site, g *Group, timeout time.Duration) error {
	if err := collect(ctx, site, g, timeout); err != nil {
		return err
	}
	pause := rest.Backoff{First: time.Second, Max: 10 * time.Second, Factor: 2}
	for races := 1; len(g.lacking()) > 0; races++ {
		chosen, err := pick(ctx, site, g, time.Now())
		if err != nil {
			return err
		}
		if err := leaveNodes(ctx, site, g, timeout); err != nil {
			return err
		}
		nodeFor := map[*GroupMember]*ironic.Node{}
		for i, m := range g.lacking() {
			nodeFor[m] = chosen[i]
		}
		err = worst(eachMember(g.lacking(), func(m *GroupMember) error { return reserveMember(ctx, site, g, m, nodeFor[m], timeout) }))
		if err != nil && (!isLostRace(err) || races >= mostRaces) {
			return err
		}
		if err != nil {
			if err := rest.Sleep(ctx, pause.Next()); err != nil {
				return err
			}
		}
	}
	return nil
}

// pick chooses a node for each member that has none, from a list that is not older than oldest.
func pick(ctx context.Context, site *machine.Site, g *Group, oldest time.Time) ([]*ironic.Node, error) {
	all, asked, err := stockSince(ctx, site, oldest)
	if err != nil {
		return nil, err
	}
	census, free, err := examine(ctx, site, g.Request, all, inventoriesOfRun)
	if err != nil {
		return nil, err
	}
	need := len(g.lacking())
	chosen := g.Spread.choose(free, g.used(), need)
	if len(chosen) < need {
		none := noMatch(site, &g.Request, census)
		none.asked = asked
		return nil, g.staying(shortGroup(none, g.Spread, need, len(free), len(chosen)))
	}
	return chosen, nil
}

// reserveMember creates the allocation of a member with a node as its only candidate, and waits until it is active. An error of KindNoMatch
// says that another client has taken the node.
func reserveMember(ctx context.Context, site *machine.Site, g *Group, m *GroupMember, node *ironic.Node, timeout time.Duration) error {
	if !stockOf(site).claimOne(m.request, node) {
		return (&NoMatch{Request: *m.request, Census: Census{Total: 1, Reserved: 1}}).Err()
	}
	m.asked = true
	a, err := failure.CreateAllocation(ctx, site.Ironic, m.request.spec())
	if err == nil {
		m.made = a
		a, err = AwaitAllocation(ctx, site, *m.request, a, timeout)
	}
	return settleMember(site, g, m, a, node, err)
}

func settleMember(site *machine.Site, g *Group, m *GroupMember, a *ironic.Allocation, node *ironic.Node, err error) error {
	stock := stockOf(site)
	if err != nil {
		stock.release(m.request, "")
		if isLostRace(err) {
			m.made, m.asked = nil, false // AwaitAllocation has deleted it
		}
		return err
	}
	stock.release(m.request, a.NodeUUID)
	g.take(m, a, node)
	return nil
}

// collect finds the members that exist already. It takes over those that a killed run has created, and releases those that the group does
// not have any more.
func collect(ctx context.Context, site *machine.Site, g *Group, timeout time.Duration) error {
	all, err := site.Ironic.ListAllocations(ctx, nil)
	if err != nil {
		return err
	}
	isBroken := slices.ContainsFunc(all, func(a ironic.Allocation) bool { return isUnfinishedMember(site, g, &a) })
	var found []*GroupMember
	for _, m := range g.lacking() {
		if m.isToLeave() { // the allocation of its name is the one that it gives up
			continue
		}
		m.request.isBroken = isBroken
		i := slices.IndexFunc(all, func(a ironic.Allocation) bool { return a.UUID == m.ID || a.Name == m.Name })
		if i < 0 {
			continue
		}
		if err := continueMember(ctx, site, g, m, &all[i]); err != nil {
			return err
		}
		if m.made != nil {
			found = append(found, m)
		}
	}
	if err := releaseLeftovers(ctx, site, g, all, isBroken); err != nil {
		return err
	}
	err = worst(eachMember(found, func(m *GroupMember) error {
		a, err := AwaitAllocation(ctx, site, *m.request, m.made, timeout)
		var node *ironic.Node
		if err == nil {
			node, err = site.Ironic.Node(ctx, a.NodeUUID)
		}
		return settleMember(site, g, m, a, node, err)
	}))
	if isLostRace(err) {
		return nil // the member gets another node
	}
	return err
}

// releaseLeftovers releases the leftovers of a group: those that Leftovers names, because a plan has announced that, and those that
// isLeftover recognises.
func releaseLeftovers(ctx context.Context, site *machine.Site, g *Group, all []ironic.Allocation, isBroken bool) error {
	var failed []error
	for _, a := range all {
		if !isLeftover(site, g, &a, isBroken || slices.Contains(g.Leftovers, a.Name)) {
			continue
		}
		if err := Release(ctx, site, a.UUID, a.NodeUUID, g.EndQuarantine); err != nil {
			failed = append(failed, fmt.Errorf("release allocation %s, which a killed run has created for the group and no state has: %w",
				a.Name, err))
		}
	}
	return errors.Join(failed...)
}

// isOfKilledRun reports whether a killed run has created an allocation for a group. An allocation that does not have the name of its mark
// any more was renamed, so it is in the state of another group.
func isOfKilledRun(site *machine.Site, g *Group, a *ironic.Allocation) bool {
	mark := notes.CreationOf(a.Extra, notes.MarkCreation)
	isKnown := slices.Contains(g.Leftovers, a.Name)
	switch {
	case mark == nil || mark.Group == "" || !site.Run.IsDead(mark) || !site.Run.IsRecent(mark) && !isKnown:
		return false
	case (machine.Tenant{Project: site.Ironic.Project()}).IsForeign(a.Owner, g.Owner):
		return false
	}
	number, isNamed := strings.CutPrefix(a.Name, mark.Group+"-")
	if _, err := strconv.Atoi(number); !isNamed || err != nil {
		return false
	}
	return mark.Group == g.Name || mark.Group == g.FormerName || isKnown
}

// isUnfinishedMember reports whether an allocation shows that a run was killed while it reserved nodes for a group.
func isUnfinishedMember(site *machine.Site, g *Group, a *ironic.Allocation) bool {
	return isOfKilledRun(site, g, a) && notes.CreationOf(a.Extra, notes.MarkCreation).Done.IsZero()
}

// isLeftover reports whether a killed run has created an allocation for a group that does not have it. atAnyAge says that it does not
// matter how long ago the creation was finished. A member that has lost its allocation does not have the one that a killed run has created
// in place of it, until a run reserves for the member.
func isLeftover(site *machine.Site, g *Group, a *ironic.Allocation, atAnyAge bool) bool {
	isMember := func(m *GroupMember) bool {
		return m.ID == a.UUID || m.Name == a.Name && (m.ID != "" || m.request != nil)
	}
	return isOfKilledRun(site, g, a) && (atAnyAge || site.Run.Unfinished(notes.CreationOf(a.Extra, notes.MarkCreation), nil)) &&
		!slices.ContainsFunc(g.Members, isMember)
}

// continueMember continues the allocation of a member that exists: the one of the state, or one that a killed run has created.
func continueMember(ctx context.Context, site *machine.Site, g *Group, m *GroupMember, a *ironic.Allocation) error {
	if a.UUID != m.ID {
		taken, by, err := finishAllocation(ctx, site, m.request)
		switch {
		case err != nil:
			return err
		case taken == nil:
			return nameTaken(m.Name, a.UUID)
		}
		a, g.by = taken, by
	}
	m.asked = true
	if a.State == ironic.AllocationError {
		err := site.Ironic.DeleteAllocation(ctx, a.UUID)
		m.asked = err != nil
		return err
	}
	m.request.Continue(a)
	m.made = a
	return nil
}

// endMember writes into the mark of a new member that its creation is finished, or removes the mark of a killed run.
func endMember(ctx context.Context, site *machine.Site, m *GroupMember) error {
	if m.made == nil {
		return nil
	}
	ForgetAllocationMark(ctx, site, m.made)
	return EndAllocation(ctx, site, m.made, nil)
}

// withdraw releases what this run has reserved for a group, also after an interruption. It joins its errors to a cause, which may be nil.
func withdraw(ctx context.Context, site *machine.Site, g *Group, cause error) error {
	ctx, stop := rest.OutlastFor(ctx, releaseGrace)
	defer stop()
	left := errors.Join(eachMember(g.Members, func(m *GroupMember) error { return withdrawMember(ctx, site, g, m) })...)
	if left == nil {
		return cause
	}
	return errors.Join(cause, left)
}

// withdrawMember releases what this run has reserved for a member. If another run has taken the allocation over, or Ironic does not release
// it, the member keeps it.
func withdrawMember(ctx context.Context, site *machine.Site, g *Group, m *GroupMember) error {
	if m.request == nil || !m.asked {
		return nil
	}
	id := m.request.UUID
	now, err := site.Ironic.Allocation(ctx, id)
	if err == nil {
		m.ID = id // until it is released
		if lost := site.Run.Superseded("allocation "+id, now.Extra, notes.MarkCreation); lost != nil {
			return lost
		}
		err = Release(ctx, site, id, now.NodeUUID, g.EndQuarantine)
	}
	if err != nil && !api.IsNotFound(err) {
		return fmt.Errorf("release allocation %s: %w", id, err)
	}
	m.made, m.asked = nil, false
	m.clear()
	return nil
}

// eachMember calls do for members, several at once, and returns their errors.
func eachMember(members []*GroupMember, do func(*GroupMember) error) []error {
	return routine.Each(len(members), membersAtOnce, func(i int) error { return do(members[i]) })
}

// worst returns the most serious of the errors that members have met: that another run has taken over the group, then any other than
// the loss of a node, which only needs another try.
func worst(errs []error) error {
	rank := func(err error) int {
		switch {
		case err == nil:
			return 0
		case isLostRace(err):
			return 1
		case notes.IsSuperseded(err):
			return 3
		}
		return 2
	}
	return slices.MaxFunc(append(errs, nil), func(a, b error) int { return cmp.Compare(rank(a), rank(b)) })
}

// isLostRace reports whether an allocation has found its node taken, and does not exist any more.
func isLostRace(err error) bool {
	none := noMatchOf(err)
	return none != nil && !none.Left
}
