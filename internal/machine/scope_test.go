package machine_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// groups is a site of hosts in a state, by turns of the group (or shard) "a" and "b".
func groups(hosts int, field, state string) *fakeironic.Server {
	fake := manageableFleet(hosts, 10*time.Minute)
	for i, node := range fake.Nodes() {
		fake.Set(node.UUID, field, string(rune('a'+i%2)))
		fake.Set(node.UUID, "provision_state", state)
	}
	return fake
}

// mostIn watches a site until stopped is closed, and returns how many hosts of each group had an operation in progress at once.
func mostIn(fake *fakeironic.Server, field string, stopped <-chan struct{}) map[string]int {
	most := map[string]int{}
	for {
		now := map[string]int{}
		for _, node := range fake.Nodes() {
			if node.ProvisionState == "cleaning" {
				now[fmt.Sprint(node.Raw[field])]++
			}
		}
		for group, n := range now {
			most[group] = max(most[group], n)
		}
		select {
		case <-stopped:
			return most
		case <-time.After(time.Minute):
		}
	}
}

// TestScope_limitOfEachGroup walks hosts of two groups. Some hosts must be verified first. Up to three hosts are polled singly,
// more of them in a list.
func TestScope_limitOfEachGroup(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		field string
		scope throttle.Scope
	}{
		{"conductor_group", throttle.ScopeConductorGroup},
		{"shard", throttle.ScopeShard},
	} {
		for _, state := range []string{"manageable", "enroll"} {
			for _, together := range []int{3, 12} {
				t.Run(fmt.Sprintf("%s, %d hosts from %s", tc.field, together, state), func(t *testing.T) {
					t.Parallel()
					ironictest.InVirtualTime(t, func(t *testing.T) {
						fake := groups(together, tc.field, state)
						limit := sitetest.UpTo(1)
						limit.Scope = tc.scope
						stop, most := make(chan struct{}), map[string]int{}
						var watching sync.WaitGroup
						watching.Go(func() { most = mostIn(fake, tc.field, stop) })
						took := cleanAll(t, fake, sitetest.Run(fake, limit))
						close(stop)
						watching.Wait()
						if most["a"] != 1 || most["b"] != 1 {
							t.Errorf("%v hosts of each group were at work at once, and its limit is 1", most)
						}
						if rounds := time.Duration(together/2+together%2) * 10 * time.Minute; took > rounds+12*time.Minute {
							t.Errorf("took %s: the groups waited for each other", took)
						}
					})
				})
			}
		}
	}
}
