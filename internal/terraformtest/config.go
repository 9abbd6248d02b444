package terraformtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// ErrUnsupported says that a command, or the configuration, needs a real CLI. Nothing has happened then.
var ErrUnsupported = errors.New("needs a real CLI")

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}

// config is the configuration of a workspace.
type config struct {
	files     map[string]*hcl.File
	providers map[string]*providerBlock // by name
	variables map[string]*variable
	locals    map[string]hcl.Expression
	outputs   map[string]*output
	resources map[string]*resource // by address
	imports   []*importBlock
}

type providerBlock struct {
	body  hcl.Body
	at    hcl.Range
	refer []string // addresses of the resources that it refers to
}

type variable struct {
	fallback             hcl.Expression // nil: it must be set
	kind                 cty.Type
	sensitive, ephemeral bool
}

type output struct {
	value     hcl.Expression
	sensitive bool
	at        hcl.Range
}

// resource is a resource or data block.
type resource struct {
	address        string
	kind           *Kind
	provider       *Provider
	body           hcl.Body
	at             hcl.Range
	count, forEach hcl.Expression // nil: none
	dependsOn      []string
	awaits         []string // addresses whose changes a data source waits for: dependsOn, and managed resources that it refers to directly
	preventDestroy bool
	refer          []string // addresses of the resources that it refers to, with dependsOn
}

