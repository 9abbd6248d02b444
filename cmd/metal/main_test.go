package main

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
)

// A connection that is lost must not end a command between two requests, and nohup keeps it alive.
func TestStopsWithItsTerminal(t *testing.T) {
	t.Parallel()
	for _, ignored := range []bool{false, true} {
		got := stopSignals(func(os.Signal) bool { return ignored })
		if slices.Contains(got, os.Signal(syscall.SIGHUP)) == ignored || !slices.Contains(got, os.Interrupt) {
			t.Errorf("with a SIGHUP that is ignored (%t): %v", ignored, got)
		}
	}
}

const password = "correct horse battery"

// site is a fake Ironic and a fake appliance on local ports.
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
			t.Errorf("the program has harmed another user: %s", harm)
		}
	})
	s.env = map[string]string{
		"METAL_ENDPOINT": ironic.URL, "METAL_USERNAME": "metal", "METAL_PASSWORD": password,
		"ONEVIEW_ENDPOINT": oneview.URL, "ONEVIEW_USERNAME": "ironic", "ONEVIEW_PASSWORD": password,
	}
	return s
}

func name(i int) string { return fmt.Sprintf("node-%03d", i) }

// written is a buffer that several goroutines can use.
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
		t.Errorf("metal %v writes a password", args)
	}
	return code, out.String(), log.String()
}

func TestWithoutCommandShowsHelp(t *testing.T) {
	t.Parallel()
	s := newSite(t, 0)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "oneview "},
		{[]string{"oneview"}, "migrate "},
		{[]string{"onevew"}, `there is no command "metal onevew"; did you mean "metal oneview"?`},
		{[]string{"oneview", "synch"}, `there is no command "metal oneview synch"; did you mean "metal oneview sync"?`},
		{[]string{"oneview", "frobnicate"}, "metal oneview --help lists the commands"},
		{[]string{"help", "oneview", "frobnicate"}, `there is no command "metal oneview frobnicate"`},
		{[]string{"help", "frobnicate"}, `there is no command "metal frobnicate"`},
	} {
		if code, stdout, stderr := s.run(t, tt.args...); code != cli.ExitUsage || stdout != "" || !strings.Contains(stderr, tt.want) {
			t.Errorf("metal %v: exit code %d, wrote %q and %q, want %q", tt.args, code, stdout, stderr, tt.want)
		}
	}
	for _, ask := range []string{"version", "--version"} {
		if code, stdout, _ := s.run(t, ask); code != cli.ExitDone || stdout != "metal "+version+"\n" {
			t.Errorf("%s: exit code %d, said %q", ask, code, stdout)
		}
	}
}

func TestVersionOfGoInstall(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ linked, module, want string }{
		{"dev", "v0.1.0", "0.1.0"},
		{"dev", "(devel)", "dev"},
		{"0.2.0", "v0.1.0", "0.2.0"},
	} {
		if got := installed(&debug.BuildInfo{Main: debug.Module{Version: tt.module}}, tt.linked); got != tt.want {
			t.Errorf("linked as %s, module %s: got %s, want %s", tt.linked, tt.module, got, tt.want)
		}
	}
	if got := installed(nil, "dev"); got != "dev" {
		t.Errorf("without build information: %s", got)
	}
}

func TestHelpOfEveryCommand(t *testing.T) {
	t.Parallel()
	s := newSite(t, 0)
	for _, tt := range []struct{ command, want, without string }{
		{"", "Commands:", "ONEVIEW_ENDPOINT"},
		{"oneview", "Commands:", "--interval"},
		{"oneview sync", "--interval time", "--release-unknown"},
		{"oneview migrate", "--release-unknown", "--interval"},
		{"oneview status", "--output", "--interval"},
		{"doctor", "--remove-stale", "--interval"},
	} {
		path := strings.Fields(tt.command)
		for _, args := range [][]string{append(path, "--help"), append(path, "-h"), append([]string{"help"}, path...)} {
			code, stdout, stderr := s.run(t, args...)
			if code != cli.ExitDone || !strings.Contains(stdout, tt.want) || strings.Contains(stdout, tt.without) || stderr != "" {
				t.Errorf("%v: exit code %d, said %q and %q", args, code, stdout, stderr)
			}
			if !strings.Contains(stdout, "Exit codes:") || !strings.Contains(stdout, "METAL_PASSWORD") {
				t.Errorf("%v names no exit codes or no variables: %q", args, stdout)
			}
			if strings.Contains(stdout, s.env["METAL_ENDPOINT"]) {
				t.Errorf("%v shows the environment", args)
			}
		}
	}
	_, want, _ := s.run(t, "oneview", "sync", "--help")
	if code, got, _ := s.run(t, "oneview", "help", "sync"); code != cli.ExitDone || got != want {
		t.Errorf("metal oneview help sync: exit code %d, said %q", code, got)
	}
}

func TestHelpShowsOwnFlagsFirst(t *testing.T) {
	t.Parallel()
	_, stdout, _ := newSite(t, 0).run(t, "oneview", "sync", "--help")
	rest := unfolded(stdout)
	for _, want := range []string{
		"\nFlags:", "--interval time", "ONEVIEW_SYNC_INTERVAL", "(default 5m)", "--once", "--timeout time", "(default 45m)",
		"\nOneView flags", "--oneview-endpoint URL", "ONEVIEW_ENDPOINT",
		"\nIronic flags", "--endpoint URL", "METAL_ENDPOINT",
		"\nLog flags", "text or json", "debug (every request), info, warn or error",
		"\nExit codes:",
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("%q is missing, or in the wrong place:\n%s", want, stdout)
		}
		rest = after
	}
}

