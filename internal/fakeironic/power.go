package fakeironic

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// states returns the fields of GET /v1/nodes/{node}/states.
func states(c *call, n *node) ordered {
	var out ordered
	for _, name := range []string{
		"console_enabled", "last_error", "power_state", "provision_state", "provision_updated_at", "raid_config", "target_power_state",
		"target_provision_state", "target_raid_config", "boot_mode", "secure_boot",
	} {
		if since, _ := nodeFieldSince(name); since <= c.minor {
			out = append(out, member{name, n.fields[name]})
		}
	}
	return out
}

// Power states; they are also targets.
const (
	powerOn  = "power on"
	powerOff = "power off"
)

// Targets that ask the operating system.
const (
	softRebooting = "soft rebooting"
	softPowerOff  = "soft power off"
)

// softPowerOffTimeout is the default of [conductor]soft_power_off_timeout.
const softPowerOffTimeout = 10 * time.Minute

// powerResult returns the power state that a target leads to.
func powerResult(target string) (result string, restart, found bool) {
	switch target {
	case powerOn:
		return powerOn, false, true
	case "rebooting", softRebooting:
		return powerOn, true, true
	case powerOff, softPowerOff:
		return powerOff, false, true
	}
	return "", false, false
}

// putPower answers PUT /v1/nodes/{node}/states/power.
func (s *Server) putPower(c *call, n *node) (reply, error) {
	body, err := c.object("body")
	if err != nil {
		return reply{}, err
	}
	value, given := body["target"]
	if !given {
		return reply{}, fault(http.StatusBadRequest, "Missing mandatory parameter: target")
	}
	target := text(value)
	soft := target == softRebooting || target == softPowerOff
	timeout, hasTimeout := body["timeout"]
	if c.minor < 27 && (soft || hasTimeout) {
		return reply{}, notAcceptable()
	}
	if seconds, isNumber := timeout.(float64); hasTimeout && timeout != nil && !isNumber {
		return reply{}, fault(http.StatusBadRequest, "Expected an integer for timeout: %s", text(timeout))
	} else if isNumber && seconds <= 0 {
		return reply{}, fault(http.StatusBadRequest, "timeout has to be positive integer")
	}
	result, restart, known := powerResult(target)
	if !known {
		return reply{}, invalidAction(pyText(value), n.str("uuid"), pyText(n.fields["power_state"]))
	}
	if n.state() == cleaning || n.state() == cleanWait {
		return reply{}, invalidAction(target, n.str("uuid"), n.str("provision_state"))
	}
	if result == powerOff && n.flag("disable_power_off") {
		return reply{}, fault(http.StatusConflict, "Failed to set node power state to %s.", target)
	}
	if err := n.locked(); err != nil {
		return reply{}, err
	}
	if err := n.checkInterfaces(); err != nil {
		return reply{}, err
	}
	if reason := s.powerFault(n); reason != "" {
		return reply{}, fault(http.StatusBadRequest, "%s", reason)
	}
	if soft && s.NoSoftPower {
		return reply{}, fault(http.StatusBadRequest, "The driver %s does not support the power state, %s", n.str("driver"), target)
	}
	wait := s.StepTime
	ignored := target == softPowerOff && n.str("power_state") == powerOn && s.IgnoresSoftOff != nil && s.IgnoresSoftOff(public(n))
	if ignored {
		wait = softPowerOffTimeout
		if seconds, given := timeout.(float64); given {
			wait = time.Duration(seconds) * time.Second
		}
	}
	s.changePower(n, target, result, restart, ignored, wait)
	answer := done(http.StatusAccepted)
	answer.header.Set("Location", c.base+"/v1/nodes/"+c.path[1]+"/states")
	return answer, nil
}

// changePower changes the power of the node after a while, unless the machine ignores that. The node is locked until then.
func (s *Server) changePower(n *node, target, result string, restart, ignored bool, wait time.Duration) {
	n.put("target_power_state", result)
	n.put("last_error", nil)
	n.put("reservation", conductorHost)
	n.put("updated_at", timestamp(s.now))
	if restart || n.str("power_state") != result {
		s.notePowerChange(n)
	}
	var end func()
	end = func() {
		if n.str("target_power_state") == "" || s.keeps(result, end) {
			return
		}
		n.put("target_power_state", nil)
		n.put("reservation", nil)
		n.put("updated_at", timestamp(s.now))
		if defect := s.ownChild(n); defect != "" {
			n.put("last_error", "Failed to change power state to '"+result+"': "+defect)
			return
		}
		if ignored {
			n.put("last_error", "Failed to change power state to '"+result+"' by '"+target+"': Failed to set node power state to "+target+".")
			return
		}
		if defect := n.agentPowerDefect(target, restart); defect != "" {
			n.put("last_error", "Failed to change power state to '"+result+"' by '"+target+"': "+defect)
			return
		}
		if s.Fail != nil {
			if text := s.Fail(public(n), target); text != "" {
				n.put("last_error", text)
				return
			}
		}
		if result == powerOn && (restart || n.str("power_state") != powerOn) {
			n.machine.start()
		}
		n.put("power_state", result)
	}
	s.after(wait, end)
}

