package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// exporter is a metal watch that serves metrics of a site.
type exporter struct {
	url    string
	out    *written
	log    *written
	broken *atomic.Bool // Ironic answers with errors
	stop   func() int   // as Ctrl-C does; returns the exit code
}

// exporting starts metal watch as a service and waits until it tells where the metrics are.
func (s *site) exporting(t *testing.T, broken bool, more ...string) exporter {
	t.Helper()
	var out, log written
	e := exporter{out: &out, log: &log, broken: &atomic.Bool{}}
	e.broken.Store(broken)
	s.ironic.Reject = func(*http.Request) *fakeironic.Rejection {
		if e.broken.Load() {
			return &fakeironic.Rejection{Status: http.StatusInternalServerError}
		}
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		args := []string{"watch", "--quiet", "--poll-interval", "10ms", "--metrics-listen", "127.0.0.1:0", "--max-concurrent", "7"}
		ended <- run(ctx, append(args, more...), func(key string) string { return s.env[key] }, &out, &log)
	}()
	said := regexp.MustCompile(`Metrics: (\S+)\n`)
	within(t, "the URL", func() bool { return said.MatchString(log.String()) })
	e.url = said.FindStringSubmatch(log.String())[1]
	e.stop = func() int { cancel(); return <-ended }
	return e
}

// has reports whether a page of the server has all texts.
func (e exporter) has(t *testing.T, texts ...string) bool {
	t.Helper()
	page := get(t, e.url)
	for _, text := range texts {
		if !strings.Contains(page, text) {
			return false
		}
	}
	return true
}

// get returns a page; empty if nothing answers.
func get(t *testing.T, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return string(text)
}

// Ironic does not answer at first, and a deployment fails later. Standard output stays empty, and Ctrl-C ends the server.
func TestWatchServesMetrics(t *testing.T) {
	t.Parallel()
	s := newSite(t, 3)
	s.ironic.Set(name(1), "provision_state", "deploying")
	e := s.exporting(t, true)
	within(t, "metrics without Ironic", func() bool { return e.has(t, "metal_up 0\n") })
	e.broken.Store(false)
	within(t, "the first list", func() bool {
		return e.has(t, "metal_up 1\n", `metal_machines{conductor_group="",resource_class="baremetal",state="available"} 2`,
			`metal_slots_used{scope=""} 1`, "metal_slots_limit 7\n", `metal_machines_waiting{scope=""} 0`)
	})
	s.ironic.Set(name(1), "last_error", "Deploy step deploy.write_image failed: Error writing image to device /dev/sda: Input/output error")
	s.ironic.Set(name(1), "provision_state", "deploy failed")
	within(t, "the failure", func() bool {
		return e.has(t, `metal_operations_failed_total{reason="image-write",step="deploy.write_image"} 1`,
			`metal_machines_failed{conductor_group="",reason="image-write",resource_class="baremetal"} 1`)
	})
	e.broken.Store(true)
	within(t, "an Ironic that does not answer", func() bool {
		return e.has(t, "metal_up 0\n", `metal_operations_failed_total{reason="image-write",step="deploy.write_image"} 1`) && !e.has(t, "metal_machines{")
	})
	if code := e.stop(); code != cli.ExitNodesFailed || e.out.String() != "" ||
		!strings.Contains(e.log.String(), "1 machine failed; without --quiet, metal watch names them") {
		t.Errorf("exit code %d, wrote %q, said %q", code, e.out.String(), e.log.String())
	}
	if page := get(t, e.url); page != "" {
		t.Errorf("after the end it answers %s", page)
	}
}

// A machine that takes no slot of the provider's limit takes none here.
func TestMetricsExemptMachinesAsTheProvider(t *testing.T) {
	t.Parallel()
	s := newSite(t, 3)
	for i, boots := range []string{"ipxe", "redfish-virtual-media", "ilo-virtual-media"} {
		s.ironic.Set(name(i), "provision_state", "deploying")
		s.ironic.Set(name(i), "boot_interface", boots)
	}
	e := s.exporting(t, false, "--exempt-boot-interfaces", "redfish-*,ilo-virtual-media")
	within(t, "the slots", func() bool { return e.has(t, `metal_slots_used{scope=""} 1`) })
	if code := e.stop(); code != cli.ExitDone {
		t.Errorf("exit code %d: %s", code, e.log)
	}
}

