package simulate_test

import (
	"fmt"
	"maps"
	"testing"
	"time"
)

// Two pipelines have each a copy of the state, and no common lock. Both apply the same new restart_triggers: at once, one after the other,
// or the second one after the first one was killed. The machine is restarted once, and that is enough for both.
func TestPipelines_restartOnce(t *testing.T) {
	t.Parallel()
	for seed := range twins() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) { liveAsPipelines(t, seed) })
		})
	}
}

func liveAsPipelines(t *testing.T, seed uint64) {
	t.Helper()
	s := newSite(seed)
	s.latency = time.Duration(s.below(500)) * time.Millisecond
	defer s.check(t, fmt.Sprintf("seed %d", seed))
	config := func(kernel string) configuration {
		c := with(oneOfEach("v1"), "metal_deployment.a", "restart_triggers", object{"kernel": kernel})
		c = with(without(c, "metal_host.a", "power_state"), "metal_deployment.a", "power_state", "on")
		return with(c, "metal_deployment.a", "power_off_mode", []any{"hard", "graceful"}[seed%2])
	}
	left, right := s.workspace("left", nil), s.workspace("right", nil)
	if left.apply(t, config("1"), death{}).failed {
		s.broken("the first apply has failed")
		return
	}
	right.now = maps.Clone(left.state())
	node := left.text("metal_host.a", "id")
	before := s.fake.PowerCycles(node)
	switch {
	case seed%4 < 2:
		together(func(w *workspace) {
			<-time.After(time.Duration(s.below(60_000)) * time.Millisecond)
			w.apply(t, config("2"), death{})
		}, left, right)
	default:
		left.apply(t, config("2"), death{moment: 1 + s.below(12), after: s.below(2) > 0, lost: s.below(2) > 0})
		<-time.After(time.Duration(s.below(60_000)) * time.Millisecond)
	}
	for _, w := range []*workspace{right, left} {
		if w.apply(t, config("2"), death{}).failed {
			s.broken("the apply of %s has failed", w.name)
		}
		if again := w.replan(t, config("2")); !again.empty() {
			s.broken("the plan of %s is %s", w.name, again)
		}
	}
	if n := s.fake.PowerCycles(node) - before; n != 1 {
		s.broken("the machine was started %d times for one value", n)
	}
}
