package deploytemplate

import (
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

type model struct {
	ID    types.String `tfsdk:"id"`
	Name  types.String `tfsdk:"name"`
	Steps types.List   `tfsdk:"steps"`
}

// label is how messages name the template.
func (m *model) label() string { return "deploy template " + m.Name.ValueString() }

// changes returns the edits that make a template of the state the one of the model.
func (m *model) changes(state *model) (patch ironic.Patch) {
	if !m.Name.Equal(state.Name) {
		patch.Set("/name", m.Name.ValueString())
	}
	if !m.Steps.Equal(state.Steps) {
		patch.Set("/steps", framework.DeploySteps(m.Steps))
	}
	return patch
}
