package terraformtest

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/core"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/language"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/schema"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/state"
)

// plan plans a configuration.
func (w *Workspace) plan(ctx context.Context, c *language.Config, variables map[string]cty.Value, o options, d *language.Diagnostics,
	out *transcript, prior *state.State,
) *plan {
	if o.destroy && o.refresh && len(prior.Instances) > 0 { // the refresh is a plan of the configuration
		refresh := o
		refresh.destroy, refresh.preDestroy = false, true
		problems := &language.Diagnostics{}
		made := w.plan(ctx, c, variables, refresh, problems, out, prior)
		if made.failed {
			d.Add(problems.All...)
			return made
		}
		o.refresh = false
		after := w.planOnce(ctx, c, variables, o, d, out, made.refreshed)
		after.previous = prior
		return after
	}
	return w.planOnce(ctx, c, variables, o, d, out, prior)
}

func (w *Workspace) planOnce(ctx context.Context, c *language.Config, variables map[string]cty.Value, o options, d *language.Diagnostics,
	out *transcript, prior *state.State,
) *plan {
	r := w.newRun(ctx, c, variables, o, d, out, prior, time.Now())
	defer r.close()
	p := &plan{
		workspace: w, config: c, options: o, variables: variables, started: r.started, previous: prior, refreshed: r.now,
		data: map[state.Address]cty.Value{}, expanded: r.expanded, outputs: map[string]plannedOutput{},
		changes: map[state.Address]*change{},
	}
	for _, i := range c.Imports {
		if c.Resources[i.Resource] == nil {
			r.Fail("Configuration for import target does not exist", "The configuration for the given import target %s does not exist. "+
				"All target instances must have an associated configuration to be imported.", i.Resource)
		}
	}
	if r.HasErrors() {
		p.failed = true
		return p
	}
	names := map[string]*language.Resource{}
	if !o.destroy {
		maps.Copy(names, c.Resources)
	}
	for at := range prior.Instances {
		if names[at.Resource] == nil {
			names[at.Resource] = nil // not configured, or destroyed
		}
	}
	chosen := r.targeted(names, prior)
	steps, all := map[string]*core.Step{}, []*core.Step{}
	for name := range names {
		if !chosen[name] {
			continue
		}
		steps[name] = &core.Step{Name: name, Run: func() bool { return r.planResource(p, name, names[name]) }}
		all = append(all, steps[name])
	}
	for name, s := range steps {
		if block := names[name]; block != nil {
			for _, on := range block.Refers {
				if steps[on] != nil {
					s.After = append(s.After, steps[on])
				}
			}
		}
	}
	core.Walk(all)
	r.checkMoves()
	if p.failed = r.HasErrors() || ctx.Err() != nil; !p.failed {
		r.planOutputs(p)
		p.failed = r.HasErrors()
	}
	return p
}

// targeted returns the resources that -target chooses, which are all without it: the targets and what they depend on, or what depends on
// them if they are destroyed.
func (r *run) targeted(names map[string]*language.Resource, prior *state.State) map[string]bool {
	chosen := map[string]bool{}
	if len(r.options.targets) == 0 {
		for name := range names {
			chosen[name] = true
		}
		return chosen
	}
	r.Add(language.Diagnostic{Summary: "Resource targeting is in effect", Detail: "You are creating a plan with the -target option, " +
		"which means that the result of this plan may not represent all of the changes requested by the current configuration."})
	for _, target := range r.options.targets {
		resource := state.ParseAddress(target).Resource
		chosen[resource] = true
		if block := r.c.Resources[resource]; block != nil && !r.options.destroy {
			for _, on := range r.c.Behind(block) {
				chosen[on] = true
			}
		}
		for at, i := range prior.Instances {
			if r.options.destroy && slices.Contains(i.After, resource) {
				chosen[at.Resource] = true
			}
		}
	}
	return chosen
}

// isTargeted reports whether -target chooses an instance of a resource that it chooses.
func (r *run) isTargeted(at state.Address) bool {
	some := false
	for _, target := range r.options.targets {
		if to := state.ParseAddress(target); to.Resource == at.Resource {
			if some = true; to.Key == "" || to.Key == at.Key {
				return true
			}
		}
	}
	return !some
}