func TestWatchRefusesToListen(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--metrics-listen", "9464"}, cli.ExitUsage, "it must be an address with a port, such as 127.0.0.1:9464"},
		{[]string{"--metrics-listen", ":9464"}, cli.ExitUsage, "--metrics-any-address"},
		{[]string{"--metrics-listen", "198.51.100.1:9464"}, cli.ExitUsage, "not a loopback address"},
		{[]string{"--metrics-listen", "ironic.example.com:9464"}, cli.ExitUsage, "not a loopback address"},
		{[]string{"--metrics-any-address"}, cli.ExitUsage, "no effect without --metrics-listen"},
		{[]string{"--limit-scope", "rack"}, cli.ExitUsage, "--limit-scope"},
		{
			[]string{"--exempt-boot-interfaces", "[a"},
			cli.ExitUsage,
			`--exempt-boot-interfaces has "[a"; it must be a pattern such as *virtual-media`,
		},
		{[]string{"--metrics-listen", taken.Addr().String()}, cli.ExitError, "address already in use. Set --metrics-listen to a free port"},
	} {
		if code, stdout, stderr := s.run(t, append([]string{"watch"}, tc.args...)...); code != tc.code || stdout != "" ||
			!strings.Contains(stderr, tc.want) {
			t.Errorf("%v: exit code %d, wrote %q, said %q", tc.args, code, stdout, stderr)
		}
	}
	if asked := len(s.ironic.Requests()); asked > 0 {
		t.Errorf("it made %d requests", asked)
	}
	for _, address := range []string{"[::1]:0", "localhost:0"} {
		if code, _, stderr := s.watching(t, "--metrics-listen", address); code == cli.ExitUsage {
			t.Errorf("%s: %s", address, stderr)
		}
	}
	if code, _, stderr := s.watching(t, "--metrics-listen", "0.0.0.0:0", "--metrics-any-address"); code != cli.ExitDone {
		t.Errorf("exit code %d, said %q", code, stderr)
	}
}

