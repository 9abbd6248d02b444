package allocate_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// wants returns a request for a node of the fleet that meets requirements.
func wants(require *allocate.Requirements, wait time.Duration) *allocate.Request {
	return &allocate.Request{
		AllocationSpec: ironic.AllocationSpec{UUID: ironic.NewUUID(), ResourceClass: "baremetal"},
		Require:        require, Wait: wait,
	}
}

// reserve makes an allocation as the resource does. exists is false if Ironic has none afterwards.
func reserve(ctx context.Context, client *sitetest.Client, r *allocate.Request) (a *ironic.Allocation, exists bool, err error) {
	a, _, err = allocate.Allocate(ctx, client.Site, r)
	if err != nil {
		return nil, false, err
	}
	return allocate.Reserve(ctx, client.Site, r, a, time.Hour)
}

// allocationsLeft returns how many allocations Ironic has.
func allocationsLeft(t *testing.T, fake *fakeironic.Server) int {
	t.Helper()
	all, _ := ironictest.AsOther(t, fake, http.MethodGet, "allocations", nil)["allocations"].([]any)
	return len(all)
}

// withoutProperties removes the properties of all nodes, so that only inventories tell about the hardware.
func withoutProperties(fake *fakeironic.Server) {
	for _, node := range fake.Nodes() {
		fake.Set(node.UUID, "properties", map[string]any{})
	}
}

func TestRequest_allNodesAreReservedInParallel(t *testing.T) {
	t.Parallel()
	for name, require := range map[string]*allocate.Requirements{
		"what Ironic matches": nil,
		"properties":          {MinCPUs: 16, Exclude: []string{"node-050"}},
		"inventories":         {MinNICMbps: 10000, Exclude: []string{"node-050"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(51)
				fake.Set("node-050", "maintenance", require == nil)
				client := sitetest.NewClient(fake)
				var wg sync.WaitGroup
				var nodes sync.Map
				for range 50 {
					wg.Go(func() {
						a, _, err := reserve(t.Context(), client, wants(require, 0))
						if err != nil {
							t.Error(err)
						} else if _, twice := nodes.LoadOrStore(a.NodeUUID, true); twice {
							t.Errorf("node %s was given twice", a.NodeUUID)
						}
					})
				}
				wg.Wait()
				if node := ironictest.NodeOf(t, fake, "node-050"); node.InstanceUUID != "" {
					t.Error("the node that does not fit is reserved")
				}
				t.Logf("%d requests: %d lists of nodes, %d inventories, %d POSTs", len(fake.Requests()),
					ironictest.Count(fake, http.MethodGet, "/v1/nodes")-inventories(fake),
					inventories(fake), ironictest.Count(fake, http.MethodPost, "/v1/allocations"))
			})
		})
	}
}

// inventories counts the reads of inventories.
func inventories(fake *fakeironic.Server) (n int) {
	for _, r := range fake.Requests() {
		if strings.HasSuffix(r.Path, "/inventory") {
			n++
		}
	}
	return n
}

func TestRequest_readsFewInventories(t *testing.T) {
	t.Parallel()
	rare := &allocate.Requirements{MinNICMbps: 100000}
	for name, tc := range map[string]struct {
		require              *allocate.Requirements
		allocations          int
		inventories, allowed int // of all kinds
		fails                bool
	}{
		"one": {
			&allocate.Requirements{MinMemoryMB: 65536, DiskType: allocate.DiskSSD, MinNICMbps: 10000}, 1,
			10, 25, false,
		},
		"fifty":                 {&allocate.Requirements{MinNICMbps: 10000}, 50, 60, 280, false},
		"by properties":         {&allocate.Requirements{MinCPUs: 16}, 1, 0, 15, false},
		"properties exclude":    {&allocate.Requirements{MinCPUs: 64, MinNICMbps: 10000}, 1, 0, 25, true},
		"none":                  {rare, 1, 1000, 1020, true},
		"none, of many at once": {rare, 10, 1000, 1030, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(5000)
				if name != "by properties" && name != "properties exclude" {
					withoutProperties(fake)
				}
				client := sitetest.NewClient(fake)
				var wg sync.WaitGroup
				for range tc.allocations {
					wg.Go(func() {
						_, _, err := reserve(t.Context(), client, wants(tc.require, 0))
						if failure.Is(err, allocate.KindNoMatch) != tc.fails || err != nil && !tc.fails {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if got, all := inventories(fake), len(fake.Requests()); got > tc.inventories || all > tc.allowed {
					t.Errorf("%d requests, of them %d for inventories; want at most %d and %d", all, got, tc.allowed, tc.inventories)
				} else {
					t.Logf("%d requests, of them %d for inventories", all, got)
				}
			})
		})
	}
}

func TestRequest_plansReadFewInventories(t *testing.T) {
	t.Parallel()
	for want, rate := range map[int]int64{10: 10000, 100: 100000} {
		fake := ironictest.Fleet(1500)
		withoutProperties(fake)
		client := sitetest.NewClient(fake)
		for range 20 {
			doubts, err := allocate.Foresee(t.Context(), client.Site, *wants(&allocate.Requirements{MinNICMbps: rate}, 0), false)
			if err != nil || len(doubts) > 0 { // not all nodes are known
				t.Errorf("%v, %v", doubts, err)
			}
		}
		if got, all := inventories(fake), len(fake.Requests()); got != want || all > want+8 {
			t.Errorf("%d requests, of them %d for inventories, want %d", all, got, want)
		}
	}
}

func TestRequest_noMatchIsExplained(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(6)
		fake.Set("node-000", "properties", map[string]any{"memory_mb": 1024})
		fake.Set("node-001", "provision_state", "enroll")
		fake.Set("node-002", "provision_state", "clean wait")
		fake.SetInventory("node-003", map[string]any{}, nil)
		client := sitetest.NewClient(fake)
		_, exists, err := reserve(t.Context(), client, wants(&allocate.Requirements{MinMemoryMB: 2048, MinNICMbps: 40000}, 0))
		summary, detail := failure.Explain("allocate a node", err)
		for _, want := range []string{
			"0 of 6 nodes: 2 not available (1 clean wait, 1 enroll), 1 below min_memory_mb, 2 below min_nic_mbps, 1 without data " +
				"for min_nic_mbps",
			"Nodes of this class may become available soon (1 clean wait, 1 enroll)", "add depends_on with those metal_host resources",
			"set wait_for_capacity",
		} {
			if !strings.Contains(detail, want) {
				t.Errorf("%s: %s\nwant %s", summary, detail, want)
			}
		}
		if posts := ironictest.Count(fake, http.MethodPost, "/v1/allocations"); posts > 0 || exists {
			t.Errorf("%d allocations were made", posts)
		}
	})
}

