package simulate_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// The user presses Ctrl-C at any moment of a creation. The next apply finishes it, and another one builds on it: nothing is tainted.
func TestStop_anyMoment(t *testing.T) {
	t.Parallel()
	every, longest := 3400*time.Millisecond, 45*time.Second
	if *everything {
		every /= 4
	}
	for after := every; after < longest; after += every {
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				s := newSite(uint64(after)) //nolint:gosec // positive
				s.fake.StepTime = 7 * time.Second
				defer s.check(t, fmt.Sprintf("Ctrl-C after %s", after))
				w := s.workspace("w", nil)
				whole := without(oneOfEach("v1"), "metal_host.a", "power_state")
				host := configuration{"metal_host.a": maps.Clone(whole["metal_host.a"])}
				w.applyIn(t, host, trouble{stop: after})
				for _, config := range []configuration{host, whole} {
					if w.apply(t, config, death{}).failed {
						s.broken("an apply after the interruption has failed")
					}
				}
				if left := w.replan(t, whole); !left.empty() {
					s.broken("the plan in the end is %s", left)
				}
				phase{to: whole, verbs: []string{"manage", "provide", "active"}}.checkMachine(t, s, w)
			})
		})
	}
}

// The user presses Ctrl-C at any moment of a soft restart. The next apply ends with the machine on, which is started once by both.
func TestStop_anyMomentOfASoftRestart(t *testing.T) {
	t.Parallel()
	for _, deaf := range []bool{false, true} {
		every, longest := 1700*time.Millisecond, 30*time.Second
		if deaf {
			every, longest = 23*time.Second, 5*time.Minute
		}
		for after := every; after < longest; after += every {
			t.Run(fmt.Sprintf("deaf %t, %s", deaf, after), func(t *testing.T) {
				t.Parallel()
				inVirtualTime(t, func(t *testing.T) {
					s := newSite(uint64(after)) //nolint:gosec // positive
					s.fake.StepTime = 7 * time.Second
					s.fake.IgnoresSoftOff = func(fakeironic.Node) bool { return deaf }
					defer s.check(t, fmt.Sprintf("Ctrl-C after %s", after))
					w, to := s.workspace("w", nil), without(restarted("2"), "metal_deployment.a", "power_state")
					if w.apply(t, restarted("1"), death{}).failed {
						s.broken("the first apply has failed")
					}
					s.forget()
					w.applyIn(t, to, trouble{stop: after})
					if w.apply(t, to, death{}).failed {
						s.broken("the apply after the interruption has failed")
					}
					if left := w.replan(t, to); !left.empty() {
						s.broken("the plan in the end is %s", left)
					}
					<-time.After(time.Minute) // the start may be in progress: Ironic goes on with it
					starts := 0
					for _, v := range s.verbsOf() {
						if v.target == "power on" || v.target == "rebooting" {
							starts++
						}
					}
					if is := s.fake.Nodes()[0].PowerState; starts != 1 || is != "power on" {
						s.broken("the machine was started %d times, and is %s", starts, is)
					}
				})
			})
		}
	}
}
