package fakeironic

import (
	"net/http"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/conductor"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/procedure"
)

// takeRunbook replaces the steps of a request by those of its runbook.
func (s *Server) takeRunbook(c *api.Call, n *conductor.Node, request *conductor.Request) error {
	if request.Runbook == "" {
		return nil
	}
	if c.Minor < procedure.RunbookMinor {
		return api.NotAcceptable()
	}
	p := s.runbooks.Find(request.Runbook)
	if p == nil {
		return api.Fault(http.StatusNotFound, "Runbook %s could not be found.", request.Runbook)
	}
	if err := p.Approved(c, n.Str("uuid"), n.Traits()); err != nil {
		return err
	}
	steps := p.AsRequested()
	given := request.CleanSteps
	if request.Target == conductor.VerbService {
		given = request.ServiceSteps
	}
	switch {
	case len(given) > 0:
		return api.Fault(http.StatusBadRequest, "Please provide either \"%s_steps\" or a runbook, but not both.", request.Target)
	case request.Target == conductor.VerbClean:
		request.CleanSteps = steps
	case request.Target == conductor.VerbService:
		request.ServiceSteps = steps
	}
	request.NoRamdisk = p.DisableRamdisk
	return nil
}

// cleaningSteps returns the steps of the runbook by which a node is cleaned; nil if it has none.
func (s *Server) cleaningSteps(n *conductor.Node) (steps []any, noRamdisk bool, err error) {
	ref := api.Text(api.Object(n.Fields["driver_info"])["cleaning_runbook"])
	if !s.CleansByRunbook || s.maxMinor() < procedure.RunbookMinor || ref == "" {
		return nil, false, nil
	}
	p := s.runbooks.Find(ref)
	if p == nil {
		return nil, false, api.Fault(http.StatusNotFound, "Runbook %s could not be found.", ref)
	}
	if reason := p.Mismatch(n.Traits()); reason != "" {
		return nil, false, api.Fault(http.StatusInternalServerError, "Automated cleaning runbook %s is not valid for node %s. %s", p.Name,
			n.Str("uuid"), reason)
	}
	return p.AsRequested(), p.DisableRamdisk, nil
}

func (s *Server) putProvision(c *api.Call, n *conductor.Node) (api.Reply, error) {
	request, err := readProvision(c)
	if err != nil {
		return api.Reply{}, err
	}
	if request.Runbook != "" && s.maxMinor() < procedure.RunbookMinor {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Unexpected arguments: runbook")
	}
	if since := conductor.VerbSince(request.Target); c.Minor < since && since <= s.maxMinor() {
		return api.Reply{}, api.NotAcceptable()
	}
	if err := s.checkTransition(n, request); err != nil {
		return api.Reply{}, err
	}
	if err := checkConfigDrive(c, request); err != nil {
		return api.Reply{}, err
	}
	if err := s.takeRunbook(c, n, &request); err != nil {
		return api.Reply{}, err
	}
	if err := s.checkProvisionBody(c, request); err != nil {
		return api.Reply{}, err
	}
	if n.State() == conductor.InspectWait && request.Target == conductor.VerbAbort && c.Minor < 41 {
		return api.Reply{}, api.NotAcceptable()
	}
	if n.State() == conductor.DeployWait && request.Target == conductor.VerbAbort && c.Minor < 110 {
		return api.Reply{}, api.NotAcceptable()
	}
	if err := n.Locked(); err != nil {
		return api.Reply{}, err
	}
	request.DeploySteps = append(s.templateSteps(n), request.DeploySteps...)
	if err := s.conductor.Start(n, request); err != nil {
		return api.Reply{}, err
	}
	answer := api.Done(http.StatusAccepted)
	answer.Header.Set("Location", c.Base+"/v1/nodes/"+c.Path[1]+"/states")
	return answer, nil
}

// templateSteps returns the steps of the deploy templates that the traits of a node's instance select.
func (s *Server) templateSteps(n *conductor.Node) (steps []any) {
	traits := api.Texts(api.Object(n.Fields["instance_info"])["traits"])
	for _, template := range s.templates.All {
		if slices.Contains(traits, template.Name) {
			steps = append(steps, template.Steps...)
		}
	}
	return steps
}

