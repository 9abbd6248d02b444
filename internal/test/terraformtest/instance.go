package terraformtest

import (
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/core"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/language"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/schema"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/state"
)

// planRemoval refreshes an instance, and plans its destruction.
func (r *run) planRemoval(p *plan, at state.Address) bool {
	block := r.c.Resources[at.Resource]
	provider, kind := r.w.Providers.Kind(state.KindName(at.Resource))
	if r.server(provider) == nil {
		return false
	}
	i, ok := r.refresh(at, block, provider, kind, r.prior.Get(at), r.options.refresh)
	if r.now.Set(at, i); !ok || i == nil || r.options.refreshOnly {
		return ok
	}
	if block != nil && block.PreventDestroy {
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

func (r *run) cannotDestroy(at state.Address) {
	r.Add(language.Diagnostic{
		IsError: true, Summary: "Instance cannot be destroyed",
		Detail: fmt.Sprintf("Resource %s has lifecycle.prevent_destroy set, but the plan calls for this resource to be destroyed. To "+
			"avoid this error and continue with the plan, either disable lifecycle.prevent_destroy or reduce the scope of the plan using "+
			"the -target option.", at),
	})
}

// planRead reads a data source, or plans that if its configuration is not known yet.
func (r *run) planRead(p *plan, at state.Address, block *language.Resource, each cty.Value) bool {
	value, _, ok := r.validateInstance(block, at, each)
	if !ok {
		return false
	}
	waits := !value.IsWhollyKnown() || slices.ContainsFunc(p.sorted(), func(c *change) bool {
		return c.action != noOp && slices.Contains(block.Awaits, c.at.Resource)
	})
	if waits {
		planned := map[string]cty.Value{}
		for _, a := range block.Kind.Attributes {
			if planned[a.Name] = value.GetAttr(a.Name); a.Computed && planned[a.Name].IsNull() {
				planned[a.Name] = cty.UnknownVal(planned[a.Name].Type())
			}
		}
		p.add(&change{at: at, kind: block.Kind, action: read, planned: cty.ObjectVal(planned)})
		r.setValue(at, cty.ObjectVal(planned))
		return true
	}
	made, ok := r.readData(at, block, value)
	ok = ok && r.holds(block, at, each, block.Kind.Marked(made))
	if ok {
		p.mu.Lock()
		p.data[at] = made
		p.mu.Unlock()
		r.setValue(at, made)
	}
	return ok
}

// planInstance imports or refreshes an instance, and plans it.
func (r *run) planInstance(p *plan, at state.Address, block *language.Resource, each cty.Value, importID string) bool {
	if r.server(block.Provider) == nil {
		return false
	}
	i := r.prior.Get(at)
	var ok bool
	if i == nil && importID != "" && !r.options.preDestroy {
		i, ok = r.importOne(at, block, importID)
	} else {
		importID = ""
		i, ok = r.refresh(at, block, block.Provider, block.Kind, i, r.options.refresh)
	}
	if !ok {
		return false
	}
	if i != nil {
		i = i.DependingOn(r.c.Dependencies(block))
	}
	if r.now.Set(at, i); importID != "" {
		r.now.Set(at, nil) // it gets into state by the apply
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
		at: at, kind: block.Kind, before: i, importing: importID, secrets: secrets, isConfigured: true,
		told: slices.Contains(r.options.replace, at.String()), tainted: i != nil && i.Tainted,
	}
	if !r.decide(c, block, value) {
		return false
	}
	if c.action == replace && block.PreventDestroy {
		r.cannotDestroy(at)
		return false
	}
	p.add(c)
	r.setValue(at, c.planned)
	return r.holds(block, at, each, block.Kind.Marked(c.planned))
}

// decide finds what a change does.
func (r *run) decide(c *change, block *language.Resource, value cty.Value) bool {
	from := c.before
	if c.tainted {
		from = nil
	}
	resp, ok := r.ask(c, block, block.Provider, from, value)
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
		told := r.Warnings(c.at.String())
		_, ok = r.ask(c, block, block.Provider, &state.Instance{Value: c.kind.Null(), Private: resp.PlannedPrivate}, value)
		if ok {
			r.DropWarnings(c.at.String(), told) // as the CLIs do: of the second plan of a replacement, they show errors only
		}
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
func (r *run) ask(c *change, block *language.Resource, provider *schema.Provider, prior *state.Instance,
	config cty.Value,
) (*tfprotov6.PlanResourceChangeResponse, bool) {
	of := c.kind
	if prior == nil {
		prior = &state.Instance{Value: of.Null()}
	}
	next := config
	if !config.IsNull() {
		next = core.Proposed(of.Attributes, prior.Value, config)
	}
	resp, ok := call(r, c.at, block, r.server(provider).PlanResourceChange, &tfprotov6.PlanResourceChangeRequest{
		TypeName: of.Name, Config: of.Encode(config), PriorState: of.Encode(prior.Value), ProposedNewState: of.Encode(next),
		PriorPrivate: prior.Private, PriorIdentity: prior.Identity,
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
		return nil, r.broken(c.at, "Provider produced invalid plan", fmt.Sprintf("Provider planned %s for the configuration %s.",
			core.Show(planned), core.Show(config)))
	}
	if !config.IsNull() {
		if text := core.InvalidPlan(c.at.String(), of.Attributes, prior.Value, config, planned); text != "" {
			return nil, r.broken(c.at, "Provider produced invalid plan", text)
		}
	}
	return resp, true
}
