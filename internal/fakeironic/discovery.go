package fakeironic

import (
	"net/http"
	"strings"
)

// A machine that boots Ironic's ramdisk posts its inventory. Discovery creates a node for a machine that Ironic does not know.

const (
	callbackMinor  = 84 // first API version that accepts posts of ramdisks
	discoveryMinor = 90 // Ironic 24.1, the first with discovery
)

// continueInspection answers POST /v1/continue_inspection. The fake ends requested inspections without a post, so a known
// machine gets 404.
func (s *Server) continueInspection(c *call) (reply, error) {
	switch {
	case s.maxMinor() < callbackMinor || len(c.path) > 1:
		return reply{}, routerFault(http.StatusNotFound, "")
	case c.method != http.MethodPost:
		return reply{}, methodNotAllowed("POST")
	}
	if err := c.accept("node_uuid"); err != nil {
		return reply{}, err
	}
	data, err := c.object("data")
	if err != nil {
		return reply{}, err
	}
	if err := checkPosted(data); err != nil {
		return reply{}, err
	}
	if c.minor != 1 && c.minor < callbackMinor { // 1.1 is for ramdisks made for ironic-inspector
		return reply{}, fault(http.StatusNotFound, "API version 1.%d or newer is required", callbackMinor)
	}
	inventory, macs := object(data["inventory"]), postedMACs(data)
	if len(macs) == 0 && text(inventory["bmc_address"]) == "" && text(inventory["bmc_v6address"]) == "" && !c.query.Has("node_uuid") {
		return reply{}, fault(http.StatusBadRequest, "No lookup information provided")
	}
	if c.query.Has("node_uuid") || s.anyPort(macs) || !s.Discovery || s.maxMinor() < discoveryMinor {
		return reply{}, fault(http.StatusNotFound, "Resource could not be found.")
	}
	if _, found := findDriver(s.discoveryDriver()); !found {
		return reply{}, fault(http.StatusInternalServerError, "An unknown exception occurred.")
	}
	n := s.enrollMachine(data, true)
	if c.minor == 1 {
		return ok(http.StatusAccepted, ordered{{"uuid", n.str("uuid")}}), nil
	}
	token := newUUID()
	n.note("agent_secret_token", token)
	return ok(http.StatusAccepted, ordered{
		{"node", s.render(c, n, s.viewFor(c, n, []string{"uuid", "properties", "instance_info", "driver_internal_info", "links"}))},
		{"config", ordered{{"heartbeat_timeout", 300}, {"agent_token", token}, {"agent_token_required", true}}},
	}), nil
}

// checkPosted checks the structure of a ramdisk's post.
func checkPosted(data map[string]any) error {
	rules := schema{name: "data", members: map[string]kind{"inventory": {types: []string{"object"}}}, required: []string{"inventory"}}
	known := map[string]any{}
	if inventory, given := data["inventory"]; given {
		known["inventory"] = inventory
	}
	if err := rules.check(known); err != nil {
		return err
	}
	inventory := object(data["inventory"])
	for _, key := range []string{"bmc_address", "bmc_v6address"} {
		if err := rules.checkKind(textKind, inventory[key]); err != nil {
			return err
		}
	}
	cards, given := inventory["interfaces"]
	if !given {
		return rules.fault("'interfaces' is a required property")
	}
	if err := rules.checkKind(kind{types: []string{"array"}}, cards); err != nil {
		return err
	}
	list, _ := cards.([]any)
	if len(list) == 0 {
		return rules.fault("[] should be non-empty")
	}
	for _, card := range list {
		if err := rules.checkKind(kind{types: []string{"object"}}, card); err != nil {
			return err
		}
		mac, given := object(card)["mac_address"]
		if !given {
			return rules.fault("'mac_address' is a required property")
		}
		if err := rules.checkKind(stringKind, mac); err != nil {
			return err
		}
	}
	return nil
}

// anyPort reports whether a port has one of the MAC addresses.
func (s *Server) anyPort(macs []string) bool {
	for _, mac := range macs {
		if s.portByMAC[mac] != nil {
			return true
		}
	}
	return false
}

func (s *Server) discoveryDriver() string {
	if s.DiscoveryDriver == "" {
		return "fake-hardware"
	}
	return s.DiscoveryDriver
}

// Discover posts data (see SampleInventory) as the ramdisk of an unknown machine does. It returns the UUID of the new node, ""
// if a port has one of the machine's MAC addresses. It does not need Server.Discovery.
func (s *Server) Discover(data map[string]any) string {
	defer s.lock()()
	if s.anyPort(postedMACs(data)) {
		return ""
	}
	return s.enrollMachine(object(clone(data)), true).str("uuid")
}

// DiscoverGhost posts data of a machine a second time, at the same time as its first post. Ironic creates a second node with
// the same inventory and without ports, and DiscoverGhost returns its UUID. Repeated posts within one StepTime do the same.
func (s *Server) DiscoverGhost(data map[string]any) string {
	defer s.lock()()
	return s.enrollMachine(object(clone(data)), false).str("uuid")
}

// enrollMachine creates a node for a machine.
func (s *Server) enrollMachine(data map[string]any, withPorts bool) *node {
	n := s.discovered(map[string]any{"inspect_interface": "agent"})
	s.receive(n, data, withPorts)
	return n
}

// receive processes the data of a discovered machine. Its node is locked until then.
func (s *Server) receive(n *node, data map[string]any, withPorts bool) {
	data["auto_discovered"] = true
	n.put("reservation", conductorHost)
	s.after(s.StepTime, func() {
		if s.nodeByUUID[n.str("uuid")] != n {
			return
		}
		lastError := s.processInventory(n, data, withPorts)
		s.after(s.UnlockDelay, func() {
			n.put("last_error", orNull(lastError))
			n.put("reservation", nil)
		})
	})
}

