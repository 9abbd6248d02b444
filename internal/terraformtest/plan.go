package terraformtest

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// action is what a plan does to an instance.
type action string

const (
	noOp    action = "no-op"
	create  action = "create"
	update  action = "update"
	replace action = "replace"
	remove  action = "delete"
	read    action = "read"
)

// change is the plan of an instance.
type change struct {
	at            address
	kind          *Kind
	action        action
	before        *Instance // as refreshed; nil if there is none
	planned       cty.Value
	private       []byte
	identity      *tfprotov6.ResourceIdentityData
	secrets       []cty.Path // sensitive values of the configuration
	mustReplace   []cty.Path
	importing     string // the ID
	tainted, told bool   // told to be replaced by -replace
	isConfigured  bool
}

// plan is a plan of all resources, with what an apply needs.
type plan struct {
	workspace *Workspace
	config    *config
	options   options
	variables map[string]cty.Value // without ephemeral ones
	started   time.Time
	previous  *state // before the refresh
	refreshed *state
	data      map[address]cty.Value // what data sources have returned
	expanded  map[string]map[address]cty.Value
	outputs   map[string]plannedOutput
	failed    bool

	mu      sync.Mutex
	changes map[address]*change
}

type plannedOutput struct {
	before, after cty.Value // cty.NilVal: there is none
	sensitive     bool
}

func (p *plan) add(c *change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changes[c.at] = c
}

// sorted returns the changes by address.
func (p *plan) sorted() []*change {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(maps.Values(p.changes), func(a, b *change) int { return compareAddresses(a.at, b.at) })
}

// isEmpty reports whether the plan changes nothing.
func (p *plan) isEmpty() bool {
	if p.options.refreshOnly {
		return p.refreshed.sameAs(p.previous, p.workspace.Providers) && !p.changesOutputs()
	}
	for _, c := range p.sorted() {
		if c.action != noOp || c.importing != "" {
			return false
		}
	}
	return !p.changesOutputs()
}

func (p *plan) changesOutputs() bool {
	for _, o := range p.outputs {
		if !o.same() {
			return true
		}
	}
	return false
}

func (o plannedOutput) same() bool {
	if o.before == cty.NilVal || o.after == cty.NilVal {
		return o.before == o.after
	}
	return o.before.RawEquals(o.after)
}

// plan plans a configuration.
func (w *Workspace) plan(ctx context.Context, c *config, variables map[string]cty.Value, o options, d *diagnostics, out *transcript, prior *state) *plan {
	if o.destroy && o.refresh && len(prior.instances) > 0 { // the refresh is a plan of the configuration
		refresh := o
		refresh.destroy, refresh.preDestroy = false, true
		problems := &diagnostics{}
		made := w.plan(ctx, c, variables, refresh, problems, out, prior)
		if made.failed {
			d.add(problems.all...)
			return made
		}
		o.refresh = false
		after := w.planOnce(ctx, c, variables, o, d, out, made.refreshed)
		after.previous = prior
		return after
	}
	return w.planOnce(ctx, c, variables, o, d, out, prior)
}

func (w *Workspace) planOnce(ctx context.Context, c *config, variables map[string]cty.Value, o options, d *diagnostics, out *transcript, prior *state) *plan {
	r := w.newRun(ctx, c, variables, o, d, out, prior, time.Now())
	defer r.close()
	p := &plan{workspace: w, config: c, options: o, variables: variables, started: r.started, previous: prior, refreshed: r.now, data: map[address]cty.Value{}, expanded: r.expanded, outputs: map[string]plannedOutput{}, changes: map[address]*change{}}
	for _, i := range c.imports {
		if c.resources[i.resource] == nil {
			r.fail("Configuration for import target does not exist", "The configuration for the given import target %s does not exist. All target instances must have an associated configuration to be imported.", i.resource)
		}
	}
	if r.hasErrors() {
		p.failed = true
		return p
	}
	names := map[string]*resource{}
	if !o.destroy {
		maps.Copy(names, c.resources)
	}
	for at := range prior.instances {
		if names[at.resource] == nil {
			names[at.resource] = nil // not configured, or destroyed
		}
	}
	chosen := r.targeted(names, prior)
	steps, all := map[string]*Step{}, []*Step{}
	for name := range names {
		if !chosen[name] {
			continue
		}
		steps[name] = &Step{Name: name, Run: func() bool { return r.planResource(p, name, names[name]) }}
		all = append(all, steps[name])
	}
	for name, s := range steps {
		if block := names[name]; block != nil {
			for _, on := range block.refer {
				if steps[on] != nil {
					s.After = append(s.After, steps[on])
				}
			}
		}
	}
	Walk(all)
	if p.failed = r.hasErrors() || ctx.Err() != nil; !p.failed {
		r.planOutputs(p)
		p.failed = r.hasErrors()
	}
	return p
}

