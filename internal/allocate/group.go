package allocate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
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

	Replace decide.Value[map[string]string] // by key: any text; a new or another one moves the member to another node
}

// Member is what Terraform has of a member of a group. Only a plan has unknown values.
type Member struct{ ID, NodeID, NodeName, Domain decide.Value[string] }

// GroupSeen is what Terraform has of a group, and what Ironic was asked for this plan.
type GroupSeen struct {
	Was       *GroupWish        // what the state says; nil: there is no group yet
	Members   map[string]Member // by key
	Leftovers []string          // names of allocations that a killed run has created for the group, and that are no members
	Imported  bool              // nothing was applied since the import of the group
	HostEnds  []string          // keys of the members whose nodes the plan deletes with their hosts

	Asked       []Question
	Begun       *Begun
	Doubts      []expect.Doubt
	Quarantined map[string]string     // by key: names the node of a member if its release finishes a quarantine
	Nodes       map[string]MemberNode // by key
}

// MemberNode is the node of a member at the last refresh.
type MemberNode struct {
	ReservedNode
	Protected bool
	Domain    string // by the planned spread_by
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

type groupDecision struct {
	GroupPlan
	w      GroupWish
	seen   GroupSeen
	was    GroupWish // the zero value if there is no group yet
	moving []string  // the keys of the members that move to another node
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
	if len(seen.HostEnds) > 0 {
		d.refuseHostEnd()
		return d.GroupPlan
	}
	d.moving = d.moves()
	d.members()
	searches := d.searches()
	d.Forecast.KeepsCandidates = seen.Was != nil && !w.Candidates.IsNull() && !d.was.Candidates.IsNull() &&
		d.Forecast.Members != nil && !searches
	if searches && w.Candidates.Set && len(w.Candidates.V) == 0 { // Ironic would take an empty list for no limit
		d.Notices = append(d.Notices, decide.Refuse(decide.At("candidate_nodes"), "No candidates",
			"candidate_nodes is empty, so no node may be reserved. Name the nodes, or remove candidate_nodes to choose from all nodes."))
	}
	if seen.Was != nil {
		d.change()
	}
	d.move()
	if searches || len(seen.Leftovers) > 0 {
		d.Steps = append(d.Steps, Step{Do: DoReserve})
	}
	if seen.Was != nil && !decide.Same(w.SpreadBy, d.was.SpreadBy) {
		d.Steps = append(d.Steps, Step{Do: DoDomains})
	}
	if searches && !w.Name.Unknown && !decide.Refused(d.Notices) {
		d.foresee()
	}
	return d.GroupPlan
}

// foresee says which of the lacking members a killed run has created, and what speaks against the reservation of the others.
func (d *groupDecision) foresee() {
	if !d.w.isVague() && d.asked(AskBegun) {
		d.Notices = append(d.Notices, d.seen.Begun.notices()...)
	}
	if len(d.unneeded()) == 0 && d.asked(AskNodes) { // with leftovers, more nodes become free than the answer counts
		d.Notices = append(d.Notices, noticesOf(d.seen.Doubts, "Group "+d.w.Name.V+": ")...)
	}
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

// refuseHostEnd refuses to delete the nodes of members, also of those that leave them: Terraform destroys a host before it changes a group
// that depends on it, and the node is reserved until then.
func (d *groupDecision) refuseHostEnd() {
	var all []string
	for _, key := range d.seen.HostEnds {
		m := d.seen.Members[key]
		all = append(all, fmt.Sprintf("%s (node %s)", key, cmp.Or(m.NodeName.V, m.NodeID.V)))
	}
	d.Notices = append(d.Notices, decide.Refuse(nil, "Host of a member is destroyed",
		fmt.Sprintf("In the %s, this plan destroys the metal_host of these members: %s. As a rule, Terraform destroys a host before it "+
			"changes the group, and Ironic deletes no node that is reserved, so the apply would fail.\n\n"+
			"Add the host to the configuration again. If the machine is to go, first move the member to another node, in an apply of its "+
			"own: replace_members = { %q = \"any new text\" }. Or make the group smaller, if the member has the highest number. Both "+
			"wipe the machine. To replace the whole group, do that first, too. Then remove the host.", d.label, strings.Join(all, ", "),
			d.seen.HostEnds[0])))
}

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
		if slices.Contains(d.moving, key) {
			m = Member{ID: unknown}
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

func (d *groupDecision) change() {
	if !decide.Same(d.w.Name, d.was.Name) {
		d.Steps = append(d.Steps, Step{Do: DoEdit, Renames: true})
	}
	d.release()
	d.warnLeftovers(d.unneeded())
	d.warnKept()
}

// moves returns the keys of the members that move to another node, in the order of their numbers. Not after an import: a value that the
// configuration had before is no order.
func (d *groupDecision) moves() []string {
	if d.seen.Was == nil || d.seen.Imported || d.w.Replace.Unknown {
		return nil
	}
	var keys []string
	for key, value := range d.w.Replace.V {
		before, had := d.was.Replace.V[key]
		if m := d.seen.Members[key]; (!had || before != value) && m.ID.Set && m.NodeID.Set {
			keys = append(keys, key)
		}
	}
	return byNumber(keys)
}

func byNumber(keys []string) []string {
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return keys
}

func (d *groupDecision) move() {
	d.checkMoves()
	if len(d.moving) == 0 {
		return
	}
	d.Steps = append(d.Steps, Step{Do: DoMove, Cost: decide.Wipe, Members: d.moving})
	d.asked(AskMembers)
	for _, key := range d.moving {
		if d.seen.Nodes[key].Protected {
			d.Notices = append(d.Notices, decide.Refuse(decide.At("replace_members", decide.Key(key)), "Member is protected",
				fmt.Sprintf("The node %s of member %s is protected, so its deployment cannot be destroyed, and the member cannot move. "+
					"Set protected = false on its metal_deployment and apply that first, or remove the member from replace_members.",
					d.seen.Nodes[key].Label(), key)))
		}
	}
	summary := "Member moves to another node"
	if len(d.moving) > 1 {
		summary = "Members move to other nodes"
	}
	d.warn("replace_members", summary, fmt.Sprintf("In the %s, replace_members moves %s. The apply first destroys the deployment, which "+
		"wipes the machine. Then it retires the node, deletes the allocation and reserves another node. If the deployment is not in this "+
		"state, the apply fails for the group before it changes anything of it.", d.label, nodesOf(d.seen.Members, d.moving)))
}

// checkMoves refuses a replace_members that cannot be obeyed.
func (d *groupDecision) checkMoves() {
	if d.w.Replace.Unknown && d.seen.Was != nil {
		d.Notices = append(d.Notices, decide.Refuse(decide.At("replace_members"), "Value must be known during plan", "replace_members "+
			"decides which machines are wiped, so the plan must know it. Set it to values that do not depend on a resource."))
	}
	if d.seen.Imported && len(d.w.Replace.V) > 0 && !decide.Same(d.w.Replace, d.was.Replace) {
		d.warn("replace_members", "Members stay after an import", fmt.Sprintf("The %s was imported, so this apply only records "+
			"replace_members. A later change of a value moves its member.", d.label))
	}
	for _, key := range byNumber(slices.Collect(maps.Keys(d.w.Replace.V))) {
		if _, is := d.Forecast.Members[key]; d.Forecast.Members != nil && !is {
			d.Notices = append(d.Notices, decide.Refuse(decide.At("replace_members", decide.Key(key)), "No such member",
				fmt.Sprintf("replace_members names %s, and the group has no such member with this size. Its members are %s to %s. "+
					"Correct the name, or remove it: removing a name moves nothing.", key, MemberName(d.prefix, 0),
					MemberName(d.prefix, d.w.Size.V-1))))
		}
	}
}

// warnKept warns of members that keep nodes which do not satisfy a change. It does not compare candidate_nodes: a list of available nodes
// lacks the nodes of all members.
func (d *groupDecision) warnKept() {
	names := slices.DeleteFunc(d.changedSelectors(), func(name string) bool { return name == "candidate_nodes" })
	stays := map[string]int{} // by domain
	var keys []string
	for key, m := range d.Forecast.Members {
		if m.NodeID.Set {
			keys = append(keys, key)
			stays[d.seen.Nodes[key].Domain]++
		}
	}
	if len(names) == 0 || len(keys) == 0 || !d.asked(AskMembers) {
		return
	}
	var unfit []string
	for _, key := range byNumber(keys) {
		node, known := d.seen.Nodes[key]
		if lacks := d.w.lacks(names, node, stays[node.Domain]); known && len(lacks) > 0 {
			unfit = append(unfit, fmt.Sprintf("%s (node %s: %s)", key, node.Label(), strings.Join(lacks, ", ")))
		}
	}
	if len(unfit) > 0 {
		d.warn(names[0], "Members keep their nodes",
			fmt.Sprintf("The change of %s in %s concerns only members that get a node later. These members have nodes that do not "+
				"satisfy it, and keep them: %s. To move one of them, name it in replace_members: that destroys its deployment, which "+
				"wipes the machine, and retires the node.", strings.Join(names, ", "), d.label, strings.Join(unfit, "; ")))
	}
}

// lacks says why the node of a member does not satisfy attributes that choose nodes. inDomain is how many members are in its domain.
func (w GroupWish) lacks(attributes []string, node MemberNode, inDomain int) (why []string) {
	add := func(attribute string, lacks bool, text string) {
		if lacks && slices.Contains(attributes, attribute) {
			why = append(why, text)
		}
	}
	add("resource_class", w.Class.Set && node.Class != w.Class.V, fmt.Sprintf("its class is %q", node.Class))
	trait := missingTrait(w.Traits.V, node.Traits)
	add("traits", !w.Traits.Unknown && trait != "", "without "+trait)
	add("owner", w.Owner.Set && node.Owner != w.Owner.V && node.Lessee != w.Owner.V, "other owner")
	if w.Require.Set {
		lacks := node.Lacks(w.Require.V)
		add("require", lacks != "", lacks)
	}
	if w.MaxPerDomain.Set && inDomain > w.MaxPerDomain.V && !w.SpreadBy.Unknown && (slices.Contains(attributes, "max_per_domain") ||
		slices.Contains(attributes, "spread_by")) {
		why = append(why, fmt.Sprintf("one of %d members in domain %q", inDomain, node.Domain))
	}
	return why
}

// release plans to release the members that the group does not have any more.
func (d *groupDecision) release() {
	if d.Forecast.Members == nil {
		d.Steps = append(d.Steps, Step{Do: DoRelease, Cost: decide.Wipe})
		d.warn("size", "Members may be released",
			fmt.Sprintf("The size of the %s is not known yet. If it becomes less than %d, the apply releases the members with the "+
				"highest numbers. It waits until nothing is deployed on their nodes, up to timeouts.update.", d.label, len(d.seen.Members)))
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
	keys := byNumber(slices.Collect(maps.Keys(gone)))
	d.Steps = append(d.Steps, Step{Do: DoRelease, Cost: decide.Wipe, Members: keys})
	d.warn("size", "Members are released", fmt.Sprintf("The %s releases %s. If the configuration makes its metal_deployment resources "+
		"with for_each over members, this apply also destroys their deployments, which wipes the machines. The update waits for that up "+
		"to timeouts.update, and then fails for members whose nodes are still in use.",
		d.label, nodesOf(gone, keys)))
}

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

func (d *groupDecision) warnLeftovers(names []string) {
	if len(names) > 0 {
		d.warn("size", "Reservations of a killed run are released",
			fmt.Sprintf("A run was killed while it reserved nodes for the %s, and no state has these reservations. The apply releases "+
				"those that the group does not have: %s.", d.label, strings.Join(names, ", ")))
	}
}

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
