package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeoneview"
)

const password = "correct horse battery"

// site is an Ironic and an appliance that the program reaches over the network.
type site struct {
	ironic   *fakeironic.Server
	oneview  *fakeoneview.Server
	hardware []string
	env      map[string]string
}

func newSite(t *testing.T, nodes int) *site {
	t.Helper()
	s := &site{
		ironic:  &fakeironic.Server{Username: "metal", Password: password, StepTime: time.Hour},
		oneview: &fakeoneview.Server{Username: "ironic", Password: password},
	}
	s.hardware = s.oneview.AddBlades(nodes).Hardware
	s.ironic.AddFleet(nodes, "baremetal")
	for i, uri := range s.hardware {
		s.ironic.Set(name(i), "driver_info", map[string]any{"server_hardware_uri": uri, "dynamic_allocation": true})
	}
	ironic, oneview := httptest.NewServer(s.ironic), httptest.NewServer(s.oneview)
	t.Cleanup(func() {
		ironic.Close()
		oneview.Close()
		for _, harm := range s.oneview.Harm() {
			t.Errorf("harm was done to another user: %s", harm)
		}
	})
	s.env = map[string]string{
		"METAL_ENDPOINT": ironic.URL, "METAL_USERNAME": "metal", "METAL_PASSWORD": password,
		"ONEVIEW_ENDPOINT": oneview.URL, "ONEVIEW_USERNAME": "ironic", "ONEVIEW_PASSWORD": password,
	}
	return s
}

func name(i int) string { return fmt.Sprintf("node-%03d", i) }

// written is what a program writes, for readers in other goroutines.
type written struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// run runs the program, and fails the test if it writes a secret.
func (s *site) run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, log written
	code = run(t.Context(), args, func(key string) string { return s.env[key] }, &out, &log)
	if strings.Contains(out.String()+log.String(), password) {
		t.Errorf("metal-oneview %v writes a password", args)
	}
	return code, out.String(), log.String()
}

func TestWithoutACommandItSaysWhatThereIs(t *testing.T) {
	t.Parallel()
	s := newSite(t, 0)
	if code, _, stderr := s.run(t); code != exitUsage || !strings.Contains(stderr, "metal-oneview sync") {
		t.Errorf("exit code %d, said %q", code, stderr)
	}
	if code, _, stderr := s.run(t, "synch"); code != exitUsage || !strings.Contains(stderr, "synch") {
		t.Errorf("exit code %d, said %q", code, stderr)
	}
	for _, ask := range []string{"help", "-h", "--help"} {
		if code, stdout, _ := s.run(t, ask); code != exitDone || !strings.Contains(stdout, "Exit codes") {
			t.Errorf("%s: exit code %d, said %q", ask, code, stdout)
		}
	}
	if code, stdout, _ := s.run(t, "version"); code != exitDone || !strings.Contains(stdout, version) {
		t.Errorf("exit code %d, said %q", code, stdout)
	}
}

func TestEveryCommandExplainsItself(t *testing.T) {
	t.Parallel()
	s := newSite(t, 0)
	for command, want := range map[string]string{"sync": "-interval", "migrate": "-release-unknown", "status": "-json"} {
		code, stdout, stderr := s.run(t, command, "-h")
		if code != exitDone || !strings.Contains(stdout, want) || !strings.Contains(stdout, "ONEVIEW_ENDPOINT") || stderr != "" {
			t.Errorf("%s -h: exit code %d, said %q and %q", command, code, stdout, stderr)
		}
		if strings.Contains(stdout, s.env["METAL_ENDPOINT"]) {
			t.Errorf("%s -h shows the environment", command)
		}
	}
}

