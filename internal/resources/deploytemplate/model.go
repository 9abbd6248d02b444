package deploytemplate

import (
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

type model struct {
	ID    types.String `tfsdk:"id"`
	Name  types.String `tfsdk:"name"`
	Steps types.List   `tfsdk:"steps"`
}

func (m *model) label() string { return "deploy template " + m.Name.ValueString() }

func (m *model) body() map[string]any {
	return map[string]any{"name": m.Name.ValueString(), "steps": framework.DeploySteps(m.Steps)}
}