// targeted returns the resources that -target chooses, which are all without it: the targets and what they depend on, or what depends on
// them if they are destroyed.
func (r *run) targeted(names map[string]*resource, prior *state) map[string]bool {
	chosen := map[string]bool{}
	if len(r.options.targets) == 0 {
		for name := range names {
			chosen[name] = true
		}
		return chosen
	}
	r.add(diagnostic{summary: "Resource targeting is in effect", detail: "You are creating a plan with the -target option, which means that the result of this plan may not represent all of the changes requested by the current configuration."})
	for _, target := range r.options.targets {
		resource := parseAddress(target).resource
		chosen[resource] = true
		if block := r.c.resources[resource]; block != nil && !r.options.destroy {
			for _, on := range block.refer {
				chosen[on] = true
			}
			for _, on := range r.c.dependencies(block) {
				chosen[on] = true
			}
		}
		for at, i := range prior.instances {
			if r.options.destroy && slices.Contains(i.After, resource) {
				chosen[at.resource] = true
			}
		}
	}
	return chosen
}

// isTargeted reports whether -target chooses an instance of a resource that it chooses.
func (r *run) isTargeted(at address) bool {
	some := false
	for _, target := range r.options.targets {
		if to := parseAddress(target); to.resource == at.resource {
			if some = true; to.key == "" || to.key == at.key {
				return true
			}
		}
	}
	return !some
}

// imports returns the IDs that import blocks have for the instances of a resource.
func (r *run) imports(block *resource) (made map[address]string, ok bool) {
	made, ok = map[address]string{}, true
	for _, i := range r.c.imports {
		if i.resource != block.address {
			continue
		}
		each := map[address]cty.Value{{}: cty.NilVal}
		if i.forEach != nil {
			each = map[address]cty.Value{}
			if problem := r.forEach(i.forEach, "", each); problem != nil {
				ok = !r.addHCL("", hcl.Diagnostics{problem}) && ok
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
func (r *run) addImport(i *importBlock, one address, each cty.Value, made map[address]string) bool {
	at := address{resource: i.resource}
	if i.key != nil {
		key, problems := r.repeated(i.key, one, each)
		if r.addHCL("", problems) {
			return false
		}
		at.key = keyOf(key)
	}
	id, problems := r.repeated(i.id, one, each)
	if r.addHCL("", problems) {
		return false
	}
	id, _ = id.Unmark()
	if !id.IsKnown() || id.IsNull() || id.Type() != cty.String {
		r.fail("Invalid import id argument", "The import block \"id\" argument of %s must be a known string.", at)
		return false
	}
	made[at] = id.AsString()
	return true
}

// planResource refreshes and plans the instances of a resource. block is nil if it is not in the configuration.
func (r *run) planResource(p *plan, name string, block *resource) bool {
	configured, imports := map[address]cty.Value{}, map[address]string{}
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
	for _, at := range r.prior.of(name) {
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
				if block.kind.isData {
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
	for name, before := range p.previous.outputs {
		value, err := before.value()
		if err != nil {
			r.fail("Invalid state", "%v", err)
		}
		p.outputs[name] = plannedOutput{before: value, sensitive: before.Sensitive}
	}
	if r.options.destroy {
		return
	}
	for name, o := range r.c.outputs {
		after, problems := r.expression(o.value)
		if r.addHCL("", problems) {
			continue
		}
		after, marks := after.UnmarkDeep()
		if _, is := marks[sensitive]; is && !o.sensitive {
			r.add(diagnostic{
				isError: true, summary: "Output refers to sensitive values", subject: &o.at,
				detail: "To reduce the risk of accidentally exporting sensitive data that was intended to be only internal, Terraform requires that any root module output containing sensitive data be explicitly marked as sensitive, to confirm your intent.",
			})
		}
		before := p.outputs[name]
		if p.outputs[name] = (plannedOutput{before: before.before, after: after, sensitive: o.sensitive}); after.IsKnown() && after.IsNull() {
			p.outputs[name] = plannedOutput{before: before.before, sensitive: o.sensitive}
		}
	}
}
