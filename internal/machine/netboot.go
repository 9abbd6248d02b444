package machine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/states"
)

// NetworkBoot is what a plan knows of how a machine will boot Ironic's ramdisk.
type NetworkBoot struct {
	Interface string           // boot interface; "": not known
	Ports     map[string]*bool // pxe_enabled of its ports, by MAC address; nil: not known
	Open      bool             // it may have other ports by then
}

// BootsFromPort reports whether a boot interface boots machines from the network. Ironic then prepares the boot for the MAC addresses
// of the node's ports (reference/ironic.md#network-boot).
func BootsFromPort(boot string) bool {
	switch boot {
	case "pxe", "ipxe", "http", "http-ipxe", "ilo-pxe", "ilo-ipxe", "irmc-pxe":
		return true
	}
	return false
}

// BootsNoISO reports whether a boot interface accepts the deployment of a live ISO and does not boot it (reference/live-iso.md#boot-interfaces).
func BootsNoISO(boot string) bool { return boot == "pxe" || boot == "http" }

// Lacks says what the machine lacks for a network boot, as the end of a sentence; "" if it lacks nothing, or if that is not known.
func (b NetworkBoot) Lacks() string {
	if !BootsFromPort(b.Interface) || b.Open {
		return ""
	}
	for _, enabled := range b.Ports {
		if enabled == nil || *enabled {
			return ""
		}
	}
	switch len(b.Ports) {
	case 0:
		return "has no port, so Ironic does not know the network card that boots"
	case 1:
		return "has one port, with pxe_enabled = false"
	}
	return fmt.Sprintf("has %d ports, all with pxe_enabled = false", len(b.Ports))
}

// InspectionBringsPorts reports whether Ironic may learn the network cards of a machine from its BMC when it inspects the machine, before
// the machine boots (reference/ironic.md#network-boot). An inspect interface that is not known ("") may.
func InspectionBringsPorts(driver, inspect string) bool {
	switch driver {
	case "ipmi", AgentDriver, "fake-hardware": // their BMCs tell no MAC addresses
		return inspect != "agent" && inspect != "inspector"
	}
	return true
}

// PXEPorts returns pxe_enabled of ports by MAC address.
func PXEPorts(ports map[string]ironic.Port) map[string]*bool {
	enabled := make(map[string]*bool, len(ports))
	for mac, port := range ports {
		enabled[mac] = &port.PXEEnabled
	}
	return enabled
}

// NamesOf returns the names of drivers.
func NamesOf(drivers []ironic.Driver) []string {
	names := make([]string, 0, len(drivers))
	for _, driver := range drivers {
		names = append(names, driver.Name)
	}
	return names
}

// absentAfter is how long Ironic may wait for its ramdisk before the log says what to check. Large servers need minutes until they boot.
const absentAfter = 4 * time.Minute

// warnAbsent logs what to check if Ironic waits for a ramdisk that does not report, and reports whether it did. Ironic itself gives up after
// 30 minutes by default. It reads the node, and the ports if it boots from the network.
func (m *Machine) warnAbsent(ctx context.Context, since time.Time) bool {
	if !states.AwaitsAgent(m.State()) || time.Since(since) < absentAfter {
		return false
	}
	n, err := m.site.Ironic.Node(ctx, m.node.UUID)
	if err != nil || n.ProvisionState != m.node.ProvisionState || BootsFromPort(n.BootInterface) && m.lookUpMACs(ctx) != nil {
		return false
	}
	absent := absence(n, m.site.Ironic.ServerNow())
	if absent == "" {
		return false
	}
	m.site.Ironic.Logger().WarnContext(ctx, fmt.Sprintf("machine %s %s. %s", ironic.NodeLabel(n), absent, checkBoot(n, m.macs)), append(NodeAttributes(n), "state", n.ProvisionState)...)
	return true
}

