package ironic

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/netip"
	"unicode"
	"unicode/utf8"
)

// Neighbour is the switch port that a network card is connected to, as the switch announces it by LLDP
// (reference/ironic.md#inspections). Unknown parts are empty.
type Neighbour struct {
	SwitchID   string // usually a MAC address
	SwitchName string
	PortID     string // such as Ethernet1/18
}

// pluginData is what an inspection found besides the inventory. Any client can post an inventory, so parts of any type may be
// missing.
type pluginData struct {
	Parsed map[string]struct {
		ChassisID  string `json:"switch_chassis_id"`
		PortID     string `json:"switch_port_id"`
		SystemName string `json:"switch_system_name"`
	} `json:"parsed_lldp"` // by Ironic's hook parse-lldp, which a site must enable
	Raw map[string]json.RawMessage `json:"lldp_raw"` // an older ramdisk puts it into the inventory
}

// addNeighbours adds what LLDP says about the network cards of an inventory.
func (i *Inventory) addNeighbours(data pluginData) {
	if i == nil {
		return
	}
	i.Neighbours = map[string]Neighbour{}
	for _, card := range i.Interfaces {
		raw := data.Raw[card.Name]
		if len(raw) == 0 {
			raw = card.LLDP
		}
		n, parsed := readLLDP(raw), data.Parsed[card.Name]
		n.SwitchID, n.SwitchName, n.PortID = cmp.Or(parsed.ChassisID, n.SwitchID), cmp.Or(parsed.SystemName, n.SwitchName), cmp.Or(parsed.PortID, n.PortID)
		if n != (Neighbour{}) {
			i.Neighbours[card.Name] = n
		}
	}
}

// Types of LLDP's TLVs (IEEE 802.1AB).
const (
	lldpChassisID  = 1
	lldpPortID     = 2
	lldpSystemName = 5
)

// readLLDP reads the TLVs of an announcement, which the ramdisk stores as pairs of type and hexadecimal value. It ignores what it
// cannot read.
func readLLDP(raw json.RawMessage) (n Neighbour) {
	var tlvs [][]any
	if json.Unmarshal(raw, &tlvs) != nil {
		return n
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
		switch kind {
		case lldpChassisID:
			n.SwitchID = lldpID(value, 4, 5)
		case lldpPortID:
			n.PortID = lldpID(value, 3, 4)
		case lldpSystemName:
			n.SwitchName = printable(value)
		}
	}
	return n
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

// printable returns a text; "" if it has control characters or is no UTF-8.
func printable(value []byte) string {
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
