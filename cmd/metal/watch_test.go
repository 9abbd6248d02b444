package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
)

// watching runs metal watch until it ends by itself.
func (s *site) watching(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return s.run(t, append([]string{"watch", "--poll-interval", "10ms", "--until-idle", "50ms"}, args...)...)
}

func TestWatchNeedsNoOneView(t *testing.T) {
	t.Parallel()
	s := newSite(t, 3)
	for key := range s.env {
		if strings.HasPrefix(key, "ONEVIEW") {
			delete(s.env, key)
		}
	}
	code, stdout, stderr := s.watching(t)
	if code != cli.ExitDone || stderr != "" || !strings.Contains(stdout, "3 machines in the selection: nothing in progress\n") {
		t.Errorf("exit code %d, wrote %q, said %q", code, stdout, stderr)
	}
	for _, r := range s.ironic.Requests() {
		if r.Method != http.MethodGet {
			t.Errorf("it sent %s %s", r.Method, r.Path)
		}
	}
}

func TestWatchSelects(t *testing.T) {
	t.Parallel()
	s := newSite(t, 12)
	s.ironic.Set(name(3), "resource_class", "gpu")
	s.ironic.Set(name(4), "owner", "team-a")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--resource-class", "gpu"}, "1 machine in"},
		{[]string{"--resource-class", "baremetal"}, "11 machines in"},
		{[]string{"--owner", "team-a"}, "1 machine in"},
		{[]string{"--name-regex", "^node-01[01]$"}, "2 machines in"},
		{[]string{"--resource-class", "gpu", "--name-regex", "node-004"}, "0 machines in"},
	} {
		if code, stdout, stderr := s.watching(t, tt.args...); code != cli.ExitDone || !strings.Contains(stdout, "  "+tt.want) {
			t.Errorf("%v: exit code %d, wrote %q, said %q", tt.args, code, stdout, stderr)
		}
	}
}

func TestWatchExitCodes(t *testing.T) {
	t.Parallel()
	s := newSite(t, 3)
	if code, _, stderr := s.watching(t, "--goal", "available"); code != cli.ExitDone {
		t.Errorf("all are available: exit code %d, said %q", code, stderr)
	}
	if code, _, stderr := s.watching(t, "--goal", "active"); code != cli.ExitGoalMissed ||
		!strings.Contains(stderr, "3 of 3 machines did not reach active") {
		t.Errorf("none is active: exit code %d, said %q", code, stderr)
	}
	s.ironic.Set(name(1), "provision_state", "deploy failed")
	s.ironic.Set(name(1), "last_error", "the image is missing\nTraceback")
	code, stdout, stderr := s.watching(t, "--goal", "available")
	if code != cli.ExitNodesFailed || stderr != "metal: 1 machine failed; see above\n" ||
		!strings.Contains(stdout, "node-001  deploy failed for ") || !strings.Contains(stdout, ": the image is missing\n") {
		t.Errorf("one has failed: exit code %d, wrote %q, said %q", code, stdout, stderr)
	}
}

func TestWatchRefusesWrongFlags(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--name-regex", "("}, "--name-regex is not a regular expression"},
		{[]string{"--goal", "done"}, "it must be one of enroll, manageable, available, active, deleted"},
		{[]string{"--total", "-1"}, "--total"},
		{[]string{"--until-idle", "60"}, "such as 5m or 300s"},
		{[]string{"rack1"}, "takes only flags"},
	} {
		if code, stdout, stderr := s.run(t, append([]string{"watch"}, tt.args...)...); code != cli.ExitUsage || stdout != "" ||
			!strings.Contains(stderr, tt.want) {
			t.Errorf("%v: exit code %d, wrote %q, said %q", tt.args, code, stdout, stderr)
		}
	}
	if asked := len(s.ironic.Requests()); asked > 0 {
		t.Errorf("it made %d requests", asked)
	}
}

func TestWatchFailsWithASentence(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	s.env["METAL_PASSWORD"] = "wrong password"
	code, stdout, stderr := s.watching(t)
	if code != cli.ExitError || stdout != "" || !strings.HasPrefix(stderr, "metal: could not watch Ironic at "+s.env["METAL_ENDPOINT"]+
		": ") || strings.Contains(stderr, "level=") {
		t.Errorf("exit code %d, wrote %q, said %q", code, stdout, stderr)
	}
	s.env["METAL_PASSWORD"] = password
	if code, _, stderr := s.watching(t, "--html", filepath.Join(t.TempDir(), "no", "page.html")); code != cli.ExitError ||
		!strings.HasPrefix(stderr, "metal: metal watch has ended: ") || !strings.Contains(stderr, "no such file") {
		t.Errorf("exit code %d, said %q", code, stderr)
	}
}

// Ironic answers with errors for a while; a deployment goes on meanwhile. Ctrl-C ends the watch.
func TestWatchGoesOnWhenIronicDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2)
	var broken atomic.Bool
	s.ironic.Reject = func(*http.Request) *fakeironic.Rejection {
		if broken.Load() {
			return &fakeironic.Rejection{Status: http.StatusInternalServerError}
		}
		return nil
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	page := filepath.Join(t.TempDir(), "page.html")
	var out, log written
	ended := make(chan int, 1)
	go func() {
		args := []string{"watch", "--goal", "active", "--poll-interval", "10ms", "--html", page}
		ended <- run(ctx, args, func(key string) string { return s.env[key] }, &out, &log)
	}()
	within(t, "the first list", func() bool { return strings.Contains(out.String(), "2 machines in the selection") })
	broken.Store(true)
	within(t, "the trouble", func() bool { return strings.Contains(log.String(), "Ironic does not answer; trying again: ") })
	broken.Store(false)
	s.ironic.Set(name(0), "provision_state", "active")
	within(t, "the change", func() bool { return strings.Contains(out.String(), "node-000  available -> active\n") })
	stop()
	if code := <-ended; code != cli.ExitDone {
		t.Errorf("exit code %d, said %q", code, log.String())
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "1 of 2 done") {
		t.Errorf("the page: %v", err)
	}
}

// A record begins with the machines as they are, and has what changed when the watch ended.
func TestWatchRecords(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2)
	file := filepath.Join(t.TempDir(), "record.jsonl")
	for range 2 {
		if code, _, stderr := s.watching(t, "--record", file); code != cli.ExitDone {
			t.Fatalf("exit code %d, said %q", code, stderr)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Count(string(text), `"watch":"began"`) != 2 || strings.Count(string(text), `"watch":"ended"`) != 2 ||
		strings.Count(string(text), `"name":"node-001","state":"available"`) != 2 {
		t.Errorf("%v: the record is\n%s", err, text)
	}
	other := &watch.Recorder{File: file, Model: watch.NewModel("", 0)}
	if err := other.Update(watch.View{}, nil); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := s.watching(t, "--record", file); code != cli.ExitError ||
		!strings.HasPrefix(stderr, "metal: metal watch has ended: another metal watch records to "+file) {
		t.Errorf("another watch has the record: exit code %d, said %q", code, stderr)
	}
	if err := other.End(watch.View{}); err != nil {
		t.Error(err)
	}
	if code, _, stderr := s.watching(t, "--record", filepath.Join(t.TempDir(), "no", "record.jsonl")); code != cli.ExitError ||
		!strings.Contains(stderr, "no such file") {
		t.Errorf("exit code %d, said %q", code, stderr)
	}
}
