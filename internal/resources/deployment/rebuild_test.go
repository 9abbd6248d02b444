package deployment_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

func TestAccDeployment_rebuildKeepsReservation(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(version string) string {
		return s.Provider() + acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web"))) + acctest.Allocated(acctest.Image(version))
	}
	w := acctest.NewWorkspace(t, config("v1"))
	w.Must("apply", "-auto-approve")
	before, reserved := s.Node(node), site.AllocationNamed(s, s.Name("web"))

	site.ForgetVerbs(s)
	w.Configure(config("v2"))
	output, _ := w.Plan()
	acctest.Mention(t, output, "Rebuild wipes the root disk", "The content of node "+s.Name("n1")+" ("+node+
		") changes (image.checksum): Ironic rebuilds it in place",
		"will be updated in-place", "Plan: 0 to add, 1 to change, 0 to destroy")
	w.Must("apply", "-auto-approve")
	site.WantVerbs(t, s, node, "rebuild")
	after := s.Node(node)
	if after["provision_updated_at"] == before["provision_updated_at"] {
		t.Error("the node was not rebuilt")
	}
	if got := site.InstanceInfo(s, node)["image_source"]; got != acctest.Images+"v2.qcow2" {
		t.Errorf("the node runs %v", got)
	}
	if kept := site.AllocationNamed(s, s.Name("web")); kept["uuid"] != reserved["uuid"] || kept["created_at"] != reserved["created_at"] {
		t.Errorf("the allocation was %v and is %v", reserved, kept)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_configDriveRebuilds(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(drive string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `config_drive = {`+drive+`}`)
	}
	w := acctest.NewWorkspace(t, config(`user_data = "a"`))
	w.Must("apply", "-auto-approve")
	for _, drive := range []string{
		`user_data = "b"`,
		`user_data_wo = "secret-1", user_data_wo_version = 1`,
		`user_data_wo = "secret-2", user_data_wo_version = 2`,
		`meta_data = jsonencode({ a = 1 }), meta_data_wo = jsonencode({ admin_pass = "secret-1" }), meta_data_wo_version = 1`,
		`meta_data = jsonencode({ a = 1 }), meta_data_wo = jsonencode({ admin_pass = "secret-2" }), meta_data_wo_version = 2`,
		`user_data_wo = "secret-2", user_data_wo_version = "vault/7", hostname = "web"`,
	} {
		before := s.Node(node)["provision_updated_at"]
		w.Configure(config(drive))
		if output := w.Must("apply", "-auto-approve"); !strings.Contains(output, "Rebuild wipes the root disk") {
			t.Errorf("no warning at %s:\n%s", drive, output)
		}
		if s.Node(node)["provision_updated_at"] == before {
			t.Errorf("no rebuild at %s", drive)
		}
		acctest.NoChanges(t, w)
	}
	site.WantVerbs(t, s, node, "active", "rebuild", "rebuild", "rebuild", "rebuild", "rebuild", "rebuild")

	// the version says that nothing has changed
	w.Configure(config(`user_data_wo = "secret-3", user_data_wo_version = "vault/7", hostname = "web"`))
	acctest.NoChanges(t, w)
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	if _, left := site.InstanceInfo(s, node)["configdrive"]; left {
		t.Error("the config drive is still there")
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_otherSettingsTouchNothing(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(settings ...string) string {
		return s.Provider() + named(s) + acctest.Allocated(append(settings, acctest.Image("v1"))...)
	}
	w := acctest.NewWorkspace(t, config())
	w.Must("apply", "-auto-approve")
	before := s.Node(node)["updated_at"]
	for _, settings := range [][]string{
		{`max_attempts = 3`, `on_destroy = "undeploy"`, `timeouts = { create = "5m" }`},
		{quarantine},
		{quarantine, `max_nodes = 5`},
		{`on_failure = "keep"`},
		{},
	} {
		w.Configure(config(settings...))
		wantWarned(t, w.Must("apply", "-auto-approve"))
		acctest.NoChanges(t, w)
	}
	if s.Node(node)["updated_at"] != before {
		t.Error("the node was changed")
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_failedRebuildIsRepeated(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s)+acctest.Allocated(acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	instance := s.Node(node)["instance_uuid"]
	w.Configure(s.Provider() + acctest.Allocation(s) + acctest.Allocated(acctest.Image("v2"), acctest.FailingStep))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the rebuild worked:\n%s", output)
	}
	acctest.Mention(t, output, "Could not deploy node "+s.Name("n1"), acctest.LastErrorOfFailingStep, "Fix the cause")
	if d := acctest.Deployed(t, w); d.Tainted || d.Values["provision_state"] != "deploy failed" ||
		d.Values["last_error"] != acctest.LastErrorOfFailingStep {
		t.Errorf("in state is %+v", d)
	}
	wantInState(t, w, 0, 0)
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 1, 0) // the repeat writes the disk again
	output, changes := w.Plan()
	if !changes {
		t.Error("the plan is empty while the deployment is failed")
	}
	acctest.Mention(t, output, "Failed deployment is repeated", `is in state "deploy failed" (`+acctest.LastErrorOfFailingStep+`)`)
	w.Configure(s.Provider() + acctest.Allocation(s) + acctest.Allocated(acctest.Image("v2")))
	w.Must("apply", "-auto-approve")
	if now := s.Node(node); now["provision_state"] != "active" || now["instance_uuid"] != instance ||
		site.InstanceInfo(s, node)["image_source"] != acctest.Images+"v2.qcow2" {
		t.Errorf("the node is %v", now)
	}
	wantInState(t, w, 1, 0)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_refusedRebuild(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	before := s.Node(node)
	deployBy := func(how string) { // direct demands a checksum, fake nothing
		s.Must(http.MethodPut, "nodes/"+node+"/maintenance", map[string]any{})
		s.Patch(node, "add", "/deploy_interface", how)
		s.Must(http.MethodDelete, "nodes/"+node+"/maintenance", nil)
	}
	deployBy("direct")
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), `image = { url = "`+acctest.Images+`v2.qcow2" }`,
		`instance_info = { deploy_interface = "direct" }`))
	for range 2 {
		output, code := w.Run("apply", "-auto-approve")
		if code == 0 {
			t.Fatalf("the rebuild worked:\n%s", output)
		}
		acctest.Mention(t, output, "Could not deploy node "+s.Name("n1"), "Failed to validate", "checksum")
		if now := s.Node(node); now["provision_state"] != "active" || now["provision_updated_at"] != before["provision_updated_at"] {
			t.Errorf("the node is %v since %v", now["provision_state"], now["provision_updated_at"])
		}
		if got := acctest.ImageInState(t, w); got != acctest.Images+"v1.qcow2" {
			t.Errorf("the state claims image %s", got)
		}
		output, _ = w.Plan()
		acctest.Mention(t, output, "Rebuild wipes the root disk")
	}
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"))) // the user restores the former image
	acctest.NoChanges(t, w)
	deployBy("fake")
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v3")))
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
	site.WantVerbs(t, s, node, "active", "rebuild", "deleted")
}
