// Package operate does one operation on many machines, as an operator asks for it, or on the machine of an action. What an operation does
// to a machine is decided by its Decide, before anything is sent; Runner executes it under the provisioning limit of the site.
package operate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Plan is what an operation does to one machine.
type Plan struct {
	Nothing bool   // the machine is as the operation would leave it
	Refused string // why the operation cannot be done, as a sentence; empty: it can
	Harm    Harm
	Does    string // what happens to the machine, as a sentence without the machine, such as "cuts its power"
	Before  string // what an earlier run of the operation has done already, as a sentence; empty: nothing
	AtWork  string // the run of Terraform, or the other command of metal, that may be at work on the machine; empty: none
}

// warning says which run or command may be at work on the machine, as the end of Does; "" if none may.
func (p *Plan) warning() string {
	if p.AtWork == "" {
		return ""
	}
	return "; " + p.AtWork + ", may be at work on it"
}

// isOther reports whether a plan does something else than another one, apart from what may be at work.
func (p *Plan) isOther(than Plan) bool {
	return strings.TrimSuffix(p.Does, p.warning()) != strings.TrimSuffix(than.Does, than.warning())
}

// Operation is what an operator asks of machines by a command of metal, or a configuration of one machine by an action.
type Operation struct {
	Command string           // the command of metal, such as "power off"
	Action  string           // the action that does the same, such as "metal_power"; empty: none
	Instead string           // the command of OpenStack's baremetal, without that word
	Doing   string           // infinitive that goes before "node NAME", such as "switch off"
	Timeout time.Duration    // how long the operation may take by default, without the time that a machine waits for a slot
	Since   api.Microversion // the first version of the API that has it; zero: all
	Feature string           // what needs Since, for messages
	// Worst is the worst that it does to a machine, if no run is at work on it. What it does to one may be less, and never more.
	Worst Harm
	// Needs is Since where that depends on the machine; nil: it does not.
	Needs func(node *ironic.Node) api.Microversion
	Has   api.Microversion // the version of the API in use, for Needs; zero: it is not known

	// Decide says what the operation does to a machine. It is pure, and node has all fields.
	Decide func(node *ironic.Node) Plan
	// Do does it to a machine that was just read, and waits for its end.
	Do func(ctx context.Context, m *machine.Machine, timeout time.Duration) error
	// Note says what a user must know after the operation; empty: nothing. It may be nil.
	Note func(node *ironic.Node) string

	// DuringRuns: it may be done to a machine on which a run of Terraform works, such as to end what that run waits for.
	DuringRuns bool
	// Stops is the goal of an operation that begins no machine for which a reason holds that is not the machines' own, once two have failed
	// for it; "": it goes on.
	Stops states.Goal
	// Goal is what the operation leaves a machine with, if it takes several requests, or ends what another operation has left; empty:
	// neither.
	Goal notes.Goal
	// Several reports whether the operation takes several requests for a machine, so that it is noted on the node; nil: it never does.
	Several func(node *ironic.Node) bool
	// Guarded: the guard is asked before the operation is noted, because the operation touches the hardware.
	Guarded bool
}

// Offered returns an error if the version of the API in use does not have the operation. It notes that version for Needs.
func (op *Operation) Offered(ctx context.Context, client *ironic.Client) (err error) {
	if op.Needs != nil {
		if op.Has, err = client.Microversion(ctx); err != nil {
			return err
		}
	}
	if op.Since == 0 {
		return nil
	}
	return client.Requires(ctx, op.Since, op.Feature)
}

// Plan says what the operation does to a machine now. Where a run or a command may be at work, it does as much harm as a cut of the power.
func (op *Operation) Plan(node *ironic.Node, seen Seen) Plan {
	plan := op.Decide(notes.WithoutOldOperation(node, seen.Now))
	if plan.Refused == "" && plan.Harm > op.Worst {
		plan.Refused = fmt.Sprintf("a defect in metal: metal %s must not do that. Please report it", op.Command)
	}
	if op.Needs != nil && op.Has > 0 && plan.Refused == "" {
		if since := op.Needs(node); since > op.Has {
			plan.Refused = fmt.Sprintf("to %s a node in this state needs API %s of Ironic, and %s is in use", op.Doing, since, op.Has)
		}
	}
	if plan.Nothing || plan.Refused != "" || op.DuringRuns {
		return plan
	}
	if plan.AtWork = atWork(op.Command, node, seen); plan.AtWork != "" {
		plan.Harm = max(plan.Harm, Cuts)
		plan.Does += plan.warning()
	}
	return plan
}

// isUsed reports whether a machine may be in use: something is deployed on it, or it is reserved.
func isUsed(node *ironic.Node) bool { return states.IsOccupied(node) || node.InstanceUUID != "" }
