package deployment_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

func TestAccDeployment_onChangeReplace(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(image string, settings ...string) string {
		return s.Provider() + acctest.Allocation(s) + acctest.Allocated(append(settings, acctest.Image(image), `on_change = "replace"`)...)
	}
	w := acctest.NewWorkspace(t, config("v1"))
	w.Must("apply", "-auto-approve")
	for _, settings := range [][]string{
		{`config_drive = { user_data = "a\n" }`},
		{`deploy_steps = [{ interface = "bios", step = "factory_reset", priority = 60 }]`},
	} {
		w.Configure(config("v1", settings...))
		acctest.Mention(t, w.Must("plan"), "-/+ destroy and then create replacement", "1 to add, 0 to change, 1 to destroy")
	}
	w.Configure(config("v2", `lifecycle { prevent_destroy = true }`))
	acctest.Fails(t, w, []string{"plan"}, "Instance cannot be destroyed", "metal_deployment.d has lifecycle.prevent_destroy set")
	site.WantVerbs(t, s, node, "active")

	w.Configure(config("v2"))
	if change := w.Save()[acctest.DeploymentAddress]; !slices.Equal(change.Actions, []string{"delete", "create"}) || fmt.Sprint(change.After["rebuilds"]) != "0" {
		t.Errorf("planned is %v to %v", change.Actions, change.After)
	}
	w.Must("apply", "saved")
	site.WantVerbs(t, s, node, "active", "deleted", "active")
	acctest.NoChanges(t, w)
	w.Configure(config("v2", `rebuild_triggers = { a = "0" }`)) // is only recorded
	w.Must(acctest.Apply()...)
	w.Configure(config("v2", `rebuild_triggers = { a = "1" }`)) // a trigger deploys in place
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 1, 0)
	w.Must("destroy", "-auto-approve")
}

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
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "Change without effect", `on_change is "ignore"`, "0 added, 1 changed") // traits were not set before
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
	w.Configure(config(`on_change = "ignore"`, "v1"))
	acctest.NoChanges(t, w)
	s.Patch(node, "add", "/instance_info/image_source", acctest.Images+"other.qcow2") // ignored too
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_onChangeMustBeKnown(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	unknown := "resource \"terraform_data\" \"x\" {\n  input = \"rebuild\"\n}\n"
	for want, config := range map[string]string{
		"on_change decides whether":                       s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `on_change = terraform_data.x.output`),
		"on_change of the provider block decides whether": s.Provider(`on_change = terraform_data.x.output`) + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")),
	} {
		w := acctest.NewWorkspace(t, unknown+config)
		acctest.Fails(t, w, []string{"plan"}, "Value must be known during plan", want)
	}
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `on_change = "ignore"`, `rebuild_triggers = { a = "1" }`))
	w.Must("apply", "-auto-approve")
	w.Configure(s.Provider() + unknown + acctest.Deployment(acctest.Quoted(node), acctest.Image("v2"), `on_change = "ignore"`, `rebuild_triggers = { a = terraform_data.x.output }`))
	acctest.Fails(t, w, []string{"plan"}, "Value must be known during plan", "rebuild_triggers decides whether the plan shows the new content")
	w.Configure(s.Provider())
	w.Must("destroy", "-auto-approve")
}
