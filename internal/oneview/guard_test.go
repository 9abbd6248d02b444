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

// A node may wait for hours between Ready and Still.
func TestAMachineThatLosesItsProfileInTheQueueIsNotBooted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		verb      ironic.Verb
		uncleaned bool // automated_clean is false
		refused   string
	}{
		{verb: nodes.TargetActive, refused: "has no server profile"},
		{verb: nodes.TargetRebuild, refused: "has no server profile"},
		{verb: nodes.TargetProvide, refused: "its server profile for cleaning was removed"},
		{verb: nodes.TargetClean, refused: "its server profile for cleaning was removed"},
		{verb: nodes.TargetInspect, refused: "its server profile for inspecting was removed"},
		{verb: nodes.TargetProvide, uncleaned: true},
		{verb: nodes.TargetDeleted},
		{verb: ""},
	} {
		t.Run(string(tt.verb), func(t *testing.T) {
			t.Parallel()
			inPoolTime(t, func(t *testing.T) {
				s := newPoolSite(t, 1)
				s.ironic.Set(nodeName(0), "provision_state", "manageable")
				s.ironic.Set(nodeName(0), "automated_clean", !tt.uncleaned)
				if _, err := s.pool(t).Prepare(t.Context(), PrepareOptions{NodeID: s.node(t, nodeName(0)).UUID}); err != nil {
					t.Fatal(err)
				}
				pool, node := s.pool(t), s.read(t, nodeName(0))
				for _, ask := range []func() error{
					func() error { return pool.Ready(t.Context(), node, tt.verb) },
					func() error { return pool.Still(t.Context(), node, tt.verb) },
				} {
					if err := ask(); err != nil {
						t.Fatalf("with its profile: %v", err)
					}
				}
				s.oneview.ReleaseHardware(s.hardware[0])
				err := pool.Still(t.Context(), node, tt.verb)
				if (err == nil) != (tt.refused == "") || (err != nil && !strings.Contains(err.Error(), tt.refused)) {
					t.Errorf("without its profile: %v, want %q", err, tt.refused)
				}
			})
		})
	}
}
