package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/forecast"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

// aPlan is a plan that a real Terraform has made.
const aPlan = "../../internal/operator/forecast/planned/testdata/site.json"

// newPlannedSite is a site that has the nodes of the plan.
func newPlannedSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t, 1)
	s.ironic.Username = "" // for the requests of the test
	text, err := os.ReadFile(aPlan)
	if err != nil {
		t.Fatal(err)
	}
	var plan struct {
		Changes []struct {
			Type   string
			Change struct{ Before map[string]any }
		} `json:"resource_changes"`
	}
	if err := json.Unmarshal(text, &plan); err != nil {
		t.Fatal(err)
	}
	for _, c := range plan.Changes {
		if id, _ := c.Change.Before["id"].(string); c.Type == "metal_deployment" && id != "" {
			ironictest.AsOther(t, s.ironic, http.MethodPost, "nodes", map[string]any{
				"uuid": id, "name": c.Change.Before["node_name"],
				"driver": "fake-hardware", "resource_class": "baremetal",
			})
			s.ironic.Set(id, "provision_state", "active")
			s.ironic.Set(id, "instance_uuid", c.Change.Before["instance_id"])
		}
	}
	s.ironic.ResetRequests()
	return s
}

// forecasting runs metal forecast with times for all operations.
func (s *site) forecasting(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return s.run(t, append([]string{
		"forecast", aPlan, "--deploy", "12m", "--clean", "20m", "--undeploy", "1m", "--inspect",
		"5m",
	}, args...)...)
}

// want fails the test unless an output has some texts.
func want(t *testing.T, output string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(output, text) {
			t.Errorf("%q is not in\n%s", text, output)
		}
	}
}

func TestForecast(t *testing.T) {
	t.Parallel()
	s := newPlannedSite(t)
	code, stdout, stderr := s.forecasting(t, "--compare", "max-concurrent=10,parallelism=20", "--compare", "canary=0")
	if code != cli.ExitDone || stderr != "" {
		t.Fatalf("exit code %d, said %q", code, stderr)
	}
	want(t, stdout, "The apply takes about 1h", "with -parallelism=10 and max_concurrent = 3.", "Slots: at most 3 of 3 in use.",
		`Rollout "databases": 3 members, at most 1 away at once of 1.`, "new-0 ", "enroll, inspect, clean",
		`module.db.metal_deployment.this["db-0"]`,
		"WITH ", "this plan ", "max-concurrent=10,parallelism=20 ", "canary=0 ")
	for _, r := range s.ironic.Requests() {
		if r.Method != http.MethodGet {
			t.Errorf("it sent %s %s", r.Method, r.Path)
		}
	}
}

func TestForecast_inJSON(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := newPlannedSite(t).forecasting(t, "--output", "json", "--what-if", "image-fails")
	var d forecast.Document
	if err := json.Unmarshal([]byte(stdout), &d); err != nil || code != cli.ExitDone {
		t.Fatalf("exit code %d, %v, said %q", code, err, stderr)
	}
	ends := map[forecast.Outcome]int{}
	for _, m := range d.Machines {
		ends[m.Outcome]++
		if touched := m.Outcome == forecast.Done || m.Outcome == forecast.Failed; touched != (m.From != nil && m.To != nil) {
			t.Errorf("%+v", m)
		}
	}
	// The canary of the group fails, so that its others do not start; nothing that needs the group is deployed.
	if ends[forecast.NotStarted] != 2 || ends[forecast.Skipped] != 2 || d.MaxConcurrent != 3 || d.Seconds == 0 {
		t.Errorf("%v, %+v", ends, d)
	}
}

func TestForecast_countsWhatTheSiteDoesNow(t *testing.T) {
	t.Parallel()
	s := newPlannedSite(t)
	_, before, _ := s.forecasting(t, "--output", "json")
	s.ironic.Set(name(0), "provision_state", "clean wait")
	s.ironic.Set(name(0), "provision_updated_at", time.Now().UTC().Add(-5*time.Minute).Format(time.RFC3339))
	_, after, stderr := s.forecasting(t, "--output", "json")
	var a, b forecast.Document
	if json.Unmarshal([]byte(before), &a) != nil || json.Unmarshal([]byte(after), &b) != nil || b.Seconds <= a.Seconds {
		t.Errorf("%v and %v seconds, said %q", a.Seconds, b.Seconds, stderr)
	}
}

// The times of cleanings come from the notes on the nodes, unless a flag says another.
func TestForecast_learnsFromNotes(t *testing.T) {
	t.Parallel()
	s := newPlannedSite(t)
	s.ironic.Set("old-0", "extra", map[string]any{"terraform_metal_erasure": map[string]any{
		"run": "r", "steps": []any{"deploy.erase_devices"}, "began": "2026-11-26T10:00:00Z", "ended": "2026-11-26T10:33:00Z",
	}})
	code, stdout, stderr := s.run(t, "forecast", aPlan, "--deploy", "12m", "--undeploy", "1m", "--inspect", "5m")
	if code != cli.ExitDone {
		t.Fatalf("exit code %d, said %q", code, stderr)
	}
	want(t, stdout, "Note: clean of class baremetal: 33m0s, the median of the notes on 1 nodes.")
	if _, stdout, _ = s.run(t, "forecast", aPlan, "--deploy", "12m", "--undeploy", "1m", "--inspect", "5m", "--clean",
		"20m"); strings.Contains(stdout, "the median") {
		t.Errorf("it tells a time that it does not take:\n%s", stdout)
	}
}

