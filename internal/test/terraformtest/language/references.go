package language

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/core"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/schema"
)

// ResourceOf returns the address of the resource that a reference begins with; "" if it is something else.
func ResourceOf(to hcl.Traversal) string {
	var names []string
	for _, step := range to {
		if root, is := step.(hcl.TraverseRoot); is {
			names = append(names, root.Name)
		} else if attribute, is := step.(hcl.TraverseAttr); is && len(names) < 3 {
			names = append(names, attribute.Name)
		} else {
			break
		}
	}
	switch {
	case len(names) < 2 || slices.Contains([]string{"var", "local", "each", "count", "path", "terraform", "self", "module"}, names[0]):
		return ""
	case names[0] == "data" && len(names) < 3:
		return ""
	case names[0] == "data":
		return strings.Join(names[:3], ".")
	}
	return strings.Join(names[:2], ".")
}

// InModules is ResourceOf for the address of a resource that may be in a called module.
func InModules(to hcl.Traversal) string {
	path := ""
	for len(to) > 2 && to.RootName() == "module" {
		name, isName := to[1].(hcl.TraverseAttr)
		next, hasNext := to[2].(hcl.TraverseAttr)
		if !isName || !hasNext {
			return ""
		}
		path += "module." + name.Name + "."
		to = append(hcl.Traversal{hcl.TraverseRoot{Name: next.Name}}, to[3:]...)
	}
	return path + ResourceOf(to)
}

// refer notes which resources blocks refer to.
func (c *Config) refer() error {
	for _, r := range c.Resources {
		refs := r.Kind.References(r.Body)
		for _, e := range []hcl.Expression{r.Count, r.ForEach} {
			if e != nil {
				refs = append(refs, e.Variables()...)
			}
		}
		refs = append(refs, references(r.Before, r.After)...)
		r.Refers = c.resourcesIn(r.Module, refs, append([]string(nil), r.DependsOn...))
		r.Refers = slices.DeleteFunc(r.Refers, func(on string) bool { return on == r.Address }) // in a postcondition
		r.Awaits = append([]string(nil), r.DependsOn...)
		for _, ref := range refs {
			if name := ResourceOf(ref); name != "" && !strings.HasPrefix(name, schema.DataPrefix) {
				r.Awaits = append(r.Awaits, r.Module.Path+name)
			}
		}
	}
	for _, i := range c.Imports {
		for _, e := range []hcl.Expression{i.ForEach, i.ID} {
			if r := c.Resources[i.Resource]; r != nil && e != nil {
				r.Refers = c.resourcesIn(c.Module, e.Variables(), r.Refers)
			}
		}
	}
	for name, p := range c.Providers {
		attributes, _ := p.Body.JustAttributes()
		for _, attribute := range attributes {
			p.refer = c.resourcesIn(c.Module, attribute.Expr.Variables(), p.refer)
		}
		for _, r := range c.Resources {
			if r.Provider.Name != name {
				continue
			}
			if slices.Contains(p.refer, r.Address) {
				return core.Unsupported("a provider that refers to its own resources")
			}
			r.Refers = append(r.Refers, p.refer...)
		}
	}
	for _, r := range c.Resources {
		slices.Sort(r.Refers)
		r.Refers = slices.Compact(r.Refers)
	}
	return nil
}

// resourcesIn adds the addresses of the resources that references in a module lead to, also through locals, variables and outputs.
func (c *Config) resourcesIn(m *Module, refs []hcl.Traversal, to []string) []string {
	seen := map[string]bool{}
	var follow func(m *Module, refs []hcl.Traversal)
	follow = func(m *Module, refs []hcl.Traversal) {
		for _, ref := range refs {
			name := AttributeAt(ref, 1)
			key := m.Path + ref.RootName() + "." + name + "." + AttributeAt(ref, 2)
			if seen[key] {
				continue
			}
			seen[key] = true
			switch ref.RootName() {
			case "local":
				if e := m.Locals[name]; e != nil {
					follow(m, e.Variables())
				}
			case "var":
				if v := m.Variables[name]; v != nil {
					follow(m, references(v.Rules))
				}
				if e := m.Arguments[name]; e != nil {
					follow(m.Parent, e.Variables())
				}
			case "module":
				if child := m.Called[name]; child != nil {
					for output, o := range child.Outputs {
						if wanted := AttributeAt(ref, 2); wanted == "" || wanted == output {
							follow(child, append(o.Value.Variables(), references(o.Rules)...))
						}
					}
				}
			default:
				if address := ResourceOf(ref); address != "" {
					to = append(to, m.Path+address)
				}
			}
		}
	}
	follow(m, refs)
	return to
}

// AttributeAt returns the name at a place of a reference; "" if there is none.
func AttributeAt(ref hcl.Traversal, n int) string {
	if n < len(ref) {
		if step, is := ref[n].(hcl.TraverseAttr); is {
			return step.Name
		}
	}
	return ""
}

// Dependencies returns the addresses of all managed resources that a resource depends on, as a state notes them.
func (c *Config) Dependencies(r *Resource) []string {
	return slices.DeleteFunc(c.Behind(r), func(address string) bool { return c.Resources[address].Kind.IsData })
}

// Behind returns the addresses of all resources and data sources that a resource depends on.
func (c *Config) Behind(r *Resource) []string {
	found := map[string]bool{}
	var visit func(of *Resource)
	visit = func(of *Resource) {
		for _, address := range of.Refers {
			if next := c.Resources[address]; next != nil && !found[address] {
				found[address] = true
				visit(next)
			}
		}
	}
	visit(r)
	return slices.Sorted(maps.Keys(found))
}
