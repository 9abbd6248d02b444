package machine_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// reachAll walks all nodes of a fake at the same time and reports every failure.
func reachAll(t *testing.T, fake *fakeironic.Server, client *sitetest.Client, goal states.Goal, limit time.Duration) {
	t.Helper()
	var wg sync.WaitGroup
	for _, node := range fake.Nodes() {
		wg.Go(func() {
			if _, err := client.Reach(t.Context(), node.UUID, goal, limit); err != nil {
				t.Errorf("%s: %v", node.Name, err)
			}
		})
	}
	wg.Wait()
}

func TestQueue_timeDoesNotCount(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(12, 5*time.Minute) // four rounds of 5 minutes, and 8 minutes for each node
		reachAll(t, fake, sitetest.NewClient(fake, sitetest.Slots(3)), states.GoalAvailable, 8*time.Minute)
		if peak := fake.MaxBusy(); peak != 3 {
			t.Errorf("%d nodes had an operation in progress at once, want 3", peak)
		}
	})
}

func TestQueue_limitOfIronic(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.82", "1.115"} { // which answer 500 and 503
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(8)
				fake.MaxMicroversion = version
				fake.StepTime = 30 * time.Minute
				fake.MaxConcurrentDeploy = 2
				reachAll(t, fake, sitetest.NewClient(fake), states.GoalDeployed, 45*time.Minute)
				if peak := fake.MaxBusy(); peak != 2 {
					t.Errorf("%d nodes had an operation in progress at once, want 2", peak)
				}
			})
		})
	}
}

func TestQueue_noFreeConductorWorker(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		client := sitetest.NewClient(fake)
		id := ironictest.NodeOf(t, fake, "node-000").UUID
		fake.Reject = ironictest.Times(20, http.MethodPut, ironictest.ProvisionPath(id),
			ironictest.Fault(http.StatusServiceUnavailable, "Requested action cannot be performed due to lack of free conductor workers."))
		start := time.Now()
		if _, err := client.Reach(t.Context(), id, states.GoalDeployed, 5*time.Minute); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 20*time.Second || took > time.Minute {
			t.Errorf("20 refusals, six of them in the first seconds, took %s", took)
		}
	})
}

func TestQueue_busyNodeTakesSlot(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(2)
		fake.StepTime = time.Hour
		for _, node := range fake.Nodes() {
			fake.Set(node.UUID, "provision_state", "manageable")
		}
		first, second := ironictest.NodeOf(t, fake, "node-000").UUID, ironictest.NodeOf(t, fake, "node-001").UUID
		// by an earlier run
		ironictest.AsOther(t, fake, http.MethodPut, "nodes/"+first+"/states/provision", map[string]any{"target": "provide"})
		client := sitetest.NewClient(fake, sitetest.Slots(1))
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := client.Reach(t.Context(), first, states.GoalAvailable, 2*time.Hour); err != nil {
				t.Error(err)
			}
		})
		<-time.After(time.Minute)
		wg.Go(func() {
			if _, err := client.Reach(t.Context(), second, states.GoalAvailable, 2*time.Hour); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		if peak := fake.MaxBusy(); peak != 1 {
			t.Errorf("%d nodes had an operation in progress at once, want 1", peak)
		}
	})
}

