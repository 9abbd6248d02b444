package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	acc "github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// night is what may be wrong when an operator reads a section of the guide At three in the morning.
type night struct {
	section string
	row     string                                       // the first cell of the row that fits; empty: the section has no table for it
	wrong   func(t *testing.T, s *acc.Site) *acc.Site    // makes the site so
	says    string                                       // what the commands of the section say
	exits   map[string]int                               // the exit codes of commands that do not end with 0, by their first words
	then    func(t *testing.T, node map[string]any) bool // what the section promises of the machine
}

// onNode sets fields of the machine of the guide, which has been so for two hours.
func onNode(fields map[string]any) func(*testing.T, *acc.Site) *acc.Site {
	return func(_ *testing.T, s *acc.Site) *acc.Site {
		for _, field := range slices.Sorted(maps.Keys(fields)) { // a new provision state empties the reservation
			s.Fake.Set("rack1-07", field, fields[field])
		}
		s.Fake.Set("rack1-07", "provision_updated_at", time.Now().Add(-2*time.Hour).UTC().Format("2006-01-02T15:04:05+00:00"))
		return s
	}
}

func stateIs(want string) func(*testing.T, map[string]any) bool {
	return func(_ *testing.T, node map[string]any) bool { return node["provision_state"] == want }
}

func inMaintenance(reason any) func(*testing.T, map[string]any) bool {
	return func(_ *testing.T, node map[string]any) bool {
		return node["maintenance"] == (reason != nil) && node["maintenance_reason"] == reason && node["fault"] == nil
	}
}

// nights has a case for each section, and for each row of its tables that says what commands show.
func nights() []night {
	const stuck, hangs, failed, lock, dead = "A machine is stuck", "An apply hangs", "A deployment failed", "The lock is held",
		"A BMC is dead"
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	noted := func(key string, note map[string]any) func(*testing.T, *acc.Site) *acc.Site {
		note["since"], note["run"] = time.Now().Add(-time.Minute).UTC().Format(time.RFC3339), "b8c0e1de-7a43-4d5c-9a8b-0a4d9f1f7c11"
		return onNode(map[string]any{"provision_state": "active", "power_state": "power on", "extra": map[string]any{key: note}})
	}
	unable := map[string]int{"metal console": cli.ExitNoConsole, "metal abort": cli.ExitNodesFailed}
	return []night{
		{
			stuck, "Ironic waits for its ramdisk", onNode(map[string]any{"provision_state": "clean wait"}),
			"Ironic has waited for its ramdisk",
			map[string]int{"metal console": cli.ExitNoConsole},
			stateIs("clean failed"),
		},
		{
			stuck, "no conductor works on this operation any more",
			onNode(map[string]any{"provision_state": "cleaning", "last_error": "the conductor was restarted"}),
			"No conductor works on this operation any more. Restart the conductor", unable, stateIs("cleaning"),
		},
		{
			stuck, "a conductor has locked the node", onNode(map[string]any{"provision_state": "manageable", "reservation": "ironic-1"}),
			"The conductor ironic-1 has locked the node", unable, stateIs("manageable"),
		},
		{
			hangs, "machines change state", onNode(map[string]any{"provision_state": "cleaning", "reservation": "ironic-1"}),
			"cleaning", nil, nil,
		},
		{
			hangs, "operations in progress, and none of your machines",
			onNode(map[string]any{"provision_state": "cleaning", "reservation": "ironic-1"}), "0 of 1 done, 1 in progress", nil, nil,
		},
		{hangs, "one machine, for long in one state", onNode(map[string]any{"provision_state": "clean wait"}), "2h", nil, nil},
		{
			hangs, "`ready check`", noted("terraform_metal_ready", map[string]any{"target": "TCP port 192.0.2.1:22", "until": later}),
			"ready check", nil, nil,
		},
		{
			hangs, "`rollout group`, `turn of`", noted("terraform_metal_turn", map[string]any{"group": "databases", "until": later}),
			"rollout group databases pauses until ", nil, nil,
		},
		{
			hangs, "`rollout group`, `turn of`", noted("terraform_metal_turn", map[string]any{"group": "databases", "failed": true}),
			"rollout group databases waits for a member that has failed",
			map[string]int{"metal watch": cli.ExitNodesFailed},
			nil,
		},
		{hangs, "nothing in progress, `lock records` are held or stale", withStaleLock, "lock records", nil, nil},
		{hangs, "nothing in progress, and no lock record", onNode(nil), "no run holds the lock or waits for a slot", nil, nil},
		{failed, "", onNode(map[string]any{"provision_state": "deploy failed", "last_error": "Deploy step deploy.write_image failed: the " +
			"checksum does not match"}), "the checksum does not match", nil, inMaintenance("deploy failed, see ticket 4711")},
		{lock, "there is none", onNode(nil), "There is none", nil, nil},
		{lock, "stale", withStaleLock, "or deleted it, meanwhile", nil, nil},
		{
			dead, "", onNode(map[string]any{"maintenance": true, "fault": "power failure"}), "Ironic does not reach the BMC", nil,
			inMaintenance(nil),
		},
	}
}

// staleLock is the UUID of the record of a lock whose run was killed an hour ago.
const staleLock = "4d4d2f6a-2c9e-5c55-9a83-b1b3b7a6a001"

