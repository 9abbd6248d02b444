// Package deploytemplate implements the resource metal_deploy_template: deploy steps for machines with a trait.
package deploytemplate

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/procedure"
)

var _ framework.Managed = (*deployTemplate)(nil)

// New returns metal_deploy_template.
func New() resource.Resource { return newDeployTemplate() }

// NewList returns the list resource metal_deploy_template.
func NewList() list.ListResource { return newDeployTemplate() }

type deployTemplate struct {
	framework.Collected[ironic.Procedure, model, *model]
}

func newDeployTemplate() *deployTemplate {
	r := &deployTemplate{framework.Collected[ironic.Procedure, model, *model]{
		Resource: framework.Resource{Type: "metal_deploy_template", IsThat: "UUID of the deploy template."},
		In:       ironic.DeployTemplates, Thing: "deploy template",
		Listing: "Lists the deploy templates of Ironic, or those with a name. Needs API 1.55.",
		Label:   func(found *ironic.Procedure) (id, name string) { return found.UUID, found.Name },
	}}
	r.Make = func(ctx context.Context, plan *model) (machine.Made, error) {
		body, same := plan.body(), func(p *ironic.Procedure) bool {
			return framework.SameSteps(ctx, framework.ByPriority, plan.Steps, p.Steps)
		}
		return procedure.Create(ctx, r.Site, r.In, body, nil, same)
	}
	r.Change = func(ctx context.Context, plan, state *model, _ func(*model)) error {
		return procedure.Update(ctx, r.Site, r.In, state.UUID(), state.body(), plan.body())
	}
	return r
}
