package oneview

import (
	"errors"

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
	// Dynamic: the node gets a profile only when it needs one (driver_info.dynamic_allocation). Otherwise it is
	// pre-allocated: it has one all the time, which somebody else has made, and no rule of ownership applies to it.
	Dynamic bool

	HardwareTypeURI, TemplateURI, GroupURI string // of properties.capabilities
}

// BindingOf reads a node. A value of dynamic_allocation that is neither true nor false is an error.
func BindingOf(node *ironic.Node) (Binding, error) { return Binding{}, errors.ErrUnsupported }
