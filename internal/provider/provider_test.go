package provider_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/list"
	fwprovider "github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
)

func TestProvider_schemasAreValid(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	p := provider.New("test")()
	var block fwprovider.SchemaResponse
	p.Schema(ctx, fwprovider.SchemaRequest{}, &block)
	if diags := block.Schema.ValidateImplementation(ctx); diags.HasError() {
		t.Errorf("provider: %v", diags)
	}
	for _, make := range p.Resources(ctx) {
		r := make()
		var meta resource.MetadataResponse
		r.Metadata(ctx, resource.MetadataRequest{ProviderTypeName: "metal"}, &meta)
		var got resource.SchemaResponse
		r.Schema(ctx, resource.SchemaRequest{}, &got)
		if diags := got.Schema.ValidateImplementation(ctx); diags.HasError() {
			t.Errorf("%s: %v", meta.TypeName, diags)
		}
		identified, ok := r.(resource.ResourceWithIdentity)
		if !ok {
			t.Errorf("%s has no identity", meta.TypeName)
			continue
		}
		var identity resource.IdentitySchemaResponse
		identified.IdentitySchema(ctx, resource.IdentitySchemaRequest{}, &identity)
		if diags := identity.IdentitySchema.ValidateImplementation(ctx); diags.HasError() ||
			identity.IdentitySchema.Attributes["id"] == nil {
			t.Errorf("identity of %s: %v, %v", meta.TypeName, identity.IdentitySchema, diags)
		}
	}
	lists, ok := p.(fwprovider.ProviderWithListResources)
	if !ok {
		t.Fatal("the provider has no lists")
	}
	for _, make := range lists.ListResources(ctx) {
		l := make()
		var meta resource.MetadataResponse
		l.Metadata(ctx, resource.MetadataRequest{ProviderTypeName: "metal"}, &meta)
		var got list.ListResourceSchemaResponse
		l.ListResourceConfigSchema(ctx, list.ListResourceSchemaRequest{}, &got)
		if diags := got.Schema.ValidateImplementation(ctx); diags.HasError() {
			t.Errorf("list resource %s: %v", meta.TypeName, diags)
		}
	}
	for _, make := range p.DataSources(ctx) {
		d := make()
		var meta datasource.MetadataResponse
		d.Metadata(ctx, datasource.MetadataRequest{ProviderTypeName: "metal"}, &meta)
		var got datasource.SchemaResponse
		d.Schema(ctx, datasource.SchemaRequest{}, &got)
		if diags := got.Schema.ValidateImplementation(ctx); diags.HasError() {
			t.Errorf("data source %s: %v", meta.TypeName, diags)
		}
	}
}

// block is a provider block: values by attribute, those of a nested object such as "oneview.endpoint". "?" stands for a value
// that is not known yet, "{}" for an object without attributes.
type block map[string]string

// value makes a block of a type; prefix says what of it.
func (b block) value(t *testing.T, kind tftypes.Object, prefix string) tftypes.Value {
	t.Helper()
	values := map[string]tftypes.Value{}
	for name, attribute := range kind.AttributeTypes {
		path := prefix + name
		value, set := b[path]
		nested, isObject := attribute.(tftypes.Object)
		inside := slices.ContainsFunc(slices.Collect(maps.Keys(b)), func(key string) bool { return strings.HasPrefix(key, path+".") })
		switch {
		case set && value == "?":
			values[name] = tftypes.NewValue(attribute, tftypes.UnknownValue)
		case isObject && (inside || value == "{}"):
			values[name] = b.value(t, nested, path+".")
		case !set:
			values[name] = tftypes.NewValue(attribute, nil)
		case attribute.Is(tftypes.Bool):
			values[name] = tftypes.NewValue(attribute, value == "true")
		case attribute.Is(tftypes.Number):
			number, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			values[name] = tftypes.NewValue(attribute, number)
		default:
			values[name] = tftypes.NewValue(attribute, value)
		}
	}
	for key := range b {
		name, _, _ := strings.Cut(strings.TrimPrefix(key, prefix), ".")
		if _, known := kind.AttributeTypes[name]; strings.HasPrefix(key, prefix) && !known {
			t.Fatalf("there is no attribute %q", key)
		}
	}
	return tftypes.NewValue(kind, values)
}

// configured returns the diagnostics for a block: those that it causes without the environment or, if there are none, those that
// it causes with it.
func configured(t *testing.T, b block) []*tfprotov6.Diagnostic {
	t.Helper()
	server := provider.NewServer("test")
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	kind, ok := schemas.Provider.ValueType().(tftypes.Object)
	if !ok {
		t.Fatalf("the provider block is a %s", schemas.Provider.ValueType())
	}
	config, err := tfprotov6.NewDynamicValue(kind, b.value(t, kind, ""))
	if err != nil {
		t.Fatal(err)
	}
	valid, err := server.ValidateProviderConfig(t.Context(), &tfprotov6.ValidateProviderConfigRequest{Config: &config})
	if err != nil {
		t.Fatal(err)
	}
	if len(valid.Diagnostics) > 0 {
		return valid.Diagnostics
	}
	done, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: &config})
	if err != nil {
		t.Fatal(err)
	}
	return done.Diagnostics
}

// clearEnvironment removes the settings of the user who runs the tests.
func clearEnvironment(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"METAL_ENDPOINT", "IRONIC_ENDPOINT", "METAL_USERNAME", "METAL_PASSWORD", "OS_CLOUD", "OS_AUTH_URL", "OS_REGION_NAME",
		"MAX_CONCURRENT_PROVISIONING_HOSTS",
		"ONEVIEW_ENDPOINT", "ONEVIEW_USERNAME", "ONEVIEW_PASSWORD", "ONEVIEW_DOMAIN", "ONEVIEW_API_VERSION", "ONEVIEW_CACERT_FILE",
		"ONEVIEW_INSECURE",
	} {
		t.Setenv(name, "")
	}
}
