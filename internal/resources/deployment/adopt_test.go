package deployment_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
)

func TestAccDeployment_exactlyOneKind(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	w := acctest.NewWorkspace(t, "")
	live := `live_iso = { url = "http://x/y.iso" }`
	for _, c := range []struct{ settings, want string }{
		{``, "A deployment needs one of image"},
		{acctest.Image("v1") + "\n" + live, "Exactly one of image, live_iso and adopt must be set. Remove image or live_iso"},
		{acctest.Image("v1") + "\nadopt = true", "Remove image or adopt"},
		{live + "\nadopt = true", "Remove live_iso or adopt"},
		{`adopt = false`, `adopt Value must be "true"`},
		{"adopt = true\nconfig_drive = { user_data = \"a\" }", "config_drive has no effect with adopt = true"},
		{"adopt = true\nrebuild_triggers = { a = \"1\" }", "rebuild_triggers has no effect with adopt = true"},
	} {
		w.Configure(s.Provider() + acctest.Deployment(`"n1"`, c.settings))
		acctest.Fails(t, w, []string{"validate"}, c.want)
	}
	w.Configure(s.Provider() + "variable \"image\" { default = null }\nvariable \"iso\" { default = null }\n" + acctest.Deployment(`"n1"`, "image = var.image", "live_iso = var.iso"))
	w.Must("validate") // the values may come later
}

func TestAccDeployment_adoptTouchesNothing(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := acctest.AddNode(t, s, "n1", nil)
	deployByHand(s, node, "")
	before := s.Node(node)["provision_updated_at"]
	config := func(settings ...string) string {
		return s.Provider() + acctest.Allocation(s, `backfill_node = "`+node+`"`) + acctest.Allocated(settings...)
	}
	w := acctest.NewWorkspace(t, config(`adopt = true`))
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)

	w.Configure(config(acctest.Image("v2"))) // is noted, as in the first apply after an import
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 0, 0)
	acctest.Mention(t, w.Must("show", "saved"), "will be updated in-place")
	acctest.Mention(t, w.Must("plan"), "Adopted deployment is recorded only", "To deploy that content, change rebuild_triggers")
	w.Must("apply", "saved")
	acctest.NoChanges(t, w)
	if s.Node(node)["provision_updated_at"] != before {
		t.Error("the machine was touched")
	}
	acctest.WantVerbs(t, s, node, "active")

	w.Configure(config(acctest.Image("v2"), `rebuild_triggers = { deployed = "1" }`))
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 1, 0)
	w.Must("apply", "saved")
	acctest.WantVerbs(t, s, node, "active", "rebuild")
	if got := acctest.InstanceInfo(s, node)["image_source"]; got != acctest.Images+"v2.qcow2" {
		t.Errorf("the node runs %v", got)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// What cannot be adopted is left alone, and is not in state: as a tainted resource it would be undeployed.
func TestAccDeployment_adoptNeedsADeployment(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := acctest.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), `adopt = true`))
	acctest.Fails(t, w, acctest.Apply(), "no deployment to adopt runs on it", "set image instead of adopt")
	deployByHand(s, node, acctest.ForeignInstance(s))
	before := s.Node(node)["updated_at"]
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), `adopt = true`, `on_destroy = "forget"`))
	w.Must("apply", "-auto-approve")
	if s.Node(node)["updated_at"] != before {
		t.Error("the node was changed")
	}
	w.Must("destroy", "-auto-approve")
	acctest.WantVerbs(t, s, node, "active")
	s.Verb(node, "deleted", "available")
}

func TestFakeDeployment_failedAdoptionIsNotInState(t *testing.T) {
	t.Parallel()
	s := acctest.StartFake(t, &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
		if verb == "power off" {
			return "the BMC did not answer"
		}
		return ""
	}})
	node := acctest.AddNode(t, s, "n1", nil)
	deployByHand(s, node, acctest.ForeignInstance(s))
	s.Fake.Set(node, "power_state", "power on")
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), `adopt = true`, `power_state = "off"`))
	output, _ := w.Plan()
	acctest.Mention(t, output, "Power is switched")
	acctest.Fails(t, w, acctest.Apply(), "Could not switch node")
	if acctest.InState(t, w, acctest.DeploymentAddress) != nil {
		t.Error("the machine is in state, and the next apply would undeploy it")
	}
	s.Verb(node, "deleted", "available")
}

// From image to adopt nothing is deployed, and back neither, except for a trigger in the same plan.
func TestAccDeployment_fromImageToAdoptAndBack(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := acctest.AddNode(t, s, "n1", nil)
	config := func(settings ...string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), settings...)
	}
	w := acctest.NewWorkspace(t, config(acctest.Image("v1"), `config_drive = { user_data = "a" }`))
	w.Must("apply", "-auto-approve")
	for _, settings := range [][]string{{`adopt = true`}, {acctest.Image("v2")}, {`adopt = true`}} {
		w.Configure(config(settings...))
		wantRaised(t, w.Save()[acctest.DeploymentAddress], 0, 0)
		w.Must("apply", "saved")
		acctest.NoChanges(t, w)
	}
	acctest.WantVerbs(t, s, node, "active")

	w.Configure(config(acctest.Image("v3"), `rebuild_triggers = { deployed = "1" }`))
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 1, 0)
	w.Must("apply", "saved")
	acctest.WantVerbs(t, s, node, "active", "rebuild")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestFakeLiveISO_fromLiveISOToAdoptAndBack(t *testing.T) {
	t.Parallel()
	s := acctest.StartFake(t, nil)
	node := acctest.AddNode(t, s, "n", bootsISOs())
	config := func(settings ...string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), settings...)
	}
	live := func(image string) string {
		return liveISO("http://images.invalid/"+image+".iso", `quiet_period = "0s"`)
	}
	w := acctest.NewWorkspace(t, config(live("a")))
	w.Must("apply", "-auto-approve")
	cycles := s.Fake.PowerCycles(node)
	for _, settings := range [][]string{{`adopt = true`}, {live("a")}, {`adopt = true`}} {
		w.Configure(config(settings...))
		wantRaised(t, w.Save()[acctest.DeploymentAddress], 0, 0)
		w.Must("apply", "saved")
		acctest.NoChanges(t, w)
	}
	if got := s.Fake.PowerCycles(node) - cycles; got != 0 {
		t.Errorf("the machine was started %d times", got)
	}
	w.Configure(config(live("a"), `rebuild_triggers = { booted = "1" }`))
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 0, 1)
	w.Must("apply", "saved")
	if got := s.Fake.PowerCycles(node) - cycles; got != 1 {
		t.Errorf("the machine was started %d times", got)
	}
	acctest.NoChanges(t, w)

	w.Configure(config(live("a"), `rebuild_triggers = { booted = "1" }`, `capabilities = { boot_mode = "uefi" }`, `on_change = "replace"`))
	acctest.Mention(t, w.Must("plan"), "must be replaced")
	w.Must("destroy", "-auto-approve")
}
