package machine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Assumed is what was seen of a machine when it was decided to move it: by a plan, or by an operator who was asked.
type Assumed struct {
	State       ironic.State `json:"state,omitempty"` // "": not known
	Maintenance bool         `json:"maintenance,omitempty"`
	Power       string       `json:"power,omitempty"`    // on or off; "" if that is not known, or does not matter
	Switched    string       `json:"switched,omitempty"` // when its power was changed last; likewise
}

// AssumedOf returns what is seen of a node.
func AssumedOf(n *ironic.Node) Assumed {
	return Assumed{
		State: ironic.State(n.ProvisionState), Maintenance: ByPeople(n), Power: Power(n), Switched: PowerChangedAt(n),
	}
}

// ByPeople reports whether a node is in maintenance that Ironic has not set itself, because of a fault.
func ByPeople(n *ironic.Node) bool { return n.Maintenance && n.Fault == "" }

// IsOther says that a node is in another state; "" if it is not. Ironic leaves a state in progress by itself.
func (a Assumed) IsOther(n *ironic.Node) string {
	state := ironic.State(n.ProvisionState)
	if a.State == "" || a.State == state || states.InProgress(a.State) {
		return ""
	}
	return fmt.Sprintf("it is in state %q", state)
}

// IsHeld says that people have put a node into maintenance since; "" if they have not.
func (a Assumed) IsHeld(n *ironic.Node) string {
	if a.Maintenance || !ByPeople(n) {
		return ""
	}
	if n.MaintenanceReason == "" {
		return "it is in maintenance"
	}
	return "it is in maintenance (" + n.MaintenanceReason + ")"
}

// IsSwitched says that the power of a machine that is on was changed since; "" if it was not, or if nothing tells.
func (a Assumed) IsSwitched(n *ironic.Node) string {
	switched := PowerChangedAt(n)
	switch {
	case n.PowerState != powerOn, states.InProgress(a.State): // Ironic switches it, too
	case a.Power == "off":
		return "it is on, and was off"
	case a.Switched != "" && switched != "" && switched != a.Switched:
		return fmt.Sprintf("its power was changed at %s, so it may have been restarted already", switched)
	}
	return ""
}

// Changes says in all how a node differs; "" if it does not.
func (a Assumed) Changes(n *ironic.Node) string {
	return joined([]string{a.IsOther(n), a.IsHeld(n), a.IsSwitched(n)})
}

// ChangedSince returns an error of KindRefused that says how a node has changed since the plan; nil if all texts are empty.
func ChangedSince(n *ironic.Node, how ...string) error {
	text := joined(how)
	if text == "" {
		return nil
	}
	return &failure.Error{
		Kind: KindRefused, Node: n, Fact: fmt.Sprintf("node %s was left as it is, because it has changed since the plan: %s",
			ironic.NodeLabel(n), text),
		Advice: "Find out who uses the machine now, then run terraform plan again.",
	}
}

func joined(texts []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return text == "" }), ", and ")
}
