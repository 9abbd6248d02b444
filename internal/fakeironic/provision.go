package fakeironic

import (
	"net/http"
)

// provisionRequest is the body of PUT states/provision.
type provisionRequest struct {
	target         verb
	asked          string // as the client wrote it
	configdrive    any
	cleanSteps     []any
	deploySteps    []any
	serviceSteps   []any
	rescuePassword string
	hasPassword    bool
	noRamdisk      bool
}

// putProvision answers PUT /v1/nodes/{node}/states/provision.
func (s *Server) putProvision(c *call, n *node) (reply, error) {
	request, err := readProvision(c)
	if err != nil {
		return reply{}, err
	}
	if since := verbSince(request.target); c.minor < since && since <= s.maxMinor() {
		return reply{}, notAcceptable()
	}
	if err := s.checkTransition(n, request); err != nil {
		return reply{}, err
	}
	if err := checkConfigDrive(c, request); err != nil {
		return reply{}, err
	}
	if err := s.checkProvisionBody(c, request); err != nil {
		return reply{}, err
	}
	if n.state() == inspectWait && request.target == verbAbort && c.minor < 41 {
		return reply{}, notAcceptable()
	}
	if n.state() == deployWait && request.target == verbAbort && c.minor < 110 {
		return reply{}, notAcceptable()
	}
	if err := n.locked(); err != nil {
		return reply{}, err
	}
	if err := s.start(n, request); err != nil {
		return reply{}, err
	}
	answer := done(http.StatusAccepted)
	answer.header.Set("Location", c.base+"/v1/nodes/"+c.path[1]+"/states")
	return answer, nil
}

// readProvision decodes the body.
func readProvision(c *call) (provisionRequest, error) {
	var request provisionRequest
	body, err := c.object("body")
	if err != nil {
		return request, err
	}
	target, given := body["target"]
	if !given {
		return request, fault(http.StatusBadRequest, "Missing mandatory parameter: target")
	}
	for _, key := range sortedKeys(body) {
		value := body[key]
		valid := true
		switch key {
		case "target":
			if kind := jsonType(value); kind != "string" && kind != "null" {
				return request, fault(http.StatusBadRequest, "Expected string for target: %s", pyText(value))
			}
		case "configdrive":
			kind := jsonType(value)
			if kind != "null" && kind != "object" && kind != "string" {
				return request, fault(http.StatusBadRequest,
					"Expected types <class 'NoneType'>, <class 'dict'>, <class 'str'> for configdrive: %s", pyRepr(value))
			}
			request.configdrive = value
		case "clean_steps":
			request.cleanSteps, valid = listOrNull(value)
		case "deploy_steps":
			request.deploySteps, valid = listOrNull(value)
		case "service_steps":
			request.serviceSteps, valid = listOrNull(value)
		case "rescue_password":
			request.rescuePassword = text(value)
			request.hasPassword = value != nil
		case "disable_ramdisk":
			request.noRamdisk = value != nil
		case "runbook":
		default:
			return request, fault(http.StatusBadRequest, "Unexpected arguments: %s", key)
		}
		if !valid {
			return request, fault(http.StatusBadRequest, "Expected another type for %s: %s", key, pyRepr(value))
		}
	}
	request.asked = pyText(target)
	request.target = verb(request.asked)
	return request, nil
}

func listOrNull(value any) (list []any, valid bool) {
	if value == nil {
		return nil, true
	}
	list, valid = value.([]any)
	return list, valid
}

// canonical replaces the newer names of verbs by the older ones.
func (v verb) canonical() verb {
	switch v {
	case verbDeploy:
		return verbActive
	case verbUndeploy:
		return verbDeleted
	case verbManage, verbProvide, verbInspect, verbActive, verbDeleted, verbRebuild, verbClean, verbAbort, verbAdopt, verbRescue,
		verbUnrescue, verbService, verbUnhold:
		return v
	}
	return v
}

// checkTransition asks the state machine.
func (s *Server) checkTransition(n *node, request provisionRequest) error {
	target := request.target.canonical()
	if n.flag("maintenance") && (target == verbActive || target == verbRebuild) {
		return inMaintenance("provisioning", n)
	}
	if next(n.state(), target, s.maxMinor()) != "" {
		return nil
	}
	if err := n.locked(); err != nil {
		return err
	}
	return invalidAction(request.asked, n.str("uuid"), n.str("provision_state"))
}

