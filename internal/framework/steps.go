package framework

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	actionschema "github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// StepOrder says what decides the order of steps.
type StepOrder int

// The orders of steps.
const (
	ByPriority StepOrder = iota // each step has a priority, the highest first
	ByPosition                  // the first in the list is the first
)

// Steps returns the attribute of a list of Ironic's steps, in which no step may occur twice.
func Steps(order StepOrder, attribute schema.ListNestedAttribute) schema.ListNestedAttribute {
	attributes := map[string]schema.Attribute{
		"interface": schema.StringAttribute{
			Required: true, MarkdownDescription: "Interface, such as `deploy`, `bios` or `raid`.",
			Validators: []validator.String{stringvalidator.OneOf("bios", "deploy", "firmware", "management", "power", "raid", "vendor")},
		},
		"step": schema.StringAttribute{
			Required: true, MarkdownDescription: "Name of the step.",
			Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
		},
		"args": schema.StringAttribute{
			Optional: true, CustomType: JSONType{}, PlanModifiers: KeepSpelling(),
			MarkdownDescription: "Arguments, as a JSON object.",
		},
	}
	if order == ByPriority {
		attributes["priority"] = schema.Int64Attribute{
			Required: true, MarkdownDescription: "Order, highest first. `0` disables the step.",
			Validators: []validator.Int64{int64validator.AtLeast(0)},
		}
	}
	attribute.NestedObject = schema.NestedAttributeObject{Attributes: attributes}
	attribute.Validators = append(attribute.Validators, listvalidator.SizeAtLeast(1), stepList{})
	return attribute
}

// ActionSteps returns the attribute of a list of Ironic's steps by position, for an action.
func ActionSteps(description string) actionschema.ListNestedAttribute {
	of := Steps(ByPosition, schema.ListNestedAttribute{})
	attributes := map[string]actionschema.Attribute{}
	for name, attribute := range of.NestedObject.Attributes {
		text, _ := attribute.(schema.StringAttribute) // lists by position have no others
		attributes[name] = actionschema.StringAttribute{
			Required: text.Required, Optional: text.Optional, CustomType: text.CustomType, MarkdownDescription: text.MarkdownDescription,
			Validators: text.Validators,
		}
	}
	return actionschema.ListNestedAttribute{
		Optional: true, MarkdownDescription: description, Validators: of.Validators,
		NestedObject: actionschema.NestedAttributeObject{Attributes: attributes},
	}
}

// stepList is the rule for lists of steps that cannot be checked on one attribute of a step.
type stepList struct{}

// Description returns the rule.
func (stepList) Description(context.Context) string {
	return "must be steps with JSON objects as arguments, each of them once"
}

// MarkdownDescription returns the rule.
func (v stepList) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

// ValidateList adds an error for each step that breaks the rule.
func (stepList) ValidateList(_ context.Context, req validator.ListRequest, resp *validator.ListResponse) {
	if !IsSet(req.ConfigValue) {
		return
	}
	seen := map[stepName]int{}
	for i, element := range req.ConfigValue.Elements() {
		at := req.Path.AtListIndex(i)
		s := stepOf(element)
		argumentsOf(s.args, at.AtName("args"), &resp.Diagnostics)
		if !IsSet(s.kind) || !IsSet(s.name) {
			continue
		}
		if first, twice := seen[s.key()]; twice {
			resp.Diagnostics.AddAttributeError(at, "Step listed twice",
				fmt.Sprintf("Step %s is also element %d. Ironic accepts each step of an interface once.", s.key(), first))
			continue
		}
		seen[s.key()] = i
	}
}

type stepName struct{ kind, name string }

// String returns the name as Ironic writes it, such as "bios.factory_reset".
func (n stepName) String() string { return n.kind + "." + n.name }

type step struct {
	kind, name types.String
	args       JSON
	priority   types.Int64 // the zero value in lists by position
}

func (s step) key() stepName { return stepName{s.kind.ValueString(), s.name.ValueString()} }

func stepOf(element attr.Value) (s step) {
	object, is := element.(types.Object)
	if !is || !IsSet(object) {
		return step{kind: types.StringUnknown(), name: types.StringUnknown(), args: JSONUnknown()}
	}
	has := object.Attributes()
	s.kind, _ = has["interface"].(types.String)
	s.name, _ = has["step"].(types.String)
	s.args, _ = has["args"].(JSON)
	s.priority, _ = has["priority"].(types.Int64)
	return s
}

// argumentsOf returns arguments that are written as a JSON object; none if they are null or unknown. It adds an error for any other text.
func argumentsOf(text JSON, at path.Path, diags *diag.Diagnostics) map[string]any {
	args := map[string]any{}
	if !IsSet(text) {
		return args
	}
	if document.Decode([]byte(text.ValueString()), &args) != nil || args == nil {
		diags.AddAttributeError(at, "Not a JSON object", "The arguments of a step must be a JSON object.")
		return map[string]any{}
	}
	return args
}

