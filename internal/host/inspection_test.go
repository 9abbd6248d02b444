package host_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// The note on the node tells whether an inspection that triggers requested is still to come, whatever became of the run.
func TestInspection_noteTellsWhetherItSucceeded(t *testing.T) {
	t.Parallel()
	first := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	second := first.Add(time.Minute)
	triggers := host.Fingerprint(map[string]string{"recabled": "2026-11-20"})
	for name, tt := range map[string]struct {
		before, after *time.Time
		succeeded     bool
	}{
		"not begun":                {&first, &first, false},
		"in progress or failed":    {&first, nil, false},
		"succeeded":                {&first, &second, true},
		"never inspected before":   {nil, &first, true},
		"never inspected, not yet": {nil, nil, false},
	} {
		node := &ironic.Node{InspectionFinishedAt: tt.before}
		var p ironic.Patch
		host.RequestInspection(&p, node, triggers)
		node.Extra, node.InspectionFinishedAt = map[string]any{"terraform_metal_inspection": p[0].Value}, tt.after
		if got, succeeded := host.RequestedInspection(node); got != triggers || succeeded != tt.succeeded {
			t.Errorf("%s: triggers %q, succeeded %v", name, got, succeeded)
		}
		var again ironic.Patch
		if host.RequestInspection(&again, node, triggers); len(again) > 0 {
			t.Errorf("%s: the request is noted again: %v", name, again)
		}
	}
	if host.Fingerprint(map[string]string{"a": "1"}) == host.Fingerprint(map[string]string{"a": "2"}) {
		t.Error("different triggers have one fingerprint")
	}
}

// Ironic notes the end of an inspection in whole seconds. If two inspections end within one, the run says that the second has
// succeeded; otherwise the times tell, and it sends nothing.
func TestInspection_twoWithinASecond(t *testing.T) {
	t.Parallel()
	const at = "2026-11-20T12:00:00+00:00"
	triggers := host.Fingerprint(map[string]string{"recabled": "2026-11-20"})
	for name, tt := range map[string]struct {
		before string
		writes int
	}{
		"within a second": {"2026-11-20T12:00:00Z", 1},
		"a minute apart":  {"2026-11-20T11:59:00Z", 0},
	} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := ironictest.Fleet(1)
			fake.Set("node-000", "inspection_finished_at", at)
			fake.Set("node-000", "extra", map[string]any{"terraform_metal_inspection": map[string]any{
				"triggers": triggers,
				"before":   tt.before,
			}})
			machine, err := sitetest.NewClient(fake).Machine(t.Context(), ironictest.NodeOf(t, fake, "node-000").UUID)
			if err != nil {
				t.Fatal(err)
			}
			if err := host.EndInspection(t.Context(), machine); err != nil {
				t.Fatal(err)
			}
			if got, succeeded := host.RequestedInspection(machine.Node()); got != triggers || !succeeded {
				t.Errorf("%s: triggers %q, succeeded %t", name, got, succeeded)
			}
			if n := ironictest.Count(fake, http.MethodPatch, "/v1/nodes/"); n != tt.writes {
				t.Errorf("%s: %d writes, want %d", name, n, tt.writes)
			}
		})
	}
}
