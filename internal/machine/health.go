package machine

import (
	"fmt"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
)

// Unwell reports whether the health of a node, as its BMC reports it, is known and not good. An Ironic before API 1.109, and a driver
// other than Redfish, tell none.
func Unwell(health string) bool { return health != "" && health != "OK" }

// WarnHealth warns of a node with a fault or in maintenance.
func WarnHealth(node *ironic.Node) []decide.Notice {
	why := "."
	if node.MaintenanceReason != "" {
		why = ": " + failure.Ended(node.MaintenanceReason)
	}
	switch {
	case node.Fault != "":
		return []decide.Notice{decide.Warn(nil, "Node with a fault", fmt.Sprintf("Ironic reports %q for node %s%s", node.Fault,
			ironic.NodeLabel(node), why))}
	case node.Maintenance:
		return []decide.Notice{decide.Warn(nil, "Node in maintenance", fmt.Sprintf("Node %s is in maintenance%s", ironic.NodeLabel(node),
			why))}
	}
	return nil
}
