package failure_test

import (
	"context"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
)

// Who stops a run must know whether something goes on without it.
func TestExplainAction_interrupted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		node *ironic.Node
		want string
	}{
		"not read": {nil, "Nothing was started."},
		"at rest": {
			&ironic.Node{Name: "n", ProvisionState: "available"},
			"Nothing was in progress when Ironic was last asked (node n (): available)",
		},
		"in progress": {
			&ironic.Node{Name: "n", ProvisionState: "clean wait"},
			"Ironic goes on with what was started (node n (): clean wait)",
		},
		"changing power": {
			&ironic.Node{Name: "n", ProvisionState: "active", TargetPowerState: "power off"},
			"Ironic goes on with what was started",
		},
	} {
		if _, detail := failure.ExplainAction("inspect node n", tt.node, context.Canceled, ""); !strings.Contains(detail, tt.want) {
			t.Errorf("%s: %q", name, detail)
		}
		if tt.node == nil {
			continue
		}
		if _, text := failure.ExplainAction("", tt.node, context.Canceled, "It was to be back. Run x."); !strings.HasSuffix(text,
			"). It was to be back. Run x.") {
			t.Errorf("%s, with something left: %q", name, text)
		}
	}
}
