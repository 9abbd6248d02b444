package turns_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout/turns"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// errBroken is a change that fails.
var errBroken = &failure.Error{Kind: failure.KindFailed, Fact: "it is broken"}

// databases is a group that lets one member be away.
var databases = rollout.Settings{Group: "databases", MaxUnavailable: 1}

// active makes the nodes of a fleet run something.
func active(fake *fakeironic.Server) (ids []string) {
	for i, n := range fake.Nodes() {
		fake.Set(n.Name, "provision_state", "active")
		fake.Set(n.Name, "power_state", "power on")
		fake.Set(n.Name, "instance_uuid", fmt.Sprintf("00000000-0000-4000-8000-%012d", i))
		ids = append(ids, n.UUID)
	}
	return ids
}

// hasNote reports whether a node has the note of a turn.
func hasNote(t *testing.T, fake *fakeironic.Server, id string) bool {
	t.Helper()
	extra, _ := ironictest.AsOther(t, fake, http.MethodGet, "nodes/"+id, nil)["extra"].(map[string]any)
	return extra[notes.KeyTurn] != nil || extra[notes.KeyHostTurn] != nil
}

// run is a run of the provider.
type run struct {
	*sitetest.Client
	dead   atomic.Bool  // its requests do not arrive any more
	silent atomic.Bool  // its requests fail
	left   atomic.Int32 // how many requests arrive until it dies; zero: it lives
}

func newRun(fake *fakeironic.Server) *run {
	r := &run{}
	r.Client = sitetest.NewClient(fake, func(cfg *machine.Config) {
		cfg.Transport = ironictest.Transport(func(req *http.Request) (*http.Response, error) {
			if r.dead.Load() {
				<-req.Context().Done()
				return nil, req.Context().Err()
			}
			if r.silent.Load() {
				return nil, syscall.ECONNRESET
			}
			if r.left.Load() > 0 && r.left.Add(-1) == 0 {
				r.dead.Store(true)
			}
			time.Sleep(time.Millisecond) // several members wait for their requests at once
			return fake.RoundTrip(req)
		})
	})
	return r
}

// change takes the turn of a machine, changes it for a while, and ends the turn with an outcome.
func (r *run) change(ctx context.Context, id string, c turns.Change, change func(), outcome error) error {
	m, err := r.Machine(ctx, id)
	if err != nil {
		return err
	}
	turn, err := turns.Take(ctx, m, c)
	if err != nil {
		return err
	}
	change()
	turn.End(ctx, outcome)
	return nil
}