func TestRequest_waitsForCapacity(t *testing.T) {
	t.Parallel()
	for name, require := range map[string]*allocate.Requirements{"what Ironic matches": nil, "requirements": {MinCPUs: 16}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				const waiting = 20
				fake := ironictest.Fleet(waiting)
				for _, node := range fake.Nodes() {
					fake.Set(node.UUID, "provision_state", "cleaning")
				}
				for i, node := range fake.Nodes() {
					time.AfterFunc(10*time.Minute+time.Duration(i)*30*time.Second, func() {
						fake.Set(node.UUID, "provision_state", "available")
					})
				}
				client := sitetest.NewClient(fake)
				start := time.Now()
				var wg sync.WaitGroup
				for range waiting {
					wg.Go(func() {
						if _, _, err := reserve(t.Context(), client, wants(require, time.Hour)); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				took := time.Since(start)
				if took > 25*time.Minute {
					t.Errorf("it took %s", took)
				}
				lists, posts := ironictest.Count(fake, http.MethodGet, "/v1/nodes"),
					ironictest.Count(fake, http.MethodPost, "/v1/allocations")
				if lists > 60 || posts > 3*waiting {
					t.Errorf("%d lists and %d tries in %s for %d allocations", lists, posts, took, waiting)
				}
				t.Logf("%d requests: %d lists, %d tries in %s", len(fake.Requests()), lists, posts, took)
			})
		})
	}
}

func TestRequest_waitEnds(t *testing.T) {
	t.Parallel()
	for name, require := range map[string]*allocate.Requirements{"what Ironic matches": nil, "requirements": {MinCPUs: 64}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(2)
				for _, node := range fake.Nodes() {
					fake.Set(node.UUID, "maintenance", require == nil)
				}
				client := sitetest.NewClient(fake)
				ends := func(ctx context.Context, wait, want time.Duration, says string) {
					t.Helper()
					start := time.Now()
					_, exists, err := reserve(ctx, client, wants(require, wait))
					if took := time.Since(start); exists || err == nil || !strings.Contains(err.Error(), says) || took < want ||
						took > want+2*ironictest.Poll {
						t.Errorf("exists: %t, %v, after %s; want %q after %s", exists, err, took, says, want)
					}
					if left := allocationsLeft(t, fake); left > 0 {
						t.Errorf("%d allocations are left", left)
					}
				}
				ends(t.Context(), 30*time.Minute, 30*time.Minute, "no node matches within 30m0s (wait_for_capacity): 0 of 2 nodes")
				stopped, stop := context.WithTimeout(t.Context(), 10*time.Minute)
				defer stop()
				ends(stopped, 30*time.Minute, 10*time.Minute, "context deadline exceeded")
			})
		})
	}
}

// A failed allocation that cannot be deleted exists: the caller must keep it in the state.
func TestRequest_failedAllocationThatStaysIsReported(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(1)
		fake.Set("node-000", "maintenance", true)
		fake.Reject = func(r *http.Request) *fakeironic.Rejection {
			if r.Method != http.MethodDelete {
				return nil
			}
			return ironictest.Fault(http.StatusForbidden, "not allowed")
		}
		_, exists, err := reserve(t.Context(), sitetest.NewClient(fake), wants(nil, 0))
		if left := allocationsLeft(t, fake); !exists || err == nil || left != 1 {
			t.Errorf("exists: %t, %v; Ironic has %d allocations", exists, err, left)
		}
	})
}

