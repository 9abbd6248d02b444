package terraformtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// run is a walk over a configuration: it validates, plans or applies. It has servers of its own.
type run struct {
	*diagnostics
	w          *Workspace
	ctx        context.Context //nolint:containedctx // ends with the command, or when it is interrupted
	c          *config
	variables  map[string]cty.Value
	options    options
	validating bool
	started    time.Time // of the plan
	output     *transcript
	slots      chan struct{}
	prior, now *state

	mu       sync.Mutex
	servers  map[string]*serving
	expanded map[string]map[address]cty.Value // the instances of a resource, with each.value
	values   map[address]cty.Value            // for references: planned or applied
}

// serving is a server that is configured when it is needed first.
type serving struct {
	once   sync.Once
	server Server
	ok     bool
}

// transcript is what a run prints while it works.
type transcript struct {
	mu   sync.Mutex
	text strings.Builder
}

func (t *transcript) say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(&t.text, format+"\n", args...)
}

func (w *Workspace) newRun(ctx context.Context, c *config, variables map[string]cty.Value, o options, d *diagnostics, out *transcript, prior *state, started time.Time) *run {
	return &run{
		diagnostics: d, w: w, ctx: ctx, c: c, variables: variables, options: o, started: started, output: out, slots: make(chan struct{}, o.parallelism), prior: prior, now: prior.clone(),
		servers: map[string]*serving{}, expanded: map[string]map[address]cty.Value{}, values: map[address]cty.Value{},
	}
}

// close ends the servers.
func (r *run) close() {
	for _, s := range r.servers {
		if s.server != nil {
			s.server.Close(context.WithoutCancel(r.ctx))
		}
	}
}

// in does something in one of the slots of the parallelism.
func (r *run) in(do func() bool) bool {
	r.slots <- struct{}{}
	defer func() { <-r.slots }()
	if r.ctx.Err() != nil {
		return false
	}
	return do()
}

// server returns the configured server of a provider; nil if its configuration has failed.
func (r *run) server(p *Provider) Server {
	r.mu.Lock()
	s := r.servers[p.Name]
	if s == nil {
		s = &serving{}
		r.servers[p.Name] = s
	}
	r.mu.Unlock()
	s.once.Do(func() {
		s.server = p.Start()
		s.ok = r.validating || r.configure(p, s.server)
	})
	if !s.ok {
		return nil
	}
	return s.server
}

// configure configures a server.
func (r *run) configure(p *Provider, server Server) bool {
	config, body, at, ok := r.providerConfig(p)
	if !ok {
		return false
	}
	of := p.Block()
	valid, err := server.ValidateProviderConfig(r.ctx, &tfprotov6.ValidateProviderConfigRequest{Config: of.Encode(config)})
	if err != nil {
		r.fail("Plugin error", "%v", err)
		return false
	}
	if r.addProvider(providerAddress(p), body, at, valid.Diagnostics) {
		return false
	}
	resp, err := server.ConfigureProvider(r.ctx, &tfprotov6.ConfigureProviderRequest{TerraformVersion: Version, Config: of.Encode(config), ClientCapabilities: &tfprotov6.ConfigureProviderClientCapabilities{}})
	if err != nil {
		r.fail("Plugin error", "%v", err)
		return false
	}
	return !r.addProvider(providerAddress(p), body, at, resp.Diagnostics)
}

func providerAddress(p *Provider) string { return fmt.Sprintf("provider[%q]", p.Source) }

// providerConfig evaluates a provider block. Without one, all is null.
func (r *run) providerConfig(p *Provider) (value cty.Value, body hcl.Body, at *hcl.Range, ok bool) {
	of, block := p.Block(), r.c.providers[p.Name]
	body = hcl.EmptyBody()
	if block != nil {
		body, at = block.body, &block.at
	}
	value, ok = r.evaluate(of, body, address{}, cty.NilVal, "")
	if !ok {
		return cty.NilVal, nil, nil, false
	}
	value, _ = value.UnmarkDeep()
	return value, body, at, true
}

