package driverinfo

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

var (
	// withPrefix has the length of a network's prefix, as in inventories such as NetBox. No system is such a short number.
	withPrefix = regexp.MustCompile(`^([^/?#]*://)?([^/?#]+)/\d{1,3}(/redfish.*|/?|/?[?#].*)$`)
	noAddress  = regexp.MustCompile(`^(?i:n/?a|none|null|unknown|tbd|-+)$`)
	unbraced   = regexp.MustCompile(`^([^/?#]*://)?([0-9A-Fa-f:.]+)(/.*)?$`)
	withZone   = regexp.MustCompile(`^((?:[^/?#]*://)?\[[0-9A-Fa-f:.]+%)([^\]]+\].*)$`)
	noSystem   = regexp.MustCompile(`(?i)^/redfish/v1/(Systems|(Managers|Chassis)(/.*)?)$`)
)

// misspelt returns an error that says what to write if an address has one of the usual mistakes.
func misspelt(address string) error {
	if strings.Contains(address, "@") {
		return nil // it may have a password
	}
	if trimmed := strings.TrimSpace(address); trimmed != address {
		return fmt.Errorf("the BMC address %q has white space around it; write %q", address, trimmed)
	}
	if noAddress.MatchString(address) {
		return fmt.Errorf("the BMC address %q stands for none; leave it out", address)
	}
	if m := withPrefix.FindStringSubmatch(address); m != nil {
		return fmt.Errorf("the BMC address %s has a prefix length: write %s", address,
			redfishFor(m[1])+braced(m[2])+strings.TrimRight(m[3], "/"))
	}
	if m := unbraced.FindStringSubmatch(address); m != nil && m[1]+m[3] != "" && braced(m[2]) != m[2] {
		return fmt.Errorf("the BMC address %q must have the IPv6 address in brackets; write %q", address,
			redfishFor(m[1])+braced(m[2])+m[3])
	}
	if m := withZone.FindStringSubmatch(address); m != nil && !strings.HasPrefix(m[2], "25") {
		return fmt.Errorf("the BMC address %q has a zone after %%; write %q", address, m[1]+"25"+m[2])
	}
	return nil
}

// redfishFor returns the scheme of a BMC for that of a web page, or for none.
func redfishFor(scheme string) string {
	return cmp.Or(map[string]string{"": "redfish://", "https://": "redfish://", "http://": "redfish+http://"}[scheme], scheme)
}

// braced puts an IPv6 address into brackets, and escapes its zone.
func braced(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is6() {
		return "[" + strings.Replace(host, "%", "%25", 1) + "]"
	}
	return host
}