// While another creation counts on a node, a request has one candidate: of several, Ironic might choose that node.
func TestRequest_oneCandidateBesideAnotherCreation(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		client, first, second := sitetest.NewClient(ironictest.Fleet(5)), wants(&allocate.Requirements{MinCPUs: 16}, 0),
			wants(&allocate.Requirements{MinCPUs: 16}, 0)
		a, _, err := allocate.Allocate(t.Context(), client.Site, first)
		if err != nil {
			t.Fatal(err)
		}
		b, _, err := allocate.Allocate(t.Context(), client.Site, second)
		if err != nil || len(a.CandidateNodes) != 5 || len(b.CandidateNodes) != 1 || b.CandidateNodes[0] == a.CandidateNodes[0] {
			t.Errorf("%v; the candidates are %v and %v", err, a.CandidateNodes, b.CandidateNodes)
		}
	})
}

// The list of nodes may be older than a reservation of this run: it still shows the node as free.
func TestRequest_reservedNodeIsNoCandidate(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(3)
		client := sitetest.NewClient(fake)
		a, _, err := reserve(t.Context(), client, wants(&allocate.Requirements{MinCPUs: 16}, 0))
		if err != nil {
			t.Fatal(err)
		}
		lists := ironictest.Count(fake, http.MethodGet, "/v1/nodes")
		b, _, err := allocate.Allocate(t.Context(), client.Site, wants(&allocate.Requirements{MinCPUs: 16}, 0))
		if err != nil || len(b.CandidateNodes) != 2 || slices.Contains(b.CandidateNodes, a.NodeUUID) ||
			ironictest.Count(fake, http.MethodGet, "/v1/nodes") != lists {
			t.Errorf("%v; the candidates are %v, %s is reserved", err, b.CandidateNodes, a.NodeUUID)
		}
	})
}

// Another client reserves the node that the list has as free. The next try gets another node, and keeps the UUID and the mark.
func TestRequest_lostRaceIsRepeated(t *testing.T) {
	t.Parallel()
	for name, require := range map[string]*allocate.Requirements{"what Ironic matches": nil, "requirements": {MinCPUs: 16}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(2)
				client := sitetest.NewClient(fake)
				r := wants(require, 0)
				a, _, err := allocate.Allocate(t.Context(), client.Site, r)
				if err != nil {
					t.Fatal(err)
				}
				// What Ironic answers if another client was faster.
				failed := *a
				failed.State = ironic.AllocationError
				now, exists, err := allocate.Reserve(t.Context(), client.Site, r, &failed, time.Hour)
				if err != nil || !exists || now.UUID != a.UUID || now.NodeUUID == "" || fmt.Sprint(now.Extra) != fmt.Sprint(a.Extra) {
					t.Errorf("%+v, %t, %v; want %+v again", now, exists, err, a)
				}
				if left := allocationsLeft(t, fake); left != 1 {
					t.Errorf("Ironic has %d allocations", left)
				}
			})
		})
	}
}

func TestRequest_allocationOfKilledRunIsTakenOver(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before, after *allocate.Requirements
		want          bool
	}{
		"the same":             {&allocate.Requirements{MinCPUs: 16}, &allocate.Requirements{MinCPUs: 16}, true},
		"others that it meets": {&allocate.Requirements{MinCPUs: 16}, &allocate.Requirements{MinNICMbps: 1000}, true},
		"others":               {nil, &allocate.Requirements{MinCPUs: 64}, false},
		"an exclusion":         {&allocate.Requirements{MinCPUs: 16}, &allocate.Requirements{Exclude: []string{"node-000"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				killed := wants(tc.before, 0)
				killed.Name = "web-0"
				a, _, err := reserve(t.Context(), sitetest.NewClient(fake), killed)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				next := wants(tc.after, 0)
				next.Name = "web-0"
				wish := allocate.Wish{
					Name: decide.Known(next.Name), Class: decide.Known(next.ResourceClass),
					Require: decide.Value[*allocate.Requirements]{V: tc.after, Set: tc.after != nil},
				}
				plan, err := allocate.Look(t.Context(), sitetest.NewClient(fake).Site, wish, allocate.Seen{})
				if said := strings.Contains(says(plan.Notices), "Interrupted creation is continued"); err != nil || said != tc.want {
					t.Errorf("the plan says %q, %v; want it to announce that: %t", says(plan.Notices), err, tc.want)
				}
				tainted := sitetest.NewClient(fake).Site
				allocate.InState(tainted, a.UUID)
				if plan, err := allocate.Look(t.Context(), tainted, wish, allocate.Seen{}); err != nil || says(plan.Notices) != "" {
					t.Errorf("the plan that replaces a tainted allocation says %q, %v", says(plan.Notices), err)
				}
				found, by, err := allocate.Allocate(t.Context(), sitetest.NewClient(fake).Site, next)
				if taken := err == nil && by != nil && found.UUID == a.UUID && next.UUID == a.UUID; taken != tc.want {
					t.Errorf("%+v, %v, %v; want it taken over: %t", found, by, err, tc.want)
				}
			})
		})
	}
}
