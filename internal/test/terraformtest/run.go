package terraformtest

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/core"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/language"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/schema"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/state"
)

// run is a walk over a configuration: it validates, plans or applies. It has servers of its own.
type run struct {
	*language.Diagnostics
	w          *Workspace
	ctx        context.Context //nolint:containedctx // ends with the command, or when it is interrupted
	c          *language.Config
	variables  map[string]cty.Value
	options    options
	validating bool
	started    time.Time // of the plan
	output     *transcript
	slots      chan struct{}
	process    *Process
	prior, now *state.State

	mu       sync.Mutex
	servers  map[string]*serving
	pure     map[string]*serving                    // not configured: for functions
	callable func() map[string]function.Function    // by expressions
	expanded map[string]map[state.Address]cty.Value // the instances of a resource, with each.value
	values   map[state.Address]cty.Value            // for references: planned or applied
}

// serving is a server that is configured when it is needed first.
type serving struct {
	once   sync.Once
	server schema.Server
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

func idOf(value cty.Value) string {
	if value.Type().IsObjectType() && value.Type().HasAttribute("id") {
		if id := core.AttributeOf(value, "id"); id.IsKnown() && !id.IsNull() && id.Type() == cty.String {
			return " [id=" + strings.TrimSpace(id.AsString()) + "]"
		}
	}
	return ""
}

func (w *Workspace) newRun(ctx context.Context, c *language.Config, variables map[string]cty.Value, o options, d *language.Diagnostics,
	out *transcript, prior *state.State, started time.Time,
) *run {
	r := &run{
		Diagnostics: d, w: w, process: processOf(ctx), ctx: ctx, c: c, variables: variables, options: o, started: started, output: out,
		slots: make(chan struct{}, o.parallelism), prior: prior, now: prior.Clone(),
		servers: map[string]*serving{}, pure: map[string]*serving{}, expanded: map[string]map[state.Address]cty.Value{},
		values: map[state.Address]cty.Value{},
	}
	r.callable = sync.OnceValue(r.functions)
	return r
}

// close ends the servers.
func (r *run) close() {
	for _, servers := range []map[string]*serving{r.servers, r.pure} {
		for _, s := range servers {
			if s.server != nil {
				s.server.Close(context.WithoutCancel(r.ctx))
			}
		}
	}
}

// in does something in one of the slots of the parallelism.
func (r *run) in(do func() bool) bool {
	r.slots <- struct{}{}
	defer func() { <-r.slots }()
	if r.ctx.Err() != nil || r.process.isDead() {
		return false
	}
	return do()
}

// servingOf returns the entry of a provider.
func (r *run) servingOf(p *schema.Provider, servers map[string]*serving) *serving {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := servers[p.Name]
	if s == nil {
		s = &serving{}
		servers[p.Name] = s
	}
	return s
}

// functions returns the functions for expressions: Terraform's own, and those of the providers, which a server without a configuration
// computes.
func (r *run) functions() map[string]function.Function {
	all := language.Functions(r.w.Dir, r.started)
	for _, p := range r.w.Providers {
		maps.Copy(all, p.Functions(r.ctx, func(ctx context.Context,
			req *tfprotov6.CallFunctionRequest,
		) (*tfprotov6.CallFunctionResponse, error) {
			s := r.servingOf(p, r.pure)
			s.once.Do(func() { s.server = p.Start(r.w.Environ, r.process.over()) })
			return s.server.CallFunction(ctx, req)
		}))
	}
	return all
}

// server returns the configured server of a provider; nil if its configuration has failed.
func (r *run) server(p *schema.Provider) schema.Server {
	s := r.servingOf(p, r.servers)
	s.once.Do(func() {
		s.server = p.Start(r.w.Environ, r.process.over())
		s.ok = r.validating || r.configure(p, s.server)
	})
	if !s.ok {
		return nil
	}
	return s.server
}

// configure configures a server.
func (r *run) configure(p *schema.Provider, server schema.Server) bool {
	config, body, at, ok := r.providerConfig(p)
	if !ok {
		return false
	}
	of := p.Block()
	valid, err := server.ValidateProviderConfig(r.ctx, &tfprotov6.ValidateProviderConfigRequest{Config: of.Encode(config)})
	if err != nil {
		r.Fail("Plugin error", "%v", err)
		return false
	}
	if r.AddProvider(providerAddress(p), body, at, valid.Diagnostics) {
		return false
	}
	resp, err := server.ConfigureProvider(r.ctx, &tfprotov6.ConfigureProviderRequest{
		TerraformVersion: core.Version,
		Config:           of.Encode(config), ClientCapabilities: &tfprotov6.ConfigureProviderClientCapabilities{},
	})
	if err != nil {
		r.Fail("Plugin error", "%v", err)
		return false
	}
	return !r.AddProvider(providerAddress(p), body, at, resp.Diagnostics)
}

func providerAddress(p *schema.Provider) string { return fmt.Sprintf("provider[%q]", p.Source) }

// providerConfig evaluates a provider block. Without one, all is null.
func (r *run) providerConfig(p *schema.Provider) (value cty.Value, body hcl.Body, at *hcl.Range, ok bool) {
	of, block := p.Block(), r.c.Providers[p.Name]
	body = hcl.EmptyBody()
	if block != nil {
		body, at = block.Body, &block.At
	}
	value, ok = r.evaluate(r.c.Module, of, body, state.Address{}, cty.NilVal, "")
	if !ok {
		return cty.NilVal, nil, nil, false
	}
	value, _ = value.UnmarkDeep()
	return value, body, at, true
}

// call makes a call for an instance, and reports what the provider says. It returns false if that is an error; the answer may be nil then.
// block is the instance's; nil if it is not configured.
func call[Req, Resp any](r *run, at state.Address, block *language.Resource, method func(context.Context, Req) (Resp, error),
	req Req,
) (resp Resp, ok bool) {
	resp, err, lives := await(r.ctx, r.process, method, req)
	if !lives {
		return resp, false
	}
	if err != nil {
		r.Add(language.Diagnostic{IsError: true, Summary: "Plugin error", Detail: err.Error(), Address: at.String()})
		return resp, false
	}
	if block == nil {
		return resp, !r.AddProvider(at.String(), nil, nil, problemsOf(resp))
	}
	return resp, !r.AddProvider(at.String(), block.Body, &block.At, problemsOf(resp))
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
func (r *run) broken(at state.Address, summary, detail string) bool {
	r.Add(language.Diagnostic{IsError: true, Summary: summary, Detail: detail + "\n\nThis is a bug in the provider, which should be " +
		"reported in the provider's own issue tracker.", Address: at.String()})
	return false
}