func TestQueue_slotIsReleased(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(ctx context.Context, fake *fakeironic.Server, client *sitetest.Client, id string) error{
		"failure": func(ctx context.Context, fake *fakeironic.Server, client *sitetest.Client, id string) error {
			fake.Fail = func(node fakeironic.Node, _ string) string {
				if node.Name == "node-000" {
					return "broken"
				}
				return ""
			}
			_, err := client.Reach(ctx, id, states.GoalAvailable, 3*time.Hour)
			return err
		},
		"timeout": func(ctx context.Context, _ *fakeironic.Server, client *sitetest.Client, id string) error {
			_, err := client.Reach(ctx, id, states.GoalAvailable, time.Minute)
			return err
		},
		"interruption": func(ctx context.Context, _ *fakeironic.Server, client *sitetest.Client, id string) error {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Minute, cancel)
			_, err := client.Reach(ctx, id, states.GoalAvailable, 3*time.Hour)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(2)
				fake.StepTime = time.Hour
				for _, node := range fake.Nodes() {
					fake.Set(node.UUID, "provision_state", "manageable")
				}
				client := sitetest.NewClient(fake, sitetest.Slots(1))
				if err := end(t.Context(), fake, client, ironictest.NodeOf(t, fake, "node-000").UUID); err == nil {
					t.Fatal("the first walk did not fail")
				}
				start := time.Now()
				if _, err := client.Reach(t.Context(), ironictest.NodeOf(t, fake, "node-001").UUID, states.GoalAvailable,
					3*time.Hour); err != nil {
					t.Fatal(err)
				}
				// A machine that Ironic is still at work on keeps its slot, although no caller waits for it any more.
				ironictest.WantNear(t, "the second walk", time.Since(start), map[string]time.Duration{
					"failure": time.Hour, "timeout": 2*time.Hour - time.Minute, "interruption": 2*time.Hour - time.Minute,
				}[name])
			})
		})
	}
}

func TestVerb_waitsForLock(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		client := sitetest.NewClient(fake)
		id := ironictest.NodeOf(t, fake, "node-000").UUID
		fake.Set(id, "reservation", "localhost")
		time.AfterFunc(time.Hour, func() { fake.Set(id, "reservation", nil) })
		start := time.Now()
		if _, err := client.Reach(t.Context(), id, states.GoalManageable, 2*time.Hour); err != nil {
			t.Fatal(err)
		}
		ironictest.WantNear(t, "waiting for the lock", time.Since(start), time.Hour)
		if got, want := ironictest.Verbs(t, fake, id), []string{"manage"}; !slices.Equal(got, want) {
			t.Errorf("verbs = %v, want %v: nothing is sent to a locked node", got, want)
		}
	})
}

func TestVerb_refusedByLock(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		client := sitetest.NewClient(fake)
		id := ironictest.NodeOf(t, fake, "node-000").UUID
		fake.Reject = ironictest.Times(20, http.MethodPut, ironictest.ProvisionPath(id),
			ironictest.Fault(http.StatusConflict, "Node "+id+" is locked by host localhost, please retry after the current operation "+
				"is completed."))
		if _, err := client.Reach(t.Context(), id, states.GoalManageable, time.Hour); err != nil {
			t.Fatal(err)
		}
	})
}

func TestVerb_lostAnswer(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		from string
		goal states.Goal
		verb string
	}{
		{"enroll", states.GoalManageable, "manage"},
		{"manageable", states.GoalAvailable, "provide"},
		{"manageable", states.GoalInspected, "inspect"},
		{"available", states.GoalDeployed, "active"},
		{"active", states.GoalRebuilt, "rebuild"},
		{"active", states.GoalUndeployed, "deleted"},
	} {
		for _, step := range []time.Duration{0, time.Second, time.Hour} { // over at once, over before one could ask again, long
			for loss, rejection := range map[string]*fakeironic.Rejection{
				"reset": ironictest.Lost(), "bad gateway": {Status: http.StatusBadGateway, After: true},
				"gateway timeout": {Status: http.StatusGatewayTimeout, After: true},
			} {
				t.Run(fmt.Sprintf("%s in %s, %s", tc.verb, step, loss), func(t *testing.T) {
					t.Parallel()
					ironictest.InVirtualTime(t, func(t *testing.T) {
						fake := ironictest.Fleet(1)
						fake.StepTime = step
						fake.MaxMicroversion = "1.82" // where rebuild needs no image
						id := ironictest.NodeOf(t, fake, "node-000").UUID
						fake.Set(id, "provision_state", tc.from)
						client := sitetest.NewClient(fake)
						<-time.After(time.Minute)
						fake.Reject = ironictest.Once(http.MethodPut, ironictest.ProvisionPath(id), rejection)
						var err error
						if tc.goal == states.GoalUndeployed {
							instance := ironic.NewUUID()
							fake.Set(id, "instance_uuid", instance)
							_, err = client.Undeploy(t.Context(), id, instance, "", 5*time.Hour)
						} else {
							_, err = client.Reach(t.Context(), id, tc.goal, 5*time.Hour)
						}
						if err != nil {
							t.Fatal(err)
						}
						if got, want := ironictest.Verbs(t, fake, id), []string{tc.verb}; !slices.Equal(got, want) {
							t.Errorf("verbs = %v, want %v", got, want)
						}
					})
				})
			}
		}
	}
}

