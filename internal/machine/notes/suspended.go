package notes

import (
	"cmp"
	"fmt"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// KeyAllocation is the key of the note of the allocation that Ironic deletes with the instance. It is set before the node is undeployed,
// until the allocation exists again (reference/ironic.md#undeploying-deletes-the-allocation).
const KeyAllocation = "terraform_metal_allocation"

// SuspendedAllocation returns the allocation that must be created again after the node is undeployed; nil if there is none. Once the node
// runs something without a reservation, the note does not count: another client has deployed the node since.
func SuspendedAllocation(n *ironic.Node) *ironic.AllocationSpec {
	spec := Read[ironic.AllocationSpec](n.Extra, KeyAllocation)
	if spec == nil || spec.UUID == "" || states.RunsUnreserved(n) {
		return nil
	}
	spec.CandidateNodes = []string{n.UUID} // another client may have written the note
	delete(spec.Extra, string(MarkCreation))
	return spec
}

func saySuspended(n *ironic.Node, _ time.Time) (w Words) {
	if spec := SuspendedAllocation(n); spec != nil {
		w.Told = []Note{{Text: fmt.Sprintf("an undeployment is to create allocation %s (%s) again", spec.Name, spec.UUID)}}
		name := cmp.Or(spec.Name, spec.UUID)
		w.Left = &Left{Text: fmt.Sprintf("allocation %s, which Ironic has deleted with the instance, was not created again", name)}
		if n.InstanceUUID == "" && !states.InProgress(ironic.State(n.ProvisionState)) {
			w.Urgency, w.Advice = Begun, fmt.Sprintf("An undeployment has ended, and allocation %s was not created again. The next apply "+
				"does that, or run: metal undeploy %s. To give the allocation up, add --release.", name, ironic.NodeArgument(n))
		}
	}
	return w
}
