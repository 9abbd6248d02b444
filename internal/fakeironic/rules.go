package fakeironic

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// ruleMinor is the first minor version with inspection rules.
const ruleMinor = 96

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

var ruleMembers = map[string]kind{
	"uuid": textKind, "description": {types: textKind.types, maxLength: 255}, "priority": {types: []string{"number"}}, "phase": textKind,
	"sensitive": {types: []string{"boolean", "null"}}, "conditions": {types: []string{"array"}}, "actions": {types: []string{"array"}},
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

// ruleList are the inspection rules, in the order of their creation.
type ruleList struct{ all []*inspectionRule }

// route answers /v1/inspection_rules.
func (l *ruleList) route(c *call) (reply, error) {
	if c.newest < ruleMinor {
		return reply{}, routerFault(http.StatusNotFound, "")
	}
	if c.minor < ruleMinor {
		status := http.StatusMethodNotAllowed
		if c.method == http.MethodGet {
			status = http.StatusNotFound
		}
		return reply{}, fault(status, "The API version does not allow inspection rules")
	}
	if len(c.path) == 1 {
		switch c.method {
		case http.MethodGet:
			return l.show(c)
		case http.MethodPost:
			return l.create(c)
		}
		return reply{}, methodNotAllowed("DELETE, GET, PATCH, POST")
	}
	ref := c.path[1]
	if !isUUID(ref) {
		return reply{}, fault(http.StatusBadRequest, "Schema error: %s is not a 'uuid'", pyRepr(ref))
	}
	r := l.find(ref)
	if r == nil {
		return reply{}, fault(http.StatusNotFound, "Rule %s could not be found.", ref)
	}
	switch c.method {
	case http.MethodGet:
		return ok(http.StatusOK, r.show(c, true)), nil
	case http.MethodPatch:
		return l.patch(c, r)
	case http.MethodDelete:
		l.all = slices.DeleteFunc(l.all, func(other *inspectionRule) bool { return other == r })
		return done(http.StatusNoContent), nil
	}
	return reply{}, methodNotAllowed("DELETE, GET, PATCH")
}

// find returns the rule with that UUID, or nil.
func (l *ruleList) find(uuid string) *inspectionRule {
	for _, r := range l.all {
		if r.uuid == uuid {
			return r
		}
	}
	return nil
}

// show returns the fields of a rule; without detail those of a list. The links name a path that does not exist, as in Ironic.
func (r *inspectionRule) show(c *call, detail bool) ordered {
	links := member{"links", c.links("inspection/" + r.uuid)}
	if !detail {
		return ordered{{"uuid", r.uuid}, {"description", r.description}, {"priority", r.priority}, {"phase", r.phase}, links}
	}
	var conditions, actions any
	if !r.sensitive {
		conditions, actions = shownOperations(r.conditions, true), shownOperations(r.actions, false)
	}
	return ordered{
		{"uuid", r.uuid},
		{"created_at", coarse(r.createdAt)},
		{"updated_at", coarse(orNull(r.updatedAt))},
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
		o := object(item)
		shown := ordered{{"op", o["op"]}, {"args", o["args"]}}
		if loop := o["loop"]; loop != nil {
			shown = append(shown, member{"loop", loop})
			multiple := o["multiple"]
			if multiple == nil {
				multiple = "any"
			}
			if conditions {
				shown = append(shown, member{"multiple", multiple})
			}
		}
		out = append(out, shown)
	}
	return out
}

func (l *ruleList) show(c *call) (reply, error) {
	if err := c.accept("detail", "fields", "limit", "marker", "sort_key", "sort_dir", "phase"); err != nil {
		return reply{}, err
	}
	detail, _ := parseBool(c.query.Get("detail"))
	page, err := paged(c, nil, l.all, func(r *inspectionRule) string { return r.uuid }, func(marker string) error {
		if l.find(marker) == nil {
			return fault(http.StatusNotFound, "Rule %s could not be found.", marker)
		}
		return nil
	})
	if err != nil {
		return reply{}, err
	}
	items := make([]json.RawMessage, len(page.items))
	for i, r := range page.items {
		items[i] = encode(r.show(c, detail))
	}
	return page.reply("inspection_rules", items), nil
}

func (l *ruleList) create(c *call) (reply, error) {
	body, err := c.object("")
	if err != nil {
		return reply{}, err
	}
	if err := checkRule("", body); err != nil {
		return reply{}, err
	}
	r := &inspectionRule{uuid: text(body["uuid"]), createdAt: timestamp(c.now)}
	if r.uuid == "" {
		r.uuid = newUUID()
	}
	if l.find(r.uuid) != nil {
		return reply{}, fault(http.StatusConflict, "A rule with UUID %s already exists.", r.uuid)
	}
	r.set(body)
	l.all = append(l.all, r)
	if body["conditions"] == nil { // Ironic stores the rule, and fails when it answers
		return reply{}, fault(http.StatusInternalServerError, "'NoneType' object is not iterable")
	}
	return c.created("inspection_rules/"+r.uuid, r.show(c, true)), nil
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
	r.conditions, _ = clone(body["conditions"]).([]any)
	r.actions, _ = clone(body["actions"]).([]any)
}

// checkRule refuses a rule in Ironic's order. It adds to actions on plugin data the argument that Ironic adds.
func checkRule(name string, body map[string]any) error {
	rules := schema{name: name, members: ruleMembers, required: []string{"actions"}}
	if err := rules.check(body); err != nil {
		return err
	}
	conditions, _ := body["conditions"].([]any)
	actions, _ := body["actions"].([]any)
	if len(actions) == 0 {
		return rules.fault("[] should be non-empty")
	}
	if err := checkOps(rules, actions, ruleActions, false); err != nil {
		return err
	}
	if err := checkOps(rules, conditions, ruleConditions, true); err != nil {
		return err
	}
	var complaints []string
	if phase, given := body["phase"]; given && phase != "main" {
		complaints = append(complaints, "Invalid phase: "+pyText(phase)+". Valid phases are: main")
	}
	if priority, _ := body["priority"].(float64); priority > 9999 {
		complaints = append(complaints, "Priority must be between 0 and 9999 for user-defined rules.")
	}
	for _, check := range []struct {
		list  []any
		known []ruleArguments
	}{{conditions, ruleConditions}, {actions, ruleActions}} {
		for _, item := range check.list {
			if err := checkRuleArguments(object(item), check.known); err != nil {
				return err
			}
		}
	}
	switch len(complaints) {
	case 0:
		return nil
	case 1:
		return fault(http.StatusBadRequest, "%s", complaints[0])
	}
	return fault(http.StatusBadRequest, "Multiple validation errors occurred: %s", strings.Join(complaints, "; "))
}

func checkOps(rules schema, list []any, known []ruleArguments, negatable bool) error {
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
		o := object(item)
		for _, key := range []string{"op", "args"} {
			if _, given := o[key]; !given {
				return rules.fault("%s is a required property", pyRepr(key))
			}
		}
		if !slices.Contains(names, o["op"]) {
			return rules.fault("%s is not one of %s", pyRepr(o["op"]), pyRepr(names))
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
	op := strings.TrimPrefix(text(o["op"]), "!")
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
	for _, key := range sortedKeys(args) {
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
		return fault(http.StatusInternalServerError, "%s", strings.Join(complaints, "; "))
	}
	return nil
}

func (l *ruleList) patch(c *call, r *inspectionRule) (reply, error) {
	ops, err := c.patch()
	if err != nil {
		return reply{}, err
	}
	for _, value := range patchValues(ops, "/sensitive") {
		if set, _ := value.(bool); !set && r.sensitive {
			all := make([]string, len(ops))
			for i, op := range ops {
				all[i] = op.String()
			}
			return reply{}, fault(http.StatusBadRequest, "Couldn't apply patch '[%s]'. Reason: Inspection rules cannot have the sensitive flag unset.", strings.Join(all, ", "))
		}
	}
	document := map[string]any{
		"description": r.description, "priority": r.priority, "phase": r.phase, "sensitive": r.sensitive, "conditions": clone(r.conditions), "actions": clone(r.actions),
	}
	if err := applyPatch(document, ops); err != nil {
		return reply{}, err
	}
	if err := checkRule("patch", document); err != nil {
		return reply{}, err
	}
	r.set(document)
	r.updatedAt = timestamp(c.now)
	return ok(http.StatusOK, r.show(c, true)), nil
}
