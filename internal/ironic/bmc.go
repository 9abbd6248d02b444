package ironic

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
)

// BMC is the address of a BMC, translated for an Ironic driver.
type BMC struct {
	Driver      string
	Info        map[string]any    // driver_info without credentials
	UsernameKey string            // key of driver_info for the user name
	PasswordKey string            // key of driver_info for the password
	VerifyCAKey string            // key of driver_info for certificate verification; empty if the driver has none
	Interfaces  map[string]string // hardware interfaces that the scheme implies
}

// bmcSchemes maps the schemes of BMC addresses to drivers (reference/ironic.md#bmc-addresses).
var bmcSchemes = map[string]struct {
	driver     string
	interfaces map[string]string
}{
	"ipmi":                 {driver: "ipmi"},
	"redfish":              {driver: "redfish"},
	"redfish-virtualmedia": {driver: "redfish", interfaces: map[string]string{"boot": "redfish-virtual-media"}},
}

// ParseBMC parses a BMC address: ipmi://HOST[:PORT], redfish[+http|+https]://HOST[:PORT]/SYSTEM,
// redfish-virtualmedia[+http|+https]://…, or a bare HOST[:PORT], which means ipmi. An IPv6 address must be in brackets unless it
// stands alone.
func ParseBMC(address string) (*BMC, error) {
	written := address
	if ip := net.ParseIP(address); ip != nil && ip.To4() == nil {
		address = "[" + address + "]"
	}
	if !strings.Contains(address, "://") {
		address = "ipmi://" + address
	}
	u, err := url.Parse(address)
	if (err != nil && strings.Contains(address, "@")) || (err == nil && u.User != nil) {
		return nil, fmt.Errorf("the address of a BMC must not contain credentials; use username and password_wo")
	}
	if err != nil {
		var parse *url.Error
		if errors.As(err, &parse) { // which quotes an address with a scheme that was not written
			err = parse.Err
		}
		return nil, fmt.Errorf("%q is not the address of a BMC: %w", written, err)
	}
	if meant := meantBMC(u, written); meant != "" && isBMC(meant) {
		return nil, fmt.Errorf("the BMC address %q lacks the scheme of a driver; write %q, or redfish-virtualmedia in place of redfish", written, meant)
	}
	name, transport, _ := strings.Cut(u.Scheme, "+")
	scheme, ok := bmcSchemes[name]
	if !ok {
		return nil, fmt.Errorf("the BMC address %q has the unknown scheme %q; known are %s", written, u.Scheme, strings.Join(slices.Sorted(maps.Keys(bmcSchemes)), ", "))
	}
	if u.Hostname() == "" {
		return nil, fmt.Errorf("the BMC address %q has no host", written)
	}
	if strings.Contains(u.Hostname(), ":") && !strings.HasPrefix(u.Host, "[") {
		return nil, fmt.Errorf("the BMC address %q must have the IPv6 address in brackets", written)
	}
	if scheme.driver == "ipmi" {
		return ipmiBMC(u, transport)
	}
	if !slices.Contains([]string{"", "http", "https"}, transport) {
		return nil, fmt.Errorf("the BMC address %q has the unknown transport %q; known are http and https", written, transport)
	}
	if transport == "" {
		transport = "https"
	}
	bmc := &BMC{
		Driver: scheme.driver, Interfaces: scheme.interfaces,
		Info:        map[string]any{"redfish_address": transport + "://" + u.Host},
		UsernameKey: "redfish_username", PasswordKey: "redfish_password", VerifyCAKey: "redfish_verify_ca",
	}
	if path := strings.TrimRight(u.Path, "/"); path != "" && path != "/redfish/v1" {
		bmc.Info["redfish_system_id"] = path
	}
	return bmc, nil
}

// isBMC reports whether an address is valid.
func isBMC(address string) bool {
	_, err := ParseBMC(address)
	return err == nil
}

// meantBMC returns the address that was probably meant if one was written as a web page's, or with a path and without a scheme;
// "" if neither.
func meantBMC(u *url.URL, written string) string {
	rest := u.Host + strings.TrimRight(u.EscapedPath(), "/")
	switch {
	case u.Host == "":
	case u.Scheme == "https":
		return "redfish://" + rest
	case u.Scheme == "http":
		return "redfish+http://" + rest
	case !strings.Contains(written, "://") && strings.Trim(u.Path, "/") != "":
		return "redfish://" + rest
	}
	return ""
}

func ipmiBMC(u *url.URL, transport string) (*BMC, error) {
	if transport != "" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("the BMC address %q must be ipmi://HOST or ipmi://HOST:PORT", u)
	}
	bmc := &BMC{
		Driver: "ipmi", Info: map[string]any{"ipmi_address": u.Hostname()},
		UsernameKey: "ipmi_username", PasswordKey: "ipmi_password",
	}
	if u.Port() != "" {
		bmc.Info["ipmi_port"] = u.Port()
	}
	if level := u.Query().Get("privilegelevel"); level != "" {
		bmc.Info["ipmi_priv_level"] = level
	}
	return bmc, nil
}

// AddressKey returns the key of driver_info that holds the BMC's address, or "" if there is none.
func AddressKey(info map[string]any) string {
	for _, key := range slices.Sorted(maps.Keys(info)) {
		if strings.HasSuffix(key, "_address") {
			return key
		}
	}
	return ""
}

// BMCAddress returns the host of a node's BMC, or "" if it has none.
func BMCAddress(n *Node) string {
	text, _ := n.DriverInfo[AddressKey(n.DriverInfo)].(string)
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		return u.Hostname()
	}
	if host, _, err := net.SplitHostPort(text); err == nil {
		return host
	}
	return text
}

// DescribeBMC returns the address of a node's BMC for messages, in the form that ParseBMC reads if it knows the driver.
func DescribeBMC(n *Node) string {
	text := func(key string) string { s, _ := n.DriverInfo[key].(string); return s }
	switch {
	case n.Driver == "redfish" && text("redfish_address") != "":
		transport, host, _ := strings.Cut(text("redfish_address"), "://")
		scheme := "redfish"
		if n.BootInterface == "redfish-virtual-media" {
			scheme = "redfish-virtualmedia"
		}
		if transport == "http" {
			scheme += "+http"
		}
		return scheme + "://" + host + text("redfish_system_id")
	case n.Driver == "ipmi" && text("ipmi_address") != "":
		if port := fmt.Sprint(n.DriverInfo["ipmi_port"]); n.DriverInfo["ipmi_port"] != nil {
			return "ipmi://" + net.JoinHostPort(text("ipmi_address"), port)
		}
		return "ipmi://" + text("ipmi_address")
	}
	return n.Driver + "://" + BMCAddress(n)
}
