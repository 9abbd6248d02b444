// Package switches has the rules of Ironic's network interface ironic-networking (39.0) for the switch ports and bonds that ports and port
// groups name in extra. It follows Ironic's source, and what Ironic was seen to answer.
package switches

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
)

// Interface is the name of the network interface.
const Interface = "ironic-networking"

// Port is a port as the interface sees it.
type Port struct {
	UUID, Group string // Group is the UUID of its port group
	PXE         bool
	Link, Extra map[string]any
}

// Group is a port group as the interface sees it.
type Group struct {
	UUID  string
	Extra map[string]any
}

// kind is a schema of Ironic. It declares itself as of JSON schema's draft 4, in which "if" and "then" mean nothing: Ironic does not check
// that the VLANs fit the mode.
type kind struct {
	title    string
	required []string
	members  map[string]func(any) string
}

var (
	switchport = kind{"switchport", []string{"mode", "native_vlan"}, map[string]func(any) string{
		"mode": among("access", "trunk", "hybrid"), "native_vlan": vlan, "allowed_vlans": vlans, "lag_name": name, "mtu": mtu,
	}}
	lag = kind{"LAG", []string{"mode", "aggregation_mode"}, map[string]func(any) string{
		"mode": among("access", "trunk", "hybrid"), "native_vlan": vlan, "allowed_vlans": vlans,
		"aggregation_mode": among("lacp", "static"), "mtu": mtu,
	}}
)

// fault returns the first violation of a schema, "" if there is none.
func (k kind) fault(value any) string {
	all, ok := value.(map[string]any)
	if !ok {
		return api.PyRepr(value) + " is not of type 'object'"
	}
	for _, key := range api.SortedKeys(all) {
		if k.members[key] == nil {
			return fmt.Sprintf("Additional properties are not allowed (%s was unexpected)", api.PyRepr(key))
		}
	}
	for _, key := range k.required {
		if _, has := all[key]; !has {
			return api.PyRepr(key) + " is a required property"
		}
	}
	for _, key := range api.SortedKeys(all) {
		if fault := k.members[key](all[key]); fault != "" {
			return fault
		}
	}
	return ""
}

func among(allowed ...string) func(any) string {
	return func(value any) string {
		if text, is := value.(string); !is || !slices.Contains(allowed, text) {
			return fmt.Sprintf("%s is not one of ['%s']", api.PyRepr(value), strings.Join(allowed, "', '"))
		}
		return ""
	}
}

func vlan(value any) string { return integer(value, 1, 4094) }

func mtu(value any) string { return integer(value, math.MinInt32, 9216) }

func integer(value any, least, most float64) string {
	number, is := api.Number(value)
	switch {
	case !is || number != math.Trunc(number):
		return api.PyRepr(value) + " is not of type 'integer'"
	case number < least:
		return fmt.Sprintf("%v is less than the minimum of %v", number, least)
	case number > most:
		return fmt.Sprintf("%v is greater than the maximum of %v", number, most)
	}
	return ""
}

func vlans(value any) string {
	list, is := value.([]any)
	if !is {
		return api.PyRepr(value) + " is not of type 'array'"
	}
	if len(list) > 100 {
		return api.PyRepr(value) + " is too long"
	}
	for i, item := range list {
		if fault := vlan(item); fault != "" {
			return fault
		}
		if slices.Contains(list[:i], item) {
			return api.PyRepr(value) + " has non-unique elements"
		}
	}
	return ""
}

func name(value any) string {
	text, is := value.(string)
	switch {
	case !is:
		return api.PyRepr(value) + " is not of type 'string'"
	case len(text) > 255:
		return api.PyRepr(value) + " is too long"
	}
	return ""
}

// set returns a value of extra; nil if Python takes it for false.
func set(extra map[string]any, key string) any {
	switch value := extra[key].(type) {
	case map[string]any:
		if len(value) == 0 {
			return nil
		}
	case string:
		if value == "" {
			return nil
		}
	}
	return extra[key]
}

// Switchport returns the switch port that a port names; nil if there is none.
func (p Port) Switchport() any { return set(p.Extra, "switchport") }

// Fault returns why the interface refuses a port of a node in a state, "" if it does not.
func (p Port) Fault(state string) string {
	value := p.Switchport()
	if value == nil {
		return ""
	}
	if fault := switchport.fault(value); fault != "" {
		return fmt.Sprintf("Invalid switchport configuration for port %s: %s", p.UUID, fault)
	}
	mode := api.Object(value)["mode"]
	switch {
	case p.PXE && mode != "access":
		return fmt.Sprintf("Port %s is PXE-enabled but has switchport mode '%v'. PXE-enabled ports must use 'access' mode when "+
			"switchport configuration is present.", p.UUID, mode)
	case len(p.Link) > 0 && (p.Link["switch_id"] == nil || p.Link["port_id"] == nil):
		return fmt.Sprintf("Port %s local_link_connection missing required field(s): 'switch_id', 'port_id'", p.UUID)
	case len(p.Link) == 0 && !slices.Contains([]string{"inspecting", "inspect wait", "inspect failed"}, state):
		return fmt.Sprintf("Port %s has switchport configuration but is missing local_link_connection in state: %s.", p.UUID, state)
	}
	return ""
}

// Fault returns why the interface refuses the ports and groups of a node in a state, "" if it does not.
func Fault(ports []Port, groups []Group, state string) string {
	for _, p := range ports {
		if fault := p.Fault(state); fault != "" {
			return fault
		}
	}
	for _, g := range groups {
		if fault := g.fault(ports); fault != "" {
			return fault
		}
	}
	return ""
}

func (g Group) fault(ports []Port) string {
	value := set(g.Extra, "lag")
	if value == nil {
		return ""
	}
	if fault := lag.fault(value); fault != "" {
		return fmt.Sprintf("Invalid LAG configuration for portgroup %s: %s", g.UUID, fault)
	}
	var members, bare []string
	for _, p := range ports {
		if p.Group == g.UUID {
			members = append(members, p.UUID)
			if p.Switchport() == nil {
				bare = append(bare, p.UUID)
			}
		}
	}
	switch {
	case len(members) == 0:
		return fmt.Sprintf("Portgroup %s has LAG configuration but no member ports", g.UUID)
	case len(bare) > 0:
		return fmt.Sprintf("Portgroup %s has LAG configuration but: member ports %s lack switchport configuration", g.UUID,
			strings.Join(bare, ", "))
	}
	return ""
}

// Refusal returns why the networking service does not configure a switch port, "" if it does.
func Refusal(switchport any) string {
	if mode := api.Object(switchport)["mode"]; mode != "access" && mode != "trunk" {
		return "mode must be one of: access, trunk"
	}
	return ""
}
