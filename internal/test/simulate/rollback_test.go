package simulate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// backwards are phases after whose kill the user takes the configuration back.
var backwards = []phase{
	{name: "rebuild", from: oneOfEach("v1"), to: oneOfEach("v2")},
	{name: "rebuild without an allocation", from: unallocated("v1"), to: unallocated("v2")},
	{name: "rebuild with a ready check", from: checked("v1", "on"), to: checked("v2", "on")},
	{name: "switch on with a ready check", from: checked("v1", "off"), to: checked("v1", "on")},
	{name: "restart softly", from: restarted("1"), to: restarted("2")},
	{name: "rescue", from: oneOfEach("v1"), to: rescued(1)},
	{name: "another VIF", from: connected("1"), to: connected("2")},
	{name: "another live ISO", from: booted("v1", "n1"), to: booted("v2", "n2")},
	{name: "RAID", from: cards(object{}), to: cards(object{"raid": volumes("v1")})},
	{name: "firmware", from: cards(object{}), to: cards(object{"firmware": firmware()})},
	{name: "secure boot", from: secured(false), to: secured(true)},
	{name: "inspect again", from: inspected("1"), to: inspected("2")},
}

// After a kill in any moment, the user takes the change back: one apply is enough, or two if Ironic had begun, and no plan shows a change
// for ever. A killed run that has begun nothing on the machine leaves nothing to do.
func TestKill_rolledBack(t *testing.T) {
	t.Parallel()
	for _, p := range backwards {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, after %t", p.name, after), func(t *testing.T) {
				t.Parallel()
				everyMoment(t, 1, func(t *testing.T, moment int) bool {
					t.Helper()
					return p.rollBack(t, death{moment: moment, after: after})
				})
			})
		}
	}
}

// rollBack lives through a phase in which the provider is killed, and after which the user wants what was before.
func (p phase) rollBack(t *testing.T, when death) bool {
	t.Helper()
	s := newSite(uint64(when.moment))
	s.secrets = []string{secret}
	w := s.workspace("w", nil)
	defer s.check(t, fmt.Sprintf("%s, moment %d, after %t", p.name, when.moment, when.after))
	if w.apply(t, p.from, death{}).failed {
		s.broken("the first apply has failed")
		return false
	}
	<-time.After(time.Minute)
	s.forget()
	end := w.apply(t, p.to, when)
	if !end.killed {
		return false
	}
	begun := len(s.verbs) > 0
	back := w.apply(t, p.from, death{})
	if begun && !back.failed { // it waits for what Ironic does, which the next one takes back
		back = w.apply(t, p.from, death{})
	}
	if back.failed {
		s.broken("the apply that takes the change back has failed")
	} else if !begun && len(s.verbs) > 0 {
		s.broken("nothing had begun, and taking the change back has sent %v", s.verbs)
	}
	for range 2 {
		if left := w.replan(t, p.from); !left.empty() {
			s.broken("after the change was taken back, the plan is %s", left)
		}
	}
	s.checkReady(p.from, w.state())
	return true
}

// A run that is killed while its machine waits for a slot has written nothing on the node that says what runs.
func TestKill_waitingRebuildWritesNothing(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(1)
		defer s.check(t, "a waiting rebuild")
		w := s.workspace("w", object{"provisioning_limit": object{"max_concurrent": 1}})
		config := checked("v1", "on")
		if w.apply(t, config, death{}).failed {
			s.broken("the first apply has failed")
			return
		}
		s.fake.AddFleet(1, "other")
		s.fake.Set("node-000", "provision_state", "cleaning") // takes the only slot
		looked := make(chan string, 1)
		time.AfterFunc(20*time.Minute, func() { looked <- fmt.Sprint(s.fake.Nodes()) })
		w.applyIn(t, checked("v2", "on"), trouble{stop: 40 * time.Minute})
		if text := <-looked; strings.Contains(text, "v2") || !strings.Contains(text, "images.test/v1") {
			s.broken("while the machine waits, the nodes are %s", text)
		}
		s.fake.Set("node-000", "provision_state", "available")
		if left := w.replan(t, config); !left.empty() {
			s.broken("the plan is %s", left)
		}
	})
}
