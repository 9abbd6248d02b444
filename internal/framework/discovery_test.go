package framework_test

import (
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

func TestKeys_ValidateMap(t *testing.T) {
	t.Parallel()
	keys := framework.Keys{"least": {Required: true, Validators: []validator.String{framework.WholeNumber}}, "text": {}}
	of := func(elements map[string]attr.Value) types.Map { return types.MapValueMust(types.StringType, elements) }
	for _, tt := range []struct {
		name  string
		value types.Map
		want  []string // paths of the errors
	}{
		{"null", types.MapNull(types.StringType), nil},
		{"unknown", types.MapUnknown(types.StringType), nil},
		{"valid", of(map[string]attr.Value{"least": types.StringValue("16"), "text": types.StringValue("")}), nil},
		{"optional key is null", of(map[string]attr.Value{"least": types.StringValue("16"), "text": types.StringNull()}), nil},
		{"required key is not known yet", of(map[string]attr.Value{"least": types.StringUnknown()}), nil},
		{"required key is null", of(map[string]attr.Value{"least": types.StringNull()}), []string{"filter"}},
		{"required key is missing", of(nil), []string{"filter"}},
		{
			"unknown key", of(map[string]attr.Value{"least": types.StringValue("16"), "lest": types.StringNull()}),
			[]string{`filter["lest"]`},
		},
		{"wrong value", of(map[string]attr.Value{"least": types.StringValue("1.5")}), []string{`filter["least"]`}},
	} {
		resp := &validator.MapResponse{}
		keys.ValidateMap(t.Context(), validator.MapRequest{Path: path.Root("filter"), ConfigValue: tt.value}, resp)
		var got []string
		for _, d := range resp.Diagnostics.Errors() {
			if with, ok := d.(interface{ Path() path.Path }); ok {
				got = append(got, with.Path().String())
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: errors at %q, want %q: %v", tt.name, got, tt.want, resp.Diagnostics)
		}
	}
}
