package host

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// The CLI shows only the resource of an apply error. Programs that read its JSON output see the attribute.
func TestReportTaken_namesAttribute(t *testing.T) {
	t.Parallel()
	byBMC := &model{BMC: types.ObjectUnknown(nil)}
	for _, tt := range []struct {
		what   hosts.Sharing
		config *model
		want   path.Path
	}{
		{hosts.SharedName, &model{}, path.Root("name")},
		{hosts.SharedBMC, &model{}, path.Root("driver_info")},
		{hosts.SharedBMC, byBMC, path.Root("bmc").AtName("address")},
		{hosts.SharedAddress, &model{}, path.Root("ports").AtMapKey("52:54:00:00:00:01")},
	} {
		var diags diag.Diagnostics
		reportTaken(t.Context(), &diags, tt.config, "enroll node",
			(&hosts.Taken{What: tt.what, Value: "52:54:00:00:00:01", Node: &ironic.Node{UUID: "u"}}).Err())
		at, ok := diags[0].(diag.DiagnosticWithPath)
		if !ok || !at.Path().Equal(tt.want) {
			t.Errorf("%s: the error is %v, want it at %s", tt.what, diags, tt.want)
		}
	}
}
