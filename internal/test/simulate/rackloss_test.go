package simulate_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// lose lets Ironic lose records of the rack, until the endpoint is the right one again or the user has restored them. Nothing but manage
// and adopt reaches a machine that runs something, and all of them run on in their nodes.
func (r *rack) lose(t *testing.T, s *site, w *workspace) {
	t.Helper()
	config, all := r.configuration(), s.fake.Nodes()
	if s.below(3) > 0 || len(all) == 0 || !w.apply(t, config, death{}).plan.empty() {
		return
	}
	<-time.After(time.Minute)
	right, n := s.fake, all[s.below(len(all))]
	kinds := slices.DeleteFunc(slices.Sorted(maps.Keys(losses)), func(kind string) bool { return kind == remade })
	kind := kinds[s.below(len(kinds))]
	lost, whole := []fakeironic.Node{n}, strings.Contains(kind, "endpoint")
	if whole {
		lost = all
	}
	restores := !slices.ContainsFunc(lost, func(n fakeironic.Node) bool { return !restorable(n) }) && (!whole || s.below(2) == 0)
	if !restores && !whole {
		return
	}
	r.look(s)
	s.tell("%s: %s, restored: %t", kind, n.Name, restores)
	losses[kind](t, s, n.UUID)
	if end := w.apply(t, config, death{}); slices.ContainsFunc(lost, inUse) && !end.plan.failed {
		s.broken("the plan after a loss is %s", end.plan)
	}
	blocks := []object{nil}
	if restores {
		blocks = []object{{"lost_records": "restore"}, {"lost_records": "restore"}, nil, nil}
	} else {
		s.fake = right
	}
	for _, w.block = range blocks {
		w.apply(t, config, death{})
	}
	r.check(s, &plan{})
}

// restorable reports whether a node runs a deployment of the user, or is free.
func restorable(n fakeironic.Node) bool {
	switch n.ProvisionState {
	case "active":
		return n.InstanceUUID != "" && !isForeign(n)
	case "available", "manageable":
		return n.InstanceUUID == ""
	}
	return false
}

// foreign is how the UUIDs of reservations of other clients begin.
const foreign = "0b5be5de"

func isForeign(n fakeironic.Node) bool { return strings.HasPrefix(n.InstanceUUID, foreign) }