func TestWrongFlagsAreSaidToBeWrong(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, want string
		args       []string
		env        map[string]string
	}{
		{name: "a flag that does not exist", args: []string{"sync", "-fast"}, want: "-fast"},
		{name: "an argument", args: []string{"status", "node-000"}, want: "node-000"},
		{name: "no interval", args: []string{"sync", "-interval", "0s"}, want: "-interval"},
		{name: "no workers", args: []string{"migrate", "-all", "-parallel", "0"}, want: "-parallel"},
		{name: "less than no hosts", args: []string{"sync", "-max-hosts", "-1"}, want: "-max-hosts"},
		{name: "no nodes", args: []string{"migrate"}, want: "-all or -nodes"},
		{name: "a list of no nodes", args: []string{"migrate", "-nodes", ","}, want: "-all or -nodes"},
		{name: "a list with spaces", args: []string{"migrate", "-nodes", "a", "b"}, want: "the list of -nodes has commas"},
		{name: "all nodes and some", args: []string{"migrate", "-all", "-nodes", "a"}, want: "-all or -nodes"},
		{name: "no Ironic", args: []string{"status"}, env: map[string]string{"METAL_ENDPOINT": ""}, want: "METAL_ENDPOINT"},
		{name: "no password for Ironic", args: []string{"status"}, env: map[string]string{"METAL_PASSWORD": ""}, want: "METAL_PASSWORD"},
		{name: "no appliance", args: []string{"status"}, env: map[string]string{"ONEVIEW_ENDPOINT": ""}, want: "ONEVIEW_ENDPOINT"},
		{name: "no user", args: []string{"status"}, env: map[string]string{"ONEVIEW_USERNAME": ""}, want: "ONEVIEW_USERNAME"},
		{name: "a wrong version", args: []string{"status"}, env: map[string]string{"ONEVIEW_API_VERSION": "new"}, want: "ONEVIEW_API_VERSION"},
		{name: "neither true nor false", args: []string{"status"}, env: map[string]string{"ONEVIEW_INSECURE": "perhaps"}, want: "ONEVIEW_INSECURE"},
		{name: "a wrong number of hosts", args: []string{"sync"}, env: map[string]string{"MAX_CONCURRENT_PROVISIONING_HOSTS": "many"}, want: "MAX_CONCURRENT_PROVISIONING_HOSTS"},
		{name: "an interval without a unit", args: []string{"sync", "-interval", "5"}, want: "such as 5m or 300s"},
		{name: "a wrong level", args: []string{"status", "-log-level", "loud"}, want: "it must be debug, info, warn or error"},
		{name: "an old version of the API", args: []string{"status", "-oneview-api-version", "100"}, want: "-oneview-api-version (ONEVIEW_API_VERSION): 100 is too old"},
		{name: "a certificate that is none", args: []string{"status", "-oneview-cacert-file", "/dev/null"}, want: "-oneview-cacert-file (ONEVIEW_CACERT_FILE): /dev/null holds"},
		{name: "verified or not", args: []string{"status", "-oneview-cacert-file", "ca.pem", "-oneview-insecure"}, want: "-oneview-insecure (ONEVIEW_INSECURE) and -oneview-cacert-file"},
		{name: "a wrong log", args: []string{"status", "-log-format", "xml"}, want: "-log-format"},
		{name: "a certificate that does not exist", args: []string{"status", "-oneview-cacert-file", "/no/such/file"}, want: "/no/such/file"},
		{name: "a certificate without a key", args: []string{"status", "-client-cert-file", "a.pem"}, want: "-client-key-file"},
		{name: "an endpoint that is none", args: []string{"status", "-oneview-endpoint", "oneview"}, want: "URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, 1)
			for key, value := range tt.env {
				s.env[key] = value
			}
			code, stdout, stderr := s.run(t, tt.args...)
			if code != exitUsage || !strings.Contains(stderr, tt.want) || stdout != "" {
				t.Errorf("exit code %d, said %q", code, stderr)
			}
			if asked := len(s.ironic.Requests()) + len(s.oneview.Requests()); asked > 0 {
				t.Errorf("it made %d requests", asked)
			}
		})
	}
}

func TestFlagsWinOverTheEnvironment(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	endpoint := s.env["METAL_ENDPOINT"]
	s.env["METAL_ENDPOINT"], s.env["IRONIC_ENDPOINT"], s.env["ONEVIEW_INSECURE"] = "http://127.0.0.1:1", "http://127.0.0.1:2", "true"
	if code, _, stderr := s.run(t, "status", "-endpoint", endpoint, "-oneview-insecure=false"); code != exitDone {
		t.Errorf("exit code %d, said %q", code, stderr)
	}
}

