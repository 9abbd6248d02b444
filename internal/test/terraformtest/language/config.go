// Package language reads the configuration language: blocks, what they refer to, variables and functions. It prints diagnostics with the
// part of the configuration that they are about.
package language

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/core"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/terraformtest/schema"
)

// Config is the configuration of a workspace.
type Config struct {
	files     map[string]*hcl.File
	Providers map[string]*ProviderBlock // by name
	variables map[string]*variable
	Locals    map[string]hcl.Expression
	Outputs   map[string]*Output
	Resources map[string]*Resource // by address
	Imports   []*Import
}

// ProviderBlock is a provider block.
type ProviderBlock struct {
	Body  hcl.Body
	At    hcl.Range
	refer []string // addresses of the resources that it refers to
}

type variable struct {
	fallback             hcl.Expression // nil: it must be set
	kind                 cty.Type
	defaults             *typeexpr.Defaults // of optional attributes in kind; nil: none
	isExpression         bool               // a text for it is an expression, and not the value
	sensitive, ephemeral bool
}

// Output is an output block.
type Output struct {
	Value     hcl.Expression
	Sensitive bool
	At        hcl.Range
}

// Resource is a resource or data block.
type Resource struct {
	Address        string
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
}}

// metaArguments are what Terraform itself reads of a resource block.
var metaArguments = &hcl.BodySchema{
	Attributes: []hcl.AttributeSchema{{Name: "count"}, {Name: "for_each"}, {Name: "depends_on"}, {Name: "provider"}},
	Blocks:     []hcl.BlockHeaderSchema{{Type: "lifecycle"}, {Type: "provisioner", LabelNames: []string{"type"}}, {Type: "connection"}},
}

// Load reads the configuration in a directory, for these providers. Errors of the user are in the diagnostics.
func Load(dir string, from schema.Providers, d *Diagnostics) (*Config, error) {
	c := &Config{
		files: map[string]*hcl.File{}, Providers: map[string]*ProviderBlock{}, variables: map[string]*variable{}, Locals: map[string]hcl.Expression{},
		Outputs: map[string]*Output{}, Resources: map[string]*Resource{},
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return nil, err
	}
	parser := hclparse.NewParser()
	var content []*hcl.BodyContent
	for _, name := range names {
		base := filepath.Base(name)
		switch {
		case strings.HasSuffix(base, ".tfvars"), strings.HasSuffix(base, ".tf.json"), strings.HasSuffix(base, ".tofu"), strings.HasSuffix(base, "override.tf"), strings.HasSuffix(base, ".tfquery.hcl"):
			return nil, core.Unsupported("file %s", base)
		case !strings.HasSuffix(base, ".tf"):
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		file, problems := parser.ParseHCL(text, base)
		if c.files[base] = file; d.AddHCL("", problems) {
			continue
		}
		if function := missingFunction(file); function != "" {
			return nil, core.Unsupported("function %s", function)
		}
		blocks, problems := file.Body.Content(blockTypes)
		if problems.HasErrors() {
			return nil, core.Unsupported("%v", problems)
		}
		content = append(content, blocks)
	}
	for _, blocks := range content {
		for _, block := range blocks.Blocks {
			if err := c.addBlock(from, d, block); err != nil {
				return nil, err
			}
		}
	}
	if err := c.refer(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Config) addBlock(from schema.Providers, d *Diagnostics, block *hcl.Block) error {
	switch block.Type {
	case "terraform":
		return checkTerraformBlock(from, block)
	case "provider":
		if c.Providers[block.Labels[0]] != nil || from.Named(block.Labels[0]) == nil {
			return core.Unsupported("provider %s, or several blocks for it", block.Labels[0])
		}
		c.Providers[block.Labels[0]] = &ProviderBlock{Body: block.Body, At: block.DefRange}
	case "variable":
		return c.addVariable(d, block)
	case "locals":
		attributes, problems := block.Body.JustAttributes()
		d.AddHCL("", problems)
		for name, attribute := range attributes {
			c.Locals[name] = attribute.Expr
		}
	case "output":
		return c.addOutput(d, block)
	case "import":
		return c.addImport(block)
	default:
		return c.addResource(from, d, block)
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
	made.Resource = ResourceOf(target)
	c.Imports = append(c.Imports, made)
	return nil
}

// checkTerraformBlock accepts only the providers that there are.
func checkTerraformBlock(from schema.Providers, block *hcl.Block) error {
	content, problems := block.Body.Content(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "required_version"}}, Blocks: []hcl.BlockHeaderSchema{{Type: "required_providers"}}})
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

func (c *Config) addOutput(d *Diagnostics, block *hcl.Block) error {
	attributes, problems := block.Body.JustAttributes()
	if problems.HasErrors() || attributes["value"] == nil {
		return core.Unsupported("this output")
	}
	o := &Output{Value: attributes["value"].Expr, At: block.DefRange}
	for name, attribute := range attributes {
		switch name {
		case "value", "description":
		case "sensitive":
			d.AddHCL("", gohcl.DecodeExpression(attribute.Expr, nil, &o.Sensitive))
		default:
			return core.Unsupported("%s of an output", name)
		}
	}
	c.Outputs[block.Labels[0]] = o
	return nil
}

func (c *Config) addResource(from schema.Providers, d *Diagnostics, block *hcl.Block) error {
	name, address := block.Labels[0], block.Labels[0]+"."+block.Labels[1]
	if block.Type == "data" {
		name, address = schema.DataPrefix+name, schema.DataPrefix+address
	}
	p, kind := from.Kind(name)
	if kind == nil {
		return core.Unsupported("type %s", name)
	}
	content, remain, problems := block.Body.PartialContent(metaArguments)
	if c.Resources[address] != nil || problems.HasErrors() {
		return core.Unsupported("%s: %v", address, problems)
	}
	r := &Resource{Address: address, Kind: kind, Provider: p, Body: remain, At: block.DefRange}
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
				r.DependsOn = append(r.DependsOn, ResourceOf(to))
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
	attributes, problems := block.Body.JustAttributes()
	if problems.HasErrors() || block.Type != "lifecycle" {
		return core.Unsupported("%s block of %s", block.Type, r.Address)
	}
	for name, attribute := range attributes {
		if name != "prevent_destroy" {
			return core.Unsupported("%s of %s", name, r.Address)
		}
		d.AddHCL("", gohcl.DecodeExpression(attribute.Expr, nil, &r.PreventDestroy))
	}
	return nil
}
