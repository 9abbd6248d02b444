package oneview

import (
	"context"
	"errors"
)

// HardwareState is the state of server hardware.
type HardwareState string

// The states of server hardware (reference oneview.md 1.4). An appliance may know more.
const (
	HardwareUnknown          HardwareState = "Unknown"
	HardwareAdding           HardwareState = "Adding"
	HardwareNoProfileApplied HardwareState = "NoProfileApplied"
	HardwareMonitored        HardwareState = "Monitored"
	HardwareUnmanaged        HardwareState = "Unmanaged"
	HardwareRemoving         HardwareState = "Removing"
	HardwareRemoveFailed     HardwareState = "RemoveFailed"
	HardwareRemoved          HardwareState = "Removed"
	HardwareApplyingProfile  HardwareState = "ApplyingProfile"
	HardwareProfileApplied   HardwareState = "ProfileApplied"
	HardwareRemovingProfile  HardwareState = "RemovingProfile"
	HardwareProfileError     HardwareState = "ProfileError"
	HardwareUnsupported      HardwareState = "Unsupported"
	HardwareUpdatingFirmware HardwareState = "UpdatingFirmware"
)

// PowerState is whether server hardware is on.
type PowerState string

// The power states of server hardware.
const (
	PowerOn          PowerState = "On"
	PowerOff         PowerState = "Off"
	PowerPoweringOn  PowerState = "PoweringOn"
	PowerPoweringOff PowerState = "PoweringOff"
	PowerResetting   PowerState = "Resetting"
	PowerUnknown     PowerState = "Unknown"
)

// Hardware is OneView's server hardware: one physical server.
type Hardware struct {
	URI          string
	Name         string // such as "Encl1, bay 3"
	SerialNumber string
	Model        string
	State        HardwareState
	Status       string // health: OK, Warning, Critical, Disabled, Unknown
	PowerState   PowerState
	PowerLocked  bool   // the appliance holds its power, as it does while it applies a profile
	ProfileURI   string // the server profile that is applied to it; empty: none

	HardwareTypeURI string
	GroupURI        string // its enclosure group; empty for rack servers

	MACs                []string // of its Ethernet ports, lower case; none is known of rack servers
	ManagementAddresses []string // of its iLO
	ETag                string
}

// HardwareFilter selects server hardware; empty fields do not select.
type HardwareFilter struct {
	Name, SerialNumber, HardwareTypeURI, GroupURI string
	State                                         HardwareState
	MAC                                           string // of any of its Ethernet ports
}

// Hardware returns server hardware by its URI, as it is now.
func (c *Client) Hardware(ctx context.Context, uri string) (*Hardware, error) {
	return nil, errors.ErrUnsupported
}

// ListHardware returns the server hardware that a filter selects.
func (c *Client) ListHardware(ctx context.Context, filter HardwareFilter) ([]Hardware, error) {
	return nil, errors.ErrUnsupported
}
