package watch_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the files in testdata")

// start is when all stories begin.
var start = time.Date(2026, 11, 22, 14, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// machine is a machine that entered its state at a second of the story.
func machine(n int, state string, since int) watch.Machine {
	m := watch.Machine{ID: fmt.Sprint(n), Name: fmt.Sprintf("rack1-%02d", n), State: state, Since: at(since)}
	switch state {
	case "verifying", "cleaning", "deploying", "wait call-back", "deleting":
		m.InProgress = true
	case "deploy failed", "clean failed":
		m.Failed = true
	}
	return m
}

// story is an apply of six machines with two slots: one fails, one is stuck.
func story() []watch.Sample {
	failed := machine(3, "deploy failed", 70)
	failed.Why.Words = "Deploy step deploy.write_image failed: \x1b[31mno\u202e space left on device"
	sample := func(second int, machines ...watch.Machine) watch.Sample {
		return watch.Sample{Taken: at(second), Machines: machines}
	}
	a := "available"
	return []watch.Sample{
		sample(0, machine(1, a, -50), machine(2, a, -50), machine(3, a, -50), machine(4, a, -50), machine(5, a, -50)),
		sample(10, machine(1, "deploying", 8), machine(2, "deploying", 8), machine(3, a, -50), machine(4, a, -50), machine(5, a, -50)),
		sample(40, machine(1, "active", 38), machine(2, "active", 38), machine(3, "deploying", 39), machine(4, "deploying", 39),
			machine(5, a, -50)),
		sample(72, machine(1, "active", 38), machine(2, "active", 38), failed, machine(4, "active", 69), machine(5, "deploying", 71),
			machine(6, "enroll", 72)),
		sample(80, machine(1, "active", 38), machine(2, "active", 38), failed, machine(4, "active", 69), machine(5, "wait call-back", 78),
			machine(6, "enroll", 72)),
	}
}

// told returns a model that has taken the samples.
func told(goal watch.Goal, total int, samples ...watch.Sample) *watch.Model {
	m := watch.NewModel(goal, total)
	for _, s := range samples {
		m.Add(s)
	}
	return m
}

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
		t.Errorf("%s differs, %v; go test ./internal/operator/watch -rewrite writes it anew. Got:\n%s", file, err, got)
	}
}

func TestModel_countsWhatIsDone(t *testing.T) {
	t.Parallel()
	type counts struct{ total, done, waiting, progress, failed int }
	reserved := machine(7, "available", -50)
	reserved.Pending = true
	for name, tc := range map[string]struct {
		goal    watch.Goal
		total   int
		samples []watch.Sample
		want    counts
	}{
		"with a goal all machines count":               {"active", 0, story(), counts{6, 3, 1, 1, 1}},
		"machines that will come count":                {"active", 40, story(), counts{40, 3, 1, 1, 1}},
		"without a goal those with an operation count": {"", 0, story(), counts{6, 4, 0, 1, 1}}, // the new one is done
		"at the beginning nothing counts":              {"", 0, story()[:1], counts{}},
		"at the beginning with a goal all are to come": {"available", 0, story()[:1], counts{5, 5, 0, 0, 0}},
		"without a goal a reserved machine is to come": {
			"", 0,
			[]watch.Sample{{Taken: at(0), Machines: []watch.Machine{reserved}}},
			counts{1, 0, 1, 0, 0},
		},
		"machines that are gone are done if that is meant": {
			watch.GoalDeleted, 0,
			[]watch.Sample{story()[0], {Taken: at(5)}},
			counts{5, 5, 0, 0, 0},
		},
		"machines that are gone do not count for a goal": {"active", 0, []watch.Sample{story()[0], {Taken: at(5)}}, counts{}},
		"without a goal machines that are gone are done": {"", 0, []watch.Sample{story()[0], {Taken: at(5)}}, counts{5, 5, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := told(tc.goal, tc.total, tc.samples...).View(at(90))
			if got := (counts{v.Total, v.Done, len(v.Waiting), len(v.InProgress), len(v.Failed)}); got != tc.want {
				t.Errorf("counts %+v, want %+v", got, tc.want)
			}
		})
	}
}

