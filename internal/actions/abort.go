package actions

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/action"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

var _ action.Action = (*abort)(nil)

// NewAbort returns metal_abort.
func NewAbort() action.Action { return &abort{} }

type abort struct{ operator }

const abortLimit = 30 * time.Minute

// Metadata names the action.
func (a *abort) Metadata(_ context.Context, _ action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = "metal_abort"
}

// Schema describes the action.
func (a *abort) Schema(ctx context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schemaOf(ctx, "Ends an operation of Ironic that waits for the machine or that a step holds. The operation has then "+
		"failed, as the node's provision state says. To continue a held operation, use [`metal_unhold`](unhold.md).", abortLimit, nil)
}

// Invoke ends the operation.
func (a *abort) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var m target
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	a.operate(ctx, m, "abort the operation on", abortLimit, resp, func(machine *machine.Machine, limit time.Duration) error {
		return machine.Abort(ctx, limit)
	})
}
