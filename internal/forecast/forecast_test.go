package forecast_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/forecast"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

var start = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// times are round: minutes.
func times() forecast.Times {
	return forecast.Times{
		forecast.Deploy: {"": 10 * time.Minute, "gpu": 30 * time.Minute}, forecast.Clean: {"": 20 * time.Minute}, forecast.Undeploy: {"": time.Minute},
		forecast.Restart: {"": 3 * time.Minute}, forecast.Verify: {"": 10 * time.Second},
	}
}

// input is the rebuild of n machines with a limit.
func input(n, limit, places int, settings rollout.Settings) forecast.Input {
	in := forecast.Input{
		Site:     forecast.Site{Now: start},
		Settings: forecast.Settings{Limit: throttle.Limit{Max: limit, StuckAfter: 45 * time.Minute, Coordination: throttle.CoordinationIronic}, Parallelism: places},
		Times:    times(), Poll: 10 * time.Second,
	}
	for i := range n {
		in.Steps = append(in.Steps, forecast.Step{
			Address: fmt.Sprintf("metal_deployment.d[%d]", i), Does: "rebuild", Machine: node(i), Legs: []forecast.Leg{{forecast.Deploy}},
			Turn: &forecast.Turn{Settings: settings, Change: rollout.Rebuild, Content: "http://images/v2"},
		})
	}
	return in
}

func node(i int) *forecast.Machine {
	m := &forecast.Machine{Class: "baremetal"}
	m.ID, m.Name = fmt.Sprintf("uuid-%d", i), fmt.Sprintf("node-%d", i)
	return m
}

// busy is a machine that cleans since a number of minutes.
func busy(name string, minutes int, does ...forecast.Operation) forecast.Occupied {
	return forecast.Occupied{
		Machine: throttle.Machine{ID: name, Name: name, State: "clean wait", Busy: true, Since: start.Add(-time.Duration(minutes) * time.Minute)}, Does: does, Class: "baremetal",
	}
}

func number(n int) *int { return &n }