func TestStatusWritesATable(t *testing.T) {
	t.Parallel()
	s := newSite(t, 4)
	s.oneview.TakeHardware(s.hardware[1])
	s.ironic.Set(name(2), "maintenance", true)
	s.ironic.Set(name(2), "maintenance_reason", "disk swap")
	s.ironic.Set(name(3), "driver_info", map[string]any{"server_hardware_uri": s.hardware[3]})
	code, stdout, stderr := s.run(t, "status")
	want := `NODE      HARDWARE      OWNER    PROFILE       STATE
node-000  Encl1, bay 1  free     -             available
node-001  Encl1, bay 2  oneview  ` + s.oneview.Profiles()[0].Name + `  available
node-002  Encl1, bay 3  free     -             available, maintenance: disk swap
node-003  Encl1, bay 4  -        -             available
`
	if code != exitDone || stdout != want {
		t.Errorf("exit code %d, wrote\n%s\nwant\n%s\nlog %q", code, stdout, want, stderr)
	}
	if open := s.oneview.Sessions(); open != 0 {
		t.Errorf("%d sessions are left on the appliance", open)
	}
}

func TestStatusWritesJSON(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2)
	s.oneview.TakeHardware(s.hardware[1])
	s.ironic.Set(name(0), "driver_info", map[string]any{"server_hardware_uri": "/rest/server-hardware/NONE", "dynamic_allocation": true})
	code, stdout, stderr := s.run(t, "status", "-json", "-log-format", "json")
	var all []map[string]any
	if err := json.Unmarshal([]byte(stdout), &all); err != nil || len(all) != 2 {
		t.Fatalf("%v in %s", err, stdout)
	}
	if code != exitNodesFailed || all[0]["owner"] != "unknown" || all[0]["error"] == "" || all[1]["owner"] != "oneview" || all[1]["next"] != "withdraw" {
		t.Errorf("exit code %d, wrote %s", code, stdout)
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(strings.SplitN(stderr, "\n", 2)[0]), &line); err != nil || line["name"] != "node-000" {
		t.Errorf("the log is %q: %v", stderr, err)
	}
}

func TestSyncOnceDoesWhatItsDryRunSays(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2)
	s.oneview.TakeHardware(s.hardware[0])
	code, would, log := s.run(t, "sync", "-dry-run")
	if node, _ := s.ironic.Node(name(0)); code != exitWouldChange || node.Maintenance || !strings.Contains(log, "would_change=1") {
		t.Errorf("the dry run: exit code %d, maintenance %t, log %q", code, node.Maintenance, log)
	}
	code, did, stderr := s.run(t, "sync", "-once")
	if code != exitDone || did != would || strings.Count(did, "\n") != 1 || !strings.Contains(did, "node-000") {
		t.Errorf("exit code %d, wrote %q, and the dry run %q; log %q", code, did, would, stderr)
	}
	if node, _ := s.ironic.Node(name(0)); node.ProvisionState != "manageable" || node.MaintenanceReason != "node in use by OneView" {
		t.Errorf("the node is %+v", node)
	}
	if code, again, _ := s.run(t, "sync", "-dry-run"); code != exitDone || again != "" {
		t.Errorf("a second dry run: exit code %d, wrote %q", code, again)
	}
	if open := s.oneview.Sessions(); open != 0 {
		t.Errorf("%d sessions are left on the appliance", open)
	}
}

func TestSyncTellsOfNodesThatFailed(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2)
	s.oneview.TakeHardware(s.hardware[1])
	s.ironic.Set(name(0), "driver_info", map[string]any{"server_hardware_uri": "/rest/server-hardware/NONE", "dynamic_allocation": true})
	code, stdout, stderr := s.run(t, "sync", "-once")
	if code != exitNodesFailed || !strings.Contains(stdout, "node-001") || !strings.Contains(stderr, "node-000") {
		t.Errorf("exit code %d, wrote %q, log %q", code, stdout, stderr)
	}
}

