package fakeironic

import (
	"net/http"
	"slices"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/conductor"
)

// states returns the fields of GET /v1/nodes/{node}/states.
func states(c *api.Call, n *conductor.Node) api.Ordered {
	var out api.Ordered
	for _, name := range []string{
		"console_enabled", "last_error", "power_state", "provision_state", "provision_updated_at", "raid_config", "target_power_state",
		"target_provision_state", "target_raid_config", "boot_mode", "secure_boot",
	} {
		if since, _ := api.NodeFieldSince(name); since <= c.Minor {
			out = append(out, api.Member{name, shownField(c, n, name)})
		}
	}
	return out
}

func (s *Server) putPower(c *api.Call, n *conductor.Node) (api.Reply, error) {
	body, err := c.Object("body")
	if err != nil {
		return api.Reply{}, err
	}
	value, given := body["target"]
	if !given {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Missing mandatory parameter: target")
	}
	target := api.Text(value)
	soft := target == conductor.SoftRebooting || target == conductor.SoftPowerOff
	timeout, hasTimeout := body["timeout"]
	if c.Minor < 27 && (soft || hasTimeout) {
		return api.Reply{}, api.NotAcceptable()
	}
	if seconds, isNumber := api.Number(timeout); hasTimeout && timeout != nil && !isNumber {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Expected an integer for timeout: %s", api.Text(timeout))
	} else if isNumber && seconds <= 0 {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "timeout has to be positive integer")
	}
	result, restart, known := conductor.PowerResult(target)
	if !known {
		return api.Reply{}, api.InvalidAction(api.PyText(value), n.Str("uuid"), api.PyText(n.Fields["power_state"]))
	}
	if n.State() == conductor.Cleaning || n.State() == conductor.CleanWait {
		return api.Reply{}, api.InvalidAction(target, n.Str("uuid"), n.Str("provision_state"))
	}
	if result == conductor.PowerOff && n.Flag("disable_power_off") {
		return api.Reply{}, api.Fault(http.StatusConflict, "Failed to set node power state to %s.", target)
	}
	if err := n.Locked(); err != nil {
		return api.Reply{}, err
	}
	if err := s.conductor.CheckInterfaces(n); err != nil {
		return api.Reply{}, err
	}
	if reason := s.conductor.PowerFault(n); reason != "" {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "%s", reason)
	}
	if soft && s.NoSoftPower {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "The driver %s does not support the power state, %s", n.Str("driver"), target)
	}
	wait := s.StepTime
	ignored := soft && n.Str("power_state") == conductor.PowerOn && s.IgnoresSoftOff != nil && s.IgnoresSoftOff(public(n))
	if ignored && !n.Waitless(target) {
		wait = conductor.SoftPowerOffTimeout
		if seconds, given := api.Number(timeout); given {
			wait = time.Duration(seconds) * time.Second
		}
	}
	s.conductor.ChangePower(n, target, result, restart, ignored, wait)
	answer := api.Done(http.StatusAccepted)
	answer.Header.Set("Location", c.Base+"/v1/nodes/"+c.Path[1]+"/states")
	return answer, nil
}

func (s *Server) maintenance(c *api.Call, n *conductor.Node) (api.Reply, error) {
	if err := n.Locked(); err != nil {
		return api.Reply{}, err
	}
	switch c.Method {
	case http.MethodPut:
		body, err := c.Object("body")
		if err != nil {
			return api.Reply{}, err
		}
		for _, key := range api.SortedKeys(body) {
			if key != "reason" {
				return api.Reply{}, api.Fault(http.StatusBadRequest, "Unexpected arguments: %s", key)
			}
		}
		n.Put("maintenance", true)
		n.Put("maintenance_reason", body["reason"])
	case http.MethodDelete:
		n.Put("maintenance", false)
		n.Put("maintenance_reason", nil)
		n.Put("fault", nil)
	default:
		return api.Reply{}, api.MethodNotAllowed("DELETE, PUT")
	}
	n.Put("updated_at", api.Timestamp(s.conductor.Now))
	return api.Done(http.StatusAccepted), nil
}