func TestMake(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		in      forecast.Input
		change  func(*forecast.Input)
		minutes int // in all
		done    int
		failed  int
		left    int // not started
		most    int // slots
	}{
		{"as many slots as machines", input(3, 5, 10, rollout.Settings{}), nil, 10, 3, 0, 0, 3},
		{"two rows of three", input(6, 3, 10, rollout.Settings{MaxFailures: number(0)}), nil, 20, 6, 0, 0, 3},
		{"no limit", input(6, 0, 10, rollout.Settings{MaxFailures: number(0)}), nil, 10, 6, 0, 0, 0},
		{"until one has succeeded, as many as may fail", input(8, 8, 10, rollout.Settings{}), nil, 20, 8, 0, 0, 7}, // two are at work when the first has succeeded
		{"-parallelism below the limit", input(4, 4, 2, rollout.Settings{}), nil, 20, 4, 0, 0, 2},
		{"one of a group away", input(4, 4, 10, rollout.Settings{Group: "g", MaxUnavailable: 1}), nil, 40, 4, 0, 0, 1},
		{"a pause after each but the last", input(3, 4, 10, rollout.Settings{Group: "g", MaxUnavailable: 1, Pause: 5 * time.Minute}), nil, 40, 3, 0, 0, 1},
		{"a canary first", input(4, 4, 10, rollout.Settings{Canary: number(1)}), nil, 20, 4, 0, 0, 3},
		{"the canary of the user instead", input(4, 4, 10, rollout.Settings{Canary: number(1)}), func(in *forecast.Input) { in.Settings.Canary = number(0) }, 20, 4, 0, 0, 3},
		{"another class takes longer", input(2, 4, 10, rollout.Settings{}), func(in *forecast.Input) { in.Steps[1].Machine.Class = "gpu" }, 30, 2, 0, 0, 2},
		{
			"one after the other", input(2, 4, 10, rollout.Settings{}), func(in *forecast.Input) { in.Steps[1].After = []int{0} }, 20, 2, 0, 0, 1,
		},
		{
			"other machines have the slots, for 5 minutes more", input(2, 2, 10, rollout.Settings{}),
			func(in *forecast.Input) {
				in.Site.Occupied = []forecast.Occupied{busy("a", 15, forecast.Clean), busy("b", 15, forecast.Clean)}
			}, 15, 2, 0, 0, 2,
		},
		{
			"a machine that is stuck takes no slot", input(2, 2, 10, rollout.Settings{}),
			func(in *forecast.Input) { in.Site.Occupied = []forecast.Occupied{busy("a", 50, forecast.Clean)} }, 10, 2, 0, 0, 2,
		},
		{
			"the machine itself cleans first", input(1, 2, 10, rollout.Settings{}),
			func(in *forecast.Input) { in.Site.Occupied = []forecast.Occupied{busy("uuid-0", 15, forecast.Clean)} }, 15, 1, 0, 0, 1,
		},
		{
			"the machine itself cleans first, without a limit", input(1, 0, 10, rollout.Settings{}),
			func(in *forecast.Input) { in.Site.Occupied = []forecast.Occupied{busy("uuid-0", 15, forecast.Clean)} }, 15, 1, 0, 0, 0,
		},
		{
			"machines of another run wait longer", input(1, 1, 10, rollout.Settings{}),
			func(in *forecast.Input) {
				in.Site.Waiting = []throttle.Word{{Run: "r", Machines: 1, Since: start.Add(-time.Minute), Max: 1}}
			}, 40, 1, 0, 0, 1,
		},
		{
			"another run has a member away until its pause ends", input(1, 2, 10, rollout.Settings{Group: "g", MaxUnavailable: 1}),
			func(in *forecast.Input) {
				in.Site.Away = map[string][]rollout.Absence{"g": {{ID: "x", Name: "x", Until: start.Add(6 * time.Minute)}}}
			}, 16, 1, 0, 0, 1,
		},
		{"a bad image", input(8, 8, 10, rollout.Settings{}), func(in *forecast.Input) { in.WhatIf.ImageFails = true }, 10, 0, 3, 5, 3},
		{"a bad image with a canary", input(8, 8, 10, rollout.Settings{Canary: number(1)}), func(in *forecast.Input) { in.WhatIf.ImageFails = true }, 10, 0, 1, 7, 1},
		{"a bad image is tried twice", input(1, 8, 10, rollout.Settings{}), func(in *forecast.Input) { in.WhatIf.ImageFails, in.Steps[0].Attempts = true, 2 }, 20, 0, 1, 0, 1},
		{"a BMC is dead", input(3, 3, 10, rollout.Settings{}), func(in *forecast.Input) { in.WhatIf.Dead = []string{"node-1"} }, 10, 2, 1, 0, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.change != nil {
				tt.change(&tt.in)
			}
			r, err := forecast.Make(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if off := r.Total - time.Duration(tt.minutes)*time.Minute; off < 0 || off > 50*time.Second {
				t.Errorf("it takes %s, want %d minutes and some polls", r.Total, tt.minutes)
			}
			if r.Count(forecast.Done) != tt.done || r.Count(forecast.Failed) != tt.failed || r.Count(forecast.NotStarted) != tt.left || r.Most != tt.most {
				t.Errorf("%d done, %d failed, %d not started, %d slots; want %d, %d, %d, %d",
					r.Count(forecast.Done), r.Count(forecast.Failed), r.Count(forecast.NotStarted), r.Most, tt.done, tt.failed, tt.left, tt.most)
			}
		})
	}
}

