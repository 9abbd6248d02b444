package host

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// A plan that destroys hosts says of each what becomes of its node, by the value of on_destroy that was applied.
func TestWarnDestroy_saysWhatBecomesOfTheNode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		onDestroy, control, state string
		foreign                   bool
		removes, refused          bool
		summary                   string
	}{
		{"", "", "available", false, true, false, removesSummary},
		{"delete", "", "active", false, true, false, removesSummary}, // its deployment may be destroyed before
		{"forget", "", "active", false, false, false, staysSummary},
		{"", "", "enroll", true, false, false, staysSummary},
		{"", powerByAgent, "available", false, true, false, removesSummary},
		{"", powerByAgent, "active", false, false, true, "Deployed host cannot be removed"},
		{"forget", powerByAgent, "active", false, false, false, staysSummary},
	} {
		m := &model{Name: types.StringValue("rack1-01"), OnDestroy: types.StringNull(), PowerControl: types.StringValue(tt.control), ProvisionState: types.StringValue(tt.state)}
		if tt.onDestroy != "" {
			m.OnDestroy = types.StringValue(tt.onDestroy)
		}
		var diags diag.Diagnostics
		removes := m.warnDestroy(tt.foreign, &diags)
		if len(diags) != 1 || removes != tt.removes || diags.HasError() != tt.refused || diags[0].Summary() != tt.summary || !strings.Contains(diags[0].Detail(), "rack1-01") {
			t.Errorf("%+v: removes %v, %v", tt, removes, diags)
		}
	}
}
