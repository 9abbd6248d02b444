package actions

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/action"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

var _ action.ActionWithModifyPlan = (*nmi)(nil)

// NewNMI returns metal_nmi.
func NewNMI() action.Action { return &nmi{} }

type nmi struct{ operator }

const nmiLimit = 5 * time.Minute

// Metadata names the action.
func (a *nmi) Metadata(_ context.Context, _ action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = "metal_nmi"
}

// Schema describes the action.
func (a *nmi) Schema(ctx context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schemaOf(ctx, "Sends a machine a non-maskable interrupt, through its BMC. **Most operating systems then crash**: they "+
		"write a crash dump and restart, as they are configured. Needs API 1.29, and a machine that is switched on.", nmiLimit, nil)
}

// ModifyPlan refuses the action if the API version does not support it.
func (a *nmi) ModifyPlan(ctx context.Context, _ action.ModifyPlanRequest, resp *action.ModifyPlanResponse) {
	if a.Known() {
		a.Offers(ctx, &resp.Diagnostics, api.VersionNMI, "metal_nmi")
	}
}

// Invoke sends the interrupt.
func (a *nmi) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var m target
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	a.operate(ctx, m, "send an NMI to", nmiLimit, resp, func(machine *machine.Machine, limit time.Duration) error {
		return machine.SendNMI(ctx, limit)
	})
}
