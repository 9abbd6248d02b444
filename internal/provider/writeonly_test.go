package provider_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Each secret that is sent once has a version beside it, which is a text: the version of a secret in a vault is often no number.
func TestWriteOnly_versionsAreTexts(t *testing.T) {
	t.Parallel()
	schemas, err := startSession(t, nil).server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	var look func(at string, attributes []*tfprotov6.SchemaAttribute)
	look = func(at string, attributes []*tfprotov6.SchemaAttribute) {
		for _, a := range attributes {
			if a.NestedType != nil {
				look(at+"."+a.Name, a.NestedType.Attributes)
			}
			if !a.WriteOnly {
				continue
			}
			found++
			i := slices.IndexFunc(attributes, func(other *tfprotov6.SchemaAttribute) bool { return other.Name == a.Name+"_version" })
			if i < 0 || !attributes[i].Type.Is(tftypes.String) || !strings.Contains(attributes[i].Description, "A change sends `"+
				a.Name+"` again") {
				t.Errorf("%s.%s has no version that is a text with the usual description", at, a.Name)
			}
		}
	}
	for kind, schema := range schemas.ResourceSchemas {
		look(kind, schema.Block.Attributes)
	}
	if found < 5 {
		t.Errorf("found %d write-only attributes", found)
	}
}

// A CLI without write-only arguments would store the password of a rescue system: it is refused when it validates the configuration,
// by the name of the attribute.
func TestWriteOnly_rescuePasswordIsRefusedByOldCLIs(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	const kind, password = "metal_deployment", "hunter2-and-rescue"
	config := s.value(s.kind(kind), map[string]any{
		"node_id": "n1", "image": map[string]any{"url": "http://images.test/a", "checksum": strings.Repeat("a1", 32)},
		"rescue": map[string]any{"password_wo": password, "password_wo_version": "1"},
	})
	for _, able := range []bool{true, false} {
		resp, err := s.server.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{
			TypeName: kind, Config: s.dynamic(config),
			ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: able},
		})
		if err != nil {
			t.Fatal(err)
		}
		said := describe(resp.Diagnostics)
		if failed(resp.Diagnostics) == able || strings.Contains(said, password) || (!able && !strings.Contains(said, "password_wo")) {
			t.Errorf("with write-only arguments %t: %q", able, said)
		}
	}
}