// withStaleLock puts such a record in front of a site: the fake has no records that are older than the test.
func withStaleLock(t *testing.T, s *acc.Site) *acc.Site {
	t.Helper()
	record := fmt.Sprintf(
		`{"uuid": %q, "description": "terraform-provider-metal: provisioning limit", "extra": {"holders": {"a": 1}, "run": "b8c0e1de-7a43-4d5c-9a8b-0a4d9f1f7c11"}, "created_at": %q, "updated_at": null}`,
		staleLock, time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))
	var deleted atomic.Bool // by another run, while metal doctor watches the record
	return s.Behind(t, func(r *http.Request, _ []byte) *acc.Disturbance {
		one := r.URL.Path == "/v1/chassis/"+staleLock
		switch {
		case deleted.Load():
			return nil
		case one:
			deleted.Store(true)
			return nil
		case r.URL.Path == "/v1/chassis" && r.Method == http.MethodGet:
			return &acc.Disturbance{Status: http.StatusOK, Body: `{"chassis": [` + record + `]}`}
		}
		return nil
	})
}

// TestNight_recipesWork runs the commands of each section of the guide on sites where that is wrong.
func TestNight_recipesWork(t *testing.T) {
	t.Parallel()
	sections := nightSections(t)
	tried := map[string]bool{}
	for _, n := range nights() {
		section := sections[n.section]
		tried[n.section], tried[n.row] = true, true
		t.Run(n.section+"/"+n.row, func(t *testing.T) {
			t.Parallel()
			s := acc.StartFake(t, &fakeironic.Server{})
			s.Must(http.MethodPost, "nodes", map[string]any{"name": "rack1-07", "driver": "fake-hardware", "resource_class": "baremetal"})
			s.Fake.Set("rack1-07", "power_state", "power off")
			s.Fake.Set("rack1-07", "provision_state", "available")
			s = n.wrong(t, s)
			said := ""
			for _, command := range nightCommands(section) {
				said += runNight(t, s, command, n.exits)
			}
			if !strings.Contains(unfolded(said), n.says) {
				t.Errorf("the commands do not say %q:\n%s", n.says, said)
			}
			if n.row != "" && !strings.Contains(section, "\n| "+n.row+" |") {
				t.Errorf("the section has no row %q", n.row)
			}
			if node := s.Node("rack1-07"); n.then != nil && !n.then(t, node) {
				t.Errorf("afterwards the machine is in state %v, maintenance %v, reason %v, fault %v", node["provision_state"],
					node["maintenance"], node["maintenance_reason"], node["fault"])
			}
		})
	}
	for title, section := range sections {
		if !tried[title] && len(nightCommands(section)) > 0 {
			t.Errorf("no test runs the commands of section %q", title)
		}
	}
	for _, title := range []string{"A machine is stuck", "An apply hangs"} {
		for _, row := range firstCell.FindAllStringSubmatch(sections[title], -1) {
			if cell := row[1]; !tried[cell] && !slices.Contains([]string{"---", "It says", "You see"}, cell) {
				t.Errorf("no test shows what row %q of section %q says", cell, title)
			}
		}
	}
}

var (
	shellBlock = regexp.MustCompile("(?s)```shell\n(.*?)```")
	firstCell  = regexp.MustCompile(`(?m)^\| ?([^|]*?) ?\|`)
	words      = regexp.MustCompile(`"[^"]*"|\S+`)
)

// nightSections returns the sections of the guide by their titles.
func nightSections(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../templates/guides/three-in-the-morning.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, section := range strings.Split(string(page), "\n## ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		sections[title] = text
	}
	return sections
}

// nightCommands returns the calls of metal in the shell blocks of a section.
func nightCommands(section string) (commands []string) {
	for _, block := range shellBlock.FindAllStringSubmatch(section, -1) {
		for line := range strings.Lines(block[1]) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "metal ") {
				commands = append(commands, line)
			}
		}
	}
	return commands
}

// stopper ends a command that goes on until Ctrl-C, as soon as it has written something.
type stopper struct {
	written
	stop context.CancelFunc
}

func (s *stopper) Write(p []byte) (int, error) {
	defer s.stop()
	return s.written.Write(p)
}

// runNight runs a command of the guide, and returns what it has written. Its exit code is 0 unless exits has another one.
func runNight(t *testing.T, s *acc.Site, command string, exits map[string]int) (said string) {
	t.Helper()
	var args []string
	for _, word := range words.FindAllString(command, -1)[1:] {
		args = append(args, strings.Trim(word, `"`))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &stopper{stop: func() {}}
	switch args[0] {
	case "watch":
		page := filepath.Join(t.TempDir(), "page.html") // has what a terminal shows
		args, out.stop = append(args, "--html", page), cancel
		defer func() {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Error(err)
			}
			said += string(text)
		}()
	case "abort":
		args = append(args, "--yes") // it asks on a terminal
	}
	want := 0
	for begins, code := range exits {
		if strings.HasPrefix(command, begins) {
			want = code
		}
	}
	var log written
	code := run(ctx, append(args, "--poll-interval", "10ms"), func(key string) string {
		return map[string]string{"METAL_ENDPOINT": s.Endpoint}[key]
	}, out, &log)
	if args[0] != "doctor" && code != want || code == cli.ExitUsage { // doctor ends with the code of what it has found
		t.Errorf("%s: exit code %d, want %d\n%s%s", command, code, want, out.String(), log.String())
	}
	return "$ " + command + "\n" + out.String() + log.String()
}