func (s *Server) putBoot(c *api.Call, n *conductor.Node, what string) (api.Reply, error) {
	if c.Minor < 76 {
		return api.Reply{}, api.RouterFault(http.StatusNotFound, "")
	}
	body, err := c.Object("body")
	if err != nil {
		return api.Reply{}, err
	}
	value, given := body["target"]
	if !given {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Missing mandatory parameter: target")
	}
	if what == "boot_mode" && value != "uefi" && value != "bios" {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Invalid boot mode %s requested for node. Allowed boot modes are: bios, uefi",
			api.PyText(value))
	}
	if what == "secure_boot" {
		wanted, valid := api.ParseBool(value)
		if !valid {
			return api.Reply{}, api.NotBool("target", value)
		}
		value = wanted
	}
	if n.State().Transient() {
		return api.Reply{}, api.Fault(http.StatusConflict, "Node is in %%(state)s state. Since node is transitioning, the boot mode will "+
			"not be set as this may interfere with ongoing changes and result in erroneous modification. Try again later.")
	}
	if err := s.manageable(n); err != nil {
		return api.Reply{}, err
	}
	s.conductor.ChangeBoot(n, what, value)
	answer := api.Done(http.StatusAccepted)
	answer.Header.Set("Location", c.Base+"/v1/nodes/"+c.Path[1]+"/states")
	return answer, nil
}

func (s *Server) routeConsole(c *api.Call, n *conductor.Node) (api.Reply, error) {
	if c.Method != http.MethodGet && c.Method != http.MethodPut {
		return api.Reply{}, api.MethodNotAllowed("GET, PUT")
	}
	wanted, err := n.Flag("console_enabled"), error(nil)
	if c.Method == http.MethodPut {
		if wanted, err = readConsole(c); err != nil {
			return api.Reply{}, err
		}
	}
	if err := s.conductor.CheckInterfaces(n); err != nil {
		return api.Reply{}, err
	}
	if c.Method == http.MethodGet && !wanted {
		return api.OK(http.StatusOK, api.Ordered{{"console_enabled", false}, {"console_info", nil}}), nil
	}
	if reason := s.conductor.InterfaceFault(n, "console"); reason != "" {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "%s", reason)
	}
	if c.Method == http.MethodGet {
		port := api.Object(n.Fields["driver_info"])["ipmi_terminal_port"]
		info := n.Machine.Console.Info(n.Uses("console"), n.Str("uuid"), port)
		return api.OK(http.StatusOK, api.Ordered{{"console_enabled", true}, {"console_info", info}}), nil
	}
	if wanted != n.Flag("console_enabled") {
		if err := n.Locked(); err != nil {
			return api.Reply{}, err
		}
		s.conductor.SetConsole(n, wanted)
	}
	answer := api.Done(http.StatusAccepted)
	answer.Header.Set("Location", c.Base+"/v1/nodes/"+c.Path[1]+"/states/console")
	return answer, nil
}

// readConsole reads from the body or the query whether the console is wanted.
func readConsole(c *api.Call) (enabled bool, err error) {
	body, err := c.Object("body")
	if err != nil {
		return false, err
	}
	value, given := body["enabled"]
	if c.Query.Has("enabled") {
		value, given = c.Query.Get("enabled"), true
	}
	if !given {
		return false, api.Fault(http.StatusBadRequest, "Missing mandatory parameter: enabled")
	}
	enabled, valid := api.ParseBool(value)
	if !valid {
		return false, api.NotBool("enabled", value)
	}
	return enabled, nil
}

func (s *Server) putRAID(c *api.Call, n *conductor.Node) (api.Reply, error) {
	body, err := c.Object("body")
	if err != nil {
		return api.Reply{}, err
	}
	if _, given := body["logical_disks"]; !given && len(body) > 0 {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "RAID config validation error: 'logical_disks' is a required property")
	}
	if disks, isList := body["logical_disks"].([]any); isList && len(disks) == 0 {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "RAID config validation error: [] %s",
			map[bool]string{true: "is too short", false: "should be non-empty"}[s.legacy()])
	}
	if fault := conductor.RAIDFault(body); fault != "" {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "RAID config validation error: %s", fault)
	}
	if err := n.Locked(); err != nil {
		return api.Reply{}, err
	}
	n.Put("target_raid_config", body)
	return api.Done(http.StatusNoContent), nil
}

