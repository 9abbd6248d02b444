package language

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/core"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/schema"
)

// Module is the root module, or one that a module block calls.
type Module struct {
	Path   string // begins the addresses of its resources, such as "module.fleet."; empty for the root module
	Dir    string // relative to the workspace, or absolute
	Parent *Module
	Called map[string]*Module // by the name of the block

	Arguments map[string]hcl.Expression // of the block, which Parent evaluates
	At        hcl.Range                 // of the block
	Variables map[string]*Variable
	Locals    map[string]hcl.Expression
	Outputs   map[string]*Output
	Checks    []*Rule
}

// Rule is a validation, a precondition, a postcondition, or an assertion of a check.
type Rule struct {
	Condition, Message hcl.Expression
	At                 hcl.Range
}

func newModule(path, dir string, parent *Module) *Module {
	return &Module{
		Path: path, Dir: dir, Parent: parent, Called: map[string]*Module{},
		Variables: map[string]*Variable{}, Locals: map[string]hcl.Expression{}, Outputs: map[string]*Output{},
	}
}

// All returns a module and those below it.
func (m *Module) All() []*Module {
	all := []*Module{m}
	for _, name := range slices.Sorted(maps.Keys(m.Called)) {
		all = append(all, m.Called[name].All()...)
	}
	return all
}

// addCall reads a module block and the module that it calls. Only a module in a directory, called once, with the providers of its caller,
// needs no CLI.
func (c *Config) addCall(m *Module, from schema.Providers, root string, d *Diagnostics, block *hcl.Block) error {
	attributes, problems := block.Body.JustAttributes()
	name := block.Labels[0]
	for _, meta := range []string{"count", "for_each", "providers", "version", "depends_on"} {
		if attributes[meta] != nil {
			return core.Unsupported("%s of module %s", meta, name)
		}
	}
	if problems.HasErrors() || attributes["source"] == nil || m.Called[name] != nil {
		return core.Unsupported("module %s", name)
	}
	source, problems := attributes["source"].Expr.Value(nil)
	if problems.HasErrors() || !strings.HasPrefix(source.AsString(), ".") && !filepath.IsAbs(source.AsString()) {
		return core.Unsupported("the source of module %s", name)
	}
	child := newModule(m.Path+"module."+name+".", Within(m.Dir, source.AsString()), m)
	child.At, child.Arguments = block.DefRange, map[string]hcl.Expression{}
	m.Called[name] = child
	if err := c.read(child, from, root, d); err != nil {
		return err
	}
	for argument, attribute := range attributes {
		if argument == "source" {
			continue
		}
		if child.Variables[argument] == nil {
			return core.Unsupported("the argument %s of module %s", argument, name)
		}
		child.Arguments[argument] = attribute.Expr
	}
	for variable, v := range child.Variables {
		if v.fallback == nil && child.Arguments[variable] == nil {
			return core.Unsupported("module %s without %s", name, variable)
		}
	}
	return nil
}

// read reads the files of a module.
func (c *Config) read(m *Module, from schema.Providers, root string, d *Diagnostics) error {
	names, err := filepath.Glob(filepath.Join(Within(root, m.Dir), "*"))
	if err != nil {
		return err
	}
	var blocks hcl.Blocks
	for _, name := range names {
		base := filepath.Base(name)
		switch {
		case slices.ContainsFunc([]string{".tfvars", ".tf.json", ".tofu", "override.tf", ".tfquery.hcl"}, func(end string) bool {
			return strings.HasSuffix(base, end)
		}):
			return core.Unsupported("file %s", base)
		case !strings.HasSuffix(base, ".tf"):
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		shown := filepath.Join(m.Dir, base)
		file, problems := hclsyntax.ParseConfig(text, shown, hcl.InitialPos)
		if c.files[shown] = file; d.AddHCL("", problems) {
			continue
		}
		if function := missingFunction(file, from); function != "" {
			return core.Unsupported("function %s", function)
		}
		content, problems := file.Body.Content(blockTypes)
		if problems.HasErrors() {
			return core.Unsupported("%v", problems)
		}
		blocks = append(blocks, content.Blocks...)
	}
	for _, block := range blocks {
		if err := c.addBlock(m, from, root, d, block); err != nil {
			return err
		}
	}
	return nil
}

// addRule reads a block with a condition and an error_message.
func addRule(to *[]*Rule, block *hcl.Block) error {
	attributes, problems := block.Body.JustAttributes()
	if problems.HasErrors() || attributes["condition"] == nil || attributes["error_message"] == nil {
		return core.Unsupported("this %s", block.Type)
	}
	condition := attributes["condition"].Expr
	*to = append(*to, &Rule{Condition: condition, Message: attributes["error_message"].Expr, At: condition.Range()})
	return nil
}

// references returns what the condition and the message of rules refer to.
func references(rules ...[]*Rule) (refs []hcl.Traversal) {
	for _, rule := range slices.Concat(rules...) {
		refs = append(append(refs, rule.Condition.Variables()...), rule.Message.Variables()...)
	}
	return refs
}
