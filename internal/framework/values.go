package framework

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// JSONOf returns a value of any type as encoding/json encodes it. What is not known is null.
func JSONOf(v attr.Value) any { return toJSON(v) }

// toJSON converts a value of any type to what encoding/json encodes: maps, slices, strings, numbers, booleans, nil.
func toJSON(v attr.Value) any {
	if v == nil || v.IsNull() || v.IsUnknown() {
		return nil
	}
	switch v := v.(type) {
	case types.Dynamic:
		return toJSON(v.UnderlyingValue())
	case types.String:
		return v.ValueString()
	case types.Bool:
		return v.ValueBool()
	case types.Int64:
		return v.ValueInt64()
	case types.Number:
		return json.Number(v.ValueBigFloat().Text('f', -1))
	case types.Object:
		return allToJSON(v.Attributes())
	case types.Map:
		return allToJSON(v.Elements())
	case types.Tuple:
		return listToJSON(v.Elements())
	case types.List:
		return listToJSON(v.Elements())
	case types.Set:
		return listToJSON(v.Elements())
	}
	return v.String()
}

func allToJSON(values map[string]attr.Value) map[string]any {
	out := make(map[string]any, len(values))
	for key, value := range values {
		out[key] = toJSON(value)
	}
	return out
}

func listToJSON(values []attr.Value) []any {
	out := make([]any, 0, len(values))
	for _, value := range values {
		out = append(out, toJSON(value))
	}
	return out
}

// fromJSON converts a decoded JSON value to an object, a tuple, a string, a number, a boolean, or a null of dynamic type.
func fromJSON(ctx context.Context, v any) attr.Value {
	switch v := v.(type) {
	case string:
		return types.StringValue(v)
	case bool:
		return types.BoolValue(v)
	case json.Number:
		if f, _, err := big.ParseFloat(v.String(), 10, 512, big.ToNearestEven); err == nil {
			return types.NumberValue(f)
		}
		return types.StringValue(v.String())
	case map[string]any:
		return objectFromJSON(ctx, v)
	case []any:
		elements, kinds := make([]attr.Value, 0, len(v)), make([]attr.Type, 0, len(v))
		for _, item := range v {
			element := fromJSON(ctx, item)
			elements, kinds = append(elements, element), append(kinds, element.Type(ctx))
		}
		return types.TupleValueMust(kinds, elements)
	case nil:
		return types.DynamicNull()
	}
	return types.StringValue(fmt.Sprint(v))
}

func objectFromJSON(ctx context.Context, m map[string]any) types.Object {
	values, kinds := map[string]attr.Value{}, map[string]attr.Type{}
	for key, value := range m {
		if value == nil {
			continue // an attribute of unknown type cannot be null
		}
		values[key] = fromJSON(ctx, value)
		kinds[key] = values[key].Type(ctx)
	}
	return types.ObjectValueMust(kinds, values)
}

// DynamicObject returns a JSON object as the value of a dynamic attribute; null if it is empty.
func DynamicObject(ctx context.Context, m map[string]any) types.Dynamic {
	if len(m) == 0 {
		return types.DynamicNull()
	}
	return types.DynamicValue(objectFromJSON(ctx, m))
}

// JSONObject returns the value of a dynamic attribute as a JSON object; nil if it is null, unknown, or not an object.
func JSONObject(v types.Dynamic) map[string]any {
	m, _ := toJSON(v).(map[string]any)
	return m
}

// RefreshObject updates the keys of a dynamic attribute with the values in Ironic. It removes keys that Ironic does not have,
// keeps the user's spelling of equal values, and replaces the others.
func RefreshObject(ctx context.Context, state types.Dynamic, actual map[string]any) types.Dynamic {
	old := JSONObject(state)
	if old == nil {
		return state
	}
	now, same := heldKeys(old, actual)
	if same {
		return state
	}
	return types.DynamicValue(objectFromJSON(ctx, now))
}

// JSONText returns a value as JSON text for state.
func JSONText(value any) JSON {
	text, err := json.Marshal(value)
	if err != nil {
		return JSONNull()
	}
	return JSONValue(string(text))
}

// RefreshKeys returns what Ironic has of the keys of a JSON object in text. It keeps the user's spelling of equal values.
func RefreshKeys(state JSON, actual map[string]any) JSON {
	old := JSONDocument(state)
	if old == nil {
		return state
	}
	now, same := heldKeys(old, actual)
	if same {
		return state
	}
	return JSONText(now)
}

// heldKeys returns what an object in Ironic has of the keys of another one, and whether the values are the same. Null and a missing key are
// the same.
func heldKeys(old, actual map[string]any) (now map[string]any, same bool) {
	now, same = map[string]any{}, true
	for key, value := range old {
		have := actual[key]
		if have != nil {
			now[key] = have
		}
		same = same && ironic.SameJSON(have, value)
	}
	return now, same
}

