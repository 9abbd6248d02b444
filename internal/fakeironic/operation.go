package fakeironic

import (
	"net/http"
	"strings"
	"time"
)

// operation is a sequence of transient states that the conductor takes a node through.
type operation struct {
	verb   string // the requested provision verb or power target
	phases []phase
	fail   func(n *node, text string) // ends a failed operation
	done   func(n *node)              // ends a successful operation
	defect string                     // last_error; if it is not empty, the last phase fails
}

// phase is a stay in one transient state.
type phase struct {
	in     state
	length time.Duration
	then   func(n *node) // runs before the next phase; not after the last one
}

// stay returns a phase of one StepTime for each state.
func (s *Server) stay(states ...state) []phase {
	phases := make([]phase, len(states))
	for i, in := range states {
		phases[i] = phase{in: in, length: s.StepTime}
	}
	return phases
}

// begin starts an operation that leads to the target state.
func (s *Server) begin(n *node, o operation, target state) {
	n.work = &o
	n.put("target_provision_state", string(target))
	n.put("last_error", nil)
	n.put("deploy_step", map[string]any{})
	s.enterPhase(n, n.work)
}

// enterPhase starts the first remaining phase. It locks the node, except while the node waits for its ramdisk.
func (s *Server) enterPhase(n *node, o *operation) {
	current := o.phases[0]
	if n.state() != current.in {
		s.enter(n, current.in)
	}
	n.put("reservation", conductorHost)
	if current.in.waiting() {
		n.put("reservation", nil)
	}
	var end func()
	end = func() {
		if n.work == o && !s.keeps(string(current.in), end) {
			s.endPhase(n, o)
		}
	}
	s.after(current.length, end)
}

// endPhase starts the next phase or ends the operation.
func (s *Server) endPhase(n *node, o *operation) {
	if len(o.phases) > 1 {
		if then := o.phases[0].then; then != nil {
			then(n)
		}
		o.phases = o.phases[1:]
		s.enterPhase(n, o)
		return
	}
	n.work = nil
	n.put("reservation", nil)
	text := s.verdict(n, o)
	if text == "" {
		o.done(n)
	} else {
		n.history = append(n.history, ordered{
			{"uuid", newUUID()},
			{"created_at", timestamp(s.now)},
			{"severity", "ERROR"},
			{"event_type", n.str("provision_state")},
			{"event", text},
			{"conductor", conductorHost},
			{"user", nil},
			{"project", nil},
			{"links", []any{}},
		})
		o.fail(n, text)
	}
	if s.UnlockDelay > 0 && n.work == nil {
		if text != "" {
			text = n.str("last_error")
		}
		s.unlockLater(n, o, text)
	}
}

// unlockLater keeps the node locked and delays its last_error for the UnlockDelay.
func (s *Server) unlockLater(n *node, o *operation, lastError string) {
	n.work = o
	n.put("reservation", conductorHost)
	if lastError != "" {
		n.put("last_error", nil)
	}
	s.after(s.UnlockDelay, func() {
		if n.work != o {
			return
		}
		n.work = nil
		n.put("reservation", nil)
		if lastError != "" {
			n.put("last_error", lastError)
		}
	})
}

// verdict returns the last_error of an operation, "" if it succeeds.
func (s *Server) verdict(n *node, o *operation) string {
	if o.defect != "" {
		return o.defect
	}
	if defect := s.ownChild(n); defect != "" && (n.state() == deploying || n.state() == deleting) {
		return defect
	}
	if s.Fail == nil {
		return ""
	}
	return s.Fail(public(n), o.verb)
}

// ownChild returns the error of operations on a node that is its own parent (ParentNodeDefect), "" for other nodes.
func (s *Server) ownChild(n *node) string {
	uuid := n.str("uuid")
	if !s.ParentNodeDefect || n.str("parent_node") != uuid {
		return ""
	}
	return "Node " + uuid + " child_node " + uuid + " is presently locked, and can not be powered on at this time."
}

// rest ends an operation in a stable state. After a failure the node keeps its target.
func (s *Server) rest(n *node, in, target state, lastError string) {
	s.enter(n, in)
	n.put("deploy_step", map[string]any{})
	n.put("target_provision_state", orNull(string(target)))
	if lastError != "" {
		n.put("last_error", lastError)
	}
}

// manage verifies an enrolled node; others become manageable at once.
func (s *Server) manage(n *node) {
	if n.state() != enroll {
		s.rest(n, manageable, "", "")
		return
	}
	o := operation{
		verb: string(verbManage), phases: s.stay(verifying),
		fail: func(n *node, text string) { s.rest(n, enroll, "", text) },
		done: func(n *node) {
			switch {
			case n.byAgent():
				n.put("power_state", powerOn)
			case n.uses("power") != "fake" && n.str("power_state") == "":
				n.put("power_state", powerOff)
			}
			n.noteBoot()
			if strings.HasSuffix(n.uses("management"), "redfish") && n.str("health") == "" {
				n.put("health", "OK") // Ironic reads it when it polls the power state
			}
			s.rest(n, manageable, "", "")
		},
	}
	if reason := s.powerFault(n); reason != "" {
		o.defect = "Failed to get power state for node " + n.str("uuid") + ". Error: " + reason
	}
	s.begin(n, o, manageable)
}

