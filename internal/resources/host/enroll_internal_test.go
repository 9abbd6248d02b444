package host

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/identity"
)

// The CLI shows only the resource of an apply error. Programs that read its JSON output see the attribute.
func TestReportTaken_namesAttribute(t *testing.T) {
	t.Parallel()
	byBMC := &model{BMC: types.ObjectUnknown(nil)}
	for _, tt := range []struct {
		what   identity.Kind
		config *model
		want   path.Path
	}{
		{identity.Name, &model{}, path.Root("name")},
		{identity.BMC, &model{}, path.Root("driver_info")},
		{identity.BMC, byBMC, path.Root("bmc").AtName("address")},
		{identity.Address, &model{}, path.Root("ports").AtMapKey("52:54:00:00:00:01")},
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