func readProvision(c *api.Call) (conductor.Request, error) {
	var request conductor.Request
	body, err := c.Object("body")
	if err != nil {
		return request, err
	}
	target, given := body["target"]
	if !given {
		return request, api.Fault(http.StatusBadRequest, "Missing mandatory parameter: target")
	}
	for _, key := range api.SortedKeys(body) {
		value := body[key]
		valid := true
		switch key {
		case "target":
			if kind := api.JSONType(value); kind != "string" && kind != "null" {
				return request, api.Fault(http.StatusBadRequest, "Expected string for target: %s", api.PyText(value))
			}
		case "configdrive":
			kind := api.JSONType(value)
			if kind != "null" && kind != "object" && kind != "string" {
				return request, api.Fault(http.StatusBadRequest,
					"Expected types <class 'NoneType'>, <class 'dict'>, <class 'str'> for configdrive: %s", api.PyRepr(value))
			}
			request.ConfigDrive = value
		case "clean_steps":
			request.CleanSteps, valid = listOrNull(value)
		case "deploy_steps":
			request.DeploySteps, valid = listOrNull(value)
		case "service_steps":
			request.ServiceSteps, valid = listOrNull(value)
		case "rescue_password":
			request.RescuePassword = api.Text(value)
			request.HasPassword = value != nil
		case "disable_ramdisk":
			request.NoRamdisk = value != nil
		case "runbook":
			request.Runbook = api.Text(value)
		default:
			return request, api.Fault(http.StatusBadRequest, "Unexpected arguments: %s", key)
		}
		if !valid {
			return request, api.Fault(http.StatusBadRequest, "Expected another type for %s: %s", key, api.PyRepr(value))
		}
	}
	request.Asked = api.PyText(target)
	request.Target = conductor.Verb(request.Asked)
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
func (s *Server) checkTransition(n *conductor.Node, request conductor.Request) error {
	target := request.Target.Canonical()
	if n.Flag("maintenance") && (target == conductor.VerbActive || target == conductor.VerbRebuild) {
		return conductor.InMaintenance("provisioning", n)
	}
	if conductor.Next(n.State(), target, s.maxMinor()) != "" {
		return nil
	}
	if err := n.Locked(); err != nil {
		return err
	}
	return api.InvalidAction(request.Asked, n.Str("uuid"), n.Str("provision_state"))
}

// checkProvisionBody refuses members of the body that the verb does not allow, and missing ones.
func (s *Server) checkProvisionBody(c *api.Call, request conductor.Request) error {
	target := request.Target.Canonical()
	only := func(what, verb string) error {
		return api.Fault(http.StatusBadRequest, "\"%s\" is only valid when setting target provision state to %s", what, verb)
	}
	switch {
	case len(request.CleanSteps) > 0 && target != conductor.VerbClean:
		return only("clean_steps", "clean")
	case request.NoRamdisk && target != conductor.VerbClean && s.legacy():
		return api.Fault(http.StatusInternalServerError, "disable_ramdisk is supported only with manual cleaning")
	case request.NoRamdisk && target != conductor.VerbClean && target != conductor.VerbService:
		return api.Fault(http.StatusBadRequest, "disable_ramdisk is supported only with manual cleaning or servicing")
	case len(request.DeploySteps) > 0 && target != conductor.VerbActive && target != conductor.VerbRebuild:
		return only("deploy_steps", "active or rebuild")
	case len(request.DeploySteps) > 0 && c.Minor < 69:
		return api.NotAcceptableBefore(69)
	case request.HasPassword && target != conductor.VerbRescue:
		return only("rescue_password", "rescue")
	case target == conductor.VerbRescue && blank(request.RescuePassword):
		return api.Fault(http.StatusBadRequest, "A non-empty \"rescue_password\" is required when setting target provision state to rescue")
	case target == conductor.VerbClean && len(request.CleanSteps) == 0:
		return api.Fault(http.StatusBadRequest, "\"clean_steps\" is required when setting target provision state to clean")
	case target == conductor.VerbService && len(request.ServiceSteps) == 0:
		return api.Fault(http.StatusBadRequest, "\"service_steps\" is required when setting target provision state to service")
	}
	if err := s.checkSteps("clean", request.CleanSteps, "interface", "step"); err != nil {
		return err
	}
	if err := s.checkSteps("service", request.ServiceSteps, "interface", "step"); err != nil {
		return err
	}
	return s.checkSteps("deploy", request.DeploySteps, "interface", "step", "args", "priority")
}

func (s *Server) checkSteps(what string, steps []any, required ...string) error {
	kinds := []string{"power", "management", "deploy", "bios", "raid"}
	if !s.legacy() {
		kinds = []string{"vendor", "power", "management", "firmware", "deploy", "bios", "raid"}
	}
	for i, item := range steps {
		step := api.Object(item)
		for _, key := range required {
			if _, given := step[key]; given {
				continue
			}
			if key == "interface" && !s.legacy() {
				return api.Fault(http.StatusInternalServerError, "'interface'")
			}
			return api.Fault(http.StatusBadRequest, "Invalid %s_steps: %s is a required property\n\nFailed validating 'required' in "+
				"schema['items']:\n"+
				"    {'additionalProperties': False}\n\nOn instance[0]:\n    %s", what, api.PyRepr(key), api.PyRepr(step))
		}
		if kind, _ := api.StepName(step); !slices.Contains(kinds, kind) {
			return api.Fault(http.StatusBadRequest, "Invalid %s_steps: %[2]s is not one of %[3]s\n\nFailed validating 'enum' in "+
				"schema['items']['properties']['interface']:\n    {'description': 'driver interface',\n     'enum': %[3]s}\n\n"+
				"On instance[%[4]d]['interface']:\n    %[2]s", what, api.PyRepr(step["interface"]), api.PyRepr(api.Clone(kinds)), i)
		}
		for _, key := range api.SortedKeys(step) {
			if !slices.Contains([]string{"interface", "step", "args", "priority", "execute_on_child_nodes", "limit_child_node_execution"},
				key) {
				return api.Fault(http.StatusBadRequest, "Invalid %s_steps: Additional properties are not allowed (%s was unexpected)\n\n"+
					"Failed validating 'additionalProperties' in schema['items']:\n    {}", what, api.PyRepr(key))
			}
		}
	}
	return nil
}

// base64Alphabet has the allowed characters of a config drive in a string.
const base64Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\n\r"

// checkConfigDrive checks the config drive of a provision request.
func checkConfigDrive(c *api.Call, request conductor.Request) error {
	parts, isObject := request.ConfigDrive.(map[string]any)
	if len(parts) == 0 && api.Text(request.ConfigDrive) == "" {
		return nil
	}
	target := request.Target.Canonical()
	rebuilds := c.Minor >= 35 && target == conductor.VerbRebuild
	if target != conductor.VerbActive && !rebuilds {
		allowed := "active"
		if c.Minor >= 35 {
			allowed = "active, rebuild"
		}
		return api.Fault(http.StatusBadRequest, "Adding a config drive is only supported when setting provision state to %s", allowed)
	}
	if !isObject {
		drive := api.Text(request.ConfigDrive)
		if !strings.Contains(drive, "://") && strings.Trim(drive, base64Alphabet) != "" {
			return api.Fault(http.StatusBadRequest, "Invalid configdrive format: it is neither a JSON, nor a URL, nor a base64 string")
		}
		return nil
	}
	return checkDriveParts(c, parts)
}

// checkDriveParts checks a config drive in JSON, which Ironic builds.
func checkDriveParts(c *api.Call, parts map[string]any) error {
	for _, key := range api.SortedKeys(parts) {
		var valid []string
		switch key {
		case "meta_data", "network_data", "vendor_data":
			valid = []string{"object"}
		case "user_data":
			valid = []string{"object", "array", "string", "null"}
		default:
			return api.Fault(http.StatusBadRequest, "Invalid configdrive format: Additional properties are not allowed (%s was "+
				"unexpected)\n\n"+
				"Failed validating 'additionalProperties' in schema[0]:\n    {}", api.PyRepr(key))
		}
		if !slices.Contains(valid, api.JSONType(parts[key])) {
			quoted := "'" + strings.Join(valid, "', '") + "'"
			return api.Fault(http.StatusBadRequest, "Invalid configdrive format: %s is not of type %s\n\nFailed validating 'type' in "+
				"schema[0]:\n    {}",
				api.PyRepr(parts[key]), quoted)
		}
	}
	if c.Minor < 56 {
		return api.Fault(http.StatusBadRequest, "Providing a JSON object for configdrive is only supported starting with API version 1.56")
	}
	if _, given := parts["vendor_data"]; given && c.Minor < 59 {
		return api.Fault(http.StatusBadRequest, "Providing vendor_data in configdrive is only supported starting with API version 1.59")
	}
	return nil
}

// blank reports whether the text has only white space.
func blank(text string) bool { return strings.TrimSpace(text) == "" }
