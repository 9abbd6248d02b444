package lint

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// value is an expression of a module. A name of names stands for the elements of a list or map.
type value struct {
	expr   hcl.Expression
	module *module
	names  map[string]value
}

func (v value) of(expr hcl.Expression) value { return value{expr, v.module, v.names} }

// with returns an expression in which a name stands for the elements of a list or map.
func (v value) with(name string, elements, expr hcl.Expression) value {
	names := map[string]value{}
	maps.Copy(names, v.names)
	names[name] = v.of(elements)
	return value{expr, v.module, names}
}

// The steps of a path besides names of keys.
const (
	all   = ""  // the value of each key, or each element
	items = "#" // each element of a list
)

// passing are functions whose result has the keys or elements of their arguments. The last two are of types.
var passing = []string{
	"merge", "concat", "coalesce", "coalescelist", "try", "sensitive", "nonsensitive", "tomap", "tolist", "toset", "values", "distinct",
	"reverse", "setunion", "object", "optional",
}

// made returns the objects and lists, or what loops over them, that may make the value at the end of a path in another one. It follows
// names, conditions and functions as far as they can be seen in the configuration.
func (l *linter) made(v value, path ...string) (found []value) {
	if l.steps--; l.steps < 0 || v.expr == nil {
		return nil
	}
	add := func(v value, path ...string) { found = append(found, l.made(v, path...)...) }
	switch e := v.expr.(type) {
	case *hclsyntax.ParenthesesExpr:
		add(v.of(e.Expression), path...)
	case *hclsyntax.TemplateWrapExpr:
		add(v.of(e.Wrapped), path...)
	case *hclsyntax.ConditionalExpr:
		add(v.of(e.TrueResult), path...)
		add(v.of(e.FalseResult), path...)
	case *hclsyntax.FunctionCallExpr:
		return l.returned(v, e, path)
	case *hclsyntax.ScopeTraversalExpr:
		return l.named(v, slices.Concat(steps(e.Traversal), path))
	case *hclsyntax.RelativeTraversalExpr:
		add(v.of(e.Source), slices.Concat(steps(e.Traversal), path)...)
	case *hclsyntax.IndexExpr:
		add(v.of(e.Collection), slices.Concat([]string{nameOf(e.Key)}, path)...)
	case *hclsyntax.ForExpr:
		if len(path) == 0 {
			return []value{v}
		}
		if isItem := path[0] == items; !e.Group && (path[0] == all || isItem == (e.KeyExpr == nil)) {
			add(v.with(e.ValVar, e.CollExpr, e.ValExpr), path[1:]...)
		}
	case *hclsyntax.ObjectConsExpr, *hclsyntax.TupleConsExpr:
		return l.inside(v, path)
	case hclsyntax.Expression: // a number or a text
	default:
		if text := nameOf(e); text != "" { // of a JSON file
			expr, _ := hclsyntax.ParseTemplate([]byte(text), e.Range().Filename, e.Range().Start)
			return l.made(v.of(expr), path...)
		}
		return l.inside(v, path)
	}
	return found
}

// inside is made for an object or a list.
func (l *linter) inside(v value, path []string) (found []value) {
	if len(path) == 0 {
		return []value{v}
	}
	pairs, _ := hcl.ExprMap(v.expr)
	for _, pair := range pairs {
		if name := nameOf(pair.Key); path[0] == all || path[0] == name || name == "" && path[0] != items {
			found = append(found, l.made(v.of(pair.Value), path[1:]...)...)
		}
	}
	list, _ := hcl.ExprList(v.expr)
	for _, element := range list {
		if path[0] == all || path[0] == items {
			found = append(found, l.made(v.of(element), path[1:]...)...)
		}
	}
	return found
}

// returned is made for the result of a function, or for a type.
func (l *linter) returned(v value, call *hclsyntax.FunctionCallExpr, path []string) (found []value) {
	for i, arg := range call.Args {
		add := func(path ...string) { found = append(found, l.made(v.of(arg), path...)...) }
		switch call.Name {
		case "one", "element", "lookup":
			if i == 0 {
				add(slices.Concat([]string{all}, path)...)
			}
		case "flatten", "map", "list", "set":
			if len(path) == 0 {
				return []value{v}
			}
			if call.Name != "flatten" { // a type
				add(path[1:]...)
				continue
			}
			add(path...)
			add(slices.Concat([]string{all, items}, path[1:])...)
		default:
			if slices.Contains(passing, call.Name) {
				add(path...)
			}
		}
	}
	return found
}

// named is made for what the first steps of a path name.
func (l *linter) named(v value, path []string) (found []value) {
	for size := 1; size <= min(2, len(path)); size++ {
		name := path[0]
		if size == 2 {
			name += "." + path[1]
		}
		if elements, is := v.names[name]; is {
			return l.made(elements, slices.Concat([]string{all}, path[size:])...)
		}
		for _, set := range v.module.values[name] {
			if !l.open[set.expr] { // else it depends on itself
				l.open[set.expr] = true
				found = append(found, l.made(set, path[size:]...)...)
				delete(l.open, set.expr)
			}
		}
	}
	return found
}

// steps returns the steps of a reference.
func steps(of hcl.Traversal) (path []string) {
	for _, step := range of {
		switch step := step.(type) {
		case hcl.TraverseRoot:
			path = append(path, step.Name)
		case hcl.TraverseAttr:
			path = append(path, step.Name)
		case hcl.TraverseIndex:
			path = append(path, textOf(step.Key))
		}
	}
	return path
}

// nameOf returns the text of an expression that is one, such as a key; "" if it is something else.
func nameOf(expr hcl.Expression) string {
	found, _ := expr.Value(nil)
	return textOf(found)
}

func textOf(v cty.Value) string {
	if v, _ = v.Unmark(); v.IsNull() || !v.IsKnown() || v.Type() != cty.String {
		return ""
	}
	return v.AsString()
}
