package deploy

import (
	"fmt"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/instance"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/states"
)

// IsDeployed reports whether something is deployed on a node, or being deployed.
func IsDeployed(node *ironic.Node) bool { return states.IsOccupied(node) }

// Gone says that a deployment leaves the state, because its node does not run it any more, and why. reason follows the name of the node.
func Gone(node, reason string) decide.Notice {
	return decide.Warn(nil, "Deployment is gone", fmt.Sprintf("Node %s %s.", node, reason))
}

// WarnHealth warns of a deployed node with a fault or in maintenance.
func WarnHealth(node *ironic.Node) []decide.Notice {
	switch {
	case node.Fault != "":
		return []decide.Notice{decide.Warn(nil, "Node with a fault", fmt.Sprintf("Ironic reports %q for node %s%s", node.Fault, ironic.NodeLabel(node), afterColon(node.MaintenanceReason)))}
	case node.Maintenance:
		return []decide.Notice{decide.Warn(nil, "Node in maintenance", fmt.Sprintf("Node %s is in maintenance%s", ironic.NodeLabel(node), afterColon(node.MaintenanceReason)))}
	}
	return nil
}

// WarnRescued warns of a machine in rescue mode whose deployment has no rescue.
func WarnRescued(node *ironic.Node) []decide.Notice {
	if mode := instance.RescueOf(ironic.State(node.ProvisionState)); mode != instance.Rescued && mode != instance.RescueFailed {
		return nil
	}
	return []decide.Notice{decide.Warn(nil, "Machine is in rescue mode", fmt.Sprintf("Node %s is in state %q, and this resource has not recorded that it put it there. "+
		"A plan leaves it there unless the configuration sets rescue. To start what is deployed: baremetal node unrescue %s.", ironic.NodeLabel(node), node.ProvisionState, node.UUID))}
}
