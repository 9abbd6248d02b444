package fakeironic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// The first minor versions of runbooks, and of their traits, descriptions and free names.
const (
	runbookMinor       = 92
	runbookTraitsMinor = 112
)

// procedure is a deploy template or a runbook.
type procedure struct {
	uuid, name           string
	steps                []any
	extra                map[string]any
	createdAt, updatedAt string

	// Only runbooks have the following fields.
	description            any
	owner                  any
	public, disableRamdisk bool
	traits                 []string
}

// procedureKind describes how deploy templates and runbooks differ.
type procedureKind struct {
	collection, schema string
	noun               string // in messages
	argument           string // in messages: the name of the path's parameter
	ordering           string // the member of a step that has its order
	since              int
}

// The kinds of procedures.
var (
	deployTemplates = procedureKind{"deploy_templates", "template", "deploy template", "template_ident", "priority", 55}
	runbooks        = procedureKind{"runbooks", "runbook", "runbook", "runbook_ident", "order", runbookMinor}
)

func (k procedureKind) isRunbook() bool { return k.schema == "runbook" }

// procedureList are the procedures of one kind, in the order of their creation.
type procedureList struct{ all []*procedure }

// find returns the procedure with that UUID or name, or nil.
func (l *procedureList) find(ref string) *procedure {
	for _, p := range l.all {
		if p.uuid == ref || p.name == ref {
			return p
		}
	}
	return nil
}

// route answers /v1/deploy_templates and /v1/runbooks.
func (l *procedureList) route(c *call, k procedureKind) (reply, error) {
	if k.isRunbook() && c.newest < k.since {
		return reply{}, routerFault(http.StatusNotFound, "")
	}
	if c.minor < k.since {
		status := http.StatusMethodNotAllowed
		if c.method == http.MethodGet {
			status = http.StatusNotFound
		}
		return reply{}, routerFault(status, "The API version does not allow %ss", k.noun)
	}
	if len(c.path) == 1 {
		switch c.method {
		case http.MethodGet:
			return l.show(c, k)
		case http.MethodPost:
			return l.create(c, k)
		case http.MethodPatch, http.MethodDelete:
			return reply{}, fault(http.StatusBadRequest, "Missing mandatory parameter: %s", k.argument)
		}
		return reply{}, methodNotAllowed("DELETE, GET, PATCH, POST")
	}
	ref := c.path[1]
	if !isUUID(ref) && !validName(ref) {
		return reply{}, fault(http.StatusBadRequest, "Expected UUID or name for %s: %s", k.argument, ref)
	}
	p := l.find(ref)
	if p == nil {
		return reply{}, fault(http.StatusNotFound, "%s could not be found.", strings.ToUpper(k.noun[:1])+k.noun[1:]+" "+ref)
	}
	if len(c.path) > 2 {
		return routeRunbookTraits(c, k, p)
	}
	switch c.method {
	case http.MethodGet:
		return ok(http.StatusOK, p.show(c, k, true)), nil
	case http.MethodPatch:
		return l.patch(c, k, p)
	case http.MethodDelete:
		l.all = slices.DeleteFunc(l.all, func(other *procedure) bool { return other == p })
		return done(http.StatusNoContent), nil
	}
	return reply{}, methodNotAllowed("DELETE, GET, PATCH")
}

// show returns the fields of a procedure; without detail those of a list.
func (p *procedure) show(c *call, k procedureKind, detail bool) ordered {
	links := member{"links", c.links(k.collection + "/" + p.uuid)}
	if !detail {
		return ordered{{"uuid", p.uuid}, {"name", p.name}, links}
	}
	out := ordered{{"uuid", p.uuid}, {"created_at", coarse(p.createdAt)}, {"updated_at", coarse(orNull(p.updatedAt))}, {"name", p.name}, {"extra", p.extra}}
	if k.isRunbook() {
		out = append(out, member{"public", p.public}, member{"owner", p.owner}, member{"disable_ramdisk", p.disableRamdisk})
		if c.minor >= runbookTraitsMinor {
			out = append(out, member{"description", p.description})
		}
	}
	steps := make([]any, 0, len(p.steps))
	for _, item := range p.steps {
		step := object(item)
		steps = append(steps, ordered{
			{"interface", step["interface"]}, {"step", step["step"]}, {"args", mask(object(step["args"]), c.legacy())}, {k.ordering, step[k.ordering]},
		})
	}
	out = append(out, links, member{"steps", steps})
	if k.isRunbook() && c.minor >= runbookTraitsMinor {
		out = append(out, member{"traits", append([]string{}, p.traits...)})
	}
	return out
}

