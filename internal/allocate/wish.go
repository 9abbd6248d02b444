package allocate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// noCandidates explains why an allocation without candidates fails. Ironic would take an empty list for no limit.
const noCandidates = "candidate_nodes is empty, so no node may be reserved. Name at least one node, or remove candidate_nodes to choose " +
	"from all nodes."

func (w Wish) hasNoCandidates() bool { return w.Candidates.Set && len(w.Candidates.V) == 0 }

// CheckCreation refuses to create an allocation that no node may have.
func (w Wish) CheckCreation() []decide.Notice {
	if w.hasNoCandidates() {
		return []decide.Notice{decide.Refuse(decide.At("candidate_nodes"), "No candidates", noCandidates)}
	}
	return nil
}

// Check refuses demands that became known only during the apply, and that the reserved node does not satisfy.
func (w Wish) Check(was Wish, allocation string, node *ironic.Node) []decide.Notice {
	reserved := ReservedBy(allocation, node.UUID, node)
	misfits := w.misfits(was, &reserved)
	if len(misfits) == 0 {
		return nil
	}
	return []decide.Notice{decide.Refuse(decide.At(misfits[0]), "Reserved node does not match any more",
		fmt.Sprintf("Node %s, which allocation %s has reserved, does not satisfy %s, which became known only during the apply. It stays "+
			"reserved. To reserve another node, destroy the deployment of this one, and run terraform apply -replace for this resource.",
			ironic.NodeLabel(node), allocation, strings.Join(misfits, ", ")))}
}

// Left warns of allocations that killed runs have left, and that a new one without a name cannot take over.
func Left(left []ironic.Allocation) (notices []decide.Notice) {
	for _, old := range left {
		notices = append(notices, decide.Warn(nil, "Allocation of a killed run is left",
			fmt.Sprintf("A run that was killed has created allocation %s, which has no name and keeps node %s. This apply creates "+
				"another one. Delete the old one if you do not need it: metal release %s", old.UUID, old.NodeUUID, old.UUID)))
	}
	return notices
}

// Request returns what the allocation demands of Ironic and of this provider.
func (w Wish) Request(id string) Request {
	spec := ironic.AllocationSpec{
		UUID: id, Name: w.Name.V, ResourceClass: w.Class.V, Traits: w.Traits.V, CandidateNodes: w.Candidates.V, Owner: w.Owner.V,
		Node: w.Backfill.V,
	}
	if len(w.Extra.V) > 0 {
		spec.Extra = w.Extra.V
	}
	return Request{AllocationSpec: spec, Require: w.Require.V, Wait: w.Wait}
}

func (w Wish) isVague() bool {
	return w.Class.Unknown || w.Traits.Unknown || w.Candidates.Unknown || w.Owner.Unknown || w.Backfill.Unknown || w.Require.Unknown
}

// changedDemands returns the attributes whose demands on the node differ from those before, as far as they are known.
func (w Wish) changedDemands(was Wish) (names []string) {
	for _, demand := range []struct {
		name string
		same bool
	}{
		{"resource_class", w.Class.Unknown || decide.Same(w.Class, was.Class)},
		{"traits", w.Traits.Unknown || decide.Same(w.Traits, was.Traits)},
		{"owner", w.Owner.Unknown || decide.Same(w.Owner, was.Owner)},
		{"backfill_node", w.Backfill.Unknown || decide.Same(w.Backfill, was.Backfill)},
	} {
		if !demand.same {
			names = append(names, demand.name)
		}
	}
	return names
}

// misfits returns the changed demands that a node does not satisfy. A null or unknown value demands nothing, and neither does a trait that
// was demanded before.
func (w Wish) misfits(was Wish, node *ReservedNode) []string {
	is := func(value decide.Value[string], have ...string) bool {
		return !value.Set || slices.Contains(have, value.V)
	}
	lacks := func(trait string) bool {
		return !slices.Contains(was.Traits.V, trait) && !slices.Contains(node.Traits, trait)
	}
	fits := map[string]bool{
		"resource_class": is(w.Class, node.Class),
		"traits":         !slices.ContainsFunc(w.Traits.V, lacks),
		"owner":          is(w.Owner, node.Owner, node.Lessee),
		"backfill_node":  is(w.Backfill, node.UUID, node.Name),
	}
	return slices.DeleteFunc(w.changedDemands(was), func(name string) bool { return fits[name] })
}

