package deploy

import (
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// assume notes in the steps that restart or switch the machine what the plan has seen of it.
func (d *decision) assume() {
	for i := range d.plan.Steps {
		step := &d.plan.Steps[i]
		switch step.Do.Phase() { //nolint:exhaustive // Ironic's own rules and the walk guard the others
		case Restarts, Switches, Checks:
			step.Was = machine.Assumed{State: d.seen.State, Maintenance: d.seen.Sight.Maintenance}
		}
		if step.Do == DoRestart && !d.plan.Operates() {
			step.Was.Switched = d.seen.Sight.Switched
			if power := d.seen.Power; power.Set && !power.Unknown {
				step.Was.Power = string(power.V)
			}
		}
	}
}

// CheckAssumed returns an error that says what differs if the machine is not as the plan of the step has assumed: an error of KindReserved
// if another user has it, else one of KindRefused. The caller must have just read the node.
func (s Step) CheckAssumed(node *ironic.Node, instance string) error {
	switch {
	case s.Do == DoAdopt, s.Do == DoRestore, s.Do == DoUnrescue: // the adoption, or the walk, decides by the reservation
		return nil
	case s.Do == DoUnprotect && !node.Protected: // nothing is sent
		return nil
	}
	if err := machine.CheckReservation(node, instance); err != nil {
		return err
	}
	if s.Was == (machine.Assumed{}) && !slices.Contains([]Kind{DoRestart, DoPowerOn, DoPowerOff}, s.Do) {
		return nil
	}
	other, held, switched := "", "", ""
	if state := ironic.State(node.ProvisionState); state != s.Was.State { // or a step before has led to active
		other = machine.Assumed{State: stateActive}.IsOther(node)
	}
	if s.Do != DoCheck {
		held = s.Was.IsHeld(node)
	}
	if s.Do == DoRestart && !s.executed(node) {
		switched = s.Was.IsSwitched(node)
	}
	return machine.ChangedSince(node, other, held, switched)
}

// CheckEnd returns an error if a machine whose deployment is to end is not as the last read has seen it. It is none if the end has begun.
func CheckEnd(was machine.Assumed, node *ironic.Node) error {
	if !states.IsOccupied(node) || states.UndeployUnfinished(node) || was == (machine.Assumed{}) {
		return nil
	}
	if now := ironic.State(node.ProvisionState); states.BeingDeployed(was.State) && states.BeingDeployed(now) {
		was.State = now // the deployment goes on
	}
	return machine.ChangedSince(node, was.IsOther(node), was.IsHeld(node))
}