// inspect collects the inventory. The inspect interface fake finds nothing.
func (s *Server) inspect(n *node) error {
	how := n.uses("inspect")
	if how == "no-inspect" {
		return fault(http.StatusBadRequest, "Driver %s does not support inspect (disabled or not implemented).", n.str("driver"))
	}
	phases := s.stay(inspecting)
	if how == "agent" {
		phases = s.stay(inspecting, inspectWait, inspecting)
	}
	n.put("inspection_started_at", timestamp(s.now))
	n.put("inspection_finished_at", nil)
	s.begin(n, operation{
		verb: string(verbInspect), phases: phases,
		fail: func(n *node, text string) { s.rest(n, inspectFail, manageable, text) },
		done: func(n *node) {
			if how != "fake" {
				s.discover(n)
			}
			n.put("inspection_started_at", nil)
			n.put("inspection_finished_at", timestamp(s.now))
			s.rest(n, manageable, "", "")
		},
	}, manageable)
	return nil
}

// abort ends a wait for the ramdisk or a hold.
func (s *Server) abort(n *node) error {
	if n.flag("maintenance") && (n.state() == serviceWait || n.state() == serviceFail) {
		return fault(http.StatusConflict, "Can not abort service on node \"%s\" while it is in maintenance mode. Please remove the node from "+
			"maintenance prior to issuing the request to abort the service operation.", n.str("uuid"))
	}
	if step := object(clone(n.fields["service_step"])); n.state() == serviceWait && step["abortable"] == false {
		step["abort_after"] = true // the abort waits for the end of the step
		n.put("service_step", step)
		return nil
	}
	n.work = nil
	target := state(n.str("target_provision_state"))
	// Abort is allowed only in these states.
	//exhaustive:ignore
	switch n.state() {
	case cleanWait, cleanHold:
		s.rest(n, cleanFail, target, "By request, the clean operation was aborted")
	case inspectWait:
		s.rest(n, inspectFail, target, "Inspection was aborted by request.")
	case rescueWait:
		s.rest(n, rescueFail, target, "By request, the rescue operation was aborted.")
	case deployWait, deployHold:
		s.rest(n, deployFail, target,
			"By request, the deploy operation was aborted during or after the completion of step \"deploy.deploy\"")
	case serviceWait, serviceHold:
		s.rest(n, serviceFail, target, "By request, the service operation was aborted")
	case serviceFail:
		s.rest(n, active, "", "By request, the service operation was aborted")
	}
	return nil
}

// unhold continues a held operation.
func (s *Server) unhold(n *node) {
	o := operation{verb: string(verbUnhold)}
	in, failed, target := servicing, serviceFail, active
	// Unhold is allowed only in held states.
	//exhaustive:ignore
	switch n.state() {
	case cleanHold:
		in, failed, target = cleaning, cleanFail, manageable
	case deployHold:
		in, failed = deploying, deployFail
	}
	o.phases = s.stay(in)
	o.fail = func(n *node, text string) { s.rest(n, failed, target, text) }
	o.done = func(n *node) { s.rest(n, target, "", "") }
	s.begin(n, o, target)
}

// rescue boots a rescue ramdisk.
func (s *Server) rescue(n *node, request provisionRequest) error {
	if n.flag("maintenance") {
		return inMaintenance("rescuing", n)
	}
	if n.uses("rescue") == "no-rescue" {
		return fault(http.StatusBadRequest, "Driver %s does not support rescue (disabled or not implemented).", n.str("driver"))
	}
	info := object(clone(n.fields["instance_info"]))
	info["rescue_password"] = request.rescuePassword
	info["hashed_rescue_password"] = "hash of " + request.rescuePassword
	n.put("instance_info", info)
	phases := s.stay(rescuing)
	if n.uses("rescue") != "fake" {
		phases = s.stay(rescuing, rescueWait, rescuing)
	}
	s.begin(n, operation{
		verb: string(verbRescue), phases: phases,
		fail: func(n *node, text string) { s.rest(n, rescueFail, rescued, text) },
		done: func(n *node) { s.rest(n, rescued, "", "") },
	}, rescued)
	return nil
}

// concurrency counts the nodes in the given states against a limit of the conductor.
func (s *Server) concurrency(limit int, action string, states ...state) error {
	if limit == 0 {
		return nil
	}
	busy := 0
	for _, n := range s.nodes {
		for _, counted := range states {
			if n.state() == counted {
				busy++
			}
		}
	}
	if busy < limit {
		return nil
	}
	status := http.StatusServiceUnavailable
	if s.legacy() {
		status = http.StatusInternalServerError
	}
	return fault(status, "Unable to process request at this time. The concurrent action limit for %s has been reached. "+
		"Please contact your administrator and try again later.", action)
}

func (s *Server) deployLimit() error {
	return s.concurrency(s.MaxConcurrentDeploy, "provisioning", deploying, deployWait)
}

func (s *Server) cleanLimit(action string) error {
	return s.concurrency(s.MaxConcurrentClean, action, deleting, cleaning, cleanWait)
}

// deployed ends a successful deployment.
func (s *Server) deployed(n *node) {
	n.note("deploy_steps", nil)
	s.rest(n, active, "", "")
}
