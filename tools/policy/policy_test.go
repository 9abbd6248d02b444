// Package policy_test runs both checks of examples/policy on the same plans.
package policy_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/format"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
)

const policies = "../../examples/policy/"

// check runs check-plan.sh on a plan, and returns its lines and exit status.
func check(t *testing.T, plan string, options ...string) (lines []string, status int) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), policies+"check-plan.sh", append(options, plan)...).Output()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	if failed != nil {
		status = failed.ExitCode()
	}
	return slices.DeleteFunc(strings.Split(string(output), "\n"), func(line string) bool { return line == "" }), status
}

// deny returns the lines of policy.rego about a plan, sorted.
func deny(t *testing.T, plan string, wipesOnly, new bool, allow ...string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(plan)
	if err != nil {
		t.Fatal(err)
	}
	var input any
	if json.Unmarshal(text, &input) != nil {
		t.Fatalf("%s is not JSON", plan)
	}
	module, err := os.ReadFile(policies + "policy.rego")
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]any{"wipes_only": wipesOnly, "new": new, "allow": append([]string{}, allow...)}
	results, err := rego.New(
		rego.Query("data.metal.deny[line]"), rego.Module("policy.rego", string(module)), rego.Strict(true), rego.Input(input),
		rego.Store(inmem.NewFromObject(map[string]any{"metal_policy": settings})),
	).Eval(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range results {
		line, _ := result.Bindings["line"].(string)
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// Both checks find the same in each plan, in every mode: what the golden file beside the plan has. internal/test/guides makes plans and
// golden files.
func TestPolicies_agree(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("jq is not installed")
	}
	plans, err := filepath.Glob("testdata/*.json")
	if err != nil || len(plans) == 0 {
		t.Fatalf("there are no plans: %v", err)
	}
	for _, plan := range plans {
		t.Run(filepath.Base(plan), func(t *testing.T) {
			t.Parallel()
			golden, err := os.ReadFile(strings.TrimSuffix(plan, "json") + "txt")
			if err != nil {
				t.Fatal(err)
			}
			all := wantSame(t, plan, false)
			wipes := wantSame(t, plan, true)
			if found := strings.Join(append(append(all, "--wipes-only"), wipes...), "\n") + "\n"; found != string(golden) {
				t.Errorf("found is\n%s\nwant\n%s", found, golden)
			}
			var addresses []string
			for _, line := range all {
				address := line[:strings.LastIndex(line, ": ")]
				addresses = append(addresses, address)
				if len(wantSame(t, plan, false, address)) != len(all)-1 {
					t.Errorf("%s is allowed, and found", address)
				}
			}
			if found := wantSame(t, plan, false, addresses...); len(found) > 0 {
				t.Errorf("all is allowed, and found are %q", found)
			}
		})
	}
}

// wantSame fails the test unless both checks find the same in a plan, and returns that.
func wantSame(t *testing.T, plan string, wipesOnly bool, allow ...string) (lines []string) {
	t.Helper()
	var options []string
	if wipesOnly {
		options = append(options, "--wipes-only")
	}
	for _, address := range allow {
		options = append(options, "--allow", address)
	}
	lines, status := check(t, plan, options...)
	denied := deny(t, plan, wipesOnly, false, allow...)
	if !slices.Equal(lines, denied) || status != min(len(lines), 1) {
		t.Errorf("%s %v\ncheck-plan.sh ends with %d and finds %q\npolicy.rego finds %q", plan, options, status, lines, denied)
	}
	return lines
}

// Both checks count new hosts that are cleaned, if they are asked to, and those of which the plan cannot tell yet.
func TestPolicies_countNewHosts(t *testing.T) {
	t.Parallel()
	host := func(name, actions, after, unknown string) string {
		return `{"address":"metal_host.` + name + `","mode":"managed","type":"metal_host","change":{"actions":[` + actions +
			`],"before":null,"after":{` + after + `},"after_unknown":{` + unknown + `}}}`
	}
	plan := filepath.Join(t.TempDir(), "plan.json")
	text := `{"format_version":"1.2","planned_values":{},"resource_changes":[` + strings.Join([]string{
		host("cleaned", `"create"`, `"cleanings":1`, ``), host("kept", `"create"`, `"cleanings":0`, ``),
		host("open", `"create"`, ``, `"cleanings":true`), host("again", `"delete","create"`, `"cleanings":1`, ``),
		strings.Replace(host("other", `"create"`, `"cleanings":1`, ``), `"type":"metal_host"`, `"type":"metal_deployment"`, 1),
	}, ",") + `]}`
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const cleaned = "is new, and is cleaned"
	want := []string{
		"metal_host.again: " + cleaned + ", is removed from Ironic", "metal_host.cleaned: " + cleaned, "metal_host.open: " + cleaned,
	}
	if lines, status := check(t, plan, "--new"); !slices.Equal(lines, want) || status != 1 {
		t.Errorf("check-plan.sh ends with %d and finds %q", status, lines)
	}
	if lines := deny(t, plan, false, true); !slices.Equal(lines, want) {
		t.Errorf("policy.rego finds %q", lines)
	}
	for _, line := range wantSame(t, plan, false) {
		if strings.Contains(line, cleaned) {
			t.Errorf("nobody has asked for %q", line)
		}
	}
}

// The policy is formatted as opa fmt does.
func TestPolicies_regoIsFormatted(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(policies + "policy.rego")
	if err != nil {
		t.Fatal(err)
	}
	if formatted, err := format.Source("policy.rego", text); err != nil || string(formatted) != string(text) {
		t.Errorf("want (%v)\n%s", err, formatted)
	}
}

// What is no complete plan may hide a harm: both checks refuse it.
func TestPolicies_refuseWhatIsNoCompletePlan(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"a plan that has failed": `{"format_version":"1.2","planned_values":{"root_module":{}},"errored":true}`,
		"a state":                `{"format_version":"1.0","values":{"root_module":{}}}`,
		"a list":                 `[]`,
	} {
		plan := filepath.Join(t.TempDir(), "plan.json")
		if err := os.WriteFile(plan, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if denied := deny(t, plan, true, false); !slices.Equal(denied, []string{"the input is no complete plan"}) {
			t.Errorf("%s: policy.rego finds %q", name, denied)
		}
		if _, status := check(t, plan); status != 2 {
			t.Errorf("%s: check-plan.sh ends with %d", name, status)
		}
	}
}
