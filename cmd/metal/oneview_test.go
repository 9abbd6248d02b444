package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

func TestStatusWritesATable(t *testing.T) {
	t.Parallel()
	s := newSite(t, 4)
	s.oneview.TakeHardware(s.hardware[1])
	s.ironic.Set(name(2), "maintenance", true)
	s.ironic.Set(name(2), "maintenance_reason", "disk swap")
	s.ironic.Set(name(3), "driver_info", map[string]any{"server_hardware_uri": s.hardware[3]})
	code, stdout, stderr := s.run(t, "oneview", "status")
	want := `NODE      HARDWARE      OWNER    PROFILE       NEXT      STATE
node-000  Encl1, bay 1  free     -             leave     available
node-001  Encl1, bay 2  oneview  ` + s.oneview.Profiles()[0].Name + `  take-out  available
node-002  Encl1, bay 3  free     -             leave     available, maintenance: disk swap
node-003  Encl1, bay 4  -        -             leave     available
`
	if code != cli.ExitDone || stdout != want {
		t.Errorf("exit code %d, wrote\n%s\nwant\n%s\nsaid %q", code, stdout, want, stderr)
	}
	if open := s.oneview.Sessions(); open != 0 {
		t.Errorf("%d sessions are left on the appliance", open)
	}
}

func TestStatusShowsARemoval(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	s.oneview.AddProfile(fakeoneview.NewProfile{Name: "web-1", HardwareURI: s.hardware[0]})
	s.oneview.EditHardware(s.hardware[0], func(h *fakeoneview.Hardware) { h.State = fakeoneview.RemovingProfile })
	if _, stdout, _ := s.run(t, "oneview", "status"); !strings.Contains(stdout, " web-1, being removed  ") {
		t.Errorf("it wrote\n%s", stdout)
	}
}

func TestStatusWritesJSON(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2)
	s.oneview.TakeHardware(s.hardware[1])
	s.ironic.Set(name(0), "driver_info", map[string]any{"server_hardware_uri": "/rest/server-hardware/NONE", "dynamic_allocation": true})
	code, stdout, stderr := s.run(t, "oneview", "status", "--output", "json")
	var all []map[string]any
	if err := json.Unmarshal([]byte(stdout), &all); err != nil || len(all) != 2 {
		t.Fatalf("%v in %s", err, stdout)
	}
	if code != cli.ExitNodesFailed || all[0]["owner"] != "unknown" || all[0]["error"] == "" || all[1]["owner"] != "oneview" ||
		all[1]["next"] != "take-out" {
		t.Errorf("exit code %d, wrote %s", code, stdout)
	}
	if !strings.HasPrefix(stderr, "error: could not read the hardware of node-000: ") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("it said %q", stderr)
	}
}

// The texts of others cannot control the terminal, and cannot forge a line.
func TestTextsOfOthersArePrintable(t *testing.T) {
	t.Parallel()
	s := newSite(t, 4)
	const reason = "disk\x1b[2J swap\u202e\u200b\nnode-009  Encl1"
	for i := range 2 {
		s.ironic.Set(name(i), "maintenance", true)
		s.ironic.Set(name(i), "maintenance_reason", reason)
		s.ironic.Set(name(i), "last_error", reason)
		s.ironic.Set(name(i), "provision_state", "deploy failed")
	}
	s.oneview.TakeHardware(s.hardware[1])
	s.oneview.TakeHardware(s.hardware[2])
	s.ironic.Set(name(3), "driver_info", map[string]any{"server_hardware_uri": s.hardware[3]})
	s.ironic.Set(name(2), "name", "node-\u202e002\nnode-009")
	s.ironic.Set(name(3), "name", "node-\u202e003\nnode-009")
	s.ironic.Set(name(0), "driver_info", map[string]any{
		"server_hardware_uri": "/rest/server-hardware/\u202eNONE",
		"dynamic_allocation":  true,
	})
	for _, args := range []string{
		"oneview status", "oneview sync --dry-run", "oneview migrate --all --dry-run",
		"watch --until-idle 1ms --poll-interval 1ms --total 0",
	} {
		_, stdout, stderr := s.run(t, strings.Fields(args)...)
		if text := stdout + stderr; strings.ContainsAny(text, "\x1b\u202e\u200b") || strings.Contains(text, "\nnode-009") ||
			!strings.Contains(text, "node-") {
			t.Errorf("%s wrote %q", args, text)
		}
	}
	_, stdout, _ := s.run(t, "oneview", "status", "--output", "json")
	var all []sharing.Standing
	if err := json.Unmarshal([]byte(stdout), &all); err != nil || len(all) != 4 || all[1].MaintenanceReason != reason ||
		strings.ContainsAny(stdout, "\x1b\u202e\u200b") {
		t.Errorf("%v in %q", err, stdout)
	}
}

