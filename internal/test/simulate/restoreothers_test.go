package simulate_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"
)

// eachRestoration runs a test for each kind of machine and each loss, in virtual time.
func eachRestoration(t *testing.T, test func(t *testing.T, r restoration, w *workspace, befall func(*testing.T, *site, string))) {
	t.Helper()
	for number, r := range restorations() {
		for loss, befall := range losses {
			if loss == remade { // see TestRestore_refusesTheRecordOfAnotherClient
				continue
			}
			t.Run(r.name+"/"+loss, func(t *testing.T) {
				t.Parallel()
				inVirtualTime(t, func(t *testing.T) {
					s := newSite(uint64(number)) //nolint:gosec // not negative
					defer s.check(t, "restore: "+r.name+", "+loss)
					test(t, r, s.workspace("w", nil), befall)
				})
			})
		}
	}
}

// Another client tries to reserve the machine before each request of a restoration. It gets none that is being restored. Ironic
// gives a machine of the pool to whoever comes first, also the machine of an allocation without a deployment. That allocation reserves it
// again later.
func TestRestore_whileAnotherClientReserves(t *testing.T) {
	t.Parallel()
	eachRestoration(t, func(t *testing.T, r restoration, w *workspace, befall func(*testing.T, *site, string)) {
		s := w.site
		before := r.begin(t, w, befall)
		tries, taken := 0, ""
		s.fault = func(*http.Request) *fault {
			n, exists := s.fake.Node(before.UUID)
			if (tries > 0 || n.Maintenance) && exists && taken == "" { // a record of an older backup is free until the first request
				tries++
				if taken = s.reserve(n.UUID); taken != "" && (r.after != "available" || n.ProvisionState != "available") {
					s.broken("another client gets node %s in state %s", n.Name, n.ProvisionState)
				}
			}
			return nil
		}
		for _, block := range []object{w.block, w.block, nil} {
			if w.block = block; w.apply(t, r.config, death{}).failed && taken == "" {
				s.broken("the record is not restored")
			}
		}
		if s.fault = nil; tries == 0 {
			s.broken("the other client has not tried")
		}
		if taken != "" {
			s.call(t, http.MethodDelete, "allocations/"+taken, nil)
			w.apply(t, r.config, death{})
		}
		r.check(t, w, before)
		if sent := s.targets(); !slices.Equal(sent, r.verbs) {
			s.broken("the machine was sent %q, want %q", sent, r.verbs)
		}
	})
}

// reserve lets another client reserve a node by an allocation. It returns the UUID of that; "" if Ironic gives it none.
func (s *site) reserve(node string) string {
	_, made, _ := s.send(http.MethodPost, "allocations", object{"resource_class": "baremetal", "candidate_nodes": []any{node}})
	id := fmt.Sprint(made["uuid"])
	if _, now, _ := s.send(http.MethodGet, "allocations/"+id, nil); now["state"] == "active" {
		s.tell("another client reserves the node by %s", id)
		return id
	}
	_, _, _ = s.send(http.MethodDelete, "allocations/"+id, nil)
	return ""
}

// Two runs of one configuration restore the machine at the same time, each with a state of its own.
func TestRestore_byTwoRunsAtOnce(t *testing.T) {
	t.Parallel()
	eachRestoration(t, func(t *testing.T, r restoration, w *workspace, befall func(*testing.T, *site, string)) {
		s := w.site
		before := r.begin(t, w, befall)
		other := s.workspace("other", w.block)
		other.now = w.state()
		for range 2 {
			together(func(w *workspace) {
				<-time.After(time.Duration(s.below(500)) * time.Millisecond)
				w.apply(t, r.config, death{})
			}, w, other)
		}
		for _, w := range []*workspace{w, other} {
			if w.apply(t, r.config, death{}).failed || !w.replan(t, r.config).empty() {
				s.broken("the record is not restored for %s", w.name)
			}
		}
		r.end(t, w, before)
		other.block = nil
		r.check(t, other, before)
		if sent := slices.Compact(s.targets()); !slices.Equal(sent, r.verbs) {
			s.broken("the machine was sent %q, want %q", s.targets(), r.verbs)
		}
	})
}

// A run that has the same configuration and an empty state creates nothing in place of a record that is being restored, and takes nothing
// of it away.
func TestRestore_whileAnotherRunCreates(t *testing.T) {
	t.Parallel()
	eachRestoration(t, func(t *testing.T, r restoration, w *workspace, befall func(*testing.T, *site, string)) {
		s := w.site
		before := r.begin(t, w, befall)
		other := s.workspace("other", nil)
		together(func(w *workspace) {
			for w == other { // it begins after the first request of the restoration
				if _, exists := s.fake.Node(before.UUID); exists {
					break
				}
				<-time.After(10 * time.Millisecond)
			}
			<-time.After(time.Duration(s.below(1000)) * time.Millisecond)
			w.apply(t, r.config, death{})
		}, w, other)
		if w.apply(t, r.config, death{}).failed || !w.replan(t, r.config).empty() {
			s.broken("the record is not restored")
		}
		other.apply(t, configuration{}, death{})
		r.end(t, w, before)
		if sent := s.targets(); !slices.Equal(sent, r.verbs) {
			s.broken("the machine was sent %q, want %q", sent, r.verbs)
		}
	})
}