// Values returns what an edit writes: the name, nil if it stays, and keys of extra.
func (s Step) Values(w Wish) (name *string, set map[string]any) {
	if s.Renames {
		name = &w.Name.V
	}
	set = map[string]any{}
	for _, key := range s.Set {
		set[key] = w.Extra.V[key]
	}
	return name, set
}

func (w GroupWish) isVague() bool {
	return w.Class.Unknown || w.Traits.Unknown || w.Candidates.Unknown || w.Require.Unknown || w.Owner.Unknown || w.SpreadBy.Unknown ||
		w.MaxPerDomain.Unknown
}

// KeyPrefix returns what the keys of members begin with: the name that the group had when it was created. It is name if there are no
// members.
func KeyPrefix(members map[string]Member, name string) string {
	for key := range members {
		return key[:strings.LastIndex(key, "-")]
	}
	return name
}

// Group returns the request for a number of members, and the members by key. prior are the members that exist. The names of the allocations
// follow from the name of the group, the keys from a prefix.
func (w GroupWish) Group(prefix string, prior map[string]Member, size int) (g *Group, byKey map[string]*GroupMember) {
	g = &Group{
		Request: Request{
			AllocationSpec: ironic.AllocationSpec{
				ResourceClass: w.Class.V, Traits: w.Traits.V, CandidateNodes: w.Candidates.V,
				Owner: w.Owner.V,
			},
			Require: w.Require.V, Wait: w.Wait,
		},
		Name: w.Name.V, Size: size, Spread: Spread{By: w.SpreadBy.V, Max: w.MaxPerDomain.V},
	}
	byKey = map[string]*GroupMember{}
	for i := range size {
		key := MemberName(prefix, i)
		m := prior[key]
		byKey[key] = &GroupMember{Name: MemberName(g.Name, i), ID: m.ID.V, NodeID: m.NodeID.V, NodeName: m.NodeName.V, Domain: m.Domain.V}
		g.Members = append(g.Members, byKey[key])
	}
	return g, byKey
}

// Move makes the members that steps move give up their nodes for others.
func (w GroupWish) Move(steps []Step, byKey map[string]*GroupMember) {
	step := In(steps, DoMove)
	if step == nil {
		return
	}
	for _, key := range step.Members {
		if m := byKey[key]; m != nil {
			m.Move(w.Replace.V[key])
		}
	}
}

// WithoutNode warns of members that have given up their nodes, and have not got others.
func WithoutNode(members []*GroupMember) (notices []decide.Notice) {
	var all []string
	for _, m := range members {
		if m.Leaves.Done() {
			all = append(all, fmt.Sprintf("%s (node %s)", m.Name, cmp.Or(m.Leaves.NodeName, m.Leaves.NodeID)))
		}
	}
	if len(all) > 0 {
		notices = append(notices, decide.Warn(decide.At("replace_members"), "Members have no nodes",
			fmt.Sprintf("These members have given up their nodes, which are retired, and have got no others: %s. The next apply reserves "+
				"nodes for them.", strings.Join(all, ", "))))
	}
	return notices
}

// AsPlanned returns members as they are now, with the values that the plan knew: Terraform refuses others. The same apply may have renamed
// a node, for example. The next refresh shows what has changed.
func AsPlanned(planned, now map[string]Member) map[string]Member {
	all := map[string]Member{}
	keep := func(value, planned decide.Value[string]) decide.Value[string] {
		if planned.Unknown {
			return value
		}
		return planned
	}
	for key, m := range now {
		if p, has := planned[key]; has {
			m = Member{keep(m.ID, p.ID), keep(m.NodeID, p.NodeID), keep(m.NodeName, p.NodeName), keep(m.Domain, p.Domain)}
		}
		all[key] = m
	}
	return all
}