func TestSyncOnceDoesWhatItsDryRunSays(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2)
	s.oneview.TakeHardware(s.hardware[0])
	code, would, log := s.run(t, "oneview", "sync", "--dry-run")
	if node, _ := s.ironic.Node(name(0)); code != cli.ExitWouldChange || node.Maintenance || !strings.Contains(log,
		"2 nodes checked, 1 in use by OneView, 0 not checked because they are pre-allocated; 1 would be changed, 0 warnings") {
		t.Errorf("the dry run: exit code %d, maintenance %t, log %q", code, node.Maintenance, log)
	}
	code, did, stderr := s.run(t, "oneview", "sync", "--once")
	if code != cli.ExitDone || did != would || strings.Count(did, "\n") != 1 || !strings.Contains(did, "node-000") {
		t.Errorf("exit code %d, wrote %q, and the dry run %q; log %q", code, did, would, stderr)
	}
	if node, _ := s.ironic.Node(name(0)); node.ProvisionState != "manageable" || node.MaintenanceReason != "node in use by OneView" {
		t.Errorf("the node is %+v", node)
	}
	if code, again, _ := s.run(t, "oneview", "sync", "--dry-run"); code != cli.ExitDone || again != "" {
		t.Errorf("a second dry run: exit code %d, wrote %q", code, again)
	}
	if open := s.oneview.Sessions(); open != 0 {
		t.Errorf("%d sessions are left on the appliance", open)
	}
}

func TestSyncReportsNodesThatFailed(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2)
	s.oneview.TakeHardware(s.hardware[1])
	s.ironic.Set(name(0), "driver_info", map[string]any{"server_hardware_uri": "/rest/server-hardware/NONE", "dynamic_allocation": true})
	code, stdout, stderr := s.run(t, "oneview", "sync", "--once")
	if code != cli.ExitNodesFailed || !strings.Contains(stdout, "node-001") || !strings.Contains(stderr, "error: node-000 (") {
		t.Errorf("exit code %d, wrote %q, log %q", code, stdout, stderr)
	}
}

func TestIronicDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	s.env["METAL_PASSWORD"] = "wrong password"
	for _, args := range [][]string{{"oneview", "sync", "--once"}, {"oneview", "migrate", "--all"}, {"oneview", "status"}} {
		code, stdout, stderr := s.run(t, args...)
		if code != cli.ExitError || stdout != "" || !strings.HasPrefix(stderr, "metal: ") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: exit code %d, wrote %q, said %q", args, code, stdout, stderr)
		}
	}
}

func TestStoppedCommandSaysHowToContinue(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for _, command := range []string{"sync --once", "migrate --all", "status"} {
		var out, log written
		code := run(ctx, append([]string{"oneview"}, strings.Fields(command)...), func(key string) string { return s.env[key] }, &out, &log)
		if want := "metal: stopped before the end; run it again to continue\n"; code != cli.ExitError || out.String() != "" ||
			log.String() != want {
			t.Errorf("%s: exit code %d, wrote %q, said %q", command, code, out.String(), log.String())
		}
	}
}

