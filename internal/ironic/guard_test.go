package ironic_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// onlooker is a guard that lets everything pass, and writes down of what nodes it has seen driver_info.
type onlooker struct {
	mu   sync.Mutex
	seen map[ironic.Verb]bool
}

func (o *onlooker) Ready(_ context.Context, node *ironic.Node, verb ironic.Verb) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen[verb] = node.DriverInfo["server_hardware_uri"] == "/rest/server-hardware/1"
	return nil
}

func (o *onlooker) Still(ctx context.Context, node *ironic.Node, verb ironic.Verb) error {
	return o.Ready(ctx, node, verb)
}

// A guard tells by driver_info whose a machine is. Waiting works with short lists, which have none.
func TestAGuardSeesDriverInfoWithoutARequestOfItsOwn(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(1)
		fake.StepTime = 30 * time.Minute
		fake.Set("node-000", "provision_state", "enroll")
		fake.Set("node-000", "driver_info", map[string]any{"server_hardware_uri": "/rest/server-hardware/1"})
		guard := &onlooker{seen: map[ironic.Verb]bool{}}
		client := newClient(fake)
		client.SetGuard(guard)
		id := nodeOf(t, fake, "node-000").UUID
		if _, err := client.Reach(t.Context(), id, ironic.GoalAvailable, 5*time.Hour); err != nil {
			t.Fatal(err)
		}
		if _, err := client.SetPower(t.Context(), id, true, time.Hour); err != nil {
			t.Fatal(err)
		}
		for _, verb := range []ironic.Verb{nodes.TargetProvide, ""} {
			if !guard.seen[verb] {
				t.Errorf("before %q it did not: %v", verb, guard.seen)
			}
		}
	})
}
