package actions

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

var _ action.ActionWithModifyPlan = (*abort)(nil)

// NewAbort returns metal_abort.
func NewAbort() action.Action { return &abort{} }

type abort struct{ operator }

type abortModel struct {
	target
	Unhold types.Bool `tfsdk:"unhold"`
}

const abortLimit = 30 * time.Minute

// Metadata names the action.
func (a *abort) Metadata(_ context.Context, _ action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = "metal_abort"
}

// Schema describes the action.
func (a *abort) Schema(ctx context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schemaOf(ctx, "Ends an operation of Ironic that waits for the machine or that a step holds, or continues a held one. After an abort, the operation has failed, as the node's provision state says.", abortLimit,
		map[string]schema.Attribute{
			"unhold": schema.BoolAttribute{Optional: true, MarkdownDescription: "`true`: continues a held operation, and waits for its end. Default: `false`, ends the operation. Needs API 1.85."},
		})
}

// ModifyPlan refuses what the API version does not support.
func (a *abort) ModifyPlan(ctx context.Context, req action.ModifyPlanRequest, resp *action.ModifyPlanResponse) {
	var m abortModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if !a.Known() || resp.Diagnostics.HasError() {
		return
	}
	a.Requires(ctx, &resp.Diagnostics, framework.Feature{Used: m.Unhold.ValueBool(), Since: api.VersionUnhold, Name: path.Root("unhold")})
}

// Invoke ends or continues the operation.
func (a *abort) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var m abortModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	doing := "abort the operation on"
	if m.Unhold.ValueBool() {
		doing = "continue the operation on"
	}
	a.operate(ctx, m.target, doing, abortLimit, resp, func(machine *machine.Machine, limit time.Duration) error {
		if m.Unhold.ValueBool() {
			return machine.Unhold(ctx, limit)
		}
		return machine.Abort(ctx, limit)
	})
}
