package fakeironic_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
)

func TestPowerChangesTakeOneStepAndAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, &fakeironic.Server{StepTime: time.Minute})
		a.node("n1", nil)
		path := "/v1/nodes/n1/states/power"
		for _, tt := range []struct {
			target, result string
			cycles         int
		}{
			{"power on", "power on", 1},
			{"power on", "power on", 1},
			{"rebooting", "power on", 2},
			{"soft rebooting", "power on", 3},
			{"soft power off", "power off", 3},
			{"power off", "power off", 3},
		} {
			a.must(http.StatusAccepted, http.MethodPut, path, map[string]any{"target": tt.target})
			if n, _ := a.fake.Node("n1"); n.TargetPowerState != tt.result || n.Reservation == "" {
				t.Errorf("%s: target %q, reservation %q; want %q, some", tt.target, n.TargetPowerState, n.Reservation, tt.result)
			}
			time.Sleep(time.Minute)
			if n, _ := a.fake.Node("n1"); n.PowerState != tt.result || n.TargetPowerState != "" || a.fake.PowerCycles("n1") != tt.cycles {
				t.Errorf("%s: %q, target %q, %d cycles; want %q, none, %d", tt.target, n.PowerState, n.TargetPowerState, a.fake.PowerCycles("n1"), tt.result, tt.cycles)
			}
		}
	})
}

func TestPowerRefusals(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := a.node("n1", nil)
	for _, tt := range []struct {
		body map[string]any
		text string
	}{
		{map[string]any{}, "Missing mandatory parameter: target"},
		{map[string]any{"target": "on"}, `The requested action "on" can not be performed on node "` + uuid + `" while it is in state "None".`},
		{map[string]any{"target": "power on", "timeout": 0}, "timeout has to be positive integer"},
	} {
		a.refused(http.StatusBadRequest, tt.text, http.MethodPut, "/v1/nodes/n1/states/power", tt.body)
	}
	a.fake.Set(uuid, "provision_state", "cleaning")
	a.refused(http.StatusBadRequest, `in state "cleaning"`, http.MethodPut, "/v1/nodes/n1/states/power", map[string]any{"target": "power on"})
}

func TestFailedPowerChangeLeavesAnError(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
		return "Failed to change power state to '" + verb + "': no answer"
	}})
	a.node("n1", nil)
	a.must(http.StatusAccepted, http.MethodPut, "/v1/nodes/n1/states/power", map[string]any{"target": "power on"})
	if n, _ := a.fake.Node("n1"); n.PowerState != "" || n.TargetPowerState != "" || n.LastError != "Failed to change power state to 'power on': no answer" {
		t.Errorf("power %q, target %q, last_error %q", n.PowerState, n.TargetPowerState, n.LastError)
	}
}
