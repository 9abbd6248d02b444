package simulate_test

import (
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/forecast"
)

var forecasts = flag.String("forecasts", "1-8", "which applies TestForecast_isRightWithin10Percent forecasts: first-last")

// The promise of the guide "Forecast an apply", for random sites, limits, rollouts and changes: if operations take the given times, the
// apply ends between the fastest and the slowest time, give or take 10 %. With the order in which Terraform has begun, the forecast is one
// time, unless an operation takes longer than stuck_after. Few applies miss it by more than 10 %: polls come at random moments, so that of
// two operations that end at about the same time either can be the first one whose slot others get. It is wrong if two applies miss it, of
// more than one in eight seeds.
func TestForecast_isRightWithin10Percent(t *testing.T) {
	t.Parallel()
	var first, last uint64
	if _, err := fmt.Sscanf(*forecasts, "%d-%d", &first, &last); err != nil {
		t.Fatalf("seeds %q: %v", *forecasts, err)
	}
	var mu sync.Mutex
	var missed []string
	t.Cleanup(func() { // after all seeds
		if most := max(1, int(last-first+1)/8); len(missed) > most {
			t.Errorf("in the order in which Terraform has begun, %d forecasts are not right, want %d at most:\n%s", len(missed), most,
				strings.Join(missed, "\n"))
		}
	})
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				if foretell(t, seed) == "" {
					return
				}
				if story := foretell(t, seed); story != "" {
					mu.Lock()
					defer mu.Unlock()
					missed = append(missed, story)
				}
			})
		})
	}
}

// foretell compares a forecast with an apply. It tells how the forecast for the order in which Terraform has begun has missed it; "" if it
// has not.
func foretell(t *testing.T, seed uint64) (missed string) {
	t.Helper()
	f := newForeseen(t, seed, 16)
	n := f.choose()
	in := f.foresee(t, n, f.begin(t, n))
	before := made(t, in)
	code, took, order := f.apply(t)
	about := fmt.Sprintf("seed %d, %+v, limit %d, stuck_after %s, -parallelism=%d, %q, %v: the apply took %s", seed, n, f.limit, f.stuck,
		f.places, f.rollout, in.Times, took)
	if code != 0 || !isWithin(took, before) {
		t.Errorf("%s, with exit code %d. The forecast is %s to %s\n%s", about, code, before.Fastest, before.Slowest, tableOf(before))
	}
	in.Order = order
	f.identify(in.Steps)
	after := made(t, in)
	about = fmt.Sprintf("%s. In the same order, %v, the forecast is %s to %s\n%s", about, order, after.Fastest, after.Slowest,
		tableOf(after))
	if after.Fastest != after.Slowest && f.stuck > f.fake.StepTime {
		t.Error(about)
	}
	if isWithin(took, after) {
		return ""
	}
	return about
}

// A forecast of what a bad image or a dead BMC touches names as many machines as an apply touches.
func TestForecast_tellsWhatAFailureTouches(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				f := newForeseen(t, seed, 16)
				f.chooseRollout()
				n := sizes{changed: 2 + f.below(8), how: "rebuild"}
				in := f.foresee(t, n, f.begin(t, n))
				if seed%2 == 0 {
					in.WhatIf.ImageFails = true
				} else {
					dead, _ := f.fake.Node(fleetNode(f.below(n.changed)))
					in.WhatIf.Dead, f.dead = []string{dead.Name}, dead.UUID
				}
				f.fake.Fail = func(node fakeironic.Node, verb string) string {
					if verb == "rebuild" && (in.WhatIf.ImageFails || node.UUID == f.dead) {
						return "the machine does not boot"
					}
					return ""
				}
				want := made(t, in)
				if code, took, _ := f.apply(t); !isWithin(took, want) || code != 1 {
					t.Errorf("%+v, %q: the apply took %s, with exit code %d\n%s", n, f.rollout, took, code, tableOf(want))
				}
				for end, got := range f.ends(n) {
					if in := want.Ends[end]; got < in.Least || got > in.Most {
						t.Errorf("%+v, %q: %d machines are %s, want %d to %d\n%s", n, f.rollout, got, end, in.Least, in.Most, tableOf(want))
					}
				}
			})
		})
	}
}

// ends counts how the machines have ended whose deployments change.
func (f *foreseen) ends(n sizes) map[forecast.Outcome]int {
	all := map[forecast.Outcome]int{forecast.Done: 0, forecast.Failed: 0, forecast.NotStarted: 0}
	for i := range n.changed {
		node, _ := f.fake.Node(fleetNode(i))
		info, _ := node.Raw["instance_info"].(map[string]any)
		switch {
		case node.ProvisionState == "deploy failed":
			all[forecast.Failed]++
		case info["image_source"] == fmt.Sprintf("http://%s/v1.qcow2", imageHost):
			all[forecast.NotStarted]++
		default:
			all[forecast.Done]++
		}
	}
	return all
}
