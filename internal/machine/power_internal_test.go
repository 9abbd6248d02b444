package machine

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

func TestPowerFailed_saysWhatThePowerIs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		found   string
		restart bool
		want    string
	}{
		"another":   {found: "power on", want: `node web-1 (u1) is "power on", not "power off"`},
		"unknown":   {found: "", want: `Ironic does not know the power state of node web-1 (u1), which must be "power off"`},
		"restarted": {found: "power off", restart: true, want: "node web-1 (u1) was not restarted"},
		"as asked":  {found: "power off", want: "node web-1 (u1): Ironic could not change its power"},
	} {
		node := &ironic.Node{UUID: "u1", Name: "web-1", PowerState: tt.found}
		if got := powerFailed(node, "power off", tt.restart).Fact; !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
