package machine_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

func TestParked_states(t *testing.T) {
	t.Parallel()
	for state, want := range map[ironic.State]bool{
		"enroll": true, "manageable": true, "available": true, "clean failed": true, "inspect failed": true, "adopt failed": true,
		"active": false, "deploy failed": false, "error": false, "rescue": false, "rescue failed": false, "service failed": false,
		"deploying": false, "wait call-back": false, "deleting": false, "cleaning": false, "clean wait": false, "inspecting": false,
		"inspect wait": false, "verifying": false, "rebuild": false, "clean hold": false, "a state of a newer Ironic": false,
	} {
		if got := states.Parked(state); got != want {
			t.Errorf("Parked(%q) = %t, want %t", state, got, want)
		}
	}
}
