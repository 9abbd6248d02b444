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
)

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
		p := w.provider(name)
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
