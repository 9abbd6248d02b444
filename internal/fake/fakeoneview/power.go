package fakeoneview

import (
	"slices"
	"strings"
)

// PowerControl is a way to change the power.
type PowerControl string

// The ways to change power.
const (
	MomentaryPress PowerControl = "MomentaryPress"
	PressAndHold   PowerControl = "PressAndHold"
	ColdBoot       PowerControl = "ColdBoot"
	Reset          PowerControl = "Reset"
)

// changePower starts the change of power that a body wants.
func (s *Server) changePower(c *call, h *hardware, body map[string]any) (Reply, error) {
	target, control := Power(text(body, "powerState")), PowerControl(text(body, "powerControl"))
	fill(&control, MomentaryPress)
	if target != On && target != Off {
		return Reply{}, badField("powerState", "it must be On or Off, not %q", target)
	}
	allowed := []PowerControl{MomentaryPress, ColdBoot, Reset}
	if target == Off {
		allowed = []PowerControl{MomentaryPress, PressAndHold}
	}
	if !slices.Contains(allowed, control) {
		return Reply{}, badField("powerControl", "%q cannot lead to %s", control, target)
	}
	if h.PowerLock || h.switching() {
		return Reply{}, locked(h.link())
	}
	op := &operation{task: &task{name: "Power " + strings.ToLower(string(target)), resource: h.URI, label: h.Name, category: pathHardware}}
	op.running = op.task.name + " Server: " + h.Name
	op.failed = "Unable to " + op.running
	op.check = func() *Problem { return checkPower(h, control) }
	before := h.Power
	op.begin = func() {
		before = h.Power
		switch {
		case control == ColdBoot || control == Reset:
			h.Power = Resetting
		case target == On && before == Off:
			h.Power = PoweringOn
		case target == Off && before == On:
			h.Power = PoweringOff
		}
		s.touch(h)
	}
	op.finish = func() {
		h.Power = target
		s.touch(h)
	}
	op.broken = func() {
		h.Power = before
		s.touch(h)
	}
	h.busy = op
	return s.start(c, op)
}

// checkPower refuses to restart a server that is off. Switching a server on that is on succeeds; what a real appliance answers
// is not known.
func checkPower(h *hardware, control PowerControl) *Problem {
	if h.Power != Off || (control != ColdBoot && control != Reset) {
		return nil
	}
	code := "INVALID_POWER_CONTROL_REQUEST_POWER_COLDBOOT_OFF"
	if control == Reset {
		code = "INVALID_POWER_CONTROL_REQUEST_POWER_RESET_OFF" // the real code is not known
	}
	return problem(code, "Power on the server.", "The server hardware %s cannot be restarted because it is powered off.", h.link())
}

// switching reports whether a change of power is in progress.
func (h *hardware) switching() bool { return h.busy != nil && !h.busy.over }
