package acctest

import (
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/querycheck"
	"github.com/hashicorp/terraform-plugin-testing/querycheck/queryfilter"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// Query is a list block.
type Query struct {
	Type     string            // such as metal_host
	Filters  map[string]string // values of config by attribute, as HCL: a quoted string, true or false
	Limit    int64
	Resource bool // include_resource
}

// Found is a result of a Query.
type Found struct {
	ID, Name string // Name is the display name
	Resource tftypes.Value
}

// Attribute returns an attribute of a found resource as text; "" if it is null.
func (f Found) Attribute(t *testing.T, name string) string {
	t.Helper()
	values := map[string]tftypes.Value{}
	var text *string
	if err := f.Resource.As(&values); err != nil {
		t.Fatal(err)
	}
	if err := values[name].As(&text); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if text == nil {
		return ""
	}
	return *text
}

// Lister is a configured provider that Terraform asks for lists.
type Lister struct {
	server  *provider.Server
	schemas *tfprotov6.GetProviderSchemaResponse
}

// NewLister configures a provider for a site, as Terraform does.
func NewLister(t *testing.T, s *site.Site) *Lister {
	t.Helper()
	return newLister(t, provider.NewServer("test"), s.Endpoint)
}

// NewListerOver configures a provider that reaches a fake Ironic without sockets, so that it can run in virtual time.
func NewListerOver(t *testing.T, fake http.RoundTripper) *Lister {
	t.Helper()
	return newLister(t, provider.NewServerOver("test", fake), "http://ironic.test")
}

func newLister(t *testing.T, server *provider.Server, endpoint string) *Lister {
	t.Helper()
	l := &Lister{server: server}
	var err error
	if l.schemas, err = l.server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{}); err != nil {
		t.Fatal(err)
	}
	settings := object(t, l.schemas.Provider, map[string]string{"endpoint": Quoted(endpoint), "auth_type": Quoted("none")})
	done, err := l.server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{TerraformVersion: "1.14.0", Config: settings})
	if err != nil || len(done.Diagnostics) > 0 {
		t.Fatalf("configure: %v %v", err, done.Diagnostics)
	}
	return l
}

