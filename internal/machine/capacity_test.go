package machine_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/slots"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

func TestCapacity_countsLikeTheLimit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		limit throttle.Limit
		host  map[string]any
		want  throttle.Usage
	}{
		"at rest":  {sitetest.UpTo(2), map[string]any{"provision_state": "available"}, throttle.Usage{Max: 2}},
		"no limit": {sitetest.UpTo(0), map[string]any{"provision_state": "deploying"}, throttle.Usage{Busy: 1, Others: 1}},
		"deploying": {
			sitetest.UpTo(2),
			map[string]any{"provision_state": "deploying"},
			throttle.Usage{Max: 2, Busy: 1, Others: 1},
		},
		"waits for its agent": {
			sitetest.UpTo(2),
			map[string]any{"provision_state": "wait call-back"},
			throttle.Usage{Max: 2, Busy: 1, Others: 1},
		},
		"is verified": {sitetest.UpTo(2), map[string]any{"provision_state": "verifying"}, throttle.Usage{Max: 2}},
		"has failed":  {sitetest.UpTo(2), map[string]any{"provision_state": "deploy failed"}, throttle.Usage{Max: 2}},
		"virtual media": {sitetest.UpTo(2), map[string]any{
			"provision_state": "cleaning",
			"boot_interface":  "redfish-virtual-media",
		}, throttle.Usage{Max: 2, Exempt: 1}},
		"virtual media, at rest": {
			sitetest.UpTo(2),
			map[string]any{"provision_state": "active", "boot_interface": "redfish-virtual-media"},
			throttle.Usage{Max: 2},
		},
		"hangs": {sitetest.UpTo(2), map[string]any{
			"provision_state":      "clean wait",
			"provision_updated_at": "1999-12-31T00:00:00Z",
		}, throttle.Usage{Max: 2, Stuck: 1}},
		"a fault": {sitetest.UpTo(2), map[string]any{
			"provision_state": "clean wait", "maintenance": true,
			"fault": "power failure",
		}, throttle.Usage{Max: 2}},
		"in maintenance by hand": {
			sitetest.UpTo(2),
			map[string]any{"provision_state": "clean wait", "maintenance": true},
			throttle.Usage{Max: 2, Busy: 1, Others: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				fake.Set("node-000", "provision_updated_at", time.Now().UTC().Format(time.RFC3339))
				for _, field := range slices.Sorted(maps.Keys(tc.host)) { // a state sets its time, too
					fake.Set("node-000", field, tc.host[field])
				}
				tc.limit.Exempt = []string{"*virtual-media"}
				if got := capacity(t, sitetest.Run(fake, tc.limit)).Usage; got != tc.want {
					t.Errorf("counted %+v, want %+v", got, tc.want)
				}
			})
		})
	}
}

// capacity counts the whole site.
func capacity(t *testing.T, client *sitetest.Client) slots.Capacity {
	t.Helper()
	all, err := client.Ironic.ListNodes(t.Context(), ironic.NodeFilter{})
	if err != nil {
		t.Fatal(err)
	}
	return client.CapacityOf(all)
}

func TestCapacity_ownHosts(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := manageableFleet(3, time.Hour)
		hosts := fake.Nodes()
		fake.Set(hosts[2].UUID, "provision_state", "deploying")
		fake.Set(hosts[2].UUID, "provision_updated_at", time.Now().UTC().Format(time.RFC3339))
		client := sitetest.Run(fake, sitetest.UpTo(5))
		ctx, leave := context.WithTimeout(t.Context(), time.Minute)
		defer leave()
		for _, host := range hosts[:2] {
			go func() { _, _ = client.Reach(ctx, host.UUID, states.GoalAvailable, time.Hour) }() // stays in progress
		}
		<-ctx.Done()
		if got := capacity(t, client); got.Busy != 3 || got.Own != 2 || got.Others != 1 {
			t.Errorf("counted %+v, want 2 own and 1 of others", got)
		}
	})
}

func TestCapacity_byClass(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	fake.AddFleet(7, "gold")
	fake.AddFleet(1, "")
	for i, host := range []map[string]any{
		{},
		{"instance_uuid": ironic.NewUUID()}, // reserved
		{"instance_uuid": ironic.NewUUID(), "provision_state": "active"},
		{"instance_uuid": ironic.NewUUID(), "provision_state": "deploy failed"},
		{"instance_uuid": ironic.NewUUID(), "provision_state": "active", "maintenance": true},
		{"provision_state": "manageable"},
		{"provision_state": "active"}, // adopted
	} {
		for field, value := range host {
			fake.Set(fake.Nodes()[i].UUID, field, value)
		}
	}
	want := map[string]slots.ClassCapacity{
		"gold": {Total: 7, Available: 1, Allocated: 3, Maintenance: 1, Failed: 1},
		"":     {Total: 1, Available: 1},
	}
	if got := capacity(t, sitetest.Run(fake, sitetest.UpTo(1))).Classes; !maps.Equal(got, want) {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}
