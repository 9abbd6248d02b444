package simulate_test

import (
	"fmt"
	"maps"
	"testing"
	"time"
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
