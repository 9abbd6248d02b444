package provider_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// The first plan of a discovery names a machine, and the host of that name takes it over without an import: the plan of the host says so,
// although the node has no name yet. So does the plan after the discovery was applied.
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
		if !strings.Contains(says, "Discovered node is taken over") ||
			strings.Contains(says, "loses the data") != (bmc["target_state"] != nil) {
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

// A run was killed while a machine was being deployed, and its state has nothing: a plan of the host or of the allocation, which knows
// neither yet, also tells of the deployment that goes on.
func TestTakeOver_planFindsAllThatAKilledRunHasBegun(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	host := map[string]any{
		"name": "h1", "driver": "fake-hardware", "resource_class": "baremetal", "target_state": "available",
		"ports": map[string]any{"52:54:00:00:00:01": map[string]any{}},
	}
	allocation := map[string]any{"name": "web", "resource_class": "baremetal"}
	made := func(kind string, config map[string]any) *instance {
		t.Helper()
		i, diagnostics := s.apply(kind, config, nil)
		if failed(diagnostics) {
			t.Fatal(describe(diagnostics))
		}
		return i
	}
	made("metal_host", host)
	reserved := made("metal_allocation", allocation)
	node := s.text(reserved, "node_id")
	made("metal_deployment", map[string]any{
		"node_id": node, "allocation_id": s.text(reserved, "id"),
		"image": map[string]any{"url": "http://192.0.2.1/v1.qcow2", "checksum": strings.Repeat("a", 64)},
	})

	now, _ := s.fake.Node(node)
	extra, _ := now.Raw["extra"].(map[string]any)
	runs, _ := extra["terraform_metal_reservation"].(map[string]any)
	for _, mark := range runs {
		delete(mark.(map[string]any), "done")
	}
	if len(runs) != 1 {
		t.Fatalf("the node has no mark of the deployment: %v", extra)
	}
	s.fake.Set(node, "extra", extra)
	s.fake.Set(node, "provision_state", "deploying")

	s.configure(nil) // a new run
	for kind, config := range map[string]map[string]any{"metal_host": host, "metal_allocation": allocation} {
		for run, want := range []bool{true, false} { // once in a run
			says := s.shown(kind, config, nil)
			if got := strings.Contains(says, "has also begun a deployment on node h1") &&
				strings.Contains(says, "Interrupted creation is continued"); got != want {
				t.Errorf("plan %d of %s says %q; want it to tell of the deployment: %t", run+1, kind, says, want)
			}
		}
	}
}
