package host_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// A plan that destroys hosts says of each what becomes of its node, by the value of on_destroy that was applied.
func TestDecide_destroyingSaysWhatBecomesOfTheNode(t *testing.T) {
	t.Parallel()
	const removes, stays = "Destroying removes the host from Ironic", "Destroying leaves the host in Ironic"
	for _, tt := range []struct {
		onDestroy        string
		byAgent          bool
		state            ironic.State
		foreign          bool
		removes, refused bool
		summary          string
	}{
		{"", false, "available", false, true, false, removes},
		{"delete", false, "active", false, true, false, removes}, // its deployment may be destroyed before
		{"forget", false, "active", false, false, false, stays},
		{"", false, "enroll", true, false, false, stays},
		{"", true, "available", false, true, false, removes},
		{"", true, "active", false, false, true, "Deployed host cannot be removed"},
		{"forget", true, "active", false, false, false, stays},
	} {
		plan := host.Decide(host.Wish{Label: "rack1-01", Ends: true, OnDestroy: tt.onDestroy, ByAgent: tt.byAgent},
			host.Seen{State: tt.state, Foreign: tt.foreign})
		if len(plan.Notices) != 1 {
			t.Errorf("%+v: notices %v", tt, plan.Notices)
			continue
		}
		n := plan.Notices[0]
		if plan.Has(host.DoRemove) != tt.removes || (n.Severity == decide.Refusal) != tt.refused || n.Summary != tt.summary ||
			!strings.Contains(n.Detail, "rack1-01") {
			t.Errorf("%+v: steps %v, %v", tt, plan.Steps, n)
		}
	}
}
