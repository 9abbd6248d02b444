package operate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

// How long operations may take by default.
const (
	ManageTimeout  = 30 * time.Minute
	InspectTimeout = time.Hour
	CleanTimeout   = 2 * time.Hour
	ServiceTimeout = time.Hour
	AbortTimeout   = 30 * time.Minute
)

const commandInspect = "inspect"

// returns reports whether an operation that takes a machine out of the pool brings it back there.
func returns(node *ironic.Node) bool { return states.InPool(node) || keeps(node, notes.GoalAvailable) }

// Inspect returns the operation that inspects free machines again. Those of the pool return to it. pool has the profiles of shared
// hardware; nil: none is shared.
func Inspect(pool *sharing.Pool) Operation {
	return Operation{
		Command: commandInspect, Action: "metal_inspect", Instead: "node manage, node inspect, node provide", Doing: "inspect",
		Timeout: InspectTimeout, Worst: Erases, Goal: notes.GoalAvailable, Guarded: true, Stops: states.GoalInspected,
		Several: func(node *ironic.Node) bool { return returns(node) && doneFor(node, commandInspect) == nil },
		Decide: func(node *ironic.Node) Plan {
			if !returns(node) {
				if busy := busyWith(node); busy != "" && !states.BeingInspected(ironic.State(node.ProvisionState)) {
					return Plan{Refused: busy}
				}
			}
			plan := Plan{
				Refused: machine.UsedReason(node, "inspects"), Harm: Restarts,
				Does: "boots Ironic's ramdisk on it, if the site inspects so, and leaves it manageable",
			}
			if returns(node) {
				plan.Harm = max(Restarts, harmOfCleaning(node))
				plan.Does = "inspects it and makes it available again, for which Ironic erases its disks unless automated cleaning is off"
			}
			if o := doneFor(node, commandInspect); o != nil && plan.Refused == "" {
				plan.Before = fmt.Sprintf("%s, had inspected it already. To inspect it once more, do it again", o)
				if states.InPool(node) {
					plan.Harm, plan.Does = Harmless, "removes the note of "+o.String()+", and has inspected it"
				}
			}
			return plan
		},
		Do: func(ctx context.Context, m *machine.Machine, timeout time.Duration) error {
			inspect := func() error { return m.Inspect(ctx, returns(m.Node()), timeout) }
			if doneFor(m.Node(), commandInspect) != nil { // to do that again would erase the disks once more
				inspect = func() error { return m.Reach(ctx, states.GoalAvailable, timeout) }
			}
			return errors.Join(inspect(), pool.EndTemporaryOf(ctx, m.Node(), timeout))
		},
	}
}

// Manage returns the operation that makes free machines manageable: Ironic verifies enrolled ones, and takes others out of the pool.
func Manage() Operation {
	return Operation{
		Command: "manage", Instead: "node manage", Doing: "manage", Timeout: ManageTimeout, Stops: states.GoalManageable,
		Decide: func(node *ironic.Node) Plan {
			plan := Plan{
				Nothing: ironic.State(node.ProvisionState) == nodes.Manageable, Refused: machine.UsedReason(node, "manages"),
				Does: "makes it manageable",
			}
			switch {
			case plan.Nothing:
				plan.Refused = ""
			case plan.Refused == "":
				plan.Refused = busyWith(node)
			}
			return plan
		},
		Do: func(ctx context.Context, m *machine.Machine, timeout time.Duration) error {
			return m.Reach(ctx, states.GoalManageable, timeout)
		},
	}
}

// Provide returns the operation that makes free machines available, for which Ironic cleans them. pool as for Inspect.
func Provide(pool *sharing.Pool) Operation {
	return Operation{
		Command: "provide", Instead: "node provide", Doing: "provide", Timeout: CleanTimeout, Worst: Erases, Stops: states.GoalAvailable,
		Decide: func(node *ironic.Node) Plan {
			plan := Plan{
				Nothing: states.InPool(node), Refused: machine.UsedReason(node, "provides"), Harm: harmOfCleaning(node),
				Does: "makes it available, for which Ironic erases its disks unless automated cleaning is off",
			}
			if plan.Harm == Harmless {
				plan.Does = "makes it available, without a cleaning, which is off for the node"
			}
			switch {
			case plan.Nothing:
				plan.Refused = ""
			case plan.Refused == "" && node.Retired:
				plan.Refused = "it is retired, and Ironic makes no retired machine available. Use metal unretire first"
			case plan.Refused == "" && !states.InCleaning(node):
				plan.Refused = busyWith(node)
			}
			return plan
		},
		Do: func(ctx context.Context, m *machine.Machine, timeout time.Duration) error {
			err := m.Reach(ctx, states.GoalAvailable, timeout)
			return errors.Join(err, pool.EndTemporaryOf(ctx, m.Node(), timeout))
		},
	}
}