// An announced total counts machines that are in Ironic and at rest as to come, and only those as missing that Ironic cannot have.
func TestView_countsAnAnnouncedTotal(t *testing.T) {
	t.Parallel()
	reserved := machine(2, "available", -50)
	reserved.Pending = true
	resting := func(n int) (machines []watch.Machine) {
		for i := range n {
			machines = append(machines, machine(i+1, "active", -50))
		}
		return machines
	}
	sample := func(second int, machines ...watch.Machine) watch.Sample {
		return watch.Sample{Taken: at(second), Machines: machines}
	}
	leaves := sample(10, resting(3)...)
	leaves.HasLeft = func(id string) bool { return id == "4" }
	for name, tc := range map[string]struct {
		goal    watch.Goal
		total   int
		samples []watch.Sample
		want    string
	}{
		"all are in Ironic, and nothing has begun": {
			"", 4,
			[]watch.Sample{sample(0, resting(4)...)},
			"0 of 4 done, 0 in progress, 4 to come",
		},
		"one of them has begun": {"", 4, []watch.Sample{
			sample(0, resting(4)...),
			sample(10, append(resting(3), machine(4, "deploying", 8))...),
		}, "0 of 4 done, 1 in progress, 3 to come"},
		"the selection has more than the total": {
			"", 4,
			[]watch.Sample{sample(0, resting(9)...)},
			"0 of 4 done, 0 in progress, 4 to come",
		},
		"the selection has fewer": {
			"", 4,
			[]watch.Sample{sample(0, resting(1)...)},
			"0 of 4 done, 0 in progress, 1 to come, 3 not in Ironic yet",
		},
		"Ironic has none": {
			"", 4,
			[]watch.Sample{sample(0)},
			"0 of 4 done, 0 in progress, 4 not in Ironic yet",
		},
		"one is reserved, and one at rest": {
			"", 4,
			[]watch.Sample{sample(0, machine(1, "active", -50), reserved)},
			"0 of 4 done, 0 in progress, 2 to come, 2 not in Ironic yet",
		},
		"one is done, one failed": {
			"", 4,
			[]watch.Sample{sample(0, machine(1, "deploying", -5), machine(2, "deploying", -5)), sample(10, machine(1, "active", 8),
				machine(2, "deploy failed", 9))},
			"1 of 4 done, 0 in progress, 2 not in Ironic yet, 1 failed",
		},
		"all are done": {
			"active", 4,
			[]watch.Sample{sample(0, resting(4)...)},
			"4 of 4 done, 0 in progress",
		},
		"more than announced": {
			"active", 4,
			[]watch.Sample{sample(0, resting(6)...)},
			"6 of 6 done, 0 in progress",
		},
		"one is deleted, which was not the goal": {
			"active", 4,
			[]watch.Sample{sample(0, resting(4)...), sample(10, resting(3)...)},
			"3 of 4 done, 0 in progress, 1 deleted or reserved by others",
		},
		"a new one has come for one that was deleted": {"active", 4, []watch.Sample{
			sample(0, resting(4)...),
			sample(10, append(resting(3), machine(5, "enroll", 9))...),
		}, "3 of 4 done, 0 in progress, 1 to come"},
		"others have reserved one": {
			"active", 4,
			[]watch.Sample{sample(0, resting(4)...), leaves},
			"3 of 4 done, 0 in progress, 1 deleted or reserved by others",
		},
		"one is deleted, which is the goal": {
			watch.GoalDeleted, 4,
			[]watch.Sample{sample(0, resting(4)...), sample(10, resting(3)...)},
			"1 of 4 done, 0 in progress, 3 to come",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			l, m := &watch.Lines{Out: &out, Err: &out}, watch.NewModel(tc.goal, tc.total)
			for _, s := range tc.samples {
				m.Add(s)
			}
			if err := l.Update(m.View(at(20)), nil); err != nil {
				t.Fatal(err)
			}
			line, _, _ := strings.Cut(out.String(), "\n")
			if _, got, _ := strings.Cut(line, "selection: "); got != tc.want {
				t.Errorf("it says %q, want %q", got, tc.want)
			}
		})
	}
}

func TestModel_timesComeFromIronic(t *testing.T) {
	t.Parallel()
	m := told("active", 0, story()[0])
	changes := m.Add(story()[1])
	if len(changes) != 2 || !changes[0].At.Equal(at(8)) || changes[0].After != 0 {
		t.Errorf("changes: %+v", changes)
	}
	// A machine with an operation in progress from before the first sample shows its whole time.
	v := told("active", 0, watch.Sample{Taken: at(0), Machines: []watch.Machine{machine(1, "deploying", -600)}}).View(at(30))
	if v.InProgress[0].For != 630*time.Second {
		t.Errorf("in progress for %s", v.InProgress[0].For)
	}
	// Power changes have no time in Ironic, and clocks may differ.
	on := machine(1, "active", -600)
	on.Power, on.InProgress = "power on", true
	m = told("active", 0, watch.Sample{Taken: at(0), Machines: []watch.Machine{machine(1, "active", -600)}})
	changes = m.Add(watch.Sample{Taken: at(10), Machines: []watch.Machine{on}})
	if len(changes) != 1 || changes[0].To != "active, switching on" || !changes[0].At.Equal(at(10)) {
		t.Errorf("changes: %+v", changes)
	}
	// A database that keeps whole seconds notes a change before the list that did not have it.
	late := told("active", 0, story()[0], watch.Sample{Taken: at(8).Add(500 * time.Millisecond), Machines: story()[0].Machines})
	if changes = late.Add(story()[1]); len(changes) != 2 || !changes[0].At.Equal(at(8).Add(500*time.Millisecond)) {
		t.Errorf("changes in whole seconds: %+v", changes)
	}
	if changes = m.Add(watch.Sample{Taken: at(20), Machines: []watch.Machine{machine(1, "rescue", 500)}}); !changes[0].At.Equal(at(20)) {
		t.Errorf("changes of a clock that is ahead: %+v", changes)
	}
}

