package resources

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// toJSON turns a value of any type into what encoding/json writes for it: maps, slices, strings, numbers, booleans, nil.
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
		return json.Number(v.ValueBigFloat().Text('g', -1))
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

// fromJSON turns what encoding/json reads into a value: objects, tuples, strings, numbers, booleans.
func fromJSON(ctx context.Context, v any) attr.Value {
	switch v := v.(type) {
	case string:
		return types.StringValue(v)
	case bool:
		return types.BoolValue(v)
	case float64:
		return types.NumberValue(big.NewFloat(v))
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
			continue // an object's attribute of unknown type cannot be null
		}
		values[key] = fromJSON(ctx, value)
		kinds[key] = values[key].Type(ctx)
	}
	return types.ObjectValueMust(kinds, values)
}

// dynamicObject is a JSON object as the value of a dynamic attribute; null if it is empty.
func dynamicObject(ctx context.Context, m map[string]any) types.Dynamic {
	if len(m) == 0 {
		return types.DynamicNull()
	}
	return types.DynamicValue(objectFromJSON(ctx, m))
}

// jsonObject is the value of a dynamic attribute as a JSON object; nil if it is null, unknown, or no object.
func jsonObject(v types.Dynamic) map[string]any {
	m, _ := toJSON(v).(map[string]any)
	return m
}

// refreshObject brings the keys that a dynamic attribute has to what Ironic has: gone ones vanish, equal ones stay as the
// user wrote them, others are replaced.
func refreshObject(ctx context.Context, state types.Dynamic, actual map[string]any) types.Dynamic {
	old := jsonObject(state)
	if old == nil {
		return state
	}
	now := map[string]any{}
	same := true
	for key, value := range old {
		have := actual[key]
		if have != nil {
			now[key] = have
		}
		same = same && ironic.SameJSON(have, value) // null is as good as gone
	}
	if same {
		return state
	}
	return types.DynamicValue(objectFromJSON(ctx, now))
}

// stringMap is a map of strings as a Go map; nil if it is null or unknown.
func stringMap(m types.Map) map[string]string {
	if !isSet(m) {
		return nil
	}
	out := map[string]string{}
	for key, value := range m.Elements() {
		if s, ok := value.(types.String); ok && isSet(s) {
			out[key] = s.ValueString()
		}
	}
	return out
}

// mapValue is a Go map as a map of strings; null if it is empty.
func mapValue(m map[string]string) types.Map {
	if len(m) == 0 {
		return types.MapNull(types.StringType)
	}
	values := make(map[string]attr.Value, len(m))
	for key, value := range m {
		values[key] = types.StringValue(value)
	}
	return types.MapValueMust(types.StringType, values)
}

// refreshMap is refreshObject for a map of strings; values are compared by meaning, so that "4" is 4.
func refreshMap(state types.Map, actual map[string]string) types.Map {
	old := stringMap(state)
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

// scalars are the values of a JSON object that are no objects or lists, as text.
func scalars(m map[string]any) map[string]string {
	out := map[string]string{}
	for key, value := range m {
		switch v := value.(type) {
		case map[string]any, []any, nil:
		case float64:
			out[key] = big.NewFloat(v).Text('f', -1)
		default:
			out[key] = fmt.Sprint(v)
		}
	}
	return out
}

// stringSet is a set of strings as a slice; nil if it is null or unknown.
func stringSet(s types.Set) []string {
	if !isSet(s) {
		return nil
	}
	out := []string{}
	for _, value := range s.Elements() {
		if s, ok := value.(types.String); ok && isSet(s) {
			out = append(out, s.ValueString())
		}
	}
	return out
}

// setValue is a slice as a set of strings; null if it is empty.
func setValue(items []string) types.Set {
	if len(items) == 0 {
		return types.SetNull(types.StringType)
	}
	values := make([]attr.Value, 0, len(items))
	for _, item := range items {
		values = append(values, types.StringValue(item))
	}
	return types.SetValueMust(types.StringType, values)
}
