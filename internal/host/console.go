package host

import (
	"fmt"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// The values of console.
const (
	ConsoleOn  = "enabled"
	ConsoleOff = "disabled"
)

// refuseConsole refuses a console that Ironic cannot keep enabled. prepared says that Ironic knows a BMC of the machine, or gets one.
func (p *plan) refuseConsole(prepared bool) bool {
	if p.asksConsole() {
		p.ask(AskConsole)
	}
	now := p.seen.Answers.Console
	if p.Console.V != ConsoleOn {
		return p.refuseMovingConsole()
	}
	if !prepared || p.ByAgent {
		p.refuse(decide.At("console"), "Console needs a BMC", fmt.Sprintf("Ironic reaches the console of a machine through its BMC, and "+
			"knows none of host %s. Set bmc, or remove console.", p.Label))
		return true
	}
	if now == nil || !p.asksConsole() {
		return false
	}
	switch {
	case now.Interface == ironic.ConsoleNone:
		p.refuse(decide.At("console"), "Host has no console interface",
			fmt.Sprintf("The console interface of host %s is %s, and Ironic enables no console with it. Set console in "+
				"hardware_interfaces, such as %s for the driver ipmi, or remove console here.", p.Label, now.Interface,
				ironic.ConsoleSocat))
	case ironic.IsGraphical(now.Interface):
		p.refuse(decide.At("console"), "Graphical console does not last",
			fmt.Sprintf("The console interface of host %s is %s. Ironic ends a graphical console 10 minutes after its start, and when "+
				"the machine is undeployed, so every plan would enable it again. Remove console here. To open the console when you need "+
				"it, run metal console %s.", p.Label, now.Interface, p.Label))
	default:
		return false
	}
	return true
}

// refuseMovingConsole refuses to change the driver or the console interface while a console is enabled that the configuration does not
// control: Ironic refuses another driver, and leaves the process of the old interface behind.
func (p *plan) refuseMovingConsole() bool {
	now := p.seen.Answers.Console
	if !p.ConsoleMoves || !p.Console.IsNull() || now == nil || !now.Moves || !now.Enabled {
		return false
	}
	p.refuse(decide.At("hardware_interfaces"), "Console is enabled",
		fmt.Sprintf("The driver or the console interface of host %s changes, and its console is enabled. Ironic refuses another driver "+
			"then, and does not stop the console of another interface. Set console = %q to disable it in the same apply, or disable it "+
			"yourself: baremetal node console disable %s.", p.Label, ConsoleOff, p.Label))
	return true
}

// asksConsole reports whether a plan depends on the console that the host has now.
func (p *plan) asksConsole() bool {
	return !p.Console.IsNull() && p.Console != p.seen.Console || p.ConsoleMoves
}

// movesConsole reports whether the driver or the console interface of the node changes, or may.
func (p *plan) movesConsole() bool {
	now := p.seen.Answers.Console
	return p.ConsoleMoves && (now == nil || now.Moves || now.MayMove)
}

func (p *plan) isConsoleOn() bool {
	if now := p.seen.Answers.Console; now != nil {
		return now.Enabled
	}
	return p.seen.Console.V == ConsoleOn
}

func (p *plan) setsConsole() bool {
	if p.Console.IsNull() || !p.asksConsole() {
		return false
	}
	isOn := p.isConsoleOn() && !p.Has(DoCloseConsole)
	return p.Console.Unknown || isOn != (p.Console.V == ConsoleOn)
}

// console returns the step that enables or disables the console. If the node leaves enroll anyway, Ironic has verified the BMC by then.
func (p *plan) console(leavesEnroll bool) Step {
	step := Step{Do: DoSetConsole}
	if leavesEnroll {
		step.Goal = states.GoalManageable
	}
	return step
}

// decideConsole adds the steps that enable or disable the console, in every provision state. A server that OneView users have keeps its
// console as it is.
func (p *plan) decideConsole() {
	if p.seen.OutOfService && p.Maintenance.IsNull() {
		p.Forecast.KeepsConsole = p.setsConsole()
		return
	}
	if p.movesConsole() && !p.Console.IsNull() && p.isConsoleOn() {
		p.add(Step{Do: DoCloseConsole})
	}
	opens := p.setsConsole() && p.Console.V != ConsoleOff
	if p.setsConsole() {
		p.add(p.console(p.Has(DoWalk, DoVerify)))
	}
	switch {
	case opens && p.seen.occupied():
		p.warn(decide.At("console"), "Console is enabled",
			fmt.Sprintf("Ironic enables the console of host %s, which is deployed. It connects to the BMC for that, and touches nothing "+
				"on the machine: the machine is not restarted or switched, and what runs on it goes on.", p.Label))
	case !opens && p.Has(DoSetConsole, DoCloseConsole):
		p.warn(decide.At("console"), "Console is disabled", fmt.Sprintf("Ironic disables the console of host %s. That ends all its "+
			"sessions, and touches nothing on the machine.", p.Label))
	}
}

// foreseeConsole forecasts what a change of the console does to the node: Ironic clears last_error.
func (p *plan) foreseeConsole() {
	if p.Has(DoSetConsole, DoCloseConsole) {
		p.Forecast.LastError = p.Forecast.LastError || p.seen.LastError
	}
}