// agentPowerDefect returns why the power interface agent cannot do a verb of power, "" if it can or if the node has another interface. It
// can only restart the machine, and only through the agent (reference/ironic.md#power-interface-agent).
func (n *node) agentPowerDefect(target string, restart bool) string {
	switch {
	case !n.byAgent():
		return ""
	case !restart:
		return "Failed to set node power state to " + target + "."
	case !n.machine.agent:
		return "Connection to agent failed: Failed to connect to the agent running on node " + n.str("uuid") + "."
	}
	return ""
}

// maintenance answers PUT and DELETE /v1/nodes/{node}/maintenance.
func (s *Server) maintenance(c *call, n *node) (reply, error) {
	if err := n.locked(); err != nil {
		return reply{}, err
	}
	switch c.method {
	case http.MethodPut:
		body, err := c.object("body")
		if err != nil {
			return reply{}, err
		}
		for _, key := range sortedKeys(body) {
			if key != "reason" {
				return reply{}, fault(http.StatusBadRequest, "Unexpected arguments: %s", key)
			}
		}
		n.put("maintenance", true)
		n.put("maintenance_reason", body["reason"])
	case http.MethodDelete:
		n.put("maintenance", false)
		n.put("maintenance_reason", nil)
		n.put("fault", nil)
	default:
		return reply{}, methodNotAllowed("DELETE, PUT")
	}
	n.put("updated_at", timestamp(s.now))
	return done(http.StatusAccepted), nil
}

// putBoot changes boot_mode or secure_boot.
func (s *Server) putBoot(c *call, n *node, what string) (reply, error) {
	if c.minor < 76 {
		return reply{}, routerFault(http.StatusNotFound, "")
	}
	body, err := c.object("body")
	if err != nil {
		return reply{}, err
	}
	value, given := body["target"]
	if !given {
		return reply{}, fault(http.StatusBadRequest, "Missing mandatory parameter: target")
	}
	if what == "boot_mode" && value != "uefi" && value != "bios" {
		return reply{}, fault(http.StatusBadRequest, "Invalid boot mode %s requested for node. Allowed boot modes are: bios, uefi", pyText(value))
	}
	if what == "secure_boot" {
		wanted, valid := parseBool(value)
		if !valid {
			return reply{}, notBool("target", value)
		}
		value = wanted
	}
	if n.state().transient() {
		return reply{}, fault(http.StatusConflict, "Node is in %%(state)s state. Since node is transitioning, the boot mode will not be set as this may interfere "+
			"with ongoing changes and result in erroneous modification. Try again later.")
	}
	if err := n.locked(); err != nil {
		return reply{}, err
	}
	if err := n.checkInterfaces(); err != nil {
		return reply{}, err
	}
	if reason := n.bmcFault("management"); reason != "" {
		return reply{}, fault(http.StatusBadRequest, "%s", reason)
	}
	s.changeBoot(n, what, value)
	answer := done(http.StatusAccepted)
	answer.header.Set("Location", c.base+"/v1/nodes/"+c.path[1]+"/states")
	return answer, nil
}

// changeBoot changes boot_mode or secure_boot after one StepTime; the node is locked until then. Only the management interfaces of
// Redfish can; the others set last_error. The BMC applies the change without a restart.
func (s *Server) changeBoot(n *node, what string, value any) {
	s.changeLater(n, func() string {
		reason := ""
		if !n.overRedfish() {
			method := map[string]string{"boot_mode": "set_boot_mode", "secure_boot": "set_secure_boot_state"}[what]
			reason = "Driver " + n.str("driver") + " does not support " + method + " (disabled or not implemented)."
		} else if s.Fail != nil {
			reason = s.Fail(public(n), what)
		}
		switch {
		case reason == "":
			n.put(what, value)
			return ""
		case what == "boot_mode":
			return "Failed to change boot mode to '" + pyText(value) + ": " + reason
		}
		return "Failed to change secure_boot state to '" + pyText(value) + "': " + reason
	})
}

// overRedfish reports whether Redfish is the node's management interface.
func (n *node) overRedfish() bool { return strings.HasSuffix(n.uses("management"), "redfish") }

// noteBoot records the boot mode and secure boot that Ironic reads from a BMC when it has verified it.
func (n *node) noteBoot() {
	if n.overRedfish() && n.fields["boot_mode"] == nil {
		n.put("boot_mode", "uefi")
		n.put("secure_boot", false)
	}
}

// putRAID stores the target RAID configuration.
func (s *Server) putRAID(c *call, n *node) (reply, error) {
	body, err := c.object("body")
	if err != nil {
		return reply{}, err
	}
	if _, given := body["logical_disks"]; !given && len(body) > 0 {
		return reply{}, fault(http.StatusBadRequest, "RAID config validation error: 'logical_disks' is a required property")
	}
	if disks, isList := body["logical_disks"].([]any); isList && len(disks) == 0 {
		return reply{}, fault(http.StatusBadRequest, "RAID config validation error: [] %s", map[bool]string{true: "is too short", false: "should be non-empty"}[s.legacy()])
	}
	if err := n.locked(); err != nil {
		return reply{}, err
	}
	n.put("target_raid_config", body)
	return done(http.StatusNoContent), nil
}

