// Package procedure answers requests about what Ironic knows to do with any node: deploy templates, runbooks and inspection rules.
package procedure

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
)

// The first minor versions of runbooks, and of their traits, descriptions and free names.
const (
	RunbookMinor       = 92
	RunbookTraitsMinor = 112
)

// Procedure is a deploy template or a runbook.
type Procedure struct {
	uuid, Name           string
	Steps                []any
	extra                map[string]any
	createdAt, updatedAt string

	// Only runbooks have the following fields.
	description            any
	Owner                  any
	Public, DisableRamdisk bool
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
	DeployTemplates = procedureKind{"deploy_templates", "template", "deploy template", "template_ident", "priority", 55}
	Runbooks        = procedureKind{"runbooks", "runbook", "runbook", "runbook_ident", "order", RunbookMinor}
)

func (k procedureKind) isRunbook() bool { return k.schema == "runbook" }

// List are the procedures of one kind, in the order of their creation.
type List struct{ All []*Procedure }

// Find returns the procedure with that UUID or name, or nil.
func (l *List) Find(ref string) *Procedure {
	for _, p := range l.All {
		if p.uuid == ref || p.Name == ref {
			return p
		}
	}
	return nil
}

// Route answers /v1/deploy_templates and /v1/runbooks.
func (l *List) Route(c *api.Call, k procedureKind) (api.Reply, error) {
	if k.isRunbook() && c.Newest < k.since {
		return api.Reply{}, api.RouterFault(http.StatusNotFound, "")
	}
	if c.Minor < k.since {
		status := http.StatusMethodNotAllowed
		if c.Method == http.MethodGet {
			status = http.StatusNotFound
		}
		return api.Reply{}, api.RouterFault(status, "The API version does not allow %ss", k.noun)
	}
	if len(c.Path) == 1 {
		switch c.Method {
		case http.MethodGet:
			return l.show(c, k)
		case http.MethodPost:
			return l.create(c, k)
		case http.MethodPatch, http.MethodDelete:
			return api.Reply{}, api.Fault(http.StatusBadRequest, "Missing mandatory parameter: %s", k.argument)
		}
		return api.Reply{}, api.MethodNotAllowed("DELETE, GET, PATCH, POST")
	}
	ref := c.Path[1]
	if !api.IsUUID(ref) && !api.ValidName(ref) {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Expected UUID or name for %s: %s", k.argument, ref)
	}
	p := l.Find(ref)
	if p == nil {
		return api.Reply{}, api.Fault(http.StatusNotFound, "%s could not be found.", strings.ToUpper(k.noun[:1])+k.noun[1:]+" "+ref)
	}
	if len(c.Path) > 2 {
		return routeRunbookTraits(c, k, p)
	}
	switch c.Method {
	case http.MethodGet:
		if err := c.Accept("fields"); err != nil {
			return api.Reply{}, err
		}
		fields, err := c.Fields()
		if err != nil {
			return api.Reply{}, err
		}
		shown, err := p.show(c, k).Select(fields)
		return api.OK(http.StatusOK, shown), err
	case http.MethodPatch:
		return l.patch(c, k, p)
	case http.MethodDelete:
		l.All = slices.DeleteFunc(l.All, func(other *Procedure) bool { return other == p })
		return api.Done(http.StatusNoContent), nil
	}
	return api.Reply{}, api.MethodNotAllowed("DELETE, GET, PATCH")
}

// show returns the fields of a procedure.
func (p *Procedure) show(c *api.Call, k procedureKind) api.Ordered {
	links := api.Member{"links", c.Links(k.collection + "/" + p.uuid)}
	out := api.Ordered{
		{"uuid", p.uuid},
		{"created_at", api.Coarse(p.createdAt)},
		{"updated_at", api.Coarse(api.OrNull(p.updatedAt))},
		{"name", p.Name},
		{"extra", p.extra},
	}
	if k.isRunbook() {
		out = append(out, api.Member{"public", p.Public}, api.Member{"owner", p.Owner}, api.Member{"disable_ramdisk", p.DisableRamdisk})
		if c.Minor >= RunbookTraitsMinor {
			out = append(out, api.Member{"description", p.description})
		}
	}
	steps := make([]any, 0, len(p.Steps))
	for _, item := range p.Steps {
		step := api.Object(item)
		steps = append(steps, api.Ordered{
			{"interface", step["interface"]},
			{"step", step["step"]},
			{"args", api.Mask(api.Object(step["args"]), c.Legacy())},
			{k.ordering, step[k.ordering]},
		})
	}
	out = append(out, links, api.Member{"steps", steps})
	if k.isRunbook() && c.Minor >= RunbookTraitsMinor {
		out = append(out, api.Member{"traits", append([]string{}, p.traits...)})
	}
	return out
}

