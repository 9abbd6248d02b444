package discovery

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Detail is the hardware detail in a host's name.
type Detail string

// Hardware details.
const (
	DetailHostname       Detail = "hostname"
	DetailIP             Detail = "ip"
	DetailSerialNumber   Detail = "serial-number"
	DetailBootMAC        Detail = "boot-mac"
	DetailProvisioningID Detail = "provisioning-id" // the UUID of the node; a machine that is discovered again gets a new one
)

// Details returns all hardware details.
func Details() []string {
	return []string{
		string(DetailHostname), string(DetailIP), string(DetailSerialNumber), string(DetailBootMAC), string(DetailProvisioningID),
	}
}

// Style is the allowed form of names.
type Style string

// Styles. The zero value is StyleIronic.
const (
	StyleIronic Style = "ironic" // A-Z a-z 0-9 - . _ ~, at most 255 characters: accepted by every version of Ironic
	StyleDNS    Style = "dns"    // a-z 0-9 -, at most 63 characters, no dash at the ends: one label of a DNS name
)

// Styles returns all styles.
func Styles() []string { return []string{string(StyleIronic), string(StyleDNS)} }

const (
	maxIronic  = 255
	maxDNS     = 63
	maxLiteral = 200 // of prefix and suffix together
)

// Template builds the name of a host: prefix, value of a hardware detail, suffix.
type Template struct {
	Prefix, Suffix string
	Detail         Detail
	Style          Style
}

// NoValueError says why a template has no name for a host.
type NoValueError struct {
	Reason string // for people; texts of the inventory are quoted and shortened
}

func (e *NoValueError) Error() string { return e.Reason }

// Validate returns an error if the template cannot name any host.
func (t Template) Validate() error {
	value := "x" // the shortest value; some details have longer ones
	switch t.Detail {
	case DetailHostname, DetailIP, DetailSerialNumber:
	case DetailBootMAC:
		value = "02-00-00-00-00-01"
	case DetailProvisioningID:
		value = "00000000-0000-4000-8000-000000000001"
		if t.Prefix == "" && t.Suffix == "" {
			return fmt.Errorf("%s needs a prefix or a suffix, because Ironic refuses names that look like a UUID", t.Detail)
		}
	default:
		return fmt.Errorf("hardware detail %s is not one of %s", quote(string(t.Detail)), strings.Join(Details(), ", "))
	}
	if err := t.Style.validate(); err != nil {
		return err
	}
	if n := len(t.Prefix) + len(t.Suffix); n > maxLiteral {
		return fmt.Errorf("prefix and suffix have %d characters together, the most is %d", n, maxLiteral)
	}
	for _, part := range []struct{ what, text string }{{"prefix", t.Prefix}, {"suffix", t.Suffix}} {
		if !t.Style.allows(part.text) {
			return fmt.Errorf("%s %s has characters other than %s", part.what, quote(part.text), t.Style.characters())
		}
	}
	if fault := t.Style.fault(t.Prefix + value + t.Suffix); fault != "" {
		return fmt.Errorf("with prefix %s and suffix %s, no %s makes a legal name: %s", quote(t.Prefix), quote(t.Suffix), t.Detail, fault)
	}
	return nil
}

// Name returns the name of a host, or a *NoValueError if the host has no value that makes a legal name. The template must be
// valid.
func (t Template) Name(h Host) (string, error) {
	value, reason := t.value(h)
	if reason != "" {
		return "", &NoValueError{Reason: reason}
	}
	name := t.Prefix + value + t.Suffix
	if fault := t.Style.fault(name); fault != "" {
		return "", &NoValueError{Reason: fault}
	}
	return name, nil
}

// value returns the value of the hardware detail in the form for names, or the reason why there is none.
func (t Template) value(h Host) (value, reason string) {
	switch t.Detail {
	case DetailHostname:
		return t.text("hostname", h.Hostname, h)
	case DetailSerialNumber:
		return t.text("serial number", h.Serial, h)
	case DetailIP:
		addr, reason := h.address()
		if reason != "" {
			if len(h.Interfaces) == 0 && !h.HasInventory {
				return "", noInventory(h)
			}
			return "", reason
		}
		// An address such as 2001:db8:: ends in separators, which a name cannot.
		return strings.Trim(strings.NewReplacer(".", "-", ":", "-").Replace(addr.String()), "-"), ""
	case DetailBootMAC:
		mac := h.BootMAC()
		if mac == "" {
			return "", "no MAC address: neither a port nor the inventory has one"
		}
		return strings.ReplaceAll(mac, ":", "-"), ""
	case DetailProvisioningID:
		return strings.ToLower(h.ID), ""
	}
	return "", "no such hardware detail: " + quote(string(t.Detail))
}

