package guides_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest/site"
)

// checkPlan runs the policy check of the guide "Protect machines" on the JSON of a saved plan.
func checkPlan(t *testing.T, w *acctest.Workspace, approved ...string) (output string, allowed bool) {
	t.Helper()
	w.Must("plan", "-out=saved")
	plan := filepath.Join(w.Dir, "plan.json")
	write(t, plan, w.Must("show", "-json", "saved"))
	text, err := exec.CommandContext(t.Context(), examples+"/policy/check-plan.sh", append([]string{plan}, approved...)...).CombinedOutput() //nolint:gosec // ours
	return string(text), err == nil
}

// A plan that Terraform could not finish lists only some of the machines that it wipes. Only a complete plan is allowed.
func TestPolicy_refusesWhatIsNoCompletePlan(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("jq is not installed")
	}
	for name, tc := range map[string]struct {
		content string
		status  int
	}{
		"a plan without changes": {`{"format_version":"1.2","planned_values":{"root_module":{}},"errored":false}`, 0},
		"an empty file":          {"", 2},
		"a plan that has failed": {`{"format_version":"1.2","planned_values":{"root_module":{}},"errored":true}`, 2},
		"a state":                {`{"format_version":"1.0","values":{"root_module":{}}}`, 2},
		"half a plan":            {`{"format_version":"1.2","planned_values":{`, 2},
	} {
		plan := filepath.Join(t.TempDir(), "plan.json")
		write(t, plan, tc.content)
		command := exec.CommandContext(t.Context(), examples+"/policy/check-plan.sh", plan)
		output, err := command.CombinedOutput()
		if status := command.ProcessState.ExitCode(); status != tc.status {
			t.Errorf("%s: status %d, want %d (%v)\n%s", name, status, tc.status, err, output)
		}
	}
}

func TestAccPolicy_findsEachWipeAndRestart(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("jq is not installed")
	}
	s := site.Start(t, nil)
	var nodes []string
	for i := range 7 {
		nodes = append(nodes, site.AddNode(t, s, fmt.Sprintf("n%d", i), nil))
	}
	deployment := func(i int, settings ...string) string {
		text := acctest.Deployment(acctest.Quoted(nodes[i]), settings...)
		return strings.Replace(text, `"d"`, fmt.Sprintf("\"d%d\"", i), 1)
	}
	config := func(deployments ...string) string {
		return s.Provider() + "resource \"terraform_data\" \"x\" {\n  input = \"a\"\n}\n" + strings.Join(deployments, "")
	}
	v1, v2 := acctest.Image("v1"), acctest.Image("v2")
	w := acctest.NewWorkspace(t, config(deployment(0, v1), deployment(1, v1, `restart_triggers = { a = "0" }`), deployment(2, v1), deployment(3, v1), deployment(4, v1), deployment(5, v1),
		deployment(6, v1, `on_destroy = "forget"`)))
	if output, allowed := checkPlan(t, w); !allowed || output != "" {
		t.Errorf("new deployments are refused: %s", output)
	}
	w.Must("apply", "saved")
	changed := []string{
		deployment(0, v2), deployment(1, v1, `restart_triggers = { a = "1" }`), deployment(2, v2, `on_change = "replace"`), // 3 is destroyed
		deployment(4, v1, `config_drive = { user_data = terraform_data.y.output }`), deployment(5, v1, `max_attempts = 2`), // 6 is forgotten
		"resource \"terraform_data\" \"y\" {\n  input = \"b\"\n}\n",
	}
	w.Configure(config(changed...))
	output, allowed := checkPlan(t, w)
	want := "metal_deployment.d0: its disk is written again\nmetal_deployment.d1: is restarted\nmetal_deployment.d2: is undeployed\n" +
		"metal_deployment.d3: is undeployed\nmetal_deployment.d4: its disk is written again\n"
	if allowed || output != want {
		t.Errorf("found is\n%swant\n%s", output, want)
	}
	approved := []string{"metal_deployment.d0", "metal_deployment.d1", "metal_deployment.d2", "metal_deployment.d3", "metal_deployment.d4"}
	if output, allowed := checkPlan(t, w, approved...); !allowed || output != "" {
		t.Errorf("approved changes are refused: %s", output)
	}
	w.Must("apply", "saved")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
	s.Verb(nodes[6], "deleted", "available")
}
