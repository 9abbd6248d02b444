// Package driverinfo reads and writes what driver_info of a node says about the BMC of the machine: its address, and which machine it is.
package driverinfo

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// BMC is the address of a BMC, translated for an Ironic driver.
type BMC struct {
	Scheme      string // without the transport, such as redfish-virtualmedia; ipmi if none was written
	Host        string // without brackets
	Port        int    // 0: none was written
	Transport   string // http or https; empty: not Redfish
	Driver      string
	Info        map[string]any    // driver_info without credentials
	UsernameKey string            // key of driver_info for the user name
	PasswordKey string            // key of driver_info for the password
	VerifyCAKey string            // key of driver_info for certificate verification; empty if the driver has none
	Interfaces  map[string]string // hardware interfaces that the scheme implies
}

// bmcScheme is a driver with the hardware interfaces that the scheme of a BMC address implies.
type bmcScheme struct {
	driver     string
	interfaces map[string]string
}

// bmcSchemes maps the schemes of BMC addresses to drivers (reference/ironic.md#bmc-addresses).
var bmcSchemes = map[string]bmcScheme{
	"ipmi":                 {driver: "ipmi"},
	"redfish":              {driver: "redfish"},
	"redfish-virtualmedia": {driver: "redfish", interfaces: boots("redfish-virtual-media")},
	"redfish-uefihttp":     {driver: "redfish", interfaces: boots("redfish-https")},
	"ilo5-redfish":         {driver: "redfish"},
	"ilo5-virtualmedia":    {driver: "redfish", interfaces: boots("redfish-virtual-media")},
	"idrac-redfish":        {driver: "idrac", interfaces: overIDRAC("")},
	"idrac-virtualmedia":   {driver: "idrac", interfaces: overIDRAC("idrac-redfish-virtual-media")},
}

// goneSchemes are the schemes of protocols that Ironic has removed, with the schemes that replace them.
var goneSchemes = map[string]string{
	"ibmc": "redfish", "idrac": "idrac-redfish", "ilo": "redfish", "ilo4": "redfish", "ilo4-virtualmedia": "redfish-virtualmedia",
	"ilo5": "redfish", "irmc": "redfish", "snmp": "redfish", "xclarity": "redfish",
}

func boots(boot string) map[string]string { return map[string]string{"boot": boot} }

// overIDRAC returns the interfaces that reach an iDRAC over Redfish. Older versions of Ironic prefer WSMan where a site has enabled both.
func overIDRAC(boot string) map[string]string {
	interfaces := map[string]string{}
	for _, kind := range []string{"bios", "management", "power", "raid", "vendor"} {
		interfaces[kind] = "idrac-redfish"
	}
	if boot != "" {
		interfaces["boot"] = boot
	}
	return interfaces
}

var (
	brokenScheme = regexp.MustCompile(`^((?:` + strings.Join(slices.Sorted(maps.Keys(bmcSchemes)), "|") + `)(?:\+https?)?):?/+(.+)$`)
	hostName     = regexp.MustCompile(`^[\pL\pN_]([\pL\pN_-]*[\pL\pN_])?(\.[\pL\pN_]([\pL\pN_-]*[\pL\pN_])?)*\.?$`)
	likeIPv4     = regexp.MustCompile(`^(\d+(?:\.\d+)+)([^.\d][^.]*)?$`) // no host name ends with a label that begins with a digit
)

// ParseBMC parses a BMC address: ipmi://HOST[:PORT][?privilegelevel=LEVEL], redfish[+http|+https]://HOST[:PORT]/SYSTEM, the same with
// another scheme of Redfish, or a bare HOST[:PORT], which means ipmi. An IPv6 address must be in brackets unless it stands alone.
func ParseBMC(address string) (*BMC, error) {
	if err := misspelt(address); err != nil {
		return nil, err
	}
	written := address
	address = braced(address)
	if !strings.Contains(address, "://") {
		if m := brokenScheme.FindStringSubmatch(address); m != nil && isBMC(m[1]+"://"+m[2]) {
			return nil, fmt.Errorf("the BMC address %q has no :// after its scheme; write %q", written, m[1]+"://"+m[2])
		}
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
		name, _, _ := strings.Cut(meant, ":")
		name, _, _ = strings.Cut(name, "+")
		return nil, fmt.Errorf("the BMC address %q lacks the scheme of a driver; write %q, or %s-virtualmedia in place of %s", written,
			meant, strings.TrimSuffix(name, "-redfish"), name)
	}
	name, transport, _ := strings.Cut(u.Scheme, "+")
	if use, gone := goneSchemes[name]; gone {
		return nil, fmt.Errorf("the BMC address %q has the scheme %s, which is gone from Ironic; use %s, such as %q", written, name, use,
			use+"://"+u.Host+u.EscapedPath())
	}
	scheme, ok := bmcSchemes[name]
	if !ok {
		return nil, fmt.Errorf("the BMC address %q has the unknown scheme %q; known are %s", written, u.Scheme,
			strings.Join(slices.Sorted(maps.Keys(bmcSchemes)), ", "))
	}
	if u.Hostname() == "" {
		return nil, fmt.Errorf("the BMC address %q has no host", written)
	}
	if err := checkHost(u.Hostname()); err != nil {
		return nil, fmt.Errorf("the BMC address %q has %w", written, err)
	}
	port, err := strconv.Atoi(u.Port())
	if u.Port() != "" && (err != nil || port < 1 || port > 65535) {
		return nil, fmt.Errorf("the BMC address %q has the port %s; a port is a number from 1 to 65535", written, u.Port())
	}
	bmc := &BMC{Scheme: name, Host: u.Hostname(), Port: port, Driver: scheme.driver, Interfaces: scheme.interfaces, Info: map[string]any{}}
	if scheme.driver == "ipmi" {
		err = bmc.addIPMI(u, transport, written)
	} else {
		err = bmc.addRedfish(u, transport, written)
	}
	if err != nil {
		return nil, err
	}
	return bmc, nil
}

