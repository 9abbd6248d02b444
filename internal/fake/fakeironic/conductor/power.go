package conductor

import (
	"cmp"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/machine"
)

// switchPower switches the node on or off. It does nothing if the node is in that power state.
func (c *Conductor) switchPower(n *Node, to string) {
	if n.Str("power_state") == to || n.byAgent() || to == PowerOff && n.Flag("disable_power_off") {
		return
	}
	c.notePowerChange(n)
	n.Put("power_state", to)
	if to == PowerOn {
		n.Machine.Start()
	}
}

// restart switches the node off and on, into Ironic's ramdisk. With fast track, a machine on which the agent runs stays on.
func (c *Conductor) restart(n *Node) {
	if c.FastTrack && n.Machine.Agent {
		return
	}
	c.notePowerChange(n)
	n.Put("power_state", PowerOn)
	n.Machine.Start()
}

// notePowerChange records when Ironic began to change the power of the node, even if the change fails.
func (c *Conductor) notePowerChange(n *Node) {
	n.Note("last_power_state_change", c.Now.UTC().Format("2006-01-02T15:04:05.000000"))
}

// Power states; they are also targets.
const (
	PowerOn  = "power on"
	PowerOff = "power off"
)

// Targets that ask the operating system.
const (
	SoftRebooting = "soft rebooting"
	SoftPowerOff  = "soft power off"
)

// SoftPowerOffTimeout is the default of [conductor]soft_power_off_timeout.
const SoftPowerOffTimeout = 10 * time.Minute

// PowerResult returns the power state that a target leads to.
func PowerResult(target string) (result string, restart, found bool) {
	switch target {
	case PowerOn:
		return PowerOn, false, true
	case "rebooting", SoftRebooting:
		return PowerOn, true, true
	case PowerOff, SoftPowerOff:
		return PowerOff, false, true
	}
	return "", false, false
}

// ChangePower changes the power of the node after a while, unless the machine ignores that. The node is locked until then.
func (c *Conductor) ChangePower(n *Node, target, result string, restart, ignored bool, wait time.Duration) {
	n.Put("target_power_state", result)
	n.Put("last_error", nil)
	n.Put("reservation", Host)
	n.Put("updated_at", api.Timestamp(c.Now))
	was := n.Str("power_state")
	if was == "" && n.Uses("power") != "fake" {
		was = PowerOff // as the BMC says; Ironic asks it (node_power_action in ironic/conductor/utils.py of 21.4 and 39.0)
	}
	if restart || was != result {
		c.notePowerChange(n)
	}
	var end func()
	end = func() {
		if n.Str("target_power_state") == "" || c.keeps(result, end) {
			return
		}
		n.Put("target_power_state", nil)
		n.Put("reservation", nil)
		n.Put("updated_at", api.Timestamp(c.Now))
		if defect := cmp.Or(c.ownChild(n), c.silence(n)); defect != "" {
			n.Put("last_error", "Failed to change power state to '"+result+"': "+defect)
			return
		}
		if ignored && n.Waitless(target) {
			return
		}
		if ignored {
			n.Put("last_error", "Failed to change power state to '"+result+"' by '"+target+
				"': Failed to set node power state to "+PowerOff+".")
			return
		}
		if defect := cmp.Or(n.agentPowerDefect(target, restart), n.softRestartDefect(target)); defect != "" {
			n.Put("last_error", "Failed to change power state to '"+result+"' by '"+target+"': "+defect)
			return
		}
		if c.Fail != nil {
			if text := c.Fail(n, target); text != "" {
				n.Put("last_error", text)
				return
			}
		}
		if result == PowerOn && (restart || n.Str("power_state") != PowerOn) {
			n.Machine.Start()
		}
		n.Put("power_state", result)
	}
	c.After(wait, end)
}

// Waitless reports whether the power interface does not wait for the operating system: Redfish takes a machine that is on for one that was
// restarted softly.
func (n *Node) Waitless(target string) bool {
	return target == SoftRebooting && strings.HasSuffix(n.Uses("power"), "redfish")
}

// softRestartDefect returns why a machine that is off cannot be restarted softly; "" if it is on or if the power interface is fake.
func (n *Node) softRestartDefect(target string) string {
	switch power := n.Uses("power"); {
	case target != SoftRebooting || n.Str("power_state") == PowerOn:
	case power == "ipmitool":
		return "IPMI call failed: power soft."
	case strings.HasSuffix(power, "redfish"):
		return "Redfish exception occurred. Error: the request could not be performed because the resource is in standby."
	}
	return ""
}