// Machines that begin because another one has ended say nothing of Terraform's -parallelism.
func TestTake_isNoSignOfUnusedSlots(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(4)
		ids := active(fake)
		for _, id := range ids {
			fake.Set(id, "instance_info", map[string]any{
				"image_source":   "https://images.example.com/a.qcow2",
				"image_checksum": "d41d8cd98f00b204e9800998ecf8427e",
			})
		}
		fake.StepTime = time.Minute
		client := sitetest.Run(fake, sitetest.UpTo(20))
		var all sync.WaitGroup
		for _, id := range ids {
			all.Go(func() {
				_, err := client.Of(t.Context(), id, func(m *machine.Machine) error {
					turn, err := turns.Take(t.Context(), m, turns.Change{Settings: databases, Change: rollout.Rebuild})
					if err == nil {
						err = m.Walk(t.Context(), states.GoalRebuilt, m.Node().InstanceUUID, ironic.Order{}, time.Hour)
						turn.End(t.Context(), err)
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if said := client.Notices(); len(said) > 0 {
			t.Errorf("it says %v", said)
		}
	})
}

// take takes the turn of a machine.
func (r *run) take(ctx context.Context, t *testing.T, id string, c turns.Change) *turns.Turn {
	t.Helper()
	m, err := r.Machine(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	turn, err := turns.Take(ctx, m, c)
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

func TestTake_twoRunsNeverHaveTwoMembersAway(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(6)
		ids := active(fake)
		runs := []*run{newRun(fake), newRun(fake)}
		var away, most atomic.Int32
		var wait sync.WaitGroup
		begun := time.Now()
		for i, id := range ids {
			wait.Go(func() {
				err := runs[i%2].change(t.Context(), id, turns.Change{Settings: databases, Change: rollout.Restart}, func() {
					most.Store(max(most.Load(), away.Add(1)))
					time.Sleep(10 * time.Minute)
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
		if took := time.Since(begun); took > 70*time.Minute {
			t.Errorf("six restarts of 10 minutes took %s", took)
		}
		left := ironictest.AsOther(t, fake, http.MethodGet, "chassis", nil)["chassis"]
		if records, _ := left.([]any); len(records) > 0 {
			t.Errorf("records stay in Ironic: %v", records)
		}
		for _, n := range fake.Nodes() {
			if hasNote(t, fake, n.UUID) {
				t.Errorf("node %s has still a note", n.Name)
			}
		}
	})
}

func TestTake_pauseHoldsOverRuns(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(2)
		ids := active(fake)
		settings := databases
		settings.Pause = 5 * time.Minute
		c := turns.Change{Settings: settings, Change: rollout.Restart}
		if err := newRun(fake).change(t.Context(), ids[0], c, func() {}, nil); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if err := newRun(fake).change(t.Context(), ids[1], c, func() {}, nil); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(begun); waited < 4*time.Minute+59*time.Second || waited > 5*time.Minute+2*ironictest.Poll {
			t.Errorf("the next run started a member after %s", waited)
		}
	})
}

// A member whose change would be in vain takes no turn, and does not wait for one.
func TestTake_changeInVain(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(4)
		ids := active(fake)
		const image = "http://h/a"
		fake.Fail = func(fakeironic.Node, string) string {
			return "Validation of image href " + image + " failed, reason: Got HTTP code 404 instead of 200 in response to HEAD request."
		}
		r := newRun(fake)
		for _, id := range ids[:2] {
			fake.Set(id, "provision_state", "manageable")
			fake.Set(id, "instance_uuid", nil)
			if _, err := r.Of(t.Context(), id, func(m *machine.Machine) error {
				m.Gets(image)
				return m.Reach(t.Context(), states.GoalAvailable, time.Hour)
			}); !failure.Is(err, failure.KindFailed) {
				t.Fatal(err)
			}
		}
		c := turns.Change{Settings: databases, Change: rollout.Rebuild}
		if err := r.change(t.Context(), ids[2], c, func() {
			m, err := r.Machine(t.Context(), ids[3])
			if err != nil {
				t.Fatal(err)
			}
			m.Gets(image)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err = turns.Take(ctx, m, c); !failure.Is(err, machine.KindInVain) {
				t.Error(err)
			}
			if hasNote(t, fake, ids[3]) {
				t.Error("it has the note of a turn")
			}
		}, nil); err != nil {
			t.Fatal(err)
		}
	})
}

// A killed run delays other runs for its lease, or as long as Ironic works on its machine.
func TestTake_killedRunLeavesNoGroupStuck(t *testing.T) {
	t.Parallel()
	for name, busy := range map[string]time.Duration{"at rest": turns.AskFor, "while Ironic works": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(2)
				ids := active(fake)
				c := turns.Change{Settings: databases, Change: rollout.Rebuild}
				killed := newRun(fake)
				ctx, cancel := context.WithCancel(t.Context())
				turn := killed.take(ctx, t, ids[0], c)
				killed.dead.Store(true)
				begun := time.Now()
				if busy > turns.AskFor {
					fake.Set("node-000", "target_power_state", "rebooting")
					time.AfterFunc(busy, func() { fake.Set("node-000", "target_power_state", nil) })
				}
				if err := newRun(fake).change(t.Context(), ids[1], c, func() {}, nil); err != nil {
					t.Error(err)
				}
				if waited := time.Since(begun); waited < busy || waited > busy+8*ironictest.Poll {
					t.Errorf("it held the next run back for %s", waited)
				}
				cancel()
				turn.End(ctx, context.Canceled)
			})
		})
	}
}

// The run that continues the work of a killed one waits until Ironic takes a note again, and holds no other member back meanwhile.
func TestTake_goesOnWithWhatAKilledRunHasBegun(t *testing.T) {
	t.Parallel()
	const left = time.Hour // of a rebuild
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(3)
		ids := active(fake)
		c := turns.Change{Settings: rollout.Settings{Group: "databases", MaxUnavailable: 2}, Change: rollout.Rebuild, Limit: 3 * time.Hour}
		killed := newRun(fake)
		ctx, cancel := context.WithCancel(t.Context())
		turn := killed.take(ctx, t, ids[0], c)
		fake.Set("node-000", "provision_state", "wait call-back")
		fake.Set("node-000", "target_provision_state", "active")
		killed.dead.Store(true)
		begun := time.Now()
		time.AfterFunc(left, func() {
			fake.Set("node-000", "target_provision_state", nil)
			fake.Set("node-000", "provision_state", "active")
		})
		next := newRun(fake)
		var all sync.WaitGroup
		all.Go(func() {
			if err := next.change(t.Context(), ids[0], c, func() {}, nil); err != nil {
				t.Error(err)
			}
			if waited := time.Since(begun); waited < left || waited > left+time.Minute {
				t.Errorf("it went on after %s", waited)
			}
		})
		all.Go(func() {
			time.Sleep(time.Second)
			if err := next.change(t.Context(), ids[1], c, func() {}, nil); err != nil {
				t.Error(err)
			}
			if waited := time.Since(begun); waited > time.Minute {
				t.Errorf("another member waited for %s", waited)
			}
		})
		all.Wait()
		if hasNote(t, fake, ids[0]) {
			t.Error("the note of the killed run is left")
		}
		cancel()
		turn.End(ctx, context.Canceled)
	})
}

