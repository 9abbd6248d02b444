package host

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// cleaningSummary is the same for all hosts, so that Terraform folds their warnings into one; and so are the other summaries.
const cleaningSummary = "Cleaning erases data"

// warnCleaning warns of cleaning, and of the inspection before it.
func (p *plan) warnCleaning(inspects bool) {
	becomes := fmt.Sprintf("Host %s becomes available.", p.Label)
	if p.Target.Unknown {
		becomes = fmt.Sprintf("The target_state of host %s is not known yet. It may become available.", p.Label)
	}
	since := ""
	if p.seen.Anew {
		since = " Its record was made anew after Ironic had lost it: if something was installed on the machine meanwhile, do not apply. " +
			"Adopt it, with target_state = \"manageable\"."
	}
	p.warn(decide.At("target_state"), cleaningSummary, fmt.Sprintf("%s Ironic %s it on the way: the machine boots, and loses the data "+
		"that the site's clean steps erase.%s", becomes, preparation(inspects, true), since))
}

func (p *plan) warnInspection(again bool) {
	inspects, at, host := "inspects", decide.At("inspect"), p.Label
	if p.Inspect.Unknown || again && p.Triggers.Unknown {
		inspects = "may inspect"
	}
	if p.Has(DoReplace) {
		at = decide.At("replaced")
	} else if again {
		at, host = decide.At("inspect_triggers"), host+" again"
	}
	p.warn(at, "Inspection boots the machine", fmt.Sprintf("Ironic %s host %s. The machine boots for that.", inspects, host))
}

// preparation returns what Ironic does with a machine, such as "inspects and cleans"; "" if nothing.
func preparation(inspects, cleans bool) string {
	var does []string
	if inspects {
		does = append(does, "inspects")
	}
	if cleans {
		does = append(does, "cleans")
	}
	return strings.Join(does, " and ")
}

// warnNoPort warns of a host whose ramdisk boots from the network, and that has no port for it. It is called if the ramdisk boots; inspects
// says that an inspection comes first.
func (p *plan) warnNoPort(inspects bool) {
	if p.ByAgent {
		return
	}
	if p.seen.Network == nil {
		p.ask(AskNetwork)
		return
	}
	boot := *p.seen.Network
	boot.Open = inspects && p.seen.OpenPorts
	if lacks := boot.Lacks(); lacks != "" {
		p.warn(decide.At("ports"), "Network boot needs a port",
			fmt.Sprintf("Host %s boots Ironic's ramdisk from the network (boot interface %s), and %s. Ironic then waits for a ramdisk "+
				"that never reports, 30 minutes by default. Name the network card that boots: ports = { \"<MAC address>\" = { "+
				"pxe_enabled = true } }. Ignore this only if the site boots unknown machines into the ramdisk.", p.Label,
				boot.Interface, lacks))
	}
}

// foreseeWalk forecasts the values that a walk changes; a service changes the provision state alone. An empty last_error or fault stays
// empty.
func (p *plan) foreseeWalk(walks bool) {
	p.Forecast.State = decide.Unknown[ironic.State]()
	if !walks {
		return
	}
	p.Forecast.LastError, p.Forecast.Fault = p.seen.LastError, p.seen.Fault
	if p.Power.IsNull() && (!p.Has(DoLeavePool) || p.Costs(decide.Restart)) {
		p.Forecast.Power = decide.Unknown[string]()
	}
}

// refuseInspection refuses a change of inspect_triggers if Ironic cannot inspect the machine now.
func (p *plan) refuseInspection() bool {
	if p.Triggers.Unknown || !p.triggered() {
		return false
	}
	why := ""
	switch s := p.seen; {
	case s.Instance != "" && !s.occupied():
		why = fmt.Sprintf("is reserved by %s. Ironic inspects a machine only while the node is free. Destroy its metal_allocation first, "+
			"in an apply of its own", s.Instance)
	case s.deployed():
		why = fmt.Sprintf("is in state %q. Ironic inspects a machine only while nothing is deployed on it. Destroy its metal_deployment "+
			"first, in an apply of its own", s.State)
	case p.Target.V == string(GoalEnroll):
		why = "has target_state = \"enroll\". Ironic inspects no machine in state enroll. Set target_state to manageable or available"
	case isFalse(p.PowerManaged) && !p.ByAgent:
		why = "has no BMC, so Ironic cannot inspect it. Give it a bmc, or a driver with driver_info"
	default:
		return false
	}
	p.refuse(decide.At("inspect_triggers"), "Host cannot be inspected now",
		fmt.Sprintf("Host %s %s, or leave inspect_triggers as they are.", p.Label, why))
	return true
}

