package operate

import (
	"reflect"
	"testing"

	"github.com/spf13/cobra"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// Parameters go with steps of one's own, and only those of a burn-in may be set. Without flags, the recipe is that of the node.
func TestRecipe_fromFlags(t *testing.T) {
	t.Parallel()
	steps := []ironic.CleanStep{{Interface: "deploy", Step: "burnin_cpu"}}
	for name, tt := range map[string]struct {
		flags      orderFlags
		parameters string
		want       notes.Recipe
		refused    bool
	}{
		"none":       {orderFlags{}, "", notes.Recipe{}, false},
		"steps":      {orderFlags{steps: "deploy.burnin_cpu"}, "", notes.Recipe{Steps: steps}, false},
		"a runbook":  {orderFlags{runbook: "burn-in"}, "", notes.Recipe{Runbook: "burn-in"}, false},
		"both":       {orderFlags{steps: "deploy.burnin_cpu", runbook: "burn-in"}, "", notes.Recipe{}, true},
		"parameters": {orderFlags{}, `{"agent_burnin_cpu_timeout": 60}`, notes.Recipe{}, true},
		"steps with parameters": {orderFlags{steps: "deploy.burnin_cpu"}, `{"agent_burnin_cpu_timeout": "60"}`, notes.Recipe{
			Steps: steps, Parameters: map[string]any{"agent_burnin_cpu_timeout": "60"},
		}, false},
		"other keys":            {orderFlags{steps: "deploy.burnin_cpu"}, `{"agent_burnin_x": 60, "ipmi_address": "evil"}`, notes.Recipe{}, true},
		"no object":             {orderFlags{steps: "deploy.burnin_cpu"}, `["agent_burnin_cpu_timeout"]`, notes.Recipe{}, true},
		"no JSON":               {orderFlags{steps: "deploy.burnin_cpu"}, "agent_burnin_cpu_timeout=60", notes.Recipe{}, true},
		"a step without a name": {orderFlags{steps: "burnin_cpu"}, "", notes.Recipe{}, true},
	} {
		got, err := tt.flags.recipe(&cobra.Command{}, tt.parameters)
		if (err != nil) != tt.refused || err == nil && !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
