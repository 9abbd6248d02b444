package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// consoleSite is a site whose nodes have the console interfaces fake, fake-graphical, ipmitool-socat, ipmitool-shellinabox and no-console.
func consoleSite(t *testing.T) *site {
	t.Helper()
	return consoleSiteOf(t, "1.96") // the highest of an Ironic that has them all
}

// consoleSiteOf is consoleSite with the highest version of the API. Ironic 21.4 has no fake-graphical.
func consoleSiteOf(t *testing.T, highest string) *site {
	t.Helper()
	s := newSite(t, 0)
	s.ironic.StepTime, s.ironic.MaxMicroversion = 0, highest
	for i, console := range []string{"fake", "fake-graphical", "ipmitool-socat", "ipmitool-shellinabox", "no-console"} {
		if highest == "1.82" && console == "fake-graphical" {
			continue
		}
		node := map[string]any{"name": name(i), "driver": "fake-hardware", "console_interface": console}
		if i >= 2 {
			node["deploy_interface"] = "direct" // Ironic 39 would choose autodetect, which older ones do not know
			node["driver"], node["driver_info"] = "ipmi", map[string]any{"ipmi_address": "192.0.2.7", "ipmi_terminal_port": 8023}
		}
		body, err := json.Marshal(node)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.env["METAL_ENDPOINT"]+"/v1/nodes", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("metal", password)
		req.Header.Set("X-Openstack-Ironic-Api-Version", "1.82")
		req.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(req)
		if err != nil || answer.StatusCode != http.StatusCreated {
			t.Fatalf("the node with the console %s: %v, %v", console, answer, err)
		}
		_ = answer.Body.Close()
	}
	return s
}

// consoleRequests returns the requests about consoles that the fake has got, such as "GET" and `PUT {"enabled":true}`.
func consoleRequests(s *site) (sent []string) {
	for _, r := range s.ironic.Requests() {
		if strings.HasSuffix(r.Path, "/states/console") {
			sent = append(sent, strings.TrimSpace(r.Method+" "+r.Body))
		}
	}
	return sent
}

func TestConsoleTellsWhatToRun(t *testing.T) {
	t.Parallel()
	s := consoleSite(t)
	for _, tt := range []struct {
		node  int
		code  int
		wants []string // of standard output
		hint  string
	}{
		{0, cli.ExitNoConsole, nil, "Ironic tells no address of it"},
		{
			1, cli.ExitDone,
			[]string{"type: vnc\n", "url:  http://127.0.0.1:6090/vnc_auto.html?path=websockify%3Fnode%3D", "token%3D"},
			"It contains a secret",
		},
		{2, cli.ExitDone, []string{
			"type: socat\n", "run:  socat -,raw,echo=0,escape=0x1d TCP:127.0.0.1:8023\n",
			"run:  telnet 127.0.0.1 8023\n",
		}, ""},
		{3, cli.ExitDone, []string{"type: shellinabox\n", "url:  http://127.0.0.1:8023\n"}, "Open the URL in a browser."},
		{4, cli.ExitNoConsole, nil, "the console interface of node node-004 is no-console"},
	} {
		code, stdout, stderr := s.run(t, "console", name(tt.node), "--enable", "--log-level", "debug")
		if code != tt.code || tt.wants == nil && stdout != "" || !strings.Contains(stderr, tt.hint) {
			t.Errorf("%s: exit code %d, wrote %q, said %q", name(tt.node), code, stdout, stderr)
		}
		for _, want := range tt.wants {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: wrote %q, want %q", name(tt.node), stdout, want)
			}
		}
		if _, secret, _ := strings.Cut(stdout, "token%3D"); secret != "" && strings.Contains(stderr, strings.TrimSpace(secret)) {
			t.Errorf("%s: the log has the secret: %q", name(tt.node), stderr)
		}
	}
}

func TestConsoleChangesNothingUnasked(t *testing.T) {
	t.Parallel()
	s := consoleSite(t)
	code, stdout, stderr := s.run(t, "console", name(2))
	if code != cli.ExitNoConsole || stdout != "" || !strings.Contains(stderr, "is not enabled. Use --enable") ||
		len(consoleRequests(s)) > 0 {
		t.Errorf("exit code %d, wrote %q, said %q, sent %v", code, stdout, stderr, consoleRequests(s))
	}
}

