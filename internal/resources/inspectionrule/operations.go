package inspectionrule

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

type arguments struct {
	required, optional []string
}

// ops are the conditions or the actions that Ironic knows.
type ops map[string]arguments

// conditionOps are the conditions of Ironic 39 (reference/ironic.md#inspection-rules).
func conditionOps() ops {
	value, pattern, compared := arguments{required: []string{"value"}}, arguments{required: []string{"value", "regex"}},
		arguments{[]string{"values"}, []string{"force_strings"}}
	return ops{
		"eq": compared, "lt": compared, "gt": compared, "matches": pattern, "contains": pattern,
		"in-net": {required: []string{"address", "subnet"}}, "one-of": {[]string{"value"}, []string{"values"}},
		"is-empty": value, "is-none": value, "is-true": value, "is-false": value,
	}
}

// actionOps are the actions of Ironic 39 (reference/ironic.md#inspection-rules).
func actionOps() ops {
	name := arguments{required: []string{"name"}}
	return ops{
		"fail": {required: []string{"msg"}}, "log": {[]string{"msg"}, []string{"level"}},
		"set-attribute": {required: []string{"path", "value"}}, "extend-attribute": {[]string{"path", "value"}, []string{"unique"}},
		"del-attribute":  {required: []string{"path"}},
		"set-capability": {required: []string{"name", "value"}}, "unset-capability": name, actionAddTrait: name, actionRemoveTrait: name,
		"set-plugin-data": {required: []string{"path", "value"}}, "extend-plugin-data": {[]string{"path", "value"}, []string{"unique"}},
		"unset-plugin-data":     {required: []string{"path"}},
		"set-port-attribute":    {required: []string{"port_id", "path", "value"}},
		"extend-port-attribute": {[]string{"port_id", "path", "value"}, []string{"unique"}},
		"del-port-attribute":    {required: []string{"port_id", "path"}},
		"api-call":              {[]string{"url"}, []string{"headers", "proxies", "timeout", "retries", "backoff_factor"}},
	}
}

const (
	actionAddTrait    = "add-trait"
	actionRemoveTrait = "remove-trait"
)

func (o ops) list() string {
	names := slices.Sorted(maps.Keys(o))
	for i, name := range names {
		names[i] = "`" + name + "`"
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// validate adds an error for each condition or action that Ironic would refuse, or that would fail at each inspection.
func (o ops) validate(list types.List, at path.Path, negatable bool, diags *diag.Diagnostics) {
	if !framework.IsSet(list) {
		return
	}
	for i, element := range list.Elements() {
		item, at := operationOf(element), at.AtListIndex(i)
		if !framework.IsSet(item.op) {
			continue
		}
		op := item.op.ValueString()
		name := op
		if negatable {
			name = strings.TrimPrefix(op, "!")
		}
		args, known := o[name]
		if !known {
			diags.AddAttributeError(at.AtName("op"), "Unknown operator", fmt.Sprintf("Ironic has no %q here. It has %s.", op,
				strings.ReplaceAll(o.list(), "`", "")))
			continue
		}
		if framework.IsSet(item.loop) {
			item.validateLoop(at, diags)
		} else if framework.IsSet(item.multiple) && item.loop.IsNull() {
			diags.AddAttributeError(at.AtName("multiple"), "Unused setting", "multiple has no effect without loop. Remove it.")
		}
		if framework.IsSet(item.args) {
			item.validateArguments(name, args, at.AtName("args"), diags)
		}
	}
}

func (o operation) validateLoop(at path.Path, diags *diag.Diagnostics) {
	items := decoded(o.loop)
	if _, is := items.([]any); is {
		return
	}
	if _, is := items.(map[string]any); !is {
		diags.AddAttributeError(at.AtName("loop"), "Not a JSON array", "loop must be a JSON array, such as jsonencode([\"a\", \"b\"]).")
	}
}

func (o operation) validateArguments(name string, args arguments, at path.Path, diags *diag.Diagnostics) {
	given := o.arguments()
	if given == nil {
		diags.AddAttributeError(at, "Not a JSON object", "The arguments must be a JSON object, such as jsonencode({ "+
			args.required[0]+" = ... }).")
		return
	}
	all := slices.Concat(args.required, args.optional)
	for _, required := range args.required {
		if _, has := given[required]; !has {
			diags.AddAttributeError(at, "Missing argument", fmt.Sprintf("%s needs the argument %s. Its arguments: %s.", name, required,
				strings.Join(all, ", ")))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(all, key) {
			diags.AddAttributeError(at, "Unknown argument", fmt.Sprintf("%s has no argument %s. Its arguments: %s.", name, key,
				strings.Join(all, ", ")))
		}
	}
	if values, has := given["values"]; has {
		if _, is := values.([]any); !is {
			diags.AddAttributeError(at, "Not a JSON array", "The argument values must be a JSON array: with anything else, the "+
				"inspection of every machine fails.")
		}
	}
	trait, isText := given["name"].(string)
	if (name == actionAddTrait || name == actionRemoveTrait) && isText && !strings.Contains(trait, "{") && !framework.IsTrait(trait) {
		diags.AddAttributeError(at, "Not a trait", fmt.Sprintf("%q is not a trait. Write a trait of your own, CUSTOM_ and capital "+
			"letters, digits or underscores, or a standard one.", trait))
	}
}
