package operate_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// A technician needs the light in every state of a machine, and while the site is frozen.
func TestIndicate_inEveryStateAndDuringAFreeze(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, blink := drive(t), operate.Indicate(machine.IndicatorChoice{}, ironic.IndicatorBlinking)
		freeze := throttle.Freeze{Reason: "night", By: "eve@desk", Since: time.Now()}
		if _, err := sitetest.NewClient(fake).Freezes().Set(t.Context(), freeze, true); err != nil {
			t.Fatal(err)
		}
		for _, state := range []string{"enroll", "available", "active", "clean wait", "clean failed", "rescue"} {
			fake.Set("node-000", "provision_state", state)
			began := time.Now()
			got := do(t.Context(), t, client(fake).Site, blink, "node-000")
			if got.Outcome != operate.Done || got.Plan.Harm != operate.Harmless || time.Since(began) > time.Minute {
				t.Errorf("%s: %s after %s: %v", state, got.Outcome, time.Since(began), got.Err)
			}
		}
	})
}

func TestIndicate_waitsForALock(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake, refusals := drive(t), 8
		fake.Reject = func(r *http.Request) *fakeironic.Rejection {
			if r.Method != http.MethodPut || refusals == 0 {
				return nil
			}
			refusals--
			return ironictest.Fault(http.StatusConflict, "Node node-000 is locked by host c1, please retry after the current operation is "+
				"completed.")
		}
		on := operate.Indicate(machine.IndicatorChoice{Component: "chassis"}, ironic.IndicatorOn)
		if got := do(t.Context(), t, client(fake).Site, on, "node-000"); got.Outcome != operate.Done || refusals > 0 {
			t.Errorf("%s with %d refusals to come: %v", got.Outcome, refusals, got.Err)
		}
	})
}
