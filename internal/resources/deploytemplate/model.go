package deploytemplate

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

type model struct {
	ID    types.String `tfsdk:"id"`
	Name  types.String `tfsdk:"name"`
	Steps types.List   `tfsdk:"steps"`
}

func (m *model) UUID() string { return m.ID.ValueString() }

func (m *model) Subject() string { return "deploy template " + m.Name.ValueString() }

func (m *model) body() map[string]any {
	return map[string]any{"name": m.Name.ValueString(), "steps": framework.DeploySteps(m.Steps)}
}

func (m *model) Refresh(ctx context.Context, found *ironic.Procedure) {
	m.Name = types.StringValue(found.Name)
	m.Steps = framework.RefreshSteps(ctx, framework.ByPriority, m.Steps, found.Steps)
}