// warnHeld says that the host waits for its server, and so does its power.
func (p *plan) warnHeld(held bool) {
	if !held {
		return
	}
	if p.Power.Set {
		p.Forecast.Power = p.seen.Power
	}
	p.warn(nil, "Host is used by OneView", fmt.Sprintf("Host %s is out of service, because a OneView user has its server. "+
		"It stays so until the server is free; then metal oneview sync cleans it and makes it available.", p.Label))
}

// warnStray says why a reserved host does not reach its target state.
func (p *plan) warnStray(held bool) {
	if !p.strays() || held || p.Has(DoWalk, DoVerify) {
		return
	}
	why := fmt.Sprintf("Deploying its instance needs state available, so the host stays there. It becomes %s when the reservation ends.",
		p.goals()[0])
	if !states.InPool(p.seen.node()) {
		why = "That is not an allocation: another client of Ironic may be about to adopt what runs on the machine, so the host stays as " +
			"it is. If nothing runs on it, end the reservation: metal release --node " + p.Label + "."
	}
	p.warn(decide.At("target_state"), "Reserved host is not in its target state", fmt.Sprintf("Host %s is %s, and reserved by %s. %s",
		p.Label, p.seen.State, p.seen.Instance, why))
}

// withoutBMC warns that Ironic cannot prepare or switch a machine without a BMC in this state, if the configuration demands that and the
// machine is not deployed.
func withoutBMC(w Wish, s ironic.State) []decide.Notice {
	var missed []string
	if w.Target.V != string(GoalEnroll) && !states.Settled(states.Goal(w.Target.V), s) {
		missed = append(missed, fmt.Sprintf("it stays in state %s and does not become %s", s, cmp.Or(w.Target.V, "what target_state says")))
	}
	if w.Power.Set {
		missed = append(missed, "its power is not switched")
	}
	if len(missed) == 0 {
		return nil
	}
	return []decide.Notice{decide.Warn(nil, "Host without BMC",
		fmt.Sprintf("Ironic knows no BMC of host %s: %s. Give the host a bmc with address, username and password_wo, a driver with its "+
			"driver_info, or power_control = \"agent\". Until then, Ironic can only enroll the machine; target_state = \"enroll\" "+
			"without power_state ends this warning.", w.Label, strings.Join(missed, ", and ")))}
}

// warnNew warns of a new host that is cleaned. The warning is one line: a run may have many, and Terraform folds them.
func (p *plan) warnNew() {
	if p.costs(DoWalk) && p.seen.TakesOver == "" {
		p.warn(decide.At("target_state"), "New host is cleaned", fmt.Sprintf("Host %s becomes available: Ironic cleans the machine for "+
			"that, whatever it runs now. To keep its data, set target_state = \"manageable\".", p.Label))
	}
}

// takeOver warns of a discovered node that the host takes over, and of the node in use of a host that it replaces.
func (p *plan) takeOver() {
	if p.seen.Replaces != "" {
		p.warn(nil, "Something is deployed on the node",
			fmt.Sprintf("The state has the host of node %s. If it is tainted, or named by -replace, this plan replaces it. Ironic deletes "+
				"no node in use: the apply fails, and leaves the machine as it is, unless it replaces its metal_deployment and "+
				"metal_allocation, too, which wipes the machine. To keep it, run terraform untaint, or leave out -replace.",
				p.seen.Replaces))
	}
	if p.seen.TakesOver == "" {
		p.ask(AskTakeOver)
		return
	}
	p.notice(TakeOver(p.Wish, p.seen.TakesOver))
}

// TakeOver warns of a discovered node that a new host takes over.
func TakeOver(w Wish, node string) decide.Notice {
	p := &plan{Wish: w}
	inspects, cleans := p.mayBeInspected(), p.mayBeCleaned()
	effect := ""
	switch does := preparation(inspects, cleans); {
	case cleans:
		effect = fmt.Sprintf(" Ironic %s it: the machine boots, and loses the data that the site's clean steps erase.", does)
	case inspects:
		effect = fmt.Sprintf(" Ironic %s it: the machine boots.", does)
	}
	return decide.Warn(nil, "Discovered node is taken over", fmt.Sprintf("Ironic has node %s already, which discovery has created. Host "+
		"%s takes it over instead of creating another.%s", node, w.Label, effect))
}
