package host

import (
	"context"
	"fmt"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout/turns"
)

// Do executes the order: settings, traits, ports and maintenance, then the walk to the target state, and power last. With an error, it
// returns what it was doing.
func (w *Work) Do(ctx context.Context) (doing string, err error) {
	doing, err = w.do(ctx)
	return doing, w.Machine.Unwatched(ctx, err)
}

func (w *Work) do(ctx context.Context) (doing string, err error) {
	label, power, occupied := ironic.NodeLabel(w.Node()), machine.Power(w.Node()), states.IsOccupied(w.Node())
	if err := w.asPlanned(w.Node()); err != nil {
		return "change node " + label, err
	}
	if err := w.leavePool(ctx); err != nil {
		return "retire node " + label, err
	}
	if err := w.refuseInspection(ctx); err != nil {
		return "inspect node " + label, err
	}
	if err := w.move(ctx); err != nil {
		return "change node " + label, err
	}
	if err := w.closeConsole(ctx); err != nil {
		return "disable the console of node " + label, err
	}
	if err := w.change(ctx); err != nil {
		return "change node " + label, err
	}
	if w.Cables, err = ApplyPorts(ctx, w.Machine, w.Cabling, w.IsMade); err != nil {
		return "set the ports of node " + label, err
	}
	w.Complete = true
	if err := w.takeOut(ctx, w.prepare(ctx)); err != nil {
		return "prepare node " + label, err
	}
	step, switches := w.Plan.Find(DoSwitchPower)
	if kept, keeps := w.Plan.Find(DoKeepPower); keeps && kept.Power == power { // the walk may have switched it
		step, switches = kept, true
	}
	if switches && (!occupied || w.Plan.Has(DoReplace)) && machine.PowerManaged(w.Node()) && w.taken == "" {
		if err := w.switchPower(ctx, step.Power); err != nil {
			return "switch node " + label + " " + step.Power, err
		}
	}
	turns.ClearService(ctx, w.Machine)
	return "", nil
}

// asPlanned refuses a node whose provision state has changed since a plan that announced no walk: the way back may clean the
// node. If a deployment has ended meanwhile, asPlanned accepts the node, and the next plan announces the walk.
func (w *Work) asPlanned(node *ironic.Node) error {
	if step, replaces := w.Plan.Find(DoReplace); replaces {
		return w.checkReplaced(step.Instance)
	}
	if err := w.checkAssumed(node); err != nil {
		return err
	}
	if w.Was == nil || w.Plan.Has(DoWalk, DoVerify) || states.Deployed(w.Was) || !w.unsettled(node) {
		return nil
	}
	before := w.Was.ProvisionState
	if node.ProvisionState == before {
		return nil // it got a BMC, or metal oneview has returned it to service: the next plan announces the walk
	}
	return fmt.Errorf("host %s has changed since the plan, from state %s to %s. Nothing was done to it. Plan again",
		w.Wish.Label, before, node.ProvisionState)
}

func (w *Work) unsettled(node *ironic.Node) bool {
	return w.mayBePrepared() && w.Plan.Goal != GoalEnroll && !states.Settled(w.Plan.Goal, ironic.State(node.ProvisionState))
}

// leavePool makes an available node that is to be retired manageable, because Ironic retires no available node. The machine is not
// touched.
func (w *Work) leavePool(ctx context.Context) error {
	if !w.Plan.Has(DoLeavePool) || w.Node().Retired || !states.InPool(w.Node()) {
		return nil
	}
	return w.reach(ctx, states.GoalManageable)
}

// move waits until the host may have what no other node may have too. It does nothing for a new host, whose creation has done so.
func (w *Work) move(ctx context.Context) error {
	if w.Was == nil {
		return nil
	}
	who := w.Intent
	who.Moves = who.Moves || who.Name != "" && who.Name != w.Node().Name
	who.Replaced = w.Plan.Replaces != ""
	PlanMove(w.Machine.Site(), who)
	if !who.Moves {
		return nil
	}
	giveUp := func(ctx context.Context, r Release) error { return GiveUp(ctx, w.Machine, r) }
	return Move(ctx, w.Machine.Site(), who, giveUp, time.Now().Add(w.Limit))
}

// change brings settings, traits and maintenance of the node to the configuration.
func (w *Work) change(ctx context.Context) (err error) {
	if err := sharing.KeepsHardware(w.Node(), w.Settings.Edits(w.Node())); err != nil {
		return err
	}
	w.Patched, err = ChangeSettings(ctx, w.Machine, w.Settings)
	if _, has := w.Node().Extra[notes.KeyQualification]; err != nil || !has || w.Plan.Replaces == "" {
		return err
	}
	return w.Machine.ForgetQualification(ctx) // of what was replaced
}
