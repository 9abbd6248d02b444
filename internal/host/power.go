package host

import (
	"fmt"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// The power states of power_state.
const (
	PowerOn  = "on"
	PowerOff = "off"
)

// switches reports whether the machine is switched. Ironic knows the power state of no machine without a BMC.
func (p *plan) switches() bool {
	return !p.Power.IsNull() && (isFalse(p.seen.PowerManaged) || p.Power != p.seen.Power)
}

// learnsPower reports whether Ironic does not know the power state of an available host, for example after an interrupted run. Ironic
// allocates no such node, and the apply switches no reserved one. A host that was only imported stays as it is until an apply changes it.
func (p *plan) learnsPower() bool {
	s := p.seen
	applies := s.Applied || p.Writes || len(p.Steps) > 0
	return applies && !p.Has(DoWalk) && s.Instance == "" && s.PowerManaged.V && !p.ByAgent && p.Power.IsNull() && s.Power.IsNull() &&
		p.Target.V == string(states.GoalAvailable) && states.InPool(s.node())
}

// restingPower returns the power state of a machine that Ironic has cleaned.
func (p *plan) restingPower() string {
	if p.NeverOff {
		return PowerOn
	}
	return PowerOff
}

// keepDeployedPower leaves the power of a deployed machine to its deployment. It warns, unless the power was applied before the
// deployment, and is meant for after it.
func (p *plan) keepDeployedPower() {
	is := p.seen.Power
	if !p.seen.occupied() || !p.Power.Set || !is.Set || p.Power == is {
		return
	}
	p.Forecast.Power = is
	if !slices.Contains(p.seen.Powers, p.Power.V) {
		p.warn(decide.At("power_state"), "Deployment controls the power",
			fmt.Sprintf("Host %s is deployed, so its metal_deployment controls its power: the machine stays %s. The host's power_state "+
				"= %q takes effect when the host is not deployed any more. To switch the machine now, set power_state on its "+
				"metal_deployment.", p.Label, is.V, p.Power.V))
	}
}

func (p *plan) warnPower() {
	if step, does := p.Find(DoSwitchPower); does {
		is := "is switched " + step.Power
		if step.Power == "" {
			is = "may be switched on or off"
		}
		p.warn(decide.At("power_state"), "Power is switched", fmt.Sprintf("Host %s %s.", p.Label, is))
	}
	if step, does := p.Find(DoLearnPower); does {
		p.Forecast.Power = decide.Unknown[string]()
		p.warn(decide.At("power_state"), "Power is switched", fmt.Sprintf("Host %s is available, and Ironic does not know its power "+
			"state, perhaps because a run was interrupted. Ironic allocates no such node. The host is switched %s.", p.Label, step.Power))
	}
}

// RefusePowerOff refuses power_state = "off" for a machine that Ironic never switches off.
func RefusePowerOff(w Wish) []decide.Notice {
	if !w.NeverOff || w.Power.V != PowerOff {
		return nil
	}
	return []decide.Notice{decide.Refuse(decide.At("power_state"), "Power-off is disabled",
		"disable_power_off is set, so Ironic never switches the machine off. Remove power_state, or set disable_power_off = false.")}
}

func (p *plan) boots() bool {
	return !p.BootMode.IsNull() && p.BootMode != p.seen.BootMode || !p.SecureBoot.IsNull() && p.SecureBoot != p.seen.SecureBoot
}

// decideBoot warns that boot mode or secure boot change. Those of a deployed or held host stay until it is free.
func (p *plan) decideBoot(held bool) {
	switch {
	case p.Has(DoSetBoot):
		p.warn(decide.At("boot_mode"), "Machine may restart",
			fmt.Sprintf("Ironic changes the boot mode or secure boot of host %s. It restarts the machine if its BMC needs that.", p.Label))
	case p.boots() && held:
		p.Forecast.KeepsBoot = true
	case p.boots() && p.seen.occupied():
		p.Forecast.KeepsBoot = true
		p.warn(decide.At("boot_mode"), "Deployed host keeps its boot mode", fmt.Sprintf("Host %s is deployed, and Ironic might restart "+
			"it to change boot_mode or secure_boot. They take effect when the host is not deployed any more.", p.Label))
	}
}

// KeepsBootSettings reports whether the boot mode and secure boot of a node are those of its host: a deployment may have changed them.
func KeepsBootSettings(node *ironic.Node) bool { return !states.IsOccupied(node) }

// ShowsPower reports whether a node says whether its machine is on, or that this is not known. Ironic may not know it of a deployed machine
// whose record is new, and a host does not switch that.
func ShowsPower(node *ironic.Node) bool {
	return node.PowerState != "" || machine.PowerManaged(node) && !states.Deployed(node)
}
