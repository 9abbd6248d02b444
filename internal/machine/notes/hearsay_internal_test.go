package notes

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

var heardAt = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

const (
	someRun  = "7a7a7a7a-0000-4000-8000-000000000007"
	hostile  = "\x1b[31mred\x1b]0;title\a\u202e\u009b\nnext"
	firstDay = "0001-01-01T00:00:00+23:00"
	lastDay  = "9999-12-31T23:59:59-23:00" // in UTC, it is in the year 10000
)

// forgeries are values that other clients may have written instead of a note.
func forgeries() (all []any) {
	huge := strings.Repeat(hostile, 1000)
	for _, at := range []any{firstDay, "1970-01-01T00:00:00Z", "2026-11-28T11:59:00Z", "2099-01-01T00:00:00Z", lastDay, "soon", 7, nil} {
		for _, text := range []any{hostile, someRun, huge, 7} {
			if s, _ := text.(string); len(s) > 1000 && at != lastDay {
				continue
			}
			fields := map[string]any{
				"since": at, "until": at, "began": at, "ended": at, "done": at, "failed": at, "at": at, "before": at,
				"group": text, "run": text, "target": text, "owner": text, "name": text, "from": text, "by": text, "uuid": text,
				"allocation": text, "instance": text, "image": text, "steps": []any{text, text}, "state": text, "claim": text,
				"command": "inspect", "goal": "available", "boots": -1, "max_unavailable": -1, "again": map[string]any{"instance": text},
			}
			for _, failed := range []any{true, at, nil} {
				one := map[string]any{}
				for key, value := range fields {
					one[key] = value
				}
				one["failed"] = failed
				all = append(all, one, map[string]any{someRun: one})
			}
		}
	}
	return append(all, nil, true, -1.5e300, huge, []any{nil}, map[string]any{hostile: map[string]any{}, someRun: nil},
		map[string]any{"": map[string]any{}})
}

// A note may have any content, and the node may be in any state: nothing panics, what is shown is printable and short, its times can be
// written as JSON, and no wait is longer than the longest pause.
func TestNotes_ofOthersDoNoHarm(t *testing.T) {
	t.Parallel()
	for _, note := range table {
		for _, forged := range forgeries() {
			for _, state := range []string{"available", "active"} {
				n := &ironic.Node{
					UUID: "n1", ProvisionState: state, ProvisionUpdatedAt: heardAt, Extra: map[string]any{note.key: forged},
					InstanceInfo: map[string]any{note.key: forged},
				}
				if harm := harmOf(n); harm != "" {
					t.Fatalf("%s = %.300v on a node that is %s: %s", note.key, forged, state, harm)
				}
			}
		}
	}
}

// harmOf reads all notes of a node, and says what is wrong with what they say; "" if nothing is.
func harmOf(n *ironic.Node) string {
	told, texts := Told(n, heardAt), []string{}
	for _, note := range told {
		texts = append(texts, note.String())
	}
	for _, w := range words(n, heardAt) {
		if texts = append(texts, w.Advice); w.Left != nil {
			texts = append(texts, w.Left.Text, w.Left.Next)
		}
	}
	texts = append(texts, Claimant(n))
	for _, text := range texts[:len(texts)-1] {
		if rest.OneLine(text) != strings.TrimSpace(text) || len([]rune(text)) > 3*longestText {
			return fmt.Sprintf("it shows %.200q", text)
		}
	}
	allocation := OfAllocation(&ironic.Allocation{UUID: "a1", Extra: n.Extra}, heardAt)
	if _, err := json.Marshal([]any{told, allocation.Told, FirstCreated(n.Extra)}); err != nil {
		return err.Error()
	}
	for _, turn := range TurnsOf(n) {
		if turn.Rest(heardAt) > longestPause {
			return "it waits for " + turn.Rest(heardAt).String()
		}
	}
	if c := CheckOf(n, heardAt); c != nil && (c.Since.After(heardAt) || heardAt.Sub(c.Since) > checkedFor) {
		return "a check counts since " + c.Since.String()
	}
	if o := UnfinishedOperation(n, heardAt); o != nil && (o.Since.After(heardAt) || heardAt.Sub(o.Since) > MarkAge) {
		return "an operation counts since " + o.Since.String()
	}
	if w := ErasureOf(n); w != nil && (w.Ended.After(n.ProvisionUpdatedAt.Add(time.Minute)) || w.Ended.Before(w.Began)) {
		return "it was erased at " + w.Ended.String()
	}
	QuarantineOf(n)
	SuspendedAllocation(n)
	IsRestoring(n)
	DiscoveryOf(n)
	Failures(n)
	return ""
}

