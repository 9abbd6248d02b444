package actions

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

var (
	_ action.ActionWithModifyPlan     = (*clean)(nil)
	_ action.ActionWithValidateConfig = (*clean)(nil)
)

// NewClean returns metal_clean.
func NewClean() action.Action { return &clean{operator{name: "metal_clean"}} }

type clean struct{ operator }

type cleanModel struct {
	target
	order
	Erase types.Bool `tfsdk:"erase"`
}

const cleanLimit = 2 * time.Hour

// Schema describes the action.
func (a *clean) Schema(ctx context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	attributes := orderAttributes(api.VersionNoRamdisk)
	attributes["erase"] = schema.BoolAttribute{
		Optional: true, MarkdownDescription: "`true`: the steps may erase disks and replace volumes. Without it, steps of `raid`, and " +
			"steps whose names have `erase`, `wipe` or the like, are refused. Default: `false`.",
	}
	resp.Schema = schemaOf(ctx, "Cleans a free, `manageable` machine with steps of your own (a manual cleaning). **The machine "+
		"restarts**, unless Ironic's ramdisk is disabled. It stays `manageable`. Deployed and reserved machines are refused.",
		cleanLimit, attributes)
}

// ValidateConfig refuses steps that erase disks unless erase allows them.
func (a *clean) ValidateConfig(ctx context.Context, req action.ValidateConfigRequest, resp *action.ValidateConfigResponse) {
	var m cleanModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	if erasing := machine.Erasing(framework.OrderSteps(m.Steps)); len(erasing) > 0 && !m.Erase.IsUnknown() && !m.Erase.ValueBool() {
		resp.Diagnostics.AddAttributeError(path.Root("steps"), "Cleaning would erase disks",
			"These steps erase disks, or replace volumes: "+strings.Join(erasing, ", ")+". If that is what you want, set erase = true.")
	}
}

// ModifyPlan refuses what the API version does not support.
func (a *clean) ModifyPlan(ctx context.Context, req action.ModifyPlanRequest, resp *action.ModifyPlanResponse) {
	var m cleanModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if !a.Known() || resp.Diagnostics.HasError() {
		return
	}
	a.requireOrder(ctx, &resp.Diagnostics, m.order, api.VersionNoRamdisk)
}

// Invoke cleans the machine.
func (a *clean) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var m cleanModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	a.operate(ctx, m.target, "clean", cleanLimit, resp, func(machine *machine.Machine, limit time.Duration) error {
		err := machine.Clean(ctx, m.order.order(), m.Erase.ValueBool(), limit)
		return errors.Join(err, a.EndTemporary(ctx, machine.Node(), limit))
	})
}
