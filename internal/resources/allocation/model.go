package allocation

import (
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
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

// label names an allocation of a state in messages.
func (m *model) label() string {
	return "allocation " + cmp.Or(m.Name.ValueString(), m.ID.ValueString())
}

func (m *model) wish(ctx context.Context) allocate.Wish {
	return allocate.Wish{
		Name: framework.TextOf[string](m.Name), Class: framework.TextOf[string](m.ResourceClass), Owner: framework.TextOf[string](m.Owner),
		Backfill: framework.TextOf[string](m.BackfillNode),
		Traits:   framework.TextsOf(ctx, m.Traits), Candidates: framework.TextsOf(ctx, m.CandidateNodes),
		Require: framework.RequirementsOf(ctx, m.Require),
		Extra:   framework.ObjectOf(ctx, m.Extra), OnUnusable: framework.TextOf[allocate.OnUnusable](m.OnUnusable),
		Wait: framework.DurationOf(m.WaitFor),
	}
}

// seen returns what Terraform has of the allocation of a state; m may be nil.
func (m *model) seen(ctx context.Context, kept private) allocate.Seen {
	if m == nil {
		return allocate.Seen{}
	}
	was := m.wish(ctx)
	return allocate.Seen{
		Was: &was, ID: m.ID.ValueString(), State: ironic.AllocationState(m.State.ValueString()), LastError: m.LastError.ValueString(),
		NodeID: m.NodeID.ValueString(), Node: kept.Node,
	}
}

// isImported reports whether a state is that of a new import: it has the id only.
func (m *model) isImported() bool { return m.State.IsNull() }

// importAll copies an imported allocation's values into the configurable attributes.
func (m *model) importAll(ctx context.Context, found *ironic.Allocation) {
	m.Name, m.ResourceClass, m.Owner = framework.OrNull(found.Name), framework.OrNull(found.ResourceClass), framework.OrNull(found.Owner)
	m.Traits, m.CandidateNodes = framework.SetValue(found.Traits), types.SetNull(types.StringType)
	extra := maps.Clone(found.Extra)
	maps.DeleteFunc(extra, func(key string, _ any) bool { return notes.OwnKey(key) })
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
