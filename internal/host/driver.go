package host

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// decideDriver forecasts the boot interface, and warns if the apply changes the driver of a deployed machine, or hardware interfaces of any
// machine.
func (p *plan) decideDriver() {
	if !p.InterfacesMove {
		return
	}
	p.ask(AskInterfaces)
	boot := p.bootInterface()
	p.Forecast.BootInterface = &boot
	p.warnDriver()
}

func (p *plan) bootInterface() decide.Value[string] {
	is, moves := p.Interfaces["boot"], p.Driver.Unknown || p.Driver.V != p.seen.Driver
	looked := slices.IndexFunc(p.seen.Interfaces, func(c InterfaceChange) bool { return c.Kind == "boot" })
	switch {
	case is.Name.Unknown, moves && !is.Name.Set:
		return decide.Unknown[string]()
	case looked >= 0 && p.seen.Interfaces[looked].To != "":
		return decide.Known(p.seen.Interfaces[looked].To)
	case !is.Name.Set && is.Was: // the default of the driver follows
		return decide.Unknown[string]()
	case !is.Name.Set, !p.seen.BootInterface.Set && !moves: // this user may not see it
		return p.seen.BootInterface
	}
	return is.Name
}

func (p *plan) warnDriver() {
	s := p.seen
	becomes := p.Driver.Set && s.Driver != "" && s.Driver != p.Driver.V
	moved := slices.DeleteFunc(slices.Clone(s.Interfaces), func(c InterfaceChange) bool { return c.From == c.To })
	if !becomes && len(moved) == 0 {
		return
	}
	changes := changesOf(moved)
	if becomes {
		changes = slices.Insert(changes, 0, fmt.Sprintf("its driver changes from %s to %s", s.Driver, p.Driver.V))
	}
	text := fmt.Sprintf("Host %s is in state %q, and %s.", p.Label, s.State, strings.Join(changes, ", "))
	keep := p.keepsInterfaces(becomes, moved)
	if !s.occupied() {
		if len(moved) > 0 && !onlyRescue(moved) {
			p.warn(p.AddressAt, "Hardware interface changes", text+" Ironic works that way from the next operation on."+keep)
		}
		return
	}
	if len(moved) > 0 && !states.InterfacesChangeable(s.State) { // see machine.PatchHost
		text += " Ironic accepts that only in maintenance, so the apply puts the node there for a moment."
	}
	switch {
	case becomes:
		p.warn(p.AddressAt, "Driver of a deployed machine changes", text+" The machine goes on running; from then on, Ironic switches, "+
			"restarts, rebuilds and cleans it that way."+keep)
	case onlyRescue(moved):
		p.warn(p.AddressAt, "Hardware interface changes", text+" The machine goes on running; only a rescue uses the interface.")
	default: // Terraform folds warnings with the same title, and those of other machines matter less
		p.warn(p.AddressAt, "Interface of a deployed machine changes", text+" The machine goes on running; Ironic restarts, rebuilds and "+
			"cleans it that way from then on."+keep)
	}
}

// onlyRescue reports whether the interface of rescues is the only one that changes.
func onlyRescue(changes []InterfaceChange) bool {
	return !slices.ContainsFunc(changes, func(c InterfaceChange) bool { return c.Kind != "rescue" })
}

// keepsInterfaces says what keeps the driver and the interfaces as they are; "" if the state does not tell. becomes says that the driver
// changes.
func (p *plan) keepsInterfaces(becomes bool, moved []InterfaceChange) string {
	if becomes {
		if p.seen.Address == "" || len(p.AddressAt) < 2 {
			return ""
		}
		return fmt.Sprintf(" To keep it, write the address as it is now: %q.", p.seen.Address)
	}
	values := make([]string, len(moved))
	for i, c := range moved {
		values[i] = fmt.Sprintf("%s = %q", c.Kind, c.From)
	}
	return fmt.Sprintf(" To keep it, set hardware_interfaces = { %s }.", strings.Join(values, ", "))
}

func changesOf(interfaces []InterfaceChange) []string {
	changes := make([]string, len(interfaces))
	for i, c := range interfaces {
		changes[i] = fmt.Sprintf("its %s interface changes from %s to %s", c.Kind, c.From, cmp.Or(c.To, "the driver's default"))
	}
	return changes
}

// refuseClass refuses to change the class of a deployed node.
func (p *plan) refuseClass() bool {
	if !p.seen.occupied() || p.seen.Class == "" || p.Class == "" || p.Class == p.seen.Class {
		return false
	}
	p.refuse(decide.At("resource_class"), "Class of a deployed node is fixed",
		fmt.Sprintf("Host %s is in state %q. Ironic changes the resource class of a node only while nothing is deployed on it. Destroy "+
			"its metal_deployment first, in an apply of its own, or leave resource_class as it is (%q).", p.Label,
			p.seen.State, p.seen.Class))
	return true
}

// warnCredentials warns of a BMC without a user name, unless the host stays in enroll, or without a password. Ironic may have the
// credentials already.
func (p *plan) warnCredentials() {
	if s := p.seen; !s.New {
		if s.Scheme == nil && s.Driver == p.Driver.V || s.Scheme != nil && p.Scheme != nil && s.Scheme.PasswordKey == p.Scheme.PasswordKey {
			return
		}
	}
	if p.NoUser && p.Target.V != string(GoalEnroll) && !p.Target.Unknown {
		p.warn(decide.At("bmc"), "BMC without a user name", "bmc has no username, so the BMC will probably refuse Ironic. Set username, "+
			"and password_wo with password_wo_version, or password. Terraform drops keys that do not exist, such as user.")
	}
	if p.NoPassword {
		p.warn(decide.At("bmc", "username"), "BMC without a password", "bmc has a username and no password, so the BMC will probably "+
			"refuse Ironic. Set password_wo and password_wo_version, or password.")
	}
}