func (l *procedureList) show(c *call, k procedureKind) (reply, error) {
	if err := c.accept("detail", "fields", "limit", "marker", "sort_key", "sort_dir", "project"); err != nil {
		return reply{}, err
	}
	detail, _ := parseBool(c.query.Get("detail"))
	page, err := paged(c, nil, l.all, func(p *procedure) string { return p.uuid }, func(marker string) error {
		if l.find(marker) == nil {
			return fault(http.StatusNotFound, "%s %s could not be found.", k.noun, marker)
		}
		return nil
	})
	if err != nil {
		return reply{}, err
	}
	items := make([]json.RawMessage, len(page.items))
	for i, p := range page.items {
		items[i] = encode(p.show(c, k, detail))
	}
	return page.reply(k.collection, items), nil
}

// members are those that a request may have.
func (k procedureKind) members(c *call) map[string]kind {
	members := map[string]kind{"uuid": textKind, "name": stringKind, "steps": {types: []string{"array"}}, "extra": objectKind}
	if k.isRunbook() {
		flag := kind{types: []string{"boolean", "null"}}
		members["public"], members["disable_ramdisk"], members["owner"] = flag, flag, textKind
	}
	if !k.isRunbook() || c.minor >= runbookTraitsMinor {
		members["description"] = kind{types: textKind.types, maxLength: 255}
	}
	return members
}

// checkProcedure refuses a procedure in Ironic's order. strictName demands that the name is a trait.
func checkProcedure(c *call, k procedureKind, name string, body map[string]any, strictName bool) error {
	rules := schema{name: name, members: k.members(c), required: []string{"steps", "name"}}
	if err := rules.check(body); err != nil {
		return err
	}
	if strictName {
		if err := checkTrait(name, text(body["name"])); err != nil {
			return err
		}
	} else if !validName(text(body["name"])) {
		return rules.fault("%s does not match '^[A-Za-z0-9\\\\-._~]+$'", pyRepr(body["name"]))
	}
	steps, _ := body["steps"].([]any)
	if len(steps) == 0 && c.legacy() {
		return rules.fault("[] is too short")
	} else if len(steps) == 0 {
		return rules.fault("[] should be non-empty")
	}
	seen := map[string]bool{}
	for _, item := range steps {
		if err := checkProcedureStep(c, k, rules, object(item)); err != nil {
			return err
		}
		kind, step := stepName(object(item))
		if seen[kind+" "+step] {
			what := "A template"
			if c.legacy() {
				what = "A deploy template"
			}
			return fault(http.StatusBadRequest, "Deploy template invalid: Duplicate deploy steps. %s cannot have multiple deploy steps with the same interface and step. "+
				"Duplicates: interface: %s, step: %s.", what, kind, step)
		}
		seen[kind+" "+step] = true
	}
	return nil
}

func checkProcedureStep(c *call, k procedureKind, rules schema, step map[string]any) error {
	for _, key := range sortedKeys(step) {
		if !slices.Contains([]string{"interface", "step", "args", k.ordering}, key) {
			return rules.fault("Additional properties are not allowed (%s was unexpected)", pyRepr(key))
		}
	}
	required := []string{"interface", "step", "args", k.ordering}
	if k.isRunbook() {
		required = []string{"interface", "step", k.ordering}
	}
	for _, key := range required {
		if _, given := step[key]; !given {
			return rules.fault("%s is a required property", pyRepr(key))
		}
	}
	kinds := []any{"power", "management", "deploy", "bios", "raid"}
	if !c.legacy() {
		kinds = []any{"vendor", "power", "management", "firmware", "deploy", "bios", "raid"}
	}
	if !slices.Contains(kinds, step["interface"]) {
		return rules.fault("%s is not one of %s", pyRepr(step["interface"]), pyRepr(kinds))
	}
	return nil
}

