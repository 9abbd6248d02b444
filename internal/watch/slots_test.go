package watch_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/selection"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/slots"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/watch"
)

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
				err := run.Pass(ctx, &ironic.Node{UUID: node.UUID, Name: name, ProvisionState: "available"}, 0, func(context.Context, *ironic.Node) error { return nil })
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
		if s, err = site.List(t.Context(), selection.Selection{}.Follow()); err != nil || s.Slots.Waiting == nil || len(s.Slots.Waiting) > 0 {
			t.Errorf("afterwards: %+v, %v", s.Slots, err)
		}
	})
}
