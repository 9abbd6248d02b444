package provider_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
)

// The first plan of a discovery names a machine, and the host of that name takes it over without an import: the plan of the host says so, although
// the node has no name yet. So does the plan after the discovery was applied.
func TestTakeOver_firstPlanOfHostByName(t *testing.T) {
	t.Parallel()
	for _, bmc := range []map[string]any{
		{"driver": "redfish", "driver_info": map[string]any{"redfish_address": "https://192.0.2.9"}, "target_state": "available"},
		{"driver": "ipmi"}, // without a BMC it stays enrolled
	} {
		s := startSession(t, nil)
		s.fake.Discover(fakeironic.SampleInventory(1))
		rack := map[string]any{"name": "rack12", "name_template": map[string]any{"prefix": "r12-", "hardware_details": "serial-number"}}
		host := map[string]any{"name": "r12-RK000001"}
		for key, value := range bmc {
			host[key] = value
		}
		plan := func() string {
			answer, err := s.server.PlanResourceChange(t.Context(), s.planRequest("metal_host", host, nil))
			if err != nil || failed(answer.Diagnostics) {
				t.Fatal(err, describe(answer.Diagnostics))
			}
			return describe(answer.Diagnostics)
		}
		if _, err := s.server.PlanResourceChange(t.Context(), s.planRequest("metal_discovery_import", rack, nil)); err != nil {
			t.Fatal(err)
		}
		says := plan()
		if !strings.Contains(says, "Discovered node is taken over") || strings.Contains(says, "loses the data") != (bmc["target_state"] != nil) {
			t.Errorf("the first plan says %q", says)
		}
		if _, diagnostics := s.apply("metal_discovery_import", rack, nil); failed(diagnostics) {
			t.Fatal(describe(diagnostics))
		}
		s.configure(nil) // a new run
		if says := plan(); !strings.Contains(says, "Discovered node is taken over") {
			t.Errorf("the second plan says %q", says)
		}
	}
}
