package machine_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// No apply repeats what an action or a command of metal has requested, so their messages ask for none.
func TestExplainAction_asksForNoApply(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare func(fake *fakeironic.Server)
		do      func(t *testing.T, m *machine.Machine) error
		want    string
	}{
		"a power change takes too long": {
			func(fake *fakeironic.Server) { fake.StepTime = time.Hour },
			func(t *testing.T, m *machine.Machine) error { return m.SetPower(t.Context(), true, time.Minute) }, "raise the time-out",
		},
		"a power change fails": {
			func(fake *fakeironic.Server) { fake.Fail = func(fakeironic.Node, string) string { return "no answer" } },
			func(t *testing.T, m *machine.Machine) error { return m.SetPower(t.Context(), true, time.Minute) }, "try again",
		},
		"another client has the machine": {
			func(*fakeironic.Server) {}, func(_ *testing.T, m *machine.Machine) error { return m.AsItIs() }, "metal show",
		},
		"the reservation is gone": {
			func(*fakeironic.Server) {}, func(_ *testing.T, m *machine.Machine) error {
				return machine.CheckReservation(m.Node(), "i1")
			}, "metal show",
		},
		"the node is locked": {
			func(*fakeironic.Server) {}, func(*testing.T, *machine.Machine) error {
				return &api.StatusError{Status: http.StatusConflict, Message: "Node U is locked by host H, please retry after the " +
					"current operation is completed."}
			}, "Try again",
		},
		"no conductor works": {
			func(fake *fakeironic.Server) { fake.Set("node-000", "provision_state", "cleaning") },
			func(t *testing.T, m *machine.Machine) error {
				return m.Reach(t.Context(), states.GoalAvailable, time.Hour)
			}, "then try again",
		},
		"the runbook is missing": {
			func(fake *fakeironic.Server) {
				fake.Reject = ironictest.Once(http.MethodPut, "/v1/nodes/",
					ironictest.Fault(http.StatusNotFound, "Runbook CUSTOM_X could not be found."))
			},
			func(t *testing.T, m *machine.Machine) error {
				return m.Reach(t.Context(), states.GoalAvailable, time.Hour)
			}, "Then try again",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				fake := ironictest.Fleet(1)
				fake.Set("node-000", "power_state", "power off")
				fake.Set("node-000", "provision_state", "manageable")
				tt.prepare(fake)
				m, err := sitetest.NewClient(fake).Machine(t.Context(), "node-000")
				if err != nil {
					t.Fatal(err)
				}
				_, detail := failure.ExplainAction("do it to node-000", m.Node(), tt.do(t, m), "")
				if !strings.Contains(detail, tt.want) {
					t.Errorf("%q does not say %q", detail, tt.want)
				}
				for _, other := range []string{"pply again", "terraform plan", "next apply", "this configuration"} {
					if strings.Contains(detail, other) {
						t.Errorf("%q says %q", detail, other)
					}
				}
			})
		})
	}
}
