package sharing

import (
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
)

// Without an appliance the guard makes no request: in this test it has no client.
func TestNotConfiguredRefusesOnlySharedNodes(t *testing.T) {
	t.Parallel()
	const hardware = "/rest/server-hardware/1"
	for name, tt := range map[string]struct {
		info    map[string]any
		refused bool
	}{
		"not in OneView":                  {map[string]any{"redfish_address": "https://bmc"}, false},
		"dynamic, and no hardware":        {map[string]any{keyDynamic: true}, false},
		"undeclared":                      {map[string]any{keyHardware: hardware}, false},
		"pre-allocated":                   {map[string]any{keyHardware: hardware, keyDynamic: "false"}, false},
		"dynamic":                         {map[string]any{keyHardware: hardware, keyDynamic: true}, true},
		"dynamic, in words":               {map[string]any{keyHardware: hardware, keyDynamic: "True"}, true},
		"undeclared with applied profile": {map[string]any{keyHardware: hardware, keyApplied: "/rest/server-profiles/1"}, true},
		"neither declared true nor false": {map[string]any{keyHardware: hardware, keyDynamic: "perhaps"}, true},
		"dynamic, with an applied profile": {
			map[string]any{keyHardware: hardware, keyDynamic: true, keyApplied: "/rest/server-profiles/1"},
			true,
		},
	} {
		for _, verb := range []ironic.Verb{
			nodes.TargetActive, nodes.TargetRebuild, nodes.TargetProvide, nodes.TargetClean,
			nodes.TargetInspect, nodes.TargetDeleted, "",
		} {
			step := machine.Step{
				Node: &ironic.Node{UUID: "u", Name: "blade-1", DriverInfo: tt.info}, Verb: verb,
				Stage: machine.BeforeQueue,
			}
			err := NotConfigured{}.Check(t.Context(), step)
			if (err != nil) != tt.refused {
				t.Errorf("%s, %q: %v", name, verb, err)
			}
			if failure.Is(err, kindUnguarded) && !strings.Contains(err.Error(), "blade-1") {
				t.Errorf("%s, %q: %q does not name the node", name, verb, err)
			}
		}
	}
}

// A node may wait for a slot for hours between the two stages.
func TestCheckRefusesMachineThatLostItsProfileInTheQueue(t *testing.T) {
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
		{verb: nodes.TargetDeleted, refused: "its server profile for cleaning was removed"},
		{verb: nodes.TargetDeleted, uncleaned: true},
		{verb: ""},
	} {
		t.Run(string(tt.verb), func(t *testing.T) {
			t.Parallel()
			inPoolTime(t, func(t *testing.T) {
				s := newPoolSite(t, 1)
				s.ironic.Set(nodeName(0), "provision_state", "manageable")
				s.ironic.Set(nodeName(0), "automated_clean", !tt.uncleaned)
				if _, err := s.pool(t).Prepare(t.Context(), ProfileSpec{NodeID: s.node(t, nodeName(0)).UUID}); err != nil {
					t.Fatal(err)
				}
				pool, node := s.pool(t), s.read(t, nodeName(0))
				step := machine.Step{Node: node, Verb: tt.verb}
				for _, step.Stage = range []machine.Stage{machine.BeforeWrite, machine.BeforeQueue, machine.BeforeVerb} {
					if err := pool.Check(t.Context(), step); err != nil {
						t.Fatalf("with its profile, at stage %d: %v", step.Stage, err)
					}
				}
				s.oneview.ReleaseHardware(s.hardware[0])
				err := pool.Check(t.Context(), step)
				if (err == nil) != (tt.refused == "") || (err != nil && !strings.Contains(err.Error(), tt.refused)) {
					t.Errorf("without its profile: %v, want %q", err, tt.refused)
				}
			})
		})
	}
}

// For a node without server_hardware_uri, Check makes no request: in this test the pool has no client.
func TestCheckAsksNothingAboutNodesWithoutHardware(t *testing.T) {
	t.Parallel()
	node := &ironic.Node{UUID: "u", DriverInfo: map[string]any{"redfish_address": "https://bmc"}}
	for _, stage := range []machine.Stage{machine.BeforeWrite, machine.BeforeQueue, machine.BeforeVerb} {
		if err := (&Pool{}).Check(t.Context(), machine.Step{Node: node, Verb: nodes.TargetActive, Stage: stage}); err != nil {
			t.Errorf("stage %d: %v", stage, err)
		}
	}
	if (&Pool{}).Prepares(node) {
		t.Error("the machine would leave the pool before it has a slot")
	}
	if node.DriverInfo[keyHardware] = "/rest/server-hardware/1"; !(&Pool{}).Prepares(node) {
		t.Error("a machine that may get a profile would stay in the pool, and could be allocated")
	}
}

func TestCheckBeforeWriteNeedsAProfileOnlyForANewInstance(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 1)
		pool, node := s.pool(t), s.read(t, nodeName(0))
		for verb, want := range map[ironic.Verb]string{nodes.TargetActive: "has no server profile", nodes.TargetRebuild: ""} {
			err := pool.Check(t.Context(), machine.Step{Node: node, Verb: verb, Stage: machine.BeforeWrite})
			if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: %v, want %q", verb, err, want)
			}
		}
	})
}

func TestCheckGivesATemporaryProfileTheTimeOfTheStep(t *testing.T) {
	t.Parallel()
	for limit, works := range map[time.Duration]bool{10 * time.Minute: false, 2 * time.Hour: true} {
		inPoolTime(t, func(t *testing.T) {
			s := newPoolSite(t, 1)
			s.ironic.Set(nodeName(0), "provision_state", "manageable")
			s.oneview.StepTime = 20 * time.Minute // of three steps
			start := time.Now()
			err := s.pool(t).Check(t.Context(), machine.Step{
				Node: s.read(t, nodeName(0)), Verb: nodes.TargetProvide,
				Stage: machine.BeforeQueue, Limit: limit,
			})
			took := time.Since(start)
			if (err == nil) != works || took > limit+5*time.Minute {
				t.Errorf("with a limit of %s: %v after %s", limit, err, took)
			}
		})
	}
}
