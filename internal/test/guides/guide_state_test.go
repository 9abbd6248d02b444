package guides_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// These tests follow what guides say about the state: differences from Ironic, and secrets in it.

// The guide about CI records differences, and stops if another client has ended a deployment.
func TestFakeGuide_driftIsRecordedButNoLostDeployment(t *testing.T) {
	t.Parallel()
	skipWithout(t, "jq")
	_, section, _ := strings.Cut(read(t, "../../../templates/guides/ci.md.tmpl"), "\n## Drift\n")
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

	do(t, s, operate.Undeploy(nil, false), "rack1-03") // its allocation remains
	wantStep(hourly, false, `metal_deployment.server["web-1"]: update`)
	wantStep(record, false, `metal_deployment.server["web-1"]`)
	w.Must("apply", "-auto-approve")
	wantStep(record, true, "Apply complete!")

	s.Verb("rack1-03", "deleted", "available") // with its allocation
	wantStep(hourly, false, `metal_deployment.server["web-1"]: delete`)
	wantStep(record, false, "Deployment is gone")
	acctest.Mention(t, w.State(), "metal_deployment")
}

// runStep runs the commands of a step until one fails, and returns what they print.
func runStep(t *testing.T, w *acctest.Workspace, step string) (output string, passes bool) {
	t.Helper()
	// a line that is indented goes on
	for command := range strings.SplitSeq(strings.ReplaceAll(strings.TrimSpace(step), "\n  ", " "), "\n") {
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

// The guide about secrets imports a deployment anew, so that user data leaves the state and the machine keeps its disk.
func TestFakeGuide_userDataLeavesTheStateWithoutARebuild(t *testing.T) {
	t.Parallel()
	const secret = "a token of the cluster"
	s := site.StartFake(t, nil)
	w, main := guideWorkspace(t, s, "secrets")
	for _, variable := range []string{"bmc_password", "join_token"} {
		w.Setenv("TF_VAR_"+variable, guideVariables[variable])
	}
	defer destroy(t, w)
	writeOnly := strings.Replace(read(t, main), "${var.join_token}", secret, 1)
	write(t, main, strings.NewReplacer("    user_data_wo_version = 1\n", "", "user_data_wo ", "user_data ").Replace(writeOnly))
	w.Must("apply", "-auto-approve")
	if !strings.Contains(w.State(), secret) {
		t.Fatal("the state has no user data")
	}
	touched := s.Node("rack1-01")["provision_updated_at"]

	write(t, main, writeOnly)
	if rebuilds := w.Save()["metal_deployment.db"].After["rebuilds"]; rebuilds != 1.0 {
		t.Errorf("the plan without an import shows rebuilds = %v, want 1", rebuilds)
	}
	_, block, _ := strings.Cut(read(t, "../../../templates/guides/secrets.md.tmpl"), "   import {\n")
	block, _, _ = strings.Cut(block, "   }\n")
	write(t, main, writeOnly+"\nimport {\n"+block+"}\n")
	w.Must("state", "rm", "metal_deployment.db")
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 imported, 0 added, 1 changed, 0 destroyed",
		"Imported deployment is recorded only")
	for _, backup := range glob(t, w.Dir, "terraform.tfstate*backup") {
		if err := os.Remove(backup); err != nil {
			t.Fatal(err)
		}
	}
	if now := s.Node("rack1-01")["provision_updated_at"]; now != touched || strings.Contains(w.State(), secret) {
		t.Errorf("the machine was at rest since %v and is since %v; the state is\n%s", touched, now, w.State())
	}
	write(t, main, writeOnly)
	acctest.NoChanges(t, w)
}
