package slots_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/slots"
)

// A machine with a fault takes no slot, unless a conductor works on it: a fault that comes and goes must not double the load.
func TestMachineOf_withAFault(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		node ironic.Node
		want bool
	}{
		"at work":                   {ironic.Node{ProvisionState: "cleaning", Reservation: "c1"}, true},
		"fault, at work":            {ironic.Node{ProvisionState: "cleaning", Reservation: "c1", Maintenance: true, Fault: "power"}, true},
		"fault, waits for an agent": {ironic.Node{ProvisionState: "clean wait", Maintenance: true, Fault: "power failure"}, false},
		"maintenance only":          {ironic.Node{ProvisionState: "clean wait", Maintenance: true}, true},
	} {
		if got := slots.MachineOf(&tt.node).Busy; got != tt.want {
			t.Errorf("%s: busy %t, want %t", name, got, tt.want)
		}
	}
}
