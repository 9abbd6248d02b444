package machine

import (
	"encoding/hex"
	"fmt"
	"net"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
)

// SampleInventory returns the data that the ramdisk of the nth machine posts. Hostname, serial number, MAC addresses and BMC
// address are unique to the machine. The caller may change the result.
func SampleInventory(n int) map[string]any {
	mac := func(card int) string {
		return fmt.Sprintf("52:55:%02x:%02x:%02x:%02x", n>>16&0xff, n>>8&0xff, n&0xff, card)
	}
	cards := []any{
		NetworkCard(1, mac(0), fmt.Sprintf("198.19.%d.%d", n>>8&0xff, n&0xff)),
		NetworkCard(2, mac(1), nil),
	}
	inventory := NewInventory(fmt.Sprintf("machine-%d", n), fmt.Sprintf("RK%06d", n),
		fmt.Sprintf("198.18.%d.%d", n>>8&0xff, n&0xff), mac(0), cards)
	disks, _ := inventory["disks"].([]any)
	return map[string]any{
		"inventory":      inventory,
		"lldp_raw":       Announcements(cards),
		"boot_interface": mac(0),
		"root_disk":      api.Clone(disks[0]),
		"configuration": map[string]any{
			"collectors": []any{"default", "logs"},
			"managers":   []any{map[string]any{"name": "generic_hardware_manager", "version": "1.1"}},
		},
		"error": nil,
	}
}

// NetworkCard returns the nth card of an inventory, counted from 1. Only the first has a carrier.
func NetworkCard(n int, mac string, ipv4 any) map[string]any {
	var ipv6 any
	if ipv4 != nil {
		ipv6 = fmt.Sprintf("fe80::1%%eno%d", n)
	}
	return map[string]any{
		"name": fmt.Sprintf("eno%d", n), "mac_address": mac, "ipv4_address": ipv4, "ipv6_address": ipv6, "has_carrier": n == 1,
		"vendor": "0x8086", "product": "0x1563", "client_id": nil, "biosdevname": nil, "speed_mbps": 10000.0, "lldp": nil,
		"pci_address": fmt.Sprintf("0000:18:00.%d", n-1),
	}
}

// Announcements returns what the ramdisk received from the switches by LLDP, by name of the card: pairs of type and value in
// hexadecimal digits. Only cards with a carrier receive anything.
func Announcements(cards []any) map[string]any {
	received := map[string]any{}
	for i, item := range cards {
		card := api.Object(item)
		if card["has_carrier"] == true {
			received[api.Text(card["name"])] = []any{
				[]any{1.0, "04525400ee0001"},
				[]any{2.0, "05" + hex.EncodeToString(fmt.Appendf(nil, "Ethernet1/%d", i+1))},
				[]any{5.0, hex.EncodeToString([]byte("leaf-1"))},
			}
		} else {
			received[api.Text(card["name"])] = []any{}
		}
	}
	return received
}

// Announcement is what a switch sends by LLDP: its name, and the name of the port (reference/ironic.md#lldp).
func Announcement(chassis, name, port string) []any {
	mac, err := net.ParseMAC(chassis)
	id := "07" + hex.EncodeToString([]byte(chassis))
	if err == nil {
		id = "04" + hex.EncodeToString(mac)
	}
	text := func(s string) string { return hex.EncodeToString([]byte(s)) }
	return []any{[]any{1.0, id}, []any{2.0, "05" + text(port)}, []any{3.0, "0078"}, []any{5.0, text(name)}, []any{0.0, ""}}
}

// Heard is what each card has heard: null if the ramdisk did not listen.
func Heard(cards []any, hears func(mac string) []any) map[string]any {
	received := map[string]any{}
	for _, item := range cards {
		card := api.Object(item)
		var announced any
		if heard := hears(api.Text(card["mac_address"])); heard != nil {
			announced = heard
		}
		received[api.Text(card["name"])] = announced
	}
	return received
}

// ParseLLDP is what the hook parse-lldp makes of announcements. It knows the kinds of identifiers that Announcement sends.
func ParseLLDP(raw map[string]any) map[string]any {
	parsed := map[string]any{}
	for name, item := range raw {
		found := map[string]any{}
		tlvs, _ := item.([]any)
		for _, tlv := range tlvs {
			pair, _ := tlv.([]any)
			value, err := hex.DecodeString(api.Text(pair[1]))
			if err != nil || len(value) == 0 {
				continue
			}
			switch pair[0] {
			case 1.0:
				found["switch_chassis_id"] = string(value[1:])
				if value[0] == 4 {
					found["switch_chassis_id"] = net.HardwareAddr(value[1:]).String()
				}
			case 2.0:
				found["switch_port_id"] = string(value[1:])
			case 5.0:
				found["switch_system_name"] = string(value)
			}
		}
		if len(found) > 0 {
			parsed[name] = found
		}
	}
	return parsed
}

