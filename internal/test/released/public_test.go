package released_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
)

// TestPublic_isKept compares what users rely on with public.txt: attributes and their types, notes in Ironic, variables of the
// environment, metrics, exit codes and
// JSON. docs/guides/stability.md promises that none of it goes within a major version. What is new
// is added with -update.
func TestPublic_isKept(t *testing.T) {
	t.Parallel()
	found := slices.Concat(publicSchema(t), publicSource(t), publicModules(t))
	for i, line := range found {
		found[i] = strings.ReplaceAll(line, "tftypes.", "")
	}
	slices.Sort(found)
	found = slices.Compact(found)
	const file = "public.txt"
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(found, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	kept := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range kept {
		if !slices.Contains(found, line) {
			t.Errorf("%q is gone. From 1.0 on, docs/guides/stability.md promises it until the next major version. Before, say so in "+
				".changes, and write the list: go test ./internal/test/released -run Public -update", line)
		}
	}
	for _, line := range found {
		if !slices.Contains(kept, line) {
			t.Errorf("%q is new: go test ./internal/test/released -run Public -update", line)
		}
	}
}

// publicSchema lists what configurations and states have.
func publicSchema(t *testing.T) (lines []string) {
	t.Helper()
	server := provider.NewServer("test")
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	identities, err := server.GetResourceIdentitySchemas(t.Context(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		t.Fatal(err)
	}
	lines = attributes("provider metal", schemas.Provider.Block.Attributes)
	for name, s := range schemas.ResourceSchemas {
		lines = append(lines, "resource "+name+": state version "+strconv.FormatInt(s.Version, 10))
		lines = append(lines, attributes("resource "+name, s.Block.Attributes)...)
	}
	for name, s := range schemas.DataSourceSchemas {
		lines = append(lines, attributes("data source "+name, s.Block.Attributes)...)
	}
	for name, s := range schemas.EphemeralResourceSchemas {
		lines = append(lines, attributes("ephemeral resource "+name, s.Block.Attributes)...)
	}
	for name, s := range schemas.ListResourceSchemas {
		lines = append(lines, attributes("list resource "+name, s.Block.Attributes)...)
	}
	for name, s := range schemas.ActionSchemas {
		lines = append(lines, attributes("action "+name, s.Schema.Block.Attributes)...)
	}
	for name, s := range identities.IdentitySchemas {
		for _, a := range s.IdentityAttributes {
			lines = append(lines, "identity "+name+"."+a.Name+": "+a.Type.String())
		}
	}
	for name, f := range schemas.Functions {
		signature := []string{}
		for _, p := range f.Parameters {
			signature = append(signature, p.Type.String())
		}
		if f.VariadicParameter != nil {
			signature = append(signature, f.VariadicParameter.Type.String()+"...")
		}
		lines = append(lines, "function "+name+"("+strings.Join(signature, ", ")+"): "+f.Return.Type.String())
	}
	return lines
}

// attributes lists attributes and those within them. An optional attribute may also become computed, so that is not said.
func attributes(of string, all []*tfprotov6.SchemaAttribute) (lines []string) {
	for _, a := range all {
		path := of + "." + a.Name
		words := "computed"
		switch {
		case a.Required:
			words = "required"
		case a.Optional:
			words = "optional"
		}
		if a.WriteOnly {
			words += ", write-only"
		}
		if a.NestedType == nil {
			lines = append(lines, path+": "+a.Type.String()+", "+words)
			continue
		}
		lines = append(lines, path+": "+a.NestedType.Nesting.String()+", "+words)
		lines = append(lines, attributes(path, a.NestedType.Attributes)...)
	}
	return lines
}

var (
	noteKey  = regexp.MustCompile(`^terraform_metal_\w+$`)
	variable = regexp.MustCompile(`^(METAL|ONEVIEW|OS|MAX_CONCURRENT)_[A-Z_]*[A-Z]$`)
)

// publicSource lists what the source says to users besides schemas.
func publicSource(t *testing.T) (lines []string) {
	t.Helper()
	const root = "../../.."
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		of := strings.TrimPrefix(filepath.Dir(path), root+"/")
		inProduct := strings.HasPrefix(of, "cmd/metal") || strings.HasPrefix(of, "internal/") &&
			!strings.HasPrefix(of, "internal/fake/") && !strings.HasPrefix(of, "internal/test/")
		if err != nil || !inProduct || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lines = append(lines, publicNode(of, n)...)
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// publicNode lists what a node of the source of a package says.
func publicNode(path string, n ast.Node) (lines []string) {
	switch n := n.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(n.Value) // that of a number is no text
		switch {
		case noteKey.MatchString(text):
			lines = append(lines, "note "+text)
		case variable.MatchString(text):
			lines = append(lines, "environment "+text)
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if path == "cmd/metal/cli" && regexp.MustCompile(`^Exit[A-Z]`).MatchString(name.Name) && name.Name != "ExitCodes" {
				lines = append(lines, "exit code "+types.ExprString(n.Values[i])+": "+strings.TrimPrefix(name.Name, "Exit"))
			}
		}
	case *ast.CompositeLit:
		if path == "internal/operator/metrics" && n.Type != nil && types.ExprString(n.Type) == "Family" {
			lines = append(lines, metric(n))
		}
	case *ast.TypeSpec:
		if s, is := n.Type.(*ast.StructType); is && printsJSON(path, n.Name.Name) {
			lines = jsonKeys(path+"."+n.Name.Name, s)
		}
	}
	return lines
}

// printsJSON reports whether a type is in JSON that users read, or that a later version reads: output, lock files, notes in Ironic.
func printsJSON(path, name string) bool {
	return strings.HasPrefix(path, "internal/operator/") || strings.HasPrefix(path, "cmd/metal") ||
		slices.Contains([]string{"internal/machine/notes", "internal/machine/hardware"}, path) ||
		slices.Contains([]string{
			"internal/machine.Failure", "internal/ironic.CleanStep", "internal/ironic.Indicator", "internal/ironic.IndicatorState",
		}, path+"."+name)
}

var ofModule = regexp.MustCompile(`(?m)^(variable|output) "(\w+)"`)

// publicModules lists the inputs and outputs of the modules.
func publicModules(t *testing.T) (lines []string) {
	t.Helper()
	files, err := filepath.Glob("../../../modules/*/*.tf")
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no module: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range ofModule.FindAllStringSubmatch(string(text), -1) {
			lines = append(lines, "module "+filepath.Base(filepath.Dir(file))+" "+found[1]+" "+found[2])
		}
	}
	return lines
}

// metric is a family of metrics: name, kind and labels.
func metric(n *ast.CompositeLit) string {
	var parts []string
	for _, e := range n.Elts[:3] {
		parts = append(parts, strings.ReplaceAll(types.ExprString(e), `"`, ""))
	}
	labels := []string{}
	if list, is := n.Elts[2].(*ast.CompositeLit); is {
		for _, e := range list.Elts {
			labels = append(labels, strings.ReplaceAll(types.ExprString(e), `"`, ""))
		}
	}
	return "metric " + parts[0] + ": " + parts[1] + " {" + strings.Join(labels, ", ") + "}"
}

// jsonKeys are the keys of a type in JSON.
func jsonKeys(of string, s *ast.StructType) (lines []string) {
	for _, field := range s.Fields.List {
		if field.Tag == nil {
			continue
		}
		tag, _ := strconv.Unquote(field.Tag.Value)
		key, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if key != "" && key != "-" {
			lines = append(lines, "json "+of+" "+key+": "+types.ExprString(field.Type))
		}
	}
	return lines
}