func TestPoolWithoutNodes(t *testing.T) {
	t.Parallel()
	s := newSite(t, 0)
	s.ironic.AddFleet(3, "baremetal")
	for _, tt := range []struct{ command, stdout string }{
		{"sync --once", ""}, {"sync --dry-run", ""}, {"migrate --all", ""}, {"status", ""}, {"status --output json", "[]\n"},
	} {
		code, stdout, stderr := s.run(t, append([]string{"oneview"}, strings.Fields(tt.command)...)...)
		want := "metal: no node names server hardware in OneView: of 3 nodes in Ironic at " + s.env["METAL_ENDPOINT"] +
			", none has server_hardware_uri in its driver_info. Set it in driver_info of metal_host, or by: baremetal node set NODE " +
			"--driver-info server_hardware_uri=URI\n"
		if code != cli.ExitNothing || stdout != tt.stdout || stderr != want {
			t.Errorf("%s: exit code %d, wrote %q, said %q", tt.command, code, stdout, stderr)
		}
	}
}

func TestPoolWithoutChangesIsNotEmpty(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	s.ironic.Set(name(0), "provision_state", "active")
	for _, args := range [][]string{{"oneview", "sync", "--once"}, {"oneview", "migrate", "--all"}} {
		if code, stdout, stderr := s.run(t, args...); code != cli.ExitDone || stdout != "" || !strings.HasPrefix(stderr, "0 nodes ") {
			t.Errorf("%v: exit code %d, wrote %q, said %q", args, code, stdout, stderr)
		}
	}
}

func TestCommandLogsOnlyWithLevel(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	if code, _, stderr := s.run(t, "oneview", "status"); code != cli.ExitDone || stderr != "" {
		t.Errorf("exit code %d, said %q", code, stderr)
	}
	_, _, stderr := s.run(t, "oneview", "status", "--log-level", "debug", "--log-format", "json")
	if lines := strings.Count(stderr, "\n"); lines < 3 || strings.Count(stderr, `"level":"DEBUG"`) != lines {
		t.Errorf("with a log level it said %q", stderr)
	}
}

func TestSyncWorksUntilItIsStopped(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out, log written
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"oneview", "sync", "--interval", "20ms", "--log-format", "json"}, func(key string) string {
			return s.env[key]
		}, &out, &log)
	}()
	within(t, "the first pass", func() bool { return strings.Contains(log.String(), "pass done") })
	s.oneview.TakeHardware(s.hardware[0])
	within(t, "the node to be out of service", func() bool { return strings.Contains(log.String(), "maintenance on, manage") })
	stop()
	if code := <-ended; code != cli.ExitDone {
		t.Errorf("exit code %d", code)
	}
	if out.String() != "" {
		t.Errorf("as a service it wrote %q to standard output", out.String())
	}
	for line := range strings.Lines(log.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line of the log is not JSON: %q", line)
		}
	}
	if open := s.oneview.Sessions(); open != 0 {
		t.Errorf("%d sessions are left on the appliance", open)
	}
	if logins := s.oneview.Count("POST", "login-sessions"); logins != 1 {
		t.Errorf("%d logins, want 1 over all passes", logins)
	}
}

// within waits until a condition holds, at most three minutes: a busy machine is slow.
func within(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.After(3 * time.Minute)
	for !so() {
		select {
		case <-deadline:
			t.Fatalf("time-out while waiting for %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestSyncContinuesAfterAPassThatFails(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	s.oneview.Inject(fakeoneview.Fault{Path: "/rest/server-profiles$", Count: fakeoneview.Always, Effect: fakeoneview.NotAuthorized()})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out, log written
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"oneview", "sync", "--interval", "20ms"}, func(key string) string { return s.env[key] }, &out, &log)
	}()
	within(t, "a pass that fails", func() bool { return strings.Contains(log.String(), "pass failed") })
	s.oneview.ClearFaults()
	within(t, "the next one", func() bool { return strings.Contains(log.String(), "pass done") })
	stop()
	if code := <-ended; code != cli.ExitDone {
		t.Errorf("exit code %d", code)
	}
}

