package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/words"
)

func checkConductors(s *sight) []Check {
	const name = "conductors"
	if s.conductors.err != nil {
		return []Check{s.unknown(name, s.conductors.err)}
	}
	groups := map[string]bool{} // with a conductor that is alive
	living, c := 0, Check{Name: name, Result: OK}
	for _, conductor := range s.conductors.value {
		state := "not alive"
		if conductor.Alive {
			living++
			state = "alive"
			groups[conductor.Group] = true
		}
		in := ""
		if conductor.Group != "" {
			in = ", group " + conductor.Group
		}
		c.Details = append(c.Details, fmt.Sprintf("%s%s: %s, last sign of life %s", conductor.Hostname, in, state,
			clock.Text(conductor.UpdatedAt, s.now)))
	}
	c.Details = fold(c.Details)
	c.Fact = fmt.Sprintf("%d of %s alive. Ironic's API does not tell their versions.", living, are(len(s.conductors.value), "conductor"))
	alone := map[string]int{}
	for _, n := range s.nodes.value {
		if !groups[n.ConductorGroup] {
			alone[n.ConductorGroup]++
		}
	}
	switch {
	case living == 0:
		c.Result, c.Next = Problem, "Start ironic-conductor, and see its log. Without one, Ironic accepts no operation. If it runs, its "+
			"clock may be behind."
	case len(alone) > 0:
		c.Result, c.Next = Problem, "Start a conductor of each group that has machines, or change conductor_group of these machines."
		for _, group := range slices.Sorted(maps.Keys(alone)) {
			c.Fact += fmt.Sprintf(" No conductor of group %q is alive, which has %s.", group, words.Count(alone[group], "machine"))
		}
	case living < len(s.conductors.value):
		c.Result, c.Next = Warning, "If a conductor that is not alive is to work, start it and see its log. Ironic keeps those that were "+
			"removed in its database."
	}
	return []Check{c}
}

// toldKinds are the kinds of interfaces of which the check names all that are enabled. They decide how a machine boots and is deployed.
var toldKinds = []string{"boot", "deploy", "inspect", "management", "network", "power"}

// checkDrivers says what conductors have enabled, and which machines need something else.
func checkDrivers(s *sight) []Check {
	const name = "drivers and interfaces"
	if s.drivers.err != nil {
		return []Check{s.unknown(name, s.drivers.err)}
	}
	byName := map[string]ironic.Driver{}
	c := Check{Name: name, Result: OK}
	for _, d := range s.drivers.value {
		byName[d.Name] = d
		var kinds []string
		for _, kind := range toldKinds {
			if len(d.Enabled[kind]) > 0 {
				kinds = append(kinds, kind+" "+strings.Join(d.Enabled[kind], "|"))
			}
		}
		c.Details = append(c.Details, d.Name+": "+strings.Join(kinds, ", "))
	}
	c.Details = fold(c.Details)
	var wrong []string
	for i := range s.nodes.value {
		if lacks := lacking(byName, &s.nodes.value[i]); lacks != "" {
			wrong = append(wrong, label(&s.nodes.value[i])+": "+lacks)
		}
	}
	c.Fact = fmt.Sprintf("Conductors have enabled %s.", words.Count(len(s.drivers.value), "driver"))
	if len(s.drivers.value) == 0 {
		c.Result, c.Fact, c.Next = Problem, "Ironic offers no driver.", "Start a conductor with enabled_hardware_types in ironic.conf."
	} else if len(wrong) > 0 {
		c.Result, c.Details = Problem, append(fold(wrong), c.Details...)
		c.Fact += fmt.Sprintf(" %s a driver or an interface that no conductor has enabled.", needs(len(wrong), "machine"))
		c.Next = "Enable it in ironic.conf (enabled_hardware_types, enabled_…_interfaces) and restart the conductors, or " +
			"change the machines."
	}
	return []Check{c}
}

// lacking names a driver or an interface of a machine that no conductor has enabled; "" if there is none.
func lacking(enabled map[string]ironic.Driver, n *ironic.Node) string {
	driver, has := enabled[n.Driver]
	if !has {
		return "driver " + n.Driver
	}
	used := ironic.InterfacesOf(n)
	for _, kind := range ironic.HardwareInterfaces {
		if all := driver.Enabled[kind]; used[kind] != "" && len(all) > 0 && !slices.Contains(all, used[kind]) {
			return fmt.Sprintf("%s interface %s of driver %s", kind, used[kind], n.Driver)
		}
	}
	return ""
}
