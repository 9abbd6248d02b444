package allocationgroup

import (
	"cmp"
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
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
	Replace        types.Map      `tfsdk:"replace_members"`
	Timeouts       timeouts.Value `tfsdk:"timeouts"`
	Leftovers      types.Set      `tfsdk:"leftovers"`
	Members        types.Map      `tfsdk:"members"`
}

type memberModel struct {
	ID       types.String `tfsdk:"id"`
	NodeID   types.String `tfsdk:"node_id"`
	NodeName types.String `tfsdk:"node_name"`
	Domain   types.String `tfsdk:"domain"`
}

var memberType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"id": types.StringType, "node_id": types.StringType, "node_name": types.StringType, "domain": types.StringType,
}}

func (m *model) wish(ctx context.Context) allocate.GroupWish {
	return allocate.GroupWish{
		Name: framework.TextOf[string](m.Name), Size: framework.IntOf(m.Size), MaxPerDomain: framework.IntOf(m.MaxPerDomain),
		Class: framework.TextOf[string](m.ResourceClass),
		Owner: framework.TextOf[string](m.Owner), SpreadBy: framework.TextOf[string](m.SpreadBy), Traits: framework.TextsOf(ctx, m.Traits),
		Candidates: framework.TextsOf(ctx, m.CandidateNodes), Require: framework.RequirementsOf(ctx, m.Require),
		Wait:    framework.DurationOf(m.WaitFor),
		Replace: framework.MapOf(ctx, m.Replace),
	}
}

// seen returns what Terraform has of the group of a state; m may be nil.
func (m *model) seen(ctx context.Context, kept private) allocate.GroupSeen {
	if m == nil {
		return allocate.GroupSeen{}
	}
	was := m.wish(ctx)
	return allocate.GroupSeen{Was: &was, Members: m.entries(ctx), Leftovers: framework.StringSet(m.Leftovers), Imported: kept.Imported}
}

func (m *model) label(ctx context.Context) string {
	return "group " + cmp.Or(m.Name.ValueString(), allocate.KeyPrefix(m.entries(ctx), ""))
}

// group returns a request for all members that exist, and the members by key.
func (m *model) group(ctx context.Context) (g *allocate.Group, byKey map[string]*allocate.GroupMember) {
	entries := m.entries(ctx)
	g, byKey = m.wish(ctx).Group(allocate.KeyPrefix(entries, m.Name.ValueString()), entries, len(entries))
	g.EndQuarantine, g.Leftovers = deploy.EndLeftQuarantine, framework.StringSet(m.Leftovers)
	return g, byKey
}

func (m *model) entries(ctx context.Context) map[string]allocate.Member {
	models := map[string]memberModel{}
	if framework.IsSet(m.Members) {
		m.Members.ElementsAs(ctx, &models, false) // the schema has these attributes
	}
	all := map[string]allocate.Member{}
	for key, e := range models {
		all[key] = allocate.Member{
			ID: framework.TextOf[string](e.ID), NodeID: framework.TextOf[string](e.NodeID), NodeName: framework.TextOf[string](e.NodeName),
			Domain: framework.TextOf[string](e.Domain),
		}
	}
	return all
}

// setEntries sets members; nil: they are not known.
func (m *model) setEntries(entries map[string]allocate.Member) {
	if entries == nil {
		m.Members = types.MapUnknown(memberType)
		return
	}
	values := map[string]attr.Value{}
	for key, e := range entries {
		values[key] = types.ObjectValueMust(memberType.AttrTypes, map[string]attr.Value{
			"id": framework.TextValue(e.ID), "node_id": framework.TextValue(e.NodeID), "node_name": framework.TextValue(e.NodeName),
			"domain": framework.TextValue(e.Domain),
		})
	}
	m.Members = types.MapValueMust(memberType, values)
}

// leave removes from the members of a state those that have given up their nodes, and records that they need not do so again.
func (m *model) leave(ctx context.Context, byKey map[string]*allocate.GroupMember) {
	entries, replaced := m.entries(ctx), framework.StringMap(m.Replace)
	if replaced == nil {
		replaced = map[string]string{}
	}
	for key, member := range byKey {
		if member.Leaves.Done() {
			entries[key], replaced[key] = allocate.Member{}, member.Leaves.Value
		}
	}
	m.setEntries(entries)
	if len(replaced) > 0 {
		m.Replace = framework.MapValue(replaced)
	}
}

func (m *model) take(byKey map[string]*allocate.GroupMember) {
	known := func(text string) decide.Value[string] { return decide.Value[string]{V: text, Set: text != ""} }
	entries := map[string]allocate.Member{}
	for key, member := range byKey {
		e := allocate.Member{ID: known(member.ID), NodeID: known(member.NodeID), NodeName: known(member.NodeName)}
		if !m.SpreadBy.IsNull() && member.NodeID != "" {
			e.Domain = decide.Known(member.Domain)
		}
		entries[key] = e
	}
	m.setEntries(entries)
}

// importGroup sets what only an import takes from the allocations.
func (m *model) importGroup(found *allocate.FoundGroup) {
	m.Name, m.Size = types.StringValue(found.Name), types.Int64Value(int64(found.Size))
	m.ResourceClass, m.Owner = framework.OrNull(found.First.ResourceClass), framework.OrNull(found.First.Owner)
	m.Traits = framework.SetValue(found.First.Traits)
	byKey := map[string]*allocate.GroupMember{}
	for _, member := range found.Members {
		byKey[member.Name] = member
	}
	m.take(byKey)
}
