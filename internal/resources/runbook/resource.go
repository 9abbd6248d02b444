// Package runbook implements the resource metal_runbook: steps that operators run by name.
package runbook

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/procedure"
)

var _ framework.Managed = (*runbook)(nil)

// New returns metal_runbook.
func New() resource.Resource { return newRunbook() }

// NewList returns the list resource metal_runbook.
func NewList() list.ListResource { return newRunbook() }

type runbook struct {
	framework.Collected[ironic.Procedure, model, *model]
}

func newRunbook() *runbook {
	r := &runbook{framework.Collected[ironic.Procedure, model, *model]{
		Resource: framework.Resource{Type: "metal_runbook", IsThat: "UUID of the runbook."}, In: ironic.Runbooks, Thing: "runbook",
		Listing: "Lists the runbooks of Ironic that the user may see, or those with a name. Needs API 1.92.",
		Label:   func(found *ironic.Procedure) (id, name string) { return found.UUID, found.Name },
	}}
	r.Make = func(ctx context.Context, plan *model) (machine.Made, error) {
		body, same := plan.body(), func(p *ironic.Procedure) bool {
			return plan.is(p, framework.SameSteps(ctx, framework.ByPosition, plan.Steps, p.Steps))
		}
		return procedure.Create(ctx, r.Site, r.In, body, plan.traits(), same)
	}
	r.Change = r.change
	return r
}

func (r *runbook) change(ctx context.Context, plan, state *model, keep func(*model)) error {
	if err := procedure.Update(ctx, r.Site, r.In, state.UUID(), state.body(), plan.body()); err != nil ||
		!plan.changesTraits(state) {
		return err
	}
	partly := *plan
	partly.Traits = state.Traits
	keep(&partly)
	return r.Site.Ironic.SetRunbookTraits(ctx, state.UUID(), plan.traits())
}
