package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// deployedSite is a site with two nodes that share no hardware. The first is deployed, and reserved without an allocation by a run that was
// killed.
func deployedSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t, 2)
	s.ironic.StepTime = 0
	for i := range 2 {
		s.ironic.Set(name(i), "driver_info", map[string]any{"ipmi_address": "192.0.2.7", "ipmi_password": password})
	}
	s.ironic.Set(name(0), "provision_state", "active")
	s.ironic.Set(name(0), "instance_uuid", "1be26c0b-03f2-4d2e-ae87-c02d7f33c999")
	s.ironic.Set(name(0), "instance_info", map[string]any{
		"image_source": "https://user:correct%20horse%20battery@images.example.com/debian.qcow2",
	})
	for _, key := range []string{"ONEVIEW_ENDPOINT", "ONEVIEW_USERNAME", "ONEVIEW_PASSWORD"} {
		delete(s.env, key)
	}
	return s
}

// wants runs metal and fails the test unless it ends with a code and writes texts.
func (s *site) wants(t *testing.T, code int, texts []string, args ...string) (stdout string) {
	t.Helper()
	got, stdout, stderr := s.run(t, args...)
	if got != code {
		t.Errorf("metal %q: exit code %d, want %d: %q, %q", args, got, code, stdout, stderr)
	}
	for _, text := range texts {
		if !strings.Contains(stdout+stderr, text) && !strings.Contains(unfolded(stdout), text) {
			t.Errorf("metal %q does not say %q: %q, %q", args, text, stdout, stderr)
		}
	}
	return stdout
}

// unfolded joins the lines that a text for people goes on in.
func unfolded(text string) string { return goesOn.ReplaceAllString(text, "$1 $2") }

var goesOn = regexp.MustCompile(`([^\n])\n *([^ \n])`)

func TestShowTellsOfOneMachine(t *testing.T) {
	t.Parallel()
	s := deployedSite(t)
	s.wants(t, cli.ExitDone, []string{
		"node-000\n", "Who holds it\n", "Instance:       1be26c0b-03f2-4d2e-ae87-c02d7f33c999",
		"State:          active, since ", "Image:          https://images.example.com/debian.qcow2", "Boot interface: ",
		"MAC addresses:  52:54:00:00:00:00, 52:54:00:00:00:01\n", "Nothing: the machine needs no attention.",
	}, "show", name(0))
	s.ironic.Set(name(0), "provision_state", "deploy failed")
	s.ironic.Set(name(0), "last_error", "image is broken\nroot:forged")
	text := s.wants(t, cli.ExitDone, []string{"Last error:     image is broken", "metal undeploy node-000 frees it"}, "show", name(0))
	if strings.Contains(text, "\nroot:forged") {
		t.Errorf("a text of Ironic begins a line: %q", text)
	}
	var page struct {
		State string   `json:"provision_state"`
		Next  []string `json:"next"`
	}
	if err := json.Unmarshal([]byte(s.wants(t, cli.ExitDone, nil, "show", name(0), "--output", "json")), &page); err != nil ||
		page.State != "deploy failed" || len(page.Next) != 1 {
		t.Errorf("%v: %+v", err, page)
	}
	// it is no URL
	s.ironic.Set(name(0), "instance_info", map[string]any{"image_source": "https://user:" + password + "@images.example.com/debian.qcow2"})
	s.wants(t, cli.ExitDone, []string{"Image:          an address that cannot be read"}, "show", name(0))
	for _, unknown := range []string{"nobody", "a/b", "../chassis"} {
		s.wants(t, cli.ExitNothing, []string{"has no node " + unknown + " that you may see"}, "show", unknown)
		s.wants(t, cli.ExitNothing, []string{"a node or an allocation " + unknown + " that you may see"}, "timeline", unknown)
		s.wants(t, cli.ExitNothing, []string{"has no node " + unknown + " that you may see"}, "power", "on", unknown)
	}
	s.wants(t, cli.ExitUsage, []string{"takes the name or the UUID of one node"}, "show", name(0), name(1))
	s.ironic.Set(name(0), "properties", map[string]any{"skip_block_devices": []any{
		map[string]any{"size": "> 800"}, map[string]any{"serial": "gone"}, map[string]any{"model": "<in> ssd"},
	}})
	s.wants(t, cli.ExitDone, []string{
		`Kept disks:     size = "> 800": /dev/sda (DISK-SN000001); serial = "gone": none; model = "<in> ssd": only Ironic's agent can`,
	}, "show", name(0))
}

