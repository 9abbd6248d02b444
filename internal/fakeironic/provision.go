package fakeironic

import (
	"net/http"
	"slices"
	"strings"
)

// provisionRequest is the body of PUT states/provision.
type provisionRequest struct {
	target         verb
	asked          string // target as the client wrote it
	configdrive    any
	cleanSteps     []any
	deploySteps    []any
	serviceSteps   []any
	rescuePassword string
	hasPassword    bool
	noRamdisk      bool
	runbook        string
}

// putProvision answers PUT /v1/nodes/{node}/states/provision.
func (s *Server) putProvision(c *call, n *node) (reply, error) {
	request, err := readProvision(c)
	if err != nil {
		return reply{}, err
	}
	if request.runbook != "" && s.maxMinor() < runbookMinor {
		return reply{}, fault(http.StatusBadRequest, "Unexpected arguments: runbook")
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
	if err := s.takeRunbook(c, n, &request); err != nil {
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
	request.deploySteps = append(s.templateSteps(n), request.deploySteps...)
	if err := s.start(n, request); err != nil {
		return reply{}, err
	}
	answer := done(http.StatusAccepted)
	answer.header.Set("Location", c.base+"/v1/nodes/"+c.path[1]+"/states")
	return answer, nil
}

// templateSteps returns the steps of the deploy templates that the traits of a node's instance select.
func (s *Server) templateSteps(n *node) (steps []any) {
	traits := texts(object(n.fields["instance_info"])["traits"])
	for _, template := range s.templates.all {
		if slices.Contains(traits, template.name) {
			steps = append(steps, template.steps...)
		}
	}
	return steps
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
			request.runbook = text(value)
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

// checkTransition refuses a verb that is not allowed in the node's state.
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

// checkProvisionBody refuses members of the body that the verb does not allow, and missing ones.
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

// checkSteps refuses steps with missing or unknown members.
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
		if kind, _ := stepName(step); !slices.Contains(kinds, kind) {
			return fault(http.StatusBadRequest, "Invalid %s_steps: %s is not one of %s\n\nFailed validating 'enum' in schema['items']:\n    {}",
				what, pyRepr(step["interface"]), pyRepr(clone(kinds)))
		}
		for _, key := range sortedKeys(step) {
			if !slices.Contains([]string{"interface", "step", "args", "priority", "execute_on_child_nodes", "limit_child_node_execution"}, key) {
				return fault(http.StatusBadRequest, "Invalid %s_steps: Additional properties are not allowed (%s was unexpected)\n\n"+
					"Failed validating 'additionalProperties' in schema['items']:\n    {}", what, pyRepr(key))
			}
		}
	}
	return nil
}

// start starts the operation of the verb, or does it at once if it takes no time.
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

// base64Alphabet has the allowed characters of a config drive in a string.
const base64Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\n\r"

// checkConfigDrive checks the config drive of a provision request.
func checkConfigDrive(c *call, request provisionRequest) error {
	parts, isObject := request.configdrive.(map[string]any)
	if len(parts) == 0 && text(request.configdrive) == "" {
		return nil
	}
	target := request.target.canonical()
	rebuilds := c.minor >= 35 && target == verbRebuild
	if target != verbActive && !rebuilds {
		allowed := "active"
		if c.minor >= 35 {
			allowed = "active, rebuild"
		}
		return fault(http.StatusBadRequest, "Adding a config drive is only supported when setting provision state to %s", allowed)
	}
	if !isObject {
		drive := text(request.configdrive)
		if !strings.Contains(drive, "://") && strings.Trim(drive, base64Alphabet) != "" {
			return fault(http.StatusBadRequest, "Invalid configdrive format: it is neither a JSON, nor a URL, nor a base64 string")
		}
		return nil
	}
	return checkDriveParts(c, parts)
}

// checkDriveParts checks a config drive in JSON, which Ironic builds.
func checkDriveParts(c *call, parts map[string]any) error {
	for _, key := range sortedKeys(parts) {
		var valid []string
		switch key {
		case "meta_data", "network_data", "vendor_data":
			valid = []string{"object"}
		case "user_data":
			valid = []string{"object", "array", "string", "null"}
		default:
			return fault(http.StatusBadRequest, "Invalid configdrive format: Additional properties are not allowed (%s was unexpected)\n\n"+
				"Failed validating 'additionalProperties' in schema[0]:\n    {}", pyRepr(key))
		}
		if !slices.Contains(valid, jsonType(parts[key])) {
			quoted := "'" + strings.Join(valid, "', '") + "'"
			return fault(http.StatusBadRequest, "Invalid configdrive format: %s is not of type %s\n\nFailed validating 'type' in schema[0]:\n    {}",
				pyRepr(parts[key]), quoted)
		}
	}
	if c.minor < 56 {
		return fault(http.StatusBadRequest, "Providing a JSON object for configdrive is only supported starting with API version 1.56")
	}
	if _, given := parts["vendor_data"]; given && c.minor < 59 {
		return fault(http.StatusBadRequest, "Providing vendor_data in configdrive is only supported starting with API version 1.59")
	}
	return nil
}

// blank reports whether the text has only white space.
func blank(text string) bool { return strings.TrimSpace(text) == "" }
