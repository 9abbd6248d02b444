package actions

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

var _ action.ActionWithModifyPlan = (*power)(nil)

// NewPower returns metal_power.
func NewPower() action.Action { return &power{operator{name: "metal_power"}} }

type power struct{ operator }

type powerModel struct {
	target
	Action types.String `tfsdk:"action"`
}

const powerLimit = 15 * time.Minute

// Schema describes the action.
func (a *power) Schema(ctx context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schemaOf(ctx, "Switches a machine on or off, or restarts it, and waits for that.", powerLimit,
		map[string]schema.Attribute{
			"action": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "`on`. `off`: cuts the power. `reboot`: **cuts the power and switches the machine on again**. " +
					"`soft_off` and `soft_reboot`: ask the operating system, need a driver that can, and fail if the machine stays on. " +
					"A machine that is off is only switched on by `reboot` and `soft_reboot`.",
				Validators: []validator.String{stringvalidator.OneOf(string(machine.ActionOn), string(machine.ActionOff),
					string(machine.ActionReboot),
					string(machine.ActionSoftOff), string(machine.ActionSoftReboot))},
			},
		})
}

func (m powerModel) action() machine.PowerAction {
	return machine.PowerAction(m.Action.ValueString())
}

// ModifyPlan refuses what the API version does not support.
func (a *power) ModifyPlan(ctx context.Context, req action.ModifyPlanRequest, resp *action.ModifyPlanResponse) {
	var m powerModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if !a.Known() || resp.Diagnostics.HasError() {
		return
	}
	soft := m.action() == machine.ActionSoftOff || m.action() == machine.ActionSoftReboot
	a.Requires(ctx, &resp.Diagnostics, framework.Feature{Used: soft, Since: api.VersionSoftPower, Name: path.Root("action")})
}

// Invoke changes the power.
func (a *power) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var m powerModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	doing := map[machine.PowerAction]string{
		machine.ActionOn: "switch on", machine.ActionOff: "switch off", machine.ActionSoftOff: "shut down", machine.ActionReboot: "restart",
		machine.ActionSoftReboot: "restart",
	}[m.action()]
	a.operate(ctx, m.target, doing, powerLimit, resp, func(machine *machine.Machine, limit time.Duration) error {
		return machine.ChangePower(ctx, m.action(), limit)
	})
}
