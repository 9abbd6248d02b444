package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
)

// The life of a machine has what Ironic knows and what a watch has recorded. A page and a JSON document have the same.
func TestTimelineTellsALife(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2)
	dir := t.TempDir()
	record, page := filepath.Join(dir, "record.jsonl"), filepath.Join(dir, "life.html")
	if code, _, stderr := s.watching(t, "--record", record); code != cli.ExitDone {
		t.Fatalf("exit code %d, said %q", code, stderr)
	}
	s.ironic.Set(name(1), "provision_state", "deploy failed")
	s.ironic.Set(name(1), "last_error", "Deploy step deploy.write_image failed: \x1b[31mno space\nTraceback")
	if err := appendTo(record, `{"at":"2026-11`); err != nil {
		t.Fatal(err)
	}
	s.ironic.ResetRequests()
	code, stdout, stderr := s.run(t, "timeline", name(1), "--record", record, "--html", page)
	if code != cli.ExitDone || stderr != "" {
		t.Fatalf("exit code %d, said %q", code, stderr)
	}
	for _, want := range []string{
		"node node-001 (", "Node node-001 (", "node created", "available", "watch", "deploy failed",
		"deploy.write_image failed: ", "1 line of record " + record, "history of node node-001",
	} {
		if !strings.Contains(unfolded(stdout), want) {
			t.Errorf("the life does not say %q:\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "\x1b") || strings.Contains(stdout, "Traceback") {
		t.Errorf("the life has more than the first line of a printable error:\n%q", stdout)
	}
	for _, r := range s.ironic.Requests() {
		if r.Method != http.MethodGet {
			t.Errorf("it sent %s %s", r.Method, r.Path)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), `<i class="failed"`) {
		t.Errorf("%v: the page is\n%s", err, text)
	}
	code, stdout, stderr = s.run(t, "timeline", name(1), "--output", "json")
	var life struct {
		Subject string `json:"subject"`
		Moments []struct {
			At, What string
			Sources  []string
		} `json:"moments"`
	}
	if err := json.Unmarshal([]byte(stdout), &life); err != nil || code != cli.ExitDone || stderr != "" || len(life.Moments) < 2 ||
		life.Moments[0].What != "node created" || len(life.Moments[0].Sources) != 1 {
		t.Errorf("exit code %d, %v, said %q, wrote %s", code, err, stderr, stdout)
	}
}

func appendTo(name, text string) error {
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(old, text...), 0o600)
}

func TestTimelineRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{nil, cli.ExitUsage, "takes the name or the UUID of one node or allocation"},
		{[]string{"a", "b"}, cli.ExitUsage, "takes the name or the UUID of one node or allocation"},
		{[]string{name(0), "--output", "xml"}, cli.ExitUsage, "it must be table or json"},
		{[]string{name(0), "--record", "/no/such/record"}, cli.ExitUsage, "/no/such/record"},
		{[]string{"rack9-99"}, cli.ExitNothing, "neither Ironic nor a record has a node or an allocation rack9-99"},
		{[]string{name(0), "--html", "/no/such/page.html"}, cli.ExitError, "no such file"},
	} {
		if code, _, stderr := s.run(t, append([]string{"timeline"}, tt.args...)...); code != tt.code || !strings.Contains(stderr, tt.want) {
			t.Errorf("%v: exit code %d, said %q", tt.args, code, stderr)
		}
	}
	s.env["METAL_PASSWORD"] = "wrong password"
	if code, _, stderr := s.run(t, "timeline", name(0)); code != cli.ExitError ||
		!strings.Contains(stderr, "could not read the life of node-000: ") {
		t.Errorf("exit code %d, said %q", code, stderr)
	}
}
