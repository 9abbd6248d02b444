package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

// impatient ends a command when it begins to wait.
type impatient struct {
	written
	stop func()
}

func (w *impatient) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "until all runs know") {
		defer w.stop()
	}
	return w.written.Write(p)
}

// freeze runs metal freeze without waiting until all runs know.
func (s *site) freeze(t *testing.T, args ...string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, log := &impatient{stop: stop}, &written{}
	code := run(ctx, append([]string{"freeze"}, args...), func(key string) string { return s.env[key] }, out, log)
	if code != cli.ExitDone || !strings.Contains(out.String(), "The site is frozen by") {
		t.Errorf("metal freeze %q: %d, %q, %q", args, code, out, log)
	}
}

func TestFreeze_fromBeginToEnd(t *testing.T) {
	t.Parallel()
	s := deployedSite(t)
	s.freeze(t, "--reason", "the switch burns")
	frozen := []string{"The site was frozen", "the switch burns", "metal thaw"}
	for _, args := range [][]string{
		{"power", "on", name(0)},
		{"inspect", name(1), "--yes-erase", name(1)},
		{"undeploy", name(0), "--yes-erase", name(0)},
		{"retire", name(1), "--yes"},
	} {
		s.wants(t, cli.ExitNodesFailed, frozen, args...)
	}
	if n := ironictest.Count(s.ironic, http.MethodPut, "/v1/nodes"); n > 0 {
		t.Errorf("%d verbs were sent while the site was frozen", n)
	}
	for i := range 2 {
		if node, _ := s.ironic.Node(name(i)); strings.Contains(fmt.Sprint(node.Raw["extra"]), "terraform_metal") {
			t.Errorf("notes are left on %s: %v", name(i), node.Raw["extra"])
		}
	}
	s.wants(t, cli.ExitUnconfirmed, []string{"already frozen by", "the switch burns", "--yes"}, "freeze", "--reason", "night")
	s.freeze(t, "--reason", "night", "--until", "06:00", "--yes")
	s.wants(t, cli.ExitDone, []string{"WARNING  freeze", "night"}, "doctor", "--timeout", "20s")
	s.wants(t, cli.ExitDone, []string{"not frozen any more", "night"}, "thaw")
	s.wants(t, cli.ExitDone, []string{"The site is not frozen"}, "thaw")
	s.wants(t, cli.ExitDone, nil, "power", "on", name(0))
}

func TestFreeze_wrongFlags(t *testing.T) {
	t.Parallel()
	s := deployedSite(t)
	for want, args := range map[string][]string{
		"--reason is missing":    {"freeze"},
		"such as 06:00":          {"freeze", "--reason", "x", "--until", "tomorrow"},
		"it must be a time to c": {"freeze", "--reason", "x", "--until", "2020-01-01T00:00:00Z"},
		"a time to come":         {"freeze", "--reason", "x", "--until", "-1h"},
	} {
		s.wants(t, cli.ExitUsage, []string{want}, args...)
	}
}

// A user who may not write the record is told which role it takes.
func TestFreeze_withoutTheRight(t *testing.T) {
	t.Parallel()
	s := deployedSite(t)
	s.ironic.Reject = func(r *http.Request) *fakeironic.Rejection {
		if r.Method != http.MethodGet {
			return ironictest.Fault(http.StatusForbidden, "Access was denied to the following resource: baremetal:chassis:create")
		}
		return nil
	}
	s.wants(t, cli.ExitError, []string{"admin with system scope"}, "freeze", "--reason", "night")
}