func TestTheServiceWarnsOfAPoolWithoutNodes(t *testing.T) {
	t.Parallel()
	s := newSite(t, 0)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out, log written
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"oneview", "sync"}, func(key string) string { return s.env[key] }, &out, &log)
	}()
	within(t, "the warning", func() bool {
		return strings.Contains(log.String(), "level=WARN msg=\"no node names server hardware in OneView")
	})
	stop()
	if code := <-ended; code != cli.ExitDone {
		t.Errorf("exit code %d", code)
	}
}

func TestTheTimeoutEndsWaitingForAProfile(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	s.oneview.StepTime = time.Hour
	s.ironic.Set(name(0), "driver_info", map[string]any{"server_hardware_uri": s.hardware[0]})
	s.oneview.AddProfile(fakeoneview.NewProfile{HardwareURI: s.hardware[0]})
	code, stdout, stderr := s.run(t, "oneview", "migrate", "--all", "--release-unknown", "--timeout", "10ms")
	if code != cli.ExitNodesFailed || stdout != "" || !strings.Contains(stderr, "has not ended after ") {
		t.Errorf("exit code %d, wrote %q, said %q", code, stdout, stderr)
	}
}

func TestMigrateDoesWhatItsDryRunSays(t *testing.T) {
	t.Parallel()
	s := newSite(t, 3)
	for i := range 3 {
		s.ironic.Set(name(i), "driver_info", map[string]any{"server_hardware_uri": s.hardware[i]})
		s.oneview.AddProfile(fakeoneview.NewProfile{HardwareURI: s.hardware[i]})
	}
	s.ironic.Set(name(0), "provision_state", "active")
	s.ironic.Set(name(2), "provision_state", "deploying")
	code, would, _ := s.run(t, "oneview", "migrate", "--all", "--release-unknown", "--dry-run", "--parallel", "1")
	if code != cli.ExitWouldChange || strings.Count(would, "\n") != 2 {
		t.Errorf("the dry run: exit code %d, wrote %q", code, would)
	}
	code, did, stderr := s.run(t, "oneview", "migrate", "node-000", "node-001", "--release-unknown", "--parallel", "1")
	if code != cli.ExitDone || did != would {
		t.Errorf("exit code %d, wrote %q, want %q; log %q", code, did, would, stderr)
	}
	if code, did, stderr := s.run(t, "oneview", "migrate", "--all"); code != cli.ExitNodesFailed || did != "" ||
		!strings.Contains(stderr, "deploying") {
		t.Errorf("with a node that is being deployed: exit code %d, wrote %q, log %q", code, did, stderr)
	}
	if left := s.oneview.Profiles(); len(left) != 2 {
		t.Errorf("profiles: %+v", left)
	}
}

// Messages about settings name the flags and environment variables of this program.
func TestAnUntrustedCertificateNamesTheFlag(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	appliance := httptest.NewTLSServer(s.oneview)
	appliance.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(appliance.Close)
	s.env["ONEVIEW_ENDPOINT"] = appliance.URL
	code, _, stderr := s.run(t, "oneview", "status")
	if code != cli.ExitError || !strings.Contains(stderr, "Set --oneview-cacert-file (ONEVIEW_CACERT_FILE) to the certificate of "+
		"the authority") {
		t.Errorf("exit code %d, log %q", code, stderr)
	}
	if strings.Count(stderr, "list server") > 1 {
		t.Errorf("the message names the operation twice: %q", stderr)
	}
}

func TestMigrateUnknownNode(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	code, stdout, stderr := s.run(t, "oneview", "migrate", "nope")
	if code != cli.ExitNodesFailed || stdout != "" ||
		!strings.Contains(stderr, "error: nope: could not migrate it: there is no node of this name or UUID in Ironic\n") {
		t.Errorf("exit code %d, wrote %q, log %q", code, stdout, stderr)
	}
}
