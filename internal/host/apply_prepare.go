package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// prepare does the planned steps that touch the machine, except switching its power.
func (w *Work) prepare(ctx context.Context) error {
	if !w.mayBePrepared() {
		return nil
	}
	if err := w.endQualification(ctx); err != nil {
		return err
	}
	for _, step := range w.Plan.Steps {
		if err := w.confirmIdle(ctx, step); err != nil {
			return err
		}
		if err := w.prepareBy(ctx, step); err != nil {
			return err
		}
	}
	if w.Plan.Goal == GoalEnroll || w.Plan.Has(DoWalk, DoVerify) {
		return nil
	}
	return w.EndTemporary(ctx, w.Node(), w.Limit)
}

// confirmIdle refuses to touch a machine that is on though its host was idle: it may have been deployed after Terraform has seen it last.
// Ironic reads the power of a machine when it becomes manageable.
func (w *Work) confirmIdle(ctx context.Context, step Step) error {
	if !w.Doubtful || step.Cost == decide.Free {
		return nil
	}
	if w.Node().ProvisionState == string(stateEnroll) {
		if err := w.reach(ctx, states.GoalManageable); err != nil {
			return err
		}
	}
	if err := w.Machine.Refresh(ctx); err != nil {
		return err
	}
	node := w.Node()
	if machine.Power(node) != PowerOn || node.DisablePowerOff || w.Wish.Power.V == PowerOn {
		w.Doubtful = false
		return nil
	}
	return isOn(node)
}

// isOn returns the error of a machine that is on though its host was idle.
func isOn(node *ironic.Node) error {
	return &failure.Error{
		Kind: machine.KindRefused, Node: node, Fact: fmt.Sprintf("the machine of node %s is on, and an idle machine is off: something "+
			"may run on it since Terraform has seen it last. Nothing was erased", ironic.NodeLabel(node)),
		Advice: "To keep what runs, set target_state = \"manageable\" and adopt it with a metal_deployment. If nothing is to be kept, " +
			"switch the machine off (metal power off) and apply again.",
	}
}

// prepareBy does a step that touches the machine; none of the others.
func (w *Work) prepareBy(ctx context.Context, step Step) error {
	if w.unfit != nil && step.Do != DoWalk && step.Do != DoVerify {
		return nil
	}
	switch step.Do {
	case DoReplace:
		return w.replace(ctx, step)
	case DoSetBoot:
		return w.setBoot(ctx, step)
	case DoSetConsole:
		return w.setConsole(ctx, step)
	case DoConfigure, DoService:
		return w.configure(ctx, step)
	case DoInspect, DoInspectAgain:
		return w.inspect(ctx)
	case DoProve:
		return w.prove(ctx)
	case DoQualify:
		return w.qualify(ctx)
	case DoVerify, DoWalk:
		switch {
		case w.unfit != nil && !w.Node().Retired: // the next apply tries again
			return nil
		case w.unfit != nil, w.staysOut(step):
			step.Goal = states.GoalManageable
		}
		if !states.Settled(step.Goal, ironic.State(w.Node().ProvisionState)) {
			if err := w.reach(ctx, step.Goal); err != nil {
				return err
			}
		} else if err := w.EndTemporary(ctx, w.Node(), w.Limit); err != nil {
			return err
		}
		if step.Goal == states.GoalAvailable && !w.Plan.Has(DoSwitchPower) {
			return w.learnPower(ctx)
		}
	case DoLearnPower:
		return w.learnPower(ctx)
	case DoEnroll, DoLeavePool, DoCloseConsole, DoWrite, DoEndTemporary, DoSwitchPower, DoKeepPower, DoRemove, DoRestore, DoReturn:
	}
	return nil
}

// reach walks the node to a goal. It then removes the temporary server profile that sharing.Pool.Check may have created on the
// way, even if the walk has failed. After an interruption the machine still needs the profile, and a later run removes it.
func (w *Work) reach(ctx context.Context, goal states.Goal) error {
	err := w.Machine.Reach(ctx, goal, w.Limit)
	return errors.Join(err, w.EndTemporary(ctx, w.Node(), w.Limit))
}

// setBoot changes boot mode and secure boot, before the machine boots for an inspection or for
// cleaning. Ironic first verifies the BMC, and reads what it has.
func (w *Work) setBoot(ctx context.Context, step Step) error {
	if states.IsOccupied(w.Node()) {
		return nil
	}
	if step.Goal != "" && w.Node().ProvisionState == string(GoalEnroll) {
		if err := w.reach(ctx, step.Goal); err != nil {
			return err
		}
	}
	err := w.Machine.SetBoot(ctx, w.Boot, w.Limit)
	if err != nil && w.Was != nil && !failure.IsInterrupted(err) {
		w.KeepsBoot = true
	}
	return err
}

