package allocate_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// wantReserved checks how many nodes of the fake are reserved, each by an allocation.
func wantReserved(t *testing.T, fake *fakeironic.Server, want int) {
	t.Helper()
	list, _ := ironictest.AsOther(t, fake, "GET", "allocations", nil)["allocations"].([]any)
	nodes := 0
	for _, node := range fake.Nodes() {
		if node.InstanceUUID != "" {
			nodes++
		}
	}
	if nodes != want || len(list) != want {
		t.Errorf("%d nodes are reserved, and there are %d allocations, want %d", nodes, len(list), want)
	}
}

func TestGroup_interruptionReleasesEverything(t *testing.T) {
	t.Parallel()
	for _, at := range []int32{1, 2, 4} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(6)
				ctx, interrupt := context.WithCancel(t.Context())
				var posts atomic.Int32
				client := sitetest.NewClient(fake, func(cfg *machine.Config) {
					cfg.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
						if r.Method == http.MethodPost && r.URL.Path == "/v1/allocations" && posts.Add(1) == at {
							interrupt()
						}
						return fake.RoundTrip(r)
					})
				})
				if _, err := allocate.ReserveGroup(ctx, client.Site, sitetest.GroupOf(4), time.Hour); !api.IsInterrupted(err) {
					t.Errorf("the error is %v", err)
				}
				wantReserved(t, fake, 0)
			})
		})
	}
}

func TestGroup_failureReleasesEverything(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(6)
		client := sitetest.NewClient(fake, func(cfg *machine.Config) {
			cfg.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPost && r.URL.Path == "/v1/allocations" {
					body, err := r.GetBody()
					if err != nil {
						return nil, err
					}
					text := make([]byte, 1<<10)
					n, _ := body.Read(text)
					if strings.Contains(string(text[:n]), `"g-2"`) {
						r.URL.Path = "/v1/allocations/" // Ironic refuses it
						r.Method = http.MethodPut
					}
				}
				return fake.RoundTrip(r)
			})
		})
		g := sitetest.GroupOf(4)
		if _, err := allocate.ReserveGroup(t.Context(), client.Site, g, time.Hour); err == nil {
			t.Error("the group has its nodes")
		}
		wantReserved(t, fake, 0)
		if slices.ContainsFunc(g.Members, func(m *allocate.GroupMember) bool { return m.ID != "" || m.NodeID != "" }) {
			t.Errorf("members are left")
		}
	})
}

// A run is killed between the marks of two members. What it has finished is taken over, too, also hours later.
func TestGroup_takesOverHalfFinishedGroup(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(6)
		killed := sitetest.GroupOf(4)
		if _, err := allocate.ReserveGroup(t.Context(), sitetest.NewClient(fake).Site, killed, time.Hour); err != nil {
			t.Fatal(err)
		}
		list, _ := ironictest.AsOther(t, fake, "GET", "allocations", nil)["allocations"].([]any)
		first, _ := list[0].(map[string]any)
		runs, _ := first["extra"].(map[string]any)["terraform_metal_creation"].(map[string]any)
		for id, mark := range runs {
			delete(mark.(map[string]any),
				"done")
			ironictest.AsOther(t, fake, "PATCH", "allocations/"+first["uuid"].(string), []any{
				map[string]any{"op": "replace", "path": "/extra/terraform_metal_creation/" + id, "value": mark},
			})
		}
		<-time.After(23 * time.Hour)
		g := sitetest.GroupOf(3) // the configuration has changed meanwhile
		wish := allocate.GroupWish{Name: decide.Known(g.Name), Size: decide.Known(3), Class: decide.Known(g.ResourceClass)}
		plan, err := allocate.LookGroup(t.Context(), sitetest.NewClient(fake).Site, wish, allocate.GroupSeen{})
		if err != nil || says(plan.Notices) != "Interrupted creation is continued" ||
			!strings.Contains(plan.Notices[0].Detail, "members of the group "+g.Name) {
			t.Errorf("the plan says %v, %v", plan.Notices, err)
		}
		tainted := sitetest.NewClient(fake).Site
		_, err = allocate.RefreshGroup(t.Context(), tainted, killed)
		plan, errPlan := allocate.LookGroup(t.Context(), tainted, wish, allocate.GroupSeen{})
		if err != nil || errPlan != nil || says(plan.Notices) != "" {
			t.Errorf("the plan that replaces a tainted group says %v, %v, %v", plan.Notices, err, errPlan)
		}
		by, err := allocate.ReserveGroup(t.Context(), sitetest.NewClient(fake).Site, g, time.Hour)
		if err != nil || by == nil {
			t.Fatalf("taken over from %v: %v", by, err)
		}
		for i, m := range g.Members {
			if m.ID != killed.Members[i].ID || m.NodeID != killed.Members[i].NodeID {
				t.Errorf("member %d was %+v and is %+v", i, killed.Members[i], m)
			}
		}
		wantReserved(t, fake, 3)
	})
}

