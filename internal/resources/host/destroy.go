package host

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/enroll"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

// planDestroy says what destroying a host does to its node, and tells the other hosts of the run that it gives up everything. Terraform may
// plan to destroy a host before it refreshes it, so planDestroy says nothing of a node that is gone.
func (h *host) planDestroy(ctx context.Context, state *model, before managed, diags *diag.Diagnostics) {
	foreign := false
	if h.Known() {
		_, err := h.Site.Ironic.NodeForRefresh(ctx, state.ID.ValueString())
		if err == nil {
			foreign, err = h.mayBeForeign(ctx, state.ID.ValueString(), before)
		}
		if err != nil {
			return // Delete reports it
		}
	}
	seen := state.seen(ctx, enroll.Notes{})
	seen.Foreign = foreign
	decided := enroll.Decide(enroll.Wish{Label: state.label(), Ends: true, OnDestroy: state.OnDestroy.ValueString(), ByAgent: state.byAgent()}, seen)
	framework.Show(diags, decided.Notices...)
	if decided.Has(enroll.DoRemove) && h.Known() {
		h.ForeseeRefusals(ctx, diags, h.FindNode(state.ID.ValueString()), framework.Right{Rule: "node:delete"})
		enroll.PlanHost(h.Site, enroll.Intent{Candidate: enroll.Candidate{UUID: state.ID.ValueString()}, Ends: true})
	}
}
