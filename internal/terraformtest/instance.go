package terraformtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
)

// planRemoval refreshes an instance, and plans its destruction.
func (r *run) planRemoval(p *plan, at address) bool {
	block := r.c.resources[at.resource]
	provider, kind := r.w.kind(kindName(at.resource))
	if r.server(provider) == nil {
		return false
	}
	i, ok := r.refresh(at, block, provider, kind, r.prior.get(at), r.options.refresh)
	if r.now.set(at, i); !ok || i == nil || r.options.refreshOnly {
		return ok
	}
	if block != nil && block.preventDestroy {
		r.cannotDestroy(at)
		return false
	}
	c := &change{at: at, kind: kind, before: i, action: remove, planned: kind.Null()}
	if _, ok := r.ask(c, block, provider, i, kind.Null()); !ok {
		return false
	}
	p.add(c)
	return true
}

func (r *run) cannotDestroy(at address) {
	r.add(diagnostic{isError: true, summary: "Instance cannot be destroyed", detail: fmt.Sprintf("Resource %s has lifecycle.prevent_destroy set, but the plan calls for this resource to be destroyed. "+
		"To avoid this error and continue with the plan, either disable lifecycle.prevent_destroy or reduce the scope of the plan using the -target option.", at)})
}

// planRead reads a data source, or plans that if its configuration is not known yet.
func (r *run) planRead(p *plan, at address, block *resource, each cty.Value) bool {
	value, _, ok := r.validateInstance(block, at, each)
	if !ok {
		return false
	}
	waits := !value.IsWhollyKnown() || slices.ContainsFunc(p.sorted(), func(c *change) bool { return c.action != noOp && slices.Contains(block.awaits, c.at.resource) })
	if waits {
		planned := map[string]cty.Value{}
		for _, a := range block.kind.Attributes {
			if planned[a.Name] = value.GetAttr(a.Name); a.Computed && planned[a.Name].IsNull() {
				planned[a.Name] = cty.UnknownVal(planned[a.Name].Type())
			}
		}
		p.add(&change{at: at, kind: block.kind, action: read, planned: cty.ObjectVal(planned)})
		r.setValue(at, cty.ObjectVal(planned))
		return true
	}
	made, ok := r.readData(at, block, value)
	if ok {
		p.mu.Lock()
		p.data[at] = made
		p.mu.Unlock()
		r.setValue(at, made)
	}
	return ok
}

// readData reads a data source.
func (r *run) readData(at address, block *resource, config cty.Value) (cty.Value, bool) {
	r.output.say("%s: Reading...", at)
	resp, ok := call(r, at, block, r.server(block.provider).ReadDataSource, &tfprotov6.ReadDataSourceRequest{TypeName: block.kind.name, Config: block.kind.Encode(config)})
	if !ok {
		return cty.NilVal, false
	}
	value, err := block.kind.Decode(resp.State)
	switch {
	case err != nil:
		return cty.NilVal, r.broken(at, "Provider produced invalid object", err.Error())
	case value.IsNull() || !value.IsWhollyKnown():
		return cty.NilVal, r.broken(at, "Provider produced invalid object", "The data source is null, or not wholly known.")
	}
	r.output.say("%s: Read complete after 0s%s", at, idOf(value))
	return value, true
}

// planInstance imports or refreshes an instance, and plans it.
func (r *run) planInstance(p *plan, at address, block *resource, each cty.Value, importID string) bool {
	if r.server(block.provider) == nil {
		return false
	}
	i := r.prior.get(at)
	var ok bool
	if i == nil && importID != "" && !r.options.preDestroy {
		i, ok = r.importOne(at, block, importID)
	} else {
		importID = ""
		i, ok = r.refresh(at, block, block.provider, block.kind, i, r.options.refresh)
	}
	if !ok {
		return false
	}
	if i != nil {
		i = i.dependingOn(r.c.dependencies(block))
	}
	if r.now.set(at, i); importID != "" {
		r.now.set(at, nil) // it gets into state by the apply
	}
	if r.options.refreshOnly {
		if i != nil {
			r.setValue(at, i.Value)
		}
		return true
	}
	value, secrets, ok := r.validateInstance(block, at, each)
	if !ok {
		return false
	}
	c := &change{
		at: at, kind: block.kind, before: i, importing: importID, secrets: secrets, isConfigured: true,
		told: slices.Contains(r.options.replace, at.String()), tainted: i != nil && i.Tainted,
	}
	if !r.decide(c, block, value) {
		return false
	}
	if c.action == replace && block.preventDestroy {
		r.cannotDestroy(at)
		return false
	}
	p.add(c)
	r.setValue(at, c.planned)
	return true
}

