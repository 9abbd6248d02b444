package oneview

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// HardwareState is the state of server hardware.
type HardwareState string

// Some of the states of server hardware (reference/oneview.md#server-hardware).
const (
	HardwareNoProfileApplied HardwareState = "NoProfileApplied"
	HardwareApplyingProfile  HardwareState = "ApplyingProfile"
	HardwareProfileApplied   HardwareState = "ProfileApplied"
	HardwareRemovingProfile  HardwareState = "RemovingProfile"
	HardwareProfileError     HardwareState = "ProfileError"
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
	PowerLocked  bool   // the appliance has locked its power, for example while it applies a profile
	ProfileURI   string // the server profile that is applied to it; empty: none

	HardwareTypeURI string
	GroupURI        string // its enclosure group; empty for rack servers

	MACs                []string // of its Ethernet ports, lower case; empty for rack servers
	ManagementAddresses []string // of its iLO
	ETag                string
}

// HardwareFilter selects server hardware. An empty field selects all.
type HardwareFilter struct {
	Name, SerialNumber, HardwareTypeURI, GroupURI string
	State                                         HardwareState
	MAC                                           string // of any of its Ethernet ports
}

// HardwareLabel returns the name and URI of server hardware for messages.
func HardwareLabel(h *Hardware) string { return h.Name + " (" + h.URI + ")" }

// HasMAC reports whether one of the Ethernet ports that OneView knows has a MAC address.
func (h *Hardware) HasMAC(mac string) bool { return slices.Contains(h.MACs, normalMAC(mac)) }

// normalMAC writes a MAC address in lower case with colons.
func normalMAC(mac string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimSpace(mac), "-", ":"))
}

// RemovesProfile reports whether the appliance is removing a profile from the hardware.
func (h *Hardware) RemovesProfile() bool { return h.State == HardwareRemovingProfile }

// Settling reports whether the appliance is applying a profile to the hardware, or removing one from it.
func (h *Hardware) Settling() bool {
	return h.State == HardwareApplyingProfile || h.RemovesProfile()
}

// UnmarshalJSON decodes the appliance's JSON. A null becomes the zero value.
func (h *Hardware) UnmarshalJSON(content []byte) error {
	var from struct {
		URI                   string        `json:"uri"`
		Name                  string        `json:"name"`
		SerialNumber          string        `json:"serialNumber"`
		Model                 string        `json:"model"`
		State                 HardwareState `json:"state"`
		Status                string        `json:"status"`
		PowerState            PowerState    `json:"powerState"`
		PowerLock             bool          `json:"powerLock"`
		ServerProfileURI      string        `json:"serverProfileUri"`
		ServerHardwareTypeURI string        `json:"serverHardwareTypeUri"`
		ServerGroupURI        string        `json:"serverGroupUri"`
		ETag                  string        `json:"eTag"`
		MPHostInfo            struct {
			MPIPAddresses []struct {
				Address string `json:"address"`
				Type    string `json:"type"`
			} `json:"mpIpAddresses"`
		} `json:"mpHostInfo"`
		PortMap portMap `json:"portMap"`
	}
	if err := json.Unmarshal(content, &from); err != nil {
		return err
	}
	*h = Hardware{
		URI: hardwareCollection.canonical(from.URI), Name: from.Name, SerialNumber: from.SerialNumber, Model: from.Model, State: from.State,
		Status:     from.Status,
		PowerState: from.PowerState, PowerLocked: from.PowerLock, ProfileURI: from.ServerProfileURI,
		HardwareTypeURI: from.ServerHardwareTypeURI, GroupURI: from.ServerGroupURI, MACs: from.PortMap.macs(), ETag: from.ETag,
	}
	for _, address := range from.MPHostInfo.MPIPAddresses {
		if address.Type != "LinkLocal" && address.Address != "" {
			h.ManagementAddresses = append(h.ManagementAddresses, address.Address)
		}
	}
	return nil
}

type portMap struct {
	DeviceSlots []struct {
		PhysicalPorts []struct {
			Type         string `json:"type"`
			MAC          string `json:"mac"`
			VirtualPorts []struct {
				MAC string `json:"mac"`
			} `json:"virtualPorts"`
		} `json:"physicalPorts"`
	} `json:"deviceSlots"`
}

func (m portMap) macs() []string {
	var all []string
	add := func(mac string) {
		if mac = normalMAC(mac); mac != "" && !slices.Contains(all, mac) {
			all = append(all, mac)
		}
	}
	for _, slot := range m.DeviceSlots {
		for _, port := range slot.PhysicalPorts {
			if port.Type != "Ethernet" {
				continue
			}
			add(port.MAC)
			for _, virtual := range port.VirtualPorts {
				add(virtual.MAC)
			}
		}
	}
	return all
}

// Hardware reads server hardware by its URI.
func (c *Client) Hardware(ctx context.Context, uri string) (*Hardware, error) {
	path, err := hardwareCollection.path(uri)
	if err != nil {
		return nil, fmt.Errorf("server hardware: %w", err)
	}
	var h Hardware
	if err := c.get(ctx, path, nil, &h); err != nil {
		return nil, fmt.Errorf("server hardware %s: %w", path, err)
	}
	return &h, nil
}

// ListHardware returns the server hardware that a filter selects.
func (c *Client) ListHardware(ctx context.Context, filter HardwareFilter) ([]Hardware, error) {
	var filters []string
	for attribute, value := range map[string]string{
		"name": filter.Name, "serialNumber": filter.SerialNumber, "serverHardwareTypeUri": filter.HardwareTypeURI,
		"serverGroupUri": filter.GroupURI, "state": string(filter.State),
	} {
		filters = append(filters, equals(attribute, value)...)
	}
	slices.Sort(filters)
	all, err := list[Hardware](ctx, c, hardwareCollection, filters)
	if err != nil {
		return nil, err
	}
	return kept(all, func(h *Hardware) bool {
		return fits(h.Name, filter.Name) && fits(h.SerialNumber, filter.SerialNumber) &&
			fitsURI(h.HardwareTypeURI, filter.HardwareTypeURI) &&
			fitsURI(h.GroupURI, filter.GroupURI) && fits(string(h.State), string(filter.State)) &&
			(filter.MAC == "" || h.HasMAC(filter.MAC))
	}), nil
}
