package deployment_test

import (
	"sync/atomic"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// adopt is the HCL of a deployment that adopts, and undeploys when it is destroyed.
const adopt = "adopt = true\n  on_destroy = \"undeploy\""

func TestAccDeployment_adoptTouchesNothing(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	deployByHand(s, node, "")
	before := s.Node(node)["provision_updated_at"]
	config := func(settings ...string) string {
		return s.Provider() + acctest.Allocation(s, `backfill_node = "`+node+`"`) + acctest.Allocated(settings...)
	}
	w := acctest.NewWorkspace(t, config(adopt))
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)

	w.Configure(config(acctest.Image("v2"))) // is noted, as in the first apply after an import
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 0, 0)
	acctest.Mention(t, w.Must("show", "saved"), "will be updated in-place")
	acctest.Mention(t, w.Must("plan"), "Adopted deployment is recorded only", "To deploy that content, set rebuild_triggers to a first "+
		"value, which is only recorded, and change it in a later apply")
	w.Must("apply", "saved")
	acctest.NoChanges(t, w)
	if s.Node(node)["provision_updated_at"] != before {
		t.Error("the machine was touched")
	}
	site.WantVerbs(t, s, node, "active")

	w.Configure(config(acctest.Image("v2"), `rebuild_triggers = { deployed = "0" }`))
	w.Must(acctest.Apply()...)
	site.WantVerbs(t, s, node, "active")
	w.Configure(config(acctest.Image("v2"), `rebuild_triggers = { deployed = "1" }`))
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 1, 0)
	w.Must("apply", "saved")
	site.WantVerbs(t, s, node, "active", "rebuild")
	if got := site.InstanceInfo(s, node)["image_source"]; got != acctest.Images+"v2.qcow2" {
		t.Errorf("the node runs %v", got)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// What cannot be adopted is left alone, and is not in state: as a tainted resource it would be undeployed.
func TestAccDeployment_adoptNeedsADeployment(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), adopt))
	acctest.Fails(t, w, acctest.Apply(), "no deployment to adopt runs on it", "set image instead of adopt")
	deployByHand(s, node, site.ForeignInstance(s))
	before := s.Node(node)["updated_at"]
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), `adopt = true`, `on_destroy = "forget"`))
	w.Must("apply", "-auto-approve")
	if s.Node(node)["updated_at"] != before {
		t.Error("the node was changed")
	}
	w.Must("destroy", "-auto-approve")
	site.WantVerbs(t, s, node, "active")
	s.Verb(node, "deleted", "available")
}

func TestFakeDeployment_failedAdoptionIsNotInState(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
		if verb == "power off" {
			return "the BMC did not answer"
		}
		return ""
	}})
	node := site.AddNode(t, s, "n1", nil)
	deployByHand(s, node, site.ForeignInstance(s))
	s.Fake.Set(node, "power_state", "power on")
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), adopt, `power_state = "off"`))
	output, _ := w.Plan()
	acctest.Mention(t, output, "Power is switched")
	acctest.Fails(t, w, acctest.Apply(), "Could not switch node")
	if acctest.InState(t, w, acctest.DeploymentAddress) != nil {
		t.Error("the machine is in state, and the next apply would undeploy it")
	}
	s.Verb(node, "deleted", "available")
}

// running adds a node that is manageable, as that of a machine that runs without Ironic's knowledge.
func running(t *testing.T, s *site.Site, name string) string {
	t.Helper()
	node := site.AddNode(t, s, name, nil)
	s.Verb(node, "manage", "manageable")
	site.ForgetVerbs(s)
	return node
}

func TestAccDeployment_adoptsManageableMachine(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := running(t, s, "n1")
	config := func(settings ...string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), append(settings, adopt)...)
	}
	w := acctest.NewWorkspace(t, config(`instance_info = { image_source = "http://x/a", root_gb = 10 }`))
	acctest.Mention(t, w.Must("plan"), "Machine is adopted", "nothing is written to its disks",
		"undeploys and cleans it, which erases its data", "1 to add")
	w.Must("apply", "-auto-approve")
	site.WantVerbs(t, s, node, "adopt")
	d := acctest.Deployed(t, w)
	if n := s.Node(node); n["provision_state"] != "active" || n["instance_uuid"] == nil || n["instance_uuid"] != d.Values["instance_id"] {
		t.Errorf("the node is %v, reserved by %v, and in state is %v", n["provision_state"], n["instance_uuid"], d.Values)
	}
	if info := site.InstanceInfo(s, node); info["image_source"] != "http://x/a" {
		t.Errorf("instance_info is %v", info)
	}
	acctest.NoChanges(t, w)

	w.Configure(config(`instance_info = { image_source = "http://x/b" }`))
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 0, 0)
	w.Must("apply", "saved")
	if info := site.InstanceInfo(s, node); info["image_source"] != "http://x/b" || info["root_gb"] != nil {
		t.Errorf("instance_info is %v", info)
	}
	acctest.NoChanges(t, w)
	w.Configure(config())
	w.Must("apply", "-auto-approve")
	if info := site.InstanceInfo(s, node); info["image_source"] != "http://x/b" {
		t.Errorf("removing instance_info from the configuration has changed it: %v", info)
	}
	acctest.NoChanges(t, w)
	site.WantVerbs(t, s, node, "adopt")

	acctest.Mention(t, w.Must("plan", "-destroy"), "Destroying undeploys the machine")
	w.Must("destroy", "-auto-approve")
	site.WantVerbs(t, s, node, "adopt", "deleted")
}

