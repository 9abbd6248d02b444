package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/doctor"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

func TestDoctor(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2)
	code, stdout, stderr := s.run(t, "doctor")
	if code != cli.ExitDone || !strings.Contains(stdout, "ok       user: ") ||
		!strings.HasSuffix(stdout, " 0 warnings, 0 problems, 0 unknown\n") || stderr != "" {
		t.Errorf("exit code %d, wrote %q and %q", code, stdout, stderr)
	}
	s.ironic.Set(name(1), "provision_state", "deploy failed")
	if code, stdout, _ := s.run(t, "doctor"); code != cli.ExitNodesFailed || !strings.Contains(stdout, "PROBLEM  machine node-001") {
		t.Errorf("exit code %d, wrote %q", code, stdout)
	}
}

func TestDoctor_withoutIronic(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	s.env["METAL_ENDPOINT"] = "http://127.0.0.1:1"
	code, stdout, stderr := s.run(t, "doctor")
	if code != cli.ExitNodesFailed || !strings.Contains(stdout, "PROBLEM  Ironic: ") || stderr != "" {
		t.Errorf("exit code %d, wrote %q and %q", code, stdout, stderr)
	}
}

// The report is for attachments: others read it.
func TestDoctor_json(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	image := "http://metal:" + strings.ReplaceAll(password, " ", "%20") + "@127.0.0.1:1/a.raw?sig=hidden"
	s.ironic.Set(name(0), "instance_info", map[string]any{"image_source": image})
	code, stdout, _ := s.run(t, "doctor", "--output", "json", "--image-url", image)
	var report doctor.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != cli.ExitDone {
		t.Fatalf("exit code %d, %v: %s", code, err, stdout)
	}
	if !report.Has(doctor.Warning) || report.Version != version || report.Time.IsZero() {
		t.Errorf("%+v", report)
	}
	if strings.Contains(stdout, "hidden") || strings.Contains(stdout, "correct%20horse") {
		t.Errorf("the report has a secret: %s", stdout)
	}
}

func TestDoctor_wrongFlags(t *testing.T) {
	t.Parallel()
	s := newSite(t, 0)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--output", "yaml"}, `--output is "yaml"; it must be table or json`},
		{[]string{"--image-url", "images.example.com/a.raw"}, "--image-url must be a URL"},
		{[]string{"--timeout", "0s"}, "--timeout must be more than 0"},
		{[]string{"node-000"}, "takes only flags"},
	} {
		code, _, stderr := s.run(t, append([]string{"doctor"}, tt.args...)...)
		if code != cli.ExitUsage || !strings.Contains(stderr, tt.want) {
			t.Errorf("%v: exit code %d, wrote %q", tt.args, code, stderr)
		}
	}
	s.env[throttle.MaxVariable] = "-1"
	for _, command := range []string{"doctor", "watch"} {
		if code, _, stderr := s.run(t, command); code != cli.ExitUsage ||
			!strings.Contains(stderr, "--max-concurrent must not be less than 0") {
			t.Errorf("%s with a negative variable: exit code %d, wrote %q", command, code, stderr)
		}
	}
}
