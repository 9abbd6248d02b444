package runbook

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

type model struct {
	ID             types.String `tfsdk:"id"`
	Name           types.String `tfsdk:"name"`
	Description    types.String `tfsdk:"description"`
	Traits         types.Set    `tfsdk:"traits"`
	Public         types.Bool   `tfsdk:"public"`
	DisableRamdisk types.Bool   `tfsdk:"disable_ramdisk"`
	Steps          types.List   `tfsdk:"steps"`
}

func (m *model) UUID() string { return m.ID.ValueString() }

func (m *model) Subject() string { return "runbook " + m.Name.ValueString() }

// body returns the request that creates the runbook. Ironic takes its traits in another request.
func (m *model) body() map[string]any {
	body := map[string]any{
		"name": m.Name.ValueString(), "public": m.Public.ValueBool(), "disable_ramdisk": m.DisableRamdisk.ValueBool(),
		"steps": framework.RunbookSteps(m.Steps),
	}
	if !m.Description.IsNull() {
		body["description"] = m.Description.ValueString()
	}
	return body
}

func (m *model) changesTraits(state *model) bool {
	return !m.Traits.IsNull() && !m.Traits.Equal(state.Traits)
}

// traits returns the traits in order; nil if they are not managed.
func (m *model) traits() []string {
	traits := framework.StringSet(m.Traits)
	slices.Sort(traits)
	return traits
}

// is reports whether the runbook in Ironic equals the model; the traits may differ.
func (m *model) is(found *ironic.Procedure, sameSteps bool) bool {
	return sameSteps && m.Description.ValueString() == found.Description && m.Public.ValueBool() == found.Public &&
		m.DisableRamdisk.ValueBool() == found.DisableRamdisk
}

// Refresh copies what Ironic shows. Attributes that are not managed stay null, unless the runbook has just been imported.
func (m *model) Refresh(ctx context.Context, found *ironic.Procedure) {
	imported := m.Name.IsNull()
	m.Name = types.StringValue(found.Name)
	m.Public, m.DisableRamdisk = types.BoolValue(found.Public), types.BoolValue(found.DisableRamdisk)
	m.Steps = framework.RefreshSteps(ctx, framework.ByPosition, m.Steps, found.Steps)
	if imported || !m.Description.IsNull() {
		m.Description = framework.OrNull(found.Description)
	}
	if imported || !m.Traits.IsNull() && len(found.Traits)+len(m.Traits.Elements()) > 0 {
		m.Traits = framework.SetValue(found.Traits)
	}
}