func (l *List) show(c *api.Call, k procedureKind) (api.Reply, error) {
	if err := c.Accept("detail", "fields", "limit", "marker", "sort_key", "sort_dir", "project"); err != nil {
		return api.Reply{}, err
	}
	fields, err := c.Fields("uuid", "name")
	if err != nil {
		return api.Reply{}, err
	}
	return api.Listing[*Procedure]{
		Key: k.collection, Noun: k.noun, Fields: fields,
		ID:    func(p *Procedure) string { return p.uuid },
		Known: func(id string) bool { return l.Find(id) != nil },
		Show:  func(p *Procedure) (any, error) { return p.show(c, k).Select(fields) },
	}.Reply(c, l.All)
}

// members are those that a request may have.
func (k procedureKind) members(c *api.Call) map[string]api.Kind {
	members := map[string]api.Kind{
		"uuid": api.TextKind, "name": api.StringKind, "steps": {Types: []string{"array"}},
		"extra": api.ObjectKind,
	}
	if k.isRunbook() {
		flag := api.Kind{Types: []string{"boolean", "null"}}
		members["public"], members["disable_ramdisk"], members["owner"] = flag, flag, api.TextKind
	}
	if !k.isRunbook() || c.Minor >= RunbookTraitsMinor {
		members["description"] = api.Kind{Types: api.TextKind.Types, MaxLength: 255}
	}
	return members
}

// checkProcedure refuses a procedure in Ironic's order. strictName demands that the name is a trait.
func checkProcedure(c *api.Call, k procedureKind, name string, body map[string]any, strictName bool) error {
	rules := api.Schema{Name: name, Members: k.members(c), Required: []string{"steps", "name"}}
	if err := rules.Check(body); err != nil {
		return err
	}
	if uuid := body["uuid"]; uuid != nil && !api.IsUUID(api.Text(uuid)) {
		return api.Fault(http.StatusBadRequest, "Expected UUID for uuid: %s", api.Text(uuid))
	}
	if strictName {
		if err := api.CheckTrait(name, api.Text(body["name"])); err != nil {
			return err
		}
	} else if !api.ValidName(api.Text(body["name"])) {
		return rules.Fault("%s does not match '^[A-Za-z0-9\\\\-._~]+$'", api.PyRepr(body["name"]))
	}
	steps, _ := body["steps"].([]any)
	if len(steps) == 0 && c.Legacy() {
		return rules.Fault("[] is too short")
	} else if len(steps) == 0 {
		return rules.Fault("[] should be non-empty")
	}
	seen := map[string]bool{}
	for _, item := range steps {
		if err := checkProcedureStep(c, k, rules, api.Object(item)); err != nil {
			return err
		}
		kind, step := api.StepName(api.Object(item))
		if seen[kind+" "+step] {
			what := "A template"
			if c.Legacy() {
				what = "A deploy template"
			}
			return api.Fault(http.StatusBadRequest, "Deploy template invalid: Duplicate deploy steps. %s cannot have multiple deploy "+
				"steps with the same interface and step. Duplicates: interface: %s, step: %s.", what, kind, step)
		}
		seen[kind+" "+step] = true
	}
	return nil
}

func checkProcedureStep(c *api.Call, k procedureKind, rules api.Schema, step map[string]any) error {
	for _, key := range api.SortedKeys(step) {
		if !slices.Contains([]string{"interface", "step", "args", k.ordering}, key) {
			return rules.Fault("Additional properties are not allowed (%s was unexpected)", api.PyRepr(key))
		}
	}
	required := []string{"interface", "step", "args", k.ordering}
	if k.isRunbook() {
		required = []string{"interface", "step", k.ordering}
	}
	for _, key := range required {
		if _, given := step[key]; !given {
			return rules.Fault("%s is a required property", api.PyRepr(key))
		}
	}
	kinds := []any{"power", "management", "deploy", "bios", "raid"}
	if !c.Legacy() {
		kinds = []any{"vendor", "power", "management", "firmware", "deploy", "bios", "raid"}
	}
	if !slices.Contains(kinds, step["interface"]) {
		return rules.Fault("%s is not one of %s", api.PyRepr(step["interface"]), api.PyRepr(kinds))
	}
	return nil
}

