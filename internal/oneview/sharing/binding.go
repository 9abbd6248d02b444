package sharing

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// Keys of a node that name its hardware and profile. The OneView drivers of former Ironic releases used the same keys.
const (
	keyHardware = "server_hardware_uri"        // in driver_info
	keyApplied  = "applied_server_profile_uri" // in driver_info
	keyDynamic  = "dynamic_allocation"         // in driver_info

	capabilityHardwareType = "server_hardware_type_uri"
	capabilityTemplate     = "server_profile_template_uri"
	capabilityGroup        = "enclosure_group_uri"
)

// Binding is the information that a node has about its hardware in OneView.
type Binding struct {
	HardwareURI string // driver_info.server_hardware_uri; empty: the node is not in OneView
	AppliedURI  string // driver_info.applied_server_profile_uri
	Mode        Mode

	HardwareTypeURI, TemplateURI, GroupURI string // of properties.capabilities
}

// Mode says how a node gets its profile. driver_info.dynamic_allocation selects it.
type Mode string

// The modes.
const (
	// Dynamic: the node gets a profile only while it needs one.
	Dynamic Mode = "dynamic"
	// PreAllocated: the node always has a profile, which another user has made. The rules of ownership do not apply to it.
	PreAllocated Mode = "pre-allocated"
	// Undeclared: dynamic_allocation is not set. The node counts as pre-allocated until it gets a profile dynamically.
	Undeclared Mode = "undeclared"
)

// Shared reports whether the rules of ownership apply to the node: it has hardware in OneView, and is not pre-allocated.
func (b Binding) Shared() bool { return b.HardwareURI != "" && b.Mode == Dynamic }

// BindingOf reads a node. A value of dynamic_allocation that is neither true nor false is an error.
func BindingOf(node *ironic.Node) (Binding, error) {
	text := func(key string) string {
		value, _ := node.DriverInfo[key].(string)
		return strings.TrimSpace(value)
	}
	capabilities := ironic.Capabilities(node.Properties)
	b := Binding{
		HardwareURI: text(keyHardware), AppliedURI: text(keyApplied),
		HardwareTypeURI: capabilities[capabilityHardwareType], TemplateURI: capabilities[capabilityTemplate],
		GroupURI: capabilities[capabilityGroup],
	}
	mode, err := modeOf(node.DriverInfo[keyDynamic])
	if err != nil {
		return b, fmt.Errorf("node %s: driver_info.%s: %w", ironic.NodeLabel(node), keyDynamic, err)
	}
	if mode == Undeclared && b.AppliedURI != "" {
		mode = Dynamic // only with dynamic allocation does Ironic apply a profile
	}
	b.Mode = mode
	return b, nil
}

// modeOf parses dynamic_allocation, which may be a boolean or a string that Ironic accepted as one.
func modeOf(value any) (Mode, error) {
	if value == nil {
		return Undeclared, nil
	}
	switch strings.ToLower(strings.TrimSpace(fmt.Sprint(value))) {
	case "true", "t", "yes", "y", "on", "1":
		return Dynamic, nil
	case "false", "f", "no", "n", "off", "0":
		return PreAllocated, nil
	}
	return "", fmt.Errorf("%q is neither true nor false", fmt.Sprint(value))
}

// KeepsHardware returns an error if a patch changes the server hardware of a node while Ironic uses a server profile on it. After
// such a change no run would find that profile again.
func KeepsHardware(node *ironic.Node, patch ironic.Patch) error {
	b, err := BindingOf(node)
	if err != nil || b.AppliedURI == "" || b.HardwareURI == "" {
		return nil //nolint:nilerr // the patch may be a correction of the invalid value
	}
	for _, edit := range patch {
		if wanted, _ := edit.Value.(string); edit.Path == "/driver_info/"+keyHardware && !oneview.SameURI(wanted, b.HardwareURI) {
			return fmt.Errorf("node %s: driver_info.%s cannot be changed while server profile %s is applied to %s. Remove that profile "+
				"first, by destroying the metal_oneview_profile of the node", ironic.NodeLabel(node), keyHardware,
				b.AppliedURI, b.HardwareURI)
		}
	}
	return nil
}

// mark returns the text that this package writes into the description of its profiles: the profile's name and its node. By the mark a
// later run recognizes the profile of a run that was killed before it could write driver_info. The mark in a copy of the profile does
// not count, because the copy has another name.
func mark(name, nodeID string) string {
	return fmt.Sprintf("[terraform-provider-metal: %s for Ironic node %s]", name, nodeID)
}

// withMark returns a description in which the mark of a profile replaces that of its former name.
func withMark(description, formerName, name, nodeID string) string {
	description = strings.TrimSpace(strings.ReplaceAll(description, mark(formerName, nodeID), ""))
	return strings.TrimSpace(description + " " + mark(name, nodeID))
}

var (
	markPattern = regexp.MustCompile(`\[terraform-provider-metal: .* for Ironic node ([0-9a-f-]{36})\]`)
	uuidPattern = regexp.MustCompile(`^[0-9a-fA-F-]{36}$`) // distinguishes a UUID from a name
)

func madeFor(p *oneview.Profile, nodeID string) bool {
	return nodeID != "" && strings.Contains(p.Description, mark(p.Name, nodeID))
}

// markedNode returns the UUID of the node whose mark a profile has; empty if it has none.
func markedNode(p *oneview.Profile) string {
	if found := markPattern.FindStringSubmatch(p.Description); found != nil && madeFor(p, found[1]) {
		return found[1]
	}
	return ""
}