func (s *Server) routeManagement(c *api.Call, n *conductor.Node, rest []string) (api.Reply, error) {
	switch {
	case len(rest) == 1 && rest[0] == "boot_device":
		return s.bootDevice(c, n)
	case len(rest) == 1 && rest[0] == "inject_nmi":
		return s.injectNMI(c, n)
	case len(rest) > 0 && len(rest) <= 2 && rest[0] == "indicators":
		return s.indicators(c, n, rest[1:])
	case len(rest) == 2 && rest[0] == "boot_device" && rest[1] == "supported" && c.Method == http.MethodGet:
		if err := s.conductor.CheckInterfaces(n); err != nil {
			return api.Reply{}, err
		}
		return api.OK(http.StatusOK, api.Ordered{{"supported_boot_devices", s.conductor.BootDevices(n.Uses("management"))}}), nil
	}
	return api.Reply{}, api.RouterFault(http.StatusNotFound, "")
}

// manageable returns why the management interface cannot change a node now.
func (s *Server) manageable(n *conductor.Node) error {
	if err := n.Locked(); err != nil {
		return err
	}
	if err := s.conductor.CheckInterfaces(n); err != nil {
		return err
	}
	if reason := n.BMCFault("management"); reason != "" {
		return api.Fault(http.StatusBadRequest, "%s", reason)
	}
	return nil
}

// injectNMI answers PUT /v1/nodes/{node}/management/inject_nmi. The management interface fake cannot do that.
func (s *Server) injectNMI(c *api.Call, n *conductor.Node) (api.Reply, error) {
	if c.Method != http.MethodPut {
		return api.Reply{}, api.MethodNotAllowed("PUT")
	}
	if c.Minor < 29 {
		return api.Reply{}, api.Fault(http.StatusNotFound, "Resource could not be found.")
	}
	if err := s.manageable(n); err != nil {
		return api.Reply{}, err
	}
	if n.Uses("management") == "fake" {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Driver %s does not support inject_nmi (disabled or not implemented).",
			n.Str("driver"))
	}
	n.Put("updated_at", api.Timestamp(s.conductor.Now)) // by the lock
	if s.Fail != nil {
		if text := s.Fail(public(n), "inject_nmi"); text != "" {
			return api.Reply{}, api.Fault(http.StatusInternalServerError, "%s", text)
		}
	}
	return api.Done(http.StatusNoContent), nil
}

func (s *Server) bootDevice(c *api.Call, n *conductor.Node) (api.Reply, error) {
	if c.Method != http.MethodGet && c.Method != http.MethodPut {
		return api.Reply{}, api.MethodNotAllowed("GET, PUT")
	}
	device, persistent := "", false
	if c.Method == http.MethodPut {
		var err error
		if device, persistent, err = readBootDevice(c); err != nil {
			return api.Reply{}, err
		}
		if err := n.Locked(); err != nil {
			return api.Reply{}, err
		}
		n.Put("updated_at", api.Timestamp(s.conductor.Now)) // by the lock
	}
	if err := s.conductor.CheckInterfaces(n); err != nil {
		return api.Reply{}, err
	}
	if reason := n.BMCFault("management"); reason != "" {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "%s", reason)
	}
	if c.Method == http.MethodGet {
		return api.OK(http.StatusOK, n.ShownBootDevice()), nil
	}
	management := n.Uses("management")
	switch known := slices.Contains(s.conductor.BootDevices(management), device); {
	case !known && (management == "fake" || management == "ipmitool"):
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Invalid boot device %s specified.", device)
	case !known:
		return api.Reply{}, api.UnexpectedRPC()
	case management != "fake":
		n.Machine.BootFrom(device, persistent)
	}
	return api.Done(http.StatusNoContent), nil
}

// readBootDevice reads the device from the body or the query.
func readBootDevice(c *api.Call) (device string, persistent bool, err error) {
	body, err := c.Object("body")
	if err != nil {
		return "", false, err
	}
	for key := range c.Query {
		body[key] = c.Query.Get(key)
	}
	value, given := body["boot_device"]
	if !given {
		return "", false, api.Fault(http.StatusBadRequest, "Missing mandatory parameter: boot_device")
	}
	for _, key := range api.SortedKeys(body) {
		if key != "boot_device" && key != "persistent" {
			return "", false, api.Fault(http.StatusBadRequest, "Unexpected arguments: %s", key)
		}
	}
	if wanted := body["persistent"]; wanted != nil {
		valid := false
		if persistent, valid = api.ParseBool(wanted); !valid {
			return "", false, api.NotBool("persistent", wanted)
		}
	}
	return api.PyText(value), persistent, nil
}