// A machine of the pool leaves it when it has a slot, by a request of its own. Whatever becomes of one of the two requests, the walk goes
// on from there.
func TestVerb_leavesThePool(t *testing.T) {
	t.Parallel()
	for name, rejection := range map[string]*fakeironic.Rejection{
		"lost answer": ironictest.Lost(), "lost request": {Drop: true},
		"locked": ironictest.Fault(http.StatusConflict, "Node node-000 is locked by host localhost, please retry after the current "+
			"operation is completed."),
		"limit": ironictest.Fault(http.StatusServiceUnavailable, "Unable to process request at this time. The concurrent action limit "+
			"for cleaning has been reached."),
	} {
		for request := range 2 {
			t.Run(fmt.Sprintf("%s, request %d", name, request+1), func(t *testing.T) {
				t.Parallel()
				ironictest.InVirtualTime(t, func(t *testing.T) {
					fake := ironictest.Fleet(1)
					fake.StepTime = time.Minute
					client := sitetest.NewClient(fake, sitetest.Slots(1))
					id := ironictest.NodeOf(t, fake, "node-000").UUID
					sent := 0
					fake.Reject = func(r *http.Request) *fakeironic.Rejection {
						if r.Method != http.MethodPut || r.URL.Path != ironictest.ProvisionPath(id) {
							return nil
						}
						if sent++; sent == request+1 {
							return rejection
						}
						return nil
					}
					if _, err := client.Reach(t.Context(), id, states.GoalInspected, time.Hour); err != nil {
						t.Fatal(err)
					}
					if walk := strings.Join(fake.Walk(id), " "); walk != "available manageable inspecting manageable" {
						t.Errorf("the node went through %s", walk)
					}
				})
			})
		}
	}
}

func TestVerb_lostRequest(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		fake.StepTime = time.Hour
		client := sitetest.NewClient(fake)
		id := ironictest.NodeOf(t, fake, "node-000").UUID
		fake.Reject = ironictest.Once(http.MethodPut, ironictest.ProvisionPath(id), &fakeironic.Rejection{Drop: true})
		if _, err := client.Reach(t.Context(), id, states.GoalDeployed, 5*time.Hour); err != nil {
			t.Fatal(err)
		}
		if walk := strings.Join(fake.Walk(id), " "); walk != "available deploying active" {
			t.Errorf("the node went through %s", walk)
		}
	})
}

func TestVerb_refused(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(1)
	fake.Set("node-000", "maintenance", true)
	client := sitetest.NewClient(fake)
	_, err := client.Reach(t.Context(), ironictest.NodeOf(t, fake, "node-000").UUID, states.GoalDeployed, time.Hour)
	var status *api.StatusError
	if !errors.As(err, &status) || status.Status != http.StatusBadRequest {
		t.Errorf("Reach = %v, want Ironic's 400", err)
	}
}