// List sends a Query and passes each result to read, as the provider streams it, until read returns false. It returns the
// diagnostics.
func (l *Lister) List(t *testing.T, q Query, read func(Found) bool) (diagnostics []*tfprotov6.Diagnostic) {
	t.Helper()
	config := object(t, l.schemas.ListResourceSchemas[q.Type], q.Filters)
	valid, err := l.server.ValidateListResourceConfig(t.Context(), &tfprotov6.ValidateListResourceConfigRequest{
		TypeName: q.Type,
		Config:   config,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(valid.Diagnostics) > 0 {
		return valid.Diagnostics
	}
	stream, err := l.server.ListResource(t.Context(), &tfprotov6.ListResourceRequest{
		TypeName: q.Type, Config: config,
		IncludeResource: q.Resource, Limit: q.Limit,
	})
	if err != nil {
		t.Fatal(err)
	}
	for result := range stream.Results {
		diagnostics = append(diagnostics, result.Diagnostics...)
		if result.Identity == nil {
			continue
		}
		if !read(l.found(t, q.Type, result)) {
			break
		}
	}
	return diagnostics
}

// found decodes a result.
func (l *Lister) found(t *testing.T, kind string, result tfprotov6.ListResourceResult) Found {
	t.Helper()
	f := Found{Name: result.DisplayName}
	identity, err := result.Identity.IdentityData.Unmarshal(tftypes.Object{AttributeTypes: map[string]tftypes.Type{"id": tftypes.String}})
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]tftypes.Value{}
	if err := identity.As(&parts); err != nil {
		t.Fatal(err)
	}
	if err := parts["id"].As(&f.ID); err != nil {
		t.Fatal(err)
	}
	if result.Resource != nil {
		if f.Resource, err = result.Resource.Unmarshal(l.schemas.ResourceSchemas[kind].ValueType()); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// WantAsImported fails the test if the resource of a result is not what an import of it puts into state, or if Terraform would
// generate a configuration from it that the provider refuses, unless for a lacking attribute that users must add.
func (l *Lister) WantAsImported(t *testing.T, kind string, f Found, lacks ...string) {
	t.Helper()
	imported, err := l.server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{TypeName: kind, ID: f.ID})
	if err != nil || len(imported.Diagnostics) > 0 {
		t.Fatalf("import %s: %v %v", f.ID, err, imported)
	}
	of := imported.ImportedResources[0]
	read, err := l.server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{
		TypeName: kind, CurrentState: of.State,
		Private: of.Private, CurrentIdentity: of.Identity,
	})
	if err != nil || len(read.Diagnostics) > 0 {
		t.Fatalf("read %s: %v %v", f.ID, err, read)
	}
	want, err := read.NewState.Unmarshal(l.schemas.ResourceSchemas[kind].ValueType())
	if err != nil {
		t.Fatal(err)
	}
	if differences, err := want.Diff(f.Resource); err != nil || len(differences) > 0 {
		t.Errorf("%s is listed otherwise than imported: %v %v", f.ID, differences, err)
	}
	generated, err := l.server.GenerateResourceConfig(t.Context(), &tfprotov6.GenerateResourceConfigRequest{
		TypeName: kind,
		State:    read.NewState,
	})
	if err != nil || len(generated.Diagnostics) > 0 {
		t.Fatalf("generate the configuration of %s: %v %v", f.ID, err, generated)
	}
	valid, err := l.server.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{
		TypeName: kind,
		Config:   generated.Config,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range valid.Diagnostics {
		if slices.ContainsFunc(lacks, func(name string) bool { return problem.Attribute.String() == `AttributeName("`+name+`")` }) {
			continue
		}
		t.Errorf("the generated configuration of %s: %s: %s", f.ID, problem.Summary, problem.Detail)
	}
}

// object encodes a configuration with some attributes.
func object(t *testing.T, schema *tfprotov6.Schema, attributes map[string]string) *tfprotov6.DynamicValue {
	t.Helper()
	kind, _ := schema.ValueType().(tftypes.Object)
	values := map[string]tftypes.Value{}
	for name, attribute := range kind.AttributeTypes {
		switch text, set := attributes[name]; {
		case !set:
			values[name] = tftypes.NewValue(attribute, nil)
		case attribute.Is(tftypes.Bool):
			values[name] = tftypes.NewValue(attribute, text == "true")
		default:
			values[name] = tftypes.NewValue(attribute, strings.Trim(text, `"`))
		}
	}
	config, err := tfprotov6.NewDynamicValue(kind, tftypes.NewValue(kind, values))
	if err != nil {
		t.Fatal(err)
	}
	return &config
}

// Search returns what a Query finds, in order of the IDs, and fails the test on a diagnostic. A CLI that has "terraform query" must find
// the same.
func Search(t *testing.T, s *site.Site, q Query) (all []Found) {
	t.Helper()
	if problems := NewLister(t, s).List(t, q, func(f Found) bool { all = append(all, f); return true }); len(problems) > 0 {
		t.Fatalf("list %s: %s: %s", q.Type, problems[0].Summary, problems[0].Detail)
	}
	slices.SortFunc(all, func(a, b Found) int { return strings.Compare(a.ID, b.ID) })
	if HasQuery(t) {
		t.Run("CLI", func(t *testing.T) { searchByCLI(t, s, q, all) })
	}
	return all
}

// HasQuery reports whether the CLI has "terraform query": Terraform 1.14 and later.
func HasQuery(t *testing.T) bool {
	t.Helper()
	return exec.CommandContext(t.Context(), cliPath(t), "query", "-help").Run() == nil
}

// searchByCLI fails the test unless the CLI finds the same.
func searchByCLI(t *testing.T, s *site.Site, q Query, want []Found) {
	checks := []querycheck.QueryResultCheck{querycheck.ExpectLength(q.Type+".found", len(want))}
	for _, f := range want {
		identity := map[string]knownvalue.Check{"id": knownvalue.StringExact(f.ID)}
		checks = append(checks, querycheck.ExpectIdentity(q.Type+".found", identity),
			querycheck.ExpectResourceDisplayName(q.Type+".found", queryfilter.ByResourceIdentity(identity), knownvalue.StringExact(f.Name)))
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: Factories(),
		Steps: []resource.TestStep{
			{Config: s.Provider() + "output \"site\" {\n  value = \"one\"\n}\n"},
			{Query: true, Config: q.block(), QueryResultChecks: checks},
		},
	})
}

// block writes the Query as HCL.
func (q Query) block() string {
	lines := []string{"list " + Quoted(q.Type) + " \"found\" {", "  provider = metal", fmt.Sprintf("  include_resource = %t", q.Resource)}
	if q.Limit > 0 {
		lines = append(lines, fmt.Sprintf("  limit = %d", q.Limit))
	}
	lines = append(lines, "  config {")
	for _, name := range slices.Sorted(maps.Keys(q.Filters)) {
		lines = append(lines, "    "+name+" = "+q.Filters[name])
	}
	return strings.Join(append(lines, "  }", "}", ""), "\n")
}
