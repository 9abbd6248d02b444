package allocate_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

func TestAllocation_reservesFittingNode(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(4)
		client := sitetest.NewClient(fake)
		spec := ironic.AllocationSpec{
			UUID: ironic.NewUUID(), Name: "web-0", ResourceClass: "baremetal", Traits: []string{"CUSTOM_NVME"},
			CandidateNodes: []string{"node-002", "node-003"}, Extra: map[string]any{"team": "web"},
		}
		a, err := sitetest.Allocate(t.Context(), client, spec)
		if err != nil {
			t.Fatal(err)
		}
		node := ironictest.NodeOf(t, fake, "node-003") // the only candidate with the trait
		if a.NodeUUID != node.UUID || node.InstanceUUID != spec.UUID || a.Name != "web-0" || a.Extra["team"] != "web" {
			t.Errorf("allocation %+v, node %+v", a, node)
		}
	})
}

func TestAllocation_failureIsExplained(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(5)
		fake.Set("node-000", "provision_state", "active")
		fake.Set("node-001", "maintenance", true)
		fake.Set("node-002", "power_state", nil)
		fake.Set("node-003", "resource_class", "storage")
		client := sitetest.NewClient(fake)
		spec := ironic.AllocationSpec{UUID: ironic.NewUUID(), Name: "web-0", ResourceClass: "baremetal", Traits: []string{"CUSTOM_GPU"}}
		_, err := sitetest.Allocate(t.Context(), client, spec)
		if !failure.Is(err, allocate.KindNoMatch) {
			t.Fatalf("%v, want an error of KindNoMatch", err)
		}
		want := "0 of 5 nodes: 1 other class, 1 not available (1 active), 1 in maintenance, 1 with unknown power state, 1 " +
			"without CUSTOM_GPU"
		if summary, detail := failure.Explain("allocate a node", err); summary != "Could not allocate a node" ||
			!strings.Contains(detail, want) ||
			!strings.Contains(detail, "no available nodes match") && !strings.Contains(detail, "no suitable nodes") {
			t.Errorf("%s: %s\nwant %s and Ironic's words", summary, detail, want)
		}
		if _, err := client.Ironic.Allocation(t.Context(), "web-0"); !api.IsNotFound(err) {
			t.Errorf("the failed allocation keeps its name: %v", err)
		}
	})
}

func TestAllocation_plansShareCensus(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(5)
		client := sitetest.NewClient(fake)
		want := func(matching, lists int) {
			t.Helper()
			for range 50 {
				census, err := allocate.TakeCensus(t.Context(), client.Site,
					allocate.Request{AllocationSpec: ironic.AllocationSpec{ResourceClass: "baremetal"}})
				if err != nil || census.Matching != matching {
					t.Fatalf("%s, %v, want %d that match", census, err, matching)
				}
			}
			if got := ironictest.Count(fake, http.MethodGet, "/v1/nodes"); got != lists {
				t.Errorf("%d lists, want %d", got, lists)
			}
		}
		want(5, 1)
		if client.Ironic.HasWritten() {
			t.Error("reading is taken for an apply")
		}
		<-time.After(time.Second)
		if err := client.Ironic.SetMaintenance(t.Context(), ironictest.NodeOf(t, fake, "node-000").UUID, true, ""); err != nil {
			t.Fatal(err)
		}
		if !client.Ironic.HasWritten() {
			t.Error("a write is not taken for an apply")
		}
		<-time.After(time.Second)
		fake.ResetRequests()
		want(4, 1)
	})
}

func TestAllocation_slow(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		client := sitetest.NewClient(fake)
		spec := ironic.AllocationSpec{UUID: ironic.NewUUID(), ResourceClass: "baremetal"}
		start := time.Now()
		stall(fake, spec.UUID, func() bool { return time.Since(start) < 20*time.Second })
		if _, err := sitetest.Allocate(t.Context(), client, spec); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 20*time.Second+ironictest.Poll {
			t.Errorf("it was seen after %s, want an interval after it is there at most", took)
		}
		if n := ironictest.Count(fake, http.MethodPost, "/v1/allocations"); n != 1 {
			t.Errorf("%d POSTs, want 1", n)
		}
	})
}

