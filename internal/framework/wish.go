package framework

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/decide"
)

// TextOf returns a string as a value of a wish.
func TextOf[T ~string](v types.String) decide.Value[T] {
	return decide.Value[T]{V: T(v.ValueString()), Set: IsSet(v), Unknown: v.IsUnknown()}
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

// IntOf returns a number as a value of a wish.
func IntOf(v types.Int64) decide.Value[int] {
	return decide.Value[int]{V: int(v.ValueInt64()), Set: IsSet(v), Unknown: v.IsUnknown()}
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