// bootDevices returns the boot devices that a management interface supports.
func (s *Server) bootDevices(management string) []string {
	switch management {
	case "fake":
		return []string{devicePXE}
	case "ipmitool":
		return []string{devicePXE, deviceDisk, deviceCDROM, "bios", "safe"}
	}
	devices := []string{devicePXE, deviceDisk, deviceCDROM, "bios"}
	if !s.legacy() {
		devices = append(devices, "uefihttp")
	}
	return devices
}

// routeManagement answers the paths below /v1/nodes/{node}/management.
func (s *Server) routeManagement(c *call, n *node, rest []string) (reply, error) {
	switch {
	case len(rest) == 1 && rest[0] == "boot_device":
		return s.bootDevice(c, n)
	case len(rest) == 1 && rest[0] == "inject_nmi":
		return s.injectNMI(c, n)
	case len(rest) == 2 && rest[0] == "boot_device" && rest[1] == "supported" && c.method == http.MethodGet:
		if err := n.checkInterfaces(); err != nil {
			return reply{}, err
		}
		return ok(http.StatusOK, ordered{{"supported_boot_devices", s.bootDevices(n.uses("management"))}}), nil
	}
	return reply{}, routerFault(http.StatusNotFound, "")
}

// injectNMI answers PUT /v1/nodes/{node}/management/inject_nmi. The management interface fake cannot do that.
func (s *Server) injectNMI(c *call, n *node) (reply, error) {
	if c.method != http.MethodPut {
		return reply{}, methodNotAllowed("PUT")
	}
	if c.minor < 29 {
		return reply{}, fault(http.StatusNotFound, "Resource could not be found.")
	}
	if err := n.locked(); err != nil {
		return reply{}, err
	}
	if err := n.checkInterfaces(); err != nil {
		return reply{}, err
	}
	if reason := n.bmcFault("management"); reason != "" {
		return reply{}, fault(http.StatusBadRequest, "%s", reason)
	}
	if n.uses("management") == "fake" {
		return reply{}, fault(http.StatusBadRequest, "Driver %s does not support inject_nmi (disabled or not implemented).", n.str("driver"))
	}
	n.put("updated_at", timestamp(s.now)) // by the lock
	if s.Fail != nil {
		if text := s.Fail(public(n), "inject_nmi"); text != "" {
			return reply{}, fault(http.StatusInternalServerError, "%s", text)
		}
	}
	return done(http.StatusNoContent), nil
}

// bootDevice answers /v1/nodes/{node}/management/boot_device.
func (s *Server) bootDevice(c *call, n *node) (reply, error) {
	if c.method != http.MethodGet && c.method != http.MethodPut {
		return reply{}, methodNotAllowed("GET, PUT")
	}
	device, persistent := "", false
	if c.method == http.MethodPut {
		var err error
		if device, persistent, err = readBootDevice(c); err != nil {
			return reply{}, err
		}
		if err := n.locked(); err != nil {
			return reply{}, err
		}
		n.put("updated_at", timestamp(s.now)) // by the lock
	}
	if err := n.checkInterfaces(); err != nil {
		return reply{}, err
	}
	if reason := n.bmcFault("management"); reason != "" {
		return reply{}, fault(http.StatusBadRequest, "%s", reason)
	}
	if c.method == http.MethodGet {
		return ok(http.StatusOK, n.shownBootDevice()), nil
	}
	management := n.uses("management")
	switch known := slices.Contains(s.bootDevices(management), device); {
	case !known && (management == "fake" || management == "ipmitool"):
		return reply{}, fault(http.StatusBadRequest, "Invalid boot device %s specified.", device)
	case !known:
		return reply{}, unexpectedRPC()
	case management != "fake":
		n.machine.bootFrom(device, persistent)
	}
	return done(http.StatusNoContent), nil
}

// shownBootDevice returns the boot device as the API shows it. The management interface fake always shows pxe.
func (n *node) shownBootDevice() ordered {
	if n.uses("management") == "fake" {
		return ordered{{"boot_device", devicePXE}, {"persistent", false}}
	}
	return ordered{{"boot_device", orNull(n.machine.device)}, {"persistent", n.machine.persistent}}
}

// readBootDevice reads the device from the body or the query.
func readBootDevice(c *call) (device string, persistent bool, err error) {
	body, err := c.object("body")
	if err != nil {
		return "", false, err
	}
	for key := range c.query {
		body[key] = c.query.Get(key)
	}
	value, given := body["boot_device"]
	if !given {
		return "", false, fault(http.StatusBadRequest, "Missing mandatory parameter: boot_device")
	}
	for _, key := range sortedKeys(body) {
		if key != "boot_device" && key != "persistent" {
			return "", false, fault(http.StatusBadRequest, "Unexpected arguments: %s", key)
		}
	}
	if wanted := body["persistent"]; wanted != nil {
		valid := false
		if persistent, valid = parseBool(wanted); !valid {
			return "", false, notBool("persistent", wanted)
		}
	}
	return pyText(value), persistent, nil
}