func invalidAction(action, uuid, current string) error {
	return fault(http.StatusBadRequest, "The requested action \"%s\" can not be performed on node \"%s\" while it is in state \"%s\".",
		action, uuid, current)
}

func inMaintenance(operation string, n *node) error {
	return fault(http.StatusBadRequest, "The %s operation can't be performed on node %s because it's in maintenance mode.",
		operation, n.str("uuid"))
}

// checkProvisionBody applies the rules about what may come with which verb.
func (s *Server) checkProvisionBody(c *call, request provisionRequest) error {
	target := request.target.canonical()
	only := func(what, verb string) error {
		return fault(http.StatusBadRequest, "\"%s\" is only valid when setting target provision state to %s", what, verb)
	}
	switch {
	case len(request.cleanSteps) > 0 && target != verbClean:
		return only("clean_steps", "clean")
	case request.noRamdisk && target != verbClean && s.legacy():
		return fault(http.StatusInternalServerError, "disable_ramdisk is supported only with manual cleaning")
	case request.noRamdisk && target != verbClean && target != verbService:
		return fault(http.StatusBadRequest, "disable_ramdisk is supported only with manual cleaning or servicing")
	case len(request.deploySteps) > 0 && target != verbActive && target != verbRebuild:
		return only("deploy_steps", "active or rebuild")
	case len(request.deploySteps) > 0 && c.minor < 69:
		return notAcceptableBefore(69)
	case request.hasPassword && target != verbRescue:
		return only("rescue_password", "rescue")
	case target == verbRescue && blank(request.rescuePassword):
		return fault(http.StatusBadRequest, "A non-empty \"rescue_password\" is required when setting target provision state to rescue")
	case target == verbClean && len(request.cleanSteps) == 0:
		return fault(http.StatusBadRequest, "\"clean_steps\" is required when setting target provision state to clean")
	case target == verbService && len(request.serviceSteps) == 0:
		return fault(http.StatusBadRequest, "\"service_steps\" is required when setting target provision state to service")
	}
	if err := s.checkSteps("clean", request.cleanSteps, "interface", "step"); err != nil {
		return err
	}
	if err := s.checkSteps("service", request.serviceSteps, "interface", "step"); err != nil {
		return err
	}
	return s.checkSteps("deploy", request.deploySteps, "interface", "step", "args", "priority")
}

// checkSteps refuses steps that lack a member or have one too many.
func (s *Server) checkSteps(what string, steps []any, required ...string) error {
	kinds := []string{"power", "management", "deploy", "bios", "raid"}
	if !s.legacy() {
		kinds = []string{"vendor", "power", "management", "firmware", "deploy", "bios", "raid"}
	}
	for _, item := range steps {
		step := object(item)
		for _, key := range required {
			if _, given := step[key]; given {
				continue
			}
			if key == "interface" && !s.legacy() {
				return fault(http.StatusInternalServerError, "'interface'")
			}
			return fault(http.StatusBadRequest, "Invalid %s_steps: %s is a required property\n\nFailed validating 'required' in schema['items']:\n"+
				"    {'additionalProperties': False}\n\nOn instance[0]:\n    %s", what, pyRepr(key), pyRepr(step))
		}
		if kind, _ := stepName(step); !contains(kinds, kind) {
			return fault(http.StatusBadRequest, "Invalid %s_steps: %s is not one of %s\n\nFailed validating 'enum' in schema['items']:\n    {}",
				what, pyRepr(step["interface"]), pyRepr(clone(kinds)))
		}
		for _, key := range sortedKeys(step) {
			if !contains([]string{"interface", "step", "args", "priority", "execute_on_child_nodes", "limit_child_node_execution"}, key) {
				return fault(http.StatusBadRequest, "Invalid %s_steps: Additional properties are not allowed (%s was unexpected)\n\n"+
					"Failed validating 'additionalProperties' in schema['items']:\n    {}", what, pyRepr(key))
			}
		}
	}
	return nil
}
