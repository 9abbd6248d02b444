package provision_test

import (
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// The note on the node tells whether an inspection that triggers requested is still to come, whatever became of the run.
func TestInspection_noteTellsWhetherItSucceeded(t *testing.T) {
	t.Parallel()
	first := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	second := first.Add(time.Minute)
	triggers := provision.Fingerprint(map[string]string{"recabled": "2026-11-20"})
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
		provision.RequestInspection(&p, node, triggers)
		node.Extra, node.InspectionFinishedAt = map[string]any{"terraform_metal_inspection": p[0].Value}, tt.after
		if got, succeeded := provision.RequestedInspection(node); got != triggers || succeeded != tt.succeeded {
			t.Errorf("%s: triggers %q, succeeded %v", name, got, succeeded)
		}
		var again ironic.Patch
		if provision.RequestInspection(&again, node, triggers); len(again) > 0 {
			t.Errorf("%s: the request is noted again: %v", name, again)
		}
	}
	if provision.Fingerprint(map[string]string{"a": "1"}) == provision.Fingerprint(map[string]string{"a": "2"}) {
		t.Error("different triggers have one fingerprint")
	}
}
