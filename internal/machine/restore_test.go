package machine_test

import (
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// A machine of a restored record returns to the pool only if it was there and is off.
func TestCheckReturn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		was    nodes.ProvisionState
		power  string
		always bool // it is never switched off
		may    bool
	}{
		"it was free and is off":               {nodes.Available, "power off", false, true},
		"it was free, and its power is hidden": {nodes.Available, "", false, true},
		"it is on":                             {nodes.Available, "power on", false, false},
		"it is always on":                      {nodes.Available, "power on", true, true},
		"something was deployed":               {nodes.Active, "power off", false, false},
		"it was being deployed":                {nodes.DeployWait, "power off", false, false},
	} {
		node := &ironic.Node{
			PowerState: tt.power, DisablePowerOff: tt.always,
			Extra: map[string]any{notes.KeyRestoring: map[string]any{"state": string(tt.was)}},
		}
		if err := machine.CheckReturn(node); (err == nil) != tt.may {
			t.Errorf("%s: %v", name, err)
		}
	}
}
