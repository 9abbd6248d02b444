// Package inspectionrule implements the resource metal_inspection_rule: what Ironic does with machines that it has inspected.
package inspectionrule

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/procedure"
)

var (
	_ framework.Managed                   = (*inspectionRule)(nil)
	_ resource.ResourceWithValidateConfig = (*inspectionRule)(nil)
)

// New returns metal_inspection_rule.
func New() resource.Resource { return newInspectionRule() }

// NewList returns the list resource metal_inspection_rule.
func NewList() list.ListResource { return newInspectionRule() }

type inspectionRule struct {
	framework.Collected[ironic.InspectionRule, model, *model]
}

func newInspectionRule() *inspectionRule {
	r := &inspectionRule{framework.Collected[ironic.InspectionRule, model, *model]{
		Resource: framework.Resource{Type: "metal_inspection_rule", IsThat: "UUID of the inspection rule."},
		In:       ironic.InspectionRules, Thing: "inspection rule",
		Listing: "Lists the inspection rules of Ironic, or those with a description. A rule has no other name. Needs API 1.96.",
		Label:   func(found *ironic.InspectionRule) (id, name string) { return found.UUID, found.Description },
	}}
	r.Find = func(ctx context.Context, ref string) (*ironic.InspectionRule, error) {
		return procedure.FindRule(ctx, r.Site, ref)
	}
	r.Make = func(ctx context.Context, plan *model) (machine.Made, error) {
		return procedure.CreateRule(ctx, r.Site, plan.body())
	}
	r.Change = func(ctx context.Context, plan, state *model, _ func(*model)) error {
		return procedure.UpdateRule(ctx, r.Site, state.UUID(), state.body(), plan.body())
	}
	return r
}
