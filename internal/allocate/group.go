package allocate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/expect"
)

// GroupWish is what the configuration of a group asks for.
type GroupWish struct {
	Destroy bool // Terraform destroys the resource; the rest does not count then

	Name                   decide.Value[string]
	Size, MaxPerDomain     decide.Value[int]
	Class, Owner, SpreadBy decide.Value[string]
	Traits, Candidates     decide.Value[[]string]
	Require                decide.Value[*Requirements]
	Wait                   time.Duration
}

// Member is what Terraform has of a member of a group. Only a plan has unknown values.
type Member struct{ ID, NodeID, NodeName, Domain decide.Value[string] }

// GroupSeen is what Terraform has of a group, and what Ironic was asked for this plan.
type GroupSeen struct {
	Was       *GroupWish        // what the state says; nil: there is no group yet
	Members   map[string]Member // by key
	Leftovers []string          // names of allocations that a killed run has created for the group, and that are no members

	Asked       []Question
	Doubts      []expect.Doubt
	Quarantined map[string]string // by key: names the node of a member if its release finishes a quarantine
}

// GroupPlan is what becomes of a group.
type GroupPlan struct {
	Steps    []Step
	Notices  []decide.Notice
	Asks     []Question
	Forecast GroupForecast
}

// GroupForecast is what the state says after the apply, besides the configuration.
type GroupForecast struct {
	Members         map[string]Member // nil: not known
	KeepsCandidates bool              // the state keeps its value: the search that the attribute limits is over
}

// IsEmpty reports whether the plan changes nothing and says nothing, so that the next one need not be made while nothing changes.
func (p GroupPlan) IsEmpty() bool { return len(p.Steps)+len(p.Notices)+len(p.Asks) == 0 }

// groupDecision is a GroupPlan in the making.
type groupDecision struct {
	GroupPlan
	w      GroupWish
	seen   GroupSeen
	was    GroupWish // the zero value if there is no group yet
	prefix string    // of the keys of members
	label  string    // names the group of the state in messages
}

// DecideGroup plans a group. Members that have a node keep it; a change of what chooses nodes concerns the others.
func DecideGroup(w GroupWish, seen GroupSeen) GroupPlan {
	d := &groupDecision{w: w, seen: seen}
	if seen.Was != nil {
		d.was = *seen.Was
	}
	d.prefix = KeyPrefix(seen.Members, cmp.Or(d.was.Name.V, w.Name.V))
	d.label = "group " + cmp.Or(d.was.Name.V, d.prefix)
	if w.Destroy {
		d.destroy()
		return d.GroupPlan
	}
	d.members()
	searches := d.searches()
	d.Forecast.KeepsCandidates = seen.Was != nil && !w.Candidates.IsNull() && !d.was.Candidates.IsNull() && d.Forecast.Members != nil && !searches
	if searches && w.Candidates.Set && len(w.Candidates.V) == 0 { // Ironic would take an empty list for no limit
		d.Notices = append(d.Notices, decide.Refuse(decide.At("candidate_nodes"), "No candidates",
			"candidate_nodes is empty, so no node may be reserved. Name the nodes, or remove candidate_nodes to choose from all nodes."))
	}
	if seen.Was != nil {
		d.change()
	}
	if searches || len(seen.Leftovers) > 0 {
		d.Steps = append(d.Steps, Step{Do: DoReserve})
	}
	if seen.Was != nil && !decide.Same(w.SpreadBy, d.was.SpreadBy) {
		d.Steps = append(d.Steps, Step{Do: DoDomains})
	}
	if searches && !w.Name.Unknown && len(d.unneeded()) == 0 && !decide.Refused(d.Notices) && d.asked(AskNodes) { // with leftovers, more nodes become free than the answer counts
		d.Notices = append(d.Notices, noticesOf(seen.Doubts, "Group "+w.Name.V+": ")...)
	}
	return d.GroupPlan
}

func (d *groupDecision) warn(at, summary, detail string) {
	d.Notices = append(d.Notices, decide.Warn(decide.At(at), summary, detail))
}

func (d *groupDecision) asked(q Question) bool {
	if !slices.Contains(d.seen.Asked, q) {
		d.Asks = append(d.Asks, q)
		return false
	}
	return true
}

// destroy plans to release all members.
func (d *groupDecision) destroy() {
	d.warnLeftovers(d.seen.Leftovers)
	step := Step{Do: DoRelease, Members: slices.Sorted(maps.Keys(d.seen.Members))}
	if d.asked(AskRelease) {
		for _, key := range step.Members {
			if notices := finishesQuarantine(d.seen.Quarantined[key], d.seen.Members[key].ID.V); notices != nil {
				d.Notices, step.Cost = append(d.Notices, notices...), decide.Wipe
			}
		}
	}
	d.Steps = append(d.Steps, step)
}

