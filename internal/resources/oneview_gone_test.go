package resources_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
)

// A profile that somebody has removed from under what runs is not made anew: that would take the machine down. The plan and
// the error say what works.
func TestAccOneView_goneProfileOfWhatRunsIsExplained(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(quoted(node))+deployedProfile())
	w.Must("apply", "-auto-approve")
	o.GiveBack(1)
	o.Fake.PowerOn(o.Blades.Hardware[0])
	label := s.Name("blade1") + " (" + node + ")"
	unmoved := unmoved(t, s, node)
	output, _ := w.Plan()
	mention(t, output, "Server profile is gone", "of node "+label+" does not exist in OneView any more",
		`Something may run on the node (state "active")`, "the apply will fail", "terraform apply -replace=ADDRESS of its metal_deployment")
	fails(t, w, apply(), "Could not give node "+label+" a server profile", `is in state "active"`, "terraform apply -replace=ADDRESS of its metal_deployment")
	unmoved()
	if power := o.Hardware(1).Power; power != "On" {
		t.Errorf("the server is %s", power)
	}
	w.Must("apply", "-auto-approve", "-replace="+deploymentAddress)
	wantHeld(t, s, o, w, node)
	if d := inState(t, w, deploymentAddress); d == nil || d.Values["provision_state"] != "active" {
		t.Errorf("in state is %+v", d)
	}
	noChanges(t, w)
	release(t, s, o, w, node)
}