// A run that was killed while a machine was off, in the middle of a restart, has left a member away.
func TestTake_killedRunLeavesAMachineOff(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(2)
		ids := active(fake)
		fake.Set("node-000", "power_state", "power on")
		c := turns.Change{Settings: databases, Change: rollout.Restart}
		killed := newRun(fake)
		ctx, cancel := context.WithCancel(t.Context())
		turn := killed.take(ctx, t, ids[0], c)
		fake.Set("node-000", "power_state", "power off")
		killed.dead.Store(true)
		next := newRun(fake)
		if err := next.change(t.Context(), ids[1], c, func() {}, nil); !failure.Is(err, turns.KindNotStarted) {
			t.Errorf("another member is away beside the machine that is off: %v", err)
		}
		for _, id := range ids {
			if err := next.change(t.Context(), id, c, func() { fake.Set("node-000", "power_state", "power on") }, nil); err != nil {
				t.Error(err)
			}
		}
		cancel()
		turn.End(ctx, context.Canceled)
	})
}

// A run that was killed while it changed a machine that is off anyway has left nothing away: the fleet has such machines, and users ask for
// them.
func TestTake_killedRunLeavesAMachineThatWasOff(t *testing.T) {
	t.Parallel()
	for change, before := range map[rollout.Change]string{rollout.Restart: "power off", rollout.Rebuild: "power on"} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := ironictest.Fleet(2)
			ids := active(fake)
			fake.Set("node-000", "power_state", before)
			killed := newRun(fake)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = killed.change(ctx, ids[0], turns.Change{Settings: databases, Change: change}, func() {
					fake.Set("node-000", "power_state", "power off")
					killed.dead.Store(true)
					<-ctx.Done()
				}, context.Canceled)
			}()
			time.Sleep(time.Second)
			if err := newRun(fake).change(t.Context(), ids[1], turns.Change{Settings: databases, Change: change}, func() {},
				nil); err != nil {
				t.Errorf("after a %s: %v", change, err)
			}
			cancel()
			<-ended
		})
	}
}

