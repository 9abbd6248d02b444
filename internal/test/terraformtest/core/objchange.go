package core

import (
	"bytes"
	"fmt"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Proposed merges a prior object and its configuration, as Terraform's core does (objchange.ProposedNew). The configuration is not null.
func Proposed(attributes []*tfprotov6.SchemaAttribute, prior, config cty.Value) cty.Value {
	values := make(map[string]cty.Value, len(attributes))
	for _, a := range attributes {
		values[a.Name] = proposedAttribute(a, AttributeOf(prior, a.Name), AttributeOf(config, a.Name))
	}
	return cty.ObjectVal(values)
}

// AttributeOf returns an attribute of an object; null if the object is null.
func AttributeOf(object cty.Value, name string) cty.Value {
	switch {
	case object.IsNull():
		return cty.NullVal(object.Type().AttributeType(name))
	case !object.IsKnown():
		return cty.UnknownVal(object.Type().AttributeType(name))
	}
	return object.GetAttr(name)
}

func proposedAttribute(a *tfprotov6.SchemaAttribute, prior, config cty.Value) cty.Value {
	switch {
	case a.WriteOnly:
		return cty.NullVal(config.Type())
	case a.Computed && config.IsNull():
		if a.Optional && a.NestedType != nil && hasConfigured(a.NestedType, prior) {
			return config // it was configured before
		}
		return prior
	case a.NestedType == nil || config.IsNull() || !config.IsKnown():
		return config
	}
	switch a.NestedType.Nesting { //nolint:exhaustive // lists and maps follow
	case tfprotov6.SchemaObjectNestingModeSingle:
		return Proposed(a.NestedType.Attributes, prior, config)
	case tfprotov6.SchemaObjectNestingModeSet:
		return config // the schemas have no sets of objects with computed attributes
	}
	if config.LengthInt() == 0 {
		return config
	}
	list, elements := []cty.Value{}, map[string]cty.Value{}
	for it := config.ElementIterator(); it.Next(); {
		key, element := it.Element()
		merged := element
		if before := elementOf(prior, key); element.IsKnown() && !element.IsNull() && !before.IsNull() {
			merged = Proposed(a.NestedType.Attributes, before, element)
		}
		if list = append(list, merged); key.Type() == cty.String {
			elements[key.AsString()] = merged
		}
	}
	if config.Type().IsMapType() {
		return cty.MapVal(elements)
	}
	return cty.ListVal(list)
}

// elementOf returns an element of a map or list; null if there is none.
func elementOf(of, key cty.Value) cty.Value {
	if of.IsNull() || !of.IsKnown() || !of.HasIndex(key).True() {
		return cty.NullVal(of.Type().ElementType())
	}
	return of.Index(key)
}

// hasConfigured reports whether a prior nested value has something that only a configuration can have set.
func hasConfigured(nested *tfprotov6.SchemaObject, prior cty.Value) bool {
	if prior.IsNull() || !prior.IsKnown() {
		return false
	}
	if nested.Nesting != tfprotov6.SchemaObjectNestingModeSingle {
		for it := prior.ElementIterator(); it.Next(); {
			if _, element := it.Element(); setsConfigured(nested.Attributes, element) {
				return true
			}
		}
		return false
	}
	return setsConfigured(nested.Attributes, prior)
}

func setsConfigured(attributes []*tfprotov6.SchemaAttribute, object cty.Value) bool {
	for _, a := range attributes {
		value := AttributeOf(object, a.Name)
		if !a.Computed && !value.IsNull() || a.NestedType != nil && hasConfigured(a.NestedType, value) {
			return true
		}
	}
	return false
}

// Incompatible describes how an object differs from what was planned; "" if it does not, except in what was unknown
// (objchange.AssertObjectCompatible).
func Incompatible(path string, planned, actual cty.Value) string {
	switch {
	case !planned.IsKnown():
		return ""
	case planned.IsNull() != (actual.IsKnown() && actual.IsNull()):
		return fmt.Sprintf("%s: planned %s, now %s", path, Show(planned), Show(actual))
	case planned.IsNull():
		return ""
	case !actual.IsKnown():
		return fmt.Sprintf("%s: planned %s, now unknown", path, Show(planned))
	}
	of := planned.Type()
	switch {
	case of.IsObjectType():
		for name := range of.AttributeTypes() {
			if text := Incompatible(path+"."+name, planned.GetAttr(name), actual.GetAttr(name)); text != "" {
				return text
			}
		}
		return ""
	case of.IsMapType():
		return incompatibleMap(path, planned, actual)
	case of.IsListType() || of.IsTupleType():
		return incompatibleList(path, planned, actual)
	case !planned.IsWhollyKnown():
		return ""
	case !planned.RawEquals(actual):
		return fmt.Sprintf("%s: planned %s, now %s", path, Show(planned), Show(actual))
	}
	return ""
}

func incompatibleMap(path string, planned, actual cty.Value) string {
	before, after := planned.AsValueMap(), actual.AsValueMap()
	for key, value := range before {
		now, exists := after[key]
		if !exists {
			return fmt.Sprintf("%s: planned an element %q, which is gone", path, key)
		}
		if text := Incompatible(path+"."+key, value, now); text != "" {
			return text
		}
	}
	if len(after) > len(before) {
		return fmt.Sprintf("%s: planned %d elements, now %d", path, len(before), len(after))
	}
	return ""
}

func incompatibleList(path string, planned, actual cty.Value) string {
	before, after := planned.AsValueSlice(), actual.AsValueSlice()
	if len(before) != len(after) {
		return fmt.Sprintf("%s: planned %d elements, now %d", path, len(before), len(after))
	}
	for i := range before {
		if text := Incompatible(fmt.Sprintf("%s[%d]", path, i), before[i], after[i]); text != "" {
			return text
		}
	}
	return ""
}

// InvalidPlan describes how a planned object contradicts its configuration; "" if it does not (objchange.AssertPlanValid).
func InvalidPlan(path string, attributes []*tfprotov6.SchemaAttribute, prior, config, planned cty.Value) string {
	for _, a := range attributes {
		at := path + "." + a.Name
		before, wanted, now := AttributeOf(prior, a.Name), AttributeOf(config, a.Name), AttributeOf(planned, a.Name)
		switch {
		case a.WriteOnly:
			if !now.IsNull() {
				return at + ": a write-only value in the plan"
			}
		case wanted.IsNull() && a.Computed, now.RawEquals(wanted), now.RawEquals(before) && !wanted.IsNull(), !wanted.IsKnown() &&
			!now.IsKnown():
		case a.NestedType != nil && IsThere(wanted) && IsThere(now):
			if text := invalidElements(at, a.NestedType, before, wanted, now); text != "" {
				return text
			}
		default:
			return fmt.Sprintf("%s: configured %s, planned %s", at, Show(wanted), Show(now))
		}
	}
	return ""
}

// IsThere reports whether a value is neither unknown nor null.
func IsThere(value cty.Value) bool { return value.IsKnown() && !value.IsNull() }

// invalidElements is InvalidPlan for the objects of a nested attribute.
func invalidElements(path string, nested *tfprotov6.SchemaObject, before, wanted, now cty.Value) string {
	switch nested.Nesting { //nolint:exhaustive // lists and maps follow
	case tfprotov6.SchemaObjectNestingModeSingle:
		return InvalidPlan(path, nested.Attributes, before, wanted, now)
	case tfprotov6.SchemaObjectNestingModeSet: // without computed attributes, so a plan has what is configured
		return fmt.Sprintf("%s: configured %s, planned %s", path, Show(wanted), Show(now))
	}
	if wanted.LengthInt() != now.LengthInt() {
		return fmt.Sprintf("%s: configured %d elements, planned %d", path, wanted.LengthInt(), now.LengthInt())
	}
	for it := wanted.ElementIterator(); it.Next(); {
		key, element := it.Element()
		if !now.HasIndex(key).True() {
			return fmt.Sprintf("%s: configured an element %s, which the plan lacks", path, Show(key))
		}
		planned := elementOf(now, key)
		if !IsThere(element) || !IsThere(planned) {
			continue
		}
		if text := InvalidPlan(path+"["+Show(key)+"]", nested.Attributes, elementOf(before, key), element, planned); text != "" {
			return text
		}
	}
	return ""
}

// Show prints a value for a message.
func Show(value cty.Value) string {
	if !value.IsWhollyKnown() {
		return "(unknown)"
	}
	text, err := ctyjson.Marshal(value, value.Type())
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(text))
}