func (l *List) create(c *api.Call, k procedureKind) (api.Reply, error) {
	body, err := c.Object(k.schema)
	if err != nil {
		return api.Reply{}, err
	}
	if err := checkProcedure(c, k, k.schema, body, !k.isRunbook() || c.Minor < RunbookTraitsMinor); err != nil {
		return api.Reply{}, err
	}
	p := &Procedure{uuid: api.Text(body["uuid"]), traits: []string{}, createdAt: api.Timestamp(c.Now)}
	if p.uuid == "" {
		p.uuid = api.NewUUID()
	}
	if k.isRunbook() && body["owner"] != nil && !c.IsSystem() && (c.Caller == nil || api.Text(body["owner"]) != c.Project()) {
		return api.Reply{}, api.Fault(http.StatusBadRequest, "Cannot create a runbook as a project scoped admin with an owner other than "+
			"your own project.")
	}
	if k.isRunbook() && c.Caller != nil && !c.IsSystem() { // it owns what it creates
		body["owner"] = c.Project()
	}
	if l.Find(p.uuid) != nil {
		return api.Reply{}, api.Fault(http.StatusConflict, "A %s with UUID %s already exists.", k.noun, p.uuid)
	}
	if l.Find(api.Text(body["name"])) != nil {
		return api.Reply{}, api.Fault(http.StatusConflict, "A %s with name %s already exists.", k.noun, api.Text(body["name"]))
	}
	p.set(body)
	l.All = append(l.All, p)
	return c.Created(k.collection+"/"+p.uuid, p.show(c, k)), nil
}

// set copies the members of a checked document.
func (p *Procedure) set(body map[string]any) {
	p.Name, p.description, p.Owner = api.Text(body["name"]), body["description"], body["owner"]
	p.Steps, _ = api.Clone(body["steps"]).([]any)
	p.Public, _ = body["public"].(bool)
	p.DisableRamdisk, _ = body["disable_ramdisk"].(bool)
	p.extra = map[string]any{}
	if extra := api.Object(body["extra"]); extra != nil {
		p.extra = extra
	}
}

func (l *List) patch(c *api.Call, k procedureKind, p *Procedure) (api.Reply, error) {
	ops, err := c.Patch()
	if err != nil {
		return api.Reply{}, err
	}
	allowed := []string{"extra", "name", "steps", "description"}
	if k.isRunbook() {
		allowed = []string{"disable_ramdisk", "extra", "name", "owner", "public", "steps"}
		if c.Minor >= RunbookTraitsMinor {
			allowed = append(allowed, "description")
		}
	}
	if err := api.CheckPatchable(ops, allowed); err != nil {
		return api.Reply{}, err
	}
	document := map[string]any{"name": p.Name, "extra": api.Clone(p.extra), "steps": api.Clone(p.Steps)}
	if k.isRunbook() {
		document["public"], document["disable_ramdisk"], document["owner"], document["description"] = p.Public, p.DisableRamdisk,
			p.Owner, p.description
	}
	if err := checkRunbookOwner(p, ops); err != nil {
		return api.Reply{}, err
	}
	if len(api.PatchValues(ops, "/public")) > 0 {
		document["owner"] = nil
	}
	for _, op := range ops {
		if _, has := document[op.Field()]; !has {
			return api.Reply{}, api.Fault(http.StatusBadRequest, "Adding a new attribute (%s) to the root of the resource is not allowed",
				op.Path)
		}
	}
	if err := api.ApplyPatch(document, ops); err != nil {
		return api.Reply{}, err
	}
	check := *c
	check.Minor = max(c.Minor, RunbookTraitsMinor)
	if err := checkProcedure(&check, k, "patch", document, !k.isRunbook()); err != nil {
		return api.Reply{}, err
	}
	if other := l.Find(api.Text(document["name"])); other != nil && other != p {
		return api.Reply{}, api.Fault(http.StatusConflict, "A %s with name %s already exists.", k.noun, api.Text(document["name"]))
	}
	before := p.Steps
	p.set(document)
	p.Steps = stored(before, p.Steps, k)
	p.updatedAt = api.Timestamp(c.Now)
	return api.OK(http.StatusOK, p.show(c, k)), nil
}

// checkRunbookOwner refuses an owner for a public runbook.
func checkRunbookOwner(p *Procedure, ops []api.PatchOp) error {
	public := p.Public
	for _, value := range api.PatchValues(ops, "/public") {
		public, _ = value.(bool)
	}
	if len(api.PatchValues(ops, "/owner")) == 0 || !public {
		return nil
	}
	all := make([]string, len(ops))
	for i, op := range ops {
		all[i] = fmt.Sprint(op)
	}
	return api.Fault(http.StatusBadRequest, "Couldn't apply patch '[%s]'. Reason: There cannot be an owner for a public runbook",
		strings.Join(all, ", "))
}

