package fakeironic

import (
	"fmt"
	"net/http"
	"strings"
)

// rebuildNeedsImage says that a bug keeps Ironic from rebuilding nodes without an image: since 26.1, API 1.92 and on.
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
	n.put("instance_info", info) // also if it is refused now
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
	return nil
}

// deployment is what the deploy interface does. The fake one does nothing.
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
			s.restart(n) // into the ramdisk of Ironic's own
		}
		o.done = func(n *node) {
			s.switchPower(n, powerOff)
			n.machine.bootFrom(deviceDisk, true)
			s.switchPower(n, powerOn)
			n.serveImage()
			s.deployed(n)
		}
	}
	return o
}

// deployed ends a deployment that went well.
func (s *Server) deployed(n *node) {
	n.note("deploy_steps", nil)
	s.rest(n, active, "", "")
}

// inferImageType notes of an image that says nothing of its type what it seems to be: with a kernel, a partition image.
func inferImageType(info map[string]any) {
	if text(info["image_source"]) == "" || text(info["image_type"]) != "" {
		return
	}
	info["image_type"] = "whole-disk"
	if text(info["kernel"]) != "" || text(info["ramdisk"]) != "" {
		info["image_type"] = "partition"
	}
}

// serveImage notes what the agent was given: the image itself, or a raw copy of a file of the conductor's.
func (n *node) serveImage() {
	info := object(clone(n.fields["instance_info"]))
	source := text(info["image_source"])
	if source == "" {
		return
	}
	info["image_url"] = source
	if strings.HasPrefix(source, "file://") && info["image_disk_format"] != "raw" {
		info["image_url"] = "http://127.0.0.1/agent_images/" + n.str("uuid")
		info["image_disk_format"], info["image_checksum"] = "raw", nil
		info["image_os_hash_algo"], info["image_os_hash_value"] = "sha256", strings.Repeat("0f", 32)
	}
	n.put("instance_info", info)
}

// checkDeployStep refuses to override the steps of Ironic's own, but for switching them off with priority 0.
func checkDeployStep(n *node, step map[string]any) error {
	if step["interface"] != "deploy" || step["step"] != "deploy" || step["priority"] == 0.0 || step["priority"] == "0" {
		return nil
	}
	return fault(http.StatusBadRequest, "Failed to validate deploy or power info for node %s: Validation of deploy steps from \"deploy steps\" "+
		"argument failed.deploy step deploy on interface deploy is a core step and cannot be overridden by user steps. It may be disabled by "+
		"setting the priority to 0", n.str("uuid"))
}

// skipsDeploy says that the steps switch the deployment itself off, which leaves nothing to do.
func skipsDeploy(steps []any) bool {
	for _, item := range steps {
		step := object(item)
		if step["interface"] == "deploy" && step["step"] == "deploy" {
			return true
		}
	}
	return false
}

// validateDeploy checks what a deployment needs before it is accepted.
func (s *Server) validateDeploy(n *node) error {
	reason := n.bmcFault("power")
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

// deployFault says what the deploy interface lacks, "" when it has what it needs. The fake one needs nothing.
func (s *Server) deployFault(n *node) string {
	switch n.uses("deploy") {
	case "ramdisk":
		return s.ramdiskFault(n)
	case "direct":
		if reason := s.bootFault(n); reason != "" {
			return reason
		}
		return directFault(n)
	}
	return ""
}

// directFault says what is wrong with the image that is to be written to the disk.
func directFault(n *node) string {
	info := object(n.fields["instance_info"])
	source := text(info["image_source"])
	switch {
	case source == "":
		return "Node " + n.str("uuid") + " failed to validate deploy image info. Some parameters were missing. Missing are: " +
			"['instance_info.image_source']"
	case imageFault(source) != "":
		return imageFault(source)
	case isURL(source) && text(info["image_checksum"]) == "" &&
		(text(info["image_os_hash_algo"]) == "" || text(info["image_os_hash_value"]) == ""):
		return "image_source's \"image_checksum\", or \"image_os_hash_algo\" and \"image_os_hash_value\" must be provided in " +
			"instance_info for node " + n.str("uuid")
	}
	return ""
}

// imageFault says why a reference cannot be that of an image, "" when it can.
func imageFault(reference string) string {
	scheme, _, found := strings.Cut(reference, "://")
	switch {
	case isURL(reference) || isUUID(reference):
		return ""
	case found:
		return "Validation of image href " + reference + " failed, reason: Image download protocol " + scheme + " is not supported."
	}
	return "Validation of image href " + reference + " failed, reason: Scheme-less image href is not a UUID."
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
	for _, item := range request.cleanSteps {
		step := object(item)
		defect, executing := s.stepDefect(n, step)
		if defect == "" {
			continue
		}
		o.defect = defect
		if executing {
			o.fail = func(n *node, text string) {
				n.breakDown("clean failure", text)
				s.rest(n, cleanFail, manageable, text)
			}
		}
		break
	}
	s.begin(n, o, manageable)
	return nil
}

// breakDown puts the node into maintenance as the conductor does after a step that failed in the middle.
func (n *node) breakDown(faultName, text string) {
	n.put("maintenance", true)
	n.put("fault", faultName)
	n.put("maintenance_reason", text)
}

// stepDefect says how a clean step fails, and whether it does so while it runs.
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
		return "", false
	}
	if !contains(n.steps(kind), name) {
		return fmt.Sprintf("Cannot clean node %s: node does not support this clean step: %s", n.str("uuid"), pyStep(step)), false
	}
	return "", false
}

// steps are the steps that an interface of the node knows.
func (n *node) steps(kind string) []string {
	switch kind {
	case "bios":
		return []string{"apply_configuration", "factory_reset"}
	case "raid":
		return []string{"create_configuration", "delete_configuration"}
	case "deploy":
		if n.uses("deploy") != "fake" {
			return []string{"erase_devices", "erase_devices_metadata", "erase_devices_express"}
		}
	case "firmware":
		return []string{"update"}
	}
	return nil
}

// missingArguments writes a step that lacks arguments as Python prints it; 39 has filled in its defaults by then.
func (s *Server) missingArguments(step map[string]any) string {
	if s.legacy() {
		return pyStep(step)
	}
	return strings.TrimSuffix(pyStep(step), "}") + ", 'abortable': False, 'priority': 0}"
}

// pyStep writes a step as Python prints it.
func pyStep(step map[string]any) string {
	kind, name := stepName(step)
	if args, given := step["args"]; given {
		return fmt.Sprintf("{'interface': '%s', 'step': '%s', 'args': %s, 'abortable': False, 'priority': 0}", kind, name, pyRepr(args))
	}
	return fmt.Sprintf("{'interface': '%s', 'step': '%s'}", kind, name)
}

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
	for _, item := range request.serviceSteps {
		kind, name := stepName(object(item))
		if kind == "vendor" && name == "trigger_servicewait" {
			o.done = func(n *node) {
				n.put("service_step", map[string]any{"interface": kind, "step": name, "priority": 0, "abortable": false})
				s.rest(n, serviceWait, active, "")
			}
			continue
		}
		if !contains(n.steps(kind), name) {
			o.defect = fmt.Sprintf("Node %s failed step {'interface': '%s', 'step': '%s'}: the %s interface has no attribute '%s'",
				n.str("uuid"), kind, name, kind, name)
			o.fail = func(n *node, text string) {
				n.breakDown("service failure", text)
				s.rest(n, serviceFail, active, text)
			}
		}
	}
	s.begin(n, o, active)
	return nil
}
