package framework

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/decide"
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
	return decide.Value[*allocate.Requirements]{V: Requirements(ctx, v), Set: known && !v.IsNull(), Unknown: !known}
}

// ObjectOf returns a dynamic attribute as a value of a wish.
func ObjectOf(ctx context.Context, v types.Dynamic) decide.Value[map[string]any] {
	known := FullyKnown(ctx, v)
	return decide.Value[map[string]any]{V: JSONObject(v), Set: known && !v.IsNull(), Unknown: !known}
}

// DocumentOf returns a JSON object in text as a value of a wish.
func DocumentOf(v jsontypes.Normalized) decide.Value[map[string]any] {
	return decide.Value[map[string]any]{V: JSONDocument(v), Set: IsSet(v), Unknown: v.IsUnknown()}
}

// MapOf returns a map of strings as a value of a wish.
func MapOf(ctx context.Context, v types.Map) decide.Value[map[string]string] {
	known := FullyKnown(ctx, v)
	return decide.Value[map[string]string]{V: StringMap(v), Set: known && !v.IsNull(), Unknown: !known}
}

// IntOf returns a number as a value of a wish.
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
func TextValue(v decide.Value[string]) types.String {
	switch {
	case v.Unknown:
		return types.StringUnknown()
	case v.Set:
		return types.StringValue(v.V)
	}
	return types.StringNull()
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
		URL: l.URL.ValueString(), Version: l.Version.ValueString(), SharedContent: StringMap(l.SharedContent), HostContent: StringMap(l.HostContent),
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
