// Package language reads the configuration language: blocks, what they refer to, variables and functions. It prints diagnostics with the
// part of the configuration that they are about.
package language

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/core"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/schema"
)

// Config is the configuration of a workspace: its root module, and what all modules have.
type Config struct {
	*Module

	files     map[string]*hcl.File
	Providers map[string]*ProviderBlock // by name
	Resources map[string]*Resource      // by address
	Imports   []*Import
	Moves     []Move
}

// Move is a moved block.
type Move struct{ From, To string }

// ProviderBlock is a provider block.
type ProviderBlock struct {
	Body  hcl.Body
	At    hcl.Range
	refer []string // addresses of the resources that it refers to
}

// Variable is a variable block.
type Variable struct {
	Rules                []*Rule
	fallback             hcl.Expression // nil: it must be set
	kind                 cty.Type
	defaults             *typeexpr.Defaults // of optional attributes in kind; nil: none
	isExpression         bool               // a text for it is an expression, and not the value
	sensitive, ephemeral bool
	isRequired           bool // null means the default
}

// Output is an output block.
type Output struct {
	Value     hcl.Expression
	Rules     []*Rule // preconditions
	Sensitive bool
	At        hcl.Range
}

// Resource is a resource or data block.
type Resource struct {
	Module         *Module
	Address        string
	Before, After  []*Rule // preconditions and postconditions
	Kind           *schema.Kind
	Provider       *schema.Provider
	Body           hcl.Body
	At             hcl.Range
	Count, ForEach hcl.Expression // nil: none
	DependsOn      []string
	Awaits         []string // addresses whose changes a data source waits for: DependsOn, and managed resources that it refers to directly
	PreventDestroy bool
	Refers         []string // addresses of the resources that it refers to, with DependsOn
}

// Import is an import block.
type Import struct {
	Resource string         // of the target
	Key      hcl.Expression // of the target's instance; nil: it has no key
	ID       hcl.Expression
	ForEach  hcl.Expression // nil: one import
}

// blockTypes are the blocks that this package reads. A block of another type needs a real CLI.
var blockTypes = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
	{Type: "terraform"},
	{Type: "provider", LabelNames: []string{"name"}},
	{Type: "variable", LabelNames: []string{"name"}},
	{Type: "locals"},
	{Type: "output", LabelNames: []string{"name"}},
	{Type: "resource", LabelNames: []string{"type", "name"}},
	{Type: "data", LabelNames: []string{"type", "name"}},
	{Type: "import"},
	{Type: "moved"},
	{Type: "module", LabelNames: []string{"name"}},
	{Type: "check", LabelNames: []string{"name"}},
}}

// metaArguments are what Terraform itself reads of a resource block.
var metaArguments = &hcl.BodySchema{
	Attributes: []hcl.AttributeSchema{{Name: "count"}, {Name: "for_each"}, {Name: "depends_on"}, {Name: "provider"}},
	Blocks:     []hcl.BlockHeaderSchema{{Type: "lifecycle"}, {Type: "provisioner", LabelNames: []string{"type"}}, {Type: "connection"}},
}

