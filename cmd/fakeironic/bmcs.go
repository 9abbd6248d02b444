package main

import (
	"fmt"
	"net/netip"
	"strings"
)

// bmcs are the BMCs that answer, by the values of -bmcs: addresses and networks, and names. Without any, all answer.
type bmcs struct {
	networks []netip.Prefix
	names    []string
}

func (b *bmcs) add(value string) error {
	for _, one := range strings.Split(value, ",") {
		one = strings.TrimSpace(one)
		if address, err := netip.ParseAddr(one); err == nil {
			b.networks = append(b.networks, netip.PrefixFrom(address, address.BitLen()))
			continue
		}
		network, err := netip.ParsePrefix(one)
		switch {
		case err == nil:
			b.networks = append(b.networks, network)
		case one == "" || strings.Contains(one, "/"):
			return fmt.Errorf("%q is no address, network such as 192.0.2.0/24, or name", one)
		default:
			b.names = append(b.names, one)
		}
	}
	return nil
}

// answers reports whether a BMC answers at an address or name.
func (b *bmcs) answers(bmc string) bool {
	if len(b.networks)+len(b.names) == 0 {
		return true
	}
	for _, name := range b.names {
		if strings.EqualFold(name, bmc) {
			return true
		}
	}
	address, err := netip.ParseAddr(bmc)
	for _, network := range b.networks {
		if err == nil && network.Contains(address.Unmap()) {
			return true
		}
	}
	return false
}
