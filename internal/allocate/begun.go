package allocate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// findBegun finds the allocation of a name that a killed run has created, and that the creation of the request takes over. It returns nil
// if there is none, if this run has announced it already, or if Ironic does not answer: the apply tells then.
func findBegun(ctx context.Context, site *machine.Site, r *Request) *Begun {
	all, err := site.Ironic.AllocationsForPlan(ctx)
	if err != nil {
		return nil
	}
	for _, a := range all {
		if a.Name != r.Name || isInState(site, a.UUID) {
			continue
		}
		mark, more := leftOf(ctx, site, r, a)
		if mark == nil || !AnnounceBegun(site, a.UUID) {
			return nil
		}
		return &Begun{By: mark, What: "allocation " + a.Name, More: more}
	}
	return nil
}

// findBegunMembers is findBegun for the members that a group lacks.
func findBegunMembers(ctx context.Context, site *machine.Site, g *Group) *Begun {
	all, err := site.Ironic.AllocationsForPlan(ctx)
	if err != nil {
		return nil
	}
	g.group = g.Name
	isBroken := false
	for _, a := range all {
		isBroken = isBroken || isUnfinishedMember(site, g, a)
	}
	var found Begun
	var names []string
	for _, a := range all {
		isLacking := slices.ContainsFunc(g.lacking(), func(m *GroupMember) bool { return m.Name == a.Name && !m.isToLeave() })
		if !isLacking || isInState(site, a.UUID) {
			continue
		}
		r := g.Request
		r.Name, r.isBroken = a.Name, isBroken
		if r.Require == nil {
			r.Require = &Requirements{} // the provider chooses the node of each member
		}
		if mark, more := leftOf(ctx, site, &r, a); mark != nil {
			found.By, names, found.More = mark, append(names, a.Name), append(found.More, more...)
		}
	}
	if len(names) == 0 || !AnnounceBegun(site, g.Name) {
		return nil
	}
	slices.Sort(found.More)
	found.What = fmt.Sprintf("members of the group %s (%s)", g.Name, strings.Join(byNumber(names), ", "))
	return &found
}

// AnnounceBegun reports whether it is called for the first time in this run for an allocation, by UUID, or for a group, by name: the
// creation need not repeat what the plan has announced.
func AnnounceBegun(site *machine.Site, id string) bool {
	return site.Run.Announce(notes.MarkCreation, id)
}

// leftOf returns the mark of the killed run that has created an allocation, if the creation of the request takes the allocation over, and
// sentences about the deployment that the run has begun on its node.
func leftOf(ctx context.Context, site *machine.Site, r *Request, a *ironic.Allocation) (mark *notes.Creation, more []string) {
	var on map[string]any
	if a.NodeUUID != "" {
		node, err := site.Ironic.NodeForRefresh(ctx, a.NodeUUID)
		if err != nil {
			return nil, nil
		}
		on, more = node.Extra, site.AlsoBegun(node)
	}
	if mark, err := begunBy(ctx, site, r, a, on); err == nil { // a node that the request names may not exist yet
		return mark, more
	}
	return nil, nil
}
