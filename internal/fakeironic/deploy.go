package fakeironic

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// rebuildNeedsImage reports whether Ironic has the bug that it cannot rebuild nodes without an image (since 26.1, API 1.92).
func (s *Server) rebuildNeedsImage() bool { return s.maxMinor() >= 92 }

// deploy checks and starts a deployment or a rebuild.
func (s *Server) deploy(n *node, request provisionRequest) error {
	rebuild := request.target == verbRebuild
	if rebuild && n.flag("protected") {
		return protectedFault(n)
	}
	if err := s.deployLimit(); err != nil {
		return err
	}
	info := object(clone(n.fields["instance_info"]))
	source := text(info["image_source"])
	if rebuild && s.rebuildNeedsImage() && !isURL(source) && !isUUID(source) {
		return unexpectedRPC()
	}
	inferImageType(info)
	n.put("instance_info", info) // even if the request is refused below
	if err := s.validateDeploy(n); err != nil {
		return err
	}
	for _, item := range request.deploySteps {
		if err := checkDeployStep(n, object(item)); err != nil {
			return err
		}
	}
	if request.configdrive != nil {
		info["configdrive"] = clone(request.configdrive)
	}
	n.put("instance_info", info)

	o := s.deployment(n)
	o.verb = string(request.target.canonical())
	if skipsDeploy(request.deploySteps) {
		o.phases = s.stay(deploying)
		o.defect = "No deploy steps returned by the driver"
	}
	s.begin(n, o, active)
	if o.defect == "" {
		n.put("deploy_step", map[string]any{"interface": "deploy", "step": "deploy", "priority": 100, "argsinfo": nil})
	}
	return nil
}

// deployment returns the operation of the deploy interface. The deploy interface fake does nothing.
func (s *Server) deployment(n *node) operation {
	o := operation{
		phases: s.stay(deploying),
		fail:   func(n *node, text string) { s.rest(n, deployFail, active, text) },
		done:   s.deployed,
	}
	boot := n.uses("boot")
	switch n.uses("deploy") {
	case "ramdisk":
		s.deployRamdisk(n, &o)
	case "direct":
		o.phases = s.stay(deploying, deployWait, deploying)
		o.phases[0].then = func(n *node) {
			n.machine.empty(boot)
			s.restart(n) // into Ironic's ramdisk
		}
		o.done = func(n *node) {
			if n.byAgent() { // the agent restarts the machine into the image
				n.machine.bootFrom(deviceDisk, true)
				n.machine.start()
			}
			s.switchPower(n, powerOff)
			n.machine.bootFrom(deviceDisk, true)
			s.switchPower(n, powerOn)
			n.serveImage()
			s.deployed(n)
		}
	}
	if o.defect == "" {
		o.defect = s.networkDefect(n)
	}
	return o
}

// checkDeployStep refuses to override Ironic's core step unless its priority is 0, which disables it.
func checkDeployStep(n *node, step map[string]any) error {
	if step["interface"] != "deploy" || step["step"] != "deploy" || step["priority"] == 0.0 || step["priority"] == "0" {
		return nil
	}
	return fault(http.StatusBadRequest, "Failed to validate deploy or power info for node %s: Validation of deploy steps from \"deploy steps\" "+
		"argument failed.deploy step deploy on interface deploy is a core step and cannot be overridden by user steps. It may be disabled by "+
		"setting the priority to 0", n.str("uuid"))
}

// skipsDeploy reports whether the steps disable the core step, so that no step is left.
func skipsDeploy(steps []any) bool {
	for _, item := range steps {
		step := object(item)
		if step["interface"] == "deploy" && step["step"] == "deploy" {
			return true
		}
	}
	return false
}

// validateDeploy checks the requirements of a deployment before Ironic accepts it.
func (s *Server) validateDeploy(n *node) error {
	reason := s.powerFault(n)
	if reason == "" {
		reason = s.deployFault(n)
	}
	source := text(object(n.fields["instance_info"])["image_source"])
	switch {
	case reason == "":
		return nil
	case n.uses("deploy") == "direct" && reason == imageFault(source):
		return fault(http.StatusInternalServerError, "%s", reason)
	}
	return fault(http.StatusBadRequest, "Failed to validate deploy or power info for node %s: %s", n.str("uuid"), reason)
}

// clean starts a manual cleaning.
func (s *Server) clean(n *node, request provisionRequest) error {
	if n.flag("maintenance") {
		return inMaintenance("cleaning", n)
	}
	if err := s.cleanLimit("cleaning"); err != nil {
		return err
	}
	how := n.uses("deploy")
	o := operation{
		verb: string(verbClean), phases: s.cleaningPhases(how),
		fail: func(n *node, text string) { s.rest(n, cleanFail, manageable, text) },
		done: func(n *node) {
			s.cleaned(n, how)
			s.rest(n, manageable, "", "")
		},
	}
	if request.noRamdisk {
		o.phases = s.stay(cleaning)
	}
	run, defect, executing := s.runSteps(n, request.cleanSteps, false)
	end := o.done
	o.done = func(n *node) {
		run(n)
		end(n)
	}
	if o.defect = defect; defect != "" {
		o.fail = func(n *node, text string) {
			run(n)
			if executing {
				n.breakDown("clean failure", text)
			}
			s.rest(n, cleanFail, manageable, text)
		}
	}
	s.begin(n, o, manageable)
	return nil
}