// call makes a call for an instance, and reports what the provider says. It returns false if that is an error; the answer may be nil then.
// block is the instance's; nil if it is not configured.
func call[Req, Resp any](r *run, at address, block *resource, method func(context.Context, Req) (Resp, error), req Req) (resp Resp, ok bool) {
	resp, err := method(r.ctx, req)
	if err != nil {
		r.add(diagnostic{isError: true, summary: "Plugin error", detail: err.Error(), address: at.String()})
		return resp, false
	}
	if block == nil {
		return resp, !r.addProvider(at.String(), nil, nil, problemsOf(resp))
	}
	return resp, !r.addProvider(at.String(), block.body, &block.at, problemsOf(resp))
}

// problemsOf returns the diagnostics of an answer.
func problemsOf(resp any) []*tfprotov6.Diagnostic {
	switch resp := resp.(type) {
	case *tfprotov6.ValidateResourceConfigResponse:
		return resp.Diagnostics
	case *tfprotov6.ValidateDataResourceConfigResponse:
		return resp.Diagnostics
	case *tfprotov6.UpgradeResourceStateResponse:
		return resp.Diagnostics
	case *tfprotov6.ReadResourceResponse:
		return resp.Diagnostics
	case *tfprotov6.ReadDataSourceResponse:
		return resp.Diagnostics
	case *tfprotov6.ImportResourceStateResponse:
		return resp.Diagnostics
	case *tfprotov6.PlanResourceChangeResponse:
		return resp.Diagnostics
	case *tfprotov6.ApplyResourceChangeResponse:
		return resp.Diagnostics
	}
	panic(fmt.Sprintf("no diagnostics in %T", resp))
}

// broken reports a provider that breaks the rules of Terraform.
func (r *run) broken(at address, summary, detail string) bool {
	r.add(diagnostic{isError: true, summary: summary, detail: detail + "\n\nThis is a bug in the provider, which should be reported in the provider's own issue tracker.", address: at.String()})
	return false
}

// evaluate evaluates a block for an instance.
func (r *run) evaluate(of *Kind, body hcl.Body, at address, each cty.Value, label string) (cty.Value, bool) {
	ctx, problems := r.scope(of.references(body), at, each)
	if r.addHCL(label, problems) {
		return cty.NilVal, false
	}
	value, problems := of.decodeBody(body, ctx)
	if r.addHCL(label, problems) {
		return cty.NilVal, false
	}
	return value, true
}

// expression evaluates an expression outside of a block with instances.
func (r *run) expression(e hcl.Expression) (cty.Value, hcl.Diagnostics) {
	return r.repeated(e, address{}, cty.NilVal)
}

// repeated evaluates an expression in which each.key, each.value and count.index may stand.
func (r *run) repeated(e hcl.Expression, at address, each cty.Value) (cty.Value, hcl.Diagnostics) {
	ctx, problems := r.scope(e.Variables(), at, each)
	if problems.HasErrors() {
		return cty.DynamicVal, problems
	}
	return e.Value(ctx)
}

