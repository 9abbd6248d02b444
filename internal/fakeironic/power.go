package fakeironic

import (
	"net/http"
)

// Power states; they are also targets.
const (
	powerOn  = "power on"
	powerOff = "power off"
)

// powerResult is the state that each target leads to.
func powerResult(target string) (result string, restart, found bool) {
	switch target {
	case powerOn:
		return powerOn, false, true
	case "rebooting", "soft rebooting":
		return powerOn, true, true
	case powerOff, "soft power off":
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
	soft := target == "soft rebooting" || target == "soft power off"
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
	if err := n.locked(); err != nil {
		return reply{}, err
	}
	if err := n.checkInterfaces(); err != nil {
		return reply{}, err
	}
	if reason := n.bmcFault("power"); reason != "" {
		return reply{}, fault(http.StatusBadRequest, "%s", reason)
	}
	s.changePower(n, target, result, restart)
	answer := done(http.StatusAccepted)
	answer.header.Set("Location", c.base+"/v1/nodes/"+c.path[1]+"/states")
	return answer, nil
}

// pyText writes a value as Python's str does.
func pyText(value any) string {
	if s, isText := value.(string); isText {
		return s
	}
	return pyRepr(value)
}

// changePower switches the node. It is locked until that is done. Nothing is done to a node that is in that state.
func (s *Server) changePower(n *node, target, result string, restart bool) {
	n.put("target_power_state", result)
	n.put("last_error", nil)
	n.put("reservation", conductorHost)
	n.put("updated_at", timestamp(s.now))
	if restart || n.str("power_state") != result {
		s.notePowerChange(n)
	}
	s.after(s.StepTime, func() {
		if n.str("target_power_state") == "" {
			return
		}
		n.put("target_power_state", nil)
		n.put("reservation", nil)
		n.put("updated_at", timestamp(s.now))
		if defect := s.ownChild(n); defect != "" {
			n.put("last_error", "Failed to change power state to '"+result+"': "+defect)
			return
		}
		if s.Fail != nil {
			if text := s.Fail(n.public(), target); text != "" {
				n.put("last_error", text)
				return
			}
		}
		if result == powerOn && (restart || n.str("power_state") != powerOn) {
			n.machine.start()
		}
		n.put("power_state", result)
	})
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
