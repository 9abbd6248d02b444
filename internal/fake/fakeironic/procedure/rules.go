package procedure

import (
	"net/http"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
)

// RuleMinor is the first minor version with inspection rules.
const RuleMinor = 96

// inspectionRule is a rule for machines that were inspected.
type inspectionRule struct {
	uuid                 string
	description          any
	priority             any
	phase                any
	sensitive            bool
	conditions, actions  []any
	createdAt, updatedAt string
}

var ruleMembers = map[string]api.Kind{
	"uuid": api.TextKind, "description": {Types: api.TextKind.Types, MaxLength: 255}, "priority": {Types: []string{"number"}},
	"phase":     api.TextKind,
	"sensitive": {Types: []string{"boolean", "null"}}, "conditions": {Types: []string{"array"}}, "actions": {Types: []string{"array"}},
}

// ruleArguments are the required and the optional arguments of conditions and actions, in Ironic's order.
type ruleArguments struct {
	op                 string
	required, optional []string
}

var ruleConditions = []ruleArguments{
	{"eq", []string{"values"}, []string{"force_strings"}},
	{"lt", []string{"values"}, []string{"force_strings"}},
	{"gt", []string{"values"}, []string{"force_strings"}},
	{"is-empty", []string{"value"}, nil},
	{"in-net", []string{"address", "subnet"}, nil},
	{"matches", []string{"value", "regex"}, nil},
	{"contains", []string{"value", "regex"}, nil},
	{"one-of", []string{"value"}, []string{"values"}},
	{"is-none", []string{"value"}, nil},
	{"is-true", []string{"value"}, nil},
	{"is-false", []string{"value"}, nil},
}

var ruleActions = []ruleArguments{
	{"fail", []string{"msg"}, nil},
	{"log", []string{"msg"}, []string{"level"}},
	{"set-attribute", []string{"path", "value"}, nil},
	{"extend-attribute", []string{"path", "value"}, []string{"unique"}},
	{"del-attribute", []string{"path"}, nil},
	{"set-capability", []string{"name", "value"}, nil},
	{"unset-capability", []string{"name"}, nil},
	{"add-trait", []string{"name"}, nil},
	{"remove-trait", []string{"name"}, nil},
	{"set-plugin-data", []string{"path", "value"}, nil},
	{"extend-plugin-data", []string{"path", "value"}, []string{"unique"}},
	{"unset-plugin-data", []string{"path"}, nil},
	{"set-port-attribute", []string{"port_id", "path", "value"}, nil},
	{"extend-port-attribute", []string{"port_id", "path", "value"}, []string{"unique"}},
	{"del-port-attribute", []string{"port_id", "path"}, nil},
	{"api-call", []string{"url"}, []string{"headers", "proxies", "timeout", "retries", "backoff_factor"}},
}

// Rules are the inspection rules, in the order of their creation.
type Rules struct{ all []*inspectionRule }

// Route answers /v1/inspection_rules.
func (l *Rules) Route(c *api.Call) (api.Reply, error) {
	if c.Newest < RuleMinor {
		return api.Reply{}, api.RouterFault(http.StatusNotFound, "")
	}
	if c.Minor < RuleMinor {
		status := http.StatusMethodNotAllowed
		if c.Method == http.MethodGet {
			status = http.StatusNotFound
		}
		return api.Reply{}, api.Fault(status, "The API version does not allow inspection rules")
	}
	if len(c.Path) == 1 {
		switch c.Method {
		case http.MethodGet:
			return l.show(c)
		case http.MethodPost:
			return l.create(c)
		}
		return api.Reply{}, api.MethodNotAllowed("DELETE, GET, PATCH, POST")
	}
	ref := c.Path[1]
	if !api.IsUUID(ref) {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Schema error: %s is not a 'uuid'", api.PyRepr(ref))
	}
	r := l.find(ref)
	if r == nil {
		return api.Reply{}, api.Fault(http.StatusNotFound, "Rule %s could not be found.", ref)
	}
	switch c.Method {
	case http.MethodGet:
		return api.OK(http.StatusOK, r.show(c, true)), nil
	case http.MethodPatch:
		return l.patch(c, r)
	case http.MethodDelete:
		l.all = slices.DeleteFunc(l.all, func(other *inspectionRule) bool { return other == r })
		return api.Done(http.StatusNoContent), nil
	}
	return api.Reply{}, api.MethodNotAllowed("DELETE, GET, PATCH")
}

