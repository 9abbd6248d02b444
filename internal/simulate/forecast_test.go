package simulate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/forecast"
)

// An apply takes as long as the forecast says, within 10 %, for random sites, limits and rollouts. Terraform has no order of steps that are ready at the
// same time, so the forecast is a range.
func TestForecast_isRightWithin10Percent(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				f := newForeseen(t, seed, 16)
				f.chooseRollout()
				n := sizes{changed: 1 + f.below(8), how: []string{"rebuild", "restart", "replace"}[f.below(3)], removed: f.below(4), made: f.below(4), deployed: f.below(4)}
				if n.how == "replace" {
					f.places = 20 // with fewer, it is chance which machines give up their places
				}
				times := f.times(t)
				f.configure(t, n, false)
				f.terraformOK(t, "apply", "-auto-approve")
				<-time.After(2 * time.Hour)
				want := f.forecast(t, n, times, forecast.WhatIf{})
				begun := time.Now()
				f.terraformOK(t, "apply", "saved")
				took := time.Since(begun)
				if took < want.Fastest*9/10 || took > want.Slowest*11/10 {
					t.Errorf("%+v, limit %d, -parallelism=%d, %q, %v: the apply took %s, the forecast is %s to %s\n%s", n, f.limit, f.places, f.rollout, times, took, want.Fastest, want.Slowest, tableOf(want))
				}
			})
		})
	}
}

// A forecast of what a bad image touches names as many machines as an apply does.
func TestForecast_tellsWhatABadImageTouches(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				f := newForeseen(t, seed, 16)
				f.chooseRollout()
				n := sizes{changed: 2 + f.below(8), how: "rebuild"}
				times := f.times(t)
				f.configure(t, n, false)
				f.terraformOK(t, "apply", "-auto-approve")
				<-time.After(2 * time.Hour)
				want := f.forecast(t, n, times, forecast.WhatIf{ImageFails: true})
				f.fake.Fail = func(_ fakeironic.Node, verb string) string {
					if verb == "rebuild" {
						return "the image does not boot"
					}
					return ""
				}
				begun := time.Now()
				output, code, err := f.terraform.Run(t.Context(), "apply", "saved")
				took := time.Since(begun)
				if err != nil || code != 1 {
					t.Fatalf("exit code %d, %v: %s", code, err, output)
				}
				failed := 0
				for i := range n.changed {
					if node, _ := f.fake.Node(fleetNode(i)); node.ProvisionState == "deploy failed" {
						failed++
					}
				}
				if want.Count(forecast.Failed) != failed || want.Count(forecast.NotStarted) != n.changed-failed {
					t.Errorf("%+v, %q: %d machines have failed\n%s", n, f.rollout, failed, tableOf(want))
				}
				if took < want.Fastest*9/10 || took > want.Slowest*11/10 {
					t.Errorf("the apply took %s, the forecast is %s to %s", took, want.Fastest, want.Slowest)
				}
			})
		})
	}
}