// setConsole enables or disables the console, before the machine boots, so that its user can watch that.
func (w *Work) setConsole(ctx context.Context, step Step) error {
	if w.Wish.Console.IsNull() { // the plan did not know it
		return nil
	}
	if step.Goal != "" && w.Node().ProvisionState == string(GoalEnroll) {
		if err := w.reach(ctx, step.Goal); err != nil {
			return err
		}
	}
	err := w.Machine.SetConsole(ctx, w.Wish.Console.V == ConsoleOn, w.Limit)
	w.KeepsConsole = err != nil
	return err
}

// closeConsole disables the console, so that Ironic accepts another driver and stops what the console interface has started.
func (w *Work) closeConsole(ctx context.Context) error {
	if !w.Plan.Has(DoCloseConsole) || w.Wish.Console.IsNull() {
		return nil
	}
	return w.Machine.SetConsole(ctx, false, w.Limit)
}

func (w *Work) configure(ctx context.Context, step Step) error {
	stay := slices.DeleteFunc(slices.Clone(w.Open), func(part HardwarePart) bool { return slices.Contains(step.Parts, part) })
	changed := w.Wish.Hardware.Work(w.OnMachine, HardwareSeen{}).Parts()
	open, err := ConfigureHardware(ctx, w.Machine, HardwareChange{
		Want: w.Wish.Hardware.Only(step.Parts), Applied: w.OnMachine.Without(w.Plan.Drifted), Live: step.Do == DoService,
		NoRamdisk: w.NoRamdisk,
		Once:      len(changed) == 0, Rollout: w.Rollout,
	}, w.Limit)
	if w.Corrected = err == nil || failure.Is(err, KindNotThere); w.Corrected { // what does not stay is not open: no plan sets it again
		open = slices.DeleteFunc(open, func(part HardwarePart) bool { return !slices.Contains(changed, part) })
	}
	w.Open = append(stay, open...)
	if err == nil {
		return nil
	}
	return errors.Join(err, w.EndTemporary(ctx, w.Node(), w.Limit))
}

// refuseInspection returns an error if the plan has announced another inspection and the node has been reserved or deployed since.
func (w *Work) refuseInspection(ctx context.Context) error {
	if !w.Plan.Has(DoInspectAgain) || w.Plan.Has(DoReplace) || !states.Deployed(w.Node()) {
		return nil
	}
	return w.reach(ctx, states.GoalInspected)
}

// inspect inspects the node unless something has inspected it since the plan.
func (w *Work) inspect(ctx context.Context) error {
	if states.Deployed(w.Node()) {
		return nil
	}
	done, err := w.isInspected(ctx)
	if err != nil || done {
		return err
	}
	if err := w.reach(ctx, states.GoalInspected); err != nil {
		return err
	}
	w.Inspected = true
	if w.Plan.Has(DoInspectAgain) {
		return EndInspection(ctx, w.Machine)
	}
	return nil
}

// isInspected reports whether the node needs no inspection any more: it has an inventory or, if triggers have requested another
// inspection, a killed run has finished that.
func (w *Work) isInspected(ctx context.Context) (bool, error) {
	if w.Plan.Has(DoInspectAgain) {
		_, succeeded := RequestedInspection(w.Node())
		return succeeded, nil
	}
	if w.IsMade || !machine.InspectedAt(w.Node()).IsZero() {
		return !machine.InspectedAt(w.Node()).IsZero(), nil
	}
	inventory, err := w.Machine.Site().Ironic.Inventory(ctx, w.Node().UUID)
	return inventory != nil, err
}

// learnPower switches a machine whose power state Ironic does not know, because it allocates none such. After cleaning the machine is off,
// or on if it is never off.
func (w *Work) learnPower(ctx context.Context) error {
	node := w.Node()
	if node.PowerState != "" || !machine.PowerManaged(node) || states.Deployed(node) {
		return nil
	}
	return w.Machine.SetPower(ctx, node.DisablePowerOff, w.Limit)
}

func (w *Work) switchPower(ctx context.Context, want string) error {
	if want == PowerOn {
		return w.Machine.SetPower(ctx, true, w.Limit)
	}
	return w.Machine.SwitchOff(ctx, w.OffMode, w.Limit)
}