// NewInventory returns an inventory. bootMAC is the address of the card that the machine booted from; "" if that is unknown.
func NewInventory(hostname, serial, bmcAddress, bootMAC string, cards []any) map[string]any {
	return map[string]any{
		"hostname": hostname, "bmc_address": bmcAddress, "bmc_v6address": "::/0", "bmc_mac": "52:54:00:bc:00:01",
		"system_vendor": map[string]any{
			"manufacturer": "Example Systems", "product_name": "Rack One", "serial_number": serial,
			"firmware": map[string]any{"vendor": "Example Systems", "version": "1.0", "build_date": "01/01/2024"},
		},
		"cpu": map[string]any{
			"model_name": "Example CPU @ 2.10GHz", "count": 32.0, "architecture": "x86_64", "frequency": "2100",
			"flags": []any{},
		},
		"memory":     map[string]any{"total": 134217728000.0, "physical_mb": 131072.0},
		"disks":      []any{SampleDisk("/dev/sda", "DISK-"+serial)},
		"interfaces": cards,
		"boot":       map[string]any{"current_boot_mode": "uefi", "pxe_interface": api.OrNull(bootMAC)},
	}
}

// Cards are the cards of an inventory, in its order.
type Cards struct {
	All   []map[string]any // cards with a name and a MAC address
	Valid []map[string]any // cards that become ports
}

// ReadCards reads the network cards. The card that the machine booted from is valid or, if it is unknown, every card.
func ReadCards(inventory map[string]any) Cards {
	var cards Cards
	pxe := BootMAC(api.Text(api.Object(inventory["boot"])["pxe_interface"]))
	list, _ := inventory["interfaces"].([]any)
	for _, item := range list {
		card := api.Object(api.Clone(item))
		mac, err := api.ReadMAC(card["mac_address"])
		if api.Text(card["name"]) == "" || err != nil {
			continue
		}
		if ipv6, hasScope := card["ipv6_address"].(string); hasScope {
			card["ipv6_address"], _, _ = strings.Cut(ipv6, "%")
		} else {
			card["ipv6_address"] = nil
		}
		card["pxe_enabled"] = mac == pxe
		cards.All = append(cards.All, card)
		local := card["name"] == "lo" || IsLoopback(api.Text(card["ipv4_address"]), api.Text(card["ipv6_address"]))
		if !local && (pxe == "" || mac == pxe) {
			cards.Valid = append(cards.Valid, card)
		}
	}
	return cards
}

// BootMAC parses the MAC address of the boot card, which may have PXELINUX's form: 01-52-54-00-00-00-01.
func BootMAC(given string) string {
	if _, mac, found := strings.Cut(given, "-"); found {
		given = strings.ReplaceAll(mac, "-", ":")
	}
	return strings.ToLower(given)
}

// IsLoopback reports whether the first address that is not empty is a loopback address.
func IsLoopback(addresses ...string) bool {
	for _, address := range addresses {
		if address != "" {
			return net.ParseIP(address).IsLoopback()
		}
	}
	return false
}

// PluginData returns the plugin data that Ironic stores with the inventory.
func PluginData(data map[string]any, cards Cards) map[string]any {
	out := map[string]any{}
	for key, value := range data {
		if key != "inventory" && key != "logs" {
			out[key] = value
		}
	}
	all, valid, macs := map[string]any{}, map[string]any{}, []any{}
	for _, card := range cards.All {
		all[api.Text(card["name"])] = card
	}
	for _, card := range cards.Valid {
		valid[api.Text(card["name"])] = card
		macs = append(macs, card["mac_address"])
	}
	out["all_interfaces"], out["valid_interfaces"], out["macs"] = all, valid, macs
	return out
}

// PostedMACs returns the valid MAC addresses of an inventory, in lower case.
func PostedMACs(data map[string]any) []string {
	var macs []string
	cards, _ := api.Object(data["inventory"])["interfaces"].([]any)
	for _, card := range cards {
		if mac, err := api.ReadMAC(api.Object(card)["mac_address"]); err == nil {
			macs = append(macs, mac)
		}
	}
	return macs
}
