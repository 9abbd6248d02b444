package allocation

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

type model struct {
	ID             types.String   `tfsdk:"id"`
	Name           types.String   `tfsdk:"name"`
	ResourceClass  types.String   `tfsdk:"resource_class"`
	Traits         types.Set      `tfsdk:"traits"`
	CandidateNodes types.Set      `tfsdk:"candidate_nodes"`
	Require        types.Object   `tfsdk:"require"`
	WaitFor        types.String   `tfsdk:"wait_for_capacity"`
	Owner          types.String   `tfsdk:"owner"`
	Extra          types.Dynamic  `tfsdk:"extra"`
	BackfillNode   types.String   `tfsdk:"backfill_node"`
	OnUnusable     types.String   `tfsdk:"on_unusable"`
	Timeouts       timeouts.Value `tfsdk:"timeouts"`
	NodeID         types.String   `tfsdk:"node_id"`
	NodeName       types.String   `tfsdk:"node_name"`
	State          types.String   `tfsdk:"state"`
	LastError      types.String   `tfsdk:"last_error"`
	CreatedAt      types.String   `tfsdk:"created_at"`
}

// purpose describes in messages an allocation that does not exist yet.
func (m *model) purpose() string {
	if framework.IsSet(m.Name) {
		return " for " + m.Name.ValueString()
	}
	return ""
}

// subject begins a message about the allocation.
func (m *model) subject() string {
	switch {
	case framework.IsSet(m.Name):
		return "Allocation " + m.Name.ValueString() + ": "
	case framework.IsSet(m.ID):
		return "Allocation " + m.ID.ValueString() + ": "
	}
	return ""
}

// noCandidates explains why an allocation without candidates fails. Ironic would take an empty list for no limit.
const noCandidates = "candidate_nodes is empty, so no node may be reserved. Name at least one node, or remove candidate_nodes to choose from all nodes."

// hasNoCandidates reports whether candidate_nodes is set and has no element.
func (m *model) hasNoCandidates() bool {
	return framework.IsSet(m.CandidateNodes) && len(m.CandidateNodes.Elements()) == 0
}

// requireModel is the attribute require.
type requireModel struct {
	MinCPUs        types.Int64  `tfsdk:"min_cpus"`
	MinMemoryMB    types.Int64  `tfsdk:"min_memory_mb"`
	MinDiskGB      types.Int64  `tfsdk:"min_disk_gb"`
	DiskType       types.String `tfsdk:"disk_type"`
	MinNICMbps     types.Int64  `tfsdk:"min_nic_mbps"`
	CPUArch        types.String `tfsdk:"cpu_arch"`
	Manufacturer   types.String `tfsdk:"manufacturer"`
	Product        types.String `tfsdk:"product"`
	Capabilities   types.Map    `tfsdk:"capabilities"`
	ConductorGroup types.String `tfsdk:"conductor_group"`
	Exclude        types.Set    `tfsdk:"exclude"`
}

// required returns the attribute require; nil if it is null or unknown.
func (m *model) required(ctx context.Context) *requireModel {
	if !framework.IsSet(m.Require) {
		return nil
	}
	var require requireModel
	if diags := m.Require.As(ctx, &require, basetypes.ObjectAsOptions{}); diags.HasError() {
		return nil // cannot happen: the schema has these attributes
	}
	return &require
}

// requirements returns what the node must have that Ironic does not match; nil for nothing.
func (m *model) requirements(ctx context.Context) *provision.Requirements {
	require := m.required(ctx)
	if require == nil {
		return nil
	}
	return &provision.Requirements{
		MinCPUs: require.MinCPUs.ValueInt64(), MinMemoryMB: require.MinMemoryMB.ValueInt64(), MinDiskGB: require.MinDiskGB.ValueInt64(),
		DiskType: provision.DiskType(require.DiskType.ValueString()), MinNICMbps: require.MinNICMbps.ValueInt64(), CPUArch: require.CPUArch.ValueString(),
		Manufacturer: pattern(require.Manufacturer), Product: pattern(require.Product), Capabilities: framework.StringMap(require.Capabilities),
		ConductorGroup: require.ConductorGroup.ValueStringPointer(), Exclude: framework.StringSet(require.Exclude),
	}
}

// pattern compiles a regular expression that a validator has accepted; nil for none.
func pattern(text types.String) *regexp.Regexp {
	expression, err := regexp.Compile(text.ValueString())
	if err != nil || text.ValueString() == "" {
		return nil
	}
	return expression
}

// request returns what the allocation demands.
func (m *model) request(ctx context.Context, id string) provision.Request {
	wait, _ := time.ParseDuration(m.WaitFor.ValueString()) // a validator has accepted it
	return provision.Request{AllocationSpec: m.spec(id), Require: m.requirements(ctx), Wait: wait}
}

func (m *model) spec(id string) ironic.AllocationSpec {
	spec := ironic.AllocationSpec{
		UUID: id, Name: m.Name.ValueString(), ResourceClass: m.ResourceClass.ValueString(), Traits: framework.StringSet(m.Traits),
		CandidateNodes: framework.StringSet(m.CandidateNodes), Owner: m.Owner.ValueString(), Node: m.BackfillNode.ValueString(),
	}
	if extra := framework.JSONObject(m.Extra); len(extra) > 0 {
		spec.Extra = extra
	}
	slices.Sort(spec.Traits)
	return spec
}

// isImported reports whether a state is that of a new import: it has the id only.
func (m *model) isImported() bool { return m.State.IsNull() }

// importAll copies an imported allocation's values into the configurable attributes.
func (m *model) importAll(ctx context.Context, found *ironic.Allocation) {
	m.Name, m.ResourceClass, m.Owner = framework.OrNull(found.Name), framework.OrNull(found.ResourceClass), framework.OrNull(found.Owner)
	m.Traits, m.CandidateNodes = framework.SetValue(found.Traits), types.SetNull(types.StringType)
	extra := maps.Clone(found.Extra)
	maps.DeleteFunc(extra, func(key string, _ any) bool { return provision.OwnKey(key) })
	m.Extra = framework.DynamicObject(ctx, extra)
}

func (m *model) fromAllocation(found *ironic.Allocation, nodeName string) {
	m.ID, m.State = types.StringValue(found.UUID), types.StringValue(string(found.State))
	m.NodeID, m.NodeName, m.LastError = framework.OrNull(found.NodeUUID), framework.OrNull(nodeName), framework.OrNull(found.LastError)
	if !framework.IsSet(m.CreatedAt) { // an allocation that survives an undeployment is created again
		m.CreatedAt = framework.OrNull(toTheSecond(found.CreatedAt))
	}
}

// toTheSecond removes the fraction of a second from a time, because only some of Ironic's answers have it.
func toTheSecond(stamp string) string {
	t, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return stamp
	}
	return t.UTC().Format(time.RFC3339)
}
