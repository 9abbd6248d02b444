package naming

import (
	"fmt"
	"slices"
	"strings"
)

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
	maxIronic = 255
	maxDNS    = 63
)

func (s Style) validate() error {
	switch s {
	case StyleIronic, StyleDNS, "":
		return nil
	}
	return fmt.Errorf("name_style %s is not one of %s", quote(string(s)), strings.Join(Styles(), ", "))
}

func (s Style) characters() string {
	if s == StyleDNS {
		return "a-z, 0-9 and -"
	}
	return "A-Z, a-z, 0-9, -, ., _ and ~"
}

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

// show returns a name, quoted if it is not a legal name.
func show(text string) string {
	if StyleIronic.fault(text) == "" {
		return text
	}
	return quote(text)
}
