package operate

import (
	"context"
	"errors"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

// QualifyTimeout is how long a qualification may take by default. Each step of a burn-in takes a day by default.
const QualifyTimeout = 7 * 24 * time.Hour

const commandQualify = "qualify"

// Qualify returns the operation that qualifies free machines; an empty recipe is that of the last qualification of each. Machines of the
// pool return to it if they pass. pool as for Inspect.
func Qualify(pool *sharing.Pool, recipe notes.Recipe) Operation {
	since, feature := neededFor(recipe.Order(), 0, "qualifying", 0)
	of := func(node *ironic.Node) notes.Recipe {
		if last := notes.QualificationOf(node); recipe.IsEmpty() && last != nil {
			return last.Recipe
		}
		return recipe
	}
	return Operation{
		Command: commandQualify, Instead: "node manage, node clean, node provide", Doing: "qualify", Timeout: QualifyTimeout, Since: since,
		Feature: feature, Worst: Erases, Goal: notes.GoalAvailable, Guarded: true, Stops: states.GoalConfigured,
		Several: func(node *ironic.Node) bool { return returns(node) && doneFor(node, commandQualify) == nil },
		Decide:  func(node *ironic.Node) Plan { return decideQualify(node, of(node)) },
		Do: func(ctx context.Context, m *machine.Machine, timeout time.Duration) (err error) {
			back := returns(m.Node())
			if back {
				defer m.KeepSlot()() // between the steps and the cleaning no allocation can reserve it
			}
			if doneFor(m.Node(), commandQualify) == nil {
				err = m.Qualify(ctx, of(m.Node()), true, timeout)
			}
			if err == nil && back {
				err = m.Reach(ctx, states.GoalAvailable, timeout)
			}
			return errors.Join(err, pool.EndTemporaryOf(ctx, m.Node(), timeout))
		},
		Note: func(node *ironic.Node) string {
			if !node.Retired {
				return ""
			}
			return "it has passed, and stays retired. To use it again, run: metal unretire " + ironic.NodeArgument(node)
		},
	}
}

func decideQualify(node *ironic.Node, recipe notes.Recipe) Plan {
	const back = "makes it available again, for which Ironic erases its disks unless automated cleaning is off"
	last := notes.QualificationOf(node)
	begun := last != nil && !last.Begun.IsZero()
	done := doneFor(node, commandQualify)
	switch refused := machine.UsedReason(node, "cleans"); {
	case refused != "":
		return Plan{Refused: refused}
	case done != nil:
		plan := Plan{
			Before: done.String() + ", had qualified it already. To qualify it once more, do it again",
			Does:   "removes the note of " + done.String() + ", and has qualified it",
		}
		if !states.InPool(node) {
			plan.Harm, plan.Does = max(Restarts, harmOfCleaning(node)), back
		}
		return plan
	case busyWith(node) != "" && !begun && !returns(node):
		return Plan{Refused: busyWith(node)}
	case recipe.IsEmpty():
		return Plan{Refused: "no metal_host with qualification has qualified it: name --runbook or --steps"}
	}
	plan := Plan{Harm: Restarts, Does: "runs " + machine.StepNames(recipe.Order()) + " on it, for which it restarts"}
	if recipe.Runbook != "" || len(machine.Erasing(recipe.Steps)) > 0 {
		plan.Harm = Erases
		plan.Does += ", and which may erase its disks"
	}
	if begun {
		plan.Does = "takes what has come of the qualification by " + machine.StepNames(last.Order()) + ", which began at " +
			last.Begun.UTC().Format(time.RFC3339) + "; if nothing tells that, " + plan.Does
	}
	if !node.Retired {
		plan.Does += "; retires it if it fails"
	}
	if returns(node) {
		plan.Harm = max(plan.Harm, harmOfCleaning(node))
		plan.Does += "; then " + back
	}
	return plan
}
