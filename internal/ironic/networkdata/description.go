package networkdata

import (
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
)

// description is what a user says of the network of a machine. Each value in it is valid by itself.
type description struct {
	interfaces, bonds, vlans []*device // in the order of their names
	dns                      []netip.Addr
	search                   []string
}

// device is a network card, a bond or a VLAN.
type device struct {
	at   string // its path in the description, such as vlans.public
	name string // its key
	mtu  int    // 0: not given

	addresses           []netip.Prefix // with the host's bits
	gateways            []netip.Addr
	routes              []route
	dhcp4, dhcp6, slaac bool

	mac, rename string // of a network card

	members              []string // of a bond
	mode                 string
	lacpRate, hashPolicy string // "": not given
	miimon               int    // milliseconds; 0: not given

	link string // of a VLAN: the name of a network card or a bond
	id   int
}

type route struct {
	to  netip.Prefix
	via netip.Addr
}

type key[T any] struct {
	name     string
	required bool
	read     func(r *reader, at string, value any, into *T)
}

var (
	networkKeys = []key[description]{
		{"interfaces", true, func(r *reader, at string, v any, d *description) { d.interfaces = r.devices(at, v, interfaceKeys) }},
		{"bonds", false, func(r *reader, at string, v any, d *description) { d.bonds = r.devices(at, v, bondKeys) }},
		{"vlans", false, func(r *reader, at string, v any, d *description) { d.vlans = r.devices(at, v, vlanKeys) }},
		{"dns", false, func(r *reader, at string, v any, d *description) { d.dns = list(r, at, v, (*reader).address) }},
		{"search", false, func(r *reader, at string, v any, d *description) { d.search = list(r, at, v, (*reader).domain) }},
	}
	deviceKeys = []key[device]{
		{"mtu", false, func(r *reader, at string, v any, d *device) { d.mtu = r.integer(at, v, 68, 65535) }},
		{"addresses", false, func(r *reader, at string, v any, d *device) { d.addresses = list(r, at, v, (*reader).hostAddress) }},
		{"gateways", false, func(r *reader, at string, v any, d *device) { d.gateways = list(r, at, v, (*reader).address) }},
		{"routes", false, func(r *reader, at string, v any, d *device) { d.routes = list(r, at, v, (*reader).route) }},
		{"dhcp4", false, func(r *reader, at string, v any, d *device) { d.dhcp4 = r.flag(at, v) }},
		{"dhcp6", false, func(r *reader, at string, v any, d *device) { d.dhcp6 = r.flag(at, v) }},
		{"slaac", false, func(r *reader, at string, v any, d *device) { d.slaac = r.flag(at, v) }},
	}
	interfaceKeys = slices.Concat([]key[device]{
		{"mac", true, func(r *reader, at string, v any, d *device) { d.mac = r.mac(at, v) }},
		{"rename", false, func(r *reader, at string, v any, d *device) { d.rename = r.deviceName(at, v) }},
	}, deviceKeys)
	bondKeys = slices.Concat([]key[device]{
		{"interfaces", true, func(r *reader, at string, v any, d *device) { d.members = list(r, at, v, (*reader).text) }},
		{"mode", true, func(r *reader, at string, v any, d *device) { d.mode = r.oneOf(at, v, linuxBondModes) }},
		{"lacp_rate", false, func(r *reader, at string, v any, d *device) { d.lacpRate = r.oneOf(at, v, []string{"slow", "fast"}) }},
		{"xmit_hash_policy", false, func(r *reader, at string, v any, d *device) { d.hashPolicy = r.oneOf(at, v, hashPolicies) }},
		{"miimon", false, func(r *reader, at string, v any, d *device) { d.miimon = r.integer(at, v, 1, 60000) }},
	}, deviceKeys)
	vlanKeys = slices.Concat([]key[device]{
		{"link", true, func(r *reader, at string, v any, d *device) { d.link = r.text(at, v) }},
		{"id", true, func(r *reader, at string, v any, d *device) { d.id = r.integer(at, v, 1, 4094) }},
	}, deviceKeys)
	routeKeys = []key[route]{
		{"to", true, func(r *reader, at string, v any, into *route) { into.to = r.subnet(at, v) }},
		{"via", true, func(r *reader, at string, v any, into *route) { into.via = r.address(at, v) }},
	}

	hashPolicies = []string{"layer2", "layer2+3", "layer3+4", "encap2+3", "encap3+4", "vlan+srcmac"}
)

// reader reads a description and collects what is wrong with single values.
type reader struct{ faults []Fault }

func (r *reader) fault(at, format string, values ...any) {
	r.faults = append(r.faults, Fault{at, fmt.Sprintf(format, values...)})
}

// object reads an object. A value of null is as good as none.
func object[T any](r *reader, at string, value any, keys []key[T], into *T) {
	given, is := value.(map[string]any)
	if !is {
		r.fault(at, "must be an object")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.ContainsFunc(keys, func(k key[T]) bool { return k.name == name }) {
			r.fault(below(at, name), "is not known; known are %s", strings.Join(names(keys), ", "))
		}
	}
	for _, k := range keys {
		switch value := given[k.name]; {
		case value != nil:
			k.read(r, below(at, k.name), value, into)
		case k.required:
			r.fault(below(at, k.name), "is missing")
		}
	}
}

