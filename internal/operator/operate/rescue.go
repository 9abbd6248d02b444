package operate

import (
	"context"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// RescueTimeout is how long a machine may take by default to boot the rescue system, or what is deployed.
const RescueTimeout = time.Hour

// Rescue returns the operation that boots the rescue system of deployed machines, with a password for its user rescue.
func Rescue(password string) Operation {
	return Operation{
		Command: "rescue", Instead: "node rescue", Doing: "rescue", Timeout: RescueTimeout, Since: api.VersionRescue,
		Feature: "rescue mode", Worst: Cuts,
		Decide: decideRescue,
		Do: func(ctx context.Context, m *machine.Machine, timeout time.Duration) error {
			return deploy.EnterRescue(ctx, m, m.Node().InstanceUUID, password, timeout)
		},
		Note: func(*ironic.Node) string {
			return "log in as the user rescue, with the password: ssh rescue@<address in the network of the rescue system>"
		},
	}
}

func decideRescue(node *ironic.Node) Plan {
	if why := notRescuable(node, states.GoalRescued); why != "" {
		return Plan{Refused: why}
	}
	switch {
	case !deploy.CanRescue(node):
		return Plan{Refused: "its rescue interface has no rescue mode. Set hardware_interfaces = { rescue = \"agent\" } on its " +
			"metal_host, and rescue_kernel and rescue_ramdisk in its driver_info"}
	case deploy.RescueOf(ironic.State(node.ProvisionState)) == deploy.Rescued:
		return Plan{Harm: Cuts, Does: "cuts its power and boots the rescue system again, with the new password"}
	}
	return Plan{Harm: Cuts, Does: "cuts its power and boots the rescue system; its disks keep their data"}
}

// Unrescue returns the operation that ends the rescue system of machines and starts what is deployed on them.
func Unrescue() Operation {
	return Operation{
		Command: "unrescue", Instead: "node unrescue", Doing: "unrescue", Timeout: RescueTimeout, Since: api.VersionRescue,
		Feature: "rescue mode", Worst: Cuts,
		Decide: decideUnrescue,
		Do: func(ctx context.Context, m *machine.Machine, timeout time.Duration) error {
			return deploy.LeaveRescue(ctx, m, m.Node().InstanceUUID, timeout)
		},
	}
}

func decideUnrescue(node *ironic.Node) Plan {
	if why := notRescuable(node, states.GoalUnrescued); why != "" {
		return Plan{Refused: why}
	}
	if deploy.RescueOf(ironic.State(node.ProvisionState)) == deploy.NotRescued {
		return Plan{Nothing: true, Does: "does nothing, because it is not in rescue mode"}
	}
	return Plan{Harm: Cuts, Does: "cuts its power and starts what is deployed"}
}

// notRescuable returns why a machine can neither enter nor leave rescue mode; "" if it can.
func notRescuable(node *ironic.Node, goal states.Goal) string {
	state := ironic.State(node.ProvisionState)
	switch move := states.NextMove(goal, state, false); {
	case states.InProgress(state):
		return "an operation on it is in progress. Run the command again when that has ended"
	case !states.KeepsDeployment(state):
		return "only a deployed machine has a rescue mode, and nothing runs on this one"
	case move.Kind == states.Refuse:
		return move.Reason.String()
	}
	return ""
}
