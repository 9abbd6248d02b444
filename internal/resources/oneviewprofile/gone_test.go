package oneviewprofile_test

import (
	"slices"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// Another user has removed the profile of a deployed node. The provider does not create it again, because that would switch the
// machine off. The plan and the error say what to do.
func TestAccOneView_goneProfileOfDeployedNode(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	w := acctest.NewWorkspace(t, s.Provider(o.Setting())+profile(acctest.Quoted(node))+deployedProfile())
	w.Must("apply", "-auto-approve")
	o.GiveBack(1)
	o.Fake.PowerOn(o.Blades.Hardware[0])
	label := s.Name("blade1") + " (" + node + ")"
	unmoved := unmoved(t, s, node)
	output, _ := w.Plan()
	acctest.Mention(t, output, "Server profile is gone", "of node "+label+" does not exist in OneView any more",
		`The node may run a deployment (state "active")`, "Unless this plan replaces its metal_deployment, the apply fails",
		"terraform apply -replace=ADDRESS of the metal_deployment")
	acctest.Fails(t, w, acctest.Apply(), "Could not give node "+label+" a server profile", `is in state "active"`,
		"terraform apply -replace=ADDRESS of its metal_deployment")
	unmoved()
	if power := o.Hardware(1).Power; power != "On" {
		t.Errorf("the server is %s", power)
	}
	seen := lifeline(s, o, node)
	w.Must("apply", "-auto-approve", "-replace="+acctest.DeploymentAddress)
	if want := []string{"made while active", "deleted while available", "made while available"}; !slices.Equal(*seen, want) {
		t.Errorf("profiles were %q, want %q: a temporary one for the cleaning, then that of the new deployment", *seen, want)
	}
	wantHeld(t, s, o, w, node)
	if d := acctest.InState(t, w, acctest.DeploymentAddress); d == nil || d.Values["provision_state"] != "active" {
		t.Errorf("the state has %+v", d)
	}
	acctest.NoChanges(t, w)
	release(t, s, o, w, node)
}