// Ironic needs more time for each allocation than a lost one gets: the allocation is created again once, not for ever.
func TestAllocation_slowerThanPatience(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		spec := ironic.AllocationSpec{UUID: ironic.NewUUID(), ResourceClass: "baremetal"}
		stall(fake, spec.UUID, func() bool {
			last := time.Time{}
			for _, r := range fake.Requests() {
				if r.Method == http.MethodPost && r.Path == "/v1/allocations" {
					last = r.Time
				}
			}
			return time.Since(last) < 100*time.Second
		})
		if _, err := sitetest.Allocate(t.Context(), sitetest.NewClient(fake), spec); err != nil {
			t.Fatal(err)
		}
		if n := ironictest.Count(fake, http.MethodPost, "/v1/allocations"); n != 2 {
			t.Errorf("%d POSTs, want 2", n)
		}
	})
}

// stall makes an allocation look as if no conductor had come to it, as long as a condition holds.
func stall(fake *fakeironic.Server, id string, stalled func() bool) {
	fake.Reject = func(r *http.Request) *fakeironic.Rejection {
		if r.Method == http.MethodGet && r.URL.Path == "/v1/allocations/"+id && stalled() {
			return &fakeironic.Rejection{Status: http.StatusOK, Body: fmt.Sprintf(`{"uuid": %q, "state": "allocating"}`, id)}
		}
		return nil
	}
}

func TestAllocation_lostByConductor(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		client := sitetest.NewClient(fake)
		spec := ironic.AllocationSpec{UUID: ironic.NewUUID(), Name: "web-0", ResourceClass: "baremetal"}
		posts := 0
		stall(fake, spec.UUID, func() bool { return posts < 2 })
		stalled := fake.Reject
		fake.Reject = func(r *http.Request) *fakeironic.Rejection {
			if r.Method == http.MethodPost && r.URL.Path == "/v1/allocations" {
				if posts++; posts == 1 { // the record is made all the same
					rejection := ironictest.Fault(http.StatusServiceUnavailable, "Requested action cannot be performed due to lack of "+
						"free conductor workers.")
					rejection.After = true
					return rejection
				}
			}
			return stalled(r)
		}
		start := time.Now()
		a, err := sitetest.Allocate(t.Context(), client, spec)
		if err != nil || a.UUID != spec.UUID || a.State != ironic.AllocationActive {
			t.Fatalf("%+v, %v", a, err)
		}
		if took := time.Since(start); posts != 2 || took < time.Minute || took > 2*time.Minute {
			t.Errorf("%d POSTs, active after %s, want a second POST after a minute", posts, took)
		}
	})
}

func TestAllocation_timeOutKeepsIt(t *testing.T) {
	t.Parallel()
	for name, await := range map[string]func(ctx context.Context, client *sitetest.Client, spec ironic.AllocationSpec) string{
		"by time": func(ctx context.Context, client *sitetest.Client, spec ironic.AllocationSpec) string {
			if _, err := client.AwaitAllocation(ctx, spec, 30*time.Second); err == nil ||
				!strings.Contains(err.Error(), "still allocating after 30s") {
				return fmt.Sprint(err)
			}
			return ""
		},
		"by interruption": func(ctx context.Context, client *sitetest.Client, spec ironic.AllocationSpec) string {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(30*time.Second, cancel)
			if _, err := client.AwaitAllocation(ctx, spec, time.Hour); !api.IsInterrupted(err) {
				return fmt.Sprint(err)
			}
			return ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				client := sitetest.NewClient(fake)
				spec := ironic.AllocationSpec{UUID: ironic.NewUUID(), ResourceClass: "baremetal"}
				if _, err := client.Ironic.CreateAllocation(t.Context(), spec); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				stall(fake, spec.UUID, func() bool { return time.Since(start) < time.Minute })
				if problem := await(t.Context(), client, spec); problem != "" {
					t.Error(problem)
				}
				if took := time.Since(start); took != 30*time.Second {
					t.Errorf("it took %s", took)
				}
				<-time.After(time.Minute)
				if a, err := client.Ironic.Allocation(t.Context(), spec.UUID); err != nil || a.State != ironic.AllocationActive {
					t.Errorf("afterwards: %+v, %v", a, err)
				}
			})
		})
	}
}

