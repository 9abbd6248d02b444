package discovery

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// OnCollision is what happens to a new host whose name is taken, or whose serial number is not its own.
type OnCollision string

// What happens on a collision. The zero value is CollisionSkip.
const (
	CollisionSkip      OnCollision = "skip"       // it is not named, and reported
	CollisionAppendMAC OnCollision = "append-mac" // its name gets the last six digits of its boot MAC address
	CollisionError     OnCollision = "error"      // the plan fails
)

// OnCollisions are all that can happen on a collision.
func OnCollisions() []string {
	return []string{string(CollisionSkip), string(CollisionAppendMAC), string(CollisionError)}
}

// Rules say which hosts one discovery takes and how it names them.
type Rules struct {
	Owner    string // name of the discovery, stored in Ironic with every host that it names
	Template Template

	// Filter: a host is taken only if all of them match.
	Manufacturer, Product, Driver *regexp.Regexp // nil: any
	BMC                           []netip.Prefix // one must hold the BMC's address; empty: any

	// Serial numbers, MAC addresses or UUIDs of nodes; letter case and the separators of MAC addresses do not matter.
	Only    []string          // nothing else is taken: if it is empty, nothing at all; nil: any
	Exclude []string          // never taken
	Names   map[string]string // name of the host, wins over the template

	MaxHosts    int // how many hosts the discovery has at most; 0: no bound
	OnCollision OnCollision
}

// Validate finds what is wrong with the rules, whatever the hosts.
func (r Rules) Validate() error {
	if fault := StyleIronic.fault(r.Owner); fault != "" {
		return fmt.Errorf("name of the discovery: %s", fault)
	}
	if err := r.Template.Validate(); err != nil {
		return fmt.Errorf("name template: %w", err)
	}
	for _, bmc := range r.BMC {
		if !bmc.IsValid() {
			return errors.New("BMC network: not a valid prefix")
		}
	}
	for _, list := range []struct {
		what string
		ids  []string
	}{{"only", r.Only}, {"exclude", r.Exclude}} {
		if slices.ContainsFunc(list.ids, func(id string) bool { return identity(id) == "" }) {
			return fmt.Errorf("%s: an empty entry", list.what)
		}
	}
	if r.MaxHosts < 0 {
		return fmt.Errorf("max_hosts is %d, it must not be negative", r.MaxHosts)
	}
	if r.OnCollision != "" && !slices.Contains(OnCollisions(), string(r.OnCollision)) {
		return fmt.Errorf("on_collision %s is not one of %s", quote(string(r.OnCollision)), strings.Join(OnCollisions(), ", "))
	}
	return r.validateNames()
}

// validateNames sees that every entry of Names is a legal name of one host only.
func (r Rules) validateNames() error {
	keys, names := map[string]string{}, map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(r.Names)) {
		name := r.Names[key]
		if identity(key) == "" {
			return fmt.Errorf("names: an empty key for %s", quote(name))
		}
		if fault := r.Template.Style.fault(name); fault != "" {
			return fmt.Errorf("names: %s: %s", quote(key), fault)
		}
		if other, twice := keys[identity(key)]; twice {
			return fmt.Errorf("names: %s and %s are the same", quote(other), quote(key))
		}
		if other, twice := names[lower(name)]; twice {
			return fmt.Errorf("names: %s and %s have the same name %s", quote(other), quote(key), quote(name))
		}
		keys[identity(key)], names[lower(name)] = key, key
	}
	return nil
}

// refuses is why a host does not pass filter, exclude and only; empty: it passes.
func (r Rules) refuses(h Host) string {
	bmc := bmcAddress(h)
	switch {
	case matchesAny(h, r.Exclude):
		return "it is in exclude"
	case r.Only != nil && !matchesAny(h, r.Only):
		return "it is not in only"
	case !matches(r.Manufacturer, h.Manufacturer):
		return "filter: manufacturer is " + quote(h.Manufacturer)
	case !matches(r.Product, h.Product):
		return "filter: product is " + quote(h.Product)
	case !matches(r.Driver, h.Driver):
		return "filter: driver is " + quote(h.Driver)
	case len(r.BMC) > 0 && !slices.ContainsFunc(r.BMC, func(p netip.Prefix) bool { return p.Contains(bmc) }):
		return "filter: BMC address is " + quote(h.BMCAddress)
	}
	return ""
}

func matches(pattern *regexp.Regexp, text string) bool {
	return pattern == nil || pattern.MatchString(text)
}

// bmcAddress is the address of the host's BMC; the zero Addr if it has none.
func bmcAddress(h Host) netip.Addr {
	addr, err := netip.ParseAddr(strings.TrimSpace(h.BMCAddress))
	if err != nil || addr.IsUnspecified() {
		return netip.Addr{}
	}
	return addr.Unmap()
}

// matchesAny reports whether one of the entries of only or exclude means the host.
func matchesAny(h Host, entries []string) bool {
	own := hostIdentities(h)
	return slices.ContainsFunc(entries, func(id string) bool { return own[identity(id)] })
}

// hostIdentities are what a host can be called in only, exclude and names: serial number, MAC addresses, UUID.
func hostIdentities(h Host) map[string]bool {
	own := map[string]bool{identity(h.ID): true, identity(h.Serial): true}
	delete(own, "")
	for _, mac := range h.allMACs() {
		own[mac] = true
	}
	return own
}

// identity is the form in which serial numbers, MAC addresses and UUIDs are compared.
func identity(text string) string {
	if mac := parseMAC(text); mac != "" {
		return mac
	}
	return strings.ToLower(strings.TrimSpace(text))
}
