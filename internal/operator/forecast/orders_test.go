package forecast_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/forecast"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
)

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
	// both slots, in the last 45 minutes
	if !about(r.Total, 3*time.Hour+45*time.Minute) || r.Most != 2 || r.Stuck != 2 || r.Fastest > r.Total ||
		!about(r.Slowest, 6*time.Hour) || r.Unused.NoMachines < 0.35 || r.Unused.NoMachines > 0.45 {
		t.Errorf("it takes %s (%s to %s), and %d are at work at once, %d stuck, %+v", r.Total, r.Fastest, r.Slowest, r.Most,
			r.Stuck, r.Unused)
	}
	var text strings.Builder
	r.Write(&text, nil)
	if want := "Slots: at most 2 of 2 in use. Up to 2 more machines are stuck"; !strings.Contains(text.String(), want) {
		t.Errorf("%s\nis not in\n%s", want, &text)
	}
	if notes := strings.Join(r.Notes, "; "); !strings.Contains(notes,
		"metal_deployment.d[0], metal_deployment.d[1], metal_deployment.d[2] and 1 more take longer than stuck_after (45m)") {
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
	var text strings.Builder
	// a range of milliseconds is none
	if r.Write(&text, nil); !strings.HasPrefix(text.String(), "The apply takes about 17m16s with -parallelism=10") {
		t.Error(text.String())
	}
}

// Ironic does one thing with a machine at a time: a removed block and a new one with the same node follow each other, also while no slot is
// free.
func TestMake_oneOperationOnAMachine(t *testing.T) {
	t.Parallel()
	for _, busyFor := range []int{0, 15} {
		in := input(2, 1, 10, rollout.Settings{})
		if busyFor > 0 {
			in.Site.Occupied = []forecast.Occupied{busy("other", busyFor, forecast.Clean)}
		}
		in.Steps[0].Turn = nil
		in.Steps[1] = forecast.Step{
			Address: "metal_deployment.old", Does: "undeploy, clean", Machine: node(0), Removes: true,
			Legs: []forecast.Leg{{forecast.Undeploy, forecast.Clean}},
		}
		r, err := forecast.Make(in)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Lines) != 2 || r.Lines[0].Address != "metal_deployment.old" || r.Lines[1].From < r.Lines[0].To ||
			r.Count(forecast.Done) != 2 {
			t.Errorf("%+v", r.Lines)
		}
		if want := "neither depends on the other: metal_deployment.old and metal_deployment.d[0] on node-0. Counted in " +
			"this order"; len(r.Notes) == 0 || !strings.Contains(r.Notes[len(r.Notes)-1], want) {
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
	if r.Ends[forecast.Failed] != (forecast.Range{Least: 1, Most: 1}) ||
		r.Ends[forecast.NotStarted] != (forecast.Range{Least: 0, Most: 3}) {
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