func TestEstimate_followsTheRate(t *testing.T) {
	t.Parallel()
	// Ten machines, two at a time, 20 s each.
	m := watch.NewModel("active", 0)
	for second := 0; second <= 60; second++ {
		s := watch.Sample{Taken: at(second)}
		for n := range 10 {
			begin := n / 2 * 20
			switch {
			case second >= begin+20:
				s.Machines = append(s.Machines, machine(n, "active", begin+20))
			case second >= begin && second > 0:
				s.Machines = append(s.Machines, machine(n, "deploying", max(1, begin)))
			default:
				s.Machines = append(s.Machines, machine(n, "available", -100))
			}
		}
		m.Add(s)
	}
	v := m.View(at(60))
	if !v.LeftKnown || v.Left < 38*time.Second || v.Left > 42*time.Second {
		t.Errorf("%s left, %t; want 40 s", v.Left, v.LeftKnown)
	}
	if later := m.View(at(600)); later.Left < 2*time.Minute {
		t.Errorf("after a standstill of 9 minutes, %s left", later.Left)
	}
}

// Random machines change at random; the view must stay consistent.
func TestModel_neverContradictsItself(t *testing.T) {
	t.Parallel()
	states := []string{
		"enroll", "verifying", "manageable", "cleaning", "available", "deploying", "wait call-back", "active",
		"deploy failed", "deleting",
	}
	goals := []watch.Goal{"", "active", "available", watch.GoalDeleted}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		m := watch.NewModel(goals[r.IntN(len(goals))], r.IntN(20))
		second := 0
		for range 40 {
			second += r.IntN(100) - 5 // clocks go back
			s := watch.Sample{Taken: at(second)}
			for n := range 12 {
				if r.IntN(10) > 0 {
					s.Machines = append(s.Machines, machine(n, states[r.IntN(len(states))], second-r.IntN(300)+20))
				}
			}
			m.Add(s)
			v := m.View(at(second + r.IntN(50)))
			if v.Left < 0 || v.Done > v.Total || v.Done+len(v.Waiting)+len(v.InProgress)+len(v.Failed) > v.Total {
				t.Fatalf("seed %d: %s left, %d of %d done, %d to come, %d in progress, %d failed", seed, v.Left, v.Done, v.Total,
					len(v.Waiting), len(v.InProgress), len(v.Failed))
			}
			for _, row := range v.Moved {
				for i, span := range row.Spans {
					if span.To.Before(span.From) || row.For < 0 || (i > 0 && !span.From.Equal(row.Spans[i-1].To)) {
						t.Fatalf("seed %d: spans %+v", seed, row.Spans)
					}
				}
			}
			if m.Idle() < 0 {
				t.Fatalf("seed %d: idle for %s", seed, m.Idle())
			}
		}
	}
}

// A machine that is checked counts as in progress, with the time of its check.
func TestModel_readyCheck(t *testing.T) {
	t.Parallel()
	checked := machine(1, "active", 38)
	checked.Checked, checked.InProgress, checked.Since = true, true, at(39)
	m := watch.NewModel("active", 1)
	var said []string
	add := func(second int, machine watch.Machine) {
		for _, c := range m.Add(watch.Sample{Taken: at(second), Machines: []watch.Machine{machine}}) {
			said = append(said, fmt.Sprintf("%s: %s -> %s after %s", c.At.Format("05"), c.From, c.To, c.After))
		}
	}
	add(0, machine(1, "available", -50))
	add(10, machine(1, "deploying", 8))
	add(40, checked)
	v := m.View(at(50))
	if len(v.InProgress) != 1 || v.InProgress[0].Doing != "active, ready check" || v.InProgress[0].For != 11*time.Second || v.Done != 0 {
		t.Errorf("%+v", v)
	}
	file := filepath.Join(t.TempDir(), "page.html")
	if err := (&watch.Page{File: file}).Update(v, nil); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), `<i class="check"></i>ready check`) ||
		!strings.Contains(string(text), `title="active, ready check: 11s`) {
		t.Errorf("the page does not show the check: %v\n%s", err, text)
	}
	add(60, machine(1, "active", 38))
	if v = m.View(at(70)); v.Done != 1 || len(v.InProgress) != 0 {
		t.Errorf("%+v", v)
	}
	want := []string{
		"08: available -> deploying after 0s", "39: deploying -> active, ready check after 31s",
		"00: active, ready check -> active after 21s",
	}
	if !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}
