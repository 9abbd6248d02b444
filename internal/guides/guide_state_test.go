package guides_test

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest/site"
)

// These tests follow what guides say about the state: differences from Ironic, and secrets in it.

// The guide about CI records differences, and stops if another client has ended a deployment.
func TestFakeGuide_driftIsRecordedButNoLostDeployment(t *testing.T) {
	t.Parallel()
	skipWithoutJQ(t)
	_, section, _ := strings.Cut(read(t, "../../templates/guides/ci.md"), "\n## Drift\n")
	blocks := shellBlock.FindAllStringSubmatch(section, 2)
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of commands", len(blocks))
	}
	s := site.StartFake(t, nil)
	enrollRack(t, s)
	w, _ := guideWorkspace(t, s, "brownfield")
	defer destroy(t, w)
	w.Must("apply", "-auto-approve")
	w.RealCLI() // for resource_drift
	hourly, record := blocks[0][1], blocks[1][1]
	wantStep := func(step string, passes bool, says string) {
		t.Helper()
		output, ok := runStep(t, w, step)
		if ok != passes || !strings.Contains(output, says) {
			t.Errorf("passed: %v, want %v and %q\n%s\n%s", ok, passes, says, step, output)
		}
	}

	s.Must(http.MethodPut, "nodes/rack1-01/maintenance", map[string]any{})
	wantStep(hourly, false, `metal_host.rack1["rack1-01"]: update`)
	wantStep(record, true, "Apply complete!")
	wantStep(hourly, true, "true")

	s.Verb("rack1-03", "deleted", "available") // with its allocation
	wantStep(hourly, false, `metal_deployment.server["web-1"]: delete`)
	wantStep(record, false, "Deployment is gone")
	acctest.Mention(t, w.State(), "metal_deployment")
}

// runStep runs the commands of a step until one fails, and returns what they print.
func runStep(t *testing.T, w *acctest.Workspace, step string) (output string, passes bool) {
	t.Helper()
	for command := range strings.SplitSeq(strings.ReplaceAll(strings.TrimSpace(step), " && ", "\n"), "\n") {
		arguments, isTerraform := strings.CutPrefix(command, "terraform ")
		if !isTerraform {
			shell := exec.CommandContext(t.Context(), "bash", "-c", command) //nolint:gosec // from a guide
			shell.Dir = w.Dir
			said, err := shell.CombinedOutput()
			if output += string(said); err != nil {
				return output, false
			}
			continue
		}
		arguments, file, isKept := strings.Cut(arguments, " > ")
		said, code := w.Run(strings.Fields(arguments)...)
		if isKept {
			write(t, filepath.Join(w.Dir, file), said)
		} else {
			output += said
		}
		if code != 0 {
			return output, false
		}
	}
	return output, true
}