func TestQueue_powerThatStartsMachinesTakesSlots(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		power string // of the machines before
		send  func(context.Context, *machine.Machine) error
		waits bool
	}{
		"switch on": {"power off", func(ctx context.Context, m *machine.Machine) error { return m.SetPower(ctx, true, time.Hour) }, true},
		"reboot": {"power on", func(ctx context.Context, m *machine.Machine) error {
			return m.Reboot(ctx, machine.OffHard, time.Hour)
		}, true},
		"switch off": {"power on", func(ctx context.Context, m *machine.Machine) error { return m.SetPower(ctx, false, time.Hour) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				const machines, limit, step = 6, 2, 10 * time.Minute
				fake := ironictest.Fleet(machines)
				fake.StepTime = step
				client := sitetest.NewClient(fake, sitetest.Slots(limit))
				start := time.Now()
				var wg sync.WaitGroup
				for _, node := range fake.Nodes() {
					fake.Set(node.UUID, "power_state", tc.power)
					wg.Go(func() {
						machine, err := client.Machine(t.Context(), node.UUID)
						if err == nil {
							err = tc.send(t.Context(), machine)
						}
						if err != nil {
							t.Errorf("%s: %v", node.Name, err)
						}
					})
				}
				wg.Wait()
				if took, rounds := time.Since(start), time.Duration(machines/limit); (took >= rounds*step) != tc.waits {
					t.Errorf("%d machines with %d slots and %s each took %s", machines, limit, step, took)
				}
			})
		})
	}
}

// An allocation reserves the machine after the list of the round that gives it a slot: it stays in the pool.
func TestVerb_leavesNoReservedMachineOutOfThePool(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		fake.StepTime = time.Minute
		id := ironictest.NodeOf(t, fake, "node-000").UUID
		locked := false
		client := sitetest.NewClient(fake, func(cfg *machine.Config) {
			cfg.Limit = sitetest.UpTo(1)
			cfg.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
				answer, err := fake.RoundTrip(r)
				locked = locked || r.Method == http.MethodPost
				if locked && r.URL.Path == "/v1/nodes" {
					fake.Set(id, "instance_uuid", "11111111-1111-4111-8111-111111111111")
				}
				return answer, err
			})
		})
		_, err := client.Reach(t.Context(), id, states.GoalInspected, time.Hour)
		if walk := strings.Join(fake.Walk(id), " "); !failure.Is(err, machine.KindRefused) || walk != "available" {
			t.Errorf("the node went through %s: %v", walk, err)
		}
	})
}

// A machine that meets a lock when it has a slot keeps its place in the queue.
func TestQueue_lockTakesNoPlace(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		path string
		send func(ctx context.Context, client *sitetest.Client, id string) error
	}{
		"power": {"/states/power", func(ctx context.Context, client *sitetest.Client, id string) error {
			_, err := client.SetPower(ctx, id, true, time.Hour)
			return err
		}},
		"verb": {"/states/provision", func(ctx context.Context, client *sitetest.Client, id string) error {
			_, err := client.Reach(ctx, id, states.GoalInspected, time.Hour)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := manageableFleet(4, 30*time.Minute)
				fake.Set("node-000", "provision_state", "cleaning")
				client, first := sitetest.NewClient(fake, sitetest.Slots(1)), ironictest.NodeOf(t, fake, "node-001").UUID
				locked := ironictest.Fault(http.StatusConflict, "Node node-001 is locked by host localhost, please retry after the "+
					"current operation is completed.")
				fake.Reject = ironictest.Times(map[string]int{"power": 1, "verb": 1 + api.Retries}[name], http.MethodPut, "/v1/nodes/"+
					first+tt.path, locked)
				var all sync.WaitGroup
				ends := make(chan string, 3)
				for _, n := range fake.Nodes()[1:] {
					time.Sleep(time.Minute)
					all.Go(func() {
						if err := tt.send(t.Context(), client, n.UUID); err != nil {
							t.Error(err)
						}
						ends <- n.Name
					})
				}
				time.Sleep(30 * time.Minute)
				fake.Set("node-000", "provision_state", "manageable")
				all.Wait()
				if order := strings.Join([]string{<-ends, <-ends, <-ends}, " "); order == "node-002 node-003 node-001" {
					t.Errorf("the order was %s", order)
				}
			})
		})
	}
}
