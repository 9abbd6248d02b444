package language

import (
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
	case len(names) < 2 || slices.Contains([]string{"var", "local", "each", "count", "path", "terraform", "self"}, names[0]):
		return ""
	case names[0] == "data" && len(names) < 3:
		return ""
	case names[0] == "data":
		return strings.Join(names[:3], ".")
	}
	return strings.Join(names[:2], ".")
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
		r.Refers = c.resourcesIn(refs, append([]string(nil), r.DependsOn...))
		r.Awaits = append([]string(nil), r.DependsOn...)
		for _, ref := range refs {
			if name := ResourceOf(ref); name != "" && !strings.HasPrefix(name, schema.DataPrefix) {
				r.Awaits = append(r.Awaits, name)
			}
		}
	}
	for _, i := range c.Imports {
		for _, e := range []hcl.Expression{i.ForEach, i.ID} {
			if r := c.Resources[i.Resource]; r != nil && e != nil {
				r.Refers = c.resourcesIn(e.Variables(), r.Refers)
			}
		}
	}
	for name, p := range c.Providers {
		attributes, _ := p.Body.JustAttributes()
		for _, attribute := range attributes {
			p.refer = c.resourcesIn(attribute.Expr.Variables(), p.refer)
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

// resourcesIn adds the addresses of the resources that references lead to, also through locals.
func (c *Config) resourcesIn(refs []hcl.Traversal, to []string) []string {
	for _, ref := range refs {
		if ref.RootName() == "local" && len(ref) > 1 {
			if step, is := ref[1].(hcl.TraverseAttr); is && c.Locals[step.Name] != nil {
				to = c.resourcesIn(c.Locals[step.Name].Variables(), to)
			}
		} else if address := ResourceOf(ref); address != "" {
			to = append(to, address)
		}
	}
	return to
}

// Dependencies returns the addresses of all managed resources that a resource depends on, as a state notes them.
func (c *Config) Dependencies(r *Resource) []string {
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
	var all []string
	for address := range found {
		if !strings.HasPrefix(address, schema.DataPrefix) {
			all = append(all, address)
		}
	}
	slices.Sort(all)
	return all
}
