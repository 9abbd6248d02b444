package deployment

import (
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func TestFormerNames(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		former   []string
		was, now string
		want     []string
	}{
		"the first look":         {nil, "", "a", nil},
		"the same name":          {nil, "a", "a", nil},
		"a new name":             {nil, "a", "b", []string{"a"}},
		"another one":            {[]string{"a"}, "b", "c", []string{"a", "b"}},
		"the former name again":  {[]string{"a"}, "b", "a", []string{"b"}},
		"nothing new since then": {[]string{"a"}, "b", "b", []string{"a"}},
	} {
		if got := formerNames(tt.former, tt.was, tt.now); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// A config drive that follows a rename of the node deploys nothing, unless something else does.
func TestInPlace_keepsName(t *testing.T) {
	t.Parallel()
	none, trigger := types.MapNull(types.StringType), types.MapValueMust(types.StringType, map[string]attr.Value{"a": types.StringValue("1")})
	kind, _ := configDriveSchema().GetType().(types.ObjectType)
	drive := func(hostname, data string) types.Object {
		m := configDriveModel{Hostname: types.StringValue(hostname), UserData: types.StringValue(data), MetaData: jsontypes.NewNormalizedNull(), NetworkData: jsontypes.NewNormalizedNull(), VendorData: jsontypes.NewNormalizedNull()}
		object, diags := types.ObjectValueFrom(t.Context(), kind.AttrTypes, m)
		if diags.HasError() {
			t.Fatal(diags)
		}
		return object
	}
	for name, tt := range map[string]struct {
		names    []string
		drive    types.Object
		triggers types.Map
		keeps    bool
	}{
		"it follows the rename":               {[]string{"n1"}, drive("n2", "host n2"), none, true},
		"it follows one of several":           {[]string{"n0", "n1"}, drive("n2", "host n2"), none, true},
		"no rename":                           {nil, drive("n2", "host n2"), none, false},
		"another name than that of the node":  {[]string{"n1"}, drive("n3", "host n3"), none, false},
		"it follows in one place only":        {[]string{"n1"}, drive("n2", "host n1"), none, false},
		"something else changes, too":         {[]string{"n1"}, drive("n2", "host n2\n"), none, false},
		"the machine is deployed anew anyway": {[]string{"n1"}, drive("n2", "host n2"), trigger, false},
		"nothing changes":                     {[]string{"n0"}, drive("n1", "host n1"), none, true},
	} {
		state := &model{
			ProvisionState: types.StringValue("active"), RebuildTriggers: none, RestartTriggers: none, ConfigDrive: drive("n1", "host n1"),
			DeploySteps: types.ListNull(types.StringType), Traits: types.SetNull(types.StringType), Capabilities: none, RootDevice: none,
		}
		plan := *state
		plan.ConfigDrive, plan.RebuildTriggers = tt.drive, tt.triggers
		p := inPlace{plan: &plan, config: &plan, state: state, names: tt.names, seen: sight{Name: "n2"}, label: func() string { return "n2" }}
		var diags diag.Diagnostics
		p.keepName(t.Context(), &diags)
		if keeps := plan.ConfigDrive.Equal(state.ConfigDrive); keeps != tt.keeps {
			t.Errorf("%s: the plan keeps the config drive: %v, want %v", name, keeps, tt.keeps)
		}
	}
}