// A replaced machine keeps its turn until its new deployment is ready.
func TestMake_replacementIsOneTurn(t *testing.T) {
	t.Parallel()
	s := rollout.Settings{Group: "g", MaxUnavailable: 1}
	in := input(0, 4, 10, s)
	for i := range 2 {
		in.Steps = append(in.Steps,
			forecast.Step{
				Address: fmt.Sprintf("d[%d]", i), Does: "undeploy, clean", Machine: node(i), Legs: []forecast.Leg{{forecast.Undeploy, forecast.Clean}}, Removes: true,
				Turn: &forecast.Turn{Settings: s, Change: rollout.Replacement, Content: "v2", Node: fmt.Sprintf("node-%d", i)},
			},
			forecast.Step{
				Address: fmt.Sprintf("d[%d]", i), Does: "deploy", Machine: node(i), Legs: []forecast.Leg{{forecast.Deploy}}, After: []int{2 * i},
				Turn: &forecast.Turn{Settings: s, Change: rollout.FirstDeployment, Content: "v2", Node: fmt.Sprintf("node-%d", i)},
			})
	}
	r, err := forecast.Make(in)
	if err != nil || len(r.Notes) > 0 {
		t.Fatal(err, r.Notes)
	}
	if want := 62 * time.Minute; r.Total < want || r.Total > want+time.Minute || r.Groups[0].Most != 1 {
		t.Errorf("it takes %s, and %d are away at once", r.Total, r.Groups[0].Most)
	}
	in.Settings.Parallelism = 1
	if r, err = forecast.Make(in); err != nil || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "the plan replaces 2 machines with -parallelism=1") {
		t.Errorf("%v, notes %q", err, r.Notes)
	}
}

