package framework_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// stepList returns a list of steps of the interface "bios", by position. Empty arguments are null.
func stepList(t *testing.T, steps ...[2]string) types.List {
	t.Helper()
	kind, _ := framework.Steps(framework.ByPosition, schema.ListNestedAttribute{}).NestedObject.Type().(types.ObjectType)
	var elements []attr.Value
	for _, step := range steps {
		args := framework.JSONNull()
		if step[1] != "" {
			args = framework.JSONValue(step[1])
		}
		elements = append(elements, types.ObjectValueMust(kind.AttrTypes, map[string]attr.Value{
			"interface": types.StringValue("bios"), "step": types.StringValue(step[0]), "args": args,
		}))
	}
	return types.ListValueMust(kind, elements)
}

func TestSteps_refreshKeepsSecretsAndSpelling(t *testing.T) {
	t.Parallel()
	state := [][2]string{{"a", `{ "password": "x", "list": [{"token": "y"}], "text": "--password z", "n": 1 }`}, {"b", ""}}
	found := func(n float64) []ironic.Step {
		return []ironic.Step{
			{Interface: "bios", Step: "a", Order: 9, Args: map[string]any{
				"password": ironic.Masked, "list": []any{map[string]any{"token": ironic.Masked}}, "text": "--password " +
					ironic.Masked, "n": n,
			}},
			{Interface: "bios", Step: "b", Order: 5},
		}
	}
	for name, tt := range map[string]struct {
		found []ironic.Step
		want  types.List
	}{
		"unchanged": {found(1), stepList(t, state...)},
		"a number": {found(2), stepList(t, [2]string{"a", `{"list":[{"token":"y"}],"n":2,"password":"x","text":"--password z"}`},
			state[1])},
		"the order":   {[]ironic.Step{found(1)[1], found(1)[0]}, stepList(t, state[1], state[0])},
		"a step less": {found(1)[1:], stepList(t, state[1])},
		"another step": {
			[]ironic.Step{{Interface: "bios", Step: "c", Args: map[string]any{"token": ironic.Masked}}},
			stepList(t, [2]string{"c", `{"token":"******"}`}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := framework.RefreshSteps(t.Context(), framework.ByPosition, stepList(t, state...), tt.found)
			if !got.Equal(tt.want) {
				t.Errorf("steps = %s, want %s", got, tt.want)
			}
		})
	}
}

// The order of steps by priority does not matter: the state keeps the user's, whatever Ironic's database returns.
func TestSteps_refreshKeepsTheOrderOfPriorities(t *testing.T) {
	t.Parallel()
	kind, _ := framework.Steps(framework.ByPriority, schema.ListNestedAttribute{}).NestedObject.Type().(types.ObjectType)
	list := func(names ...string) types.List {
		var elements []attr.Value
		for _, name := range names {
			elements = append(elements, types.ObjectValueMust(kind.AttrTypes, map[string]attr.Value{
				"interface": types.StringValue("bios"), "step": types.StringValue(name), "args": framework.JSONNull(),
				"priority": types.Int64Value(int64(name[0])),
			}))
		}
		return types.ListValueMust(kind, elements)
	}
	var found []ironic.Step
	for _, name := range []string{"d", "a", "c", "b"} {
		found = append(found, ironic.Step{Interface: "bios", Step: name, Priority: int64(name[0])})
	}
	got := framework.RefreshSteps(t.Context(), framework.ByPriority, list("a", "b"), found)
	if want := list("a", "b", "d", "c"); !got.Equal(want) {
		t.Errorf("steps = %s, want %s", got, want)
	}
}
