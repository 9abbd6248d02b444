package fakeironic

import (
	"net/http"
	"strings"
	"time"
)

// operation is something that the conductor does with a node: a walk through transient states, one after the other.
type operation struct {
	verb   string // the provision verb or power target that was requested
	phases []phase
	fail   func(n *node, text string) // leaves the node as a failure does
	done   func(n *node)              // leaves the node as a success does
	defect string                     // makes the last phase fail with this text
}

// phase is a stay in one transient state.
type phase struct {
	in     state
	length time.Duration
	then   func(n *node) // done when the stay is over and more follows
}

// start does what the verb asks, as far as it happens before the answer.
func (s *Server) start(n *node, request provisionRequest) error {
	if err := n.checkInterfaces(); err != nil {
		return err
	}
	switch request.target.canonical() {
	case verbManage:
		s.manage(n)
	case verbProvide:
		return s.provide(n)
	case verbActive, verbRebuild:
		return s.deploy(n, request)
	case verbDeleted:
		return s.undeploy(n)
	case verbClean:
		return s.clean(n, request)
	case verbInspect:
		return s.inspect(n)
	case verbAdopt:
		s.begin(n, operation{
			verb: string(verbAdopt), phases: s.stay(adopting),
			fail: func(n *node, text string) { s.rest(n, adoptFail, active, text) },
			done: func(n *node) {
				n.note("deploy_steps", nil)
				s.rest(n, active, "", "")
			},
		}, active)
	case verbRescue:
		return s.rescue(n, request)
	case verbUnrescue:
		if n.flag("maintenance") {
			return inMaintenance("unrescuing", n)
		}
		s.begin(n, operation{
			verb: string(verbUnrescue), phases: s.stay(unrescuing),
			fail: func(n *node, text string) { s.rest(n, unrescueFail, active, text) },
			done: func(n *node) { s.rest(n, active, "", "") },
		}, active)
	case verbService:
		return s.service(n, request)
	case verbAbort:
		return s.abort(n)
	case verbUnhold:
		s.unhold(n)
	case verbDeploy, verbUndeploy: // canonical has replaced them
	}
	return nil
}

// stay makes phases of one StepTime each.
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
	s.enterPhase(n, n.work)
}

// enterPhase enters the first phase that is left. The node is locked except while it waits for its ramdisk.
func (s *Server) enterPhase(n *node, o *operation) {
	current := o.phases[0]
	if n.state() != current.in {
		s.enter(n, current.in)
	}
	n.put("reservation", conductorHost)
	if current.in.waiting() {
		n.put("reservation", nil)
	}
	s.after(current.length, func() {
		if n.work == o {
			s.endPhase(n, o)
		}
	})
}

// endPhase goes on to the next phase or ends the operation.
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

// unlockLater keeps the node locked, and its error back, for the UnlockDelay.
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

// verdict is the last_error of an operation, "" when it succeeds.
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
	return s.Fail(n.public(), o.verb)
}

// ownChild is what stops work on a node that the defect made its own parent.
func (s *Server) ownChild(n *node) string {
	uuid := n.str("uuid")
	if !s.ParentNodeDefect || n.str("parent_node") != uuid {
		return ""
	}
	return "Node " + uuid + " child_node " + uuid + " is presently locked, and can not be powered on at this time."
}

// rest leaves the node in a state in which nothing goes on. A failed state keeps its target.
func (s *Server) rest(n *node, in, target state, lastError string) {
	s.enter(n, in)
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
			if n.uses("power") != "fake" && n.str("power_state") == "" {
				n.put("power_state", powerOff)
			}
			s.rest(n, manageable, "", "")
		},
	}
	if reason := n.bmcFault("power"); reason != "" {
		o.defect = "Failed to get power state for node " + n.str("uuid") + ". Error: " + reason
	}
	s.begin(n, o, manageable)
}

// provide cleans a node, unless it is not to be cleaned, and makes it available.
func (s *Server) provide(n *node) error {
	if n.flag("retired") {
		return fault(http.StatusBadRequest, "The providing operation can't be performed on node %s because it is retired.", n.str("uuid"))
	}
	if n.fields["automated_clean"] == false {
		n.put("last_error", nil)
		s.rest(n, available, "", "")
		return nil
	}
	s.begin(n, s.automatedCleaning(n, n.uses("deploy"), verbProvide, available), available)
	return nil
}

// automatedCleaning cleans a node on its way to the target, with a certain deploy interface, unless it is not to be cleaned.
func (s *Server) automatedCleaning(n *node, how string, v verb, target state) operation {
	o := operation{
		verb: string(v), phases: s.cleaningPhases(how),
		fail: func(n *node, text string) { s.rest(n, cleanFail, target, text) },
		done: func(n *node) {
			s.cleaned(n, how)
			s.rest(n, target, "", "")
		},
	}
	if n.fields["automated_clean"] == false {
		o.phases = []phase{{in: cleaning}}
		o.done = func(n *node) { s.rest(n, target, "", "") }
	}
	return o
}

// cleaned ends a cleaning that went well.
func (s *Server) cleaned(n *node, how string) {
	if how != "fake" {
		s.switchPower(n, powerOff)
	}
	n.note("clean_steps", nil)
}

// cleaningPhases boots a ramdisk unless the deploy interface is fake.
func (s *Server) cleaningPhases(how string) []phase {
	if how == "fake" {
		return s.stay(cleaning)
	}
	phases := s.stay(cleaning, cleanWait, cleaning)
	phases[0].then = s.restart
	return phases
}

// undeploy tears the instance down and cleans the node. Half way through, also when it fails, the instance and its
// allocation are forgotten. The cleaning after it works with the interfaces that the instance had.
func (s *Server) undeploy(n *node) error {
	if n.flag("protected") {
		return protectedFault(n)
	}
	if err := s.cleanLimit("unprovisioning"); err != nil {
		return err
	}
	target := available
	if n.flag("retired") {
		target = manageable
	}
	how := n.uses("deploy")
	defect := ""
	if how != "fake" {
		defect = s.tearDownDefect(n)
	}
	forget := func(n *node) {
		if how != "fake" {
			n.machine.empty(n.uses("boot"))
			s.switchPower(n, powerOff)
		}
		n.put("instance_info", map[string]any{})
		n.put("instance_uuid", nil)
		s.dropAllocation(n)
	}
	s.begin(n, operation{
		verb:   string(verbDeleted),
		phases: []phase{{in: deleting, length: s.StepTime / 2, then: forget}, {in: deleting, length: s.StepTime - s.StepTime/2}},
		fail:   func(n *node, text string) { s.rest(n, errored, target, text) },
		done:   func(n *node) { s.begin(n, s.automatedCleaning(n, how, verbDeleted, target), target) },
		defect: defect,
	}, available)
	return nil
}

// inspect looks at the hardware. The fake interface finds nothing.
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
		step["abort_after"] = true // the step has to end first
		n.put("service_step", step)
		return nil
	}
	n.work = nil
	target := state(n.str("target_provision_state"))
	// Only these states can be left by abort.
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

// unhold goes on with what was held.
func (s *Server) unhold(n *node) {
	o := operation{verb: string(verbUnhold)}
	in, failed, target := servicing, serviceFail, active
	// Only held states can be left by unhold.
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

// isURL says whether an image reference can be fetched: http, https, file or oci.
func isURL(reference string) bool {
	scheme, _, found := strings.Cut(reference, "://")
	return found && contains([]string{"http", "https", "file", "glance", "oci"}, strings.ToLower(scheme))
}
