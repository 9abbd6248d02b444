package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

// RecordTimeout is how long a change of a node's record may take by default. It may have to wait for a lock.
const RecordTimeout = 15 * time.Minute

// Maintenance returns the operation that puts machines into maintenance, or ends that.
func Maintenance(want machine.Maintenance) Operation {
	op := Operation{
		Command: "maintenance on", Instead: "node maintenance set", Doing: "put into maintenance", Timeout: RecordTimeout, Worst: Restarts,
		DuringRuns: true,
		Do: func(ctx context.Context, m *machine.Machine, timeout time.Duration) error {
			deadline := time.Now().Add(timeout)
			set := func(to machine.Maintenance) error {
				return m.UnlockedWithin(ctx, time.Until(deadline), func() error { return m.SetMaintenance(ctx, to) })
			}
			if want.On && m.Node().Fault != "" { // Ironic would end the maintenance as soon as the BMC answers (reference/ironic.md#faults)
				if err := set(machine.Maintenance{}); err != nil {
					return err
				}
			}
			return set(want)
		},
	}
	if !want.On {
		op.Command, op.Instead, op.Doing = "maintenance off", "node maintenance unset", "end the maintenance of"
	}
	op.Decide = func(node *ironic.Node) Plan {
		same := node.Maintenance == want.On && (!want.On || node.MaintenanceReason == want.Reason && node.Fault == "")
		switch {
		case want.On && !same && node.MaintenanceReason == sharing.ReasonInUse:
			return Plan{Refused: "a OneView user has its server, so that it is in maintenance already. Another reason would hide that"}
		case want.On && !same && node.MaintenanceReason == machine.ReasonChanging:
			return Plan{Refused: "a run of Terraform has put it into maintenance to change its interfaces or ports, and ends that itself " +
				"unless it was killed. If it was, use metal maintenance off first"}
		case want.On && !same && node.Maintenance && node.MaintenanceReason != "" && node.Fault == "":
			return Plan{Harm: Restarts, Does: fmt.Sprintf("replaces the reason of its maintenance, %q", node.MaintenanceReason)}
		case want.On:
			return Plan{Nothing: same, Does: "puts it into maintenance: Ironic neither deploys nor cleans it"}
		case !same && sharing.TakenOut(node):
			return Plan{Refused: "a OneView user has its server. metal oneview sync ends the maintenance when the server is free"}
		case !same && node.MaintenanceReason == machine.ReasonChanging:
			return Plan{Harm: Restarts, Does: "ends the maintenance that a run of Terraform has set to change its interfaces or ports, " +
				"and ends itself unless it was killed"}
		}
		return Plan{Nothing: same, Does: "ends its maintenance"}
	}
	return op
}

// Retire returns the operation that retires machines: Ironic reserves and deploys none of them any more. A machine of the pool leaves it
// first, because Ironic retires none there (reference/ironic.md#retired-nodes).
func Retire(reason string) Operation {
	return Operation{
		Command: "retire", Instead: "node set --retired", Doing: "retire", Timeout: RecordTimeout, Since: api.VersionRetired,
		Feature: "retiring", Worst: Restarts, Goal: notes.GoalRetired, Several: states.InPool,
		Decide: func(node *ironic.Node) Plan {
			if busy := busyWith(node); busy != "" {
				return Plan{Refused: busy}
			}
			if states.InPool(node) && node.InstanceUUID != "" {
				return Plan{Refused: "it is reserved by " + node.InstanceUUID + ", and nothing is deployed on it yet. Destroy its " +
					"metal_allocation, or use metal release, first"}
			}
			plan := Plan{Nothing: node.Retired && (reason == "" || node.RetiredReason == reason), Does: "retires it"}
			if states.InPool(node) {
				plan.Harm, plan.Does = Restarts, "takes it out of the pool and retires it; its way back there is a cleaning"
			}
			return plan
		},
		Do: func(ctx context.Context, m *machine.Machine, timeout time.Duration) error {
			deadline := time.Now().Add(timeout)
			if states.InPool(m.Node()) {
				if err := m.Reach(ctx, states.GoalManageable, timeout); err != nil {
					return err
				}
			}
			return m.PatchWithin(ctx, ironic.Patch{}.With("/retired", true).With("/retired_reason", reason), time.Until(deadline))
		},
	}
}

// Unretire returns the operation that ends the retirement of machines, also that of a quarantine. They stay in their state.
func Unretire() Operation {
	return Operation{
		Command: "unretire", Instead: "node unset --retired", Doing: "end the retirement of", Timeout: RecordTimeout,
		Since: api.VersionRetired, Feature: "retiring", Worst: Restarts, Goal: notes.GoalRetired,
		Decide: func(node *ironic.Node) Plan {
			if busy := busyWith(node); busy != "" {
				return Plan{Refused: busy}
			}
			does := "ends its retirement; it stays " + node.ProvisionState
			if q := notes.QuarantineOf(node); q != nil {
				return Plan{Harm: Restarts, Does: does + ", and ends its quarantine, because " + q.String()}
			}
			if left := notes.OperationOf(node); !node.Retired && left != nil && left.Goal == notes.GoalRetired {
				return Plan{Does: "ends what metal " + left.Command + " has left: it was to be retired, and it stays " +
					node.ProvisionState}
			}
			return Plan{Nothing: !node.Retired, Does: does}
		},
		Do: func(ctx context.Context, m *machine.Machine, timeout time.Duration) error {
			if !m.Node().Retired {
				return nil // the end of the operation removes the note
			}
			var patch ironic.Patch
			patch.Set("/retired", false)
			patch.Remove("/retired_reason")
			notes.EndQuarantine(&patch, m.Node())
			return m.PatchWithin(ctx, patch, timeout)
		},
	}
}
