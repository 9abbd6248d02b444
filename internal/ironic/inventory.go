package ironic

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// Disk is a disk that an inspection has found.
type Disk struct {
	Name       string `json:"name"`
	Size       int64  `json:"size"` // bytes
	Model      string `json:"model"`
	Vendor     string `json:"vendor"`
	Serial     string `json:"serial"`
	WWN        string `json:"wwn"`
	Rotational *bool  `json:"rotational"`
	HCTL       string `json:"hctl"`

	WWNWithExtension   string `json:"wwn_with_extension"`
	WWNVendorExtension string `json:"wwn_vendor_extension"`

	ByPath string `json:"by_path"`
}

// PCIDevice is a device on the PCI bus. The agent lists them with its collector pci-devices, and an inspection by Redfish since Ironic 35
// (reference/ironic.md#pci-devices).
type PCIDevice struct {
	Class     string `json:"class"` // hexadecimal digits, or a word of Redfish, in lower case
	VendorID  string `json:"vendor_id"`
	ProductID string `json:"product_id"`
}

// Inventory is the part of an inspection's result that Terraform shows.
type Inventory struct {
	Hostname   string `json:"hostname"`
	BMCAddress string `json:"bmc_address"`
	BMCv6      string `json:"bmc_v6address"`
	BMCMAC     string `json:"bmc_mac"`
	CPU        struct {
		Count        int64  `json:"count"`
		Architecture string `json:"architecture"`
		Model        string `json:"model_name"`
	} `json:"cpu"`
	Memory struct {
		PhysicalMB int64 `json:"physical_mb"`
	} `json:"memory"`
	System struct {
		Manufacturer string `json:"manufacturer"`
		Product      string `json:"product_name"`
		Serial       string `json:"serial_number"`
		Firmware     struct {
			Version string `json:"version"`
		} `json:"firmware"` // the BIOS
	} `json:"system_vendor"`
	Boot struct {
		PXEInterface string `json:"pxe_interface"`
	} `json:"boot"`
	Disks      []Disk `json:"disks"`
	Interfaces []struct {
		Name       string          `json:"name"`
		MAC        string          `json:"mac_address"`
		IPv4       string          `json:"ipv4_address"`
		IPv6       string          `json:"ipv6_address"`
		HasCarrier *bool           `json:"has_carrier"`
		PCIAddress string          `json:"pci_address"`
		SpeedMbps  int64           `json:"speed_mbps"`
		Product    string          `json:"product"`
		Vendor     string          `json:"vendor"`
		LLDP       json.RawMessage `json:"lldp"`
	} `json:"interfaces"`
	PCIDevices []PCIDevice `json:"pci_devices"` // nil: the inspection has not listed them

	// Neighbours are by name of the network card: a card that listened and heard nothing has an empty one, a card that did not listen has
	// none.
	Neighbours map[string]Neighbour `json:"-"`
	// Unrelated are what the BMC heard on ports that Ironic does not relate to a card, by the BMC's name of the port.
	Unrelated map[string]Neighbour `json:"-"`
}

// Inventory returns the result of the last inspection of a node; nil if there is none or the API is older than 1.81.
func (c *Client) Inventory(ctx context.Context, id string) (*Inventory, error) {
	version, err := c.Microversion(ctx)
	if err != nil {
		return nil, err
	}
	if version < api.VersionInventory {
		return nil, nil //nolint:nilnil // a node without an inventory is usual
	}
	var answer struct {
		Inventory *Inventory `json:"inventory"`
		Data      pluginData `json:"plugin_data"`
	}
	err = c.Request(ctx, http.MethodGet, "nodes/"+id+"/inventory", nil, &answer)
	if api.IsNotFound(err) {
		return c.introspection(ctx, id)
	}
	answer.Inventory.settle(answer.Data)
	return answer.Inventory, lenient(err)
}

