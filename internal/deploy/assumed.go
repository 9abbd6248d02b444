package deploy

import (
	"fmt"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
)

// Assumed is what a plan has seen of a machine that it restarts or switches.
type Assumed struct {
	State       ironic.State `json:"state,omitempty"`
	Maintenance bool         `json:"maintenance,omitempty"`
	Power       PowerState   `json:"power,omitempty"`    // of a machine to restart; "" if the plan does not know it
	Switched    string       `json:"switched,omitempty"` // when its power was changed last; "" if the plan does not know it
}

// assume notes in the steps that restart or switch the machine what the plan has seen of it.
func (d *decision) assume() {
	for i := range d.plan.Steps {
		step := &d.plan.Steps[i]
		switch step.Do.Phase() { //nolint:exhaustive // Ironic's own rules and the walk guard the others
		case Restarts, Switches, Checks:
			step.Was = Assumed{State: d.seen.State, Maintenance: d.seen.Sight.Maintenance}
		}
		if step.Do == DoRestart && !d.plan.Operates() {
			step.Was.Switched = d.seen.Sight.Switched
			if power := d.seen.Power; power.Set && !power.Unknown {
				step.Was.Power = power.V
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
	differs := s.Was.differences(s.Do, node)
	if len(differs) == 0 {
		return nil
	}
	return &failure.Error{
		Kind: machine.KindRefused, Node: node, Fact: fmt.Sprintf("node %s was left as it is, because it has changed since the plan: %s",
			ironic.NodeLabel(node), strings.Join(differs, ", and ")),
		Advice: "Find out who uses the machine now, then run terraform plan again.",
	}
}

// differences says how a node differs from what the plan has seen.
func (a Assumed) differences(do Kind, node *ironic.Node) (texts []string) {
	if a == (Assumed{}) && do != DoRestart && do != DoPowerOn && do != DoPowerOff {
		return nil
	}
	if state := ironic.State(node.ProvisionState); state != stateActive && state != a.State {
		texts = append(texts, fmt.Sprintf("it is in state %q", state))
	}
	if node.Maintenance && !a.Maintenance && do != DoCheck {
		texts = append(texts, "it is in maintenance"+inBrackets(node.MaintenanceReason))
	}
	power, switched := machine.Power(node), machine.PowerChangedAt(node)
	switch {
	case do != DoRestart, power == string(PowerOff): // a machine that is off is only switched on, for example after a killed restart
	case a.Power == PowerOff && power == string(PowerOn):
		texts = append(texts, "it is on, and was off")
	case a.Switched != "" && switched != "" && switched != a.Switched:
		texts = append(texts, fmt.Sprintf("its power was changed at %s, so it may have been restarted already", switched))
	}
	return texts
}
