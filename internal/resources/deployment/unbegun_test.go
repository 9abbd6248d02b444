package deployment

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// A machine whose first deployment never began is not deployed again: its counters stay.
func TestInPlace_countsWhatIsDeployedAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		state    string
		unbegun  bool
		rebuilds int64
	}{
		"interrupted while it waited":             {"available", true, 0},
		"interrupted, and cleaned by its owner":   {"manageable", true, 0},
		"undeployed by another run":               {"available", false, 1},
		"interrupted, and Ironic deploys it":      {"deploying", true, 0},
		"interrupted, and Ironic has failed":      {"deploy failed", true, 1},
		"interrupted, and it is being undeployed": {"deleting", true, 1},
		"interrupted, and it runs":                {"active", true, 0},
		"its deployment has failed":               {"deploy failed", false, 1},
		"Ironic deploys it for the run before":    {"wait call-back", false, 0},
		"it runs":                                 {"active", false, 0},
	} {
		none := types.MapNull(types.StringType)
		state := &model{
			ProvisionState: types.StringValue(tt.state), Rebuilds: types.Int64Value(0), Restarts: types.Int64Value(0), RebuildTriggers: none, RestartTriggers: none,
			DeploySteps: types.ListNull(types.StringType), Traits: types.SetNull(types.StringType), Capabilities: none, RootDevice: none,
		}
		plan := *state
		p := inPlace{plan: &plan, config: &model{}, state: state, unbegun: tt.unbegun, label: func() string { return "n1" }}
		var diags diag.Diagnostics
		p.decide(t.Context(), &diags)
		if got := plan.Rebuilds.ValueInt64(); got != tt.rebuilds {
			t.Errorf("%s: rebuilds is planned as %d, want %d", name, got, tt.rebuilds)
		}
	}
}