func TestWrongFlags(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, want string
		args       []string
		env        map[string]string
	}{
		{name: "a flag that does not exist", args: []string{"oneview", "sync", "--fast"}, want: "--fast"},
		{name: "an argument", args: []string{"oneview", "status", "node-000"}, want: "node-000"},
		{name: "no interval", args: []string{"oneview", "sync", "--interval", "0s"}, want: "--interval"},
		{name: "no workers", args: []string{"oneview", "migrate", "--all", "--parallel", "0"}, want: "--parallel"},
		{name: "a negative number of hosts", args: []string{"oneview", "sync", "--max-concurrent", "-1"}, want: "--max-concurrent"},
		{name: "no nodes", args: []string{"oneview", "migrate"}, want: "name nodes, or set --all"},
		{name: "an empty name", args: []string{"oneview", "migrate", ""}, want: "name nodes, or set --all"},
		{name: "all nodes and some", args: []string{"oneview", "migrate", "--all", "a"}, want: "name nodes, or set --all"},
		{name: "an unknown format", args: []string{"oneview", "status", "--output", "yaml"}, want: "must be table or json"},
		{name: "no Ironic", args: []string{"oneview", "status"}, env: map[string]string{"METAL_ENDPOINT": ""}, want: "METAL_ENDPOINT"},
		{
			name: "no password for Ironic", args: []string{"oneview", "status"}, env: map[string]string{"METAL_PASSWORD": ""},
			want: "METAL_PASSWORD",
		},
		{
			name: "no appliance", args: []string{"oneview", "status"}, env: map[string]string{"ONEVIEW_ENDPOINT": ""},
			want: "ONEVIEW_ENDPOINT",
		},
		{name: "no user", args: []string{"oneview", "status"}, env: map[string]string{"ONEVIEW_USERNAME": ""}, want: "ONEVIEW_USERNAME"},
		{
			name: "a wrong version", args: []string{"oneview", "status"}, env: map[string]string{"ONEVIEW_API_VERSION": "new"},
			want: "ONEVIEW_API_VERSION",
		},
		{
			name: "neither true nor false", args: []string{"oneview", "status"}, env: map[string]string{"ONEVIEW_INSECURE": "perhaps"},
			want: "ONEVIEW_INSECURE",
		},
		{
			name: "a wrong number of hosts", args: []string{"oneview", "sync"},
			env: map[string]string{"MAX_CONCURRENT_PROVISIONING_HOSTS": "many"}, want: "MAX_CONCURRENT_PROVISIONING_HOSTS",
		},
		{name: "an interval without a unit", args: []string{"oneview", "sync", "--interval", "5"}, want: "such as 5m or 300s"},
		{
			name: "an interval without a unit in the environment", args: []string{"oneview", "sync"},
			env:  map[string]string{"ONEVIEW_SYNC_INTERVAL": "5"},
			want: `ONEVIEW_SYNC_INTERVAL is "5", which is not a valid value of --interval: it must be a number with its unit`,
		},
		{
			name: "an interval of zero in the environment", args: []string{"oneview", "sync"},
			env: map[string]string{"ONEVIEW_SYNC_INTERVAL": "0s"}, want: "--interval",
		},
		{name: "no time for a profile", args: []string{"oneview", "migrate", "--all", "--timeout", "0s"}, want: "--timeout"},
		{name: "one dash", args: []string{"oneview", "sync", "-once"}, want: "two dashes"},
		{
			name: "a wrong type of authentication", args: []string{"oneview", "status", "--auth-type", "basic"},
			want: "none, http_basic or keystone",
		},
		{name: "Keystone without a cloud", args: []string{"oneview", "status", "--auth-type", "keystone"}, want: "OS_CLOUD"},
		{name: "a wrong microversion", args: []string{"oneview", "status", "--microversion", "2"}, want: "--microversion"},
		{name: "an endpoint without a scheme", args: []string{"oneview", "status", "--endpoint", "ironic:6385"}, want: "METAL_ENDPOINT"},
		{name: "a wrong level", args: []string{"oneview", "status", "--log-level", "loud"}, want: "it must be debug, info, warn or error"},
		{
			name: "an old version of the API", args: []string{"oneview", "status", "--oneview-api-version", "100"},
			want: "--oneview-api-version (ONEVIEW_API_VERSION): 100 is too old",
		},
		{
			name: "a certificate file without a certificate", args: []string{"oneview", "status", "--oneview-cacert-file", "/dev/null"},
			want: "--oneview-cacert-file (ONEVIEW_CACERT_FILE): /dev/null contains no PEM certificate",
		},
		{
			name: "a CA without verification", args: []string{"oneview", "status", "--oneview-cacert-file", "ca.pem", "--oneview-insecure"},
			want: "--oneview-insecure (ONEVIEW_INSECURE) and --oneview-cacert-file",
		},
		{name: "a wrong log", args: []string{"oneview", "status", "--log-format", "xml"}, want: "--log-format"},
		{
			name: "a certificate that does not exist", args: []string{"oneview", "status", "--oneview-cacert-file", "/no/such/file"},
			want: "/no/such/file",
		},
		{
			name: "a certificate without a key", args: []string{"oneview", "status", "--client-cert-file", "a.pem"},
			want: "--client-key-file",
		},
		{name: "an endpoint that is not a URL", args: []string{"oneview", "status", "--oneview-endpoint", "oneview"}, want: "URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, 1)
			for key, value := range tt.env {
				s.env[key] = value
			}
			code, stdout, stderr := s.run(t, tt.args...)
			if code != cli.ExitUsage || !strings.Contains(stderr, tt.want) || stdout != "" {
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
	if code, _, stderr := s.run(t, "oneview", "status", "--endpoint", endpoint, "--oneview-insecure=false"); code != cli.ExitDone {
		t.Errorf("exit code %d, said %q", code, stderr)
	}
}
