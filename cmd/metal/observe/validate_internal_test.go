package observe

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

func TestJudge_failsForWhatIsNeeded(t *testing.T) {
	t.Parallel()
	image := &ironic.Node{InstanceInfo: map[string]any{"image_source": "https://images.example.com/debian.qcow2"}}
	iso := &ironic.Node{InstanceInfo: map[string]any{"boot_iso": "https://images.example.com/rescue.iso"}}
	for _, tt := range []struct {
		node      *ironic.Node
		broken    string
		wantFails bool
	}{
		{&ironic.Node{}, "", false},
		{&ironic.Node{}, "power", true},
		{&ironic.Node{}, "management", true},
		{&ironic.Node{}, "network", true},
		{&ironic.Node{}, "storage", true},
		{&ironic.Node{}, "bios", false},
		{&ironic.Node{}, "rescue", false},
		{&ironic.Node{}, "deploy", false},
		{image, "deploy", true},
		{iso, "boot", true},
	} {
		results := map[string]ironic.Validity{"power": {OK: true}, "bios": {OK: true}}
		if tt.broken != "" {
			results[tt.broken] = ironic.Validity{Reason: "missing"}
		}
		if v := judge(tt.node, results); v.failed() != tt.wantFails {
			t.Errorf("%s with %v: %+v", tt.broken, tt.node.InstanceInfo, v)
		}
	}
}
