package inspectionrule

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

type model struct {
	ID          types.String `tfsdk:"id"`
	Description types.String `tfsdk:"description"`
	Priority    types.Int64  `tfsdk:"priority"`
	Phase       types.String `tfsdk:"phase"`
	Sensitive   types.Bool   `tfsdk:"sensitive"`
	Conditions  types.List   `tfsdk:"conditions"`
	Actions     types.List   `tfsdk:"actions"`
}

func (m *model) UUID() string { return m.ID.ValueString() }

// Subject is how messages name the rule.
func (m *model) Subject() string {
	switch {
	case framework.IsSet(m.Description):
		return "inspection rule \"" + m.Description.ValueString() + "\""
	case framework.IsSet(m.ID):
		return "inspection rule " + m.ID.ValueString()
	}
	return "an inspection rule"
}

// body returns the request that creates the rule. Ironic 39 answers 500 if it lacks conditions, and creates the rule all the same.
func (m *model) body() map[string]any {
	body := map[string]any{
		"priority": m.Priority.ValueInt64(), "phase": m.Phase.ValueString(), "sensitive": m.Sensitive.ValueBool(),
		"conditions": operations(m.Conditions), "actions": operations(m.Actions),
	}
	if !m.Description.IsNull() {
		body["description"] = m.Description.ValueString()
	}
	return body
}

// Refresh copies what Ironic shows. A sensitive rule keeps conditions and actions of the state.
func (m *model) Refresh(ctx context.Context, found *ironic.InspectionRule) {
	if imported := m.Priority.IsNull(); imported || !m.Description.IsNull() {
		m.Description = framework.OrNull(found.Description)
	}
	m.Priority, m.Phase, m.Sensitive = types.Int64Value(found.Priority), types.StringValue(found.Phase), types.BoolValue(found.Sensitive)
	if !found.Sensitive {
		m.Conditions, m.Actions = refreshOperations(ctx, m.Conditions, found.Conditions), refreshOperations(ctx, m.Actions, found.Actions)
	}
}

// operations returns conditions or actions for a request; an empty list if there are none. The list is valid.
func operations(list types.List) []ironic.RuleOperation {
	out := []ironic.RuleOperation{}
	for _, element := range list.Elements() {
		o := operationOf(element)
		out = append(out, ironic.RuleOperation{
			Op: o.op.ValueString(), Args: o.arguments(), Loop: decoded(o.loop),
			Multiple: o.multiple.ValueString(),
		})
	}
	return out
}

// operation is an element of conditions or actions.
type operation struct {
	op, multiple types.String
	args, loop   framework.JSON
}

func operationOf(element attr.Value) (o operation) {
	object, is := element.(types.Object)
	if !is || !framework.IsSet(object) {
		return operation{op: types.StringUnknown(), args: framework.JSONUnknown()}
	}
	has := object.Attributes()
	o.op, _ = has["op"].(types.String)
	o.args, _ = has["args"].(framework.JSON)
	o.loop, _ = has["loop"].(framework.JSON)
	o.multiple, _ = has["multiple"].(types.String)
	return o
}

// arguments returns the arguments; nil if they are not a JSON object.
func (o operation) arguments() map[string]any {
	args, _ := decoded(o.args).(map[string]any)
	return args
}

// decoded returns the value of a JSON text; nil if it is null or unknown.
func decoded(text framework.JSON) (value any) {
	_ = document.Decode([]byte(text.ValueString()), &value) // it is valid, or empty
	return value
}

// refreshOperations updates conditions or actions from Ironic, and keeps the user's spelling of equal ones.
func refreshOperations(ctx context.Context, state types.List, found []ironic.RuleOperation) types.List {
	kind, _ := state.ElementType(ctx).(types.ObjectType)
	before := state.Elements()
	if len(found) == 0 && len(before) == 0 {
		return state
	}
	elements := make([]attr.Value, 0, len(found))
	for i, f := range found {
		if i < len(before) && operationOf(before[i]).is(f) {
			elements = append(elements, before[i])
			continue
		}
		values := map[string]attr.Value{
			"op": types.StringValue(f.Op), "args": framework.JSONText(shownArguments(f)),
			"loop": framework.JSONNull(),
		}
		if f.Loop != nil {
			values["loop"] = framework.JSONText(f.Loop)
		}
		if _, has := kind.AttrTypes["multiple"]; has {
			values["multiple"] = framework.OrNull(f.Multiple)
		}
		elements = append(elements, types.ObjectValueMust(kind.AttrTypes, values))
	}
	return types.ListValueMust(kind, elements)
}

// is reports whether Ironic has the operation. It shows the default of multiple, any, for a condition with a loop.
func (o operation) is(found ironic.RuleOperation) bool {
	multiple := o.multiple.ValueString()
	if multiple == "" && found.Multiple == multipleAny {
		multiple = multipleAny
	}
	return o.op.ValueString() == found.Op && multiple == found.Multiple && ironic.SameJSON(o.arguments(), shownArguments(found)) &&
		ironic.SameJSON(decoded(o.loop), found.Loop)
}

// shownArguments returns the arguments without the one that Ironic adds to actions on plugin data.
func shownArguments(found ironic.RuleOperation) any {
	args, is := found.Args.(map[string]any)
	if !is {
		return found.Args // a list, which old rules may have
	}
	out := map[string]any{}
	for key, value := range args {
		if key != "plugin_data" {
			out[key] = value
		}
	}
	return out
}
