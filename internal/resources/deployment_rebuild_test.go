package resources_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
)

// deployed is the deployment in a workspace's state; a test without one fails.
func deployed(t *testing.T, w *acctest.Workspace) *object {
	t.Helper()
	d := inState(t, w, deploymentAddress)
	if d == nil {
		t.Fatalf("there is no deployment in state:\n%s", w.State())
	}
	return d
}

// imageInState is the URL of the deployment's image in state.
func imageInState(t *testing.T, w *acctest.Workspace) string {
	t.Helper()
	image, _ := deployed(t, w).Values["image"].(map[string]any)
	return text(image["url"])
}

func TestAccDeployment_anotherImageIsOneRebuildOnTheSameReservation(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	config := func(version string) string {
		return s.Provider() + allocation(s, `name = `+quoted(s.Name("web"))) + allocated(image(version))
	}
	w := acctest.NewWorkspace(t, config("v1"))
	w.Must("apply", "-auto-approve")
	before, reserved := s.Node(node), allocationNamed(s, s.Name("web"))

	forgetVerbs(s)
	w.Configure(config("v2"))
	output, _ := w.Plan()
	mention(t, output, "Rebuild wipes the root disk", "The content of node "+s.Name("n1")+" ("+node+") changes: it is rebuilt in place, and what is on its root disk is lost",
		"will be updated in-place", "Plan: 0 to add, 1 to change, 0 to destroy")
	w.Must("apply", "-auto-approve")
	wantVerbs(t, s, node, "rebuild")
	after := s.Node(node)
	if after["provision_updated_at"] == before["provision_updated_at"] {
		t.Error("the node was not rebuilt")
	}
	if got := instanceInfo(s, node)["image_source"]; got != images+"v2.qcow2" {
		t.Errorf("the node runs %v", got)
	}
	if kept := allocationNamed(s, s.Name("web")); kept["uuid"] != reserved["uuid"] || kept["created_at"] != reserved["created_at"] {
		t.Errorf("the allocation was %v and is %v", reserved, kept)
	}
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_anotherConfigDriveIsARebuild(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	config := func(drive string) string {
		return s.Provider() + deployment(quoted(node), image("v1"), `config_drive = {`+drive+`}`)
	}
	w := acctest.NewWorkspace(t, config(`user_data = "a"`))
	w.Must("apply", "-auto-approve")
	for _, drive := range []string{
		`user_data = "b"`,
		`user_data_wo = "secret-1", user_data_wo_version = 1`,
		`user_data_wo = "secret-2", user_data_wo_version = 2`,
		`user_data_wo = "secret-2", user_data_wo_version = 2, hostname = "web"`,
	} {
		before := s.Node(node)["provision_updated_at"]
		w.Configure(config(drive))
		if output := w.Must("apply", "-auto-approve"); !strings.Contains(output, "Rebuild wipes the root disk") {
			t.Errorf("no warning at %s:\n%s", drive, output)
		}
		if s.Node(node)["provision_updated_at"] == before {
			t.Errorf("no rebuild at %s", drive)
		}
		noChanges(t, w)
	}
	wantVerbs(t, s, node, "active", "rebuild", "rebuild", "rebuild", "rebuild")

	w.Configure(config(`user_data_wo = "secret-3", user_data_wo_version = 2, hostname = "web"`)) // the version says that nothing has changed
	noChanges(t, w)
	w.Configure(s.Provider() + deployment(quoted(node), image("v1")))
	w.Must("apply", "-auto-approve")
	if _, left := instanceInfo(s, node)["configdrive"]; left {
		t.Error("the config drive is still there")
	}
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_ignoredChangeIsNotedOnly(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(node), image("v1"), `on_change = "ignore"`))
	w.Must("apply", "-auto-approve")
	before := s.Node(node)
	w.Configure(s.Provider() + deployment(quoted(node), image("v2"), `on_change = "ignore"`))
	output := w.Must("apply", "-auto-approve")
	mention(t, output, "Change without effect", `on_change is "ignore"`, "the machine runs on as it is")
	if after := s.Node(node); after["provision_updated_at"] != before["provision_updated_at"] || instanceInfo(s, node)["image_source"] != images+"v1.qcow2" {
		t.Errorf("the node was touched: %v", after["instance_info"])
	}
	noChanges(t, w)
	wantVerbs(t, s, node, "active")

	w.Configure(s.Provider() + deployment(quoted(node), image("v3"))) // from now on changes count again
	output = w.Must("apply", "-auto-approve")
	mention(t, output, "Rebuild wipes the root disk")
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_settingsBesideTheContentTouchNothing(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(node), image("v1")))
	w.Must("apply", "-auto-approve")
	before := s.Node(node)["updated_at"]
	w.Configure(s.Provider() + deployment(quoted(node), image("v1"), `max_attempts = 3`, `on_destroy = "undeploy"`, `timeouts = { create = "5m" }`))
	output := w.Must("apply", "-auto-approve")
	if strings.Contains(output, "Warning: ") && !strings.Contains(output, "Provider development overrides") {
		t.Errorf("a warning for nothing:\n%s", output)
	}
	if s.Node(node)["updated_at"] != before {
		t.Error("the node was changed")
	}
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_rebuildThatFailsIsRepeated(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+allocation(s)+allocated(image("v1")))
	w.Must("apply", "-auto-approve")
	instance := s.Node(node)["instance_uuid"]
	w.Configure(s.Provider() + allocation(s) + allocated(image("v2"), failingStep))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the rebuild worked:\n%s", output)
	}
	mention(t, output, "Could not deploy node "+s.Name("n1"), lastErrorOfFailingStep, "Mend the cause")
	if d := deployed(t, w); d.Tainted || d.Values["provision_state"] != "deploy failed" || d.Values["last_error"] != lastErrorOfFailingStep {
		t.Errorf("in state is %+v", d)
	}
	output, changes := w.Plan()
	if !changes {
		t.Error("the plan is empty while the deployment is failed")
	}
	mention(t, output, "Failed deployment is repeated", `is in state "deploy failed" (`+lastErrorOfFailingStep+`)`)
	w.Configure(s.Provider() + allocation(s) + allocated(image("v2")))
	w.Must("apply", "-auto-approve")
	if now := s.Node(node); now["provision_state"] != "active" || now["instance_uuid"] != instance || instanceInfo(s, node)["image_source"] != images+"v2.qcow2" {
		t.Errorf("the node is %v", now)
	}
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_rebuildThatIronicRefusesStartsNothing(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(node), image("v1")))
	w.Must("apply", "-auto-approve")
	before := s.Node(node)
	deployBy := func(how string) { // direct demands a checksum, fake nothing
		s.Must(http.MethodPut, "nodes/"+node+"/maintenance", map[string]any{})
		s.Patch(node, "add", "/deploy_interface", how)
		s.Must(http.MethodDelete, "nodes/"+node+"/maintenance", nil)
	}
	deployBy("direct")
	w.Configure(s.Provider() + deployment(quoted(node), `image = { url = "`+images+`v2.qcow2" }`, `instance_info = { deploy_interface = "direct" }`))
	for range 2 {
		output, code := w.Run("apply", "-auto-approve")
		if code == 0 {
			t.Fatalf("the rebuild worked:\n%s", output)
		}
		mention(t, output, "Could not deploy node "+s.Name("n1"), "failed to validate", "checksum")
		if now := s.Node(node); now["provision_state"] != "active" || now["provision_updated_at"] != before["provision_updated_at"] {
			t.Errorf("the node is %v since %v", now["provision_state"], now["provision_updated_at"])
		}
		if got := imageInState(t, w); got != images+"v1.qcow2" {
			t.Errorf("the state claims image %s", got)
		}
		output, _ = w.Plan()
		mention(t, output, "Rebuild wipes the root disk")
	}
	w.Configure(s.Provider() + deployment(quoted(node), image("v1"))) // thinking better of it
	noChanges(t, w)
	deployBy("fake")
	w.Configure(s.Provider() + deployment(quoted(node), image("v3")))
	w.Must("apply", "-auto-approve")
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
	wantVerbs(t, s, node, "active", "rebuild", "deleted")
}

func TestAccDeployment_deploymentThatIronicRefusesHoldsNothing(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	s.Patch(node, "add", "/deploy_interface", "direct") // which demands a checksum
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(node), `image = { url = "`+images+`v1.qcow2" }`, `instance_info = { deploy_interface = "direct" }`))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the deployment worked:\n%s", output)
	}
	mention(t, output, "failed to validate", "checksum")
	if now := s.Node(node)["provision_state"]; now != "available" {
		t.Errorf("the node is %v", now)
	}
	s.Patch(node, "add", "/deploy_interface", "fake")
	w.Configure(s.Provider() + deployment(quoted(node), image("v1")))
	w.Must("apply", "-auto-approve")
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}
