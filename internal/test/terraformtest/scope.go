package terraformtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/language"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/schema"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/state"
)

// evaluate evaluates a block for an instance.
func (r *run) evaluate(of *schema.Kind, body hcl.Body, at state.Address, each cty.Value, label string) (cty.Value, bool) {
	ctx, problems := r.scope(of.References(body), at, each)
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
func (r *run) expression(e hcl.Expression) (cty.Value, hcl.Diagnostics) {
	return r.repeated(e, state.Address{}, cty.NilVal)
}

// repeated evaluates an expression in which each.key, each.value and count.index may stand.
func (r *run) repeated(e hcl.Expression, at state.Address, each cty.Value) (cty.Value, hcl.Diagnostics) {
	ctx, problems := r.scope(e.Variables(), at, each)
	if problems.HasErrors() {
		return cty.DynamicVal, problems
	}
	return e.Value(ctx)
}

// scope returns what references mean.
func (r *run) scope(refs []hcl.Traversal, at state.Address, each cty.Value) (*hcl.EvalContext, hcl.Diagnostics) {
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
			if e := r.c.Locals[name]; e != nil && locals[name] == cty.NilVal {
				value, wrong := r.expression(e)
				locals[name], problems = value, append(problems, wrong...)
			}
			roots["local"] = cty.ObjectVal(locals)
		case "each", "count":
			r.addRepetition(roots, at, each)
		default:
			address := language.ResourceOf(ref)
			block := r.c.Resources[address]
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
	if after, is := strings.CutPrefix(address, schema.DataPrefix); is {
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
