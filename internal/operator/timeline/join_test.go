package timeline_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/timeline"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the files in testdata")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("%s differs, %v; go test ./internal/operator/timeline -rewrite writes it anew. Got:\n%s", file, err, got)
	}
}

// at is a minute of the stories.
func at(minutes float64) time.Time {
	return time.Date(2026, 11, 22, 14, 0, 0, 0, time.UTC).Add(time.Duration(minutes * float64(time.Minute)))
}

// record returns the lines of a record: "MINUTE began", or "MINUTE STATE", with "<SINCE" for a state that is seen first, "+DOING",
// "!REASON" for a failure and "@INSTANCE".
func record(lines string) []watch.Entry {
	var all []watch.Entry
	last := ""
	for line := range strings.SplitSeq(lines, "; ") {
		var minute float64
		when, what, _ := strings.Cut(line, " ")
		if _, err := fmt.Sscan(when, &minute); err != nil {
			panic(err)
		}
		e := watch.Entry{At: at(minute)}
		switch event := watch.Event(what); event {
		case watch.EventBegan, watch.EventLost, watch.EventAgain, watch.EventEnded:
			e.Watch = event
			all = append(all, e)
			continue
		}
		e.Node, e.Name = "n1", "rack1-01"
		what, e.Instance, _ = strings.Cut(what, "@")
		what, e.Words, e.Failed = strings.Cut(what, "!")
		what, e.Doing, _ = strings.Cut(what, "+")
		what, since, first := strings.Cut(what, "<")
		if first {
			if _, err := fmt.Sscan(since, &minute); err != nil {
				panic(err)
			}
			e.Since = at(minute)
		} else {
			e.From = last
		}
		e.State, last = what, what
		all = append(all, e)
	}
	return all
}

