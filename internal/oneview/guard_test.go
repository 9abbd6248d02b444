package oneview

import (
	"errors"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Where no OneView is configured there is nobody to ask, and no request is made: the pool of this test could make none.
func TestWithoutAnApplianceOnlySharedNodesAreRefused(t *testing.T) {
	t.Parallel()
	const hardware = "/rest/server-hardware/1"
	pool := &Pool{}
	for name, tt := range map[string]struct {
		info    map[string]any
		refused bool
	}{
		"nothing to do with OneView":       {map[string]any{"redfish_address": "https://bmc"}, false},
		"dynamic, and no hardware":         {map[string]any{keyDynamic: true}, false},
		"undeclared":                       {map[string]any{keyHardware: hardware}, false},
		"pre-allocated":                    {map[string]any{keyHardware: hardware, keyDynamic: "false"}, false},
		"dynamic":                          {map[string]any{keyHardware: hardware, keyDynamic: true}, true},
		"dynamic, in words":                {map[string]any{keyHardware: hardware, keyDynamic: "True"}, true},
		"undeclared with applied profile":  {map[string]any{keyHardware: hardware, keyApplied: "/rest/server-profiles/1"}, true},
		"neither declared true nor false":  {map[string]any{keyHardware: hardware, keyDynamic: "perhaps"}, true},
		"dynamic, with an applied profile": {map[string]any{keyHardware: hardware, keyDynamic: true, keyApplied: "/rest/server-profiles/1"}, true},
	} {
		for _, verb := range []ironic.Verb{nodes.TargetActive, nodes.TargetRebuild, nodes.TargetProvide, nodes.TargetClean, nodes.TargetInspect, nodes.TargetDeleted, ""} {
			err := pool.Ready(t.Context(), &ironic.Node{UUID: "u", Name: "blade-1", DriverInfo: tt.info}, verb)
			if (err != nil) != tt.refused {
				t.Errorf("%s, %q: %v", name, verb, err)
			}
			var unguarded *UnguardedError
			if errors.As(err, &unguarded) && !strings.Contains(err.Error(), "blade-1") {
				t.Errorf("%s, %q: %q does not name the node", name, verb, err)
			}
		}
	}
}
