package doctor_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/doctor"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/show"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

// The doctor lists nodes with some fields, metal show reads one with all: their advice is the same.
func TestDoctor_advisesAsShow(t *testing.T) {
	t.Parallel()
	s := newSite()
	ironictest.AsOther(t, s.ironic, http.MethodPost, "allocations", map[string]any{
		"name": "db-1", "resource_class": "baremetal",
		"candidate_nodes": []string{"node-000"},
	})
	client := ironic.New(s.options.Site.Config, ironic.Polls{})
	for _, state := range states.All() {
		if !states.Failed(ironic.State(state)) {
			continue
		}
		for field, value := range map[string]any{
			"provision_state": state, "last_error": "Timeout reached while waiting for callback: IPMI call failed: power status.",
			"console_enabled": true,
			"driver_info":     map[string]any{"ipmi_address": "192.0.2.7", "ipmi_username": "admin"},
		} {
			s.ironic.Set("node-000", field, value)
		}
		node, err := client.Node(t.Context(), "node-000")
		if err != nil || node.AllocationUUID == "" {
			t.Fatalf("%v: %+v", err, node)
		}
		want(t, s.run(t), "machine node-000", doctor.Problem, rest.OneLine(strings.Join(show.NextSteps(node, client.ServerNow()), " ")))
	}
}
