// Package ramdisk knows how a machine boots Ironic's ramdisk, what it lacks for that, and what to check if the ramdisk does not report. It
// sends no requests.
package ramdisk

import (
	"fmt"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
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

// BootsNoISO reports whether a boot interface accepts the deployment of a live ISO and does not boot it
// (reference/live-iso.md#boot-interfaces).
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

// PXEPorts returns pxe_enabled of ports by MAC address.
func PXEPorts(ports map[string]ironic.Port) map[string]*bool {
	enabled := make(map[string]*bool, len(ports))
	for mac, port := range ports {
		enabled[mac] = &port.PXEEnabled
	}
	return enabled
}

// AbsentAfter is how long Ironic may wait for its ramdisk before the log says what to check. Large servers need minutes until they boot.
const AbsentAfter = 4 * time.Minute

// Absence says since when the ramdisk of a node has not reported, as a predicate; "" if it has, or need not. now is the time of Ironic's
// clock.
func Absence(n *ironic.Node, now time.Time) string {
	if !states.AwaitsAgent(ironic.State(n.ProvisionState)) || !Boots(n) || n.Hidden.DriverInternalInfo {
		return ""
	}
	began, heard := n.ProvisionUpdatedAt, ironic.InternalTime(n, KeyHeartbeat)
	says := "its ramdisk has not reported since"
	if heard.After(began) {
		if now.Sub(heard) < AbsentAfter {
			return ""
		}
		began, says = heard, "its ramdisk reported last at"
	}
	if waited := now.Sub(began); waited >= AbsentAfter {
		return fmt.Sprintf("is in state %s, and %s %s (%s ago)", n.ProvisionState, says, began.UTC().Format(time.TimeOnly+" UTC"),
			waited.Round(time.Second))
	}
	return ""
}

// KeyHeartbeat is when the ramdisk reported last, in driver_internal_info.
const KeyHeartbeat = "agent_last_heartbeat"

// Boots reports whether the machine boots Ironic's ramdisk in the present step: steps of these interfaces are the BMC's, and may take long.
func Boots(n *ironic.Node) bool {
	for _, step := range []map[string]any{n.CleanStep, n.DeployStep, n.ServiceStep} {
		switch states.TextOf(step, "interface") {
		case "bios", "firmware", "management", "power", "raid", "vendor":
			return false
		}
	}
	return true
}

// CheckBoot says what to check if a machine does not boot Ironic's ramdisk. macs are the addresses of the cards that may boot, as far as
// known.
func CheckBoot(n *ironic.Node, macs []string) string {
	text := "Check how it boots"
	switch boot := n.BootInterface; {
	case BootsFromPort(boot):
		card := "the card that boots has a port with pxe_enabled"
		if len(macs) > 0 {
			card = "the card that boots has the MAC address " + strings.Join(macs, " or ")
		}
		text = fmt.Sprintf("It boots from the network (boot interface %s). Check that %s, that DHCP answers that card and names %s, that "+
			"the machine tries the network first, and that its boot mode (UEFI or BIOS) is the one that Ironic expects", boot,
			card, loaders(boot))
	case strings.Contains(boot, "virtual-media"):
		text = fmt.Sprintf("It boots from virtual media (boot interface %s). Check that the BMC reaches the conductor's web server "+
			"([deploy]http_url, or external_http_url in driver_info), that it shows the image in its virtual drive, and that its licence "+
			"includes virtual media", boot)
	case strings.HasSuffix(boot, "-https"):
		text = fmt.Sprintf("Its firmware loads the ramdisk by HTTP (boot interface %s). Check that it supports UEFI HTTP boot, and "+
			"reaches the conductor's web server", boot)
	}
	if n.ManagementInterface == "ipmitool" {
		text += ". The boot device that the BMC has stored: metal boot-device show " + n.UUID
	}
	text += ". If the ramdisk runs, it must reach Ironic's API. Its console shows where it stops"
	if n.ConsoleEnabled {
		text += ": metal console " + n.UUID
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
