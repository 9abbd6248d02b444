package simulate_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
)

// verbs are the targets of all changes of the provision state and of the power that Ironic has.
func verbs() (all []string) {
	for _, verb := range []nodes.TargetProvisionState{
		nodes.TargetActive, nodes.TargetDeleted, nodes.TargetManage, nodes.TargetProvide, nodes.TargetInspect, nodes.TargetAbort,
		nodes.TargetClean, nodes.TargetAdopt,
		nodes.TargetRescue, nodes.TargetUnrescue, nodes.TargetRebuild, nodes.TargetService, nodes.TargetUnhold,
	} {
		all = append(all, string(verb))
	}
	for _, power := range []nodes.TargetPowerState{
		nodes.PowerOn, nodes.PowerOff, nodes.Rebooting, nodes.SoftPowerOff, nodes.SoftRebooting,
	} {
		all = append(all, string(power))
	}
	return all
}

// Each attribute, verb, command and action meets a scene, in which requests lose their answers and work fails, or is in the table never
// with a reason.
//
//nolint:paralleltest // a scene is short
func TestPlayed_everythingMeetsAScene(t *testing.T) {
	t.Parallel()
	played := map[string]bool{}
	for _, sc := range scenes() {
		t.Run(sc.name, func(t *testing.T) { maps.Copy(played, calmly(t, sc).played) })
	}
	all := offered()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch why := never[name]; {
		case !played[name] && why == "":
			t.Errorf("no scene plays %s. Add it to one (scenes_test.go), or say in the table never why it can do no harm", name)
		case played[name] && why != "":
			t.Errorf("a scene plays %s. Remove it from the table never", name)
		}
	}
	for name := range never {
		if !all[name] {
			t.Errorf("there is no %s. Remove it from the table never", name)
		}
	}
}