// routeRunbookTraits answers /v1/runbooks/{runbook}/traits.
func routeRunbookTraits(c *api.Call, k procedureKind, p *Procedure) (api.Reply, error) {
	switch {
	case !k.isRunbook() || c.Path[2] != "traits" || len(c.Path) > 3:
		return api.Reply{}, api.RouterFault(http.StatusNotFound, "")
	case c.Minor < RunbookTraitsMinor:
		return api.Reply{}, api.RouterFault(http.StatusNotFound, "The API version does not allow runbook traits")
	case c.Method == http.MethodGet:
		return api.OK(http.StatusOK, api.Ordered{{"traits", append([]string{}, p.traits...)}}), nil
	case c.Method != http.MethodPut:
		return api.Reply{}, api.MethodNotAllowed("DELETE, GET, PUT")
	}
	body, err := c.Object("body")
	if err != nil {
		return api.Reply{}, err
	}
	if err := (api.Schema{Name: "body", Members: map[string]api.Kind{"traits": {Types: []string{"array"}}}}).Check(body); err != nil {
		return api.Reply{}, err
	}
	for _, trait := range api.Texts(body["traits"]) {
		if err := api.CheckTrait("body", trait); err != nil {
			return api.Reply{}, err
		}
	}
	p.traits = append([]string{}, api.Texts(body["traits"])...)
	return api.Done(http.StatusNoContent), nil
}

// Approved refuses a runbook for a node that lacks its traits; has are the traits of the node.
func (p *Procedure) Approved(c *api.Call, node string, has []string) error {
	switch {
	case c.Minor < RunbookTraitsMinor && !slices.Contains(has, p.Name):
		return api.Fault(http.StatusBadRequest, "This runbook has not been approved for use on this node %s. Please ask an administrator "+
			"to add it to your node traits.", node)
	case c.Minor < RunbookTraitsMinor:
	case len(p.traits) == 0:
		return api.Fault(http.StatusBadRequest, "Runbook %s has no traits configured. Please ask an administrator to add traits to "+
			"the runbook.", p.uuid)
	case !slices.ContainsFunc(p.traits, func(trait string) bool { return slices.Contains(has, trait) }):
		return api.Fault(http.StatusBadRequest, "This runbook has not been approved for use on this node %s. The node does not have any "+
			"of the runbook's traits %s. Please ask an administrator to add a matching trait to your node.", node,
			api.PyRepr(api.Clone(slices.Sorted(slices.Values(p.traits)))))
	}
	return nil
}

// Mismatch returns why an automated cleaning of a node with these traits may not use a runbook; "" if it may.
func (p *Procedure) Mismatch(has []string) string {
	switch {
	case len(p.traits) == 0:
		return "Runbook has no traits configured."
	case !slices.ContainsFunc(p.traits, func(trait string) bool { return slices.Contains(has, trait) }):
		return "None of the runbook's traits " + api.PyRepr(api.Clone(slices.Sorted(slices.Values(p.traits)))) + " match a node trait."
	}
	return ""
}

// AsRequested returns the steps of a runbook as a request has them, in the order in which they are stored: order does not sort them.
func (p *Procedure) AsRequested() []any {
	steps := make([]any, 0, len(p.Steps))
	for _, item := range p.Steps {
		step := api.Object(item)
		steps = append(steps, map[string]any{"interface": step["interface"], "step": step["step"], "args": step["args"]})
	}
	return steps
}

// stored returns the steps as they are stored after a change: those that stay the same keep their places, and the others follow, sorted by
// interface and name.
func stored(before, after []any, k procedureKind) (steps []any) {
	key := func(item any) string {
		step := api.Object(item)
		args, _ := json.Marshal(step["args"])
		return fmt.Sprint(step["interface"], "\x00", step["step"], "\x00", string(args), "\x00", step[k.ordering])
	}
	wanted := map[string]any{}
	for _, item := range after {
		wanted[key(item)] = item
	}
	for _, item := range before {
		if kept, is := wanted[key(item)]; is {
			steps = append(steps, kept)
			delete(wanted, key(item))
		}
	}
	for _, added := range slices.Sorted(maps.Keys(wanted)) {
		steps = append(steps, wanted[added])
	}
	return steps
}
