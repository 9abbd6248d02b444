package host

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
)

// Function is the hardware interface of a kind that the host has after the apply.
type Function struct {
	Name   string   // "": not known
	Others []string // those with a function that the site has enabled for the driver; none if it does not tell
}

// need is an attribute that needs a function of a hardware interface.
type need struct{ attribute, kind string }

// needs returns what the plan needs of hardware interfaces, without what is not known yet.
func (p *plan) needs() (needs []need) {
	for _, part := range p.Open {
		if kind, _, _ := strings.Cut(string(part), "_"); p.HardwareKnown {
			needs = append(needs, need{string(part), kind})
		}
	}
	switch again := p.Has(DoInspectAgain) && p.Triggers.Set; {
	case p.Has(DoReplace):
	case again:
		needs = append(needs, need{"inspect_triggers", "inspect"})
	case p.Has(DoInspect) && p.Inspect.V:
		needs = append(needs, need{"inspect", "inspect"})
	}
	if p.Has(DoSetBoot) {
		attribute := "boot_mode"
		if p.BootMode.IsNull() {
			attribute = "secure_boot"
		}
		needs = append(needs, need{attribute, "management"})
	}
	if r := p.seen.Runbooks; r != nil && r.Found != nil && !r.Open && slices.Contains(p.Asks, AskRunbook) {
		for _, step := range r.Found.Steps {
			needs = append(needs, need{machine.KeyRunbook, step.Interface})
		}
	}
	return slices.Compact(needs)
}

// refuseLacking refuses settings that the hardware interface of the host cannot bring to the machine: Ironic accepts them, and its
// operation fails, for some after the machine has left the pool.
func (p *plan) refuseLacking() {
	for _, needs := range p.needs() {
		p.ask(AskFunctions)
		is := p.seen.Functions[needs.kind]
		if named := p.Interfaces[needs.kind].Name; named.Set || named.Unknown {
			is.Name = named.V
		}
		if !machine.LacksFunction(needs.kind, is.Name) {
			continue
		}
		change := fmt.Sprintf("The site has none for its driver that can: enable one in Ironic, name it in hardware_interfaces = { %s = "+
			"... }", needs.kind)
		if len(is.Others) > 0 {
			change = fmt.Sprintf("Set hardware_interfaces = { %s = %q }", needs.kind, is.Others[0])
			if len(is.Others) > 1 {
				change += fmt.Sprintf(" (or %s)", strings.Join(is.Others[1:], ", "))
			}
		}
		p.refuse(decide.At(needs.attribute), "Hardware interface lacks the function", fmt.Sprintf("Host %s has the %s interface %s, "+
			"which does nothing for %s. %s, or remove %s.", p.Label, needs.kind, is.Name, needs.attribute, change, needs.attribute))
	}
}

// LookAtFunctions returns the hardware interfaces that the host has after the apply, by kind.
func LookAtFunctions(ctx context.Context, site *machine.Site, q NetworkQuestion, kinds map[string]Interface) map[string]Function {
	driver, found := expect.DefaultsOf(ctx, site, q.Driver), map[string]Function{}
	for _, kind := range ironic.HardwareInterfaces {
		others := slices.DeleteFunc(slices.Clone(driver.Enabled[kind]), func(name string) bool { return machine.LacksFunction(kind, name) })
		found[kind] = Function{Name: q.after(ctx, site, kind, kinds[kind]), Others: others}
	}
	return found
}
