package terraformtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/language"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/schema"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/state"
)

// memory keeps what locals, variables and modules mean during one evaluation, by module and name.
type memory map[string]cty.Value

// evaluate evaluates a block of a module for an instance.
func (r *run) evaluate(m *language.Module, of *schema.Kind, body hcl.Body, at state.Address, each cty.Value, label string) (
	cty.Value, bool,
) {
	ctx, problems := r.scope(m, of.References(body), at, each, memory{})
	if r.AddHCL(label, problems) {
		return cty.NilVal, false
	}
	value, problems := of.DecodeBody(body, ctx)
	if r.AddHCL(label, problems) {
		return cty.NilVal, false
	}
	return value, true
}

// expression evaluates an expression outside of a block with instances.
func (r *run) expression(m *language.Module, e hcl.Expression) (cty.Value, hcl.Diagnostics) {
	return r.repeated(m, e, state.Address{}, cty.NilVal)
}

// repeated evaluates an expression in which each.key, each.value and count.index may stand.
func (r *run) repeated(m *language.Module, e hcl.Expression, at state.Address, each cty.Value) (cty.Value, hcl.Diagnostics) {
	return r.within(m, e, at, each, memory{})
}

// within evaluates an expression as a part of an evaluation.
func (r *run) within(m *language.Module, e hcl.Expression, at state.Address, each cty.Value, known memory) (cty.Value, hcl.Diagnostics) {
	ctx, problems := r.scope(m, e.Variables(), at, each, known)
	if problems.HasErrors() {
		return cty.DynamicVal, problems
	}
	return e.Value(ctx)
}

// scope returns what references in a module mean.
func (r *run) scope(m *language.Module, refs []hcl.Traversal, at state.Address, each cty.Value, known memory) (
	*hcl.EvalContext, hcl.Diagnostics,
) {
	roots := map[string]cty.Value{}
	named := map[string]map[string]cty.Value{"local": {}, "var": {}, "module": {}}
	types := map[string]map[string]cty.Value{} // the resources by type and name; the type begins with "data." for data sources
	var problems hcl.Diagnostics
	for _, ref := range refs {
		switch root := ref.RootName(); root {
		case "var", "local", "module":
			name := language.AttributeAt(ref, 1)
			value, wrong := r.named(m, root, name, known)
			if problems = append(problems, wrong...); value != cty.NilVal {
				named[root][name] = value
			}
			roots[root] = cty.ObjectVal(named[root])
		case "path":
			roots["path"] = cty.ObjectVal(map[string]cty.Value{
				"module": cty.StringVal(m.Dir), "root": cty.StringVal("."), "cwd": cty.StringVal(r.w.Dir),
			})
		case "terraform":
			roots["terraform"] = cty.ObjectVal(map[string]cty.Value{"workspace": cty.StringVal("default")})
		case "each", "count":
			r.addRepetition(roots, at, each)
		case "self": // the caller adds it
		default:
			address := language.ResourceOf(ref)
			block := r.c.Resources[m.Path+address]
			if block == nil {
				problems = append(problems, undeclared(ref, address))
				continue
			}
			kind, name := state.KindName(address), address[strings.LastIndex(address, ".")+1:]
			if types[kind] == nil {
				types[kind] = map[string]cty.Value{}
			}
			types[kind][name] = r.valueOf(block)
		}
	}
	data := map[string]cty.Value{}
	for kind, names := range types {
		if name, isData := strings.CutPrefix(kind, schema.DataPrefix); isData {
			data[name] = cty.ObjectVal(names)
			roots["data"] = cty.ObjectVal(data)
		} else {
			roots[kind] = cty.ObjectVal(names)
		}
	}
	return &hcl.EvalContext{Variables: roots, Functions: r.callable()}, problems
}

// named returns the value of a local, a variable or a called module; cty.NilVal if there is none.
func (r *run) named(m *language.Module, root, name string, known memory) (value cty.Value, problems hcl.Diagnostics) {
	key := m.Path + root + "." + name
	value, is := known[key]
	if is {
		return value, nil
	}
	switch root {
	case "local":
		if m.Locals[name] != nil {
			value, problems = r.within(m, m.Locals[name], state.Address{}, cty.NilVal, known)
		}
	case "module":
		if child := m.Called[name]; child != nil {
			value, problems = r.outputs(child, known)
		}
	default:
		return r.variable(m, name, key, known)
	}
	if !problems.HasErrors() {
		known[key] = value
	}
	return value, problems
}

// variable returns the value of a variable, and what its validations say of it; cty.NilVal if there is none.
func (r *run) variable(m *language.Module, name, key string, known memory) (value cty.Value, problems hcl.Diagnostics) {
	v := m.Variables[name]
	switch {
	case v == nil:
		return cty.NilVal, nil
	case m.Parent == nil:
		value = r.variables[name]
	default:
		var err error
		if e := m.Arguments[name]; e != nil {
			if value, problems = r.within(m.Parent, e, state.Address{}, cty.NilVal, known); problems.HasErrors() {
				return cty.NilVal, problems
			}
		}
		if value, err = v.Of(value); err != nil {
			return cty.NilVal, hcl.Diagnostics{{
				Severity: hcl.DiagError, Summary: "Invalid value for input variable", Subject: &m.At,
				Detail: fmt.Sprintf("The given value is not suitable for %svar.%s: %v.", m.Path, name, err),
			}}
		}
	}
	known[key] = value // also for the validations
	problems = r.keeps(m, "Invalid value for variable", v.Rules, state.Address{}, cty.NilVal, cty.NilVal, known)
	if problems.HasErrors() {
		delete(known, key)
	}
	return value, problems
}

