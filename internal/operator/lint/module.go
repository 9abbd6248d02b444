package lint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
)

// module is a directory of a configuration.
type module struct {
	dir    string
	values map[string][]value // of local.NAME and var.NAME
	shapes Shape              // of variables
	blocks hcl.Blocks         // the others
}

// known are the blocks that matter here.
var known = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
	{Type: "locals"},
	{Type: "check", LabelNames: []string{"name"}},
	{Type: "config"}, // of an action or a list
	{Type: "variable", LabelNames: []string{"name"}},
	{Type: "module", LabelNames: []string{"name"}},
	{Type: "provider", LabelNames: []string{"name"}},
	{Type: "resource", LabelNames: []string{"type", "name"}},
	{Type: "data", LabelNames: []string{"type", "name"}},
	{Type: "action", LabelNames: []string{"type", "name"}},
	{Type: "list", LabelNames: []string{"type", "name"}},
}}

var (
	files = regexp.MustCompile(`^[^.].*\.(tf|tofu|tfquery\.hcl)(\.json)?$|^(terraform|.*\.auto)\.tfvars(\.json)?$`)
	ours  = regexp.MustCompile(`terraform-provider-metal(?:\.git)?//modules/([a-z-]+)`)
)

// read reads the files of a directory. inputs are the arguments of its call.
func read(dir string, inputs map[string]value) (*module, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("could not read the configuration: %w", err)
	}
	m := &module{dir: dir, values: map[string][]value{}, shapes: Shape{}}
	for name, input := range inputs {
		m.values["var."+name] = []value{input}
	}
	for _, entry := range entries {
		if !files.MatchString(entry.Name()) {
			continue
		}
		parse := hclparse.NewParser().ParseHCLFile
		if strings.HasSuffix(entry.Name(), ".json") {
			parse = hclparse.NewParser().ParseJSONFile
		}
		file, faults := parse(filepath.Join(dir, entry.Name()))
		if faults.HasErrors() {
			return nil, faults
		}
		if strings.Contains(entry.Name(), ".tfvars") && inputs == nil {
			m.set("var.", file.Body)
			continue
		}
		content, _, _ := file.Body.PartialContent(known) // Terraform reports other faults
		m.add(content.Blocks)
	}
	return m, nil
}

// set adds the attributes in a body to the values of names with a prefix.
func (m *module) set(prefix string, body hcl.Body) {
	attributes, _ := body.JustAttributes()
	for name, a := range attributes {
		m.values[prefix+name] = append(m.values[prefix+name], value{a.Expr, m, nil})
	}
}

func (m *module) add(blocks hcl.Blocks) {
	for _, block := range blocks {
		attributes, _ := block.Body.JustAttributes()
		switch block.Type {
		case "locals":
			m.set("local.", block.Body)
		case "variable":
			name := block.Labels[0]
			for _, part := range []string{"type", "default"} {
				if a := attributes[part]; a != nil {
					m.values["var."+name] = append(m.values["var."+name], value{a.Expr, m, nil})
				}
			}
			if kind := attributes["type"]; kind != nil {
				m.shapes[name] = typed(kind.Expr)
			}
		case "check":
			content, _, _ := block.Body.PartialContent(known)
			m.add(content.Blocks)
		default:
			m.blocks = append(m.blocks, block)
		}
	}
}

// Inputs returns the shapes of the variables of the module in a directory.
func Inputs(dir string) (Shape, error) {
	m, err := read(dir, nil)
	if err != nil {
		return nil, err
	}
	return m.shapes, nil
}

// Directories returns what it finds in the configurations in some directories, and in the modules below them that have a local path. A file
// stands for its directory.
func Directories(dirs ...string) ([]Finding, error) {
	l := &linter{found: map[string]Finding{}, open: map[hcl.Expression]bool{}}
	if err := json.Unmarshal(schemaFile, &l.kinds); err != nil {
		return nil, err
	}
	done := map[string]bool{}
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			dir = filepath.Dir(dir)
		}
		if dir = filepath.Clean(dir); done[dir] {
			continue
		}
		done[dir] = true
		if err := l.directory(dir, nil); err != nil {
			return nil, err
		}
	}
	found := slices.SortedFunc(maps.Values(l.found), func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return append([]Finding{}, found...), nil // not nil, for JSON
}

// mostSteps ends the search for values in a module whose names double at each step. Three thousand machines take a fiftieth of it.
const mostSteps = 500_000

// directory checks the module in a directory. above are the directories of the modules that call it.
func (l *linter) directory(dir string, inputs map[string]value, above ...string) error {
	if slices.Contains(above, dir) {
		return nil // which Terraform refuses
	}
	m, err := read(dir, inputs)
	if err != nil {
		return err
	}
	l.steps = mostSteps
	for name, shape := range m.shapes {
		for _, set := range m.values["var."+name] {
			l.check(set, shape, "variable "+name, name)
		}
	}
	for _, block := range m.blocks {
		if err := l.block(m, block, above); err != nil {
			return err
		}
	}
	return nil
}

// block checks a block of a module.
func (l *linter) block(m *module, block *hcl.Block, above []string) error {
	attributes, _ := block.Body.JustAttributes()
	in := value{module: m}
	if loop := attributes["for_each"]; loop != nil {
		in = in.with("each.value", loop.Expr, nil)
	}
	content, _, _ := block.Body.PartialContent(known)
	for _, config := range content.Blocks {
		settings, _ := config.Body.JustAttributes()
		maps.Copy(attributes, settings)
	}
	source, kind := "", block.Labels[0]
	if a := attributes["source"]; a != nil && block.Type == "module" {
		source = nameOf(a.Expr)
	}
	if is := ours.FindStringSubmatch(source); is != nil {
		kind = is[1]
	} else if source != "" {
		kind = ""
	}
	arguments := map[string]value{}
	for name, a := range attributes {
		arguments[name] = in.of(a.Expr)
		l.check(in.of(a.Expr), l.kinds[block.Type][kind][name], block.Type+" "+strings.Join(block.Labels, "."), name)
	}
	if strings.HasPrefix(source, "./") || strings.HasPrefix(source, "../") {
		return l.directory(filepath.Join(m.dir, source), arguments, append(above[:len(above):len(above)], m.dir)...)
	}
	return nil
}