// find returns the rule with that UUID, or nil.
func (l *Rules) find(uuid string) *inspectionRule {
	for _, r := range l.all {
		if r.uuid == uuid {
			return r
		}
	}
	return nil
}

// show returns the fields of a rule; without detail those of a list. The links name a path that does not exist, as in Ironic.
func (r *inspectionRule) show(c *api.Call, detail bool) api.Ordered {
	links := api.Member{"links", c.Links("inspection/" + r.uuid)}
	if !detail {
		return api.Ordered{{"uuid", r.uuid}, {"description", r.description}, {"priority", r.priority}, {"phase", r.phase}, links}
	}
	var conditions, actions any
	if !r.sensitive {
		conditions, actions = shownOperations(r.conditions, true), shownOperations(r.actions, false)
	}
	return api.Ordered{
		{"uuid", r.uuid},
		{"created_at", api.Coarse(r.createdAt)},
		{"updated_at", api.Coarse(api.OrNull(r.updatedAt))},
		{"description", r.description},
		{"priority", r.priority},
		{"sensitive", r.sensitive},
		{"phase", r.phase},
		{"conditions", conditions},
		{"actions", actions},
		links,
	}
}

// shownOperations returns conditions or actions as Ironic shows them.
func shownOperations(all []any, conditions bool) []any {
	out := make([]any, 0, len(all))
	for _, item := range all {
		o := api.Object(item)
		shown := api.Ordered{{"op", o["op"]}, {"args", o["args"]}}
		if loop := o["loop"]; loop != nil {
			shown = append(shown, api.Member{"loop", loop})
			multiple := o["multiple"]
			if multiple == nil {
				multiple = "any"
			}
			if conditions {
				shown = append(shown, api.Member{"multiple", multiple})
			}
		}
		out = append(out, shown)
	}
	return out
}

func (l *Rules) show(c *api.Call) (api.Reply, error) {
	if err := c.Accept("detail", "fields", "limit", "marker", "sort_key", "sort_dir", "phase"); err != nil {
		return api.Reply{}, err
	}
	detail, _ := api.ParseBool(c.Query.Get("detail"))
	return api.Listing[*inspectionRule]{
		Key: "inspection_rules", Noun: "Rule",
		ID:    func(r *inspectionRule) string { return r.uuid },
		Known: func(id string) bool { return l.find(id) != nil },
		Show:  func(r *inspectionRule) (any, error) { return r.show(c, detail), nil },
	}.Reply(c, l.all)
}

func (l *Rules) create(c *api.Call) (api.Reply, error) {
	body, err := c.Object("")
	if err != nil {
		return api.Reply{}, err
	}
	if err := checkRule("", body); err != nil {
		return api.Reply{}, err
	}
	r := &inspectionRule{uuid: api.Text(body["uuid"]), createdAt: api.Timestamp(c.Now)}
	if r.uuid == "" {
		r.uuid = api.NewUUID()
	}
	if l.find(r.uuid) != nil {
		return api.Reply{}, api.Fault(http.StatusConflict, "A rule with UUID %s already exists.", r.uuid)
	}
	r.set(body)
	l.all = append(l.all, r)
	if body["conditions"] == nil { // Ironic stores the rule, and fails when it answers
		return api.Reply{}, api.Fault(http.StatusInternalServerError, "'NoneType' object is not iterable")
	}
	return c.Created("inspection_rules/"+r.uuid, r.show(c, true)), nil
}

// set copies the members of a checked document.
func (r *inspectionRule) set(body map[string]any) {
	r.description, r.priority, r.phase = body["description"], body["priority"], body["phase"]
	if r.priority == nil {
		r.priority = 0.0
	}
	if _, given := body["phase"]; !given {
		r.phase = "main"
	}
	r.sensitive, _ = body["sensitive"].(bool)
	r.conditions, _ = api.Clone(body["conditions"]).([]any)
	r.actions, _ = api.Clone(body["actions"]).([]any)
}

