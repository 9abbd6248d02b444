package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

func TestDryRunTellsRefusalsByItsExitCode(t *testing.T) {
	t.Parallel()
	s := deployedSite(t)
	s.wants(t, cli.ExitNodesFailed, []string{"refused", "1 machine refused; see above"}, "inspect", name(0), "--dry-run")
	s.wants(t, cli.ExitWouldChange, []string{"refused", "planned"}, "inspect", name(0), name(1), "--dry-run")
	s.wants(t, cli.ExitDone, []string{"unchanged"}, "undeploy", name(1), "--dry-run")
	s.wants(t, cli.ExitNodesFailed, []string{"refused", "1 reservation refused; see above"}, "release", "--node", name(0), "--dry-run")
}

func TestAMissingConfirmationNamesAllFlags(t *testing.T) {
	t.Parallel()
	s := deployedSite(t)
	s.ironic.AddFleet(4, "baremetal")
	for i := range 3 {
		s.ironic.Set(name(i), "provision_state", "active")
		s.ironic.Set(name(i), "instance_uuid", fmt.Sprintf("1be26c0b-03f2-4d2e-ae87-c02d7f33c99%d", i))
	}
	s.ironic.Set(name(2), "name", "--all")
	third, _ := s.ironic.Node("--all")
	s.wants(t, cli.ExitUnconfirmed, []string{
		"metal undeploy needs a confirmation for 2 machines, such as node-000 (", "): undeploys it, which erases its disks",
		"Use --yes-erase node-000," + third.UUID + ". Nothing was done",
	}, "undeploy", "--all", "--yes", "--yes-erase", name(1))
	s.ironic.Set(name(0), "power_state", "power on")
	s.ironic.Set(name(3), "power_state", "power on")
	s.wants(t, cli.ExitUnconfirmed, []string{"for 2 machines", "Use --yes --yes-erase node-000. Nothing was done"}, "power", "reboot",
		name(0), name(3))
	if node, _ := s.ironic.Node(name(0)); node.ProvisionState != "active" {
		t.Errorf("it was touched: %+v", node)
	}
}

// stopAt runs metal and stops it when a request arrives.
func (s *site) stopAt(t *testing.T, at func(*http.Request) bool, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if at(r) {
			stop()
			<-r.Context().Done()
			return
		}
		s.ironic.ServeHTTP(w, r)
	}))
	defer front.Close()
	var out, log written
	code = run(ctx, args, func(key string) string {
		if key == "METAL_ENDPOINT" {
			return front.URL
		}
		return s.env[key]
	}, &out, &log)
	return code, out.String(), log.String()
}

func TestStoppedBeforeAnythingWasSent(t *testing.T) {
	t.Parallel()
	s := deployedSite(t)
	node, _ := s.ironic.Node(name(1))
	code, stdout, stderr := s.stopAt(t, func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/nodes/"+node.UUID)
	}, "inspect", name(1), "--yes-erase", name(1))
	if code != cli.ExitError || !strings.Contains(stdout, "interrupted  The command was stopped before it sent anything.") ||
		!strings.Contains(stderr, "stopped before the end: 1 machine not finished") {
		t.Errorf("exit code %d: %q, %q", code, stdout, stderr)
	}
}

// Before anything was read, nothing can go on.
func TestStoppedBeforeTheMachinesWereRead(t *testing.T) {
	t.Parallel()
	s := deployedSite(t)
	for _, args := range [][]string{{"inspect", name(1), "--yes"}, {"release", "--node", name(0), "--yes"}, {"show", name(1)}} {
		code, stdout, stderr := s.stopAt(t, func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/v1/nodes") }, args...)
		if code != cli.ExitError || stdout != "" || stderr != "metal: stopped before it began. Nothing was done\n" {
			t.Errorf("%v: exit code %d: %q, %q", args, code, stdout, stderr)
		}
	}
}

// reserved returns a site with allocations of all its machines.
func reserved(t *testing.T, machines int) *site {
	t.Helper()
	s := newSite(t, machines)
	s.ironic.Username, s.ironic.StepTime = "", 0
	for i := range machines {
		ironictest.AsOther(t, s.ironic, http.MethodPost, "allocations", map[string]any{
			"name":           fmt.Sprintf("web-%d", i),
			"resource_class": "baremetal",
		})
	}
	s.ironic.ResetRequests()
	return s
}

func TestReleaseThatIsStoppedIsAFailureOfTheCommand(t *testing.T) {
	t.Parallel()
	s := reserved(t, 2)
	code, stdout, stderr := s.stopAt(t, func(r *http.Request) bool {
		return r.Method == http.MethodDelete
	}, "release", "web-0", "web-1", "--yes")
	if code != cli.ExitError || !strings.Contains(stdout, "interrupted") || !strings.Contains(stdout, "not begun") ||
		strings.Contains(stdout, "failed") ||
		!strings.Contains(stderr, "stopped before the end: 2 reservations not finished") {
		t.Errorf("exit code %d: %q, %q", code, stdout, stderr)
	}
}

func TestReleaseReadsManyReservationsAtOnce(t *testing.T) {
	t.Parallel()
	s := reserved(t, 20)
	last := ironictest.AsOther(t, s.ironic, http.MethodGet, "allocations/web-19", nil)
	s.ironic.ResetRequests()
	args := []string{"release", "--node", fmt.Sprint(last["node_uuid"])}
	for i := range 19 {
		args = append(args, fmt.Sprintf("web-%d", i))
	}
	s.wants(t, cli.ExitWouldChange, []string{"makes node node-0"}, append(args, "--dry-run")...)
	if sent := s.ironic.Requests(); len(sent) > 5 {
		t.Errorf("%d requests: %+v", len(sent), sent)
	}
	s.wants(t, cli.ExitNothing, []string{"has no allocation web-99 that you may see"}, append(args, "--dry-run", "web-99")...)
	s.wants(t, cli.ExitDone, []string{"allocation web-0 (", "): done (1 of 20)", "): done (20 of 20)"}, append(args, "--yes")...)
	for i := range 20 {
		if node, _ := s.ironic.Node(name(i)); node.InstanceUUID != "" {
			t.Errorf("%s is still reserved", name(i))
		}
	}
}
