package deployment_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// With "ignore" the plan keeps the prior content, and so does the state: a change is not lost if on_change becomes "rebuild".
func TestAccDeployment_onChangeIgnore(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(settings ...string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), settings...)
	}
	ignore, drive := `on_change = "ignore"`, `config_drive = { user_data = "a", hostname = "h" }`
	w := acctest.NewWorkspace(t, config(acctest.Image("v1"), drive, ignore))
	w.Must("apply", "-auto-approve")
	w.Configure(config(acctest.Image("v2"), `config_drive = { user_data = "b" }`, `traits = ["CUSTOM_A"]`, ignore))
	// traits were not set before
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "Change without effect", `on_change is "ignore"`, "0 added, 1 changed")
	w.Configure(config(acctest.Image("v2"), `config_drive = { user_data = "b" }`, ignore, `traits = ["CUSTOM_B"]`))
	acctest.NoChanges(t, w)
	image, _ := acctest.Deployed(t, w).Values["image"].(map[string]any)
	if got := site.InstanceInfo(s, node)["image_source"]; got != acctest.Images+"v1.qcow2" || image["url"] != got {
		t.Errorf("the node runs %v, in state is %v", got, image["url"])
	}
	site.WantVerbs(t, s, node, "active")

	w.Configure(config(acctest.Image("v2"), drive))
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 1, 0)
	w.Must("apply", "saved")
	acctest.NoChanges(t, w)
	site.WantVerbs(t, s, node, "active", "rebuild")
	w.Must("destroy", "-auto-approve")
}

// The provider's on_change is a default: it is in no state, and the resource's own value wins.
func TestAccDeployment_onChangeOfProvider(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(provider, image string, settings ...string) string {
		return s.Provider(provider) + acctest.Deployment(acctest.Quoted(node), append(settings, acctest.Image(image))...)
	}
	w := acctest.NewWorkspace(t, config(`on_change = "replace"`, "v1"))
	w.Must("apply", "-auto-approve")
	if stored := acctest.Deployed(t, w).Values["on_change"]; stored != nil {
		t.Errorf("in state is on_change %v", stored)
	}
	acctest.NoChanges(t, w)
	for _, tc := range []struct{ provider, own, want string }{
		{`on_change = "replace"`, ``, "1 to add, 0 to change, 1 to destroy"},
		{`on_change = "ignore"`, ``, "No changes"},
		{`on_change = "ignore"`, `on_change = "rebuild"`, "0 to add, 1 to change, 0 to destroy"},
		{`on_change = "rebuild"`, ``, "0 to add, 1 to change, 0 to destroy"},
		{``, ``, "0 to add, 1 to change, 0 to destroy"},
	} {
		w.Configure(config(tc.provider, "v2", tc.own))
		acctest.Mention(t, w.Must("plan"), tc.want)
	}
	w.Configure("resource \"terraform_data\" \"x\" {\n  input = \"rebuild\"\n}\n" + config(`on_change = terraform_data.x.output`, "v1"))
	acctest.Fails(t, w, []string{"plan"}, "Value must be known during plan", "on_change of the provider block decides whether")
	w.Configure(config(`on_change = "ignore"`, "v1"))
	acctest.NoChanges(t, w)
	s.Patch(node, "add", "/instance_info/image_source", acctest.Images+"other.qcow2") // ignored too
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}