// A user with few rights must not take what Ironic hides for good news.
func TestShowTellsWhatIronicHides(t *testing.T) {
	t.Parallel()
	s := deployedSite(t)
	s.ironic.Set(name(0), "last_error", "** Value Redacted - Requires baremetal:node:get:last_error permission. **")
	s.ironic.Reject = func(r *http.Request) *fakeironic.Rejection {
		if strings.HasSuffix(r.URL.Path, "/history") || strings.HasPrefix(r.URL.Path, "/v1/ports") {
			return &fakeironic.Rejection{Status: http.StatusForbidden}
		}
		return nil
	}
	text := s.wants(t, cli.ExitDone, []string{
		"Nothing that is visible to you",
		"What Ironic hides from you\n  last_error, ports, history\n",
	}, "show", name(0))
	if strings.Contains(text, "needs no attention") {
		t.Errorf("%q", text)
	}
	s.wants(t, cli.ExitDone, []string{`"hidden": [`, `"last_error"`, `"history"`}, "show", name(0), "--output", "json")
}

func TestShowNeedsFewRequests(t *testing.T) {
	t.Parallel()
	s := deployedSite(t)
	s.wants(t, cli.ExitDone, nil, "show", name(0))
	if sent := s.ironic.Requests(); len(sent) > 5 {
		t.Errorf("%d requests: %+v", len(sent), sent)
	}
}

func TestHistoryShowsNotesOfSeveralMachines(t *testing.T) {
	t.Parallel()
	s := deployedSite(t)
	s.ironic.Set(name(1), "extra", map[string]any{"terraform_metal_turn": map[string]any{
		"group": "databases", "run": "r1",
		"since": "2026-05-01T03:00:00Z",
	}})
	s.wants(t, cli.ExitDone, []string{
		"2 nodes\n", "2026-05-01 03:00:00        node-001  turn of rollout group databases (run r1; note)\n",
		"The history of some of these nodes is empty.",
	}, "history", "--all")
	var life struct {
		Moments []struct {
			At, What, Who string
			Node          string `json:"node_name"`
		}
	}
	text := s.wants(t, cli.ExitDone, nil, "history", name(1), "--output", "json")
	if err := json.Unmarshal([]byte(text), &life); err != nil || len(life.Moments) != 1 || life.Moments[0].At != "2026-05-01T03:00:00Z" ||
		life.Moments[0].Node != name(1) || life.Moments[0].Who != "run r1" {
		t.Errorf("%v: %s", err, text)
	}
	s.wants(t, cli.ExitUsage, []string{"needs the names or UUIDs of nodes"}, "history")
}

func TestValidateWritesALineForEachInterface(t *testing.T) {
	t.Parallel()
	s := deployedSite(t)
	if text := s.wants(t, cli.ExitDone, []string{"NODE", "REASON"}, "validate", name(0), name(1)); !strings.Contains(text, "node-001") ||
		!strings.Contains(text, "power") {
		t.Errorf("%q", text)
	}
	s.wants(t, cli.ExitUsage, []string{"--output is \"yaml\""}, "validate", name(0), "--output", "yaml")
	s.ironic.Set(name(1), "driver", "redfish")
	for _, part := range []string{"power", "management"} {
		s.ironic.Set(name(1), part+"_interface", "redfish")
	}
	for _, part := range []string{"bios", "console", "firmware", "inspect", "raid", "rescue", "vendor"} {
		s.ironic.Set(name(1), part+"_interface", "no-"+part)
	}
	s.ironic.Set(name(1), "boot_interface", "ipxe")
	s.ironic.Set(name(1), "deploy_interface", "direct")
	s.ironic.Set(name(1), "driver_info", map[string]any{})
	s.wants(t, cli.ExitNodesFailed, []string{
		"  power       no   yes     driver-info  Missing", "  raid        no   no      -            Driver", "\ndriver-info: A key of driver_info is missing or wrong.\nRun metal validate",
	}, "validate", name(1))
}