// Load reads the configuration in a directory, for these providers. Errors of the user are in the diagnostics.
func Load(dir string, from schema.Providers, d *Diagnostics) (*Config, error) {
	c := &Config{
		Module: newModule("", ".", nil), files: map[string]*hcl.File{},
		Providers: map[string]*ProviderBlock{}, Resources: map[string]*Resource{},
	}
	if err := c.read(c.Module, from, dir, d); err != nil {
		return nil, err
	}
	if err := c.refer(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Config) addBlock(m *Module, from schema.Providers, root string, d *Diagnostics, block *hcl.Block) error {
	switch block.Type {
	case "terraform":
		return checkTerraformBlock(from, block)
	case "provider":
		if m.Parent != nil || c.Providers[block.Labels[0]] != nil || from.Named(block.Labels[0]) == nil {
			return core.Unsupported("provider %s, or several blocks for it", block.Labels[0])
		}
		c.Providers[block.Labels[0]] = &ProviderBlock{Body: block.Body, At: block.DefRange}
	case "variable":
		return m.addVariable(d, block)
	case "locals":
		attributes, problems := block.Body.JustAttributes()
		d.AddHCL("", problems)
		for name, attribute := range attributes {
			m.Locals[name] = attribute.Expr
		}
	case "output":
		return m.addOutput(d, block)
	case "module":
		return c.addCall(m, from, root, d, block)
	case "check":
		return m.addCheck(block)
	case "import":
		if m.Parent != nil {
			return core.Unsupported("import block of a module")
		}
		return c.addImport(block)
	case "moved":
		return c.addMove(m, block)
	default:
		return c.addResource(m, from, d, block)
	}
	return nil
}

func (c *Config) addImport(block *hcl.Block) error {
	attributes, problems := block.Body.JustAttributes()
	if problems.HasErrors() || attributes["to"] == nil || attributes["id"] == nil {
		return core.Unsupported("this import block")
	}
	made := &Import{ID: attributes["id"].Expr}
	for name, attribute := range attributes {
		switch name {
		case "to", "id":
		case "for_each":
			made.ForEach = attribute.Expr
		default:
			return core.Unsupported("%s of an import block", name)
		}
	}
	to := attributes["to"].Expr
	if index, is := to.(*hclsyntax.IndexExpr); is {
		to, made.Key = index.Collection, index.Key
	}
	target, problems := hcl.AbsTraversalForExpr(to)
	if problems.HasErrors() {
		return core.Unsupported("this target of an import block")
	}
	if index, is := target[len(target)-1].(hcl.TraverseIndex); is {
		made.Key = hcl.StaticExpr(index.Key, to.Range())
	}
	made.Resource = InModules(target)
	c.Imports = append(c.Imports, made)
	return nil
}

// addMove reads a block of the root module that moves a resource or an instance to another address of its type.
func (c *Config) addMove(m *Module, block *hcl.Block) error {
	attributes, problems := block.Body.JustAttributes()
	if problems.HasErrors() || m.Parent != nil || len(attributes) != 2 {
		return core.Unsupported("this moved block")
	}
	var ends [2]string
	var kinds [2]string
	for n, name := range []string{"from", "to"} {
		if attributes[name] == nil {
			return core.Unsupported("this moved block")
		}
		at := attributes[name].Expr
		target, problems := hcl.AbsTraversalForExpr(at)
		resource := InModules(target)
		if problems.HasErrors() || resource == "" {
			return core.Unsupported("this %s of a moved block", name)
		}
		ends[n] = string(at.Range().SliceBytes(c.files[block.DefRange.Filename].Bytes))
		parts := strings.Split(resource, ".")
		kinds[n] = parts[len(parts)-2]
	}
	if kinds[0] != kinds[1] {
		return core.Unsupported("a move from %s to %s", kinds[0], kinds[1])
	}
	c.Moves = append(c.Moves, Move{ends[0], ends[1]})
	return nil
}

// checkTerraformBlock accepts only the providers that there are.
func checkTerraformBlock(from schema.Providers, block *hcl.Block) error {
	content, problems := block.Body.Content(&hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "required_version"}},
		Blocks:     []hcl.BlockHeaderSchema{{Type: "required_providers"}},
	})
	if problems.HasErrors() {
		return core.Unsupported("this terraform block")
	}
	if required := content.Attributes["required_version"]; required != nil {
		constraint, _ := required.Expr.Value(nil)
		if constraint.Type() != cty.String || !satisfies(constraint.AsString()) {
			return core.Unsupported("this required_version")
		}
	}
	for _, inner := range content.Blocks {
		required, _ := inner.Body.JustAttributes()
		for name := range required {
			if from.Named(name) == nil {
				return core.Unsupported("provider %s", name)
			}
		}
	}
	return nil
}