// lookUpMACs reads the MAC addresses from which the machine may boot.
func (m *Machine) lookUpMACs(ctx context.Context) error {
	ports, err := m.site.Ironic.PortsForRefresh(ctx, m.node.UUID)
	if err != nil {
		return err
	}
	m.macs = nil
	for _, mac := range ironic.Addresses(ports) {
		if ports[mac].PXEEnabled {
			m.macs = append(m.macs, mac)
		}
	}
	return nil
}

// absence says since when the ramdisk of a node has not reported, as a predicate; "" if it has, or need not. now is the time of Ironic's
// clock.
func absence(n *ironic.Node, now time.Time) string {
	if !states.AwaitsAgent(ironic.State(n.ProvisionState)) || !boots(n) || n.Hidden.DriverInternalInfo {
		return ""
	}
	began, heard := n.ProvisionUpdatedAt, ironic.InternalTime(n, KeyHeartbeat)
	says := "its ramdisk has not reported since"
	if heard.After(began) {
		if now.Sub(heard) < absentAfter {
			return ""
		}
		began, says = heard, "its ramdisk reported last at"
	}
	if waited := now.Sub(began); waited >= absentAfter {
		return fmt.Sprintf("is in state %s, and %s %s (%s ago)", n.ProvisionState, says, began.UTC().Format(time.TimeOnly+" UTC"), waited.Round(time.Second))
	}
	return ""
}

// KeyHeartbeat is when the ramdisk reported last, in driver_internal_info.
const KeyHeartbeat = "agent_last_heartbeat"

// boots reports whether the machine boots Ironic's ramdisk in the present step: steps of these interfaces are the BMC's, and may take long.
func boots(n *ironic.Node) bool {
	for _, step := range []map[string]any{n.CleanStep, n.DeployStep, n.ServiceStep} {
		switch states.TextOf(step, "interface") {
		case "bios", "firmware", "management", "power", "raid", "vendor":
			return false
		}
	}
	return true
}

// checkBoot says what to check if a machine does not boot Ironic's ramdisk. macs are the addresses of the cards that may boot, as far as known.
func checkBoot(n *ironic.Node, macs []string) string {
	text := "Check how it boots"
	switch boot := n.BootInterface; {
	case BootsFromPort(boot):
		card := "the card that boots has a port with pxe_enabled"
		if len(macs) > 0 {
			card = "the card that boots has the MAC address " + strings.Join(macs, " or ")
		}
		text = fmt.Sprintf("It boots from the network (boot interface %s). Check that %s, that DHCP answers that card and names %s, "+
			"that the machine tries the network first, and that its boot mode (UEFI or BIOS) is the one that Ironic expects", boot, card, loaders(boot))
	case strings.Contains(boot, "virtual-media"):
		text = fmt.Sprintf("It boots from virtual media (boot interface %s). Check that the BMC reaches the conductor's web server ([deploy]http_url, or external_http_url in driver_info), "+
			"that it shows the image in its virtual drive, and that its licence includes virtual media", boot)
	case strings.HasSuffix(boot, "-https"):
		text = fmt.Sprintf("Its firmware loads the ramdisk by HTTP (boot interface %s). Check that it supports UEFI HTTP boot, and reaches the conductor's web server", boot)
	}
	if n.ManagementInterface == "ipmitool" {
		text += ". The boot device that the BMC has stored: baremetal node boot device show " + n.UUID
	}
	text += ". If the ramdisk runs, it must reach Ironic's API. Its console shows where it stops"
	if n.ConsoleEnabled {
		text += ": baremetal node console show " + n.UUID
	}
	return text + "."
}

// loaders says what the DHCP server of a network boot names, and what serves it.
func loaders(boot string) string {
	switch {
	case strings.HasPrefix(boot, "http"):
		return "a boot file by HTTP, which the conductor's web server has"
	case strings.HasSuffix(boot, "ipxe"):
		return "the iPXE loader on a TFTP server, and to iPXE the script boot.ipxe on the conductor's web server"
	}
	return "the boot loader on the conductor's TFTP server"
}