// lenient ignores an error about a value of the wrong type in an inventory, because any client can post one; the correct parts
// were read. It returns other errors.
func lenient(err error) error {
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// introspection asks ironic-inspector, which keeps its results itself, on sites that still run it (up to 2025.1). It returns nil
// if there is no result.
func (c *Client) introspection(ctx context.Context, id string) (*Inventory, error) {
	inspector, err := c.Inspector(ctx)
	if inspector == nil || err != nil {
		return nil, err
	}
	var answer struct {
		Inventory *Inventory `json:"inventory"`
		pluginData
	}
	_, err = inspector.Get(ctx, inspector.Endpoint+"introspection/"+id+"/data", &answer,
		&gophercloud.RequestOpts{OkCodes: []int{http.StatusOK}})
	if err = c.Wrap(ctx, err); api.IsStatus(err, http.StatusNotFound, "not found for node") { // other 404s are errors of the setup
		return nil, nil //nolint:nilnil // a node without a result is usual
	}
	answer.Inventory.settle(answer.pluginData)
	return answer.Inventory, lenient(err)
}

// BootMAC returns the MAC address from which the machine booted its ramdisk, in lower case; "" if unknown. The ramdisk reports it
// like PXE firmware, such as 01-52-54-00-aa-bb-01, or as a plain MAC address.
func (i *Inventory) BootMAC() string {
	mac := MAC(i.Boot.PXEInterface)
	if len(mac) == len("01:52:54:00:aa:bb:01") {
		mac = mac[3:]
	}
	if !macPattern.MatchString(mac) {
		return ""
	}
	return mac
}

// BMCHosts returns the addresses of the BMC that the machine reports, in the form of the function BMCHosts.
func (i *Inventory) BMCHosts() []string {
	var hosts []string
	for _, text := range []string{i.BMCAddress, i.BMCv6} {
		if address, err := netip.ParseAddr(text); err == nil && !address.IsUnspecified() {
			hosts = append(hosts, address.Unmap().WithZone("").String())
		}
	}
	return hosts
}

// BMC returns the address of the BMC that the machine reports: IPv4, else IPv6, else "". The ramdisk writes 0.0.0.0 and ::/0 for
// an address that it did not find. BMC ignores everything that is not an IP address, because reports of machines are untrusted and
// the address is used in URLs together with a password.
func (i *Inventory) BMC() string {
	for _, text := range []string{i.BMCAddress, i.BMCv6} {
		if address, err := netip.ParseAddr(text); err == nil && !address.IsUnspecified() {
			return address.WithZone("").String()
		}
	}
	return ""
}

// Addresses returns the MAC addresses of the network cards.
func (i *Inventory) Addresses() []string {
	if i == nil {
		return nil
	}
	var addresses []string
	for _, nic := range i.Interfaces {
		addresses = append(addresses, nic.MAC)
	}
	return addresses
}

// Neighbour is the switch port that a network card is connected to, as the switch announces it by LLDP (reference/ironic.md#lldp). Unknown
// parts are empty.
type Neighbour struct {
	SwitchID        string // usually a MAC address
	SwitchName      string
	PortID          string // such as Ethernet1/18
	PortDescription string // free text of the switch's operator
	PortIsName      bool   // the switch says that PortID is the name of an interface
}

// or returns a neighbour with the unknown parts taken from another one.
func (n Neighbour) or(other Neighbour) Neighbour {
	if n.PortID == "" {
		n.PortID, n.PortIsName = other.PortID, other.PortIsName
	}
	n.SwitchID, n.SwitchName = cmp.Or(n.SwitchID, other.SwitchID), cmp.Or(n.SwitchName, other.SwitchName)
	n.PortDescription = cmp.Or(n.PortDescription, other.PortDescription)
	return n
}

// pluginData is what an inspection found besides the inventory. Any client can post an inventory, so parts of any type may be
// missing.
type pluginData struct {
	// Parsed is by card, if Ironic's hook parse-lldp wrote it, or by the BMC's name of a port after an inspection by Redfish.
	Parsed map[string]announcement    `json:"parsed_lldp"`
	Raw    map[string]json.RawMessage `json:"lldp_raw"`    // an older ramdisk puts it into the inventory
	PCI    []PCIDevice                `json:"pci_devices"` // by the agent
	Cards  map[string]struct {
		Processed announcement `json:"lldp_processed"`
	} `json:"all_interfaces"` // by ironic-inspector's hook lldp_basic
}

// announcement is what Ironic made of an announcement of a switch.
type announcement struct {
	ChassisID       string `json:"switch_chassis_id"`
	PortID          string `json:"switch_port_id"`
	PortDescription string `json:"switch_port_description"`
	SystemName      string `json:"switch_system_name"`
}

func (a announcement) neighbour() Neighbour {
	id := announced(a.ChassisID)
	if macPattern.MatchString(id) {
		id = MAC(id)
	}
	return Neighbour{
		SwitchID: id, SwitchName: announced(a.SystemName), PortID: portName(announced(a.PortID)),
		PortDescription: announced(a.PortDescription),
	}
}

// unheard are the texts with which Dell's BMCs say that a port has heard nothing.
var unheard = []string{"no link", "not available", "not supported"}

// announced returns a printable text of an announcement; "" if it stands for nothing.
func announced(text string) string {
	text = printable([]byte(text))
	if slices.Contains(unheard, strings.ToLower(text)) {
		return ""
	}
	return text
}

// portName returns the identifier of a port. Redfish writes a text as the hexadecimal digits of its characters, with colons between them.
// Six of them stay as they are: a MAC address looks like that.
func portName(id string) string {
	digits := strings.ReplaceAll(id, ":", "")
	value, err := hex.DecodeString(digits)
	if err != nil || len(value) < 2 || len(value) == 6 || strings.Count(id, ":") != len(value)-1 {
		return id
	}
	return cmp.Or(printable(value), id)
}

// settle writes the MAC addresses of an inventory as Ironic does, because an inspection by Redfish keeps the BMC's spelling, and adds what
// LLDP says about the network cards. What the ramdisk received comes first, because Ironic's
// hooks leave out what they cannot read.
func (i *Inventory) settle(data pluginData) {
	if i == nil {
		return
	}
	if i.PCIDevices == nil {
		i.PCIDevices = data.PCI
	}
	for n, device := range i.PCIDevices {
		for _, text := range []*string{&device.Class, &device.VendorID, &device.ProductID} {
			*text = strings.TrimPrefix(strings.ToLower(*text), "0x")
		}
		i.PCIDevices[n] = device
	}
	i.Neighbours, i.Unrelated = map[string]Neighbour{}, map[string]Neighbour{}
	related := map[string]bool{}
	i.BMCMAC = MAC(i.BMCMAC)
	for n := range i.Interfaces {
		card := &i.Interfaces[n]
		card.MAC = MAC(card.MAC)
		related[card.Name] = true
		n, listened := readLLDP(data.Raw[card.Name])
		if !listened {
			n, listened = readLLDP(card.LLDP)
		}
		n = n.or(data.Parsed[card.Name].neighbour()).or(data.Cards[card.Name].Processed.neighbour())
		if listened || n != (Neighbour{}) {
			i.Neighbours[card.Name] = n
		}
	}
	for port, parsed := range data.Parsed {
		_, collected := data.Raw[port] // by the ramdisk, on a bond or VLAN
		if n := parsed.neighbour(); n != (Neighbour{}) && !collected && !related[port] {
			i.Unrelated[port] = n
		}
	}
}

// Types of LLDP's TLVs (IEEE 802.1AB).
const (
	lldpChassisID       = 1
	lldpPortID          = 2
	lldpPortDescription = 4
	lldpSystemName      = 5
)

// lldpInterface is the subtype of a port's identifier that is the name of an interface.
const lldpInterface = 5

// readLLDP reads the TLVs of an announcement, which the ramdisk stores as pairs of type and hexadecimal value. It ignores what it
// cannot read. listened is false if the ramdisk did not collect announcements.
func readLLDP(raw json.RawMessage) (n Neighbour, listened bool) {
	var tlvs [][]any
	if json.Unmarshal(raw, &tlvs) != nil || tlvs == nil {
		return n, false
	}
	for _, tlv := range tlvs {
		if len(tlv) != 2 {
			continue
		}
		kind, _ := tlv[0].(float64)
		text, _ := tlv[1].(string)
		value, err := hex.DecodeString(text)
		if err != nil || len(value) == 0 {
			continue
		}
		var heard Neighbour
		switch kind {
		case lldpChassisID:
			heard.SwitchID = lldpID(value, 4, 5)
		case lldpPortID:
			heard.PortID, heard.PortIsName = lldpID(value, 3, 4), value[0] == lldpInterface
		case lldpPortDescription:
			heard.PortDescription = printable(value)
		case lldpSystemName:
			heard.SwitchName = printable(value)
		}
		n = n.or(heard)
	}
	return n, true
}

// lldpID decodes the identifier of a chassis or port. Its first byte is its subtype: a MAC address, a network address, or text.
func lldpID(value []byte, mac, network byte) string {
	subtype, value := value[0], value[1:]
	switch {
	case subtype == mac && len(value) == 6:
		return net.HardwareAddr(value).String()
	case subtype == network && len(value) > 1: // the first byte is the family of the address
		if address, ok := netip.AddrFromSlice(value[1:]); ok {
			return address.String()
		}
		return ""
	}
	return printable(value)
}

// printable returns a text without the spaces and NULs around it; "" if it has other control characters or is no UTF-8.
func printable(value []byte) string {
	value = bytes.Trim(value, " \x00")
	if !utf8.Valid(value) {
		return ""
	}
	for _, r := range string(value) {
		if unicode.IsControl(r) {
			return ""
		}
	}
	return string(value)
}