// StepFeatures returns the API versions that the interfaces of a list of steps need (reference/ironic.md#deploy-templates-and-runbooks).
func StepFeatures(at path.Path, list types.List) (features []Feature) {
	for i, element := range list.Elements() {
		features = append(features, Feature{
			Used: stepOf(element).kind.ValueString() == "firmware", Since: api.VersionFirmware,
			Name: at.AtListIndex(i).AtName("interface"),
		})
	}
	return features
}

// DeploySteps returns steps by priority for a request. The list is valid.
func DeploySteps(list types.List) (steps []ironic.DeployStep) {
	for _, element := range list.Elements() {
		s := stepOf(element)
		steps = append(steps, ironic.DeployStep{
			Interface: s.kind.ValueString(), Step: s.name.ValueString(), Args: argumentsOf(s.args, path.Empty(), &diag.Diagnostics{}),
			Priority: s.priority.ValueInt64(),
		})
	}
	return steps
}

// RunbookSteps returns steps by position for a request. The list is valid.
func RunbookSteps(list types.List) (steps []ironic.RunbookStep) {
	for i, element := range list.Elements() {
		s := stepOf(element)
		steps = append(steps, ironic.RunbookStep{
			Interface: s.kind.ValueString(), Step: s.name.ValueString(), Args: argumentsOf(s.args, path.Empty(), &diag.Diagnostics{}),
			Order: int64(i + 1),
		})
	}
	return steps
}

// OrderSteps returns steps by position for a cleaning or a service. The list is valid.
func OrderSteps(list types.List) (steps []ironic.CleanStep) {
	for _, element := range list.Elements() {
		s := stepOf(element)
		steps = append(steps, ironic.CleanStep{
			Interface: s.kind.ValueString(), Step: s.name.ValueString(), Args: argumentsOf(s.args, path.Empty(), &diag.Diagnostics{}),
		})
	}
	return steps
}

// RefreshSteps updates a list of steps from Ironic, which masks secrets in arguments: it keeps those of the state. It also keeps the
// user's spelling of equal arguments.
func RefreshSteps(ctx context.Context, order StepOrder, state types.List, found []ironic.Step) types.List {
	known := map[stepName]step{}
	place := map[stepName]int{}
	for i, element := range state.Elements() {
		s := stepOf(element)
		known[s.key()], place[s.key()] = s, i+1
	}
	found = slices.Clone(found)
	after := func(s ironic.Step) int { // steps that the state does not have come last
		if at := place[stepName{s.Interface, s.Step}]; at > 0 {
			return at
		}
		return len(place) + 1
	}
	if order == ByPriority { // a runbook runs them as they are (reference/ironic.md#the-order-of-the-steps-of-a-runbook)
		slices.SortStableFunc(found, func(a, b ironic.Step) int {
			return cmp.Or(cmp.Compare(after(a), after(b)), cmp.Compare(b.Priority, a.Priority))
		})
	}
	kind, _ := state.ElementType(ctx).(types.ObjectType)
	elements := make([]attr.Value, 0, len(found))
	for _, f := range found {
		before := known[stepName{f.Interface, f.Step}]
		values := map[string]attr.Value{
			"interface": types.StringValue(f.Interface), "step": types.StringValue(f.Step), "args": refreshArguments(before.args, f.Args),
		}
		if order == ByPriority {
			values["priority"] = types.Int64Value(f.Priority)
		}
		elements = append(elements, types.ObjectValueMust(kind.AttrTypes, values))
	}
	return types.ListValueMust(kind, elements)
}

// SameSteps reports whether Ironic has the steps of a valid list, as far as it shows them.
func SameSteps(ctx context.Context, order StepOrder, wanted types.List, found []ironic.Step) bool {
	return RefreshSteps(ctx, order, wanted, found).Equal(wanted)
}

func refreshArguments(state JSON, found map[string]any) JSON {
	before := argumentsOf(state, path.Empty(), &diag.Diagnostics{})
	now, _ := unmasked(found, before).(map[string]any)
	if ironic.SameJSON(emptyIfNil(now), before) {
		if state.IsUnknown() {
			return JSONNull()
		}
		return state
	}
	return JSONText(emptyIfNil(now))
}

func emptyIfNil(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// unmasked returns a value from Ironic with the secrets of the value that is known here.
func unmasked(found, known any) any {
	switch found := found.(type) {
	case string:
		if text, is := known.(string); is && strings.Contains(found, ironic.Masked) {
			return text
		}
		if found == ironic.Masked && known != nil {
			return known
		}
	case map[string]any:
		of, _ := known.(map[string]any)
		out := make(map[string]any, len(found))
		for key, value := range found {
			out[key] = unmasked(value, of[key])
		}
		return out
	case []any:
		of, _ := known.([]any)
		out := make([]any, 0, len(found))
		for i, value := range found {
			var same any
			if i < len(of) {
				same = of[i]
			}
			out = append(out, unmasked(value, same))
		}
		return out
	}
	return found
}
