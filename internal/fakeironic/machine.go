package fakeironic

import (
	"encoding/hex"
	"fmt"
	"net"
	"strings"
)

// machine is the hardware behind a node.
type machine struct {
	starts int
	booted string // the ISO that it booted last; "" if it booted something else

	device     string // the selected boot device
	persistent any    // true: for every boot; false: for the next boot only; nil: no device is selected
	drive      string // the ISO in its virtual CD drive
	image      string // the URL of the conductor's copy of that ISO, which the BMC uses
	network    string // the ISO for network boot

	agent bool // Ironic's agent runs on it and reports

	bios     map[string]BIOSSetting // nil until a step or a test sets them
	firmware map[string]*component  // by name, likewise
}

// Boot devices.
const (
	devicePXE   = "pxe"
	deviceDisk  = "disk"
	deviceCDROM = "cdrom"
)

// bootFrom selects the boot device.
func (m *machine) bootFrom(device string, persistent bool) {
	m.device, m.persistent = device, persistent
}

// start boots the machine. It boots from the network if its drive is empty or no device is selected.
func (m *machine) start() {
	m.starts++
	m.agent = false
	m.booted = m.network
	switch {
	case m.persistent == nil:
	case m.device == deviceCDROM && m.drive != "":
		m.booted = m.drive
	case m.device == deviceDisk:
		m.booted = ""
	}
	if m.persistent == false {
		m.persistent = nil
	}
}

// PowerCycles returns how often the machine of a node booted: each change of its power_state to "power on" counts 1, and each
// restart ("rebooting", "soft rebooting") of a machine that was on. A deployment or rebuild with the deploy interface ramdisk
// counts 1, one with direct counts 2 (Ironic's ramdisk, then the image), a cleaning with a ramdisk counts 1. Undeploying,
// operations with the deploy interface fake, inspection, rescue, Set, and operations that fail before the boot count 0.
// It returns 0 if the node does not exist.
func (s *Server) PowerCycles(ref string) int {
	defer s.lock()()
	if n := s.find(ref); n != nil {
		return n.machine.starts
	}
	return 0
}

// RunAgent makes Ironic's agent on the machine of a node report or fall silent, as after a boot of the ramdisk by hand. Discovery
// starts it, and a restart ends it.
func (s *Server) RunAgent(ref string, runs bool) {
	defer s.lock()()
	if n := s.find(ref); n != nil {
		n.machine.agent = runs
	}
}

// BootedISO returns the URL of the ISO that the machine of a node booted last, "" if it booted something else or never.
// After a deployment or rebuild with the deploy interface ramdisk that is the boot_iso of the deployment, also after restarts
// and after later changes of boot_iso. A restart from cdrom after an attachment of virtual media boots the attached ISO.
// It returns "" if the node does not exist.
func (s *Server) BootedISO(ref string) string {
	defer s.lock()()
	if n := s.find(ref); n != nil {
		return n.machine.booted
	}
	return ""
}

// Drive returns the URL of the image in a node's CD drive; "" if the drive is empty or the node does not exist.
func (s *Server) Drive(ref string) string {
	defer s.lock()()
	if n := s.find(ref); n != nil {
		return n.machine.drive
	}
	return ""
}

// switchPower switches the node on or off. It does nothing if the node is in that power state.
func (s *Server) switchPower(n *node, to string) {
	if n.str("power_state") == to || n.byAgent() || to == powerOff && n.flag("disable_power_off") {
		return
	}
	s.notePowerChange(n)
	n.put("power_state", to)
	if to == powerOn {
		n.machine.start()
	}
}

// restart switches the node off and on, into Ironic's ramdisk. With fast track, a machine on which the agent runs stays on.
func (s *Server) restart(n *node) {
	if s.FastTrack && n.machine.agent {
		return
	}
	s.notePowerChange(n)
	n.put("power_state", powerOn)
	n.machine.start()
}

// notePowerChange records when Ironic began to change the power of the node, even if the change fails.
func (s *Server) notePowerChange(n *node) {
	n.note("last_power_state_change", s.now.UTC().Format("2006-01-02T15:04:05.000000"))
}

// insert puts an ISO into the machine's drive; image is the URL of the conductor's copy, which the BMC uses.
func (m *machine) insert(iso, image string) { m.drive, m.image = iso, image }

// empty removes the ISO of a boot interface from the network or from the drive.
func (m *machine) empty(boot string) {
	if netboots(boot) {
		m.network = ""
		return
	}
	m.insert("", "")
}

// netboots reports whether a boot interface boots machines from the network.
func netboots(boot string) bool { return boot == "ipxe" || boot == "pxe" }

// SampleInventory returns the data that the ramdisk of the nth machine posts. Hostname, serial number, MAC addresses and BMC
// address are unique to the machine. The caller may change the result.
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
		"lldp_raw":       announcements(cards),
		"boot_interface": mac(0),
		"root_disk":      clone(disks[0]),
		"configuration":  map[string]any{"collectors": []any{"default", "logs"}, "managers": []any{map[string]any{"name": "generic_hardware_manager", "version": "1.1"}}},
		"error":          nil,
	}
}