// checkRule refuses a rule in Ironic's order. It adds to actions on plugin data the argument that Ironic adds.
func checkRule(name string, body map[string]any) error {
	rules := api.Schema{Name: name, Members: ruleMembers, Required: []string{"actions"}}
	if err := rules.Check(body); err != nil {
		return err
	}
	conditions, _ := body["conditions"].([]any)
	actions, _ := body["actions"].([]any)
	if len(actions) == 0 {
		return rules.Fault("[] should be non-empty")
	}
	if err := checkOps(rules, actions, ruleActions, false); err != nil {
		return err
	}
	if err := checkOps(rules, conditions, ruleConditions, true); err != nil {
		return err
	}
	var complaints []string
	if phase, given := body["phase"]; given && phase != "main" {
		complaints = append(complaints, "Invalid phase: "+api.PyText(phase)+". Valid phases are: main")
	}
	if priority, _ := api.Number(body["priority"]); priority > 9999 {
		complaints = append(complaints, "Priority must be between 0 and 9999 for user-defined rules.")
	}
	for _, check := range []struct {
		list  []any
		known []ruleArguments
	}{{conditions, ruleConditions}, {actions, ruleActions}} {
		for _, item := range check.list {
			if err := checkRuleArguments(api.Object(item), check.known); err != nil {
				return err
			}
		}
	}
	switch len(complaints) {
	case 0:
		return nil
	case 1:
		return api.Fault(http.StatusBadRequest, "%s", complaints[0])
	}
	return api.Fault(http.StatusBadRequest, "Multiple validation errors occurred: %s", strings.Join(complaints, "; "))
}

func checkOps(rules api.Schema, list []any, known []ruleArguments, negatable bool) error {
	var names []any
	for _, a := range known {
		names = append(names, a.op)
	}
	for _, a := range known {
		if negatable {
			names = append(names, "!"+a.op)
		}
	}
	for _, item := range list {
		o := api.Object(item)
		for _, key := range []string{"op", "args"} {
			if _, given := o[key]; !given {
				return rules.Fault("%s is a required property", api.PyRepr(key))
			}
		}
		if !slices.Contains(names, o["op"]) {
			return rules.Fault("%s is not one of %s", api.PyRepr(o["op"]), api.PyRepr(names))
		}
	}
	return nil
}

// checkRuleArguments answers 500 to wrong arguments, as Ironic does.
func checkRuleArguments(o map[string]any, known []ruleArguments) error {
	args, isObject := o["args"].(map[string]any)
	if !isObject {
		return nil
	}
	op := strings.TrimPrefix(api.Text(o["op"]), "!")
	at := slices.IndexFunc(known, func(a ruleArguments) bool { return a.op == op })
	if strings.HasSuffix(op, "-plugin-data") {
		args["plugin_data"] = map[string]any{}
	}
	var complaints, unexpected, missing []string
	for _, key := range known[at].required {
		if _, given := args[key]; !given {
			missing = append(missing, key)
		}
	}
	for _, key := range api.SortedKeys(args) {
		if !slices.Contains(known[at].required, key) && !slices.Contains(known[at].optional, key) && key != "plugin_data" {
			unexpected = append(unexpected, key)
		}
	}
	if len(missing) > 0 {
		complaints = append(complaints, "missing required argument(s): "+strings.Join(missing, ", "))
	}
	if len(unexpected) > 0 {
		complaints = append(complaints, "unexpected argument(s): "+strings.Join(unexpected, ", "))
	}
	if len(complaints) > 0 {
		return api.Fault(http.StatusInternalServerError, "%s", strings.Join(complaints, "; "))
	}
	return nil
}

func (l *Rules) patch(c *api.Call, r *inspectionRule) (api.Reply, error) {
	ops, err := c.Patch()
	if err != nil {
		return api.Reply{}, err
	}
	for _, value := range api.PatchValues(ops, "/sensitive") {
		if set, _ := value.(bool); !set && r.sensitive {
			all := make([]string, len(ops))
			for i, op := range ops {
				all[i] = op.String()
			}
			return api.Reply{}, api.Fault(http.StatusBadRequest, "Couldn't apply patch '[%s]'. Reason: Inspection rules cannot have the "+
				"sensitive flag unset.", strings.Join(all, ", "))
		}
	}
	document := map[string]any{
		"description": r.description, "priority": r.priority, "phase": r.phase, "sensitive": r.sensitive,
		"conditions": api.Clone(r.conditions), "actions": api.Clone(r.actions),
	}
	if err := api.ApplyPatch(document, ops); err != nil {
		return api.Reply{}, err
	}
	if err := checkRule("patch", document); err != nil {
		return api.Reply{}, err
	}
	r.set(document)
	r.updatedAt = api.Timestamp(c.Now)
	return api.OK(http.StatusOK, r.show(c, true)), nil
}