// decide finds what a change does.
func (r *run) decide(c *change, block *resource, value cty.Value) bool {
	from := c.before
	if c.tainted {
		from = nil
	}
	resp, ok := r.ask(c, block, block.provider, from, value)
	if !ok {
		return false
	}
	if from != nil {
		for _, path := range resp.RequiresReplace {
			if to := ctyPath(path); !sameAt(to, from.Value, c.planned) {
				c.mustReplace = append(c.mustReplace, to)
			}
		}
	}
	switch {
	case from == nil && c.tainted:
		c.action = replace
	case from == nil:
		c.action = create
	case len(c.mustReplace) > 0 || c.told:
		c.action = replace
		_, ok = r.ask(c, block, block.provider, &Instance{Value: c.kind.Null(), Private: resp.PlannedPrivate}, value)
	case c.planned.RawEquals(from.Value):
		c.action = noOp
	default:
		c.action = update
	}
	return ok
}

// ctyPath converts a path.
func ctyPath(from *tftypes.AttributePath) (path cty.Path) {
	for _, step := range from.Steps() {
		switch step := step.(type) {
		case tftypes.AttributeName:
			path = path.GetAttr(string(step))
		case tftypes.ElementKeyString:
			path = path.IndexString(string(step))
		case tftypes.ElementKeyInt:
			path = path.IndexInt(int(step))
		}
	}
	return path
}

// sameAt reports whether two objects are the same at a path.
func sameAt(path cty.Path, a, b cty.Value) bool {
	before, err := path.Apply(a)
	after, wrong := path.Apply(b)
	if err != nil || wrong != nil {
		return err != nil && wrong != nil
	}
	return after.IsKnown() && before.RawEquals(after)
}

// ask asks the provider for a plan, and checks it. prior is nil for a creation; config is null for a destruction.
func (r *run) ask(c *change, block *resource, provider *Provider, prior *Instance, config cty.Value) (*tfprotov6.PlanResourceChangeResponse, bool) {
	of := c.kind
	if prior == nil {
		prior = &Instance{Value: of.Null()}
	}
	next := config
	if !config.IsNull() {
		next = Proposed(of.Attributes, prior.Value, config)
	}
	resp, ok := call(r, c.at, block, r.server(provider).PlanResourceChange, &tfprotov6.PlanResourceChangeRequest{
		TypeName: of.name, Config: of.Encode(config), PriorState: of.Encode(prior.Value), ProposedNewState: of.Encode(next), PriorPrivate: prior.Private, PriorIdentity: prior.Identity,
		ClientCapabilities: &tfprotov6.PlanResourceChangeClientCapabilities{},
	})
	if !ok {
		return nil, false
	}
	planned, err := of.Decode(resp.PlannedState)
	if err != nil {
		return nil, r.broken(c.at, "Provider produced invalid plan", err.Error())
	}
	c.planned, c.private, c.identity = planned, resp.PlannedPrivate, resp.PlannedIdentity
	if config.IsNull() != planned.IsNull() {
		return nil, r.broken(c.at, "Provider produced invalid plan", fmt.Sprintf("Provider planned %s for the configuration %s.", Show(planned), Show(config)))
	}
	if !config.IsNull() {
		if text := InvalidPlan(c.at.String(), of.Attributes, prior.Value, config, planned); text != "" {
			return nil, r.broken(c.at, "Provider produced invalid plan", text)
		}
	}
	return resp, true
}

func idOf(value cty.Value) string {
	if value.Type().IsObjectType() && value.Type().HasAttribute("id") {
		if id := attributeOf(value, "id"); id.IsKnown() && !id.IsNull() && id.Type() == cty.String {
			return " [id=" + strings.TrimSpace(id.AsString()) + "]"
		}
	}
	return ""
}