// discovered stores a discovered node with the attributes more.
func (s *Server) discovered(more map[string]any) *node {
	body := map[string]any{"uuid": newUUID(), "driver": s.discoveryDriver(), "resource_class": orNull(s.DefaultResourceClass)}
	for key, value := range more {
		body[key] = value
	}
	fields := s.newNodeFields(&call{minor: s.maxMinor(), header: http.Header{}}, body)
	if err := settleInterfaces(fields); err != nil {
		panic(err) // DiscoveryDriver is not a driver of the fake
	}
	return s.addNode(fields)
}

// processInventory processes the data of a discovered machine as the conductor does: it runs the hooks, switches the machine
// off and stores the inventory. It returns the last_error.
func (s *Server) processInventory(n *node, data map[string]any, withPorts bool) string {
	n.machine.agent = true
	inventory := object(data["inventory"])
	cards := readCards(inventory)
	failure := s.runHooks(n, data, cards, withPorts)
	n.put("updated_at", timestamp(s.now))
	if s.before30() && failure != "" {
		return "failed to run inspection hooks: " + failure // the machine stays on
	}
	if !s.before30() {
		n.note("agent_last_heartbeat", s.now.UTC().Format("2006-01-02T15:04:05.000000"))
	}
	if lastError := s.switchOffDiscovered(n); lastError != "" {
		return lastError
	}
	if failure != "" {
		n.forgetToken()
		what := "Async execution of continue_inspection failed with error: "
		if s.DiscoveryKeepsPower {
			what = "Failed to finish inspection: "
		}
		return what + "Failed to inspect hardware. Reason: failed to run inspection hooks: " + failure
	}
	n.inventory = map[string]any{"inventory": inventory, "plugin_data": pluginData(data, cards)}
	return ""
}

// before30 reports whether discovery works as in Ironic 29. A failed discovery leaves other data in 39.
func (s *Server) before30() bool { return s.maxMinor() <= 96 }

// switchOffDiscovered switches a discovered machine off, unless DiscoveryKeepsPower is set, and returns the last_error.
func (s *Server) switchOffDiscovered(n *node) string {
	if s.DiscoveryKeepsPower {
		return ""
	}
	if reason := s.powerFault(n); reason != "" {
		if s.before30() {
			return "Failed to change power state to 'power off': " + reason
		}
		n.forgetToken()
		return "Inspection clean up failed: unable to power off the node: " + reason
	}
	n.forgetToken()
	s.switchPower(n, powerOff)
	return ""
}

// runHooks creates ports and properties from the data, or returns why it cannot.
func (s *Server) runHooks(n *node, data map[string]any, cards networkCards, withPorts bool) string {
	if failure := hookFailure(n, data, cards); failure != "" {
		return "Failed to inspect hardware. Reason: " + failure
	}
	if withPorts {
		s.addCards(n, cards.valid)
	}
	cpu := object(data["inventory"])["cpu"]
	arch := text(object(cpu)["architecture"])
	if arch == "" {
		uuid := n.str("uuid")
		return "Failed to inspect hardware. Reason: Unexpected exception InvalidNodeInventory during processing for node: " + uuid +
			". Error: Inventory for node " + uuid + " is invalid: Inventory has malformed or missing CPU architecture information: " +
			pyRepr(cpu) + " for node " + uuid + "."
	}
	n.put("properties", map[string]any{"cpu_arch": arch})
	return ""
}

// hookFailure returns the error of the hooks that run before any change, "" if there is none.
func hookFailure(n *node, data map[string]any, cards networkCards) string {
	var failures []string
	if complaint := data["error"]; complaint != nil && complaint != "" {
		failures = append(failures, "Error in preprocess hook ramdisk-error: Failed to inspect hardware. Reason: Ramdisk reported error: "+pyText(complaint))
	}
	reason := ""
	if len(cards.all) == 0 {
		reason = "no valid network interfaces"
	} else if len(cards.valid) == 0 {
		reason = "no network interfaces match the configuration (add_ports set to \"pxe\")"
	}
	if reason != "" {
		failures = append(failures, "Unexpected exception InvalidNodeInventory during preprocess hook validate-interfaces: Inventory for node "+
			n.str("uuid")+" is invalid: "+reason)
	}
	if len(failures) == 0 {
		return ""
	}
	return "The following failures happened while running preprocess hooks for node " + n.str("uuid") + ":\n" + strings.Join(failures, "\n")
}

// forgetToken removes the ramdisk's token.
func (n *node) forgetToken() {
	info := object(clone(n.fields["driver_internal_info"]))
	delete(info, "agent_secret_token")
	n.put("driver_internal_info", info)
}

// addCards creates ports for network cards, except for cards that have a port already.
func (s *Server) addCards(n *node, cards []map[string]any) {
	for _, card := range cards {
		mac, err := readMAC(card["mac_address"])
		if err != nil || s.portByMAC[mac] != nil {
			continue
		}
		extra := map[string]any{}
		if id := text(card["client_id"]); id != "" {
			extra["client-id"] = id
		}
		pxe := card["pxe_enabled"] == true
		if s.before30() && mac != card["mac_address"] {
			pxe = false // 29 compares the addresses of port and inventory case-sensitively
		}
		s.addPort(n, newUUID(), mac, map[string]any{"pxe_enabled": pxe, "extra": extra})
	}
}
