package provider_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
)

const withoutValue = "Object without a value"

// validated returns what the provider says of a configuration of a resource.
func (s *session) validated(kind string, config *tfprotov6.DynamicValue) []*tfprotov6.Diagnostic {
	s.Helper()
	resp, err := s.server.ValidateResourceConfig(s.Context(), &tfprotov6.ValidateResourceConfigRequest{
		TypeName: kind, Config: config,
		ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
	})
	if err != nil {
		s.Fatal(err)
	}
	return resp.Diagnostics
}

// hollow are the objects of a schema that may have no value, with one of their keys.
func hollow(t *testing.T, attributes []*tfprotov6.SchemaAttribute) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, a := range attributes {
		if a.NestedType == nil || !a.Required && !a.Optional {
			continue
		}
		inside := hollow(t, a.NestedType.Attributes)
		if a.NestedType.Nesting != tfprotov6.SchemaObjectNestingModeSingle {
			if len(inside) > 0 {
				t.Errorf("the elements of %s have objects that may be empty, which warnEmpty does not look for", a.Name)
			}
			continue
		}
		if !slices.ContainsFunc(a.NestedType.Attributes, func(inside *tfprotov6.SchemaAttribute) bool { return inside.Required }) {
			found[a.Name] = a.NestedType.Attributes[0].Name
		}
	}
	return found
}

// Terraform drops the keys of an object that do not exist, so an object whose keys are all misspelt has no value.
func TestValidate_everyObjectWithoutAValueWarns(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	tried := 0
	try := func(name string, schema *tfprotov6.Schema, validate func(*tfprotov6.DynamicValue) []*tfprotov6.Diagnostic) {
		for attribute, key := range hollow(t, schema.Block.Attributes) {
			if attribute == "oneview" { // the environment may have its values
				continue
			}
			tried++
			text := describe(validate(s.dynamic(s.value(schema.ValueType(), object{attribute: object{}}))))
			mentions(t, name, text, withoutValue, true)
			mentions(t, name, text, attribute+" has no value. Terraform drops keys that do not exist; the keys are ", true)
			mentions(t, name, text, key, true)
		}
		text := describe(validate(s.dynamic(s.value(schema.ValueType(), object{}))))
		mentions(t, name+" without the objects", text, withoutValue, false)
	}
	for name, schema := range s.schemas.ResourceSchemas {
		try(name, schema, func(config *tfprotov6.DynamicValue) []*tfprotov6.Diagnostic {
			return s.validated(name, config)
		})
	}
	for name, schema := range s.schemas.ActionSchemas {
		try(name, schema.Schema, func(config *tfprotov6.DynamicValue) []*tfprotov6.Diagnostic {
			resp, err := s.server.ValidateActionConfig(t.Context(), &tfprotov6.ValidateActionConfigRequest{
				ActionType: name, Config: config,
			})
			if err != nil {
				t.Fatal(err)
			}
			return resp.Diagnostics
		})
	}
	try("provider", s.schemas.Provider, func(config *tfprotov6.DynamicValue) []*tfprotov6.Diagnostic {
		resp, err := s.server.ValidateProviderConfig(t.Context(), &tfprotov6.ValidateProviderConfigRequest{Config: config})
		if err != nil {
			t.Fatal(err)
		}
		return resp.Diagnostics
	})
	if tried < 20 {
		t.Errorf("only %d objects were tried", tried)
	}
}

func TestValidate_objectsWithAValueDoNotWarn(t *testing.T) {
	t.Parallel()
	s := startSession(t, nil)
	for name, tt := range map[string]struct {
		kind   string
		config object
		warns  string // the object; "": none
	}{
		"a value":                     {"metal_allocation", object{"require": object{"min_cpus": 4}}, ""},
		"a value that is not known":   {"metal_allocation", object{"require": object{"min_cpus": notKnown}}, ""},
		"an object that is not known": {"metal_allocation", object{"require": notKnown}, ""},
		"a write-only value":          {"metal_deployment", object{"config_drive": object{"user_data_wo": "a"}}, ""},
		"an entry of a map":           {"metal_host", object{"ports": object{"52:54:00:aa:00:01": object{}}}, ""},
		"a group of ports":            {"metal_host", object{"port_groups": object{"bond0": object{}}}, ""},
		"an object in an object":      {"metal_host", object{"hardware_changes": object{"rollout": object{}}}, "hardware_changes.rollout"},
		"an object beside a value": {
			"metal_host",
			object{"hardware_changes": object{"on_active": "service", "rollout": object{}}},
			"hardware_changes.rollout",
		},
		"an empty map in an object": {"metal_allocation", object{"require": object{"capabilities": object{}}}, ""},
	} {
		var found []string
		for _, d := range s.validated(tt.kind, s.dynamic(s.value(s.kind(tt.kind), tt.config))) {
			if d.Summary == withoutValue {
				object, _, _ := strings.Cut(d.Detail, " has no value")
				found = append(found, object)
			}
		}
		if got := strings.Join(found, " "); got != tt.warns {
			t.Errorf("%s: warned of %q, want %q", name, got, tt.warns)
		}
	}
}

// A mocked provider is not configured, and makes texts of its own for what Ironic computes: only a configured one refuses them.
func TestValidate_referencesOfAMock(t *testing.T) {
	t.Parallel()
	config := object{
		"node_id": "t0arhul1", "allocation_id": "t0arhul1", "vifs": []any{object{"id": "t0arhul1"}},
		"image": object{"url": "http://images.test/a", "checksum": strings.Repeat("0", 64)},
	}
	s := startSession(t, nil)
	mock := *s
	mock.server = provider.NewServer("test")
	for configured, on := range map[bool]*session{true: s, false: &mock} {
		schema := s.schemas.ResourceSchemas["metal_deployment"]
		text := describe(on.validated("metal_deployment", s.dynamic(s.value(schema.ValueType(), config))))
		mentions(t, "allocation_id", text, "allocation_id must be the UUID of an allocation", configured)
		mentions(t, "vifs", text, "must be the UUID of a Neutron port", configured)
	}
}