// planWithoutLimit is the plan, but its provisioning_limit refers to a value that a plan does not have.
func planWithoutLimit(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(aPlan)
	if err != nil {
		t.Fatal(err)
	}
	var plan map[string]any
	if err := json.Unmarshal(text, &plan); err != nil {
		t.Fatal(err)
	}
	block := plan["configuration"].(map[string]any)["provider_config"].(map[string]any)["metal"].(map[string]any)
	block["expressions"].(map[string]any)["provisioning_limit"] = map[string]any{
		"references": []any{"local.limit"},
	}
	if text, err = json.Marshal(plan); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestForecast_namesWhatItAssumesOfTheLimit(t *testing.T) {
	t.Parallel()
	s := newPlannedSite(t)
	forecast := func(flags ...string) (code int, stdout, stderr string) {
		return s.run(t, append([]string{
			"forecast", planWithoutLimit(t), "--deploy", "12m", "--clean", "20m", "--undeploy", "1m",
			"--inspect", "5m",
		}, flags...)...)
	}
	if code, _, stderr := forecast("--stuck-after", "3h"); code != cli.ExitError || !strings.Contains(stderr, "it refers to local.limit") ||
		!strings.Contains(stderr, "Give --max-concurrent") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	_, stdout, _ := forecast("--max-concurrent", "2", "--stuck-after", "3h")
	want(t, stdout, "of 2 in use", "takes the defaults of scope, exempt_boot_interfaces; if they are others, give --limit-scope, "+
		"--exempt-boot-interfaces")
	if _, stdout, _ = forecast("--max-concurrent", "2", "--stuck-after", "3h", "--limit-scope", "all", "--exempt-boot-interfaces",
		"*-media"); strings.Contains(stdout, "takes the defaults") {
		t.Errorf("it knows everything:\n%s", stdout)
	}
}

// A flag changes the limit of the plan. The environment does not.
func TestForecast_flagsOfTheLimitWin(t *testing.T) {
	t.Parallel()
	s := newPlannedSite(t)
	for _, flag := range []string{"--exempt-boot-interfaces=*-media", "--limit-scope=conductor_group"} {
		_, _, stderr := s.forecasting(t, flag)
		want(t, stderr, "scope and exempt_boot_interfaces of provisioning_limit depend on it")
	}
	s.env["MAX_CONCURRENT_PROVISIONING_HOSTS"] = "9"
	_, stdout, _ := s.forecasting(t)
	want(t, stdout, "of 3 in use.")
}

func TestForecast_refusesByName(t *testing.T) {
	t.Parallel()
	s := newPlannedSite(t)
	other := newSite(t, 1)
	noPlan := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(noPlan, []byte(`{"format_version":"1.0","values":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		on   *site
		args []string
		code int
		want []string
	}{
		{"no times", s, []string{"forecast", aPlan}, cli.ExitError, []string{
			`how long "deploy" of machines of class baremetal takes (`,
			"give --deploy TIME", "give --clean TIME",
		}},
		{
			"a node of another site", other,
			[]string{"forecast", aPlan, "--deploy", "1m"},
			cli.ExitError,
			[]string{"this Ironic has none of that UUID or name"},
		},
		{"a state", s, []string{"forecast", noPlan}, cli.ExitError, []string{"not of a plan", "terraform show -json"}},
		{"no file", s, []string{"forecast", "nothing.json"}, cli.ExitError, []string{"read the plan"}},
		{"no plan", s, []string{"forecast"}, cli.ExitUsage, []string{"name one plan"}},
		{"a wrong time", s, []string{"forecast", aPlan, "--deploy", "gpu=soon"}, cli.ExitUsage, []string{`--deploy is "gpu=soon"`}},
		{"a time of no class", s, []string{"forecast", aPlan, "--deploy", "=3m"}, cli.ExitUsage, []string{`--deploy is "=3m"`}},
		{"a wrong scope", s, []string{"forecast", aPlan, "--limit-scope", "rack"}, cli.ExitUsage, []string{`--limit-scope is "rack"`}},
		{"a wrong comparison", s, []string{
			"forecast", aPlan, "--deploy", "1m", "--clean", "1m", "--inspect", "1m", "--undeploy", "1m",
			"--compare", "colour=3",
		}, cli.ExitUsage, []string{"it compares max-concurrent, parallelism and canary"}},
		{"a wrong failure", s, []string{"forecast", aPlan, "--what-if", "rain"}, cli.ExitUsage, []string{"image-fails"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := tt.on.run(t, tt.args...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			want(t, stderr, tt.want...)
		})
	}
}
