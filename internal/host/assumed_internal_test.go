package host

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// What others do between plan and apply keeps each step that moves the machine from it.
func TestWork_checksWhatThePlanAssumed(t *testing.T) {
	t.Parallel()
	walk := Step{Do: DoWalk, Goal: states.GoalAvailable, Cost: decide.Clean}
	cleans, inspects := []Step{walk}, []Step{{Do: DoInspect, Cost: decide.Restart}, walk}
	switches, writes := []Step{{Do: DoSwitchPower, Cost: decide.Restart}}, []Step{{Do: DoWrite}}
	type node = func(*ironic.Node)
	state := func(to ironic.State) node { return func(n *ironic.Node) { n.ProvisionState = string(to) } }
	held := func(reason, fault string) node {
		return func(n *ironic.Node) { n.Maintenance, n.MaintenanceReason, n.Fault = true, reason, fault }
	}
	reserved := func(n *ironic.Node) { n.InstanceUUID = "i1" }
	on := func(n *ironic.Node) { n.PowerState = "power on" }
	for name, tt := range map[string]struct {
		was  ironic.State
		do   []Step
		now  node
		says string // "": it is done
	}{
		"as planned":                          {"manageable", cleans, state("manageable"), ""},
		"verified since":                      {"enroll", cleans, state("manageable"), ""},
		"returned by another run":             {"manageable", cleans, state("available"), ""},
		"returned, to be inspected":           {"manageable", inspects, state("available"), `it is in state "available"`},
		"Ironic has ended what it did":        {"inspecting", cleans, state("manageable"), ""},
		"taken out of the pool":               {"available", inspects, state("manageable"), `it is in state "manageable"`},
		"failed since":                        {"manageable", cleans, state("inspect failed"), `it is in state "inspect failed"`},
		"deployed since":                      {"manageable", cleans, func(n *ironic.Node) { n.ProvisionState, n.InstanceUUID = "active", "i1" }, "it is reserved by i1"},
		"reserved since":                      {"available", switches, reserved, "it is reserved by i1"},
		"in maintenance since":                {"manageable", cleans, held("disk is read out", ""), "it is in maintenance (disk is read out)"},
		"in maintenance, to be switched":      {"manageable", switches, held("fan", ""), "it is in maintenance (fan)"},
		"Ironic does not reach the BMC":       {"manageable", cleans, held("", "power failure"), ""},
		"metal oneview sync has it":           {"manageable", cleans, held("node in use by OneView", ""), ""},
		"switched on since":                   {"manageable", cleans, on, "it is on, and was off"},
		"switched on since, to be switched":   {"manageable", switches, on, ""},
		"nothing moves it":                    {"manageable", writes, held("fan", ""), ""},
		"was deployed, and ended in this run": {"active", cleans, state("available"), ""},
		"is deployed, in maintenance since":   {"active", []Step{{Do: DoService, Cost: decide.Restart}}, held("fan", ""), "(fan)"},
	} {
		w := &Work{Order: Order{
			Plan: Plan{Steps: tt.do, Goal: states.GoalAvailable}, Was: &ironic.Node{}, Assumed: machine.Assumed{State: tt.was, Power: PowerOff},
		}}
		w.Was.ProvisionState = string(tt.was)
		n := &ironic.Node{}
		n.Name, n.ProvisionState, n.PowerState = "n", string(tt.was), "power off"
		tt.now(n)
		switch err := w.checkAssumed(n); {
		case tt.says == "" && err != nil, tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)):
			t.Errorf("%s: error = %v, want %q", name, err, tt.says)
		}
	}
}