func (l *procedureList) create(c *call, k procedureKind) (reply, error) {
	body, err := c.object(k.schema)
	if err != nil {
		return reply{}, err
	}
	if err := checkProcedure(c, k, k.schema, body, !k.isRunbook() || c.minor < runbookTraitsMinor); err != nil {
		return reply{}, err
	}
	p := &procedure{uuid: text(body["uuid"]), traits: []string{}, createdAt: timestamp(c.now)}
	if p.uuid == "" {
		p.uuid = newUUID()
	}
	if k.isRunbook() && body["owner"] != nil && !c.isSystem() && (c.caller == nil || text(body["owner"]) != c.project()) {
		return reply{}, fault(http.StatusBadRequest, "Cannot create a runbook as a project scoped admin with an owner other than your own project.")
	}
	if k.isRunbook() && c.caller != nil && !c.isSystem() { // it owns what it creates
		body["owner"] = c.project()
	}
	if l.find(p.uuid) != nil {
		return reply{}, fault(http.StatusConflict, "A %s with UUID %s already exists.", k.noun, p.uuid)
	}
	if l.find(text(body["name"])) != nil {
		return reply{}, fault(http.StatusConflict, "A %s with name %s already exists.", k.noun, text(body["name"]))
	}
	p.set(body)
	l.all = append(l.all, p)
	return c.created(k.collection+"/"+p.uuid, p.show(c, k, true)), nil
}

// set copies the members of a checked document.
func (p *procedure) set(body map[string]any) {
	p.name, p.description, p.owner = text(body["name"]), body["description"], body["owner"]
	p.steps, _ = clone(body["steps"]).([]any)
	p.public, _ = body["public"].(bool)
	p.disableRamdisk, _ = body["disable_ramdisk"].(bool)
	p.extra = map[string]any{}
	if extra := object(body["extra"]); extra != nil {
		p.extra = extra
	}
}

func (l *procedureList) patch(c *call, k procedureKind, p *procedure) (reply, error) {
	ops, err := c.patch()
	if err != nil {
		return reply{}, err
	}
	allowed := []string{"extra", "name", "steps", "description"}
	if k.isRunbook() {
		allowed = []string{"disable_ramdisk", "extra", "name", "owner", "public", "steps"}
		if c.minor >= runbookTraitsMinor {
			allowed = append(allowed, "description")
		}
	}
	if err := checkPatchable(ops, allowed); err != nil {
		return reply{}, err
	}
	document := map[string]any{"name": p.name, "extra": clone(p.extra), "steps": clone(p.steps)}
	if k.isRunbook() {
		document["public"], document["disable_ramdisk"], document["owner"], document["description"] = p.public, p.disableRamdisk, p.owner, p.description
	}
	if err := checkRunbookOwner(p, ops); err != nil {
		return reply{}, err
	}
	if len(patchValues(ops, "/public")) > 0 {
		document["owner"] = nil
	}
	for _, op := range ops {
		if _, has := document[op.field()]; !has {
			return reply{}, fault(http.StatusBadRequest, "Adding a new attribute (%s) to the root of the resource is not allowed", op.path)
		}
	}
	if err := applyPatch(document, ops); err != nil {
		return reply{}, err
	}
	check := *c
	check.minor = max(c.minor, runbookTraitsMinor)
	if err := checkProcedure(&check, k, "patch", document, !k.isRunbook()); err != nil {
		return reply{}, err
	}
	if other := l.find(text(document["name"])); other != nil && other != p {
		return reply{}, fault(http.StatusConflict, "A %s with name %s already exists.", k.noun, text(document["name"]))
	}
	p.set(document)
	p.updatedAt = timestamp(c.now)
	return ok(http.StatusOK, p.show(c, k, true)), nil
}

