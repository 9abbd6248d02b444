package operate_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// deployed is a fake with two nodes, of which one is allocated by web-0 and deployed. Each step of an operation takes an hour.
func deployed(t *testing.T) (fake *fakeironic.Server, id string, spec ironic.AllocationSpec) {
	t.Helper()
	fake = ironictest.Fleet(2)
	client := sitetest.NewClient(fake)
	spec = ironic.AllocationSpec{UUID: ironic.NewUUID(), Name: "web-0", ResourceClass: "baremetal", Extra: map[string]any{"team": "web"}}
	a, err := sitetest.Allocate(t.Context(), client, spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := client.Deploy(t.Context(), a.NodeUUID, sitetest.Debian("12"), sitetest.OnceIn4h(spec.UUID)); err != nil {
		t.Fatal(err)
	}
	fake.StepTime = time.Hour
	fake.ResetRequests()
	return fake, a.NodeUUID, spec
}

// do does an operation on a machine, as a command does.
func do(ctx context.Context, t *testing.T, site *machine.Site, op operate.Operation, id string) operate.Result {
	t.Helper()
	node, err := site.Ironic.Node(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	runner := operate.Runner{Site: site, Parallel: 1, Timeout: 20 * time.Hour}
	machines := []ironic.Node{*node}
	return runner.Run(ctx, op, operate.Tasks(op, machines, operate.Look(ctx, site, machines)))[0]
}

// killed is a client that is killed when it has sent a number of requests that change something: Ironic does the last one, and nothing
// follows.
func killed(ctx context.Context, fake *fakeironic.Server, writes int) (client *sitetest.Client, dying context.Context, died func() bool) {
	dying, kill := context.WithCancel(ctx)
	dead := false
	return sitetest.NewClient(fake, func(c *machine.Config) {
		c.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
			if dead {
				return nil, errors.New("the process is dead")
			}
			answer, err := fake.RoundTrip(r)
			if r.Method != http.MethodGet {
				if writes--; writes == 0 {
					dead = true
					kill()
				}
			}
			return answer, err
		})
	}), dying, func() bool { return dead }
}

// wantFree fails the test unless a machine is free, and reserved by an allocation if it is to be.
func wantFree(t *testing.T, fake *fakeironic.Server, id string, spec ironic.AllocationSpec, isReserved bool) {
	t.Helper()
	node := ironictest.NodeOf(t, fake, id)
	holder := map[bool]string{true: spec.UUID}[isReserved]
	if node.ProvisionState != "available" || node.InstanceUUID != holder {
		t.Errorf("the node is %s and reserved by %q, want %q", node.ProvisionState, node.InstanceUUID, holder)
	}
	a, err := sitetest.NewClient(fake).Ironic.Allocation(t.Context(), spec.UUID)
	if isReserved && (err != nil || a.Name != spec.Name || !ironic.SameJSON(sitetest.FirstExtra(a), spec.Extra)) || !isReserved &&
		!api.IsNotFound(err) {
		t.Errorf("the allocation: %+v, %v", a, err)
	}
	for _, field := range []string{"extra", "instance_info"} {
		for key := range node.Raw[field].(map[string]any) {
			if strings.HasPrefix(key, "terraform_metal") {
				t.Errorf("%s.%s is left behind", field, key)
			}
		}
	}
}

func TestUndeploy_freesTheMachine(t *testing.T) {
	t.Parallel()
	for name, release := range map[string]bool{"kept": false, "released": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake, id, spec := deployed(t)
				got := do(t.Context(), t, sitetest.NewClient(fake).Site, operate.Undeploy(nil, release), id)
				if got.Outcome != operate.Done || !strings.HasPrefix(got.Note, "cleaned, as its run noted, by ") {
					t.Errorf("%+v", got)
				}
				wantFree(t, fake, id, spec, !release)
				again := do(t.Context(), t, sitetest.NewClient(fake).Site, operate.Undeploy(nil, false), id)
				if again.Outcome != operate.Unchanged {
					t.Errorf("again: %+v", again)
				}
			})
		})
	}
}

// Ironic deletes the allocation and does not create it again, so that the machine is free for others after Ctrl-C.
func TestUndeploy_tellsWhatIsLeftWhenStopped(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, spec := deployed(t)
		fake.StepTime = time.Minute
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(90*time.Second, stop)
		got := do(ctx, t, sitetest.NewClient(fake).Site, operate.Undeploy(nil, false), id)
		_, text := failure.ExplainAction("", got.Node, got.Err, got.Left)
		if got.Outcome != operate.Interrupted || strings.Contains(text, "No apply") || !strings.Contains(text, "Allocation "+spec.Name) ||
			!strings.Contains(text, "run: metal undeploy ") {
			t.Errorf("%s: %s", got.Outcome, text)
		}
	})
}

// Two operators undeploy one machine, and both create its allocation again: the one that comes later must not give up what the other has
// created.
func TestUndeploy_byTwoKeepsTheAllocation(t *testing.T) {
	t.Parallel()
	for i := range 20 {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake, id, spec := deployed(t)
			fake.StepTime = 3 * time.Second
			var both sync.WaitGroup
			for j := range 2 {
				both.Go(func() {
					time.Sleep(time.Duration(i*j) * 50 * time.Millisecond)
					if got := do(t.Context(), t, sitetest.NewClient(fake).Site, operate.Undeploy(nil, false),
						id); got.Outcome != operate.Done {
						t.Errorf("%d: %s: %v", i, got.Outcome, got.Err)
					}
				})
			}
			both.Wait()
			wantFree(t, fake, id, spec, true)
		})
	}
}

