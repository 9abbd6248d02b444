package terraformtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
)

// planRemoval refreshes an instance, and plans its destruction.
func (r *run) planRemoval(p *plan, at address) bool {
	block := r.c.resources[at.resource]
	provider, kind := r.w.Providers.kind(kindName(at.resource))
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

// validate checks a configuration, as the beginning of all commands that use it.
func (w *Workspace) validate(ctx context.Context, c *config, variables map[string]cty.Value, o options, d *diagnostics) {
	unknown := map[string]cty.Value{}
	for name := range variables {
		unknown[name] = cty.UnknownVal(c.variables[name].kind)
	}
	r := w.newRun(ctx, c, unknown, o, d, &transcript{}, &state{}, time.Now())
	r.validating = true
	defer r.close()
	for name := range c.providers {
		p := w.Providers.named(name)
		value, body, at, ok := r.providerConfig(p)
		if !ok {
			continue
		}
		resp, err := r.server(p).ValidateProviderConfig(ctx, &tfprotov6.ValidateProviderConfigRequest{Config: p.Block().Encode(value)})
		if err != nil {
			r.fail("Plugin error", "%v", err)
			continue
		}
		r.addProvider(providerAddress(p), body, at, resp.Diagnostics)
	}
	for _, name := range slices.Sorted(maps.Keys(c.resources)) {
		block := c.resources[name]
		for _, e := range []hcl.Expression{block.count, block.forEach} {
			if e != nil {
				_, problems := r.expression(e)
				r.addHCL(block.address, problems)
			}
		}
		for _, on := range block.dependsOn {
			if c.resources[on] == nil {
				r.fail("Reference to undeclared resource", "%s depends on %q, which has not been declared in the root module.", block.address, on)
			}
		}
		r.validateInstance(block, address{resource: block.address}, cty.NilVal)
	}
	for _, o := range c.outputs {
		_, problems := r.expression(o.value)
		r.addHCL("", problems)
	}
}

// validateInstance evaluates and checks a configuration. The value has no marks any more; secrets are its sensitive parts.
func (r *run) validateInstance(block *resource, at address, each cty.Value) (value cty.Value, secrets []cty.Path, ok bool) {
	marked, ok := r.evaluate(block.kind, block.body, at, each, at.String())
	if !ok {
		return cty.NilVal, nil, false
	}
	value, marks := marked.UnmarkDeepWithPaths()
	for _, one := range marks {
		first, _ := one.Path[0].(cty.GetAttrStep)
		if _, is := one.Marks[ephemeral]; is && !isWriteOnly(block.kind, one.Path) {
			r.add(diagnostic{
				isError: true, summary: "Invalid use of ephemeral value", address: at.String(), subject: &block.at,
				detail: fmt.Sprintf("Ephemeral values are not valid for %q, because it is not a write-only attribute and must be persisted to state.", first.Name),
			})
			return cty.NilVal, nil, false
		}
		if _, is := one.Marks[sensitive]; is {
			secrets = append(secrets, one.Path)
		}
	}
	server := r.server(block.provider)
	if server == nil {
		return cty.NilVal, nil, false
	}
	if block.kind.isData {
		_, ok = call(r, at, block, server.ValidateDataResourceConfig, &tfprotov6.ValidateDataResourceConfigRequest{TypeName: block.kind.name, Config: block.kind.Encode(value)})
		return value, secrets, ok
	}
	_, ok = call(r, at, block, server.ValidateResourceConfig, &tfprotov6.ValidateResourceConfigRequest{
		TypeName: block.kind.name, Config: block.kind.Encode(value),
		ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
	})
	return value, secrets, ok
}

// isWriteOnly reports whether a path leads into a write-only attribute.
func isWriteOnly(of *Kind, path cty.Path) bool {
	attributes := of.Attributes
	for _, step := range path {
		name, is := step.(cty.GetAttrStep)
		if !is {
			continue
		}
		for _, a := range attributes {
			switch {
			case a.Name != name.Name:
			case a.WriteOnly:
				return true
			case a.NestedType != nil:
				attributes = a.NestedType.Attributes
			}
		}
	}
	return false
}