// outputs returns the outputs of a called module.
func (r *run) outputs(m *language.Module, known memory) (cty.Value, hcl.Diagnostics) {
	values := map[string]cty.Value{}
	var all hcl.Diagnostics
	for name, o := range m.Outputs {
		problems := r.keeps(m, "Module output value precondition failed", o.Rules, state.Address{}, cty.NilVal, cty.NilVal, known)
		if !problems.HasErrors() {
			var wrong hcl.Diagnostics
			values[name], wrong = r.within(m, o.Value, state.Address{}, cty.NilVal, known)
			problems = append(problems, wrong...)
		}
		if all = append(all, problems...); o.Sensitive && !problems.HasErrors() {
			values[name] = values[name].Mark(schema.Sensitive)
		}
	}
	return cty.ObjectVal(values), all
}

// keeps returns an error for each rule that does not hold. What is not known yet may hold. self is what a postcondition is about.
func (r *run) keeps(m *language.Module, summary string, rules []*language.Rule, at state.Address, each, self cty.Value, known memory) (
	problems hcl.Diagnostics,
) {
	if r.validating || r.options.preDestroy || r.options.destroy {
		return nil
	}
	for _, rule := range rules {
		value := func(e hcl.Expression) cty.Value {
			ctx, wrong := r.scope(m, e.Variables(), at, each, known)
			if problems = append(problems, wrong...); wrong.HasErrors() {
				return cty.DynamicVal
			}
			if self != cty.NilVal {
				ctx.Variables["self"] = self
			}
			value, wrong := e.Value(ctx)
			problems = append(problems, wrong...)
			value, _ = value.UnmarkDeep()
			return value
		}
		holds, err := convert.Convert(value(rule.Condition), cty.Bool)
		if err == nil && (!holds.IsKnown() || !holds.IsNull() && holds.True()) {
			continue
		}
		text := "(a condition that is no truth value)"
		if message := value(rule.Message); message.IsKnown() && message.Type() == cty.String && !message.IsNull() {
			text = strings.TrimSpace(message.AsString())
		}
		problems = append(problems, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: text, Subject: &rule.At})
	}
	return problems
}

func undeclared(ref hcl.Traversal, address string) *hcl.Diagnostic {
	at := ref.SourceRange()
	kind, rest := "managed", address
	if after, is := strings.CutPrefix(address, schema.DataPrefix); is {
		kind, rest = "data", after
	}
	if address == "" {
		return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Invalid reference", Detail: "A reference to a resource type must be " +
			"followed by at least one attribute access, specifying the resource name.", Subject: &at}
	}
	parts := strings.SplitN(rest, ".", 2)
	return &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Reference to undeclared resource",
		Detail: fmt.Sprintf("A %s resource %q %q has not been declared in the root module.", kind, parts[0], parts[1]), Subject: &at,
	}
}

// addRepetition adds count.index, each.key and each.value.
func (r *run) addRepetition(roots map[string]cty.Value, at state.Address, each cty.Value) {
	key := at.KeyValue()
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
func (r *run) valueOf(block *language.Resource) cty.Value {
	if r.validating {
		if block.Count != nil || block.ForEach != nil {
			return cty.DynamicVal
		}
		return block.Kind.Marked(cty.UnknownVal(block.Kind.Type))
	}
	r.mu.Lock()
	instances := r.expanded[block.Address]
	r.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(instances), state.Compare)
	if instances == nil {
		keys = r.now.Of(block.Address)
	}
	if block.Count == nil && block.ForEach == nil {
		return r.instanceValue(block, state.Address{Resource: block.Address})
	}
	list, elements := []cty.Value{}, map[string]cty.Value{}
	for _, at := range keys {
		value := r.instanceValue(block, at)
		if key := at.KeyValue(); key != cty.NilVal && key.Type() == cty.String {
			elements[key.AsString()] = value
		} else {
			list = append(list, value)
		}
	}
	if block.Count != nil {
		return cty.TupleVal(list)
	}
	return cty.ObjectVal(elements)
}

// instanceValue returns the value of an instance: what the run has planned or made, or what is in state.
func (r *run) instanceValue(block *language.Resource, at state.Address) cty.Value {
	r.mu.Lock()
	value, known := r.values[at]
	r.mu.Unlock()
	if known {
		return block.Kind.Marked(value)
	}
	if i := r.now.Get(at); i != nil {
		if value, err := i.ValueOf(block.Kind); err == nil {
			return block.Kind.Marked(value)
		}
	}
	return cty.UnknownVal(block.Kind.Type)
}

// setValue records what references to an instance mean.
func (r *run) setValue(at state.Address, value cty.Value) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values[at] = value
}