// satisfies reports whether Terraform, as this package stands for it, has at least the version that a constraint such as ">= 1.8" names.
func satisfies(constraint string) bool {
	var major, minor, hasMajor, hasMinor int
	if _, err := fmt.Sscanf(core.Version, "%d.%d", &hasMajor, &hasMinor); err != nil {
		panic(err)
	}
	if n, err := fmt.Sscanf(constraint+"\n", ">= %d.%d\n", &major, &minor); n < 2 || err != nil {
		return false
	}
	return hasMajor > major || hasMajor == major && hasMinor >= minor
}

func (m *Module) addOutput(d *Diagnostics, block *hcl.Block) error {
	content, problems := block.Body.Content(&hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "value", Required: true}, {Name: "description"}, {Name: "sensitive"}},
		Blocks:     []hcl.BlockHeaderSchema{{Type: "precondition"}},
	})
	if problems.HasErrors() {
		return core.Unsupported("this output")
	}
	o := &Output{Value: content.Attributes["value"].Expr, At: block.DefRange}
	for _, inner := range content.Blocks {
		if err := addRule(&o.Rules, inner); err != nil {
			return err
		}
	}
	if sensitive := content.Attributes["sensitive"]; sensitive != nil {
		d.AddHCL("", gohcl.DecodeExpression(sensitive.Expr, nil, &o.Sensitive))
	}
	m.Outputs[block.Labels[0]] = o
	return nil
}

// addCheck reads a check block without a data source.
func (m *Module) addCheck(block *hcl.Block) error {
	content, problems := block.Body.Content(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "assert"}}})
	if problems.HasErrors() {
		return core.Unsupported("this check")
	}
	for _, inner := range content.Blocks {
		if err := addRule(&m.Checks, inner); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) addResource(m *Module, from schema.Providers, d *Diagnostics, block *hcl.Block) error {
	name, address := block.Labels[0], block.Labels[0]+"."+block.Labels[1]
	if block.Type == "data" {
		name, address = schema.DataPrefix+name, schema.DataPrefix+address
	}
	address = m.Path + address
	p, kind := from.Kind(name)
	if kind == nil {
		return core.Unsupported("type %s", name)
	}
	content, remain, problems := block.Body.PartialContent(metaArguments)
	if c.Resources[address] != nil || problems.HasErrors() {
		return core.Unsupported("%s: %v", address, problems)
	}
	r := &Resource{Module: m, Address: address, Kind: kind, Provider: p, Body: remain, At: block.DefRange}
	for name, attribute := range content.Attributes {
		switch name {
		case "count":
			r.Count = attribute.Expr
		case "for_each":
			r.ForEach = attribute.Expr
		case "depends_on":
			on, problems := hcl.ExprList(attribute.Expr)
			d.AddHCL("", problems)
			for _, one := range on {
				to, problems := hcl.AbsTraversalForExpr(one)
				d.AddHCL("", problems)
				if ResourceOf(to) == "" {
					return core.Unsupported("this depends_on of %s", address)
				}
				r.DependsOn = append(r.DependsOn, m.Path+ResourceOf(to))
			}
		default:
			return core.Unsupported("%s of %s", name, address)
		}
	}
	for _, inner := range content.Blocks {
		if err := r.addLifecycle(d, inner); err != nil {
			return err
		}
	}
	c.Resources[address] = r
	return nil
}

func (r *Resource) addLifecycle(d *Diagnostics, block *hcl.Block) error {
	if block.Type != "lifecycle" {
		return core.Unsupported("%s block of %s", block.Type, r.Address)
	}
	content, problems := block.Body.Content(&hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "prevent_destroy"}},
		Blocks:     []hcl.BlockHeaderSchema{{Type: "precondition"}, {Type: "postcondition"}},
	})
	if problems.HasErrors() {
		return core.Unsupported("lifecycle of %s: %v", r.Address, problems)
	}
	if prevent := content.Attributes["prevent_destroy"]; prevent != nil {
		d.AddHCL("", gohcl.DecodeExpression(prevent.Expr, nil, &r.PreventDestroy))
	}
	for _, inner := range content.Blocks {
		to := &r.Before
		if inner.Type == "postcondition" {
			to = &r.After
		}
		if err := addRule(to, inner); err != nil {
			return err
		}
	}
	return nil
}
