package turns_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout/turns"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

// Ironic does not answer one run, or any, while members of the group are being changed: at most one is away nevertheless, no run fails, and
// none waits for longer than the outages and the changes take.
func TestTake_outages(t *testing.T) {
	t.Parallel()
	for _, outage := range []time.Duration{10 * time.Second, 65 * time.Second, 90 * time.Second, 5 * time.Minute, 20 * time.Minute} {
		for _, all := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s of all %t", outage, all), func(t *testing.T) {
				t.Parallel()
				ironictest.InVirtualTime(t, func(t *testing.T) { outages(t, outage, all) })
			})
		}
	}
}

func outages(t *testing.T, outage time.Duration, all bool) {
	t.Helper()
	const lasts = 25 * time.Minute
	fake := ironictest.Fleet(4)
	ids := active(fake)
	runs := []*run{newRun(fake), newRun(fake)}
	var away, most atomic.Int32
	var wait sync.WaitGroup
	begun := time.Now()
	for i, id := range ids {
		of := runs[i%2]
		wait.Go(func() {
			err := of.change(t.Context(), id, turns.Change{Settings: databases, Change: rollout.Restart}, func() {
				most.Store(max(most.Load(), away.Add(1)))
				time.Sleep(time.Minute)
				of.silent.Store(true)
				runs[0].silent.Store(all || runs[0] == of)
				runs[1].silent.Store(all || runs[1] == of)
				time.Sleep(outage)
				runs[0].silent.Store(false)
				runs[1].silent.Store(false)
				time.Sleep(lasts - time.Minute - outage)
				away.Add(-1)
			}, nil)
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if n := most.Load(); n != 1 {
		t.Errorf("%d members were away at once", n)
	}
	if took, want := time.Since(begun), time.Duration(len(ids))*(lasts+5*time.Minute); took > want {
		t.Errorf("it took %s, want at most %s", took, want)
	}
}

// A service of a host in one workspace, a deployment of the same machine in another: the end of one leaves the note of the other.
func TestTake_hostsAndDeploymentsInTwoWorkspaces(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(6)
		ids := active(fake)
		runs := []*run{newRun(fake), newRun(fake), newRun(fake)} // of hosts, and of two halves of the deployments
		var mu sync.Mutex
		away, most, twice := map[string]int{}, 0, false
		var wait sync.WaitGroup
		for i, of := range runs {
			for j, id := range ids {
				if i > 0 && j%2 != i-1 {
					continue
				}
				wait.Go(func() {
					c := []turns.Change{service, rebuild, rebuild}[i]
					if err := of.change(t.Context(), id, c, func() {
						mu.Lock()
						away[id]++
						most, twice = max(most, len(away)), twice || away[id] > 1
						mu.Unlock()
						time.Sleep(10 * time.Minute)
						mu.Lock()
						defer mu.Unlock()
						if away[id]--; away[id] == 0 {
							delete(away, id)
						}
					}, nil); err != nil {
						t.Error(err)
					}
				})
			}
		}
		wait.Wait()
		if most != 1 || twice {
			t.Errorf("%d members were away at once; both resources of a machine changed at once: %t", most, twice)
		}
	})
}

// Two runs have different rules for a group: the stricter one holds, and the other run is told.
func TestTake_theStricterRuleHolds(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(6)
		ids := active(fake)
		strict, lax := newRun(fake), newRun(fake)
		var away, most, mixed atomic.Int32
		var wait sync.WaitGroup
		for i, id := range ids {
			of, settings := strict, databases
			if i%2 == 1 {
				of, settings.MaxUnavailable = lax, 3
			}
			wait.Go(func() {
				if of == lax {
					time.Sleep(time.Minute)
				}
				err := of.change(t.Context(), id, turns.Change{Settings: settings, Change: rollout.Restart}, func() {
					n := away.Add(1)
					most.Store(max(most.Load(), n))
					if of == strict {
						mixed.Store(max(mixed.Load(), n))
					}
					time.Sleep(10 * time.Minute)
					away.Add(-1)
				}, nil)
				if err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if mixed.Load() != 1 {
			t.Errorf("%d members were away as one of the strict run was begun", mixed.Load())
		}
		if most.Load() > 3 {
			t.Errorf("%d members were away at once", most.Load())
		}
		said := false
		for _, n := range lax.Notices() {
			said = said || n.Summary == "Another run has a stricter rollout"
		}
		if !said {
			t.Error("the lax run was not told")
		}
	})
}

// Forged notes delay a group for a bounded time, and end no run.
func TestTake_forgedNotes(t *testing.T) {
	t.Parallel()
	late := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, note := range map[string]any{
		"the pause ends in the year 9999": notes.Turn{Group: "databases", Run: "forged", Until: late},
		"begun in the year 9999":          notes.Turn{Group: "databases", Run: "forged", Since: late},
		"replaces, in the year 9999": notes.Turn{
			Group: "databases", Run: "forged", Replaces: true, Since: late,
		},
		"no number":          map[string]any{"group": "databases", "run": 7, "since": "yesterday"},
		"negative rule":      notes.Turn{Group: "databases", Run: "forged", Most: -4},
		"a text":             "databases",
		"a huge name":        notes.Turn{Group: "databases", Run: string(make([]byte, 1<<16))},
		"the rule is strict": notes.Turn{Group: "databases", Run: "forged", Most: 1, Failed: false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(3)
				ids := active(fake)
				fake.Set(ids[0], "extra", map[string]any{notes.KeyTurn: note})
				begun := time.Now()
				err := newRun(fake).change(t.Context(), ids[1], rebuild, nothing, nil)
				if took := time.Since(begun); took > 26*time.Hour {
					t.Errorf("%v after %s", err, took)
				}
			})
		})
	}
}