func names[T any](keys []key[T]) (names []string) {
	for _, k := range keys {
		names = append(names, k.name)
	}
	return names
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// below returns the path of a key, as an expression of Terraform has it.
func below(at, key string) string {
	switch {
	case !identifier.MatchString(key):
		return fmt.Sprintf("%s[%q]", at, key)
	case at == "":
		return key
	}
	return at + "." + key
}

func (r *reader) devices(at string, value any, keys []key[device]) (devices []*device) {
	given, is := value.(map[string]any)
	if !is {
		r.fault(at, "must be a map with the names of devices as keys")
		return nil
	}
	for _, name := range slices.SortedFunc(maps.Keys(given), natural) {
		d := &device{at: below(at, name), name: name}
		object(r, d.at, given[name], keys, d)
		devices = append(devices, d)
	}
	return devices
}

func list[T any](r *reader, at string, value any, read func(*reader, string, any) T) (elements []T) {
	given, is := value.([]any)
	if !is {
		r.fault(at, "must be a list")
		return nil
	}
	for i, element := range given {
		elements = append(elements, read(r, fmt.Sprintf("%s[%d]", at, i), element))
	}
	return elements
}

func (r *reader) text(at string, value any) string {
	text, is := value.(string)
	if !is {
		r.fault(at, "must be a string")
	}
	return text
}

// integer reads a number, which may be written as a text: a file of comma-separated values has no other type.
func (r *reader) integer(at string, value any, least, most int) int {
	number, is := document.Number(value)
	if text, isText := value.(string); isText {
		n, err := strconv.Atoi(text)
		number, is = float64(n), err == nil
	}
	if !is || number != math.Trunc(number) || number < float64(least) || number > float64(most) {
		r.fault(at, "must be an integer from %d to %d", least, most)
		return 0
	}
	return int(number)
}

// flag reads a boolean, which may be written as a text.
func (r *reader) flag(at string, value any) bool {
	switch value {
	case true, "true":
		return true
	case false, "false":
		return false
	}
	r.fault(at, "must be true or false")
	return false
}

func (r *reader) oneOf(at string, value any, words []string) string {
	text := r.text(at, value)
	if !slices.Contains(words, text) {
		r.fault(at, "%q must be one of %s", text, strings.Join(words, ", "))
	}
	return text
}

// mac reads a MAC address. cloud-init finds a network card only by the form with lower case and colons
// (reference/network-data.md#cloud-init).
func (r *reader) mac(at string, value any) string {
	text := r.text(at, value)
	mac, err := net.ParseMAC(text)
	if err != nil || len(mac) != 6 {
		r.fault(at, "%q must be a MAC address, such as 52:54:00:12:34:56", text)
	}
	return mac.String()
}

// longestName is the longest name that Linux gives a network device.
const longestName = 15

var namePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

func (r *reader) deviceName(at string, value any) string {
	text := r.text(at, value)
	if !namePattern.MatchString(text) || len(text) > longestName {
		r.fault(at, "%q must be a name of at most %d letters, digits, _ and - that begins with a letter", text, longestName)
	}
	return text
}

var domainPattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$`)

func (r *reader) domain(at string, value any) string {
	text := r.text(at, value)
	if !domainPattern.MatchString(text) {
		r.fault(at, "%q must be a domain, such as example.com", text)
	}
	return text
}

func (r *reader) address(at string, value any) netip.Addr {
	text := r.text(at, value)
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" || address.Is4In6() {
		r.fault(at, "%q must be an IPv4 or IPv6 address without a prefix length", text)
	}
	return address
}

func (r *reader) prefix(at string, value any, like string) (prefix netip.Prefix, ok bool) {
	text := r.text(at, value)
	prefix, err := netip.ParsePrefix(text)
	switch _, noPrefix := netip.ParseAddr(text); {
	case noPrefix == nil:
		r.fault(at, "%q has no prefix length, such as /24", text)
	case err != nil || prefix.Addr().Is4In6():
		r.fault(at, "%q must be %s", text, like)
	default:
		return prefix, true
	}
	return prefix, false
}

// hostAddress reads the address of a device in a subnet.
func (r *reader) hostAddress(at string, value any) netip.Prefix {
	prefix, ok := r.prefix(at, value, "an address with its prefix length, such as 192.0.2.21/24")
	switch {
	case !ok:
	case prefix.Bits() == 0:
		r.fault(at, `"%s" has the prefix length 0`, prefix)
	case prefix.Addr() == prefix.Masked().Addr() && prefix.Addr().BitLen()-prefix.Bits() > 1:
		r.fault(at, `"%s" is the address of the subnet; write the address that the device has in it`, prefix)
	case prefix.Addr().Is4() && prefix.Bits() < 31 && prefix.Addr() == lastAddress(prefix):
		r.fault(at, `"%s" is the broadcast address of the subnet`, prefix)
	}
	return prefix
}

func lastAddress(prefix netip.Prefix) netip.Addr {
	last, mask := prefix.Addr().As4(), net.CIDRMask(prefix.Bits(), 32)
	for i := range last {
		last[i] |= ^mask[i]
	}
	return netip.AddrFrom4(last)
}

func (r *reader) route(at string, value any) (into route) {
	object(r, at, value, routeKeys, &into)
	return into
}

func (r *reader) subnet(at string, value any) netip.Prefix {
	prefix, ok := r.prefix(at, value, "a subnet, such as 198.51.100.0/24")
	switch {
	case !ok:
	case prefix.Bits() == 0:
		r.fault(at, `"%s" is the default route; write its router in gateways`, prefix)
	case prefix != prefix.Masked():
		r.fault(at, `"%s" is not the address of a subnet; is "%s" meant?`, prefix, prefix.Masked())
	}
	return prefix
}