// A run that was killed between the undeployment and the new deployment has left a member away, until the next apply has deployed it.
func TestTake_killedRunHasUndeployedAMember(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(2)
		ids := active(fake)
		killed := newRun(fake)
		m, err := killed.Machine(t.Context(), ids[0])
		if err != nil {
			t.Fatal(err)
		}
		turn, err := turns.TakeToReplace(t.Context(), m, turns.Change{Settings: databases, Content: "v2"})
		if err != nil {
			t.Fatal(err)
		}
		fake.Set("node-000", "provision_state", "available")
		fake.Set("node-000", "instance_uuid", nil)
		turn.Hand(t.Context(), ids[0])
		killed.dead.Store(true)
		restart := turns.Change{Settings: databases, Change: rollout.Restart}
		if err := newRun(fake).change(t.Context(), ids[1], restart, func() {}, nil); !failure.Is(err, turns.KindNotStarted) {
			t.Errorf("another member is away beside it: %v", err)
		}
		next, done := newRun(fake), make(chan error)
		err = next.change(t.Context(), ids[0], turns.Change{
			Settings: databases, Change: rollout.FirstDeployment, Content: "v2",
			Node: ids[0],
		}, func() {
			fake.Set("node-000", "provision_state", "active")
			fake.Set("node-000", "instance_uuid", "00000000-0000-4000-8000-000000000009")
			begun := time.Now()
			go func() {
				err := next.change(t.Context(), ids[1], restart, func() {}, nil)
				if time.Since(begun) < time.Hour {
					t.Error("another member is away while it is deployed again")
				}
				done <- err
			}()
			time.Sleep(time.Hour)
		}, nil)
		if err := errors.Join(err, <-done); err != nil {
			t.Error(err)
		}
		killed.dead.Store(false) // for the end of its goroutines
		time.Sleep(10 * time.Minute)
		if err := killed.change(t.Context(), ids[0], turns.Change{
			Settings: databases, Change: rollout.FirstDeployment, Content: "v2",
			Node: ids[0],
		}, func() {}, nil); err != nil {
			t.Error(err)
		}
	})
}

// A run whose lock was lost, because Ironic did not answer for a while, takes it again: others count its members.
func TestTake_lostSignOfLifeIsGivenAgain(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(2)
		ids := active(fake)
		r := newRun(fake)
		restart := turns.Change{Settings: databases, Change: rollout.Restart}
		err := r.change(t.Context(), ids[0], restart, func() {
			r.silent.Store(true)
			time.Sleep(2 * time.Minute)
			r.silent.Store(false)
			time.Sleep(2 * time.Minute)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			if err := newRun(fake).change(ctx, ids[1], restart, func() {}, nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("another run does not wait: %v", err)
			}
		}, nil)
		if err != nil {
			t.Error(err)
		}
	})
}

// Wherever a run is killed, the next one starts its members.
func TestTake_runKilledAfterEachRequest(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 14; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(2)
				ids := active(fake)
				c := turns.Change{Settings: databases, Change: rollout.Restart}
				killed := newRun(fake)
				killed.left.Store(int32(n)) //nolint:gosec // small
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_ = killed.change(ctx, ids[0], c, func() {}, nil)
				}()
				time.Sleep(time.Second)
				next := newRun(fake)
				for _, id := range []string{ids[1], ids[0]} {
					begun := time.Now()
					if err := next.change(t.Context(), id, c, func() {}, nil); err != nil {
						t.Error(err)
					}
					if waited := time.Since(begun); waited > turns.AskFor+8*ironictest.Poll {
						t.Errorf("the next run waited %s", waited)
					}
				}
				cancel()
				<-ended
			})
		})
	}
}