// agentPowerDefect returns why the power interface agent cannot do a verb of power, "" if it can or if the node has another interface. It
// can only restart the machine, and only through the agent (reference/ironic.md#power-interface-agent).
func (n *Node) agentPowerDefect(target string, restart bool) string {
	switch {
	case !n.byAgent():
		return ""
	case !restart:
		return "Failed to set node power state to " + target + "."
	case !n.Machine.Agent:
		return "Connection to agent failed: Failed to connect to the agent running on node " + n.Str("uuid") + "."
	}
	return ""
}

// ChangeBoot changes boot_mode or secure_boot after one StepTime; the node is locked until then. Only the management interfaces of
// Redfish can; the others set last_error. The BMC applies the change without a restart.
func (c *Conductor) ChangeBoot(n *Node, what string, value any) {
	c.ChangeLater(n, func() string {
		reason := ""
		if !n.overRedfish() {
			method := map[string]string{"boot_mode": "set_boot_mode", "secure_boot": "set_secure_boot_state"}[what]
			reason = "Driver " + n.Str("driver") + " does not support " + method + " (disabled or not implemented)."
		} else if c.Fail != nil {
			reason = c.Fail(n, what)
		}
		switch {
		case reason == "":
			n.Put(what, value)
			return ""
		case what == "boot_mode":
			return "Failed to change boot mode to '" + api.PyText(value) + ": " + reason
		}
		return "Failed to change secure_boot state to '" + api.PyText(value) + "': " + reason
	})
}

// overRedfish reports whether Redfish is the node's management interface.
func (n *Node) overRedfish() bool { return strings.HasSuffix(n.Uses("management"), "redfish") }

// noteBoot records the boot mode and secure boot that Ironic reads from a BMC when it has verified it.
func (n *Node) noteBoot() {
	if n.overRedfish() && n.Fields["boot_mode"] == nil {
		n.Put("boot_mode", "uefi")
		n.Put("secure_boot", false)
	}
}

// BootDevices returns the boot devices that a management interface supports.
func (c *Conductor) BootDevices(management string) []string {
	switch management {
	case "fake":
		return []string{machine.DevicePXE}
	case "ipmitool":
		return []string{machine.DevicePXE, machine.DeviceDisk, machine.DeviceCDROM, "bios", "safe"}
	}
	devices := []string{machine.DevicePXE, machine.DeviceDisk, machine.DeviceCDROM, "bios"}
	if !c.legacy() {
		devices = append(devices, "uefihttp")
	}
	return devices
}

// ShownBootDevice returns the boot device as the API shows it. The management interface fake always shows pxe.
func (n *Node) ShownBootDevice() api.Ordered {
	if n.Uses("management") == "fake" {
		return api.Ordered{{"boot_device", machine.DevicePXE}, {"persistent", false}}
	}
	return api.Ordered{{"boot_device", api.OrNull(n.Machine.Device)}, {"persistent", n.Machine.Persistent}}
}

// consoleTimeout is the default of [vnc]token_timeout, after which a graphical console ends.
const consoleTimeout = 10 * time.Minute

// SetConsole starts or stops the console of the node after one StepTime; the node is locked until then.
func (c *Conductor) SetConsole(n *Node, enabled bool) {
	c.ChangeLater(n, func() string {
		verb, reason := "disabling", ""
		if enabled {
			verb = "enabling"
		}
		if c.Fail != nil {
			reason = c.Fail(n, "console")
		}
		if reason != "" {
			reason = "Error " + verb + " the console on node " + n.Str("uuid") + ". Reason: " + reason
			c.enterHistory(n, "ERROR", "console", reason)
			return reason
		}
		n.Put("console_enabled", enabled)
		n.Machine.Console = nil
		c.startConsole(n)
		return ""
	})
}

// startConsole starts the console of a node if it is enabled. A graphical one ends after a while.
func (c *Conductor) startConsole(n *Node) {
	if !n.Flag("console_enabled") {
		return
	}
	started := machine.NewConsole()
	n.Machine.Console = started
	if machine.Graphical(n.Uses("console")) {
		c.After(consoleTimeout, func() {
			if n.Machine.Console == started {
				n.stopConsole()
			}
		})
	}
}

// stopConsole stops the console of a node. One that is not graphical stays enabled, and the next deployment starts it again.
func (n *Node) stopConsole() {
	n.Machine.Console = nil
	if machine.Graphical(n.Uses("console")) {
		n.Put("console_enabled", false)
	}
}

// ChangeLater locks the node for one StepTime and then calls change, which returns the last_error.
func (c *Conductor) ChangeLater(n *Node, change func() string) {
	n.Put("last_error", nil)
	n.Put("reservation", Host)
	n.Put("updated_at", api.Timestamp(c.Now))
	c.After(c.StepTime, func() {
		n.Put("reservation", nil)
		n.Put("last_error", api.OrNull(change()))
		n.Put("updated_at", api.Timestamp(c.Now))
	})
}