// TestUndeploy_isEndedAfterAKill kills the command after each of its requests. The next one says what it does, and completes it.
func TestUndeploy_isEndedAfterAKill(t *testing.T) {
	t.Parallel()
	for name, release := range map[string]bool{"kept": false, "released": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			isOver := false
			for writes := 1; !isOver; writes++ {
				ironictest.InVirtualTime(t, func(t *testing.T) {
					fake, id, spec := deployed(t)
					client, ctx, died := killed(t.Context(), fake, writes)
					_ = do(ctx, t, client.Site, operate.Undeploy(nil, release), id)
					if isOver = !died(); isOver {
						return
					}
					next := sitetest.NewClient(fake)
					got := do(t.Context(), t, next.Site, operate.Undeploy(nil, release), id)
					if got.Outcome != operate.Done && got.Outcome != operate.Unchanged {
						t.Errorf("killed after %d requests: %+v, %v", writes, got, got.Err)
					}
					wantFree(t, fake, id, spec, !release)
				})
			}
		})
	}
}

// An allocation that the user cannot see could not be created again, so the machine keeps it.
func TestUndeploy_keepsAllocationsOfOthers(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, spec := deployed(t)
		fake.Reject = func(r *http.Request) *fakeironic.Rejection {
			if strings.HasPrefix(r.URL.Path, "/v1/allocations/") {
				return ironictest.Fault(http.StatusNotFound, "Allocation "+spec.UUID+" could not be found.")
			}
			return nil
		}
		got := do(t.Context(), t, sitetest.NewClient(fake).Site, operate.Undeploy(nil, false), id)
		if got.Outcome != operate.Refused || !strings.Contains(got.Err.Error(), "--release") {
			t.Errorf("%s: %v", got.Outcome, got.Err)
		}
		if verbs := ironictest.Verbs(t, fake, id); len(verbs) > 0 {
			t.Errorf("verbs %v were sent", verbs)
		}
	})
}

func TestUndeploy_leavesProtectedMachines(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, _ := deployed(t)
		fake.Set(id, "protected", true)
		got := do(t.Context(), t, sitetest.NewClient(fake).Site, operate.Undeploy(nil, false), id)
		if got.Outcome != operate.Refused || !strings.Contains(got.Err.Error(), "protected = false") ||
			len(ironictest.Verbs(t, fake, id)) > 0 {
			t.Errorf("%+v, %v", got, got.Err)
		}
	})
}

func TestRelease_refusesWhatRunsInMaintenance(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, spec := deployed(t)
		fake.Set(id, "maintenance", true)
		site := sitetest.NewClient(fake).Site
		r, err := operate.FindAllocation(t.Context(), site.Ironic, "web-0")
		if err != nil {
			t.Fatal(err)
		}
		if err := operate.Release(t.Context(), site, r); err == nil || !strings.Contains(err.Error(), "something is deployed on it") {
			t.Errorf("it was released: %v", err)
		}
		if node := ironictest.NodeOf(t, fake, id); node.InstanceUUID != spec.UUID {
			t.Errorf("the node is reserved by %q", node.InstanceUUID)
		}
	})
}

// TestRelease_isEndedAfterAKill kills an undeployment after each of its requests. When the machine is free, releasing its allocation leaves
// nothing.
func TestRelease_isEndedAfterAKill(t *testing.T) {
	t.Parallel()
	isOver := false
	for writes := 1; !isOver; writes++ {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake, id, spec := deployed(t)
			client, ctx, died := killed(t.Context(), fake, writes)
			_ = do(ctx, t, client.Site, operate.Undeploy(nil, false), id)
			if isOver = !died(); isOver {
				return
			}
			time.Sleep(9 * time.Hour) // Ironic goes on
			site := sitetest.NewClient(fake).Site
			r, err := operate.FindReservation(t.Context(), site.Ironic, id)
			if err != nil {
				t.Fatal(err)
			}
			if plan := operate.DecideRelease(r); plan.Refused != "" || plan.Nothing {
				return
			}
			if err := operate.Release(t.Context(), site, r); err != nil {
				t.Errorf("killed after %d requests: %v", writes, err)
			}
			wantFree(t, fake, id, spec, false)
		})
	}
}

// TestRelease_endsAReservationWithoutAnAllocation: a run that was killed after it had reserved a node leaves its mark, which goes, too.
func TestRelease_endsAReservationWithoutAnAllocation(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		fake.Set("node-000", "instance_uuid", "1be26c0b-03f2-4d2e-ae87-c02d7f33c999")
		fake.Set("node-000", "extra", runMark("terraform_metal_reservation", "1be26c0b-03f2-4d2e-ae87-c02d7f33c999"))
		site := sitetest.NewClient(fake).Site
		r, err := operate.FindReservation(t.Context(), site.Ironic, "node-000")
		if err == nil {
			err = operate.Release(t.Context(), site, r)
		}
		node := ironictest.NodeOf(t, fake, "node-000")
		if extra, _ := node.Raw["extra"].(map[string]any); err != nil || node.InstanceUUID != "" || len(extra) > 0 {
			t.Errorf("%v; %+v", err, node.Raw)
		}
	})
}

func TestRescue_endsInTheRescueSystemAndBack(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, id, _ := deployed(t)
		fake.Set(id, "rescue_interface", "fake")
		site := sitetest.NewClient(fake).Site
		for _, step := range []struct {
			op    operate.Operation
			state string
		}{{operate.Rescue("correct horse"), "rescue"}, {operate.Unrescue(), "active"}} {
			got := do(t.Context(), t, site, step.op, id)
			if node := ironictest.NodeOf(t, fake, id); got.Outcome != operate.Done || node.ProvisionState != step.state {
				t.Errorf("%s: %+v, %v; the node is %s", step.op.Command, got, got.Err, node.ProvisionState)
			}
		}
	})
}
