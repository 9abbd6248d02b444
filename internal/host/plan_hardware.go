package host

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// openParts returns the parts of the hardware configuration that are not known to be on the machine.
func openParts(w Wish, s Seen) []HardwarePart {
	var machine HardwareSeen
	if s.Machine != nil {
		machine = *s.Machine
	}
	return w.Hardware.Work(s.OnMachine, machine).Parts()
}

// liveParts are the parts that can be changed on a deployed machine.
func liveParts(parts []HardwarePart) []HardwarePart {
	return slices.DeleteFunc(slices.Clone(parts), func(part HardwarePart) bool { return part == PartRAID })
}

// configuration returns the step that brings the hardware settings in p.Open to the machine. It wipes if it deletes volumes.
func (p *plan) configuration() Step {
	step := Step{Do: DoConfigure, Parts: p.Open, Cost: decide.Clean}
	if p.deletesVolumes() {
		step.Cost = decide.Wipe
	}
	return step
}

func (p *plan) deletesVolumes() bool {
	return slices.Contains(p.Open, PartRAID) && p.Hardware.RAID != nil && p.Hardware.RAID.DeleteExisting
}

// newHardware decides about the hardware settings of a new host. A node that a killed run has begun may have the volumes already.
func (p *plan) newHardware(prepared bool) {
	p.Open = p.Hardware.Parts()
	if len(p.Open) == 0 || p.HardwareKnown && (p.Target.V == string(GoalEnroll) || !prepared) {
		p.Forecast.Pending = decide.Known(p.Open)
		return
	}
	p.Forecast.Pending = decide.Unknown[[]HardwarePart]()
	if !p.deletesVolumes() {
		return
	}
	if p.seen.Machine == nil && p.HardwareKnown {
		p.ask(AskHardware)
	}
	if p.seen.Machine != nil && !slices.Contains(p.Hardware.Work(Hardware{}, *p.seen.Machine).Parts(), PartRAID) {
		return
	}
	p.warnVolumes()
}

func (p *plan) order() string {
	if p.TakesTurns {
		return "Hosts take turns, as hardware_changes.rollout says."
	}
	return "Hosts restart together, unless hardware_changes.rollout lets them take turns."
}

// decideHardware decides about the hardware settings of an existing host, whose steps are planned. It reports whether its warning covers
// the cleaning of a host that leaves the pool.
func (p *plan) decideHardware() (leaves bool) {
	configures, services := p.Has(DoConfigure), p.Has(DoService)
	changed := !reflect.DeepEqual(p.Hardware, p.seen.Hardware)
	p.Forecast.Pending = decide.Known(p.Open)
	if p.HardwareKnown && (configures || services || changed) {
		p.checkSettings()
	}
	if len(p.Open) == 0 {
		return false
	}
	if configures || services || !p.HardwareKnown {
		p.Forecast.Pending = decide.Unknown[[]HardwarePart]()
	}
	changes := "changes"
	if p.ServicesActive.Unknown {
		changes = "may change"
	}
	parts, at := strings.Join(HardwarePartNames(p.Open), ", "), decide.At(string(p.Open[0]))
	switch {
	case services:
		parts = strings.Join(HardwarePartNames(liveParts(p.Open)), ", ")
		p.warn(at, "Deployed machine restarts", fmt.Sprintf("Host %s is deployed. Ironic %s %s in a service: the machine restarts, and "+
			"what runs on it is down for that time. %s", p.Label, changes, parts, p.order()))
	case configures && states.InPool(p.seen.node()):
		leaves = true
		p.warn(at, "Host leaves the pool", fmt.Sprintf("Host %s is available. For %s, Ironic takes it out of the pool and restarts it%s.",
			p.Label, parts, p.thenReturns()))
	case configures:
		p.warn(at, "Hardware change restarts the machine",
			fmt.Sprintf("Ironic changes %s of host %s in a manual cleaning. The machine restarts.", parts, p.Label))
	case changed:
		p.warn(at, "Hardware change waits", fmt.Sprintf("Host %s is in state %s%s, so %s does not change now: pending_changes lists it. "+
			"The change is planned again when Ironic may clean the machine.%s", p.Label, p.seen.State, p.holds(), parts,
			p.serviceHint(p.Open)))
	}
	if configures && p.deletesVolumes() {
		p.warnVolumes()
	}
	return leaves
}

// checkSettings refuses settings that the BIOS of the machine does not accept.
func (p *plan) checkSettings() {
	unsent := p.Hardware.Only(openParts(p.Wish, Seen{Notes: p.seen.Notes}))
	if p.seen.Machine == nil {
		if len(unsent.Parts()) > 0 {
			p.ask(AskHardware)
		}
		return
	}
	for _, unfit := range unsent.Unfit(*p.seen.Machine) {
		p.refuse(decide.At("bios_settings", decide.Key(unfit.Setting)), "BIOS setting is not possible",
			fmt.Sprintf("Host %s: %s", p.Label, unfit.Reason))
	}
}

// keptVolumes says which volumes skip_block_devices keeps; "" if it keeps nothing.
func (p *plan) keptVolumes() string {
	switch {
	case len(p.Skips.V) == 0:
		return ""
	case p.Hardware.RAID.isSoftware():
		return " Of skip_block_devices, only entries with volume_name keep volumes."
	}
	return " The BMC does not heed skip_block_devices: it keeps none of them."
}

func (p *plan) warnVolumes() {
	p.warn(decide.At("raid", "delete_existing"), "All RAID volumes are deleted",
		fmt.Sprintf("Ironic deletes every RAID volume of host %s before it creates the configured ones. All data on the disks of these "+
			"volumes is lost.%s", p.Label, p.keptVolumes()))
}

func (p *plan) thenReturns() string {
	switch {
	case p.Target.V != string(states.GoalAvailable):
		return ""
	case isFalse(p.AutomatedClean):
		return ", and makes it available again"
	}
	return ", and cleans it before it is available again: the machine loses the data that the site's clean steps erase"
}

// holds says what, besides its state, keeps Ironic from cleaning a host.
func (p *plan) holds() string {
	text := ""
	if p.seen.Instance != "" {
		text += " and reserved"
	}
	if p.Held {
		text += " and in maintenance"
	}
	return text
}

func (p *plan) serviceHint(parts []HardwarePart) string {
	if p.ServicesActive.V || !p.seen.deployed() || len(liveParts(parts)) == 0 {
		return ""
	}
	return ` Since API 1.87 of Ironic, hardware_changes = { on_active = "service" } changes BIOS settings and firmware ` +
		"of a deployed machine."
}
