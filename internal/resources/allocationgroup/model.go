package allocationgroup

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

type model struct {
	ID             types.String   `tfsdk:"id"`
	Name           types.String   `tfsdk:"name"`
	Size           types.Int64    `tfsdk:"size"`
	ResourceClass  types.String   `tfsdk:"resource_class"`
	Traits         types.Set      `tfsdk:"traits"`
	CandidateNodes types.Set      `tfsdk:"candidate_nodes"`
	Require        types.Object   `tfsdk:"require"`
	Owner          types.String   `tfsdk:"owner"`
	WaitFor        types.String   `tfsdk:"wait_for_capacity"`
	SpreadBy       types.String   `tfsdk:"spread_by"`
	MaxPerDomain   types.Int64    `tfsdk:"max_per_domain"`
	Timeouts       timeouts.Value `tfsdk:"timeouts"`
	Leftovers      types.Set      `tfsdk:"leftovers"`
	Members        types.Map      `tfsdk:"members"`
}

// memberModel is an element of members.
type memberModel struct {
	ID       types.String `tfsdk:"id"`
	NodeID   types.String `tfsdk:"node_id"`
	NodeName types.String `tfsdk:"node_name"`
	Domain   types.String `tfsdk:"domain"`
}

var memberType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"id": types.StringType, "node_id": types.StringType, "node_name": types.StringType, "domain": types.StringType,
}}

// label names the group in messages.
func (m *model) label() string { return "group " + cmp.Or(m.Name.ValueString(), m.keyPrefix()) }

// selectors are the attributes that choose nodes, by name.
func (m *model) selectors() map[string]attr.Value {
	return map[string]attr.Value{
		"resource_class": m.ResourceClass, "traits": m.Traits, "candidate_nodes": m.CandidateNodes, "require": m.Require, "owner": m.Owner,
		"spread_by": m.SpreadBy, "max_per_domain": m.MaxPerDomain,
	}
}

// entries returns the elements of members; none if it is null or unknown.
func (m *model) entries(ctx context.Context) map[string]memberModel {
	all := map[string]memberModel{}
	if framework.IsSet(m.Members) {
		m.Members.ElementsAs(ctx, &all, false) // the schema has these attributes
	}
	return all
}

// setEntries sets members.
func (m *model) setEntries(entries map[string]memberModel) {
	values := map[string]attr.Value{}
	for key, e := range entries {
		values[key] = types.ObjectValueMust(memberType.AttrTypes, map[string]attr.Value{"id": e.ID, "node_id": e.NodeID, "node_name": e.NodeName, "domain": e.Domain})
	}
	m.Members = types.MapValueMust(memberType, values)
}

// keyPrefix returns what the keys of members begin with: the name that the group had when it was created.
func (m *model) keyPrefix() string {
	for key := range m.Members.Elements() {
		return key[:strings.LastIndex(key, "-")]
	}
	return m.Name.ValueString()
}

// group returns the request for members, and the members by key. prior are the members that exist; size is how many the group has. The names of
// the allocations follow from the name of the group.
func (m *model) group(ctx context.Context, prefix string, prior map[string]memberModel, size int) (g *provision.Group, byKey map[string]*provision.Member) {
	wait, _ := time.ParseDuration(m.WaitFor.ValueString()) // a validator has accepted it
	g = &provision.Group{
		Request: provision.Request{
			AllocationSpec: ironic.AllocationSpec{
				ResourceClass: m.ResourceClass.ValueString(), Traits: slices.Sorted(slices.Values(framework.StringSet(m.Traits))),
				CandidateNodes: framework.StringSet(m.CandidateNodes), Owner: m.Owner.ValueString(),
			},
			Require: framework.Requirements(ctx, m.Require), Wait: wait,
		},
		Name: m.Name.ValueString(), Size: size, Leftovers: framework.StringSet(m.Leftovers),
		Spread: provision.Spread{By: m.SpreadBy.ValueString(), Max: int(m.MaxPerDomain.ValueInt64())},
	}
	byKey = map[string]*provision.Member{}
	for i := range size {
		key := provision.MemberName(prefix, i)
		e := prior[key]
		byKey[key] = &provision.Member{
			Name: provision.MemberName(g.Name, i), ID: e.ID.ValueString(), NodeID: e.NodeID.ValueString(),
			NodeName: e.NodeName.ValueString(), Domain: e.Domain.ValueString(),
		}
		g.Members = append(g.Members, byKey[key])
	}
	return g, byKey
}

// take copies members into the model.
func (m *model) take(byKey map[string]*provision.Member) {
	entries := map[string]memberModel{}
	for key, member := range byKey {
		e := memberModel{ID: framework.OrNull(member.ID), NodeID: framework.OrNull(member.NodeID), NodeName: framework.OrNull(member.NodeName), Domain: types.StringNull()}
		if !m.SpreadBy.IsNull() && member.NodeID != "" {
			e.Domain = types.StringValue(member.Domain)
		}
		entries[key] = e
	}
	m.setEntries(entries)
}

// asPlanned returns members as they are now, with the values that the plan knew: Terraform refuses others. The same apply may have renamed a
// node, for example. The next refresh shows what has changed.
func asPlanned(planned, now map[string]memberModel) map[string]memberModel {
	all := map[string]memberModel{}
	for key, e := range now {
		if p, has := planned[key]; has {
			framework.Keep(&e.ID, p.ID)
			framework.Keep(&e.NodeID, p.NodeID)
			framework.Keep(&e.NodeName, p.NodeName)
			framework.Keep(&e.Domain, p.Domain)
		}
		all[key] = e
	}
	return all
}

// beyond returns the keys of members that a group of a size does not have, in order of their numbers.
func beyond(entries map[string]memberModel, prefix string, size int) (keys []string) {
	for i := size; len(keys) < len(entries)-min(size, len(entries)); i++ {
		key := provision.MemberName(prefix, i)
		if _, has := entries[key]; has {
			keys = append(keys, key)
		}
		if i > size+largestSize {
			break // not possible: members have consecutive numbers
		}
	}
	return keys
}

// nodesOf names the nodes of members in messages.
func nodesOf(entries map[string]memberModel, keys []string) string {
	var parts []string
	for _, key := range keys {
		node := entries[key].NodeName.ValueString()
		if node == "" {
			node = entries[key].NodeID.ValueString()
		}
		if node != "" {
			parts = append(parts, fmt.Sprintf("%s (node %s)", key, node))
			continue
		}
		parts = append(parts, key)
	}
	return strings.Join(parts, ", ")
}

// changed returns the names of the attributes that choose nodes and differ between state and plan.
func (m *model) changed(state *model) (names []string) {
	before := state.selectors()
	after := m.selectors()
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if !after[name].Equal(before[name]) {
			names = append(names, name)
		}
	}
	return names
}
