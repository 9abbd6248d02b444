package operate

import (
	"context"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// PowerTimeout is how long a change of power may take by default.
const PowerTimeout = 15 * time.Minute

// powers are what the power actions do not have in common.
var powers = map[machine.PowerAction]Operation{
	machine.ActionOn:         {Command: "power on", Instead: "node power on", Doing: "switch on", Worst: Harmless},
	machine.ActionOff:        {Command: "power off", Instead: "node power off", Doing: "switch off", Worst: Cuts},
	machine.ActionSoftOff:    {Command: "power off --soft", Instead: "node power off --soft", Doing: "shut down", Worst: Cuts},
	machine.ActionReboot:     {Command: "power reboot", Instead: "node reboot", Doing: "restart", Worst: Cuts},
	machine.ActionSoftReboot: {Command: "power reboot --soft", Instead: "node reboot --soft", Doing: "restart", Worst: Cuts},
}

// Power returns the operation that does a power action.
func Power(action machine.PowerAction) Operation {
	op := powers[action]
	op.Action, op.Timeout, op.Goal, op.Guarded = "metal_power", PowerTimeout, notes.GoalPowerOn, true
	if action == machine.ActionSoftReboot {
		op.Several = func(node *ironic.Node) bool { return machine.Power(node) != "off" }
	}
	if action == machine.ActionSoftOff || action == machine.ActionSoftReboot {
		op.Since, op.Feature = api.VersionSoftPower, "asking an operating system to shut down"
	}
	op.Decide = func(node *ironic.Node) Plan { return decidePower(action, node) }
	op.Do = func(ctx context.Context, m *machine.Machine, timeout time.Duration) error {
		if n := m.Node(); action == machine.ActionSoftReboot && keeps(n, notes.GoalPowerOn) && n.TargetPowerState == "power on" {
			return m.SetPower(ctx, true, timeout) // the end of the restart that a killed run has begun
		}
		return m.ChangePower(ctx, action, timeout)
	}
	return op
}

func decidePower(action machine.PowerAction, node *ironic.Node) Plan {
	if busy := busyWith(node); busy != "" {
		return Plan{Refused: busy}
	}
	power := machine.Power(node)
	still := node.TargetPowerState == ""
	on, off := still && power == "on", still && power == "off"
	switch action {
	case machine.ActionOn:
		return Plan{Nothing: on, Does: "switches it on"}
	case machine.ActionOff, machine.ActionSoftOff:
		return Plan{Nothing: off, Harm: harmOf(node), Does: map[bool]string{
			true:  "cuts its power",
			false: "shuts its system down",
		}[action == machine.ActionOff]}
	case machine.ActionReboot, machine.ActionSoftReboot:
		if off {
			return Plan{Does: "switches it on"}
		}
		return Plan{Harm: harmOf(node), Does: map[bool]string{
			true:  "cuts its power and switches it on again",
			false: "restarts its system",
		}[action == machine.ActionReboot]}
	}
	return Plan{Refused: "there is no such power action"}
}

// busyWith says that Ironic has an operation in progress on a machine; "" if it has not. A change of power is none: what changes the power
// waits for it.
func busyWith(node *ironic.Node) string {
	if states.InProgress(ironic.State(node.ProvisionState)) {
		return "an operation on it is in progress. Try again when that has ended"
	}
	return ""
}

// harmOf returns the harm of an operation that ends what runs on a machine.
func harmOf(node *ironic.Node) Harm {
	if isUsed(node) {
		return Cuts
	}
	return Restarts
}
