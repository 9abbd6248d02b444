package naming

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
)

// OnCollision selects what happens to a new host if another host has its name or its serial number.
type OnCollision string

// What happens on a collision. The zero value is CollisionSkip.
const (
	CollisionSkip      OnCollision = "skip"       // it gets no name and is reported
	CollisionAppendMAC OnCollision = "append-mac" // its name gets the last six digits of its boot MAC address
	CollisionError     OnCollision = "error"      // the plan fails
)

// OnCollisions returns all values of OnCollision.
func OnCollisions() []string {
	return []string{string(CollisionSkip), string(CollisionAppendMAC), string(CollisionError)}
}

// Rules say which hosts one discovery takes and how it names them.
type Rules struct {
	Owner    string // name of the discovery, stored on every node that it names
	Template Template

	// Filter: the discovery takes a host only if all of them match.
	Manufacturer, Product, Driver *regexp.Regexp // nil: any
	BMC                           []netip.Prefix // one must contain the BMC's address; empty: any
	// The inventory must have at least these; 0: any. MinDiskGB is for the largest disk.
	MinCPUs, MinMemoryMB, MinDiskGB int64

	// Serial numbers, MAC addresses or UUIDs of nodes; letter case and the separators of MAC addresses do not matter.
	Include []string          // it takes no other hosts; nil: any
	Exclude []string          // it never takes these
	Names   map[string]string // name of the host, takes precedence over the template

	Before time.Time // it takes only machines whose discovery ended before; zero: any

	MaxHosts    int // highest number of hosts of the discovery; 0: no limit
	OnCollision OnCollision
}

// Validate returns the first error in the rules.
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
	}{{"include", r.Include}, {"exclude", r.Exclude}} {
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

// validateNames checks that every entry of Names is a legal name and that no two entries have the same host or name.
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

// refuses returns why a host does not pass filter, exclude and include, "" if it does. A fact that the inventory lacks refuses no host:
// see missing.
func (r Rules) refuses(h Host) string {
	bmc := bmcAddress(h)
	has := func(fact string) bool { return fact != "" || !h.HasInventory }
	switch {
	case matchesAny(h, r.Exclude):
		return "it is in exclude"
	case r.Include != nil && !matchesAny(h, r.Include):
		return "it is not in include"
	case has(h.Manufacturer) && !matches(r.Manufacturer, h.Manufacturer):
		return "filter: manufacturer is " + quote(h.Manufacturer)
	case has(h.Product) && !matches(r.Product, h.Product):
		return "filter: product is " + quote(h.Product)
	case !matches(r.Driver, h.Driver):
		return "filter: driver is " + quote(h.Driver)
	case (bmc.IsValid() || !h.HasInventory) && len(r.BMC) > 0 && !slices.ContainsFunc(r.BMC, func(p netip.Prefix) bool {
		return p.Contains(bmc)
	}):
		return "filter: BMC address is " + quote(h.BMCAddress)
	}
	for _, size := range r.sizes(h) {
		if size.has > 0 && size.has < size.least {
			return fmt.Sprintf("filter: %s is %d, and %s is %d", size.what, size.has, size.key, size.least)
		}
	}
	return ""
}

// size is a fact about a host that must not be below a number.
type size struct {
	what, key  string
	has, least int64 // has: 0 if the inventory does not say it
}

func (r Rules) sizes(h Host) []size {
	return slices.DeleteFunc([]size{
		{"number of CPUs", "min_cpus", h.CPUs, r.MinCPUs},
		{"memory in MiB", "min_memory_mb", h.MemoryMB, r.MinMemoryMB},
		{"size of the largest disk in GiB", "min_disk_gb", h.LargestDiskGB(), r.MinDiskGB},
	}, func(s size) bool { return s.least == 0 })
}

// missing returns which fact the filter needs and the host's inventory lacks, "" if there is none. Such a host may belong to the
// discovery, so that it is reported and not taken.
func (r Rules) missing(h Host) string {
	const reason = "filter: the inventory has no %s, and filter.%s is %v"
	for _, size := range r.sizes(h) {
		switch {
		case !h.HasInventory:
			return fmt.Sprintf("filter: it has no inventory, and filter.%s is %d", size.key, size.least)
		case size.has <= 0:
			return fmt.Sprintf(reason, size.what, size.key, size.least)
		}
	}
	switch {
	case !h.HasInventory:
		return ""
	case h.Manufacturer == "" && !matches(r.Manufacturer, ""):
		return fmt.Sprintf(reason, "manufacturer", "manufacturer", quote(r.Manufacturer.String()))
	case h.Product == "" && !matches(r.Product, ""):
		return fmt.Sprintf(reason, "product", "product", quote(r.Product.String()))
	case len(r.BMC) > 0 && !bmcAddress(h).IsValid():
		return fmt.Sprintf(reason, "BMC address", "bmc_cidr", r.BMC[0])
	}
	return ""
}

func matches(pattern *regexp.Regexp, text string) bool {
	return pattern == nil || pattern.MatchString(text)
}

// matchesAny reports whether one of the entries of include or exclude identifies the host.
func matchesAny(h Host, entries []string) bool {
	own := hostIdentities(h)
	return slices.ContainsFunc(entries, func(id string) bool { return own[identity(id)] })
}

// longestDiscovery is the longest time between the creation of a node and its last change by the discovery. A later change of a node in
// enroll comes from a client.
const longestDiscovery = 10 * time.Minute

// isLate reports whether Ironic has discovered a node's machine too late for these rules. Decide does not take such a node, so that a
// repeated plan has the same result although machines have appeared or ended their inspection.
func (r Rules) isLate(h Host) bool {
	if r.Before.IsZero() || settled(h) {
		return false
	}
	ended := h.CreatedAt
	if h.ChangedAt.After(ended) && h.ChangedAt.Sub(ended) < longestDiscovery {
		ended = h.ChangedAt
	}
	return !ended.Before(r.Before)
}