// Two runs want ten of 15 nodes at the same time.
func TestGroup_oneOfTwoGetsItsNodes(t *testing.T) {
	t.Parallel()
	for range 5 {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := ironictest.Fleet(15)
			errs := make(chan error, 2)
			for _, name := range []string{"a", "b"} {
				g := sitetest.GroupOf(10)
				for i, m := range g.Members {
					m.Name = allocate.MemberName(name, i)
				}
				g.Name = name
				client := sitetest.NewClient(fake)
				go func() {
					_, err := allocate.ReserveGroup(t.Context(), client.Site, g, time.Hour)
					errs <- err
				}()
			}
			first, second := <-errs, <-errs
			if (first == nil) == (second == nil) {
				t.Errorf("the groups end with %v and %v", first, second)
			}
			wantReserved(t, fake, 10)
		})
	}
}

// Only what a killed run has created for this group is a leftover of it: neither an allocation of its own, nor one that was renamed, and so
// is in the state of another group.
func TestGroup_leftovers(t *testing.T) {
	t.Parallel()
	const run, began = "6f1c2a8e-3c53-4c0e-9a53-0d8a3f6a7b10", "1999-12-31T23:00:00Z"
	for name, tt := range map[string]struct {
		group allocate.Group
		want  []string
	}{
		"grew": {
			allocate.Group{Name: "a", Members: []*allocate.GroupMember{{Name: "a-0", ID: run}}},
			[]string{"a-1", "a-2"},
		},
		"was renamed": {
			allocate.Group{Name: "c", FormerName: "a", Members: []*allocate.GroupMember{{Name: "c-0"}}},
			[]string{"a-0", "a-1", "a-2"},
		},
		"is named in state":   {allocate.Group{Name: "c", Leftovers: []string{"a-2", "single"}}, []string{"a-2"}},
		"has no common name":  {allocate.Group{Name: "", Leftovers: []string{"single"}}, nil},
		"has a like name":     {allocate.Group{Name: "a-1"}, nil},
		"has another's names": {allocate.Group{Name: "b"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(6)
				for name, group := range map[string]string{"a-0": "a", "a-1": "a", "a-2": "a", "b-0": "a", "a-x": "a", "single": ""} {
					mark := map[string]any{"since": began}
					if group != "" {
						mark["group"] = group
					}
					ironictest.AsOther(t, fake, http.MethodPost, "allocations", map[string]any{
						"name": name, "resource_class": "baremetal",
						"extra": map[string]any{string(notes.MarkCreation): map[string]any{run: mark}},
					})
				}
				client := sitetest.NewClient(fake)
				found, err := allocate.FindLeftovers(t.Context(), client.Site, &tt.group)
				if slices.Sort(found); err != nil || !slices.Equal(found, tt.want) {
					t.Errorf("the leftovers are %v (%v), want %v", found, err, tt.want)
				}
				tt.group.Leftovers = append(tt.group.Leftovers, tt.want...)
				if err := allocate.ReleaseLeftovers(t.Context(), client.Site, &tt.group); err != nil {
					t.Error(err)
				}
				wantReserved(t, fake, 6-len(tt.want))
			})
		})
	}
}
