package naming

import (
	"fmt"
	"strings"
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

const maxLiteral = 200 // of prefix and suffix together

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
	case saysNothing(value), t.Detail == DetailSerialNumber && isNoSerial(value):
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

func noInventory(h Host) string {
	if h.LastError == "" {
		return "no inventory"
	}
	return "no inventory; last_error of the node is " + quote(h.LastError)
}
