package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
)

// completed returns the words that a shell offers for the end of a command line.
func completed(t *testing.T, s *site, args ...string) string {
	t.Helper()
	code, stdout, _ := s.run(t, append([]string{"__complete"}, args...)...)
	words, directive, _ := strings.Cut(stdout, ":")
	if code != cli.ExitDone || !strings.HasPrefix(directive, "4") { // no names of files
		t.Errorf("%q: exit code %d, %q", args, code, stdout)
	}
	return strings.Join(strings.Fields(words), " ")
}

func TestCompletionOfNames(t *testing.T) {
	t.Parallel()
	s := newSite(t, 3)
	s.ironic.Set(name(2), "resource_class", "gpu")
	for _, tt := range []struct {
		line string
		want string
	}{
		{"power off |", "node-000 node-001 node-002"},
		{"power off node-001 node-0|", "node-000 node-002"},
		{"undeploy |", "node-000 node-001 node-002"},
		{"undeploy node-001 --yes-erase node-001,|", "node-001,node-000 node-001,node-002"},
		{"show node-00|", "node-000 node-001 node-002"},
		{"show node-000 |", ""},
		{"console x|", ""},
		{"validate --resource-class |", "baremetal gpu"},
		{"history --provision-state deploy|", "deploy complete deploy failed deploy hold deploying"},
		{"release |", ""},
		{"watch --output|", ""},
	} {
		args := strings.Split(strings.TrimSuffix(tt.line, "|"), " ")
		if got := completed(t, s, args...); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.line, got, tt.want)
		}
	}
}

func TestCompletionIsSilentWithoutIronic(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	for what, endpoint := range map[string]string{"nothing is set": "", "nothing listens": "http://127.0.0.1:1"} {
		s.env["METAL_ENDPOINT"] = endpoint
		code, stdout, stderr := s.run(t, "__complete", "power", "on", "")
		if code != cli.ExitDone || stdout != ":4\n" || strings.Contains(stderr, "metal:") {
			t.Errorf("%s: exit code %d, %q, %q", what, code, stdout, stderr)
		}
	}
}

func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	s := newSite(t, 0)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		code, stdout, _ := s.run(t, "completion", shell)
		_, help, _ := s.run(t, "completion", shell, "--help")
		if code != cli.ExitDone || !strings.Contains(stdout, "metal") ||
			!strings.Contains(help, fmt.Sprintf("metal completion %s", shell)) {
			t.Errorf("%s: exit code %d, %d characters, help %q", shell, code, len(stdout), help)
		}
	}
}
