// Package identity has what names a machine, as far as a node of Ironic tells: the address of its BMC with the system behind it, the MAC
// addresses of its ports and port groups, and the name of the node. All that compares machines does it here. It is pure.
package identity

import (
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/driverinfo"
)

// Kind is a property that two nodes must not share.
type Kind string

// The properties that two nodes must not share.
const (
	Name    Kind = "name"
	BMC     Kind = "BMC"
	Address Kind = "MAC address"
	Bond    Kind = "MAC address of a port group"
)

// Identity is what names a machine. The zero value names none.
type Identity struct {
	Name      string
	BMC       driverinfo.BMCIdentity
	Addresses []string // MAC addresses of ports, in lower case
	Bonds     []string // MAC addresses of port groups, in lower case
}

// Of returns the identity that a name, driver_info and MAC addresses of ports and port groups make.
func Of(name string, info map[string]any, addresses, bonds []string) Identity {
	return Identity{Name: name, BMC: driverinfo.IdentifyBMC(info), Addresses: macs(addresses), Bonds: macs(bonds)}
}

func macs(addresses []string) (all []string) {
	for _, address := range addresses {
		if address != "" {
			all = append(all, ironic.MAC(address))
		}
	}
	return all
}

// Trait is a value of a property.
type Trait struct {
	Kind  Kind
	Value string
}

// Shared returns what two identities share, the name first, then the BMC.
func (i Identity) Shared(other Identity) (shared []Trait) {
	if i.Name != "" && i.Name == other.Name {
		shared = append(shared, Trait{Name, i.Name})
	}
	if i.BMC.Same(other.BMC) {
		shared = append(shared, Trait{BMC, i.BMC.String()})
	}
	return append(append(shared, common(Address, i.Addresses, other.Addresses)...), common(Bond, i.Bonds, other.Bonds)...)
}

func common(kind Kind, some, others []string) (shared []Trait) {
	for _, address := range some {
		if slices.Contains(others, address) {
			shared = append(shared, Trait{kind, address})
		}
	}
	return shared
}

// NewlyShared returns what an identity shares with another one and did not share before.
func (i Identity) NewlyShared(before, other Identity) []Trait {
	shared := i.Shared(other)
	if len(shared) == 0 {
		return nil
	}
	already := before.Shared(other)
	return slices.DeleteFunc(shared, func(t Trait) bool {
		return slices.ContainsFunc(already, func(had Trait) bool {
			return t.Kind == had.Kind && (t.Kind == BMC || t.Value == had.Value)
		})
	})
}

// MovesBMC reports whether an identity has another BMC than the one before, which had one.
func (i Identity) MovesBMC(before Identity) bool {
	none := driverinfo.BMCIdentity{}
	return i.BMC != none && before.BMC != none && !i.BMC.Same(before.BMC)
}

// AddsAddress reports whether an identity has a MAC address of a port that the one before has not.
func (i Identity) AddsAddress(before Identity) bool {
	return slices.ContainsFunc(i.Addresses, func(address string) bool { return !slices.Contains(before.Addresses, address) })
}