func TestTake_memberThatFailedIsRepairedBeforeOthersAreAway(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(3)
		ids := active(fake)
		c := turns.Change{Settings: databases, Change: rollout.Rebuild}
		first := newRun(fake)
		if err := first.change(t.Context(), ids[0], c, func() {}, errBroken); err != nil {
			t.Fatal(err)
		}
		for _, r := range []*run{first, newRun(fake)} {
			err := r.change(t.Context(), ids[1], c, func() {}, nil)
			_, detail := failure.Explain("restart", err)
			if !failure.Is(err, turns.KindNotStarted) || !strings.Contains(detail, `node-000`) ||
				!strings.Contains(detail, "max_unavailable") {
				t.Errorf("beside a member that has failed: %v", err)
			}
			err = r.change(t.Context(), ids[2], c, func() {}, nil)
			if _, short := failure.Explain("restart", err); !strings.HasSuffix(short,
				"Nothing was sent to it. Repair what is away, and apply again.") || len(short) > 250 {
				t.Errorf("the second refusal is not short: %s", short)
			}
		}
		next := newRun(fake)
		for _, id := range ids {
			if err := next.change(t.Context(), id, c, func() {}, nil); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestTake_withoutAGroupSendsNothing(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(5)
		ids := active(fake)
		r := newRun(fake)
		var failed, refused atomic.Int32
		var wait sync.WaitGroup
		machines := make([]*machine.Machine, len(ids))
		for i, id := range ids {
			m, err := r.Machine(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			machines[i] = m
		}
		fake.ResetRequests()
		for _, m := range machines {
			wait.Go(func() {
				turn, err := turns.Take(t.Context(), m, turns.Change{Change: rollout.Rebuild, Content: "v2"})
				if err != nil {
					refused.Add(1)
					return
				}
				time.Sleep(time.Minute)
				failed.Add(1)
				turn.End(t.Context(), errBroken)
			})
		}
		wait.Wait()
		if failed.Load() != 3 || refused.Load() != 2 {
			t.Errorf("%d machines got the bad image, %d did not", failed.Load(), refused.Load())
		}
		if turn, err := turns.Take(t.Context(), machines[0], turns.Change{Change: rollout.FirstDeployment, Content: "v2"}); turn != nil ||
			err != nil {
			t.Errorf("a first deployment needs a turn: %v", err)
		}
		if n := len(fake.Requests()); n > 2 { // the machines that had to wait are read again
			t.Errorf("%d requests", n)
		}
	})
}

func TestTake_newDeploymentElsewhereTakesTheTurn(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(3)
		ids := active(fake)
		r := newRun(fake)
		m, err := r.Machine(t.Context(), ids[0])
		if err != nil {
			t.Fatal(err)
		}
		former, err := turns.TakeToReplace(t.Context(), m, turns.Change{Settings: databases, Content: "v2"})
		if err != nil {
			t.Fatal(err)
		}
		former.Hand(t.Context(), ids[2])
		other, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := newRun(fake).change(other, ids[1], turns.Change{Settings: databases, Change: rollout.Restart}, func() {},
			nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("another run starts a member meanwhile: %v", err)
		}
		m, err = r.Machine(t.Context(), ids[2])
		if err != nil {
			t.Fatal(err)
		}
		now, err := turns.Take(t.Context(), m, turns.Change{
			Settings: databases, Change: rollout.FirstDeployment,
			Content: "v2", Node: ids[2],
		})
		if err != nil {
			t.Fatal(err)
		}
		if hasNote(t, fake, ids[0]) {
			t.Error("the former node keeps the note")
		}
		now.End(t.Context(), nil)
		if err := newRun(fake).change(t.Context(), ids[1], turns.Change{Settings: databases, Change: rollout.Restart}, func() {},
			nil); err != nil {
			t.Error(err)
		}
	})
}

// With create_before_destroy, the new deployment runs before the former one is undeployed: nothing follows.
func TestHand_deploymentThatWasMadeBefore(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(3)
		ids := active(fake)
		r := newRun(fake)
		first := turns.Change{Settings: databases, Change: rollout.FirstDeployment, Content: "v2", Node: ids[2]}
		if err := r.change(t.Context(), ids[2], first, func() {}, nil); err != nil {
			t.Fatal(err)
		}
		m, err := r.Machine(t.Context(), ids[0])
		if err != nil {
			t.Fatal(err)
		}
		former, err := turns.TakeToReplace(t.Context(), m, turns.Change{Settings: databases, Content: "v2"})
		if err != nil {
			t.Fatal(err)
		}
		former.Hand(t.Context(), ids[2])
		begun := time.Now()
		if err := r.change(t.Context(), ids[1], turns.Change{Settings: databases, Change: rollout.Restart}, func() {}, nil); err != nil ||
			time.Since(begun) > time.Second {
			t.Errorf("the next member waits for a deployment that was made before: %v", err)
		}
	})
}

// First deployments of a group leave no word for other runs.
func TestTake_firstDeploymentOfAGroupSendsNothing(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		r := newRun(fake)
		m, err := r.Machine(t.Context(), fake.Nodes()[0].UUID)
		if err != nil {
			t.Fatal(err)
		}
		fake.ResetRequests()
		turn, err := turns.Take(t.Context(), m, turns.Change{Settings: databases, Change: rollout.FirstDeployment, Content: "v1"})
		if err != nil {
			t.Fatal(err)
		}
		turn.End(t.Context(), errBroken)
		if n := len(fake.Requests()); n > 0 {
			t.Errorf("%d requests", n)
		}
	})
}