// brief writes a life with minutes, one moment after the other.
func brief(l timeline.Life) string {
	var all []string
	for _, m := range l.Moments {
		text := fmt.Sprintf("%.4g %s", m.At.Sub(at(0)).Minutes(), m.What)
		if !m.Until.IsZero() {
			text += strings.TrimSuffix(fmt.Sprintf(" for %.4g %s", m.Until.Sub(m.At).Minutes(), m.Bound), " ")
		}
		if m.Who != "" {
			text += " by " + m.Who
		}
		if m.Words != "" {
			text += ": " + m.Words
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

func TestJoin_states(t *testing.T) {
	t.Parallel()
	seconds := func(minutes int) *int { s := 60 * minutes; return &s }
	node := func(state string, since float64) *ironic.Node {
		return &ironic.Node{UUID: "n1", Name: "rack1-01", ProvisionState: state, ProvisionUpdatedAt: at(since)}
	}
	failed := node("clean failed", 20)
	failed.LastError = "no disk\nTraceback"
	for name, tc := range map[string]struct {
		records []string
		node    *ironic.Node
		history []ironic.Event
		want    string // now is minute 60
	}{
		"the node alone":                     {nil, node("active", 10), nil, "10 active for 50 so far"},
		"a state that waits for its ramdisk": {nil, node("clean wait", 10), nil, "10 clean wait for 50 so far"},
		"a failure":                          {nil, failed, nil, "20 clean failed for 40 so far: no disk"},
		"a failure with its history": {
			nil, failed,
			[]ironic.Event{{CreatedAt: at(19.98), Severity: "ERROR", Type: "cleaning", Event: "no disk\nTraceback"}},
			"20 clean failed for 40 so far: no disk",
		},
		"a failure of the past": {
			nil, node("active", 50),
			[]ironic.Event{{CreatedAt: at(20), Severity: "ERROR", Type: "cleaning", Event: "no disk"}},
			"20 cleaning failed: no disk; 20 nothing is known for 30; 50 active for 10 so far",
		},
		"the history of Ironic 39 knows states": {
			nil, node("active", 50),
			[]ironic.Event{{
				CreatedAt: at(20), Severity: "ERROR", Type: "cleaning", Event: "no disk", State: "cleaning",
				Seconds: seconds(5),
			}},
			"15 cleaning for 5 at least; 20 cleaning failed: no disk; 20 nothing is known for 30; 50 active for 10 so far",
		},
		"the history of Ironic 39 knows flows": {
			nil, node("available", 20),
			[]ironic.Event{
				{CreatedAt: at(10), Severity: "INFO", Type: "manual_cleaning_start", Event: "Starting"},
				{CreatedAt: at(15), Severity: "INFO", Type: "manual_cleaning_end", Event: "completed"},
				{CreatedAt: at(20), Severity: "INFO", Type: "automated_cleaning_end", Event: "completed"},
			},
			"10 manual cleaning for 5: Starting; 15 nothing is known for 5; 20 available for 40 so far; 20 automated cleaning " +
				"ended: completed",
		},
		"a flow that fails": {
			nil, node("deploy failed", 20),
			[]ironic.Event{
				{CreatedAt: at(10), Severity: "INFO", Type: "deployment_start", Event: "Starting"},
				{CreatedAt: at(20), Severity: "ERROR", Type: "deploying", Event: "no disk"},
			},
			"10 deployment that failed for 10: Starting; 20 deploy failed for 40 so far: no disk",
		},
		"a record that ends with the present": {
			[]string{"5 began; 5 available<1; 10 deploying; 30 active; 55 ended"},
			node("active", 30), nil,
			"1 available for 9; 10 deploying for 20; 30 active for 30 so far",
		},
		"something changed after the record": {
			[]string{"5 began; 5 available<1; 10 deploying; 20 ended"},
			node("active", 30), nil,
			"1 available for 9; 10 deploying for 10 at least; 20 nothing is known for 10; 30 active for 30 so far",
		},
		"the same state, but another time": {
			[]string{"5 began; 5 active<1; 20 ended"},
			node("active", 30), nil,
			"1 active for 19 at least; 20 nothing is known for 10; 30 active for 30 so far",
		},
		"nothing changed after the record": {[]string{"5 began; 5 active<1; 20 ended"}, node("active", 1), nil, "1 active for 59 so far"},
		"a killed watch knows nothing after its last line": {
			[]string{"5 began; 5 available<1; 10 deploying; 25 began; 25 active<20; 30 ended"},
			node("active", 20), nil,
			"1 available for 9; 10 deploying; 10 nothing is known for 10; 20 active for 40 so far",
		},
		"Ironic did not answer, and nothing changed": {
			[]string{"5 began; 5 available<1; 10 lost; 20 again; 30 ended"},
			nil, nil,
			"1 available for 9 at least; 10 nothing is known for 10; 20 available for 10 at least; 30 nothing is known for 30",
		},
		"Ironic did not answer, and something changed": {
			[]string{"5 began; 5 available<1; 10 lost; 20 again; 15 deploying; 30 ended"},
			nil, nil,
			"1 available for 9 at least; 10 nothing is known for 5; 15 deploying for 15 at least; 30 nothing is known for 30",
		},
		"Ironic did not answer, and something changed later": {
			[]string{"5 began; 5 available<1; 10 lost; 20 again; 25 deploying; 30 ended"},
			nil, nil,
			"1 available for 9 at least; 10 nothing is known for 10; 20 available for 5 at least; 25 deploying for 5 at least; 30 " +
				"nothing is known for 30",
		},
		"two watches at once": {
			[]string{"5 began; 5 available<1; 10 deploying; 30 active; 35 ended", "15 began; 15 deploying<10; 30 active; 40 ended"},
			node("active", 30), nil,
			"1 available for 9; 10 deploying for 20; 30 active for 30 so far",
		},
		"a ready check": {
			[]string{"5 began; 5 deploying<1; 30 active+active, ready check; 32 active; 40 ended"},
			node("active", 30), nil,
			"1 deploying for 29; 30 active, ready check for 2; 32 active for 28 so far",
		},
		"a power change when the record ends": {
			[]string{"5 began; 5 active<1; 30 active+active, switching on; 35 ended"},
			node("active", 1), nil,
			"1 active for 29; 30 active, switching on for 5 at least; 35 active for 25 so far",
		},
		"a failure in the record": {
			[]string{"5 began; 5 deploying<1; 30 deploy failed!no disk; 31 deploying; 40 active; 45 ended"},
			node("active", 40),
			[]ironic.Event{{
				CreatedAt: at(29.95), Severity: "ERROR", Type: "deploying", Event: "no disk", State: "deploying",
				Seconds: seconds(28),
			}},
			"1 deploying for 29; 30 deploy failed for 1: no disk; 31 deploying for 9; 40 active for 20 so far",
		},
		"between two cleanings, three seconds are not known": {
			nil, node("clean failed", 20.05),
			[]ironic.Event{
				{CreatedAt: at(10), Severity: "ERROR", Type: "cleaning", Event: "no disk", State: "cleaning", Seconds: seconds(5)},
				{CreatedAt: at(20.05), Severity: "ERROR", Type: "cleaning", Event: "no fan", State: "cleaning", Seconds: seconds(10)},
			},
			"5 cleaning for 5 at least; 10 cleaning failed: no disk; 10.05 cleaning for 10; 20.05 clean failed for 39.95 so far: no fan",
		},
		"states at the same time": {
			[]string{"5 began; 5 enroll; 5 verifying; 6 manageable; 7 ended"},
			nil, nil,
			"5 enroll; 5 verifying for 1; 6 manageable for 1 at least; 7 nothing is known for 53",
		},
		"two failures within seconds": {
			[]string{"5 began; 5 cleaning<1; 10 clean failed!no disk; 10.02 cleaning; 10.07 clean failed!no disk; 11 ended"},
			node("clean failed", 10.07),
			[]ironic.Event{
				{CreatedAt: at(9.99), Severity: "ERROR", Type: "cleaning", Event: "no disk", Conductor: "c1"},
				{CreatedAt: at(10.06), Severity: "ERROR", Type: "cleaning", Event: "no disk", Conductor: "c2"},
			},
			"1 cleaning for 9; 10 clean failed for 0.02 by conductor c1: no disk; 10.02 cleaning for 0.05; 10.07 clean failed for 49.93 " +
				"so far by conductor c2: no disk",
		},
		"a node that is gone": {
			[]string{"5 began; 5 available<1; 10 deleted; 20 ended"},
			nil, nil,
			"1 available for 9; 10 deleted for 10 at least; 20 nothing is known for 40",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := timeline.Evidence{ID: "n1", Name: "rack1-01", Node: tc.node, History: tc.history}
			for _, lines := range tc.records {
				m.Records = append(m.Records, record(lines))
			}
			if got := brief(timeline.Join(timeline.Facts{Now: at(60), Machines: []timeline.Evidence{m}})); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

const run = "7c5f2b5e-7a0c-4a55-9d0e-3f6f5e8f4a11"

// A node was in one state before an allocation had it, and still is: its life with the allocation has the time in between only.
func TestJoin_endsWithTheReservation(t *testing.T) {
	t.Parallel()
	n := &ironic.Node{UUID: "n1", Name: "rack1-01", ProvisionState: "available", ProvisionUpdatedAt: at(-600)}
	for want, periods := range map[string][]timeline.Period{
		"-500 available for 100 at least; -400 nothing is known for 400": {{From: at(-500), To: at(-400)}},
		// a record, and the allocation
		"-500 available for 500 so far": {{From: at(-450), To: at(-440)}, {From: at(-500)}},
	} {
		life := timeline.Join(timeline.Facts{
			Subject: "allocation web-1", Now: at(0),
			Machines: []timeline.Evidence{{ID: n.UUID, Name: n.Name, Node: n, Periods: periods}},
		})
		if got := brief(life); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// The histories of several nodes are one table, with what has begun and ended in one row, and the notes in between.
func TestHistory_ofSeveralNodes(t *testing.T) {
	t.Parallel()
	event := func(minutes float64, severity, kind, text string) ironic.Event {
		return ironic.Event{CreatedAt: at(minutes), Severity: severity, Type: kind, Event: text}
	}
	noted := &ironic.Node{UUID: "n2", Name: "rack1-02", ProvisionState: "available", ProvisionUpdatedAt: at(9), Extra: map[string]any{
		"terraform_metal_erasure":    map[string]any{"run": run, "began": at(5).Format(time.RFC3339), "ended": at(9).Format(time.RFC3339)},
		"terraform_metal_allocation": map[string]any{"uuid": "a1", "name": "web-1"},
	}}
	life := timeline.History(timeline.Facts{Subject: "2 nodes", Now: at(60), Machines: []timeline.Evidence{
		{ID: "n1", Name: "rack1-01", Node: &ironic.Node{UUID: "n1", Name: "rack1-01"}, History: []ironic.Event{
			event(1, "INFO", "deployment_start", "begins"), event(7, "INFO", "deployment_end", "ends"),
			event(20, "ERROR", "cleaning", "no disk\nTraceback"),
		}},
		{ID: "n2", Name: "rack1-02", Node: noted},
	}})
	want := "1 deployment for 6: begins; 5 the provider noted: automated cleaning for 4 by run " + run + "; 20 cleaning failed: no disk"
	if got := brief(life); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var text bytes.Buffer
	if err := life.Text(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"2 nodes\nrack1-02: An undeployment is to create allocation web-1 (a1) again.\n",
		"2026-11-22 14:05:00  4m00s  rack1-02  the provider noted: automated cleaning (run",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, text.String())
		}
	}
}

// noted is a node with a note of each kind.
func noted() *ironic.Node {
	began, ended := at(-100), at(-95)
	stamp := func(minutes float64) string { return at(minutes).Format(time.RFC3339) }
	text := fmt.Sprintf(`{
		"terraform_metal_discovery": {"owner": "rack1", "name": "rack1-01", "from": "serial", "at": %q},
		"terraform_metal_creation": {%q: {"since": %q, "done": %q}},
		"terraform_metal_reservation": {%q: {"since": %q}},
		"terraform_metal_erasure": {"run": %q, "steps": ["deploy.erase_devices"], "began": %q, "ended": %q, "failed": true},
		"terraform_metal_service": {"run": %q, "steps": ["bios.apply_configuration"], "began": %q, "ended": %q},
		"terraform_metal_turn": {"group": "databases", "run": %q, "canary": true, "since": %q, "until": %q},
		"terraform_metal_ready": {"since": %q, "target": "TCP port 198.51.100.11:22"},
		"terraform_metal_boot": {"image": "i", "at": %q, "boots": 2},
		"terraform_metal_operation": {%q: {"command": "retire", "by": "ana@bastion", "since": %q, "goal": "retired"}},
		"terraform_metal_failures": 3
	}`, stamp(-110), run, stamp(-105), stamp(-90), run, stamp(-20), run, stamp(-80), stamp(-70), run, stamp(-13), stamp(-12), run, stamp(-15), stamp(90), stamp(55), stamp(-10), run, stamp(45))
	n := &ironic.Node{
		UUID: "8f4e0f5e-50a4-4c4f-8d4f-9d4a3f0f0b11", Name: "rack1-01", ProvisionState: "active", PowerState: "power on",
		ProvisionUpdatedAt: at(50), CreatedAt: at(-120), UpdatedAt: at(58),
		InspectionStartedAt: &began, InspectionFinishedAt: &ended, Owner: "team-a", Maintenance: true, MaintenanceReason: "a broken fan",
		Reservation:  "conductor-1",
		InstanceUUID: "a1", LastError: "Failed to set the power: timeout", InstanceInfo: map[string]any{
			"terraform_metal": map[string]any{"state": "available", "since": at(-60).Format(time.RFC3339Nano)},
		},
		DriverInternalInfo: map[string]any{
			"last_power_state_change": "2026-11-22T14:49:00.123456",
			"agent_last_heartbeat":    "2026-11-22T14:48:00.123456",
		},
	}
	if err := json.Unmarshal([]byte(text), &n.Extra); err != nil {
		panic(err)
	}
	return n
}

// Each note and each time of a node and its allocation is told, in UTC, on the terminal, on the page and in JSON.
func TestLife_tellsEachNote(t *testing.T) {
	t.Parallel()
	n := noted()
	n.Extra["terraform_metal_quarantine"] = nil
	elsewhere := time.FixedZone("CET", 3600) // which changes nothing
	life := timeline.Join(timeline.Facts{
		Subject: "node rack1-01 <b>", Now: at(60).In(elsewhere), Missing: []string{"No record of metal watch was given."},
		Machines: []timeline.Evidence{{
			ID: n.UUID, Name: n.Name, Node: n, History: []ironic.Event{{
				CreatedAt: at(-30).In(elsewhere), Severity: "ERROR",
				Type: "verifying", Event: "no \x1b[31mBMC", User: "u1", Conductor: "conductor-1",
			}},
			Reserved: &ironic.Allocation{
				UUID: "a1", Name: "web-0", State: "active", CreatedAt: at(-25).Format(time.RFC3339),
				Owner: "team-a", Extra: map[string]any{"terraform_metal_creation": map[string]any{
					run: map[string]any{"since": at(-26).Format(time.RFC3339), "done": at(-24).Format(time.RFC3339)},
				}},
			},
		}},
	})
	var text, document bytes.Buffer
	page := filepath.Join(t.TempDir(), "page.html")
	if err := life.Text(&text); err != nil {
		t.Fatal(err)
	}
	if err := life.JSON(&document); err != nil {
		t.Fatal(err)
	}
	if err := life.WritePage(page); err != nil {
		t.Fatal(err)
	}
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "notes.txt", text.String())
	golden(t, "notes.json", document.String())
	golden(t, "notes.html", string(html))
	for _, foreign := range []string{"src=", "href=", "url(", "@import", "<script", "rack1-01 <b>", "ZgotmplZ", "\x1b"} {
		if strings.Contains(string(html), foreign) {
			t.Errorf("the page has %q", foreign)
		}
	}
}

// What others have written on a node is harmless where it is shown: neither a terminal nor a browser obeys it.
func TestLife_isPrintable(t *testing.T) {
	t.Parallel()
	const evil = "\x1b[2J\u009b1m\u202eevil\u2066\u200f\u2028\x00"
	n := noted()
	n.Name, n.Owner, n.Lessee, n.Description = "rack1"+evil, evil, evil, evil
	n.MaintenanceReason, n.LastError, n.RetiredReason, n.InstanceName, n.Maintenance, n.Retired = evil, evil, evil, evil, true, true
	n.Extra["terraform_metal_quarantine"] = map[string]any{"reason": evil, "run": evil, "at": at(-5).Format(time.RFC3339)}
	n.Extra["terraform_metal_ready"] = map[string]any{"target": "http://web" + evil, "since": at(-4).Format(time.RFC3339)}
	life := timeline.Join(timeline.Facts{
		Subject: "node " + evil, Now: at(60), Missing: []string{"The history of " + evil},
		Machines: []timeline.Evidence{{
			ID: n.UUID, Name: n.Name, Node: n, History: []ironic.Event{{CreatedAt: at(-30), Type: evil, Event: evil, User: evil, Conductor: evil}},
			Reserved: &ironic.Allocation{UUID: "a1", Name: evil, State: evil, CreatedAt: at(-25).Format(time.RFC3339), Owner: evil, LastError: evil},
		}},
	})
	var text, document bytes.Buffer
	page := filepath.Join(t.TempDir(), "page.html")
	if err := errors.Join(life.Text(&text), life.JSON(&document), life.WritePage(page)); err != nil {
		t.Fatal(err)
	}
	html, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(html), "evil") {
		t.Fatal(err)
	}
	for kind, shown := range map[string]string{"text": text.String(), "JSON": document.String(), "page": string(html)} {
		if rest.Printable(shown) != shown {
			t.Errorf("%s obeys others: %q", kind, shown)
		}
	}
	if !json.Valid(document.Bytes()) || !strings.Contains(document.String(), `\u202e`) {
		t.Errorf("not what Ironic says: %s", document.String())
	}
}
