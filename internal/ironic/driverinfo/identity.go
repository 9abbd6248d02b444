package driverinfo

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// BMCIdentity identifies the machine behind a BMC, as far as driver_info does. The zero value identifies no machine.
type BMCIdentity struct {
	host     string // in lower case; IP addresses in their shortest form
	port     string // empty: the protocol's default
	protocol string // such as "redfish"
	part     string // which of several machines behind one BMC; empty if driver_info does not say
}

// bmcProtocols are the keys of driver_info that hold the address of a BMC, and those that distinguish several machines behind one
// BMC.
var bmcProtocols = []struct {
	protocol string
	ports    []string // defaults
	parts    []string // keys
}{
	{"redfish", []string{"443", "80"}, []string{"redfish_system_id"}},
	{"ipmi", []string{"623"}, []string{"ipmi_transit_channel", "ipmi_transit_address", "ipmi_target_channel", "ipmi_target_address"}},
	{"ilo", []string{"443"}, nil},
	{"irmc", []string{"443", "80"}, nil},
	{"drac", []string{"443"}, nil},
}

// IdentifyBMC reads the identity from driver_info.
func IdentifyBMC(info map[string]any) BMCIdentity {
	for _, p := range bmcProtocols {
		address, _ := info[p.protocol+"_address"].(string)
		if address == "" {
			continue
		}
		m := BMCIdentity{protocol: p.protocol}
		m.host, m.port = splitAddress(address)
		for _, key := range []string{p.protocol + "_port", "client_port"} {
			if port := info[key]; port != nil && m.port == "" {
				m.port = fmt.Sprint(port)
			}
		}
		for _, port := range p.ports {
			if m.port == port {
				m.port = ""
			}
		}
		for _, key := range p.parts {
			if part := info[key]; part != nil {
				m.part += key + "=" + strings.TrimRight(fmt.Sprint(part), "/") + " "
			}
		}
		return m
	}
	return BMCIdentity{}
}

// BMCHosts returns the hosts of all BMC addresses in driver_info, in lower case; IP addresses in their shortest form. A node has several if
// another client has left settings of a former driver.
func BMCHosts(info map[string]any) []string {
	var hosts []string
	for _, p := range bmcProtocols {
		if address, _ := info[p.protocol+"_address"].(string); address != "" {
			host, _ := splitAddress(address)
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// splitAddress returns the normalised host and the port of an address with or without a scheme.
func splitAddress(address string) (host, port string) {
	if ip, err := netip.ParseAddr(strings.Trim(address, "[]")); err == nil {
		return ip.Unmap().String(), ""
	}
	if !strings.Contains(address, "://") {
		address = "//" + address
	}
	u, err := url.Parse(address)
	if err != nil {
		return strings.ToLower(address), ""
	}
	host = strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.Unmap().String()
	}
	return host, u.Port()
}

// Same reports whether both identify one machine, as far as driver_info shows. Two protocols at one host count as the same machine
// if both use their default ports. So do two addresses of one Redfish service if one of them names no system.
func (b BMCIdentity) Same(other BMCIdentity) bool {
	if b.host == "" || b.host != other.host || b.port != other.port {
		return false
	}
	if b.protocol == other.protocol {
		return b.part == other.part || b.protocol == "redfish" && (b.part == "" || other.part == "")
	}
	bridged := b.protocol == "ipmi" && b.part != "" || other.protocol == "ipmi" && other.part != ""
	return b.port == "" && !bridged
}

// NamesBMC reports whether an address, in a form that ParseBMC reads, is that of the BMC in driver_info. Without a scheme it is that of any
// driver, and without a port that at any port.
func NamesBMC(address string, info map[string]any) (bool, error) {
	bmc, err := ParseBMC(address)
	if err != nil {
		return false, err
	}
	named, has := IdentifyBMC(bmc.Info), IdentifyBMC(info)
	if strings.Contains(address, "://") {
		return named.Same(has), nil
	}
	if has.host == "" {
		has.host = BMCAddress(info)
	}
	return named.host == has.host && (bmc.Port == 0 || named.port == has.port), nil
}

// Host returns the host of the BMC, in the form of BMCHosts; "" if driver_info has none.
func (b BMCIdentity) Host() string { return b.host }

// String returns the address without its protocol.
func (b BMCIdentity) String() string {
	if strings.Contains(b.host, ":") {
		return "[" + b.host + "]" + prefixed(":", b.port)
	}
	return b.host + prefixed(":", b.port)
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}
