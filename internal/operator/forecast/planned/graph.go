package planned

import (
	"strings"

	tfjson "github.com/hashicorp/terraform-json"
)

// blocks are the resource blocks of a configuration, by address without keys of instances, such as module.db.metal_host.this.
type blocks map[string]*block

type block struct {
	*tfjson.ConfigResource
	in *module
}

type module struct {
	*tfjson.ConfigModule
	path   string // such as "module.db."; "" for the root
	parent *module
	call   *tfjson.ModuleCall
	calls  map[string]*module
}

type reference struct {
	resource string // the address of the block
	instance string // of the instance, if the expression names one
	unclear  string // what the plan does not describe, such as a local value
}

func blocksOf(config *tfjson.Config) blocks {
	all := blocks{}
	if config != nil && config.RootModule != nil {
		all.addModule(&module{ConfigModule: config.RootModule})
	}
	return all
}

func (b blocks) addModule(m *module) {
	m.calls = map[string]*module{}
	for _, one := range m.Resources {
		b[m.path+one.Address] = &block{ConfigResource: one, in: m}
	}
	for name, call := range m.ModuleCalls {
		if call.Module != nil {
			m.calls[name] = &module{ConfigModule: call.Module, path: m.path + "module." + name + ".", parent: m, call: call}
			b.addModule(m.calls[name])
		}
	}
}

// of returns the block of a change; nil if it is not in the configuration any more.
func (b blocks) of(c *tfjson.ResourceChange) *block { return b[resourceOf(c.Address)] }

// resourceOf returns an address without the keys of instances.
func resourceOf(address string) string {
	var out strings.Builder
	depth, quoted := 0, false
	for i, c := range address {
		switch {
		case c == '"' && (i == 0 || address[i-1] != '\\'):
			quoted = !quoted
		case quoted:
			continue
		case c == '[':
			depth++
			continue
		case c == ']':
			depth--
			continue
		}
		if depth == 0 && !quoted && c != '"' {
			out.WriteRune(c)
		}
	}
	return out.String()
}

// keyOf returns the key of an instance, with its brackets; "" if it has none.
func keyOf(address string) string {
	if i := strings.LastIndex(address, "["); i >= 0 && strings.HasSuffix(address, "]") {
		return address[i:]
	}
	return ""
}

// refersTo returns what an attribute of a block refers to. A nil block refers to nothing.
func (b *block) refersTo(attribute string) []reference {
	if b == nil || b.Expressions[attribute] == nil {
		return nil
	}
	return b.in.resolve(referencesIn(b.Expressions[attribute]), 0)
}

func (b *block) all() (all []reference) {
	names := append([]string{}, b.DependsOn...)
	for _, e := range b.Expressions {
		names = append(names, referencesIn(e)...)
	}
	for _, e := range []*tfjson.Expression{b.CountExpression, b.ForEachExpression} {
		if e != nil {
			names = append(names, referencesIn(e)...)
		}
	}
	for m := b.in; m != nil; m = m.parent {
		if m.call != nil {
			all = append(all, m.parent.resolve(m.call.DependsOn, 0)...)
		}
	}
	return append(all, b.in.resolve(names, 0)...)
}

func referencesIn(e *tfjson.Expression) (names []string) {
	if e == nil || e.ExpressionData == nil {
		return nil
	}
	names = append(names, e.References...)
	for _, nested := range e.NestedBlocks {
		for _, one := range nested {
			names = append(names, referencesIn(one)...)
		}
	}
	return names
}

// deepest is how deep values of modules may refer to values of modules.
const deepest = 20

// resolve finds the resources that references in a module lead to. Terraform lists a reference from the longest to the shortest address.
func (m *module) resolve(names []string, depth int) (all []reference) {
	if m == nil || depth > deepest {
		return nil
	}
	for i, name := range names {
		parts := strings.Split(name, ".")
		covered := i > 0 && strings.HasPrefix(names[i-1], name) && names[i-1] != name // by the reference before
		switch kind := parts[0]; {
		case len(parts) < 2 || kind == "each" || kind == "count" || kind == "path" || kind == "terraform" || kind == "self":
		case kind == "local":
			all = append(all, reference{unclear: m.path + name})
		case kind == "var":
			if m.call != nil && m.call.Expressions[parts[1]] != nil {
				all = append(all, m.parent.resolve(referencesIn(m.call.Expressions[parts[1]]), depth+1)...)
			}
		case kind == "module":
			if !covered || len(parts) > 2 {
				all = append(all, m.resolveModule(parts, depth)...)
			}
		case kind == "data":
			all = append(all, reference{resource: m.path + strings.Join(parts[:min(3, len(parts))], ".")})
		case covered && strings.HasPrefix(names[i-1], name+"["):
		case covered && i > 1 && strings.HasPrefix(names[i-2], name+"["):
		default:
			all = append(all, instanceIn(m.path, name))
		}
	}
	return all
}

// resolveModule finds what an output of a module, or all of it, leads to.
func (m *module) resolveModule(parts []string, depth int) (all []reference) {
	called := m.calls[resourceOf(parts[1])]
	if called == nil {
		return nil
	}
	if len(parts) > 2 {
		if out := called.Outputs[resourceOf(parts[2])]; out != nil {
			return called.resolve(append(referencesIn(out.Expression), out.DependsOn...), depth+1)
		}
	}
	for _, one := range called.Resources {
		all = append(all, reference{resource: called.path + one.Address})
	}
	for _, inner := range called.calls {
		all = append(all, called.resolveModule([]string{"module", strings.TrimSuffix(strings.TrimPrefix(inner.path, called.path+"module."),
			".")}, depth+1)...)
	}
	return all
}

// instanceIn splits metal_host.new[3].id.
func instanceIn(path, name string) reference {
	end := strings.Index(name, "]")
	if open := strings.Index(name, "["); open >= 0 && end > open {
		return reference{resource: path + name[:open], instance: path + name[:end+1]}
	}
	parts := strings.SplitN(name, ".", 3)
	return reference{resource: path + strings.Join(parts[:min(2, len(parts))], ".")}
}