func TestAccDeployment_adoptedMachineIsForgotten(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := running(t, s, "n1")
	config := s.Provider() + acctest.Deployment(acctest.Quoted(node), `adopt = true`, `on_destroy = "forget"`)
	w := acctest.NewWorkspace(t, config)
	acctest.Mention(t, w.Must("plan"), "Destroying the resource leaves it running")
	w.Must("apply", "-auto-approve")
	before := s.Node(node)["instance_uuid"]
	acctest.NoChanges(t, w)
	acctest.Mention(t, w.Must("destroy", "-auto-approve"), "Destroying leaves the machine running")
	if n := s.Node(node); n["provision_state"] != "active" || n["instance_uuid"] != before {
		t.Errorf("the node is %v, reserved by %v", n["provision_state"], n["instance_uuid"])
	}
	w.Must("apply", "-auto-approve") // takes it back
	acctest.NoChanges(t, w)
	site.WantVerbs(t, s, node, "adopt")
	if got := s.Node(node)["instance_uuid"]; got != before {
		t.Errorf("the node is reserved by %v, and was by %v", got, before)
	}
	s.Verb(node, "deleted", "available")
}

// An active node that is not reserved is free for others to take, so the deployment reserves it.
func TestAccDeployment_adoptReservesActiveNode(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := running(t, s, "n1")
	s.Verb(node, "adopt", "active")
	site.ForgetVerbs(s)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), adopt))
	w.Must("apply", "-auto-approve")
	if d := acctest.Deployed(t, w); d.Values["instance_id"] == nil || d.Values["instance_id"] != s.Node(node)["instance_uuid"] {
		t.Errorf("in state is %v", d.Values)
	}
	acctest.NoChanges(t, w)
	site.WantVerbs(t, s, node)
	w.Must("destroy", "-auto-approve")
}

// failsAdoption is a fake whose adoptions fail while broken is set.
func failsAdoption(t *testing.T, broken *atomic.Bool) *site.Site {
	t.Helper()
	broken.Store(true)
	return site.StartFake(t, &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
		if verb == "adopt" && broken.Load() {
			return "Validation of the boot interface failed: no image_source"
		}
		return ""
	}})
}

func TestFakeDeployment_failedAdoptionEndsManageable(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	s := failsAdoption(t, &broken)
	for _, end := range []string{"undeploy", "forget"} {
		node := running(t, s, end)
		w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), `adopt = true`, "on_destroy = "+
			acctest.Quoted(end), `instance_info = { root_gb = 1 }`))
		acctest.Fails(t, w, acctest.Apply(), "Could not adopt node "+s.Name(end), "no image_source", "adopt failed")
		if d := acctest.Deployed(t, w); !d.Tainted || d.Values["instance_id"] != s.Node(node)["instance_uuid"] {
			t.Errorf("in state is %+v", d)
		}
		acctest.NeverMention(t, w.Must("plan", "-destroy"), "data on its disks is lost")
		w.Must("destroy", "-auto-approve")
		site.WantVerbs(t, s, node, "adopt", "manage")
		if n := s.Node(node); n["provision_state"] != "manageable" || n["instance_uuid"] != nil || len(site.InstanceInfo(s, node)) > 0 {
			t.Errorf("the node is %v, reserved by %v, with %v", n["provision_state"], n["instance_uuid"], site.InstanceInfo(s, node))
		}
		s.Verb(node, "provide", "available")
	}
}

// A creation that has failed is tainted. If the machine runs after all, the next apply must not undeploy it.
func TestFakeDeployment_lateAdoptionIsKept(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	s := failsAdoption(t, &broken)
	node := running(t, s, "n1")
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), adopt))
	acctest.Fails(t, w, acctest.Apply(), "Could not adopt node")
	broken.Store(false)
	s.Verb(node, "adopt", "active") // by another client
	acctest.Mention(t, w.Must("plan"), "nothing is written to its disks")
	acctest.Mention(t, w.Must("plan", "-destroy"), "keeps running and stays reserved")
	w.Must("apply", "-auto-approve")
	site.WantVerbs(t, s, node, "adopt", "adopt")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestFakeDeployment_interruptedAdoptionIsContinued(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	for name, end := range map[string]acctest.Stop{"interrupted": func(t *testing.T, _ *site.Site, r *acctest.Running) {
		acctest.Interrupt(t, r)
	}, "killed": acctest.Kill} {
		node := running(t, s, name)
		w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), adopt))
		release := s.Hold("adopting")
		run := w.Start("apply", "-auto-approve")
		site.AwaitState(t, s, node, "adopting")
		end(t, s, run)
		acctest.WaitOut(t, s, w, release, "apply", "-auto-approve")
		site.WantVerbs(t, s, node, "adopt")
		acctest.NoChanges(t, w)
		w.Must("destroy", "-auto-approve")
	}
}
