package framework

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout/turns"
)

// TextOf returns a string as a value of a wish.
func TextOf[T ~string](v types.String) decide.Value[T] {
	return decide.Value[T]{V: T(v.ValueString()), Set: IsSet(v), Unknown: v.IsUnknown()}
}

// FlagOf returns a boolean as a value of a wish.
func FlagOf(v types.Bool) decide.Value[bool] {
	return decide.Value[bool]{V: v.ValueBool(), Set: IsSet(v), Unknown: v.IsUnknown()}
}

// TextsOf returns a set of strings as a value of a wish, sorted.
func TextsOf(ctx context.Context, v types.Set) decide.Value[[]string] {
	known := FullyKnown(ctx, v)
	return decide.Value[[]string]{V: slices.Sorted(slices.Values(StringSet(v))), Set: known && !v.IsNull(), Unknown: !known}
}

// RequirementsOf returns the attribute require as a value of a wish.
func RequirementsOf(ctx context.Context, v types.Object) decide.Value[*allocate.Requirements] {
	known := FullyKnown(ctx, v)
	return decide.Value[*allocate.Requirements]{V: requirements(ctx, v), Set: known && !v.IsNull(), Unknown: !known}
}

// ObjectOf returns a dynamic attribute as a value of a wish.
func ObjectOf(ctx context.Context, v types.Dynamic) decide.Value[map[string]any] {
	known := FullyKnown(ctx, v)
	return decide.Value[map[string]any]{V: JSONObject(v), Set: known && !v.IsNull(), Unknown: !known}
}

// DocumentOf returns a JSON object in text as a value of a wish.
func DocumentOf(v JSON) decide.Value[map[string]any] {
	return decide.Value[map[string]any]{V: JSONDocument(v), Set: IsSet(v), Unknown: v.IsUnknown()}
}

// MapOf returns a map of strings as a value of a wish.
func MapOf(ctx context.Context, v types.Map) decide.Value[map[string]string] {
	known := FullyKnown(ctx, v)
	return decide.Value[map[string]string]{V: StringMap(v), Set: known && !v.IsNull(), Unknown: !known}
}

// NumberOf returns a number as a value of a wish.
func NumberOf(v types.Int64) decide.Value[int64] {
	return decide.Value[int64]{V: v.ValueInt64(), Set: IsSet(v), Unknown: v.IsUnknown()}
}

// IntOf is NumberOf for a small number.
func IntOf(v types.Int64) decide.Value[int] {
	return decide.Value[int]{V: int(v.ValueInt64()), Set: IsSet(v), Unknown: v.IsUnknown()}
}

// IntOrNil returns a number; nil if it is null or unknown.
func IntOrNil(v types.Int64) *int {
	if v.IsNull() || v.IsUnknown() {
		return nil
	}
	n := int(v.ValueInt64())
	return &n
}

// DurationOf returns a duration that a validator has accepted; zero if it is null or unknown.
func DurationOf(v types.String) time.Duration {
	d, _ := time.ParseDuration(v.ValueString())
	return d
}

// TextValue returns a value of a forecast as an attribute.
func TextValue[T ~string](v decide.Value[T]) types.String {
	return valueOf(v, types.StringUnknown(), types.StringNull(), func(text T) types.String { return types.StringValue(string(text)) })
}

// FlagValue returns a value of a forecast as an attribute.
func FlagValue(v decide.Value[bool]) types.Bool {
	return valueOf(v, types.BoolUnknown(), types.BoolNull(), types.BoolValue)
}

// NumberValue returns a value of a forecast as an attribute.
func NumberValue(v decide.Value[int64]) types.Int64 {
	return valueOf(v, types.Int64Unknown(), types.Int64Null(), types.Int64Value)
}

func valueOf[T, A any](v decide.Value[T], unknown, null A, known func(T) A) A {
	switch {
	case v.Unknown:
		return unknown
	case v.Set:
		return known(v.V)
	}
	return null
}

// LiveISO is the attribute live_iso of metal_deployment and metal_boot_status.
type LiveISO struct {
	URL           types.String `tfsdk:"url"`
	Version       types.String `tfsdk:"version"`
	SharedContent types.Map    `tfsdk:"shared_content"`
	HostContent   types.Map    `tfsdk:"host_content"`
	Contains      types.Map    `tfsdk:"contains"`
	Installing    types.Bool   `tfsdk:"installing"`
	Registered    types.Bool   `tfsdk:"registered"`
	QuietPeriod   types.String `tfsdk:"quiet_period"`
	BuiltAt       types.String `tfsdk:"built_at"`
	RebootPolicy  types.String `tfsdk:"reboot_policy"`
}

