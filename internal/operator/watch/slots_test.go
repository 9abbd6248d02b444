package watch_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/slots"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/selection"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// Ironic refuses one of the two lists of lock records. A wait in the other counts; without one, others may wait.
func TestSite_saysNoZeroOfWaitsThatTheUserMayNotSee(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		refused string // a list
		waits   int    // machines, by a record of the project
		known   bool
	}{
		"all may be listed":               {"", 0, true},
		"no chassis, nobody waits":        {"/chassis", 0, false},
		"no chassis, the project waits":   {"/chassis", 2, true},
		"no allocations, nobody waits":    {"/allocations", 0, false},
		"no allocations of those waiting": {"/allocations", 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				if tt.waits > 0 {
					word := map[string]any{
						"run": ironic.NewUUID(), "machines": tt.waits, "max": 1, "since": time.Now().UTC(),
						"renewed": time.Now().UTC(),
					}
					ironictest.AsOther(t, fake, http.MethodPost, "allocations", map[string]any{
						"resource_class": ironic.RecordClass,
						"extra": map[string]any{
							"about": "terraform-provider-metal: the limit", "holders": map[string]any{"h": 1}, "released": true,
							"waiting": []any{word},
						},
					})
				}
				fake.Reject = func(r *http.Request) *fakeironic.Rejection {
					if tt.refused != "" && strings.HasSuffix(r.URL.Path, tt.refused) {
						return ironictest.Fault(http.StatusForbidden, "Access was denied")
					}
					return nil
				}
				s, err := (&watch.Site{Client: clientOf(fake)}).List(t.Context(), selection.Selection{}.Follow())
				if err != nil {
					t.Fatal(err)
				}
				want := tt.waits
				if !tt.known {
					want = 0
				}
				if known := s.Slots.Waiting != nil; known != tt.known || s.Slots.Waiting[""].Machines != want {
					t.Errorf("known %t: %+v", known, s.Slots.Waiting)
				}
			})
		})
	}
}

// Two runs wait for the only slot: one for a minute with two machines, the other for half of it.
func TestSite_tellsWhoWaits(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(4)
		fake.StepTime = time.Hour
		fake.Set("node-000", "provision_state", "deploying")
		limit := throttle.Limit{Max: 1, Coordination: throttle.CoordinationIronic}
		ctx, stop := context.WithCancel(t.Context())
		begin := time.Now()
		var wg sync.WaitGroup
		wait := func(run *slots.Limiter, name string) {
			node := ironictest.NodeOf(t, fake, name)
			wg.Go(func() {
				err := run.Pass(ctx, &ironic.Node{UUID: node.UUID, Name: name, ProvisionState: "available"}, 0,
					func(context.Context, *ironic.Node) error { return nil })
				if ctx.Err() == nil {
					t.Errorf("%s has a slot: %v", name, err)
				}
			})
		}
		first := slots.NewLimiter(clientOf(fake), limit, ironic.NewUUID())
		wait(first, "node-001")
		wait(first, "node-002")
		<-time.After(30 * time.Second)
		wait(slots.NewLimiter(clientOf(fake), limit, ironic.NewUUID()), "node-003")
		<-time.After(30 * time.Second)
		site := &watch.Site{Client: clientOf(fake), Limit: limit}
		s, err := site.List(t.Context(), selection.Selection{}.Follow())
		if err != nil {
			t.Fatal(err)
		}
		if w := s.Slots.Waiting[""]; w.Machines != 3 || w.Since.Sub(begin).Abs() > 2*time.Second {
			t.Errorf("%d machines wait, since %s", w.Machines, w.Since.Sub(begin))
		}
		stop()
		wg.Wait()
		if s, err = site.List(t.Context(), selection.Selection{}.Follow()); err != nil || s.Slots.Waiting == nil ||
			len(s.Slots.Waiting) > 0 {
			t.Errorf("afterwards: %+v, %v", s.Slots, err)
		}
	})
}