// scope returns what references mean.
func (r *run) scope(refs []hcl.Traversal, at address, each cty.Value) (*hcl.EvalContext, hcl.Diagnostics) {
	roots := map[string]cty.Value{}
	types := map[string]map[string]cty.Value{} // the resources by type and name; the type begins with "data." for data sources
	locals := map[string]cty.Value{}
	var problems hcl.Diagnostics
	for _, ref := range refs {
		switch root := ref.RootName(); root {
		case "var":
			roots["var"] = cty.ObjectVal(r.variables)
		case "path":
			roots["path"] = cty.ObjectVal(map[string]cty.Value{"module": cty.StringVal("."), "root": cty.StringVal("."), "cwd": cty.StringVal(r.w.Dir)})
		case "terraform":
			roots["terraform"] = cty.ObjectVal(map[string]cty.Value{"workspace": cty.StringVal("default")})
		case "local":
			name := attributeAt(ref, 1)
			if e := r.c.locals[name]; e != nil && locals[name] == cty.NilVal {
				value, wrong := r.expression(e)
				locals[name], problems = value, append(problems, wrong...)
			}
			roots["local"] = cty.ObjectVal(locals)
		case "each", "count":
			r.addRepetition(roots, at, each)
		default:
			address := resourceOf(ref)
			block := r.c.resources[address]
			if block == nil {
				problems = append(problems, undeclared(ref, address))
				continue
			}
			kind, name := kindName(address), address[strings.LastIndex(address, ".")+1:]
			if types[kind] == nil {
				types[kind] = map[string]cty.Value{}
			}
			types[kind][name] = r.valueOf(block)
		}
	}
	data := map[string]cty.Value{}
	for kind, names := range types {
		if name, isData := strings.CutPrefix(kind, dataPrefix); isData {
			data[name] = cty.ObjectVal(names)
			roots["data"] = cty.ObjectVal(data)
		} else {
			roots[kind] = cty.ObjectVal(names)
		}
	}
	return &hcl.EvalContext{Variables: roots, Functions: functionsIn(r.w.Dir, r.started)}, problems
}

func attributeAt(ref hcl.Traversal, n int) string {
	if n < len(ref) {
		if step, is := ref[n].(hcl.TraverseAttr); is {
			return step.Name
		}
	}
	return ""
}

func undeclared(ref hcl.Traversal, address string) *hcl.Diagnostic {
	at := ref.SourceRange()
	kind, rest := "managed", address
	if after, is := strings.CutPrefix(address, dataPrefix); is {
		kind, rest = "data", after
	}
	if address == "" {
		return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Invalid reference", Detail: "A reference to a resource type must be followed by at least one attribute access, specifying the resource name.", Subject: &at}
	}
	parts := strings.SplitN(rest, ".", 2)
	return &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Reference to undeclared resource",
		Detail: fmt.Sprintf("A %s resource %q %q has not been declared in the root module.", kind, parts[0], parts[1]), Subject: &at,
	}
}

// addRepetition adds count.index, each.key and each.value.
func (r *run) addRepetition(roots map[string]cty.Value, at address, each cty.Value) {
	key := at.value()
	if r.validating {
		roots["count"] = cty.ObjectVal(map[string]cty.Value{"index": cty.UnknownVal(cty.Number)})
		roots["each"] = cty.ObjectVal(map[string]cty.Value{"key": cty.UnknownVal(cty.String), "value": cty.DynamicVal})
		return
	}
	switch {
	case key == cty.NilVal:
	case key.Type() == cty.Number:
		roots["count"] = cty.ObjectVal(map[string]cty.Value{"index": key})
	default:
		roots["each"] = cty.ObjectVal(map[string]cty.Value{"key": key, "value": each})
	}
}

// valueOf returns the value of a resource for references: of all its instances.
func (r *run) valueOf(block *resource) cty.Value {
	if r.validating {
		if block.count != nil || block.forEach != nil {
			return cty.DynamicVal
		}
		return block.kind.marked(cty.UnknownVal(block.kind.Type))
	}
	r.mu.Lock()
	instances := r.expanded[block.address]
	r.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(instances), compareAddresses)
	if instances == nil {
		keys = r.now.of(block.address)
	}
	if block.count == nil && block.forEach == nil {
		return r.instanceValue(block, address{resource: block.address})
	}
	list, elements := []cty.Value{}, map[string]cty.Value{}
	for _, at := range keys {
		value := r.instanceValue(block, at)
		if key := at.value(); key != cty.NilVal && key.Type() == cty.String {
			elements[key.AsString()] = value
		} else {
			list = append(list, value)
		}
	}
	if block.count != nil {
		return cty.TupleVal(list)
	}
	return cty.ObjectVal(elements)
}

// instanceValue returns the value of an instance: what the run has planned or made, or what is in state.
func (r *run) instanceValue(block *resource, at address) cty.Value {
	r.mu.Lock()
	value, known := r.values[at]
	r.mu.Unlock()
	if known {
		return block.kind.marked(value)
	}
	if i := r.now.get(at); i != nil {
		if value, err := i.value(block.kind); err == nil {
			return block.kind.marked(value)
		}
	}
	return cty.UnknownVal(block.kind.Type)
}