// Clean returns the operation that runs steps on manageable machines. erase: the steps may erase disks.
func Clean(pool *sharing.Pool, order ironic.Order, erase bool) Operation {
	since, feature := neededFor(order, 0, "cleaning", api.VersionNoRamdisk)
	return Operation{
		Command: "clean", Action: "metal_clean", Instead: "node clean", Doing: "clean", Timeout: CleanTimeout, Since: since,
		Feature: feature, Worst: Erases,
		Decide: func(node *ironic.Node) Plan {
			plan := Plan{Refused: machine.UsedReason(node, "cleans"), Harm: Restarts, Does: "runs " + machine.StepNames(order) +
				" on it, for which it restarts"}
			steps := machine.Erasing(order.Steps)
			switch {
			case plan.Refused != "":
			case busyWith(node) != "":
				plan.Refused = busyWith(node)
			case !states.Cleanable(ironic.State(node.ProvisionState)):
				plan.Refused = "Ironic cleans only manageable machines with steps of your own. Make it so first: set target_state = " +
					"\"manageable\" on its metal_host, or use metal manage"
			case len(steps) > 0 && !erase:
				plan.Refused = strings.Join(steps, ", ") + machine.MayErase
			case erase:
				plan.Harm, plan.Does = Erases, "runs "+machine.StepNames(order)+" on it, which may erase its disks"
			}
			return plan
		},
		Do: func(ctx context.Context, m *machine.Machine, timeout time.Duration) error {
			err := m.Clean(ctx, order, erase, timeout)
			return errors.Join(err, pool.EndTemporaryOf(ctx, m.Node(), timeout))
		},
	}
}

// Service returns the operation that runs steps on deployed machines.
func Service(order ironic.Order) Operation {
	since, feature := neededFor(order, api.VersionService, "servicing", api.VersionServiceRamdisk)
	return Operation{
		Command: "service", Action: "metal_service", Instead: "node service", Doing: "service", Timeout: ServiceTimeout, Since: since,
		Feature: feature, Worst: Cuts,
		Decide: func(node *ironic.Node) Plan {
			plan := Plan{Harm: Cuts, Does: "runs " + machine.StepNames(order) + " on it, for which its system restarts"}
			switch steps := machine.Erasing(order.Steps); {
			case !states.Serviceable(ironic.State(node.ProvisionState)):
				plan.Refused = "Ironic services only deployed machines. Clean a free one instead: the action metal_clean, or metal clean"
			case busyWith(node) != "": // it may be what a killed run has begun, and must not run twice
				plan.Refused = busyWith(node)
			case len(steps) > 0:
				plan.Refused = "it is deployed, and " + strings.Join(steps, ", ") + " would erase its disks"
			}
			return plan
		},
		Do: func(ctx context.Context, m *machine.Machine, timeout time.Duration) error {
			return m.Service(ctx, order, timeout)
		},
	}
}

// neededFor returns the first version of the API that runs an order, and what needs it. verb: that has the verb for doing it; ramdisk: that
// runs steps without a ramdisk, which no runbook asks for.
func neededFor(order ironic.Order, verb api.Microversion, doing string, ramdisk api.Microversion) (api.Microversion, string) {
	switch {
	case order.Runbook != "":
		return api.VersionRunbooks, doing + " by a runbook"
	case order.NoRamdisk:
		return ramdisk, doing + " without the ramdisk"
	}
	return verb, doing
}

// Abort returns the operation that ends what Ironic waits for on a machine, also while a run of Terraform waits for it.
func Abort() Operation {
	return Operation{
		Command: "abort", Action: "metal_abort", Instead: "node abort", Doing: "abort the operation on", Timeout: AbortTimeout,
		Worst: Cuts, DuringRuns: true,
		Decide: func(node *ironic.Node) Plan {
			if _, can := states.Abortable(ironic.State(node.ProvisionState)); !can {
				return Plan{Refused: "Ironic can end an operation only while it waits for the machine or is held, and there is none"}
			}
			if ironic.State(node.ProvisionState) == nodes.ServiceFail {
				return Plan{Harm: harmOf(node), Does: "ends its failed service: Ironic makes it active again"}
			}
			return Plan{Harm: harmOf(node), Does: "ends its operation, which then has failed (" + node.ProvisionState + ")"}
		},
		Needs: func(node *ironic.Node) api.Microversion {
			since, _ := states.Abortable(ironic.State(node.ProvisionState))
			return since
		},
		Do: func(ctx context.Context, m *machine.Machine, timeout time.Duration) error {
			return m.Abort(ctx, timeout)
		},
	}
}

// Unhold returns the operation that continues what a step holds.
func Unhold() Operation {
	return Operation{
		Command: "unhold", Action: "metal_unhold", Instead: "node unhold", Doing: "continue the operation on", Timeout: AbortTimeout,
		Since: api.VersionUnhold, Feature: "continuing a held operation", Worst: Erases, DuringRuns: true,
		Decide: func(node *ironic.Node) Plan {
			if !states.Held(ironic.State(node.ProvisionState)) {
				return Plan{Refused: "no step holds it"}
			}
			switch ironic.State(node.ProvisionState) { //nolint:exhaustive // the others write no disk
			case nodes.CleanHold:
				return Plan{Harm: Erases, Does: "continues its cleaning, which may erase its disks"}
			case nodes.DeployHold:
				return Plan{Harm: Erases, Does: "continues its deployment, which may write its disks"}
			}
			return Plan{Does: "continues its operation"}
		},
		Do: func(ctx context.Context, m *machine.Machine, timeout time.Duration) error {
			return m.Unhold(ctx, timeout)
		},
	}
}