// networkCard returns the nth card of an inventory, counted from 1. Only the first has a carrier.
func networkCard(n int, mac string, ipv4 any) map[string]any {
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

// announcements returns what the ramdisk received from the switches by LLDP, by name of the card: pairs of type and value in
// hexadecimal digits. Only cards with a carrier receive anything.
func announcements(cards []any) map[string]any {
	received := map[string]any{}
	for i, item := range cards {
		card := object(item)
		if card["has_carrier"] == true {
			received[text(card["name"])] = []any{
				[]any{1.0, "04525400ee0001"},
				[]any{2.0, "05" + hex.EncodeToString(fmt.Appendf(nil, "Ethernet1/%d", i+1))},
				[]any{5.0, hex.EncodeToString([]byte("leaf-1"))},
			}
		} else {
			received[text(card["name"])] = []any{}
		}
	}
	return received
}

// hardware returns an inventory. bootMAC is the address of the card that the machine booted from; "" if that is unknown.
func hardware(hostname, serial, bmcAddress, bootMAC string, cards []any) map[string]any {
	return map[string]any{
		"hostname": hostname, "bmc_address": bmcAddress, "bmc_v6address": "::/0", "bmc_mac": "52:54:00:bc:00:01",
		"system_vendor": map[string]any{
			"manufacturer": "Example Systems", "product_name": "Rack One", "serial_number": serial,
			"firmware": map[string]any{"vendor": "Example Systems", "version": "1.0", "build_date": "01/01/2024"},
		},
		"cpu":    map[string]any{"model_name": "Example CPU @ 2.10GHz", "count": 32.0, "architecture": "x86_64", "frequency": "2100", "flags": []any{}},
		"memory": map[string]any{"total": 134217728000.0, "physical_mb": 131072.0},
		"disks": []any{map[string]any{
			"name": "/dev/sda", "model": "Example SSD", "size": 960197124096.0, "rotational": false, "wwn": nil, "serial": "DISK-" + serial,
			"vendor": "EXAMPLE", "wwn_with_extension": nil, "wwn_vendor_extension": nil, "hctl": "0:0:0:0",
			"by_path": "/dev/disk/by-path/pci-0000:3b:00.0-scsi-0:0:0:0",
		}},
		"interfaces": cards,
		"boot":       map[string]any{"current_boot_mode": "uefi", "pxe_interface": orNull(bootMAC)},
	}
}

// discover stores the inventory that an inspection of the node finds, unless the node has one.
func (s *Server) discover(n *node) {
	if n.inventory != nil {
		return
	}
	cards := []any{}
	boot := ""
	for _, p := range s.ports {
		if p.node != n {
			continue
		}
		if boot == "" {
			boot = p.address
		}
		cards = append(cards, networkCard(len(cards)+1, p.address, nil))
	}
	inventory := hardware(n.str("name"), fmt.Sprintf("SN%06d", n.order), fmt.Sprintf("192.0.2.%d", n.order%250+1), boot, cards)
	n.inventory = map[string]any{"inventory": inventory, "plugin_data": pluginData(map[string]any{"lldp_raw": announcements(cards)}, readCards(inventory))}
}

// networkCards are the cards of an inventory, in its order.
type networkCards struct {
	all   []map[string]any // cards with a name and a MAC address
	valid []map[string]any // cards that become ports
}

// readCards reads the network cards. The card that the machine booted from is valid or, if it is unknown, every card.
func readCards(inventory map[string]any) networkCards {
	var cards networkCards
	pxe := bootMAC(text(object(inventory["boot"])["pxe_interface"]))
	list, _ := inventory["interfaces"].([]any)
	for _, item := range list {
		card := object(clone(item))
		mac, err := readMAC(card["mac_address"])
		if text(card["name"]) == "" || err != nil {
			continue
		}
		if ipv6, hasScope := card["ipv6_address"].(string); hasScope {
			card["ipv6_address"], _, _ = strings.Cut(ipv6, "%")
		} else {
			card["ipv6_address"] = nil
		}
		card["pxe_enabled"] = mac == pxe
		cards.all = append(cards.all, card)
		local := card["name"] == "lo" || isLoopback(text(card["ipv4_address"]), text(card["ipv6_address"]))
		if !local && (pxe == "" || mac == pxe) {
			cards.valid = append(cards.valid, card)
		}
	}
	return cards
}

// bootMAC parses the MAC address of the boot card, which may have PXELINUX's form: 01-52-54-00-00-00-01.
func bootMAC(given string) string {
	if _, mac, found := strings.Cut(given, "-"); found {
		given = strings.ReplaceAll(mac, "-", ":")
	}
	return strings.ToLower(given)
}

// isLoopback reports whether the first address that is not empty is a loopback address.
func isLoopback(addresses ...string) bool {
	for _, address := range addresses {
		if address != "" {
			return net.ParseIP(address).IsLoopback()
		}
	}
	return false
}

// pluginData returns the plugin data that Ironic stores with the inventory.
func pluginData(data map[string]any, cards networkCards) map[string]any {
	out := map[string]any{}
	for key, value := range data {
		if key != "inventory" && key != "logs" {
			out[key] = value
		}
	}
	all, valid, macs := map[string]any{}, map[string]any{}, []any{}
	for _, card := range cards.all {
		all[text(card["name"])] = card
	}
	for _, card := range cards.valid {
		valid[text(card["name"])] = card
		macs = append(macs, card["mac_address"])
	}
	out["all_interfaces"], out["valid_interfaces"], out["macs"] = all, valid, macs
	return out
}

// postedMACs returns the valid MAC addresses of an inventory, in lower case.
func postedMACs(data map[string]any) []string {
	var macs []string
	cards, _ := object(data["inventory"])["interfaces"].([]any)
	for _, card := range cards {
		if mac, err := readMAC(object(card)["mac_address"]); err == nil {
			macs = append(macs, mac)
		}
	}
	return macs
}
