package terraformtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/language"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/schema"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/state"
)

// validate checks a configuration, as the beginning of all commands that use it.
func (w *Workspace) validate(ctx context.Context, c *language.Config, o options, d *language.Diagnostics) {
	r := w.newRun(ctx, c, c.AnyVariables(), o, d, &transcript{}, &state.State{}, time.Now())
	r.validating = true
	defer r.close()
	for name := range c.Providers {
		p := w.Providers.Named(name)
		value, body, at, ok := r.providerConfig(p)
		if !ok {
			continue
		}
		resp, err := r.server(p).ValidateProviderConfig(ctx, &tfprotov6.ValidateProviderConfigRequest{Config: p.Block().Encode(value)})
		if err != nil {
			r.Fail("Plugin error", "%v", err)
			continue
		}
		r.AddProvider(providerAddress(p), body, at, resp.Diagnostics)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Resources)) {
		block := c.Resources[name]
		for _, e := range []hcl.Expression{block.Count, block.ForEach} {
			if e != nil {
				_, problems := r.expression(block.Module, e)
				r.AddHCL(block.Address, problems)
			}
		}
		for _, on := range block.DependsOn {
			if c.Resources[on] == nil {
				r.Fail("Reference to undeclared resource", "%s depends on %q, which has not been declared in the root module.",
					block.Address, on)
			}
		}
		r.validateInstance(block, state.Address{Resource: block.Address}, cty.NilVal)
	}
	for _, m := range c.All() {
		for _, o := range m.Outputs {
			_, problems := r.expression(m, o.Value)
			r.AddHCL("", problems)
		}
	}
}

// validateInstance evaluates and checks a configuration. The value has no marks any more; secrets are its sensitive parts.
func (r *run) validateInstance(block *language.Resource, at state.Address, each cty.Value) (value cty.Value, secrets []cty.Path, ok bool) {
	if !r.holds(block, at, each, cty.NilVal) {
		return cty.NilVal, nil, false
	}
	marked, ok := r.evaluate(block.Module, block.Kind, block.Body, at, each, at.String())
	if !ok {
		return cty.NilVal, nil, false
	}
	value, marks := marked.UnmarkDeepWithPaths()
	for _, one := range marks {
		first, _ := one.Path[0].(cty.GetAttrStep)
		if _, is := one.Marks[schema.Ephemeral]; is && !isWriteOnly(block.Kind, one.Path) {
			r.Add(language.Diagnostic{
				IsError: true, Summary: "Invalid use of ephemeral value", Address: at.String(), Subject: &block.At,
				Detail: fmt.Sprintf("Ephemeral values are not valid for %q, because it is not a write-only attribute and must be "+
					"persisted to state.", first.Name),
			})
			return cty.NilVal, nil, false
		}
		if _, is := one.Marks[schema.Sensitive]; is {
			secrets = append(secrets, one.Path)
		}
	}
	server := r.server(block.Provider)
	if server == nil {
		return cty.NilVal, nil, false
	}
	if block.Kind.IsData {
		_, ok = call(r, at, block, server.ValidateDataResourceConfig,
			&tfprotov6.ValidateDataResourceConfigRequest{TypeName: block.Kind.Name, Config: block.Kind.Encode(value)})
		return value, secrets, ok
	}
	_, ok = call(r, at, block, server.ValidateResourceConfig, &tfprotov6.ValidateResourceConfigRequest{
		TypeName: block.Kind.Name, Config: block.Kind.Encode(value),
		ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
	})
	return value, secrets, ok
}

// isWriteOnly reports whether a path leads into a write-only attribute.
func isWriteOnly(of *schema.Kind, path cty.Path) bool {
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
