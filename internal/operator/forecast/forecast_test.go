package forecast_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/forecast"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

var start = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// times are round: minutes.
func times() forecast.Times {
	return forecast.Times{
		forecast.Deploy: {"": 10 * time.Minute, "gpu": 30 * time.Minute}, forecast.Clean: {"": 20 * time.Minute},
		forecast.Undeploy: {"": time.Minute},
		forecast.Restart:  {"": 3 * time.Minute}, forecast.Verify: {"": 10 * time.Second},
	}
}

// input is the rebuild of n machines with a limit.
func input(n, limit, places int, settings rollout.Settings) forecast.Input {
	in := forecast.Input{
		Site: forecast.Site{Now: start},
		Settings: forecast.Settings{Limit: throttle.Limit{
			Max: limit, StuckAfter: 45 * time.Minute,
			Coordination: throttle.CoordinationIronic,
		}, Parallelism: places},
		Times: times(), Poll: 10 * time.Second,
	}
	for i := range n {
		in.Steps = append(in.Steps, forecast.Step{
			Address: fmt.Sprintf("metal_deployment.d[%d]", i), Does: "rebuild", Machine: node(i), Legs: []forecast.Leg{{forecast.Deploy}},
			Turn: &forecast.Turn{Settings: settings, Change: rollout.Rebuild, Content: "http://images/v2"},
		})
	}
	return in
}

func node(i int) *forecast.Target {
	m := &forecast.Target{Class: "baremetal"}
	m.ID, m.Name = fmt.Sprintf("uuid-%d", i), fmt.Sprintf("node-%d", i)
	return m
}

// busy is a machine that cleans since a number of minutes.
func busy(name string, minutes int, does ...forecast.Operation) forecast.Occupied {
	return forecast.Occupied{
		Machine: throttle.Machine{
			ID: name, Name: name, State: "clean wait", Busy: true,
			Since: start.Add(-time.Duration(minutes) * time.Minute),
		}, Does: does, Class: "baremetal",
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
		// two are at work when the first has succeeded
		{"until one has succeeded, as many as may fail", input(8, 8, 10, rollout.Settings{}), nil, 20, 8, 0, 0, 7},
		{"-parallelism below the limit", input(4, 4, 2, rollout.Settings{}), nil, 20, 4, 0, 0, 2},
		{"one of a group away", input(4, 4, 10, rollout.Settings{Group: "g", MaxUnavailable: 1}), nil, 40, 4, 0, 0, 1},
		{
			"a pause after each but the last", input(3, 4, 10, rollout.Settings{Group: "g", MaxUnavailable: 1, Pause: 5 * time.Minute}),
			nil,
			40, 3, 0, 0, 1,
		},
		{"a canary first", input(4, 4, 10, rollout.Settings{Canary: number(1)}), nil, 20, 4, 0, 0, 3},
		{"the canary of the user instead", input(4, 4, 10, rollout.Settings{Canary: number(1)}), func(in *forecast.Input) {
			in.Settings.Canary = number(0)
		}, 20, 4, 0, 0, 3},
		{"another class takes longer", input(2, 4, 10, rollout.Settings{}), func(in *forecast.Input) {
			in.Steps[1].Machine.Class = "gpu"
		}, 30, 2, 0, 0, 2},
		{
			"one after the other", input(2, 4, 10, rollout.Settings{}), func(in *forecast.Input) {
				in.Steps[1].After = []int{0}
			}, 20, 2, 0, 0, 1,
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
		{"a bad image with a canary", input(8, 8, 10, rollout.Settings{Canary: number(1)}), func(in *forecast.Input) {
			in.WhatIf.ImageFails = true
		}, 10, 0, 1, 7, 1},
		{"a bad image is tried twice", input(1, 8, 10, rollout.Settings{}), func(in *forecast.Input) {
			in.WhatIf.ImageFails, in.Steps[0].Attempts = true, 2
		}, 20, 0, 1, 0, 1},
		{"a BMC is dead", input(3, 3, 10, rollout.Settings{}), func(in *forecast.Input) {
			in.WhatIf.Dead = []string{"node-1"}
		}, 10, 2, 1, 0, 3},
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
			if r.Count(forecast.Done) != tt.done || r.Count(forecast.Failed) != tt.failed || r.Count(forecast.NotStarted) != tt.left ||
				r.Most != tt.most {
				t.Errorf("%d done, %d failed, %d not started, %d slots; want %d, %d, %d, %d",
					r.Count(forecast.Done), r.Count(forecast.Failed), r.Count(forecast.NotStarted), r.Most, tt.done, tt.failed,
					tt.left, tt.most)
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
				Address: fmt.Sprintf("d[%d]", i), Does: "undeploy, clean", Machine: node(i),
				Legs: []forecast.Leg{{forecast.Undeploy, forecast.Clean}}, Removes: true,
				Turn: &forecast.Turn{Settings: s, Change: rollout.Replacement, Content: "v2", Node: fmt.Sprintf("node-%d", i)},
			},
			forecast.Step{
				Address: fmt.Sprintf("d[%d]", i), Does: "deploy", Machine: node(i), Legs: []forecast.Leg{{forecast.Deploy}},
				After: []int{2 * i},
				Turn:  &forecast.Turn{Settings: s, Change: rollout.FirstDeployment, Content: "v2", Node: fmt.Sprintf("node-%d", i)},
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
	if r, err = forecast.Make(in); err != nil || len(r.Notes) != 1 ||
		!strings.Contains(r.Notes[0], "the plan replaces 2 machines with -parallelism=1") {
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
	if len(fault.AboutOf[[]string](err, forecast.KindUnknown)) != 2 {
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
	in.Steps[2].Legs = nil // it changes only the record
	in.WhatIf.Dead = []string{"node-1", "node-2", "node-99"}
	if _, err := forecast.Make(in); err == nil || err.Error() != "the plan does nothing with machine node-2, node-99, whose BMC "+
		"is to be dead" {
		t.Errorf("%v", err)
	}
}
