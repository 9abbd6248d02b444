package oneview

import (
	"fmt"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Keys of a node that tell what hardware it is. They are those of the OneView drivers that Ironic once had.
const (
	keyHardware = "server_hardware_uri"        // in driver_info
	keyApplied  = "applied_server_profile_uri" // in driver_info
	keyDynamic  = "dynamic_allocation"         // in driver_info

	capabilityHardwareType = "server_hardware_type_uri"
	capabilityTemplate     = "server_profile_template_uri"
	capabilityGroup        = "enclosure_group_uri"
)

// Binding is what a node says about its hardware in OneView.
type Binding struct {
	HardwareURI string // driver_info.server_hardware_uri; empty: the node has nothing to do with OneView
	AppliedURI  string // driver_info.applied_server_profile_uri
	Mode        Mode

	HardwareTypeURI, TemplateURI, GroupURI string // of properties.capabilities
}

// Mode is how a node gets its profile, after driver_info.dynamic_allocation.
type Mode string

// The modes.
const (
	// Dynamic: the node gets a profile only while it needs one.
	Dynamic Mode = "dynamic"
	// PreAllocated: the node has a profile all the time, which somebody else has made; no rule of ownership applies to it.
	PreAllocated Mode = "pre-allocated"
	// Undeclared: the node does not say. It counts as pre-allocated until it is given a profile dynamically.
	Undeclared Mode = "undeclared"
)

// Shared reports whether the rules of ownership apply to the hardware of a node: it has some, and is not pre-allocated.
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
		HardwareTypeURI: capabilities[capabilityHardwareType], TemplateURI: capabilities[capabilityTemplate], GroupURI: capabilities[capabilityGroup],
	}
	mode, err := modeOf(node.DriverInfo[keyDynamic])
	if err != nil {
		return b, fmt.Errorf("node %s: driver_info.%s: %w", ironic.NodeLabel(node), keyDynamic, err)
	}
	if mode == Undeclared && b.AppliedURI != "" {
		mode = Dynamic // only such a node has a profile applied by Ironic
	}
	b.Mode = mode
	return b, nil
}

// modeOf reads dynamic_allocation, which may be a boolean or one of the words that Ironic took for one.
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

// KeepsHardware returns an error if a patch makes a node other server hardware while Ironic uses a server profile on the one
// that it is: nobody would find that profile again.
func KeepsHardware(node *ironic.Node, patch ironic.Patch) error {
	b, err := BindingOf(node)
	if err != nil || b.AppliedURI == "" || b.HardwareURI == "" {
		return nil //nolint:nilerr // what is wrong with the node may be what is being corrected
	}
	for _, edit := range patch {
		if wanted, _ := edit.Value.(string); edit.Path == "/driver_info/"+keyHardware && !sameURI(wanted, b.HardwareURI) {
			return fmt.Errorf("node %s: driver_info.%s cannot be changed while server profile %s is applied to %s: remove that first, by destroying the "+
				"metal_oneview_profile of the node", ironic.NodeLabel(node), keyHardware, b.AppliedURI, b.HardwareURI)
		}
	}
	return nil
}