// text returns a text of the inventory in the form for names. It trims only the ends: replacing characters inside could give
// two machines the same name.
func (t Template) text(what, raw string, h Host) (value, reason string) {
	value = trimmed(raw)
	switch {
	case raw == "" && !h.HasInventory:
		return "", noInventory(h)
	case raw == "":
		return "", fmt.Sprintf("no %s in the inventory", what)
	case saysNothing(value):
		return "", fmt.Sprintf("%s is %s", what, quote(raw))
	}
	if t.Style == StyleDNS {
		value = lower(value)
	}
	if !t.Style.allows(value) {
		return "", fmt.Sprintf("%s %s has characters that a name cannot have", what, quote(raw))
	}
	return value, ""
}

// trimmed removes white space, control characters and punctuation at the ends of a text.
func trimmed(raw string) string {
	return strings.TrimFunc(raw, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune("-._~", r)
	})
}

func noInventory(h Host) string {
	if h.LastError == "" {
		return "no inventory"
	}
	return "no inventory; last_error of the node is " + quote(h.LastError)
}

// saysNothing reports whether a trimmed text is a placeholder of firmware or operating systems.
func saysNothing(value string) bool {
	value = strings.ToLower(value)
	if value == "" || strings.HasPrefix(value, "localhost") {
		return true
	}
	first, size := utf8.DecodeRuneInString(value)
	if len(value) > size && strings.Trim(value, string(first)) == "" { // 0000000, xxxx
		return true
	}
	return slices.Contains([]string{
		"none", "(none)", "null", "n/a", "unknown", "not specified", "not available", "not applicable", "to be filled by o.e.m",
		"0", "default string", "system serial number", "chassis serial number", "0123456789", "1234567890", "123456789",
	}, value)
}

func (s Style) validate() error {
	switch s {
	case StyleIronic, StyleDNS, "":
		return nil
	}
	return fmt.Errorf("name_style %s is not one of %s", quote(string(s)), strings.Join(Styles(), ", "))
}

// characters lists the allowed characters of names for a message.
func (s Style) characters() string {
	if s == StyleDNS {
		return "a-z, 0-9 and -"
	}
	return "A-Z, a-z, 0-9, -, ., _ and ~"
}

// allows reports whether a text has only allowed characters.
func (s Style) allows(text string) bool {
	for _, r := range text {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
		case s != StyleDNS && (r >= 'A' && r <= 'Z' || r == '.' || r == '_' || r == '~'):
		default:
			return false
		}
	}
	return true
}

// fault returns the error in a name, "" if there is none. A name must work with every version of Ironic in all paths of the
// API, so the rules are stricter than those of each version.
func (s Style) fault(name string) string {
	most := maxIronic
	if s == StyleDNS {
		most = maxDNS
	}
	folded := lower(name)
	switch {
	case name == "":
		return "a name cannot be empty"
	case len(name) > most:
		return fmt.Sprintf("name %s has %d characters, the most is %d", quote(name), len(name), most)
	case !s.allows(name):
		return fmt.Sprintf("name %s has characters other than %s", quote(name), s.characters())
	case s == StyleDNS && strings.Trim(name, "-") != name:
		return fmt.Sprintf("name %s begins or ends with a dash", quote(name))
	case uuidLike(folded):
		return fmt.Sprintf("name %s looks like a UUID", quote(name))
	case slices.Contains(reserved(), folded) || strings.Trim(name, ".") == "":
		return fmt.Sprintf("name %s is a reserved word of Ironic's API", quote(name))
	case strings.HasSuffix(folded, ".json"):
		return fmt.Sprintf("name %s ends in .json, which older versions of Ironic cut off", quote(name))
	}
	return ""
}

// uuidLike reports whether Ironic reads a lower case name as a UUID. It ignores dashes.
func uuidLike(name string) bool {
	name = strings.ReplaceAll(name, "-", "")
	return len(name) == 32 && strings.Trim(name, "0123456789abcdef") == ""
}

// reserved returns the words that some version of Ironic refuses as names, and words that it accepts although /v1/nodes/WORD
// does not find the node.
func reserved() []string {
	return []string{
		"detail", "maintenance", "management", "states", "validate", "vendor_passthru",
		"allocation", "bios", "children", "firmware", "history", "inventory", "portgroups", "ports", "traits", "vifs", "vmedia", "volume",
	}
}

// lower folds ASCII letter case, as Ironic's databases may do with names.
func lower(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

// quote makes an untrusted text safe to show: quoted, without control characters, shortened.
func quote(text string) string {
	const most = 60
	if len(text) <= most {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q", strings.ToValidUTF8(text[:most], "")+"…")
}
