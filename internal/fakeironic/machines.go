package fakeironic

import "fmt"

// SampleInventory is what the ramdisk of the nth machine posts. No two machines share a hostname, a serial number, a MAC
// address or an address of the BMC. The result is the caller's own, to be changed at will.
func SampleInventory(n int) map[string]any {
	mac := func(card int) string {
		return fmt.Sprintf("52:55:%02x:%02x:%02x:%02x", n>>16&0xff, n>>8&0xff, n&0xff, card)
	}
	cards := []any{
		networkCard(1, mac(0), fmt.Sprintf("198.19.%d.%d", n>>8&0xff, n&0xff)),
		networkCard(2, mac(1), nil),
	}
	inventory := hardware(fmt.Sprintf("machine-%d", n), fmt.Sprintf("RK%06d", n), fmt.Sprintf("198.18.%d.%d", n>>8&0xff, n&0xff), mac(0), cards)
	disks, _ := inventory["disks"].([]any)
	return map[string]any{
		"inventory":      inventory,
		"boot_interface": mac(0),
		"root_disk":      clone(disks[0]),
		"configuration":  map[string]any{"collectors": []any{"default", "logs"}, "managers": []any{map[string]any{"name": "generic_hardware_manager", "version": "1.1"}}},
		"error":          nil,
	}
}

// networkCard is the nth card in an inventory, counted from 1; only the first has a cable.
func networkCard(n int, mac string, ipv4 any) map[string]any {
	var ipv6 any
	if ipv4 != nil {
		ipv6 = fmt.Sprintf("fe80::1%%eno%d", n)
	}
	return map[string]any{
		"name": fmt.Sprintf("eno%d", n), "mac_address": mac, "ipv4_address": ipv4, "ipv6_address": ipv6, "has_carrier": n == 1,
		"vendor": "0x8086", "product": "0x1563", "client_id": nil, "biosdevname": nil, "speed_mbps": 10000.0, "lldp": nil,
	}
}

// hardware is an inventory. bootMAC is the address of the card that the machine booted from, "" when that is unknown.
func hardware(hostname, serial, bmcAddress, bootMAC string, cards []any) map[string]any {
	return map[string]any{
		"hostname": hostname, "bmc_address": bmcAddress, "bmc_v6address": "::/0",
		"system_vendor": map[string]any{
			"manufacturer": "Example Systems", "product_name": "Rack One", "serial_number": serial,
			"firmware": map[string]any{"vendor": "Example Systems", "version": "1.0", "build_date": "01/01/2024"},
		},
		"cpu":    map[string]any{"model_name": "Example CPU @ 2.10GHz", "count": 32.0, "architecture": "x86_64", "frequency": "2100", "flags": []any{}},
		"memory": map[string]any{"total": 134217728000.0, "physical_mb": 131072.0},
		"disks": []any{map[string]any{
			"name": "/dev/sda", "model": "Example SSD", "size": 960197124096.0, "rotational": false, "wwn": nil, "serial": "DISK-" + serial,
			"vendor": "EXAMPLE", "wwn_with_extension": nil, "wwn_vendor_extension": nil, "hctl": "0:0:0:0", "by_path": nil,
		}},
		"interfaces": cards,
		"boot":       map[string]any{"current_boot_mode": "uefi", "pxe_interface": orNull(bootMAC)},
	}
}
