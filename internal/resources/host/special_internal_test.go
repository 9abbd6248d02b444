package host

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

// What an import has found in driver_info stays in the plan, with the values that follow from bmc, and without what the provider removes.
func TestRemainingInfo_ofAnImport(t *testing.T) {
	t.Parallel()
	const address, system = "/driver_info/ipmi_address", "/driver_info/redfish_system_id"
	ipmi := map[string]string{"ipmi_address": "192.0.2.5", "deploy_kernel": "http://k"}
	for name, tt := range map[string]struct {
		state  map[string]string
		bmc    string
		before managed
		want   map[string]string
	}{
		"without bmc":  {ipmi, "", managed{"/name"}, ipmi},
		"the same bmc": {ipmi, "ipmi://192.0.2.5", nil, ipmi},
		"another address": {ipmi, "ipmi://192.0.2.6", managed{address}, map[string]string{
			"ipmi_address":  "192.0.2.6",
			"deploy_kernel": "http://k",
		}},
		"another scheme": {ipmi, "redfish://192.0.2.5", managed{address}, map[string]string{"deploy_kernel": "http://k"}},
		"not ours":       {ipmi, "redfish://192.0.2.5", nil, ipmi},
		"nothing left":   {map[string]string{"ipmi_address": "192.0.2.5"}, "", managed{address}, nil},
		"removed system": {map[string]string{"redfish_system_id": "/redfish/v1/Systems/1"}, "redfish://192.0.2.5", managed{system}, nil},
	} {
		state, config := bare(), bare()
		state.DriverInfo = stringMap(tt.state)
		if tt.bmc != "" {
			config.BMC = bmcOf(t, tt.bmc, "a")
		}
		got := state.remainingInfo(t.Context(), config, tt.before)
		want := types.MapNull(types.StringType)
		if tt.want != nil {
			want = framework.MapValue(tt.want)
		}
		if !got.Equal(want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// Facts about the hardware that an import has found stay in the plan while the configuration sets hints of disks, which Ironic stores
// beside them. Facts that were in the configuration leave with it.
func TestPlan_factsOfAnImportStayBesideHints(t *testing.T) {
	t.Parallel()
	facts := map[string]string{"cpu_arch": "x86_64"}
	for _, a := range attributes {
		if a.name != "properties" {
			continue
		}
		for path, want := range map[string]types.Map{
			"/properties/root_device":        stringMap(facts),
			"/properties/skip_block_devices": stringMap(facts),
			"/properties/cpu_arch":           types.MapNull(types.StringType),
		} {
			state, config, m := bare(), bare(), bare()
			state.Properties = stringMap(facts)
			if a.plan(t.Context(), m, config, state, managed{"/name", path}); !m.Properties.Equal(want) {
				t.Errorf("with %s managed before: %v, want %v", path, m.Properties, want)
			}
		}
		return
	}
	t.Fatal("no attribute properties")
}