func TestMake_namesWhatItCannotKnow(t *testing.T) {
	t.Parallel()
	in := input(2, 4, 10, rollout.Settings{})
	in.Settings.Limit.Scope = throttle.ScopeConductorGroup
	in.Steps[0].Machine.Unknown = "known after apply, from metal_allocation.a"
	in.Steps[1].Legs = []forecast.Leg{{forecast.Inspect}}
	_, err := forecast.Make(in)
	var unknown *forecast.UnknownError
	if !errors.As(err, &unknown) || len(unknown.Lines) != 2 {
		t.Fatalf("the error is %v", err)
	}
	for _, want := range []string{
		"which node metal_deployment.d[0] gets (known after apply, from metal_allocation.a)",
		`how long "inspect" of machines of class baremetal takes (metal_deployment.d[1]): give --inspect TIME`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

// Machines that wait for ever are named, and what they wait for.
func TestMake_saysWhatNeverEnds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*forecast.Input)
		want   string
	}{
		"a slot": {
			func(in *forecast.Input) { in.Site.Occupied = []forecast.Occupied{busy("rack1-07", 90)} },
			"these machines have operations in progress and no time is known at which they end: rack1-07. Repair",
		},
		"the machine": {
			func(in *forecast.Input) { in.Site.Occupied = []forecast.Occupied{busy("uuid-0", 90)} },
			"these machines have operations in progress and no time is known at which they end: uuid-0. Repair",
		},
		"a turn": {
			func(in *forecast.Input) {
				in.Times[forecast.Deploy] = forecast.ByClass{"baremetal": time.Minute}
				in.Site.Away = map[string][]rollout.Absence{"g": {{ID: "x", Name: "rack2-01", Working: true}}}
			},
			"other runs work on these members of the rollout group, and no time is known at which they end: rack2-01. Give --deploy TIME",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(1, 1, 10, rollout.Settings{Group: "g", MaxUnavailable: 1})
			in.Settings.Limit.StuckAfter = 0
			tt.change(&in)
			if _, err := forecast.Make(in); !errors.Is(err, forecast.ErrEndless) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// What may not be touched at all makes the forecast a range.
func TestMake_rangeOfWhatMayBe(t *testing.T) {
	t.Parallel()
	in := input(2, 1, 10, rollout.Settings{})
	in.Steps[1].MayBe = true
	r, err := forecast.Make(in)
	if err != nil {
		t.Fatal(err)
	}
	if r.Fastest > 11*time.Minute || r.Slowest < 20*time.Minute {
		t.Errorf("it takes %s to %s", r.Fastest, r.Slowest)
	}
}

func TestTimes_flagsWinOverNotes(t *testing.T) {
	t.Parallel()
	notes := forecast.Times{forecast.Clean: {"gpu": time.Hour, "baremetal": 20 * time.Minute}}
	for _, tt := range []struct {
		flags forecast.Times
		want  time.Duration // of a cleaning of class gpu
	}{
		{nil, time.Hour},
		{forecast.Times{forecast.Clean: {"": time.Minute}}, time.Minute},
		{forecast.Times{forecast.Clean: {"baremetal": time.Minute}}, time.Hour},
		{forecast.Times{forecast.Clean: {"": time.Minute, "gpu": 2 * time.Minute}}, 2 * time.Minute},
	} {
		if got, known := tt.flags.Or(notes).Of(forecast.Clean, "gpu"); !known || got != tt.want {
			t.Errorf("%v: %s, want %s", tt.flags, got, tt.want)
		}
	}
}

func TestMake_refusesDeadMachinesOfOthers(t *testing.T) {
	t.Parallel()
	in := input(3, 3, 10, rollout.Settings{})
	in.WhatIf.Dead = []string{"node-1", "node-99"}
	if _, err := forecast.Make(in); err == nil || err.Error() != "the plan does nothing with machine node-99, whose BMC is to be dead" {
		t.Errorf("%v", err)
	}
}

// Machines of the run itself become stuck, too: after stuck_after the next ones begin.
func TestMake_ownMachinesBecomeStuck(t *testing.T) {
	t.Parallel()
	in := input(4, 2, 10, rollout.Settings{})
	in.Times[forecast.Clean] = forecast.ByClass{"": 3 * time.Hour}
	for i := range in.Steps {
		in.Steps[i].Legs, in.Steps[i].Turn = []forecast.Leg{{forecast.Clean}}, nil
	}
	r, err := forecast.Make(in)
	if err != nil {
		t.Fatal(err)
	}
	about := func(d, want time.Duration) bool { return d >= want && d < want+time.Minute }
	if !about(r.Total, 3*time.Hour+45*time.Minute) || r.Most != 2 || r.Stuck != 2 || r.Fastest > r.Total || !about(r.Slowest, 6*time.Hour) || r.Unused.NoMachines < 0.35 || r.Unused.NoMachines > 0.45 { // both slots, in the last 45 minutes
		t.Errorf("it takes %s (%s to %s), and %d are at work at once, %d stuck, %+v", r.Total, r.Fastest, r.Slowest, r.Most, r.Stuck, r.Unused)
	}
	var text strings.Builder
	r.Write(&text, nil)
	if want := "Slots: at most 2 of 2 in use. Up to 2 more machines are stuck"; !strings.Contains(text.String(), want) {
		t.Errorf("%s\nis not in\n%s", want, &text)
	}
	if notes := strings.Join(r.Notes, "; "); !strings.Contains(notes, "metal_deployment.d[0], metal_deployment.d[1], metal_deployment.d[2] and 1 more take longer than stuck_after (45m)") {
		t.Errorf("the notes are %q", notes)
	}
}

// A start keeps its slot for 30 seconds after the machine is on.
func TestMake_startsTakeSlots(t *testing.T) {
	t.Parallel()
	in := input(30, 1, 10, rollout.Settings{})
	in.Times[forecast.PowerOn] = forecast.ByClass{"": 5 * time.Second}
	for i := range in.Steps {
		in.Steps[i].Legs, in.Steps[i].Turn = []forecast.Leg{{forecast.PowerOn}}, nil
	}
	r, err := forecast.Make(in)
	if err != nil {
		t.Fatal(err)
	}
	if r.Total < 17*time.Minute || r.Total > 18*time.Minute || r.Most != 1 {
		t.Errorf("it takes %s, with %d slots", r.Total, r.Most)
	}
}

// Ironic does one thing with a machine at a time: a removed block and a new one with the same node follow each other, also while no slot is free.
func TestMake_oneOperationOnAMachine(t *testing.T) {
	t.Parallel()
	for _, busyFor := range []int{0, 15} {
		in := input(2, 1, 10, rollout.Settings{})
		if busyFor > 0 {
			in.Site.Occupied = []forecast.Occupied{busy("other", busyFor, forecast.Clean)}
		}
		in.Steps[0].Turn = nil
		in.Steps[1] = forecast.Step{Address: "metal_deployment.old", Does: "undeploy, clean", Machine: node(0), Removes: true, Legs: []forecast.Leg{{forecast.Undeploy, forecast.Clean}}}
		r, err := forecast.Make(in)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Lines) != 2 || r.Lines[0].Address != "metal_deployment.old" || r.Lines[1].From < r.Lines[0].To || r.Count(forecast.Done) != 2 {
			t.Errorf("%+v", r.Lines)
		}
		if want := "neither depends on the other: metal_deployment.old and metal_deployment.d[0] on node-0. Counted in this order"; len(r.Notes) == 0 || !strings.Contains(r.Notes[len(r.Notes)-1], want) {
			t.Errorf("the notes are %q", r.Notes)
		}
	}
}

// Which machine is the canary is chance. If its BMC is dead, all others are left alone.
func TestMake_rangeOfWhatAFailureTouches(t *testing.T) {
	t.Parallel()
	in := input(4, 4, 10, rollout.Settings{Canary: number(1)})
	in.WhatIf.Dead = []string{"node-1"}
	r, err := forecast.Make(in)
	if err != nil {
		t.Fatal(err)
	}
	if r.Ends[forecast.Failed] != (forecast.Range{Least: 1, Most: 1}) || r.Ends[forecast.NotStarted] != (forecast.Range{Least: 0, Most: 3}) {
		t.Errorf("%v", r.Ends)
	}
	if notes := strings.Join(r.Notes, "; "); !strings.Contains(notes, ": 1 fail, and 0 to 3 are not started") {
		t.Errorf("the notes are %q", notes)
	}
}

// The order in which Terraform begins decides how long steps of different lengths take.
func TestMake_inAnOrder(t *testing.T) {
	t.Parallel()
	in := input(3, 3, 2, rollout.Settings{})
	in.Steps[2].Machine.Class = "gpu" // 30 minutes; the others take 10
	addresses := []string{in.Steps[0].Address, in.Steps[1].Address, in.Steps[2].Address}
	for _, tt := range []struct {
		order []string
		want  time.Duration
	}{
		{[]string{addresses[2], addresses[0], addresses[1]}, 30 * time.Minute},
		{addresses, 40 * time.Minute},
	} {
		in.Order = tt.order
		r, err := forecast.Make(in)
		if err != nil {
			t.Fatal(err)
		}
		if r.Total < tt.want || r.Total > tt.want+time.Minute || r.Fastest != r.Slowest {
			t.Errorf("%v: %s (%s to %s), want %s", tt.order, r.Total, r.Fastest, r.Slowest, tt.want)
		}
	}
}

// Whatever the order in which Terraform begins, the apply ends within the range, give or take 10 %.
func TestMake_rangeHoldsInAnyOrder(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 12, 40, 120} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprint(n, " ", seed), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(seed, uint64(n))) //nolint:gosec // a test wants to repeat it
				in := input(n, 1+random.IntN(20), 1+random.IntN(20), rollout.Settings{})
				var addresses []string
				for i := range in.Steps {
					s := &in.Steps[i]
					addresses = append(addresses, s.Address)
					switch random.IntN(6) {
					case 0:
						s.Legs, s.Turn = []forecast.Leg{{forecast.Clean}}, nil
					case 1:
						s.Legs, s.Turn = []forecast.Leg{{forecast.Restart}}, nil
					case 2:
						s.Turn.Settings = rollout.Settings{Group: "g", MaxUnavailable: 3, Canary: number(1)}
					case 3:
						if i > 0 {
							s.After = []int{random.IntN(i)}
						}
					}
				}
				in.Steps[random.IntN(n)].Machine.Class = "gpu" // one takes longer
				all, err := forecast.Make(in)
				if err != nil {
					t.Fatal(err)
				}
				for range 10 {
					random.Shuffle(n, func(i, j int) { addresses[i], addresses[j] = addresses[j], addresses[i] })
					in.Order = addresses
					if one, err := forecast.Make(in); err != nil || one.Total < all.Fastest*9/10 || one.Total > all.Slowest*11/10 {
						t.Errorf("%v: %s, not within %s to %s", err, one.Total, all.Fastest, all.Slowest)
					}
				}
			})
		}
	}
}
