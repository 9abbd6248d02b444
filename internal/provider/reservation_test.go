package provider_test

import (
	"strings"
	"testing"
	"time"
)

// The plan of a destruction says if it finishes the quarantine of a killed run, and says nothing of one that another client has overtaken.
func TestReservation_planOfDestroyTellsQuarantine(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	s.fake.AddFleet(2, "baremetal")
	failedAt := time.Now().UTC().Truncate(time.Second).Format(time.RFC3339)
	for kind, config := range map[string]map[string]any{
		"metal_allocation":       {"name": "web", "resource_class": "baremetal"},
		"metal_allocation_group": {"name": "db", "resource_class": "baremetal", "size": 1},
	} {
		made, diagnostics := s.apply(kind, config, nil)
		if failed(diagnostics) {
			t.Fatal(describe(diagnostics))
		}
		var node, allocation string
		for _, n := range s.fake.Nodes() {
			if n.InstanceUUID != "" && n.ProvisionState == "available" {
				node, allocation = n.UUID, n.InstanceUUID
			}
		}
		s.fake.Set(node, "retired", true)
		s.fake.Set(node, "provision_updated_at", failedAt)
		s.fake.Set(node, "extra", map[string]any{"terraform_metal_quarantine": map[string]any{
			"allocation": "web", "instance": allocation, "since": failedAt, "failed": failedAt,
		}})
		for state, want := range map[string]bool{"deploy failed": true, "active": false} {
			s.fake.Set(node, "provision_state", state)
			s.configure(nil) // a new run
			if says := describe(s.planDestroy(made)); strings.Contains(says, "Quarantine is finished") != want {
				t.Errorf("%s, node in state %s: %q", kind, state, says)
			}
		}
	}
}
