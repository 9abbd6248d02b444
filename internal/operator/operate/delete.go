package operate

import (
	"context"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

// Delete returns the operation that deletes the nodes of machines. dead: also of machines that Ironic calls deployed or reserved, and whose
// nodes are in maintenance, as Ironic asks. pool removes temporary server profiles; nil: there is no appliance.
func Delete(pool *sharing.Pool, dead bool) Operation {
	return Operation{
		Command: "delete", Instead: "node delete", Doing: "delete", Timeout: RecordTimeout, Worst: Cuts,
		Decide: func(node *ironic.Node) Plan { return decideDelete(node, dead) },
		Do: func(ctx context.Context, m *machine.Machine, timeout time.Duration) error {
			if pool != nil && !isUsed(m.Node()) {
				if err := pool.Vacate(ctx, m.Node().UUID, timeout); err != nil {
					return err
				}
			}
			return m.UnlockedWithin(ctx, timeout, func() error { return m.Site().Ironic.DeleteNode(ctx, m.Node().UUID) })
		},
	}
}

func decideDelete(node *ironic.Node, dead bool) Plan {
	name := ironic.NodeArgument(node)
	plan := Plan{Harm: Cuts, Does: "deletes its node, with its ports and notes; its disks keep their data"}
	switch used := isUsed(node); {
	case node.Protected:
		return Plan{Refused: "it is protected in Ironic. " + failure.AdviseProtected}
	case used && !dead && !states.IsOccupied(node):
		plan.Refused = "it is reserved, and nothing is deployed on it yet. First run: " + releaseCommand(node)
	case used && !dead:
		plan.Refused = "it is in use, and what runs on it would go on without a node. Undeploy it first: metal undeploy --release " + name +
			". If the machine is dead and disconnected, use --dead"
	case used && !node.Maintenance:
		plan.Refused = "Ironic deletes the node of a machine in use only in maintenance. Run: metal maintenance on --reason dead " + name
	case used:
		plan.Does = "deletes its node, although Ironic calls it " + node.ProvisionState + ": what runs on it goes on, and its disks keep " +
			"their data"
	case !node.Maintenance && busyWith(node) != "":
		plan.Refused = busyWith(node)
	case !node.Maintenance && !states.Deletable(node):
		plan.Refused = "Ironic deletes no node in state " + node.ProvisionState + ". Make it manageable first: metal manage " + name +
			". If the machine is dead, put it into maintenance first: metal maintenance on --reason dead " + name
	}
	if plan.Refused != "" {
		plan.Harm, plan.Does = Harmless, ""
	}
	return plan
}