// breakDown puts the node into maintenance, as the conductor does after a step that failed while it ran.
func (n *node) breakDown(faultName, text string) {
	n.put("maintenance", true)
	n.put("fault", faultName)
	n.put("maintenance_reason", text)
}

// stepDefect returns how a clean step fails, "" if it succeeds, and whether it fails while it runs.
func (s *Server) stepDefect(n *node, step map[string]any) (text string, executing bool) {
	kind, name := stepName(step)
	if kind == "bios" && name == "apply_configuration" {
		settings, given := object(step["args"])["settings"].([]any)
		if !given {
			return fmt.Sprintf("Cannot clean node %s: clean step %s is missing these required arguments: settings (List of BIOS settings, each item needs "+
				"to contain a dictionary with name/value pairs)", n.str("uuid"), s.missingArguments(step)), false
		}
		for _, item := range settings {
			if _, named := object(item)["name"]; !named {
				return fmt.Sprintf("Node %s failed step %s: 'name'", n.str("uuid"), pyStep(step)), true
			}
		}
	}
	if !slices.Contains(n.steps(kind), name) {
		return fmt.Sprintf("Cannot clean node %s: node does not support this clean step: %s", n.str("uuid"), pyStep(step)), false
	}
	reason := n.hardwareDefect(kind, name, step)
	return reason, reason != ""
}

// steps returns the steps of an interface of the node. The interface fake has no RAID steps.
func (n *node) steps(kind string) []string {
	if strings.HasPrefix(n.uses(kind), "no-") {
		return nil
	}
	switch kind {
	case "bios":
		return []string{"apply_configuration", "factory_reset"}
	case "raid":
		if n.uses("raid") != "fake" {
			return []string{"create_configuration", "delete_configuration"}
		}
	case "vendor":
		return []string{"log_passthrough"}
	case "deploy":
		if n.uses("deploy") != "fake" {
			return []string{"erase_devices", "erase_devices_metadata", "erase_devices_express"}
		}
	case "firmware":
		return []string{"update"}
	}
	return nil
}

// missingArguments formats a step that lacks arguments as Python's repr does. 39 has added the defaults by then.
func (s *Server) missingArguments(step map[string]any) string {
	if s.legacy() {
		return pyStep(step)
	}
	return strings.TrimSuffix(pyStep(step), "}") + ", 'abortable': False, 'priority': 0}"
}

// pyStep formats a step as Python's repr does.
func pyStep(step map[string]any) string {
	kind, name := stepName(step)
	if args, given := step["args"]; given {
		return fmt.Sprintf("{'interface': '%s', 'step': '%s', 'args': %s, 'abortable': False, 'priority': 0}", kind, name, pyRepr(args))
	}
	return fmt.Sprintf("{'interface': '%s', 'step': '%s'}", kind, name)
}

// stepName returns the interface and the name of a step.
func stepName(step map[string]any) (kind, name string) {
	return text(step["interface"]), text(step["step"])
}

// service changes an active node in place.
func (s *Server) service(n *node, request provisionRequest) error {
	if n.flag("maintenance") {
		return inMaintenance("service", n)
	}
	o := operation{
		verb: string(verbService), phases: s.stay(servicing),
		fail: func(n *node, text string) { s.rest(n, serviceFail, active, text) },
		done: func(n *node) { s.rest(n, active, "", "") },
	}
	n.put("service_step", map[string]any{})
	steps := slices.DeleteFunc(slices.Clone(request.serviceSteps), func(item any) bool {
		kind, name := stepName(object(item))
		waits := kind == "vendor" && name == "trigger_servicewait"
		if waits {
			o.done = func(n *node) {
				n.put("service_step", map[string]any{"interface": kind, "step": name, "priority": 0, "abortable": false})
				s.rest(n, serviceWait, active, "")
			}
		}
		return waits
	})
	run, defect, _ := s.runSteps(n, steps, true)
	end := o.done
	o.done = func(n *node) {
		run(n)
		end(n)
	}
	if o.defect = defect; defect != "" {
		o.fail = func(n *node, text string) {
			run(n)
			n.breakDown("service failure", text)
			s.rest(n, serviceFail, active, text)
		}
	}
	s.begin(n, o, active)
	return nil
}

// undeploy tears the instance down and cleans the node. After half of the tear-down, even if it fails then, it removes the
// instance and its allocation. The cleaning uses the interfaces of the instance.
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
		s.forgetVIFs(n)
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

// provide cleans a node, unless automated_clean is false, and makes it available.
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

// automatedCleaning returns the cleaning of a node before target with the deploy interface how. If automated_clean is false it
// cleans nothing.
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
	if reason := s.powerFault(n); n.byAgent() && reason != "" {
		o.defect = "Failed to validate power driver interface for node cleaning. Node " + n.str("uuid") + ". Error: " + reason
	}
	return o
}

// cleaned ends a successful cleaning.
func (s *Server) cleaned(n *node, how string) {
	if how != "fake" {
		s.switchPower(n, powerOff)
	}
	n.note("clean_steps", nil)
}

// cleaningPhases returns the phases of a cleaning, which boots a ramdisk unless the deploy interface is fake.
func (s *Server) cleaningPhases(how string) []phase {
	if how == "fake" {
		return s.stay(cleaning)
	}
	phases := s.stay(cleaning, cleanWait, cleaning)
	phases[0].then = s.restart
	return phases
}
