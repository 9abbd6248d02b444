package conductor

import (
	"fmt"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/machine"
)

// Receive processes the data of a discovered machine. Its node is locked until then.
func (c *Conductor) Receive(n *Node, data map[string]any, withPorts bool) {
	data["auto_discovered"] = true
	n.Put("reservation", Host)
	c.After(c.StepTime, func() {
		if c.NodeByUUID[n.Str("uuid")] != n {
			return
		}
		lastError := c.processInventory(n, data, withPorts)
		c.After(c.UnlockDelay, func() {
			n.Put("last_error", api.OrNull(lastError))
			n.Put("reservation", nil)
		})
	})
}

// processInventory processes the data of a discovered machine as the conductor does: it runs the hooks, switches the machine
// off and stores the inventory. It returns the last_error.
func (c *Conductor) processInventory(n *Node, data map[string]any, withPorts bool) string {
	n.Machine.Agent = true
	inventory := api.Object(data["inventory"])
	cards := machine.ReadCards(inventory)
	failure := c.runHooks(n, data, cards, withPorts)
	n.Put("updated_at", api.Timestamp(c.Now))
	if c.before30() && failure != "" {
		return "failed to run inspection hooks: " + failure // the machine stays on
	}
	if !c.before30() {
		n.Note("agent_last_heartbeat", c.Now.UTC().Format("2006-01-02T15:04:05.000000"))
	}
	if lastError := c.switchOffDiscovered(n); lastError != "" {
		return lastError
	}
	if failure != "" {
		n.forgetToken()
		what := "Async execution of continue_inspection failed with error: "
		if c.DiscoveryKeepsPower {
			what = "Failed to finish inspection: "
		}
		return what + "Failed to inspect hardware. Reason: failed to run inspection hooks: " + failure
	}
	n.Inventory = map[string]any{"inventory": inventory, "plugin_data": machine.PluginData(data, cards)}
	return ""
}

// before30 reports whether discovery works as in Ironic 29. A failed discovery leaves other data in 39.
func (c *Conductor) before30() bool { return c.MaxMinor <= 96 }

// switchOffDiscovered switches a discovered machine off, unless DiscoveryKeepsPower is set, and returns the last_error.
func (c *Conductor) switchOffDiscovered(n *Node) string {
	if c.DiscoveryKeepsPower {
		return ""
	}
	if reason := c.PowerFault(n); reason != "" {
		if c.before30() {
			return "Failed to change power state to 'power off': " + reason
		}
		n.forgetToken()
		return "Inspection clean up failed: unable to power off the node: " + reason
	}
	n.forgetToken()
	c.switchPower(n, PowerOff)
	return ""
}

// runHooks creates ports and properties from the data, or returns why it cannot.
func (c *Conductor) runHooks(n *Node, data map[string]any, cards machine.Cards, withPorts bool) string {
	if failure := hookFailure(n, data, cards); failure != "" {
		return "Failed to inspect hardware. Reason: " + failure
	}
	if withPorts {
		c.addCards(n, cards.Valid)
	}
	cpu := api.Object(data["inventory"])["cpu"]
	arch := api.Text(api.Object(cpu)["architecture"])
	if arch == "" {
		uuid := n.Str("uuid")
		return "Failed to inspect hardware. Reason: Unexpected exception InvalidNodeInventory during processing for node: " + uuid +
			". Error: Inventory for node " + uuid + " is invalid: Inventory has malformed or missing CPU architecture information: " +
			api.PyRepr(cpu) + " for node " + uuid + "."
	}
	n.Put("properties", map[string]any{"cpu_arch": arch})
	return ""
}

// hookFailure returns the error of the hooks that run before any change, "" if there is none.
func hookFailure(n *Node, data map[string]any, cards machine.Cards) string {
	var failures []string
	if complaint := data["error"]; complaint != nil && complaint != "" {
		failures = append(failures, "Error in preprocess hook ramdisk-error: Failed to inspect hardware. Reason: Ramdisk reported error: "+
			api.PyText(complaint))
	}
	reason := ""
	if len(cards.All) == 0 {
		reason = "no valid network interfaces"
	} else if len(cards.Valid) == 0 {
		reason = "no network interfaces match the configuration (add_ports set to \"pxe\")"
	}
	if reason != "" {
		failures = append(failures, "Unexpected exception InvalidNodeInventory during preprocess hook validate-interfaces: "+
			"Inventory for node "+
			n.Str("uuid")+" is invalid: "+reason)
	}
	if len(failures) == 0 {
		return ""
	}
	return "The following failures happened while running preprocess hooks for node " + n.Str("uuid") + ":\n" + strings.Join(failures, "\n")
}

// forgetToken removes the ramdisk's token.
func (n *Node) forgetToken() {
	info := api.Object(api.Clone(n.Fields["driver_internal_info"]))
	delete(info, "agent_secret_token")
	n.Put("driver_internal_info", info)
}

// addCards creates ports for network cards, except for cards that have a port already.
func (c *Conductor) addCards(n *Node, cards []map[string]any) {
	for _, card := range cards {
		mac, err := api.ReadMAC(card["mac_address"])
		if err != nil || c.PortByMAC[mac] != nil {
			continue
		}
		extra := map[string]any{}
		if id := api.Text(card["client_id"]); id != "" {
			extra["client-id"] = id
		}
		pxe := card["pxe_enabled"] == true
		if c.before30() && mac != card["mac_address"] {
			pxe = false // 29 compares the addresses of port and inventory case-sensitively
		}
		c.AddPort(n, api.NewUUID(), mac, map[string]any{"pxe_enabled": pxe, "extra": extra})
	}
}

// Discover stores the inventory that an inspection of the node finds, unless the node has one whose cables do not change.
func (c *Conductor) Discover(n *Node) {
	if n.Inventory != nil && c.LLDP == nil {
		return
	}
	cards := []any{}
	boot := ""
	for _, p := range c.Ports {
		if p.Node != n {
			continue
		}
		if boot == "" {
			boot = p.Address
		}
		cards = append(cards, machine.NetworkCard(len(cards)+1, p.Address, nil))
	}
	inventory := machine.NewInventory(n.Str("name"), fmt.Sprintf("SN%06d", n.Order), fmt.Sprintf("192.0.2.%d", n.Order%250+1), boot, cards)
	disks := []any{}
	for _, d := range c.DisksOf(n) {
		disks = append(disks, api.Clone(d.Facts))
	}
	inventory["disks"] = disks
	raw := machine.Announcements(cards)
	if c.LLDP != nil {
		raw = machine.Heard(cards, c.LLDP)
	}
	data := map[string]any{"lldp_raw": raw}
	if c.ParsesLLDP {
		data["parsed_lldp"] = machine.ParseLLDP(raw)
	}
	n.Inventory = map[string]any{"inventory": inventory, "plugin_data": machine.PluginData(data, machine.ReadCards(inventory))}
}