// setValue records what references to an instance mean.
func (r *run) setValue(at address, value cty.Value) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values[at] = value
}

// expand returns the instances of a resource, with each.value.
func (r *run) expand(block *resource) (map[address]cty.Value, bool) {
	r.mu.Lock()
	done := r.expanded[block.address]
	r.mu.Unlock()
	if done != nil {
		return done, true
	}
	made := map[address]cty.Value{}
	var problem *hcl.Diagnostic
	switch {
	case block.count != nil:
		problem = r.count(block, made)
	case block.forEach != nil:
		problem = r.forEach(block.forEach, block.address, made)
	default:
		made[address{resource: block.address}] = cty.NilVal
	}
	if problem != nil {
		r.addHCL("", hcl.Diagnostics{problem})
		return nil, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expanded[block.address] = made
	return made, true
}

func (r *run) count(block *resource, made map[address]cty.Value) *hcl.Diagnostic {
	value, problems := r.expression(block.count)
	at := block.count.Range()
	wrong := func(detail string) *hcl.Diagnostic {
		return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Invalid count argument", Detail: detail, Subject: &at}
	}
	if problems.HasErrors() {
		return problems[0]
	}
	value, _ = value.Unmark()
	switch {
	case !value.IsKnown():
		return wrong(`The "count" value depends on resource attributes that cannot be determined until apply, so Terraform cannot predict how many instances will be created.`)
	case value.IsNull() || value.Type() != cty.Number:
		return wrong(`The given "count" argument value is unsuitable: a number is required.`)
	}
	n, _ := value.AsBigFloat().Int64()
	for i := range n {
		made[address{block.address, keyOf(cty.NumberIntVal(i))}] = cty.NilVal
	}
	return nil
}

// forEach adds the instances of a resource that for_each asks for.
func (r *run) forEach(e hcl.Expression, resource string, made map[address]cty.Value) *hcl.Diagnostic {
	value, problems := r.expression(e)
	at := e.Range()
	wrong := func(detail string) *hcl.Diagnostic {
		return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Invalid for_each argument", Detail: detail, Subject: &at}
	}
	if problems.HasErrors() {
		return problems[0]
	}
	value, _ = value.Unmark()
	switch {
	case !value.IsKnown(), value.Type().IsSetType() && !value.IsWhollyKnown():
		return wrong(`The "for_each" map includes keys derived from resource attributes that cannot be determined until apply, and so Terraform cannot determine the full set of keys that will identify the instances of this resource.`)
	case value.IsNull(), !value.Type().IsMapType() && !value.Type().IsObjectType() && !isSetOfStrings(value):
		return wrong(`The given "for_each" argument value is unsuitable: the "for_each" argument must be a map, or set of strings.`)
	}
	for it := value.ElementIterator(); it.Next(); {
		key, element := it.Element()
		key, _ = key.Unmark()
		if value.Type().IsSetType() {
			key = element
		}
		made[address{resource, keyOf(key)}] = element
	}
	return nil
}

func isSetOfStrings(value cty.Value) bool {
	return value.Type().IsSetType() && (value.Type().ElementType() == cty.String || value.LengthInt() == 0)
}

// Step is a step of a walk over a graph.
type Step struct {
	Name  string
	After []*Step
	Run   func() bool // reports whether the steps after it may follow

	done chan struct{}
	ok   bool
}

// Walk runs steps as Terraform's core does: each after those it depends on, and none after one that has failed.
func Walk(steps []*Step) {
	for _, s := range steps {
		s.done = make(chan struct{})
	}
	for _, s := range steps {
		go func() {
			defer close(s.done)
			for _, before := range s.After {
				<-before.done
			}
			for _, before := range s.After {
				if !before.ok {
					return
				}
			}
			s.ok = s.Run()
		}()
	}
	for _, s := range steps {
		<-s.done
	}
}