func (b *BMC) addRedfish(u *url.URL, transport, written string) error {
	if rest := afterPath(u); rest != "" {
		return strangeRest(written, rest)
	}
	if !slices.Contains([]string{"", "http", "https"}, transport) {
		return fmt.Errorf("the BMC address %q has the unknown transport %q; known are http and https", written, transport)
	}
	b.Transport = cmp.Or(transport, "https")
	b.UsernameKey, b.PasswordKey, b.VerifyCAKey = "redfish_username", "redfish_password", "redfish_verify_ca"
	b.Info["redfish_address"] = b.Transport + "://" + u.Host
	switch path := strings.TrimRight(u.Path, "/"); {
	case noSystem.MatchString(path):
		return fmt.Errorf("the BMC address %q names no system; write %q, where Ironic takes the only system, or the path of one, such as "+
			"/redfish/v1/Systems/1", written, u.Scheme+"://"+u.Host)
	case path != "" && path != "/redfish" && path != "/redfish/v1":
		b.Info["redfish_system_id"] = path
	}
	return nil
}

// checkHost returns an error if a host is neither an IP address nor a name that a host can have.
func checkHost(host string) error {
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	if m := likeIPv4.FindStringSubmatch(host); m != nil {
		if _, err := netip.ParseAddr(m[1]); err == nil {
			return fmt.Errorf("the host %q; is a slash missing after %s?", host, m[1])
		}
		return fmt.Errorf("the host %q, which is not an IPv4 address", host)
	}
	if !hostName.MatchString(host) {
		return fmt.Errorf("the host %q, which is neither an IP address nor a host name", host)
	}
	return nil
}

func isBMC(address string) bool {
	_, err := ParseBMC(address)
	return err == nil
}

// meantBMC returns the address that was probably meant if one was written as a web page's, or with a path and without a scheme;
// "" if neither.
func meantBMC(u *url.URL, written string) string {
	rest := u.Host + strings.TrimRight(u.EscapedPath(), "/")
	scheme := "redfish"
	if strings.Contains(u.Path, "/System.Embedded.") {
		scheme = "idrac-redfish"
	}
	switch {
	case u.Host == "":
	case u.Scheme == "https":
		return scheme + "://" + rest
	case u.Scheme == "http":
		return scheme + "+http://" + rest
	case !strings.Contains(written, "://") && strings.Trim(u.Path, "/") != "":
		return scheme + "://" + rest
	}
	return ""
}

func (b *BMC) addIPMI(u *url.URL, transport, written string) error {
	if transport != "" || strings.Trim(u.Path, "/") != "" {
		return fmt.Errorf("the BMC address %q must be ipmi://HOST or ipmi://HOST:PORT", written)
	}
	b.UsernameKey, b.PasswordKey = "ipmi_username", "ipmi_password"
	b.Info["ipmi_address"] = b.Host
	if u.Port() != "" {
		b.Info["ipmi_port"] = u.Port()
	}
	rest := afterPath(u)
	level, given := strings.CutPrefix(rest, "?privilegelevel=")
	switch {
	case rest == "":
	case !given || strings.ContainsAny(level, "&#"):
		return strangeRest(written, rest)
	case !slices.Contains(privilegeLevels, level):
		return fmt.Errorf("the BMC address %q has the privilege level %q; known are %s", written, level,
			strings.Join(privilegeLevels, ", "))
	default:
		b.Info["ipmi_priv_level"] = level
	}
	return nil
}

// privilegeLevels are the values of ipmi_priv_level (reference/ironic.md#ipmi).
var privilegeLevels = []string{"ADMINISTRATOR", "CALLBACK", "OPERATOR", "USER"}

func afterPath(u *url.URL) (rest string) {
	if u.RawQuery != "" || u.ForceQuery {
		rest = "?" + u.RawQuery
	}
	if u.Fragment != "" {
		rest += "#" + u.Fragment
	}
	return rest
}

func strangeRest(written, rest string) error {
	return fmt.Errorf("the BMC address %q has %q; only ?privilegelevel=LEVEL of ipmi:// may follow the host", written, rest)
}
