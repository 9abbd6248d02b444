package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// inspected gives the machines of a site inventories.
func (s *site) inspected(nodes int) {
	for n := range nodes {
		inventory, _ := fakeironic.SampleInventory(n)["inventory"].(map[string]any)
		s.ironic.SetInventory(name(n), inventory, nil)
	}
}

// The file that a command writes is what the machines have, and a check finds the one that a technician must open.
func TestLock(t *testing.T) {
	t.Parallel()
	s, file := newSite(t, 3), filepath.Join(t.TempDir(), "hardware.lock.json")
	if code, _, stderr := s.run(t, "lock", "--check", "--all", "--lock-file", file); code != cli.ExitError ||
		!strings.Contains(stderr, "could not read "+file) {
		t.Errorf("without a file: exit code %d, %s", code, stderr)
	}
	for n := range 3 {
		s.ironic.SetInventory(name(n), map[string]any{}, nil)
	}
	if code, _, stderr := s.run(t, "lock", "--all", "--lock-file", file); code != cli.ExitNodesFailed ||
		!strings.Contains(stderr, "node-000: its inventory names no product") {
		t.Errorf("without products: exit code %d, %s", code, stderr)
	}
	if _, err := os.Stat(file); err == nil {
		t.Errorf("there is a file of no machine")
	}
	s.inspected(3)
	code, stdout, stderr := s.run(t, "lock", "--all", "--lock-file", file)
	text, err := os.ReadFile(file)
	if want := "  \"Rack One\": {\n    \"manufacturer\": \"Example Systems\","; code != cli.ExitDone || err != nil ||
		!strings.Contains(string(text), want) ||
		!strings.Contains(stdout, "1 model, from 3 machines") {
		t.Fatalf("exit code %d, %v, %s%s\n%s", code, err, stdout, stderr, text)
	}
	if code, stdout, _ := s.run(t, "lock", "--check", "--all", "--lock-file", file); code != cli.ExitDone ||
		stdout != "3 machines as expected\n" {
		t.Errorf("exit code %d, %q", code, stdout)
	}
	inventory, _ := fakeironic.SampleInventory(1)["inventory"].(map[string]any)
	inventory["memory"] = map[string]any{"physical_mb": 114688}
	s.ironic.SetInventory(name(1), inventory, nil)
	code, stdout, stderr = s.run(t, "lock", "--check", "--all", "--lock-file", file)
	if want := "node-001 (Rack One): 112 of 128 GiB of memory: a DIMM is missing\n"; code != cli.ExitFound || stdout != want ||
		!strings.Contains(stderr, "1 of 3 machines differ") {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
	code, stdout, _ = s.run(t, "lock", "--check", "--all", "--output", "json", "--lock-file", file)
	var found []struct {
		NodeName    string `json:"node_name"`
		Differences []struct{ Fact, Expected, Found string }
	}
	if err := json.Unmarshal([]byte(stdout), &found); err != nil || code != cli.ExitFound || len(found) != 3 ||
		len(found[1].Differences) != 1 || found[1].Differences[0].Found != "114688" || found[0].Differences == nil {
		t.Errorf("exit code %d, %v: %s", code, err, stdout)
	}
	if code, _, stderr = s.run(t, "lock", "--all", "--lock-file", file); code != cli.ExitDone ||
		!strings.Contains(stderr, `Rack One: memory_mb differs, and is left out: "131072" (node-000, node-002), "114688" (node-001)`) {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}