// members plans members: their keys if name and size are known, and the values of the members that have a node.
func (d *groupDecision) members() {
	if d.w.Size.Unknown || d.seen.Was == nil && d.w.Name.Unknown {
		return
	}
	unknown := decide.Unknown[string]()
	d.Forecast.Members = map[string]Member{}
	for i := range d.w.Size.V {
		key := MemberName(d.prefix, i)
		m := d.seen.Members[key]
		if !m.ID.Set {
			m.ID = unknown
		}
		if !m.NodeID.Set {
			m.NodeID, m.NodeName, m.Domain = unknown, unknown, unknown
		}
		if d.seen.Was != nil && !decide.Same(d.w.SpreadBy, d.was.SpreadBy) {
			m.Domain = unknown
		}
		d.Forecast.Members[key] = m
	}
}

// searches reports whether the plan looks for a node for a member, as far as it knows the members.
func (d *groupDecision) searches() bool {
	for _, m := range d.Forecast.Members {
		if m.NodeID.Unknown {
			return true
		}
	}
	return false
}

// change plans what becomes of a group that exists.
func (d *groupDecision) change() {
	if !decide.Same(d.w.Name, d.was.Name) {
		d.Steps = append(d.Steps, Step{Do: DoEdit, Renames: true})
	}
	d.release()
	d.warnLeftovers(d.unneeded())
	names := d.changedSelectors()
	if d.Forecast.KeepsCandidates {
		names = slices.DeleteFunc(names, func(name string) bool { return name == "candidate_nodes" })
	}
	hasNode := func(m Member) bool { return m.NodeID.Set }
	if len(names) > 0 && slices.ContainsFunc(slices.Collect(maps.Values(d.Forecast.Members)), hasNode) {
		d.warn(names[0], "Members keep their nodes", fmt.Sprintf("The change of %s in %s concerns only members that get a node later. The members that have a node keep it. "+
			"To choose all nodes again, use terraform apply -replace for this resource: that also replaces the deployments, and wipes the machines.", strings.Join(names, ", "), d.label))
	}
}

// release plans to release the members that the group does not have any more.
func (d *groupDecision) release() {
	if d.Forecast.Members == nil {
		d.Steps = append(d.Steps, Step{Do: DoRelease, Cost: decide.Wipe})
		d.warn("size", "Members may be released", fmt.Sprintf("The size of the %s is not known yet. If it becomes less than %d, the apply releases the members with the highest numbers. "+
			"It waits until nothing is deployed on their nodes, up to timeouts.update.", d.label, len(d.seen.Members)))
		return
	}
	gone := map[string]Member{}
	for key, m := range d.seen.Members {
		if _, stays := d.Forecast.Members[key]; !stays && m.ID.Set {
			gone[key] = m
		}
	}
	if len(gone) == 0 {
		return
	}
	keys := slices.SortedFunc(maps.Keys(gone), func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }) // in order of their numbers
	d.Steps = append(d.Steps, Step{Do: DoRelease, Cost: decide.Wipe, Members: keys})
	d.warn("size", "Members are released", fmt.Sprintf("The %s releases %s. If the configuration makes its metal_deployment resources with for_each over members, "+
		"this apply also destroys their deployments, which wipes the machines. The update waits for that up to timeouts.update, and then fails for members whose nodes are still in use.",
		d.label, nodesOf(gone, keys)))
}

// nodesOf names members and their nodes in messages.
func nodesOf(members map[string]Member, keys []string) string {
	var parts []string
	for _, key := range keys {
		if node := cmp.Or(members[key].NodeName.V, members[key].NodeID.V); node != "" {
			key = fmt.Sprintf("%s (node %s)", key, node)
		}
		parts = append(parts, key)
	}
	return strings.Join(parts, ", ")
}

// warnLeftovers warns that the apply releases leftovers.
func (d *groupDecision) warnLeftovers(names []string) {
	if len(names) > 0 {
		d.warn("size", "Reservations of a killed run are released", fmt.Sprintf("A run was killed while it reserved nodes for the %s, and no state has these reservations. "+
			"The apply releases those that the group does not have: %s.", d.label, strings.Join(names, ", ")))
	}
}

// unneeded returns the names of the leftovers that the planned group does not have.
func (d *groupDecision) unneeded() []string {
	if d.w.Size.Unknown || d.w.Name.Unknown {
		return nil
	}
	var members []string
	for i := range d.w.Size.V {
		members = append(members, MemberName(d.w.Name.V, i))
	}
	return slices.DeleteFunc(slices.Clone(d.seen.Leftovers), func(name string) bool { return slices.Contains(members, name) })
}

// changedSelectors returns the names of the attributes that choose nodes and that the plan changes, sorted.
func (d *groupDecision) changedSelectors() (names []string) {
	for _, selector := range []struct {
		name string
		same bool
	}{
		{"candidate_nodes", decide.Same(d.w.Candidates, d.was.Candidates)},
		{"max_per_domain", decide.Same(d.w.MaxPerDomain, d.was.MaxPerDomain)},
		{"owner", decide.Same(d.w.Owner, d.was.Owner)},
		{"require", decide.Same(d.w.Require, d.was.Require)},
		{"resource_class", decide.Same(d.w.Class, d.was.Class)},
		{"spread_by", decide.Same(d.w.SpreadBy, d.was.SpreadBy)},
		{"traits", decide.Same(d.w.Traits, d.was.Traits)},
	} {
		if !selector.same {
			names = append(names, selector.name)
		}
	}
	return names
}