// imports returns the IDs that import blocks have for the instances of a resource.
func (r *run) imports(block *language.Resource) (made map[state.Address]string, ok bool) {
	made, ok = map[state.Address]string{}, true
	for _, i := range r.c.Imports {
		if i.Resource != block.Address {
			continue
		}
		each := map[state.Address]cty.Value{{}: cty.NilVal}
		if i.ForEach != nil {
			each = map[state.Address]cty.Value{}
			if problem := r.forEach(r.c.Module, i.ForEach, "", each); problem != nil {
				ok = !r.AddHCL("", hcl.Diagnostics{problem}) && ok
				continue
			}
		}
		for one, value := range each {
			ok = r.addImport(i, one, value, made) && ok
		}
	}
	return made, ok
}

// addImport adds the ID for the instance that one repetition of an import block leads to.
func (r *run) addImport(i *language.Import, one state.Address, each cty.Value, made map[state.Address]string) bool {
	at := state.Address{Resource: i.Resource}
	if i.Key != nil {
		key, problems := r.repeated(r.c.Module, i.Key, one, each)
		if r.AddHCL("", problems) {
			return false
		}
		at.Key = state.KeyOf(key)
	}
	id, problems := r.repeated(r.c.Module, i.ID, one, each)
	if r.AddHCL("", problems) {
		return false
	}
	id, _ = id.Unmark()
	if !id.IsKnown() || id.IsNull() || id.Type() != cty.String {
		r.Fail("Invalid import id argument", "The import block \"id\" argument of %s must be a known string.", at)
		return false
	}
	made[at] = id.AsString()
	return true
}

// planResource refreshes and plans the instances of a resource. block is nil if it is not in the configuration.
func (r *run) planResource(p *plan, name string, block *language.Resource) bool {
	configured, imports := map[state.Address]cty.Value{}, map[state.Address]string{}
	if block != nil {
		var ok bool
		if configured, ok = r.expand(block); !ok {
			return false
		}
		if imports, ok = r.imports(block); !ok {
			return false
		}
	}
	instances := maps.Clone(configured)
	for _, at := range r.prior.Of(name) {
		if _, is := instances[at]; !is {
			instances[at] = cty.NilVal
		}
	}
	var wg sync.WaitGroup
	results := make(chan bool, len(instances))
	for at, each := range instances {
		if !r.isTargeted(at) {
			continue
		}
		wg.Go(func() {
			results <- r.in(func() bool {
				_, is := configured[at]
				if !is {
					return r.planRemoval(p, at)
				}
				if block.Kind.IsData {
					return r.planRead(p, at, block, each)
				}
				return r.planInstance(p, at, block, each, imports[at])
			})
		})
	}
	wg.Wait()
	close(results)
	ok := true
	for one := range results {
		ok = ok && one
	}
	return ok
}

// planOutputs evaluates the outputs.
func (r *run) planOutputs(p *plan) {
	for name, before := range p.previous.Outputs {
		value, err := before.Decode()
		if err != nil {
			r.Fail("Invalid state", "%v", err)
		}
		p.outputs[name] = plannedOutput{before: value, sensitive: before.Sensitive}
	}
	if r.options.destroy {
		return
	}
	r.checkModules()
	for name, o := range r.c.Outputs {
		after, problems := r.expression(r.c.Module, o.Value)
		if r.AddHCL("", problems) {
			continue
		}
		after, marks := after.UnmarkDeep()
		if _, is := marks[schema.Sensitive]; is && !o.Sensitive {
			r.Add(language.Diagnostic{
				IsError: true, Summary: "Output refers to sensitive values", Subject: &o.At,
				Detail: "To reduce the risk of accidentally exporting sensitive data that was intended to be only internal, Terraform " +
					"requires that any root module output containing sensitive data be explicitly marked as sensitive, to " +
					"confirm your intent.",
			})
		}
		before := p.outputs[name]
		if p.outputs[name] = (plannedOutput{before: before.before, after: after, sensitive: o.Sensitive}); after.IsKnown() &&
			after.IsNull() {
			p.outputs[name] = plannedOutput{before: before.before, sensitive: o.Sensitive}
		}
	}
}