// A turn whose caller has panicked keeps nobody waiting.
func TestAbandon(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(2)
		ids := active(fake)
		r := newRun(fake)
		c := turns.Change{Settings: databases, Change: rollout.Restart}
		func() {
			defer func() { _ = recover() }()
			m, err := r.Machine(t.Context(), ids[0])
			if err != nil {
				t.Fatal(err)
			}
			turn, err := turns.Take(t.Context(), m, c)
			if err != nil {
				t.Fatal(err)
			}
			defer turn.Abandon(t.Context())
			panic("a bug")
		}()
		if err := r.change(t.Context(), ids[1], c, func() {}, nil); err != nil {
			t.Error(err)
		}
	})
}

func TestTake_userWhoStopsTheRun(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(2)
		ids := active(fake)
		r := newRun(fake)
		c := turns.Change{Settings: databases, Change: rollout.Restart}
		_ = r.change(t.Context(), ids[0], c, func() {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, context.Canceled)
			defer cancel()
			stop, stopped := context.WithCancel(ctx)
			time.AfterFunc(time.Second, stopped)
			err := r.change(stop, ids[1], c, func() {}, nil)
			if _, detail := failure.Explain("restart node x", err); !strings.Contains(detail,
				"waited for its turn in the rollout. Nothing was started on it.") {
				t.Errorf("it says %q", detail)
			}
		}, nil)
	})
}

func TestAgree(t *testing.T) {
	t.Parallel()
	r := newRun(ironictest.Fleet(1))
	two := databases
	two.MaxUnavailable = 2
	for _, tt := range []struct {
		settings rollout.Settings
		ok       bool
	}{
		{databases, true},
		{databases, true},
		{two, false},
		{rollout.Settings{Group: "web", MaxUnavailable: 2}, true},
		{rollout.Settings{}, true},
	} {
		if err := turns.Agree(r.Site, tt.settings); (err == nil) != tt.ok {
			t.Errorf("%+v: %v", tt.settings, err)
		}
	}
}

// The note says which member goes first, for metal watch.
func TestTake_noteOfACanary(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(2)
		ids := active(fake)
		one := 1
		settings := databases
		settings.Canary = &one
		r := newRun(fake)
		for i, id := range ids {
			err := r.change(t.Context(), id, turns.Change{Settings: settings, Change: rollout.Restart}, func() {
				m, err := r.Machine(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				if note := notes.TurnOf(m.Node(), false); note == nil || note.Canary != (i == 0) {
					t.Errorf("member %d has the note %+v", i, note)
				}
			}, nil)
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// Terraform prints the errors of a resource's instances in any order, so each of them names the cause; only one says all that it means.
func TestTake_eachErrorNamesWhyTheCanaryHasFailed(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(10)
		ids := active(fake)
		one := 1
		settings := rollout.Settings{Group: "web", MaxUnavailable: 9, Canary: &one}
		r := newRun(fake)
		var all sync.WaitGroup
		var mu sync.Mutex
		var refused []string
		broken := &failure.Error{Kind: failure.KindFailed, Fact: "Ironic failed", Words: "no disk matches the hints\nTraceback"}
		for _, id := range ids {
			all.Go(func() {
				rebuild := turns.Change{Settings: settings, Change: rollout.Rebuild}
				err := r.change(t.Context(), id, rebuild, func() { time.Sleep(time.Minute) }, broken)
				if err == nil {
					return
				}
				_, detail := failure.Explain("deploy a node", err)
				mu.Lock()
				defer mu.Unlock()
				refused = append(refused, detail)
			})
		}
		all.Wait()
		long := 0
		for _, detail := range refused {
			if !strings.Contains(detail, "has failed: no disk matches the hints") || strings.Contains(detail, "Traceback") {
				t.Errorf("an error does not name the cause:\n%s", detail)
			}
			if len(detail) > 230 { // three lines of a terminal
				long++
			}
		}
		if len(refused) != 9 || long != 1 {
			t.Errorf("%d members are refused, %d of them at length", len(refused), long)
		}
	})
}