// The units of the examples start commands that this program understands, with the settings of one file, and the packages contain them.
func TestUnitsOfTheExamples(t *testing.T) {
	t.Parallel()
	packages, err := os.ReadFile("../../.goreleaser.yml")
	if err != nil {
		t.Fatal(err)
	}
	units, err := filepath.Glob("../../examples/*/*.service")
	if err != nil || len(units) < 2 {
		t.Fatalf("%q, %v", units, err)
	}
	for _, unit := range units {
		read, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		text := string(read)
		command := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/metal (.*)$`).FindStringSubmatch(text)
		if command == nil {
			t.Fatalf("%s starts nothing", unit)
		}
		found, rest, err := newRoot(os.Getenv, nil).Find(strings.Fields(command[1]))
		if err != nil || found.RunE == nil {
			t.Fatalf("%s starts %s: %v", unit, command[1], err)
		}
		if err := found.ParseFlags(rest); err != nil {
			t.Errorf("%s: %v", unit, err)
		}
		for _, line := range []string{"EnvironmentFile=/etc/metal/environment\n", "RestartPreventExitStatus=2\n"} {
			if !strings.Contains(text, "\n"+line) {
				t.Errorf("%s lacks %s", unit, line)
			}
		}
		if source := "src: " + strings.TrimPrefix(filepath.Dir(unit), "../../") + "/*\n"; !strings.Contains(string(packages), source) {
			t.Errorf("the packages lack %s: no %s", unit, source)
		}
	}
}

// A real Prometheus scrapes the metrics as the examples say, and answers each query of the dashboard. tools/prometheus gets it.
func TestPrometheus_scrapes(t *testing.T) {
	t.Parallel()
	programs := os.Getenv("METAL_PROMETHEUS")
	if programs == "" {
		t.Skip("make test-prometheus runs this test")
	}
	s := newSite(t, 3)
	s.ironic.Set(name(1), "provision_state", "deploying")
	e := s.exporting(t, false)
	defer e.stop()
	p := startPrometheus(t, programs, e.url)
	for query, want := range map[string]string{
		`metal_up`:                            "1",
		`sum(metal_machines{site="rack12"})`:  "3",
		`metal_slots_used`:                    "1",
		`count(ALERTS)`:                       "",
		`sum(metal_operations_failed_total)`:  "",
		`count({__name__=~"metal_.+"}) > 5`:   "*",
		`metal_machines{state="deploying"}`:   "1",
		`metal_longest_in_state_seconds >= 0`: "*",
	} {
		p.until(t, query, want)
	}
	s.ironic.Set(name(1), "last_error", "Deploy step deploy.write_image failed: Error writing image to device /dev/sda: Input/output error")
	s.ironic.Set(name(1), "provision_state", "deploy failed")
	p.until(t, `metal_operations_failed_total{step="deploy.write_image"}`, "1")
	p.until(t, `ALERTS{alertname="MetalMachineFailed", alertstate="pending", resource_class="baremetal"}`, "1")
	for _, query := range queriesOfTheDashboard(t) {
		query = strings.NewReplacer("$instance", strings.TrimSuffix(strings.TrimPrefix(e.url, "http://"), "/metrics"), "$__rate_interval",
			"1m").Replace(query)
		if _, err := p.query(t, query); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
	e.broken.Store(true)
	p.until(t, `metal_up`, "0")
	p.until(t, `metal_machines`, "")
	p.until(t, `ALERTS{alertname="MetalIronicNotAnswering", alertstate="pending"}`, "1")
}

// queriesOfTheDashboard returns the expressions in the dashboard of the examples.
func queriesOfTheDashboard(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile("../../examples/observability/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			all = append(all, target.Expr)
		}
	}
	return all
}

// prometheus is the address of a real Prometheus.
type prometheus string

// startPrometheus starts a Prometheus with the configuration of the examples, which scrapes a page every second.
func startPrometheus(t *testing.T, programs, page string) prometheus {
	t.Helper()
	directory, examples := t.TempDir(), "../../examples/observability/"
	config, err := os.ReadFile(examples + "prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	alerts, err := filepath.Abs(examples + "alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	target := strings.TrimSuffix(strings.TrimPrefix(page, "http://"), "/metrics")
	text := "global:\n  evaluation_interval: 1s\n" + strings.NewReplacer("127.0.0.1:9464", target, "alerts.yml", alerts,
		"scrape_interval: 15s", "scrape_interval: 1s").Replace(string(config))
	if err := os.WriteFile(filepath.Join(directory, "prometheus.yml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(programs, "prometheus"), "--config.file", "prometheus.yml", "--storage.tsdb.path",
		"data", "--web.listen-address", "127.0.0.1:0")
	cmd.Dir = directory
	var log written
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the context has ended it
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("Prometheus said\n%s", log.String())
		}
	})
	said := regexp.MustCompile(`msg="Listening on" address=(\S+)`)
	within(t, "the address of Prometheus", func() bool { return said.MatchString(log.String()) })
	return prometheus("http://" + said.FindStringSubmatch(log.String())[1])
}

// query returns the first value of an expression; empty if there is none.
func (p prometheus) query(t *testing.T, expr string) (string, error) {
	t.Helper()
	var answer struct {
		Error string
		Data  struct{ Result []struct{ Value [2]any } }
	}
	if err := json.Unmarshal([]byte(get(t, string(p)+"/api/v1/query?query="+url.QueryEscape(expr))), &answer); err != nil {
		return "", err
	}
	if answer.Error != "" {
		return "", fmt.Errorf("%s", answer.Error)
	}
	if len(answer.Data.Result) == 0 {
		return "", nil
	}
	return fmt.Sprint(answer.Data.Result[0].Value[1]), nil
}

// until waits until an expression has a value; *: any.
func (p prometheus) until(t *testing.T, expr, want string) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		got, err := p.query(t, expr)
		if err == nil && (got == want || want == "*" && got != "") {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s is %q, %v; want %q", expr, got, err, want)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
