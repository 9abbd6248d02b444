package deployment

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/instance"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/turns"
)

// rolloutModel is rollout.
type rolloutModel struct {
	Group          types.String `tfsdk:"group"`
	MaxUnavailable types.Int64  `tfsdk:"max_unavailable"`
	Pause          types.String `tfsdk:"pause"`
	Canary         types.Int64  `tfsdk:"canary"`
	MaxFailures    types.Int64  `tfsdk:"max_failures"`
}

func rolloutSchema() schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional:            true,
		MarkdownDescription: "In which order machines change, and when a run stops. See [Roll out a change](../guides/roll-out.md).",
		Attributes: map[string]schema.Attribute{
			"group": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.LengthBetween(1, 100)},
				MarkdownDescription: "Name of a group of machines that take turns. All members need the same `rollout`. Default: the machines that get the same image, or restart, in one run.",
			},
			"max_unavailable": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.AtLeast(1)},
				MarkdownDescription: "How many members of `group` may be away at once, over all runs: rebuilt, restarted, replaced, failed or not ready. First deployments do not count. Default: any number.",
			},
			"pause": schema.StringAttribute{
				Optional: true, Validators: []validator.String{framework.NotNegativeDuration},
				MarkdownDescription: "How long a member must have been ready before the next one starts (`max_unavailable`), and the canaries before the others. Default: `0s`.",
			},
			"canary": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.AtLeast(0)},
				MarkdownDescription: "How many machines of the group go first. If one of them fails, the others are not started. Default: `rollout` of the provider block, then `0`.",
			},
			"max_failures": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.AtLeast(0)},
				MarkdownDescription: "How many failures in a row stop the run for the group. Until the first success, no more machines change at once. `0`: no limit. " +
					"Default: `rollout` of the provider block, then `3`, and no limit for first deployments.",
			},
		},
	}
}

// settings returns what rollout asks for, with the defaults of the provider. What is not known is left open.
func (d *deployment) settings(ctx context.Context, m *model) rollout.Settings {
	var r rolloutModel
	if !framework.IsSet(m.Rollout) || m.Rollout.As(ctx, &r, basetypes.ObjectAsOptions{UnhandledUnknownAsEmpty: true}).HasError() {
		return d.Rollout
	}
	return rollout.Settings{
		Group: r.Group.ValueString(), MaxUnavailable: int(r.MaxUnavailable.ValueInt64()), Pause: framework.DurationOf(r.Pause),
		Canary: framework.IntOrNil(r.Canary), MaxFailures: framework.IntOrNil(r.MaxFailures),
	}.Or(d.Rollout)
}

// validateRollout refuses settings of rollout without effect.
func (m *model) validateRollout(ctx context.Context, diags *diag.Diagnostics) {
	var r rolloutModel
	if !framework.IsSet(m.Rollout) || m.Rollout.As(ctx, &r, basetypes.ObjectAsOptions{}).HasError() {
		return
	}
	switch {
	case r.Group.IsNull() && !r.MaxUnavailable.IsNull():
		diags.AddAttributeError(path.Root("rollout"), "Missing setting", "rollout.max_unavailable is about the members of a group. Set rollout.group, with the same name for all members.")
	case !r.Group.IsNull() && r.MaxUnavailable.IsNull() && r.Canary.IsNull() && r.MaxFailures.IsNull():
		diags.AddAttributeError(path.Root("rollout"), "Missing setting", "rollout.group alone limits nothing. Set max_unavailable, canary or max_failures, too.")
	case !r.Pause.IsNull() && r.MaxUnavailable.IsNull() && r.Canary.IsNull():
		diags.AddAttributeError(path.Root("rollout"), "Unused setting", "rollout.pause has an effect only with max_unavailable or canary. Set one of them, or remove pause.")
	}
}

// agree refuses a rollout that differs from that of another member of the group.
func (d *deployment) agree(ctx context.Context, plan *model, diags *diag.Diagnostics) {
	if d.Site == nil || !framework.FullyKnown(ctx, plan.Rollout) {
		return
	}
	if err := turns.Agree(d.Site, d.settings(ctx, plan)); err != nil {
		diags.AddAttributeError(path.Root("rollout"), "Members of a rollout group differ", failure.Ended(err.Error()))
	}
}

// replacement is what the plan of a new deployment says, for the destruction of the one that it replaces.
type replacement struct {
	Settings rollout.Settings `json:"settings"`
	Content  string           `json:"content"` // "": not known yet
	Node     string           `json:"node"`    // as configured; "": not known yet
}

// noteReplacement stores it. Only the destruction of the same plan reads it.
func (d *deployment) noteReplacement(ctx context.Context, plan *model, wanted instance.Deployment, private framework.SettablePrivate) diag.Diagnostics {
	return remember(ctx, private, replacementKey, replacement{Settings: d.settings(ctx, plan), Content: wanted.Source(), Node: plan.NodeID.ValueString()})
}

// turnToReplace waits for the turn of a machine that is undeployed to be replaced; nil if it is only undeployed. next is the node of the new
// deployment, as configured.
func (d *deployment) turnToReplace(ctx context.Context, m *machine.Machine, private framework.GettablePrivate) (turn *turns.Turn, next string, err error) {
	var r replacement
	text, _ := private.GetKey(ctx, replacementKey)
	if len(text) == 0 {
		return nil, "", nil
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, "", err
	}
	turn, err = turns.TakeToReplace(ctx, m, turns.Change{Settings: r.Settings, Content: r.Content})
	return turn, r.Node, err
}

// turn waits for the turn of a machine that is deployed for the first time.
func (d *deployment) turn(ctx context.Context, plan *model, m *machine.Machine, wanted instance.Deployment) (*turns.Turn, error) {
	if plan.adopted() {
		return nil, nil //nolint:nilnil // nothing happens to the machine
	}
	return turns.Take(ctx, m, turns.Change{Settings: d.settings(ctx, plan), Change: rollout.FirstDeployment, Content: wanted.Source(), Node: plan.NodeID.ValueString()})
}

// turn waits for the turn of a machine that runs already.
func (u *update) turn(ctx context.Context, m *machine.Machine, settings rollout.Settings) (*turns.Turn, error) {
	change, takes := deploy.Change(u.steps)
	if !takes {
		return nil, nil //nolint:nilnil // it stays as it is
	}
	return turns.Take(ctx, m, turns.Change{Settings: settings, Change: change, Content: u.what.Source(), Away: change == rollout.Check})
}

// reportTurn reports why a machine has not got its turn.
func reportTurn(diags *diag.Diagnostics, doing string, err error) {
	if failure.Is(err, turns.KindNotStarted) {
		_, detail := failure.Explain(doing, err)
		diags.AddError("Machine was not started", detail)
		return
	}
	framework.ReportUndone(diags, doing, err)
}