// JSONDocument returns the object in a JSON attribute; nil if it is null, unknown or not an object.
func JSONDocument(v JSON) map[string]any {
	var object map[string]any
	if IsSet(v) {
		_ = document.Decode([]byte(v.ValueString()), &object) // nil without an object
	}
	return object
}

// RefreshJSON returns a JSON object in Ironic as the value of an attribute; null if it is empty. It keeps the user's spelling of an
// equal object.
func RefreshJSON(state JSON, actual map[string]any) JSON {
	if len(actual) == 0 {
		return JSONNull()
	}
	if ironic.SameJSON(JSONDocument(state), actual) {
		return state
	}
	return JSONText(actual)
}

// StringMap returns a map of strings as a Go map; nil if it is null or unknown.
func StringMap(m types.Map) map[string]string {
	if !IsSet(m) {
		return nil
	}
	out := map[string]string{}
	for key, value := range m.Elements() {
		if s, ok := value.(types.String); ok && IsSet(s) {
			out[key] = s.ValueString()
		}
	}
	return out
}

// MapValue returns a Go map as a map of strings; null if it is empty.
func MapValue(m map[string]string) types.Map {
	if len(m) == 0 {
		return types.MapNull(types.StringType)
	}
	values := make(map[string]attr.Value, len(m))
	for key, value := range m {
		values[key] = types.StringValue(value)
	}
	return types.MapValueMust(types.StringType, values)
}

// RefreshMap updates the keys of a map of strings with the values in Ironic, and removes keys that Ironic does not have. It does not change
// a map that is null or unknown.
func RefreshMap(state types.Map, actual map[string]string) types.Map {
	old := StringMap(state)
	if old == nil {
		return state
	}
	now := map[string]attr.Value{}
	for key := range old {
		if value, exists := actual[key]; exists {
			now[key] = types.StringValue(value)
		}
	}
	return types.MapValueMust(types.StringType, now)
}

// WholeMap returns the entries in Ironic of a map that is managed as a whole. Without entries it is null, or empty if the state says so.
func WholeMap(state types.Map, actual map[string]string) types.Map {
	if len(actual) == 0 && IsSet(state) {
		return types.MapValueMust(types.StringType, nil)
	}
	return MapValue(actual)
}

// Scalars returns the strings, numbers and booleans in a JSON object as text. It leaves out objects, lists and null.
func Scalars(m map[string]any) map[string]string {
	out := map[string]string{}
	for key, value := range m {
		if text, ok := ironic.Scalar(value); ok {
			out[key] = text
		}
	}
	return out
}

// StringSet returns a set of strings as a slice; nil if it is null or unknown.
func StringSet(s types.Set) []string {
	if !IsSet(s) {
		return nil
	}
	out := []string{}
	for _, value := range s.Elements() {
		if s, ok := value.(types.String); ok && IsSet(s) {
			out = append(out, s.ValueString())
		}
	}
	return out
}

// SetValue returns a slice as a set of strings; null if it is empty.
func SetValue(items []string) types.Set {
	if len(items) == 0 {
		return types.SetNull(types.StringType)
	}
	values := make([]attr.Value, 0, len(items))
	for _, item := range items {
		values = append(values, types.StringValue(item))
	}
	return types.SetValueMust(types.StringType, values)
}

// Intersection returns the items of wanted that are in have.
func Intersection(wanted, have []string) []string {
	return slices.DeleteFunc(slices.Clone(wanted), func(item string) bool { return !slices.Contains(have, item) })
}

// FullyKnown reports whether all values are known, including nested ones.
func FullyKnown(ctx context.Context, values ...attr.Value) bool {
	return !slices.ContainsFunc(values, func(value attr.Value) bool {
		raw, err := value.ToTerraformValue(ctx)
		return err != nil || !raw.IsFullyKnown()
	})
}

// Decoded returns an object as the model of its attributes; nil if it is null or unknown.
func Decoded[T any](ctx context.Context, object types.Object) *T {
	var model T
	if !IsSet(object) || object.As(ctx, &model, basetypes.ObjectAsOptions{}).HasError() {
		return nil
	}
	return &model
}

// Keep sets a value to the wanted one if that is known.
func Keep[T attr.Value](value *T, wanted T) {
	if !wanted.IsUnknown() {
		*value = wanted
	}
}

// QuietFlag returns a flag for state: false stays null if the state has no value.
func QuietFlag(was types.Bool, is bool) types.Bool {
	if !is && !IsSet(was) {
		return types.BoolNull()
	}
	return types.BoolValue(is)
}

// OrNull returns a string for state. An empty string becomes null.
func OrNull(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}

// IsSet reports whether a value is neither null nor unknown.
func IsSet(v attr.Value) bool { return !v.IsNull() && !v.IsUnknown() }

// IsFalse reports whether a value is known to be false.
func IsFalse(v types.Bool) bool { return IsSet(v) && !v.ValueBool() }