type importBlock struct {
	resource string         // of the target
	key      hcl.Expression // of the target's instance; nil: it has no key
	id       hcl.Expression
	forEach  hcl.Expression // nil: one import
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

// loadConfig reads the configuration in a directory, for these providers. Errors of the user are in the diagnostics.
func loadConfig(dir string, from Providers, d *diagnostics) (*config, error) {
	c := &config{
		files: map[string]*hcl.File{}, providers: map[string]*providerBlock{}, variables: map[string]*variable{}, locals: map[string]hcl.Expression{},
		outputs: map[string]*output{}, resources: map[string]*resource{},
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
			return nil, unsupported("file %s", base)
		case !strings.HasSuffix(base, ".tf"):
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		file, problems := parser.ParseHCL(text, base)
		if c.files[base] = file; d.addHCL("", problems) {
			continue
		}
		blocks, problems := file.Body.Content(blockTypes)
		if problems.HasErrors() {
			return nil, unsupported("%v", problems)
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

func (c *config) addBlock(from Providers, d *diagnostics, block *hcl.Block) error {
	switch block.Type {
	case "terraform":
		return checkTerraformBlock(from, block)
	case "provider":
		if c.providers[block.Labels[0]] != nil || from.named(block.Labels[0]) == nil {
			return unsupported("provider %s, or several blocks for it", block.Labels[0])
		}
		c.providers[block.Labels[0]] = &providerBlock{body: block.Body, at: block.DefRange}
	case "variable":
		return c.addVariable(d, block)
	case "locals":
		attributes, problems := block.Body.JustAttributes()
		d.addHCL("", problems)
		for name, attribute := range attributes {
			c.locals[name] = attribute.Expr
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

func (c *config) addImport(block *hcl.Block) error {
	attributes, problems := block.Body.JustAttributes()
	if problems.HasErrors() || attributes["to"] == nil || attributes["id"] == nil {
		return unsupported("this import block")
	}
	made := &importBlock{id: attributes["id"].Expr}
	for name, attribute := range attributes {
		switch name {
		case "to", "id":
		case "for_each":
			made.forEach = attribute.Expr
		default:
			return unsupported("%s of an import block", name)
		}
	}
	to := attributes["to"].Expr
	if index, is := to.(*hclsyntax.IndexExpr); is {
		to, made.key = index.Collection, index.Key
	}
	target, problems := hcl.AbsTraversalForExpr(to)
	if problems.HasErrors() {
		return unsupported("this target of an import block")
	}
	if index, is := target[len(target)-1].(hcl.TraverseIndex); is {
		made.key = hcl.StaticExpr(index.Key, to.Range())
	}
	made.resource = resourceOf(target)
	c.imports = append(c.imports, made)
	return nil
}

// checkTerraformBlock accepts only the providers that there are.
func checkTerraformBlock(from Providers, block *hcl.Block) error {
	content, problems := block.Body.Content(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "required_version"}}, Blocks: []hcl.BlockHeaderSchema{{Type: "required_providers"}}})
	if problems.HasErrors() || content.Attributes["required_version"] != nil {
		return unsupported("this terraform block")
	}
	for _, inner := range content.Blocks {
		required, _ := inner.Body.JustAttributes()
		for name := range required {
			if from.named(name) == nil {
				return unsupported("provider %s", name)
			}
		}
	}
	return nil
}

func (c *config) addOutput(d *diagnostics, block *hcl.Block) error {
	attributes, problems := block.Body.JustAttributes()
	if problems.HasErrors() || attributes["value"] == nil {
		return unsupported("this output")
	}
	o := &output{value: attributes["value"].Expr, at: block.DefRange}
	for name, attribute := range attributes {
		switch name {
		case "value", "description":
		case "sensitive":
			d.addHCL("", gohcl.DecodeExpression(attribute.Expr, nil, &o.sensitive))
		default:
			return unsupported("%s of an output", name)
		}
	}
	c.outputs[block.Labels[0]] = o
	return nil
}

func (c *config) addResource(from Providers, d *diagnostics, block *hcl.Block) error {
	name, address := block.Labels[0], block.Labels[0]+"."+block.Labels[1]
	if block.Type == "data" {
		name, address = dataPrefix+name, dataPrefix+address
	}
	p, kind := from.kind(name)
	if kind == nil {
		return unsupported("type %s", name)
	}
	content, remain, problems := block.Body.PartialContent(metaArguments)
	if c.resources[address] != nil || problems.HasErrors() {
		return unsupported("%s: %v", address, problems)
	}
	r := &resource{address: address, kind: kind, provider: p, body: remain, at: block.DefRange}
	for name, attribute := range content.Attributes {
		switch name {
		case "count":
			r.count = attribute.Expr
		case "for_each":
			r.forEach = attribute.Expr
		case "depends_on":
			on, problems := hcl.ExprList(attribute.Expr)
			d.addHCL("", problems)
			for _, one := range on {
				to, problems := hcl.AbsTraversalForExpr(one)
				d.addHCL("", problems)
				r.dependsOn = append(r.dependsOn, resourceOf(to))
			}
		default:
			return unsupported("%s of %s", name, address)
		}
	}
	for _, inner := range content.Blocks {
		if err := r.addLifecycle(d, inner); err != nil {
			return err
		}
	}
	c.resources[address] = r
	return nil
}

func (r *resource) addLifecycle(d *diagnostics, block *hcl.Block) error {
	attributes, problems := block.Body.JustAttributes()
	if problems.HasErrors() || block.Type != "lifecycle" {
		return unsupported("%s block of %s", block.Type, r.address)
	}
	for name, attribute := range attributes {
		if name != "prevent_destroy" {
			return unsupported("%s of %s", name, r.address)
		}
		d.addHCL("", gohcl.DecodeExpression(attribute.Expr, nil, &r.preventDestroy))
	}
	return nil
}

// resourceOf returns the address of the resource that a reference begins with; "" if it is something else.
func resourceOf(to hcl.Traversal) string {
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
func (c *config) refer() error {
	for _, r := range c.resources {
		refs := r.kind.references(r.body)
		for _, e := range []hcl.Expression{r.count, r.forEach} {
			if e != nil {
				refs = append(refs, e.Variables()...)
			}
		}
		r.refer = c.resourcesIn(refs, append([]string(nil), r.dependsOn...))
		r.awaits = append([]string(nil), r.dependsOn...)
		for _, ref := range refs {
			if name := resourceOf(ref); name != "" && !strings.HasPrefix(name, dataPrefix) {
				r.awaits = append(r.awaits, name)
			}
		}
	}
	for _, i := range c.imports {
		for _, e := range []hcl.Expression{i.forEach, i.id} {
			if r := c.resources[i.resource]; r != nil && e != nil {
				r.refer = c.resourcesIn(e.Variables(), r.refer)
			}
		}
	}
	for name, p := range c.providers {
		attributes, _ := p.body.JustAttributes()
		for _, attribute := range attributes {
			p.refer = c.resourcesIn(attribute.Expr.Variables(), p.refer)
		}
		for _, r := range c.resources {
			if r.provider.Name != name {
				continue
			}
			if slices.Contains(p.refer, r.address) {
				return unsupported("a provider that refers to its own resources")
			}
			r.refer = append(r.refer, p.refer...)
		}
	}
	for _, r := range c.resources {
		slices.Sort(r.refer)
		r.refer = slices.Compact(r.refer)
	}
	return nil
}

// resourcesIn adds the addresses of the resources that references lead to, also through locals.
func (c *config) resourcesIn(refs []hcl.Traversal, to []string) []string {
	for _, ref := range refs {
		if ref.RootName() == "local" && len(ref) > 1 {
			if step, is := ref[1].(hcl.TraverseAttr); is && c.locals[step.Name] != nil {
				to = c.resourcesIn(c.locals[step.Name].Variables(), to)
			}
		} else if address := resourceOf(ref); address != "" {
			to = append(to, address)
		}
	}
	return to
}

// dependencies returns the addresses of all managed resources that a resource depends on, as a state notes them.
func (c *config) dependencies(r *resource) []string {
	found := map[string]bool{}
	var visit func(of *resource)
	visit = func(of *resource) {
		for _, address := range of.refer {
			if next := c.resources[address]; next != nil && !found[address] {
				found[address] = true
				visit(next)
			}
		}
	}
	visit(r)
	var all []string
	for address := range found {
		if !strings.HasPrefix(address, dataPrefix) {
			all = append(all, address)
		}
	}
	slices.Sort(all)
	return all
}

// holder describes the block that has a part of the configuration.
func (c *config) holder(of *hcl.Range) string {
	for address, r := range c.resources {
		if at := r.at; at.Filename == of.Filename && blockRange(c, at).ContainsPos(of.Start) {
			address, isData := strings.CutPrefix(address, dataPrefix)
			kind := "resource"
			if isData {
				kind = "data"
			}
			parts := strings.SplitN(address, ".", 2)
			return fmt.Sprintf("%s %q %q", kind, parts[0], parts[1])
		}
	}
	for name, p := range c.providers {
		if blockRange(c, p.at).ContainsPos(of.Start) && p.at.Filename == of.Filename {
			return fmt.Sprintf("provider %q", name)
		}
	}
	return ""
}

// blockRange returns the whole of a block that begins at a place.
func blockRange(c *config, at hcl.Range) hcl.Range {
	if block := c.files[at.Filename].OutermostBlockAtPos(at.Start); block != nil {
		if whole, is := block.Body.(interface{ Range() hcl.Range }); is {
			return hcl.RangeBetween(at, whole.Range())
		}
	}
	return at
}