// A note of a time to come counts for nothing, and is named with the command that removes it.
func TestNotes_ofATimeToComeAreNamed(t *testing.T) {
	t.Parallel()
	const to = "2099-01-01T00:00:00Z"
	for key, note := range map[string]any{
		KeyTurn:              map[string]any{"group": "db", "run": someRun, "since": to},
		KeyReady:             map[string]any{"since": to, "target": "TCP port h:1"},
		KeyOperation:         map[string]any{someRun: map[string]any{"command": "inspect", "goal": "available", "since": to}},
		string(MarkCreation): map[string]any{someRun: map[string]any{"since": to}}, KeyHostTurn: map[string]any{
			"group": "db", "run": someRun, "service": true, "until": "9999-01-01T00:00:00Z",
		},
	} {
		n := &ironic.Node{UUID: "n1", Name: "rack1", ProvisionState: "active", ProvisionUpdatedAt: heardAt}
		n.Extra = map[string]any{key: note}
		left := Unfinished(n, heardAt)
		next := "baremetal node unset rack1 --extra " + key
		if len(left) != 1 || !strings.Contains(left[0].Text, "a time to come") || left[0].Next != next ||
			!slices.ContainsFunc(Advice(n, heardAt, Begun), func(text string) bool { return strings.HasSuffix(text, next) }) {
			t.Errorf("%s: %+v, %v", key, left, Advice(n, heardAt, Begun))
		}
	}
}

// A pause lasts as long as its writer has said, by the clock that has written both ends, but never longer than a day.
func TestTurn_rest(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) time.Time { return heardAt.Add(d) }
	for name, tt := range map[string]struct {
		since, until time.Time
		want         time.Duration
	}{
		"in its pause":        {at(-time.Minute), at(4 * time.Minute), 4 * time.Minute},
		"past":                {at(-time.Hour), at(-time.Minute), 0},
		"no pause":            {at(-time.Minute), time.Time{}, 0},
		"without a beginning": {time.Time{}, at(time.Hour), 0},
		"a beginning to come": {at(time.Hour), at(2 * time.Hour), 0},
		"for ever":            {at(-time.Hour), at(100 * 365 * 24 * time.Hour), 23 * time.Hour},
		"for ever, long ago":  {at(-25 * time.Hour), at(100 * 365 * 24 * time.Hour), 0},
		"a clock ahead":       {at(3 * time.Second), at(time.Minute), 57 * time.Second},
	} {
		turn := Turn{Group: "db", Since: tt.since, Until: tt.until}
		if got := turn.Rest(heardAt); got.Round(5*time.Second) != tt.want.Round(5*time.Second) {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// The page for tenants has the table of notes.
func TestTable_isDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../templates/guides/tenants.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := "| Note | Who may write it | What a forged one can cause at most | How it is checked |\n|---|---|---|---|\n"
	for _, note := range table {
		rows += fmt.Sprintf("| `%s` | %s | %s | %s |\n", note.key, note.of, note.causes, note.check)
	}
	if !strings.Contains(string(page), rows) {
		t.Errorf("templates/guides/tenants.md lacks this table:\n%s", rows)
	}
}

// A made-up cleaning counts for nothing if Ironic's own times contradict it; one that fits is told as noted, and not as a fact.
func TestErasureOf_agreesWithIronic(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		began, ended time.Duration // from now; the node was created a day ago, and has changed its state an hour ago
		want         bool
	}{
		"the last change":      {-2 * time.Hour, -time.Hour, true},
		"an earlier one":       {-8 * time.Hour, -7 * time.Hour, true},
		"after it":             {-2 * time.Hour, -time.Minute, false},
		"to come":              {-2 * time.Hour, 24 * time.Hour, false},
		"ends before it began": {-2 * time.Hour, -3 * time.Hour, false},
		"before the node was":  {-48 * time.Hour, -47 * time.Hour, false},
	} {
		n := &ironic.Node{
			CreatedAt: heardAt.Add(-24 * time.Hour), ProvisionUpdatedAt: heardAt.Add(-time.Hour), ProvisionState: "available",
			Extra: map[string]any{KeyErasure: Work{
				Run: someRun, Steps: []string{"deploy.erase_devices"}, Began: heardAt.Add(tt.began), Ended: heardAt.Add(tt.ended),
			}},
		}
		told := Told(n, heardAt)
		if got := ErasureOf(n) != nil; got != tt.want || (len(told) == 1) != tt.want {
			t.Errorf("%s: it counts: %t, want %t: %v", name, got, tt.want, told)
		}
		if tt.want && !strings.HasPrefix(told[0].Text, "the provider noted: ") {
			t.Errorf("%s: %s", name, told[0].Text)
		}
	}
}
