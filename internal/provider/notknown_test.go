package provider_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
)

// settled are configurations of resources of which each can be made in a new site with the node n1.
func settled(node string) map[string]map[string]any {
	drive := map[string]any{"hostname": "h", "meta_data": `{"a": 1}`}
	return map[string]map[string]any{
		"metal_host":             oneHost(),
		"metal_allocation":       {"resource_class": "a", "traits": []any{"CUSTOM_A"}, "name": "a1"},
		"metal_allocation_group": {"name": "web", "size": 1, "resource_class": "a"},
		"metal_deployment": {
			"node_id": node, "image": settings["metal_deployment"]["image"][0], "config_drive": drive, "on_change": "replace",
			"capabilities": map[string]any{"boot_mode": "uefi"}, "rebuild_triggers": map[string]any{"a": "1"}, "power_state": "on",
		},
		"metal_deploy_template": {
			"name":  "CUSTOM_RAID1",
			"steps": []any{map[string]any{"interface": "bios", "step": "apply_configuration", "priority": 90}},
		},
		"metal_discovery_import": {
			"name": "rack-a", "name_template": map[string]any{"prefix": "rack-", "hardware_details": "serial-number"},
		},
	}
}

// What is not known yet replaces nothing, whichever attribute it is, alone and together with all others: a depends_on on a module makes
// everything unknown that comes from it.
func TestNotKnown_replacesNothing(t *testing.T) {
	t.Parallel()
	for kind := range settled("") {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := startSession(t, nil)
			_, node := s.prepare(rand.New(rand.NewPCG(1, 1)), "metal_allocation") //nolint:gosec // no secret
			config := settled(node(nil))[kind]
			made, said := s.apply(kind, config, nil)
			if failed(said) {
				t.Fatal(describe(said))
			}
			s.configure(nil) // another run
			made = s.read(made)
			all := maps.Clone(config)
			for _, a := range s.schemas.ResourceSchemas[kind].Block.Attributes {
				if !a.Optional && !a.Required || a.WriteOnly || slices.Contains([]string{"adopt", "on_change", "rescue"}, a.Name) {
					continue // the plan refuses these
				}
				one := maps.Clone(config)
				one[a.Name], all[a.Name] = notKnown, notKnown
				s.keeps(kind, a.Name, one, made)
			}
			s.keeps(kind, "everything", all, made)
		})
	}
}

// keeps fails if the plan of a configuration replaces an instance.
func (s *session) keeps(kind, open string, config map[string]any, prior *instance) {
	s.Helper()
	plan, err := s.server.PlanResourceChange(s.Context(), s.planRequest(kind, config, prior))
	if err != nil {
		s.Fatal(err)
	}
	if len(plan.RequiresReplace) > 0 {
		s.Errorf("%s with %s not known is replaced for %v", kind, open, plan.RequiresReplace)
	}
}

// No attribute of any resource has a plan modifier that replaces the resource for a value that is not known yet.
func TestNotKnown_noModifierReplaces(t *testing.T) {
	t.Parallel()
	for _, create := range provider.New("test")().Resources(t.Context()) {
		var described resource.SchemaResponse
		create().Schema(t.Context(), resource.SchemaRequest{}, &described)
		kind := described.Schema.Type().TerraformType(t.Context())
		raw := tftypes.NewValue(kind, tftypes.UnknownValue)
		for name, a := range described.Schema.Attributes {
			text, is := a.(schema.StringAttribute)
			if !is {
				continue
			}
			for _, modifier := range text.PlanModifiers {
				req := planmodifier.StringRequest{
					Path: path.Root(name), PlanValue: types.StringUnknown(), ConfigValue: types.StringUnknown(),
					StateValue: types.StringValue("a"), State: tfsdk.State{Raw: raw, Schema: described.Schema},
					Plan: tfsdk.Plan{Raw: raw, Schema: described.Schema},
				}
				resp := planmodifier.StringResponse{PlanValue: req.PlanValue}
				if modifier.PlanModifyString(t.Context(), req, &resp); resp.RequiresReplace {
					t.Errorf("%s replaces its resource for a value that is not known", name)
				}
			}
		}
	}
}