func TestAnIronicThatDoesNotAnswerIsAnError(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	s.env["METAL_PASSWORD"] = "wrong password"
	for _, args := range [][]string{{"sync", "-once"}, {"migrate", "-all"}, {"status"}} {
		if code, stdout, stderr := s.run(t, args...); code != exitError || stdout != "" || !strings.Contains(stderr, "error") {
			t.Errorf("%v: exit code %d, wrote %q, log %q", args, code, stdout, stderr)
		}
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
		ended <- run(ctx, []string{"sync", "-interval", "20ms", "-log-format", "json"}, func(key string) string { return s.env[key] }, &out, &log)
	}()
	within(t, "the first pass", func() bool { return strings.Contains(log.String(), "pass done") })
	s.oneview.TakeHardware(s.hardware[0])
	within(t, "the node to be withdrawn", func() bool { return strings.Contains(log.String(), "maintenance on, manage") })
	stop()
	select {
	case code := <-ended:
		if code != exitDone {
			t.Errorf("exit code %d", code)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it did not stop")
	}
	if out.String() != "" {
		t.Errorf("as a service it wrote %q to standard output", out.String())
	}
	for line := range strings.Lines(log.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line of the log is no JSON: %q", line)
		}
	}
	if open := s.oneview.Sessions(); open != 0 {
		t.Errorf("%d sessions are left on the appliance", open)
	}
	if logins := s.oneview.Count("POST", "login-sessions"); logins != 1 {
		t.Errorf("%d logins, want 1 over all passes", logins)
	}
}

// within waits until something is so.
func within(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for !so() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestSyncOutlivesAPassThatFails(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	s.oneview.Inject(fakeoneview.Fault{Path: "/rest/server-profiles$", Count: fakeoneview.Always, Effect: fakeoneview.NotAuthorized()})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out, log written
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"sync", "-interval", "20ms"}, func(key string) string { return s.env[key] }, &out, &log)
	}()
	within(t, "a pass that fails", func() bool { return strings.Contains(log.String(), "pass failed") })
	s.oneview.ClearFaults()
	within(t, "the next one", func() bool { return strings.Contains(log.String(), "pass done") })
	stop()
	if code := <-ended; code != exitDone {
		t.Errorf("exit code %d", code)
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
	code, would, _ := s.run(t, "migrate", "-all", "-release-unknown", "-dry-run", "-parallel", "1")
	if code != exitWouldChange || strings.Count(would, "\n") != 2 {
		t.Errorf("the dry run: exit code %d, wrote %q", code, would)
	}
	code, did, stderr := s.run(t, "migrate", "-nodes", "node-000, node-001", "-release-unknown", "-parallel", "1")
	if code != exitDone || did != would {
		t.Errorf("exit code %d, wrote %q, want %q; log %q", code, did, would, stderr)
	}
	if code, did, stderr := s.run(t, "migrate", "-all"); code != exitNodesFailed || did != "" || !strings.Contains(stderr, "deploying") {
		t.Errorf("with a node that is being deployed: exit code %d, wrote %q, log %q", code, did, stderr)
	}
	if left := s.oneview.Profiles(); len(left) != 2 {
		t.Errorf("profiles: %+v", left)
	}
}

// What is said of settings names the flags and variables of this program.
func TestAnUntrustedCertificateNamesTheFlag(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	appliance := httptest.NewTLSServer(s.oneview)
	appliance.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(appliance.Close)
	s.env["ONEVIEW_ENDPOINT"] = appliance.URL
	code, _, stderr := s.run(t, "status")
	if code != exitError || !strings.Contains(stderr, "Set -oneview-cacert-file (ONEVIEW_CACERT_FILE) to the certificate of the authority") {
		t.Errorf("exit code %d, log %q", code, stderr)
	}
	if strings.Count(stderr, "list server") > 1 {
		t.Errorf("it says twice what it was doing: %q", stderr)
	}
}

func TestANodeThatDoesNotExistIsSaidNotTo(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	code, stdout, stderr := s.run(t, "migrate", "-nodes", "nope")
	if code != exitNodesFailed || stdout != "" || !strings.Contains(stderr, "node=nope error=\"there is no node of this name or UUID in Ironic\"") {
		t.Errorf("exit code %d, wrote %q, log %q", code, stdout, stderr)
	}
}

func TestHelpNamesTheValuesOfAFlag(t *testing.T) {
	t.Parallel()
	_, stdout, _ := newSite(t, 0).run(t, "sync", "-h")
	for _, want := range []string{"-log-format text|json", "-log-level debug|info|warn|error", "-interval time", "(default 5m0s)"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("it does not say %q:\n%s", want, stdout)
		}
	}
}
