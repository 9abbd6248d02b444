package fakeironic

import "net/http"

// bootDevices are what each management interface can start a machine from.
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

// routeManagement answers /v1/nodes/{node}/management/boot_device and what is below it.
func (s *Server) routeManagement(c *call, n *node, rest []string) (reply, error) {
	switch {
	case len(rest) == 1 && rest[0] == "boot_device":
		return s.bootDevice(c, n)
	case len(rest) == 2 && rest[0] == "boot_device" && rest[1] == "supported" && c.method == http.MethodGet:
		if err := n.checkInterfaces(); err != nil {
			return reply{}, err
		}
		return ok(http.StatusOK, ordered{{"supported_boot_devices", s.bootDevices(n.uses("management"))}}), nil
	}
	return reply{}, routerFault(http.StatusNotFound, "")
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
	switch known := contains(s.bootDevices(management), device); {
	case !known && (management == "fake" || management == "ipmitool"):
		return reply{}, fault(http.StatusBadRequest, "Invalid boot device %s specified.", device)
	case !known:
		return reply{}, unexpectedRPC()
	case management != "fake":
		n.machine.bootFrom(device, persistent)
	}
	return done(http.StatusNoContent), nil
}

// shownBootDevice is what the node says it starts from. Fake hardware does not know.
func (n *node) shownBootDevice() ordered {
	if n.uses("management") == "fake" {
		return ordered{{"boot_device", devicePXE}, {"persistent", false}}
	}
	return ordered{{"boot_device", orNull(n.machine.device)}, {"persistent", n.machine.persistent}}
}

// readBootDevice takes the device from the body or the query.
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
