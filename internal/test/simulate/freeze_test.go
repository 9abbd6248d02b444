package simulate_test

import (
	"testing"
	"time"
)

// While a site is frozen, no apply sends a verb to a machine, whatever it changes, and none leaves the note of a turn. After the thaw, the
// same apply does all.
func TestFreeze_holdsBackEveryChange(t *testing.T) {
	t.Parallel()
	member := func(image string) configuration {
		return installed(image).more("metal_deployment.a", object{"rollout": object{"group": "databases", "max_unavailable": 1}})
	}
	for name, is := range map[string]struct{ from, to configuration }{
		"a first deployment":   {cleaned(), installed("v1")},
		"a new host":           {nil, installed("v1")},
		"a rebuild":            {installed("v1"), installed("v2")},
		"a member of a group":  {member("v1"), member("v2")},
		"a restart":            {installed("v1"), installed("v1").more("metal_deployment.a", object{"power_state": "off"})},
		"the end":              {installed("v1"), configuration{}},
		"the end of a member":  {member("v1"), configuration{}},
		"cleaned for the pool": {cleaned(), cleaned().more("metal_host.a", object{"target_state": "available"})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				s := newSite(1)
				s.secrets = []string{secret}
				defer s.check(t, name)
				w := s.workspace("w", nil)
				if is.from != nil && w.apply(t, is.from, death{}).failed {
					s.broken("the first apply has failed")
				}
				<-time.After(time.Hour)
				operate := func(args ...string) {
					p := s.start(t, "operator", nil, 0, false, false)
					defer p.close()
					if err := command(args...)(w, p); err != nil {
						s.broken("%v: %v", args, err)
					}
				}
				operate("freeze", "--reason", "a test")
				s.forget()
				if end := w.apply(t, is.to, death{}); !end.failed {
					s.broken("the apply on a frozen site has succeeded")
				}
				for _, v := range s.verbsOf() {
					if v.target != "manage" || v.state != "enroll" { // the verification of a new record moves no machine
						s.broken("%s was sent to %s, which was %s", v.target, v.node, v.state)
					}
				}
				for _, n := range s.fake.Nodes() {
					extra, _ := n.Raw["extra"].(object)
					if note := extra["terraform_metal_turn"]; note != nil {
						s.broken("the note of a turn is left: %v", note)
					}
				}
				operate("thaw")
				<-time.After(time.Minute)
				if w.apply(t, is.to, death{}).failed || !w.replan(t, is.to).empty() {
					s.broken("the apply after the thaw has not done all")
				}
			})
		})
	}
}
