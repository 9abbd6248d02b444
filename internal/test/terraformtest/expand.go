package terraformtest

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/language"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/state"
)

// expand returns the instances of a resource, with each.value.
func (r *run) expand(block *language.Resource) (map[state.Address]cty.Value, bool) {
	r.mu.Lock()
	done := r.expanded[block.Address]
	r.mu.Unlock()
	if done != nil {
		return done, true
	}
	made := map[state.Address]cty.Value{}
	var problem *hcl.Diagnostic
	switch {
	case block.Count != nil:
		problem = r.count(block, made)
	case block.ForEach != nil:
		problem = r.forEach(block.Module, block.ForEach, block.Address, made)
	default:
		made[state.Address{Resource: block.Address}] = cty.NilVal
	}
	if problem != nil {
		r.AddHCL("", hcl.Diagnostics{problem})
		return nil, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expanded[block.Address] = made
	return made, true
}

func (r *run) count(block *language.Resource, made map[state.Address]cty.Value) *hcl.Diagnostic {
	value, problems := r.expression(block.Module, block.Count)
	at := block.Count.Range()
	wrong := func(detail string) *hcl.Diagnostic {
		return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Invalid count argument", Detail: detail, Subject: &at}
	}
	if problems.HasErrors() {
		return problems[0]
	}
	value, _ = value.Unmark()
	switch {
	case !value.IsKnown():
		return wrong(
			`The "count" value depends on resource attributes that cannot be determined until apply, so Terraform cannot predict how many instances will be created.`)
	case value.IsNull() || value.Type() != cty.Number:
		return wrong(`The given "count" argument value is unsuitable: a number is required.`)
	}
	n, _ := value.AsBigFloat().Int64()
	for i := range n {
		made[state.Address{Resource: block.Address, Key: state.KeyOf(cty.NumberIntVal(i))}] = cty.NilVal
	}
	return nil
}

// forEach adds the instances of a resource that for_each asks for.
func (r *run) forEach(m *language.Module, e hcl.Expression, resource string, made map[state.Address]cty.Value) *hcl.Diagnostic {
	value, problems := r.expression(m, e)
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
		return wrong(
			`The "for_each" map includes keys derived from resource attributes that cannot be determined until apply, and so Terraform cannot determine the full set of keys that will identify the instances of this resource.`)
	case value.IsNull(), !value.Type().IsMapType() && !value.Type().IsObjectType() && !isSetOfStrings(value):
		return wrong(`The given "for_each" argument value is unsuitable: the "for_each" argument must be a map, or set of strings.`)
	}
	for it := value.ElementIterator(); it.Next(); {
		key, element := it.Element()
		key, _ = key.Unmark()
		if value.Type().IsSetType() {
			key = element
		}
		made[state.Address{Resource: resource, Key: state.KeyOf(key)}] = element
	}
	return nil
}

func isSetOfStrings(value cty.Value) bool {
	return value.Type().IsSetType() && (value.Type().ElementType() == cty.String || value.LengthInt() == 0)
}