// checkRunbookOwner refuses an owner for a public runbook.
func checkRunbookOwner(p *procedure, ops []patchOp) error {
	public := p.public
	for _, value := range patchValues(ops, "/public") {
		public, _ = value.(bool)
	}
	if len(patchValues(ops, "/owner")) == 0 || !public {
		return nil
	}
	all := make([]string, len(ops))
	for i, op := range ops {
		all[i] = fmt.Sprint(op)
	}
	return fault(http.StatusBadRequest, "Couldn't apply patch '[%s]'. Reason: There cannot be an owner for a public runbook", strings.Join(all, ", "))
}

// routeRunbookTraits answers /v1/runbooks/{runbook}/traits.
func routeRunbookTraits(c *call, k procedureKind, p *procedure) (reply, error) {
	switch {
	case !k.isRunbook() || c.path[2] != "traits" || len(c.path) > 3:
		return reply{}, routerFault(http.StatusNotFound, "")
	case c.minor < runbookTraitsMinor:
		return reply{}, routerFault(http.StatusNotFound, "The API version does not allow runbook traits")
	case c.method == http.MethodGet:
		return ok(http.StatusOK, ordered{{"traits", append([]string{}, p.traits...)}}), nil
	case c.method != http.MethodPut:
		return reply{}, methodNotAllowed("DELETE, GET, PUT")
	}
	body, err := c.object("body")
	if err != nil {
		return reply{}, err
	}
	if err := (schema{name: "body", members: map[string]kind{"traits": {types: []string{"array"}}}}).check(body); err != nil {
		return reply{}, err
	}
	for _, trait := range texts(body["traits"]) {
		if err := checkTrait("body", trait); err != nil {
			return reply{}, err
		}
	}
	p.traits = append([]string{}, texts(body["traits"])...)
	return done(http.StatusNoContent), nil
}

// takeRunbook replaces the steps of a request by those of its runbook.
func (s *Server) takeRunbook(c *call, n *node, request *provisionRequest) error {
	if request.runbook == "" {
		return nil
	}
	if c.minor < runbookMinor {
		return notAcceptable()
	}
	p := s.runbooks.find(request.runbook)
	if p == nil {
		return fault(http.StatusNotFound, "Runbook %s could not be found.", request.runbook)
	}
	if err := p.approved(c, n.str("uuid"), n.traits()); err != nil {
		return err
	}
	steps := p.inOrder()
	given := request.cleanSteps
	if request.target == verbService {
		given = request.serviceSteps
	}
	switch {
	case len(given) > 0:
		return fault(http.StatusBadRequest, "Please provide either \"%s_steps\" or a runbook, but not both.", request.target)
	case request.target == verbClean:
		request.cleanSteps = steps
	case request.target == verbService:
		request.serviceSteps = steps
	}
	request.noRamdisk = p.disableRamdisk
	return nil
}

// approved refuses a runbook for a node that lacks its traits; has are the traits of the node.
func (p *procedure) approved(c *call, node string, has []string) error {
	switch {
	case c.minor < runbookTraitsMinor && !slices.Contains(has, p.name):
		return fault(http.StatusBadRequest, "This runbook has not been approved for use on this node %s. Please ask an administrator to add it to your node traits.", node)
	case c.minor < runbookTraitsMinor:
	case len(p.traits) == 0:
		return fault(http.StatusBadRequest, "Runbook %s has no traits configured. Please ask an administrator to add traits to the runbook.", p.uuid)
	case !slices.ContainsFunc(p.traits, func(trait string) bool { return slices.Contains(has, trait) }):
		return fault(http.StatusBadRequest, "This runbook has not been approved for use on this node %s. The node does not have any of the runbook's traits %s. "+
			"Please ask an administrator to add a matching trait to your node.", node, pyRepr(clone(slices.Sorted(slices.Values(p.traits)))))
	}
	return nil
}

// inOrder returns the steps of a runbook as a request has them.
func (p *procedure) inOrder() []any {
	steps := slices.SortedStableFunc(slices.Values(p.steps), func(a, b any) int {
		first, _ := object(a)["order"].(float64)
		second, _ := object(b)["order"].(float64)
		return cmp.Compare(first, second)
	})
	for i, item := range steps {
		step := object(item)
		steps[i] = map[string]any{"interface": step["interface"], "step": step["step"], "args": step["args"]}
	}
	return steps
}