// Want returns the attribute as the input of the decision about a machine. Settings that are null or unknown have their defaults.
func (l LiveISO) Want() bootiso.Want {
	want := bootiso.NewWant(bootiso.Artifacts{
		URL: l.URL.ValueString(), Version: l.Version.ValueString(), SharedContent: StringMap(l.SharedContent),
		HostContent: StringMap(l.HostContent),
	})
	if IsSet(l.Contains) {
		want.Contains = StringMap(l.Contains)
	}
	want.Installing = l.Installing.ValueBool()
	if IsSet(l.Registered) {
		want.Registered = l.Registered.ValueBool()
	}
	if IsSet(l.RebootPolicy) {
		want.Policy = bootiso.Policy(l.RebootPolicy.ValueString())
	}
	if quiet, err := time.ParseDuration(l.QuietPeriod.ValueString()); err == nil {
		want.Quiet = quiet
	}
	if at, err := time.Parse(time.RFC3339, l.BuiltAt.ValueString()); err == nil {
		want.BuiltAt = at
	}
	return want
}

type rolloutModel struct {
	Group          types.String `tfsdk:"group"`
	MaxUnavailable types.Int64  `tfsdk:"max_unavailable"`
	Pause          types.String `tfsdk:"pause"`
	Canary         types.Int64  `tfsdk:"canary"`
	MaxFailures    types.Int64  `tfsdk:"max_failures"`
}

// RolloutAttribute is the attribute rollout.
func RolloutAttribute(description string) schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional:            true,
		MarkdownDescription: description,
		Attributes: map[string]schema.Attribute{
			"group": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.LengthBetween(1, 100)},
				MarkdownDescription: "Name of machines that take turns: all need the same `rollout`. Default: machines with the same " +
					"change are a group in one run.",
			},
			"max_unavailable": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.AtLeast(1)},
				MarkdownDescription: "How many members of `group` may be away at once, over all runs: in a change, failed or not ready. " +
					"First deployments do not count. Default: any number.",
			},
			"pause": schema.StringAttribute{
				Optional: true, Validators: []validator.String{NotNegativeDuration},
				MarkdownDescription: "How long a member (`max_unavailable`), or the canaries, must have been ready before others start. " +
					"Default: `0s`.",
			},
			"canary": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.AtLeast(0)},
				MarkdownDescription: "How many machines go first. If one fails, the others are not started. Default: that of the " +
					"provider block, then `0`.",
			},
			"max_failures": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.AtLeast(0)},
				MarkdownDescription: "How many failures in a row stop the run; `0`: no number does. Until the first success, no more " +
					"machines change at once. Default: that of the provider block, then `3`, and `0` for first deployments.",
			},
		},
	}
}

// Turns returns what a rollout asks for, with the defaults of the provider. What is not known is left open.
func (w *WithClient) Turns(ctx context.Context, value types.Object) rollout.Settings {
	r := Decoded[rolloutModel](ctx, value)
	if r == nil {
		return w.Rollout
	}
	return rollout.Settings{
		Group: r.Group.ValueString(), MaxUnavailable: int(r.MaxUnavailable.ValueInt64()), Pause: DurationOf(r.Pause),
		Canary: IntOrNil(r.Canary), MaxFailures: IntOrNil(r.MaxFailures),
	}.Or(w.Rollout)
}

// ValidateRollout refuses settings of a rollout without effect.
func ValidateRollout(ctx context.Context, at path.Path, value types.Object, diags *diag.Diagnostics) {
	r := Decoded[rolloutModel](ctx, value)
	if r == nil {
		return
	}
	switch {
	case r.Group.IsNull() && !r.MaxUnavailable.IsNull():
		diags.AddAttributeError(at, "Missing setting", "rollout.max_unavailable is about the members of a group. Set rollout.group, with "+
			"the same name for all members.")
	case !r.Group.IsNull() && r.MaxUnavailable.IsNull() && r.Canary.IsNull() && r.MaxFailures.IsNull():
		diags.AddAttributeError(at, "Missing setting", "rollout.group alone limits nothing. Set max_unavailable, canary or "+
			"max_failures, too.")
	case !r.Pause.IsNull() && r.MaxUnavailable.IsNull() && r.Canary.IsNull():
		diags.AddAttributeError(at, "Unused setting", "rollout.pause has an effect only with max_unavailable or canary. Set one of them, "+
			"or remove pause.")
	}
}

// AgreeOnRollout refuses a rollout that differs from that of another member of the group.
func (w *WithClient) AgreeOnRollout(ctx context.Context, at path.Path, value types.Object, diags *diag.Diagnostics) {
	if w.Site == nil || !FullyKnown(ctx, value) {
		return
	}
	if err := turns.Agree(w.Site, w.Turns(ctx, value)); err != nil {
		diags.AddAttributeError(at, "Members of a rollout group differ", failure.Ended(err.Error()))
	}
}
