package planned

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

func (r *reader) provider() (Provider, error) {
	p := Provider{Limit: throttle.Limit{
		Max: throttle.DefaultMax, StuckAfter: throttle.DefaultStuckAfter, Scope: throttle.ScopeAll,
		Coordination: throttle.CoordinationIronic,
	}}
	keys := map[string]bool{}
	for _, c := range r.plan.ResourceChanges {
		if b := r.blocks.of(c); b != nil && strings.HasPrefix(c.Type, "metal_") && c.Mode == tfjson.ManagedResourceMode &&
			!c.Change.Actions.NoOp() {
			keys[r.providerKey(b)] = true
		}
	}
	if len(keys) > 1 {
		return p, fmt.Errorf("the plan uses several blocks of the provider: %s. A forecast is about one site. Plan one of them with "+
			"-target, or apply them one after the other",
			strings.Join(slices.Sorted(maps.Keys(keys)), ", "))
	}
	if r.plan.Config == nil {
		p.Unknown = "the plan has no configuration"
		return p, nil
	}
	for key := range keys {
		if block := r.plan.Config.ProviderConfigs[key]; block != nil {
			return p, r.readBlock(&p, block)
		}
	}
	return p, nil
}

// providerKey returns the key of the provider block of a resource; in a module without a block, that of the caller.
func (r *reader) providerKey(b *block) string {
	key := b.ProviderConfigKey
	if r.plan.Config.ProviderConfigs[key] == nil {
		if i := strings.LastIndex(key, ":"); i >= 0 {
			return key[i+1:]
		}
	}
	return key
}

// readBlock reads what the block says. An expression that is not constant has no value in a plan, except for a variable of the root module.
func (r *reader) readBlock(p *Provider, block *tfjson.ProviderConfig) error {
	limit, why := r.constant(block.Expressions["provisioning_limit"])
	p.Unknown = why
	if v := valuesOf(limit); v != nil {
		if p.IsMax = v["max_concurrent"] != nil; p.IsMax {
			p.Limit.Max = v.number("max_concurrent")
		}
		if text := v.text("scope"); text != "" {
			p.Limit.Scope = throttle.Scope(text)
		}
		if text := v.text("coordination"); text != "" {
			p.Limit.Coordination = throttle.Coordination(text)
		}
		if d, err := time.ParseDuration(v.text("stuck_after")); err == nil {
			p.Limit.StuckAfter = d
		}
		patterns, _ := v["exempt_boot_interfaces"].([]any)
		for _, one := range patterns {
			p.Limit.Exempt = append(p.Limit.Exempt, fmt.Sprint(one))
		}
	}
	defaults, why := r.constant(block.Expressions["rollout"])
	if why != "" {
		return fmt.Errorf("rollout of the provider block is not known: %s. Write it with constants", why)
	}
	if v := valuesOf(defaults); v != nil {
		p.Rollout = settingsOf(v)
	}
	interval, _ := r.constant(block.Expressions["poll_interval"])
	if text, is := interval.(string); is {
		p.Poll, _ = time.ParseDuration(text)
	}
	return nil
}

// constant returns the value of an expression, or why it has none.
func (r *reader) constant(e *tfjson.Expression) (value any, why string) {
	switch {
	case e == nil || e.ExpressionData == nil:
		return nil, ""
	case len(e.References) == 0 && e.ConstantValue != tfjson.UnknownConstantValue:
		return e.ConstantValue, ""
	}
	if len(e.References) > 0 {
		if name, is := strings.CutPrefix(e.References[0], "var."); is && r.plan.Variables[name] != nil && len(e.References) == 1 {
			if v := r.plan.Variables[name].Value; valuesOf(v) != nil {
				return v, ""
			}
		}
	}
	return nil, "it refers to " + strings.Join(e.References, ", ") + ", and a plan does not have the value"
}
