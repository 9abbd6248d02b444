package sharing_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

func TestBindingMode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		flag    any
		applied any
		want    sharing.Mode
		shared  bool
		wrong   bool
	}{
		{"true", true, nil, sharing.Dynamic, true, false},
		{"the word true", "True", nil, sharing.Dynamic, true, false},
		{"false", false, nil, sharing.PreAllocated, false, false},
		{"the word no", "no", "/rest/server-profiles/1", sharing.PreAllocated, false, false},
		{"missing", nil, nil, sharing.Undeclared, false, false},
		{"missing, with a profile that was applied", nil, "/rest/server-profiles/1", sharing.Dynamic, true, false},
		{"neither", "perhaps", nil, "", false, true},
		{"a number", 2.0, nil, "", false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			node := &ironic.Node{Name: "r1", DriverInfo: map[string]any{"server_hardware_uri": "/rest/server-hardware/1"}}
			if tt.flag != nil {
				node.DriverInfo["dynamic_allocation"] = tt.flag
			}
			if tt.applied != nil {
				node.DriverInfo["applied_server_profile_uri"] = tt.applied
			}
			got, err := sharing.BindingOf(node)
			if (err != nil) != tt.wrong || got.Mode != tt.want || got.Shared() != tt.shared {
				t.Errorf("BindingOf = %+v (shared %t), %v; want %q, shared %t", got, got.Shared(), err, tt.want, tt.shared)
			}
		})
	}
}

func TestBindingCapabilities(t *testing.T) {
	t.Parallel()
	node := &ironic.Node{Properties: map[string]any{
		"capabilities": "boot_mode:uefi, server_hardware_type_uri:/rest/server-hardware-types/1 " +
			",server_profile_template_uri:/rest/server-profile-templates/2,nonsense,enclosure_group_uri:/rest/enclosure-groups/3",
	}}
	got, err := sharing.BindingOf(node)
	want := sharing.Binding{
		Mode: sharing.Undeclared, HardwareTypeURI: "/rest/server-hardware-types/1", TemplateURI: "/rest/server-profile-templates/2",
		GroupURI: "/rest/enclosure-groups/3",
	}
	if err != nil || got != want {
		t.Errorf("BindingOf = %+v, %v; want %+v", got, err, want)
	}
}
