package provider_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
)

// mayBeSecret matches the names of attributes whose values may contain passwords or tokens.
var mayBeSecret = regexp.MustCompile(
	`(^|_)(url|json|data|checksum|base64|args|loop|kernel|ramdisk|contains|tcp|endpoint|password|token|secret|wo)$`)

// spot is an attribute in a schema.
type spot struct {
	path  []string
	holds tftypes.Type
}

// spots lists the attributes that may have secrets.
func spots(attributes []*tfprotov6.SchemaAttribute, at []string) (all []spot) {
	for _, a := range attributes {
		here := append(at[:len(at):len(at)], a.Name)
		switch {
		case a.NestedType != nil:
			all = append(all, spots(a.NestedType.Attributes, here)...)
		case !a.Required && !a.Optional:
		case a.Type.Is(tftypes.DynamicPseudoType), a.Type.Is(tftypes.String) && (a.Sensitive || a.WriteOnly || mayBeSecret.MatchString(a.Name)):
			all = append(all, spot{here, a.Type})
		}
	}
	return all
}

// only returns a value that is null, except that it has a text at a path.
func only(kind tftypes.Type, at []string, text string) tftypes.Value {
	switch kind := kind.(type) {
	case tftypes.Object:
		values := map[string]tftypes.Value{}
		for name, inner := range kind.AttributeTypes {
			values[name] = tftypes.NewValue(inner, nil)
			if len(at) > 0 && name == at[0] {
				values[name] = only(inner, at[1:], text)
			}
		}
		return tftypes.NewValue(kind, values)
	case tftypes.List:
		return tftypes.NewValue(kind, []tftypes.Value{only(kind.ElementType, at, text)})
	case tftypes.Set:
		return tftypes.NewValue(kind, []tftypes.Value{only(kind.ElementType, at, text)})
	case tftypes.Map:
		return tftypes.NewValue(kind, map[string]tftypes.Value{"key": only(kind.ElementType, at, text)})
	}
	return tftypes.NewValue(tftypes.String, text)
}

// A value that is refused may be a secret, which only the configuration marks as one. So its message shows nothing of it.
func TestRefusedValues_areNotShown(t *testing.T) {
	t.Parallel()
	s := provider.NewServer("test")
	known, err := s.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	try := func(name string, schema *tfprotov6.Schema, validate func(*tfprotov6.DynamicValue) []*tfprotov6.Diagnostic) {
		for _, one := range spots(schema.Block.Attributes, nil) {
			for _, form := range []string{
				"%s", `{"a": "%s",}`, `["%s"]`, "a: %s", `"%s`, "ftp:/user:%[1]s@h/%[1]s", "https://user:%[1]s@h/%[1]s#%[1]s",
			} {
				tried++
				marker := fmt.Sprintf("S3cret%04d", tried) // one that the server has not learnt
				text := fmt.Sprintf(form, marker)
				config, err := tfprotov6.NewDynamicValue(schema.ValueType(), only(schema.ValueType(), one.path, text))
				if err != nil {
					t.Fatalf("%s %s: %v", name, one.path, err)
				}
				for _, d := range validate(&config) {
					if strings.Contains(d.Summary+d.Detail, marker) {
						t.Errorf("%s: %s with %q: %s: %s", name, strings.Join(one.path, "."), text, d.Summary, d.Detail)
					}
				}
			}
		}
	}
	for name, schema := range known.ResourceSchemas {
		try(name, schema, func(config *tfprotov6.DynamicValue) []*tfprotov6.Diagnostic {
			resp, err := s.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{
				TypeName: name, Config: config,
				ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
			})
			if err != nil {
				t.Fatal(err)
			}
			return resp.Diagnostics
		})
	}
	for name, schema := range known.DataSourceSchemas {
		try(name, schema, func(config *tfprotov6.DynamicValue) []*tfprotov6.Diagnostic {
			resp, err := s.ValidateDataResourceConfig(t.Context(), &tfprotov6.ValidateDataResourceConfigRequest{TypeName: name, Config: config})
			if err != nil {
				t.Fatal(err)
			}
			return resp.Diagnostics
		})
	}
	for name, schema := range known.ActionSchemas {
		try(name, schema.Schema, func(config *tfprotov6.DynamicValue) []*tfprotov6.Diagnostic {
			resp, err := s.ValidateActionConfig(t.Context(), &tfprotov6.ValidateActionConfigRequest{ActionType: name, Config: config})
			if err != nil {
				t.Fatal(err)
			}
			return resp.Diagnostics
		})
	}
	try("provider", known.Provider, func(config *tfprotov6.DynamicValue) []*tfprotov6.Diagnostic {
		resp, err := s.ValidateProviderConfig(t.Context(), &tfprotov6.ValidateProviderConfigRequest{Config: config})
		if err != nil {
			t.Fatal(err)
		}
		return resp.Diagnostics
	})
	if tried < 200 {
		t.Errorf("%d values were tried", tried)
	}
}