func TestAllocation_manyAreAwaitedTogether(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(60)
		client := sitetest.NewClient(fake)
		start := time.Now()
		fake.Reject = func(r *http.Request) *fakeironic.Rejection {
			if id, single := strings.CutPrefix(r.URL.Path, "/v1/allocations/"); single && r.Method == http.MethodGet &&
				time.Since(start) < 10*time.Second {
				return &fakeironic.Rejection{Status: http.StatusOK, Body: fmt.Sprintf(`{"uuid": %q, "state": "allocating"}`, id)}
			}
			return nil
		}
		var wg sync.WaitGroup
		nodes := sync.Map{}
		for range 60 {
			wg.Go(func() {
				a, err := sitetest.Allocate(t.Context(), client, ironic.AllocationSpec{UUID: ironic.NewUUID(), ResourceClass: "baremetal"})
				if err != nil {
					t.Error(err)
				} else if _, twice := nodes.LoadOrStore(a.NodeUUID, true); twice {
					t.Errorf("node %s was given twice", a.NodeUUID)
				}
			})
		}
		wg.Wait()
		if singles := ironictest.Count(fake, http.MethodGet, "/v1/allocations/"); singles > 60 {
			t.Errorf("%d single reads for 60 allocations", singles)
		}
	})
}

func TestAllocation_backfill(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(1)
	fake.Set("node-000", "provision_state", "active")
	client := sitetest.NewClient(fake)
	spec := ironic.AllocationSpec{UUID: ironic.NewUUID(), Name: "web-0", Node: "node-000"}
	a, err := sitetest.Allocate(t.Context(), client, spec)
	if err != nil || a.NodeUUID != ironictest.NodeOf(t, fake, "node-000").UUID {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestAllocation_refusedBackfill(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(1) // not active
	client := sitetest.NewClient(fake)
	if _, err := client.Ironic.CreateAllocation(t.Context(), ironic.AllocationSpec{
		UUID: ironic.NewUUID(), Name: "web-0",
		Node: "node-000",
	}); err == nil {
		t.Fatal("it was accepted")
	}
	if _, err := client.Ironic.Allocation(t.Context(), "web-0"); !api.IsNotFound(err) {
		t.Errorf("what Ironic left behind keeps the name: %v", err)
	}
}

func TestAllocation_renameAndExtra(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(1)
	client := sitetest.NewClient(fake)
	spec := ironic.AllocationSpec{
		UUID: ironic.NewUUID(), Name: "old", ResourceClass: "baremetal", Extra: map[string]any{"gone": 1, "kept": 2},
	}
	if _, err := client.Ironic.CreateAllocation(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	name := "new"
	if err := client.Ironic.UpdateAllocation(t.Context(), spec.UUID, &name, map[string]any{"added": 3}, []string{"gone"}); err != nil {
		t.Fatal(err)
	}
	a, err := client.Ironic.Allocation(t.Context(), "new")
	if err != nil || !ironic.SameJSON(a.Extra, map[string]any{"kept": 2, "added": 3}) {
		t.Errorf("%+v, %v", a, err)
	}
	none := ""
	if err := client.Ironic.UpdateAllocation(t.Context(), spec.UUID, &none, nil, nil); err != nil {
		t.Fatal(err)
	}
	if a, err := client.Ironic.Allocation(t.Context(), spec.UUID); err != nil || a.Name != "" {
		t.Errorf("%+v, %v, want no name", a, err)
	}
	before := len(fake.Requests())
	if err := client.Ironic.UpdateAllocation(t.Context(), spec.UUID, nil, nil, nil); err != nil || len(fake.Requests()) != before {
		t.Errorf("changing nothing: %v, %d requests", err, len(fake.Requests())-before)
	}
}

func TestAllocation_delete(t *testing.T) {
	t.Parallel()
	fake := ironictest.Fleet(1)
	client := sitetest.NewClient(fake)
	spec := ironic.AllocationSpec{UUID: ironic.NewUUID(), Name: "web-0", ResourceClass: "baremetal"}
	if _, err := sitetest.Allocate(t.Context(), client, spec); err != nil {
		t.Fatal(err)
	}
	fake.Set("node-000", "provision_state", "active")
	err := client.Ironic.DeleteAllocation(t.Context(), spec.UUID)
	if _, detail := failure.Explain("release the node", err); err == nil ||
		!strings.Contains(detail, "Destroy its metal_deployment first") {
		t.Errorf("under a running machine: %q", detail)
	}
	fake.Set("node-000", "provision_state", "available")
	for range 2 { // also when it is gone
		if err := client.Ironic.DeleteAllocation(t.Context(), spec.UUID); err != nil {
			t.Error(err)
		}
	}
	if node := ironictest.NodeOf(t, fake, "node-000"); node.InstanceUUID != "" {
		t.Errorf("the node is still reserved by %s", node.InstanceUUID)
	}
}