// Newer Ironics end the session of the user who is connected when they tell the address.
func TestConsoleEndsNoSessionUnasked(t *testing.T) {
	t.Parallel()
	const on, off, get = `PUT {"enabled":true}`, `PUT {"enabled":false}`, "GET"
	for _, tt := range []struct {
		name    string
		highest string // of the API
		node    int
		args    []string
		code    int
		sent    []string
	}{
		{"may be connected", "1.96", 2, nil, cli.ExitNoConsole, nil},
		{"may be disconnected", "1.96", 2, []string{"--disconnect"}, cli.ExitDone, []string{get}},
		{"an old Ironic", "1.82", 2, nil, cli.ExitDone, []string{get}},
		{"another interface", "1.96", 3, nil, cli.ExitDone, []string{get}},
		{"a restart", "1.96", 2, []string{"--restart"}, cli.ExitDone, []string{off, on, get}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := consoleSiteOf(t, tt.highest)
			s.ironic.Set(name(tt.node), "console_enabled", true)
			code, _, stderr := s.run(t, append([]string{"console", name(tt.node)}, tt.args...)...)
			if sent := consoleRequests(s); code != tt.code || strings.Join(sent, ",") != strings.Join(tt.sent, ",") {
				t.Errorf("exit code %d, sent %v, said %q", code, sent, stderr)
			}
			if code == cli.ExitNoConsole && !strings.Contains(stderr, "Use --disconnect") {
				t.Errorf("said %q", stderr)
			}
		})
	}
}

func TestConsoleFails(t *testing.T) {
	t.Parallel()
	s := consoleSite(t)
	s.ironic.Fail = func(_ fakeironic.Node, verb string) string {
		return map[string]string{"console": "the BMC has no SOL"}[verb]
	}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"node-000", "--enable"}, cli.ExitError, "the BMC has no SOL"},
		{[]string{"no-such"}, cli.ExitNothing, "has no node no-such that you may see"},
		{nil, cli.ExitUsage, "takes the name or the UUID of one node"},
		{[]string{"a", "b"}, cli.ExitUsage, "takes the name or the UUID of one node"},
		{[]string{"a", "--timeout", "0s"}, cli.ExitUsage, "--timeout"},
	} {
		if code, stdout, stderr := s.run(t, append([]string{"console"}, tt.args...)...); code != tt.code || stdout != "" ||
			!strings.Contains(stderr, tt.want) {
			t.Errorf("%v: exit code %d, wrote %q, said %q", tt.args, code, stdout, stderr)
		}
	}
	s.ironic.Reject = func(r *http.Request) *fakeironic.Rejection {
		if strings.HasSuffix(r.URL.Path, "/states/console") {
			return &fakeironic.Rejection{Status: http.StatusForbidden}
		}
		return nil
	}
	if code, _, stderr := s.run(t, "console", name(3), "--enable"); code != cli.ExitError || !strings.Contains(stderr, "was not enabled") ||
		!strings.Contains(stderr, "403") {
		t.Errorf("without the right: exit code %d, said %q", code, stderr)
	}
}

// Only --open starts a browser, and only for a web page.
func TestConsoleOpensABrowser(t *testing.T) {
	t.Parallel()
	s := consoleSite(t)
	opened := filepath.Join(t.TempDir(), "opened")
	browser := filepath.Join(t.TempDir(), "browser")
	if err := os.WriteFile(browser, []byte("#!/bin/sh\nprintf %s \"$1\" > "+opened+".new && mv "+opened+".new "+opened+"\n"),
		0o700); err != nil {
		t.Fatal(err)
	}
	s.env["BROWSER"] = browser
	if code, _, stderr := s.run(t, "console", name(2), "--enable", "--open"); code != cli.ExitError ||
		!strings.Contains(stderr, "it is no web page") {
		t.Errorf("exit code %d, said %q", code, stderr)
	}
	code, stdout, stderr := s.run(t, "console", name(1), "--enable", "--open")
	if code != cli.ExitDone {
		t.Fatalf("exit code %d, said %q", code, stderr)
	}
	var page []byte
	within(t, "the browser", func() bool {
		var err error
		page, err = os.ReadFile(opened)
		return err == nil
	})
	if !strings.Contains(stdout, "url:  "+string(page)+"\n") {
		t.Errorf("opened %q, wrote %q", page, stdout)
	}
	s.env["BROWSER"] = filepath.Join(t.TempDir(), "none")
	if code, _, stderr := s.run(t, "console", name(1), "--open"); code != cli.ExitError || strings.Contains(stderr, "token") {
		t.Errorf("exit code %d, said %q", code, stderr)
	}
}