func TestUndeployNeedsTheName(t *testing.T) {
	t.Parallel()
	s := deployedSite(t)
	s.wants(t, cli.ExitWouldChange, []string{"planned", "undeploys it, which erases its disks"}, "undeploy", name(0), "--dry-run")
	s.wants(t, cli.ExitUnconfirmed, []string{"Use --yes-erase node-000. Nothing was done"}, "undeploy", name(0), "--yes")
	s.wants(t, cli.ExitNodesFailed, []string{"something is deployed on it", "metal undeploy --release node-000"}, "release", "--node",
		name(0), "--yes")
	if node, _ := s.ironic.Node(name(0)); node.ProvisionState != "active" || node.InstanceUUID == "" {
		t.Fatalf("it was touched: %+v", node)
	}
	s.wants(t, cli.ExitDone, []string{"node-000", "available", "done"}, "undeploy", name(0), "--yes-erase", name(0),
		"--poll-interval", "10ms")
	if node, _ := s.ironic.Node(name(0)); node.ProvisionState != "available" || node.InstanceUUID != "" {
		t.Errorf("it was not undeployed: %+v", node)
	}
	s.wants(t, cli.ExitDone, []string{"unchanged"}, "undeploy", name(0))
}

func TestReleaseAsksAndGivesUp(t *testing.T) {
	t.Parallel()
	s := deployedSite(t)
	s.ironic.Set(name(1), "instance_uuid", "1be26c0b-03f2-4d2e-ae87-c02d7f33c998")
	mark := map[string]any{"since": "2026-05-01T03:00:00Z", "instance": "1be26c0b-03f2-4d2e-ae87-c02d7f33c998"}
	s.ironic.Set(name(1), "extra", map[string]any{"terraform_metal_reservation": map[string]any{
		"7d9ab9ef-7a4b-4d5d-9d6a-2f7f0b3f3f11": mark,
	}})
	s.wants(t, cli.ExitUnconfirmed, []string{"run 7d9ab9ef-7a4b-4d5d-9d6a-2f7f0b3f3f11", "Use --yes-erase node-001. Nothing was done"},
		"release", "--node", name(1), "--yes")
	s.wants(t, cli.ExitWouldChange, []string{"planned"}, "release", "--node", name(1), "--dry-run")
	s.wants(t, cli.ExitDone, []string{"done"}, "release", "--node", name(1), "--yes-erase", name(1))
	if node, _ := s.ironic.Node(name(1)); node.InstanceUUID != "" {
		t.Errorf("it is still reserved by %s", node.InstanceUUID)
	}
	s.wants(t, cli.ExitNothing, []string{"has no allocation web-3, node rack1-07 that you may see"}, "release", "web-3", "--node",
		"rack1-07", "--yes")
	s.wants(t, cli.ExitUsage, []string{"needs names or UUIDs of allocations, or --node"}, "release")
}

// A service leaves a note, which the history and the life of the machine tell.
func TestServiceLeavesANote(t *testing.T) {
	t.Parallel()
	s := deployedSite(t)
	s.wants(t, cli.ExitDone, []string{"done"}, "service", name(0), "--steps", "vendor.log_passthrough", "--yes-erase", name(0),
		"--poll-interval", "10ms")
	for _, command := range []string{"history", "timeline"} {
		s.wants(t, cli.ExitDone, []string{"  the provider noted: service (vendor.log_passthrough) (run "}, command, name(0))
	}
}

func TestRescueReadsThePasswordFromAFile(t *testing.T) {
	t.Parallel()
	s := deployedSite(t)
	s.ironic.Set(name(0), "rescue_interface", "fake")
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.wants(t, cli.ExitUsage, []string{`but one is "reset"`}, "service", name(0), "--steps", "reset")
	s.wants(t, cli.ExitUsage, []string{"rescue needs a password. Use --password-file"}, "rescue", name(0), "--yes-erase", name(0))
	s.wants(t, cli.ExitDone, []string{"done", "ssh rescue@"}, "rescue", name(0), "--password-file", file, "--yes-erase", name(0),
		"--poll-interval", "10ms", "--log-level", "debug")
	if node, _ := s.ironic.Node(name(0)); node.ProvisionState != "rescue" {
		t.Errorf("it is %s", node.ProvisionState)
	}
	s.wants(t, cli.ExitUnconfirmed, nil, "unrescue", name(0), "--yes")
	s.wants(t, cli.ExitDone, []string{"done"}, "unrescue", name(0), "--yes-erase", name(0), "--poll-interval", "10ms")
}
