package actions

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/action"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

var _ action.ActionWithModifyPlan = (*unhold)(nil)

// NewUnhold returns metal_unhold.
func NewUnhold() action.Action { return &unhold{} }

type unhold struct{ operator }

const unholdLimit = 30 * time.Minute

// Metadata names the action.
func (a *unhold) Metadata(_ context.Context, _ action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = "metal_unhold"
}

// Schema describes the action.
func (a *unhold) Schema(ctx context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schemaOf(ctx, "Continues an operation of Ironic that a step holds, and waits for its end. Needs API 1.85. To end the "+
		"operation, use [`metal_abort`](abort.md).", unholdLimit, nil)
}

// ModifyPlan refuses the action if the API version does not support it.
func (a *unhold) ModifyPlan(ctx context.Context, _ action.ModifyPlanRequest, resp *action.ModifyPlanResponse) {
	if a.Known() {
		a.Offers(ctx, &resp.Diagnostics, api.VersionUnhold, "metal_unhold")
	}
}

// Invoke continues the operation.
func (a *unhold) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var m target
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	a.operate(ctx, m, "continue the operation on", unholdLimit, resp, func(machine *machine.Machine, limit time.Duration) error {
		return machine.Unhold(ctx, limit)
	})
}
