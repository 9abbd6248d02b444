package host

import (
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

// checkAssumed returns an error if the plan moves the machine, and that is not as the plan has seen it.
func (w *Work) checkAssumed(node *ironic.Node) error {
	if w.Was == nil || !w.Plan.Costs(decide.Restart) {
		return nil
	}
	held, other, reserved, on := w.Assumed.IsHeld(node), "", "", ""
	if w.Wish.Maintenance.V || sharing.OutOfService(node) { // the plan itself sets it, or metal oneview sync, which makes the rest
		held = ""
	}
	if states.Deployed(w.Was) { // in this run, its deployment may have ended
		return machine.ChangedSince(node, held)
	}
	if !w.foreseen(node) {
		other = w.Assumed.IsOther(node)
	}
	if node.InstanceUUID != "" {
		reserved = "it is reserved by " + node.InstanceUUID
	}
	if w.Plan.Costs(decide.Clean) && other == "" && w.Assumed.Power == PowerOff {
		on = w.Assumed.IsSwitched(node)
	}
	return machine.ChangedSince(node, other, reserved, held, on)
}

// foreseen reports whether the plan leads to the state of a node, or past it, without doing any more for that.
func (w *Work) foreseen(node *ironic.Node) bool {
	state := ironic.State(node.ProvisionState)
	if w.Plan.Has(DoConfigure, DoService, DoInspect, DoInspectAgain) {
		return w.Assumed.State == stateEnroll && state == ironic.State(states.GoalManageable)
	}
	return w.Assumed.State == stateEnroll || states.Settled(w.Plan.Goal, state)
}
