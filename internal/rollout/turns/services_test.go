package turns_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout/turns"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

var (
	service = turns.Change{Settings: databases, Change: rollout.Service}
	rebuild = turns.Change{Settings: databases, Change: rollout.Rebuild}
)

// nothing is a change that does nothing.
func nothing() {}

// cleared lets a run remove a note from a node.
func cleared(by func(context.Context, *machine.Machine)) func(t *testing.T, r *run, id string) {
	return func(t *testing.T, r *run, id string) {
		t.Helper()
		m, err := r.Machine(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		by(t.Context(), m)
	}
}

func clearDeployment(ctx context.Context, m *machine.Machine) { turns.Clear(ctx, m, false) }

// isRefused checks whether a run starts another member.
func isRefused(t *testing.T, r *run, id string, want bool) {
	t.Helper()
	if err := r.change(t.Context(), id, rebuild, nothing, nil); failure.Is(err, turns.KindNotStarted) != want {
		t.Errorf("another member begins, want refused %t: %v", want, err)
	}
}

// A host and the deployment on its machine change one after the other, also if no reference tells Terraform their order.
func TestTake_hostAndDeploymentOfOneMachine(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		id := active(fake)[0]
		r, away, ended := newRun(fake), atomic.Int32{}, make(chan error)
		for _, c := range []turns.Change{service, rebuild} {
			go func() {
				ended <- r.change(t.Context(), id, c, func() {
					if away.Add(1) > 1 {
						t.Error("both change at once")
					}
					time.Sleep(10 * time.Minute)
					away.Add(-1)
				}, nil)
			}()
		}
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if hasNote(t, fake, id) {
			t.Error("the node has still a note")
		}
	})
}

// Each kind of change leaves what the note says of the other kind.
func TestEnd_notesOfHostsAndDeployments(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		failed turns.Change // of the first member
		state  string       // that it leaves
		then   func(t *testing.T, r *run, id string)
		stays  bool // away for others
	}{
		"a service ends, and the deployment is still not ready": {rebuild, "active", func(t *testing.T, r *run, id string) {
			t.Helper()
			if err := r.change(t.Context(), id, service, nothing, nil); err != nil {
				t.Error(err)
			}
		}, true},
		"the deployment is repaired after a service that failed": {service, "active", func(t *testing.T, r *run, id string) {
			t.Helper()
			if err := r.change(t.Context(), id, rebuild, nothing, nil); err != nil {
				t.Error(err)
			}
		}, true}, // only the host knows
		"the service is repeated": {service, "service failed", func(t *testing.T, r *run, id string) {
			t.Helper()
			if err := r.change(t.Context(), id, service, nothing, nil); err != nil {
				t.Error(err)
			}
		}, false},
		"a deployment needs no turn":                         {service, "active", cleared(clearDeployment), true},
		"a host needs no service any more":                   {service, "active", cleared(turns.ClearService), false},
		"a host needs none, and the machine is not back":     {service, "service failed", cleared(turns.ClearService), true},
		"a host needs none, and the deployment is not ready": {rebuild, "active", cleared(turns.ClearService), true},
		"a deployment needs none any more":                   {rebuild, "active", cleared(clearDeployment), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(2)
				ids := active(fake)
				if err := newRun(fake).change(t.Context(), ids[0], tt.failed, func() {
					fake.Set(ids[0], "provision_state", tt.state)
				}, errBroken); err != nil {
					t.Fatal(err)
				}
				next := newRun(fake)
				tt.then(t, next, ids[0])
				isRefused(t, newRun(fake), ids[1], tt.stays)
				isRefused(t, next, ids[1], tt.stays)
			})
		})
	}
}

// A service that has done nothing for a machine that runs stops its run, and no other.
func TestEndBack_stopsTheRunOnly(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(2)
		ids := active(fake)
		r := newRun(fake)
		r.take(t.Context(), t, ids[0], service).EndBack(t.Context(), errBroken)
		isRefused(t, r, ids[1], true)
		if hasNote(t, fake, ids[0]) {
			t.Error("the node has a note")
		}
		isRefused(t, newRun(fake), ids[1], false)
	})
}

// The pause after a service holds, although the next apply needs none.
func TestClearService_keepsThePause(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		id := active(fake)[0]
		paused := service
		paused.Settings.Pause = 5 * time.Minute
		if err := newRun(fake).change(t.Context(), id, paused, nothing, nil); err != nil {
			t.Fatal(err)
		}
		cleared(turns.ClearService)(t, newRun(fake), id)
		if !hasNote(t, fake, id) {
			t.Error("the pause is over")
		}
	})
}

// A machine whose undeployment has failed has no reservation any more. Its successor may be on another node, so that nothing ends its note.
func TestEnd_failedUndeploymentOfAFreeNodeCountsInItsRunOnly(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(2)
		ids := active(fake)
		r := newRun(fake)
		m, err := r.Machine(t.Context(), ids[0])
		if err != nil {
			t.Fatal(err)
		}
		turn, err := turns.TakeToReplace(t.Context(), m, turns.Change{Settings: databases})
		if err != nil {
			t.Fatal(err)
		}
		fake.Set(ids[0], "provision_state", "clean failed")
		fake.Set(ids[0], "instance_uuid", nil)
		if err := m.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		turn.End(t.Context(), errBroken)
		isRefused(t, r, ids[1], true)
		isRefused(t, newRun(fake), ids[1], false)
	})
}
