package doctor_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/doctor"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// The machines that take a slot are those of the limit: neither stuck ones nor exempt ones, nor those with a fault.
func TestDoctor_slots(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		s := newSite()
		s.ironic.AddFleet(3, "baremetal")
		for i, set := range []map[string]any{
			{"provision_state": "cleaning", "reservation": "c1", "conductor_group": "rack1"},
			{
				"provision_state": "cleaning", "reservation": "c1", "conductor_group": "rack1",
				"provision_updated_at": time.Now().UTC().Add(-2 * time.Hour).Format(time.RFC3339),
			},
			{"provision_state": "deploying", "reservation": "c1", "boot_interface": "fake-virtual-media"},
			{"provision_state": "deploying", "maintenance": true, "fault": "power failure"},
			{"target_power_state": "power on", "conductor_group": "rack1"},
		} {
			node := s.ironic.Nodes()[i]
			for _, field := range slices.Sorted(maps.Keys(set)) {
				s.ironic.Set(node.UUID, field, set[field])
			}
		}
		s.options.Limit = throttle.Limit{Max: 2, StuckAfter: 45 * time.Minute, Exempt: []string{"*-virtual-media"}}
		want(t, s.run(t), "provisioning limit", doctor.OK, "2 machines have an operation in progress that takes a slot: cleaning 1, "+
			"power on 1. The limit is 2, so that no slot is free.",
			" 1 machine is stuck: in one state for over 45m. Others may take the slots. 1 exempt machine needs none.")
		s.options.Limit.Scope = throttle.ScopeConductorGroup
		want(t, s.run(t), "provisioning limit", doctor.OK, "The limit is 2 for each conductor group.",
			`no slot is free in conductor group "rack1"`)
	})
}
