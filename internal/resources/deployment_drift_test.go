package resources_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
)

func TestAccDeployment_undeployedBehindOurBackIsPlannedAnew(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+allocation(s)+allocated(image("v1")))
	w.Must("apply", "-auto-approve")
	s.Verb(node, "deleted", "available")
	output, _ := w.Plan()
	mention(t, output, "Deployment is gone", "Node "+s.Name("n1")+" ("+node+") was undeployed by somebody else", "Plan: 2 to add, 0 to change, 0 to destroy")
	w.Must("apply", "-auto-approve")
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_takenBySomebodyElseIsLeftToThem(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(node), image("v1")))
	w.Must("apply", "-auto-approve")
	s.Verb(node, "deleted", "available")
	deployByHand(s, node, foreignInstance(s))
	before := s.Node(node)["updated_at"]
	output, _ := w.Plan()
	mention(t, output, "Deployment is gone", "is reserved by "+foreignInstance(s)+" now: somebody else has deployed it", "1 to add, 0 to change, 0 to destroy")
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Errorf("it was deployed over:\n%s", output)
	}
	mention(t, output, "is reserved by "+foreignInstance(s), "terraform import <address of the metal_deployment> "+node)
	w.Must("destroy", "-auto-approve")
	if s.Node(node)["updated_at"] != before {
		t.Error("the node of somebody else was changed")
	}
	s.Verb(node, "deleted", "available")
}

func TestAccDeployment_destroyLeavesWhatSomebodyElseHasDeployedSince(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(node), image("v1")))
	w.Must("apply", "-auto-approve")
	s.Verb(node, "deleted", "available")
	deployByHand(s, node, foreignInstance(s))
	w.Must("destroy", "-auto-approve", "-refresh=false") // the state does not know of it
	if now := s.Node(node); now["provision_state"] != "active" || now["instance_uuid"] != foreignInstance(s) {
		t.Errorf("the node is %v, reserved by %v", now["provision_state"], now["instance_uuid"])
	}
	s.Verb(node, "deleted", "available")
}

func TestAccDeployment_savedPlanDoesNothingToTheMachineThatItDidNotShow(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *acctest.Site, node string){
		"switched on since": func(*acctest.Site, string) {},
		"deployed by others since": func(s *acctest.Site, node string) {
			s.Verb(node, "deleted", "available")
			deployByHand(s, node, foreignInstance(s))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := acctest.Start(t, nil)
			node := addNode(t, s, "n1", nil)
			config := func(tries int) string {
				return s.Provider() + deployment(quoted(node), image("v1"), `power_state = "off"`, fmt.Sprintf("max_attempts = %d", tries))
			}
			w := acctest.NewWorkspace(t, config(1))
			w.Must("apply", "-auto-approve")
			w.Configure(config(2))
			w.Must("plan", "-out=plan")
			change(s, node)
			s.Must(http.MethodPut, "nodes/"+node+"/states/power", map[string]any{"target": "power on"})
			s.Await(node, "power_state", "power on")
			output, code := w.Run("apply", "plan")
			ours := s.Node(node)["instance_uuid"] != foreignInstance(s)
			if ours != (code == 0) {
				t.Errorf("exit code %d:\n%s", code, output)
			}
			if got := s.Node(node)["power_state"]; got != "power on" {
				t.Errorf("the machine is %v", got)
			}
			if !ours {
				mention(t, output, "is reserved by "+foreignInstance(s))
				s.Verb(node, "deleted", "available")
				return
			}
			mention(t, w.Must("apply", "-auto-approve"), "Power is switched")
			s.Await(node, "power_state", "power off")
			noChanges(t, w)
			w.Must("destroy", "-auto-approve")
		})
	}
}

func TestAccDeployment_anotherImageInIronicIsShown(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(node), image("v1")))
	w.Must("apply", "-auto-approve")
	s.Patch(node, "add", "/instance_info/image_source", images+"other.qcow2")
	output, _ := w.Plan()
	mention(t, output, "Rebuild wipes the root disk", images+"other.qcow2", "0 to add, 1 to change, 0 to destroy")
	w.Must("apply", "-auto-approve")
	noChanges(t, w)
	wantVerbs(t, s, node, "active", "rebuild")
	w.Must("destroy", "-auto-approve")
}

func TestFakeDeployment_whatIronicMakesOfAnImageIsNoOtherImage(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	var redirected atomic.Bool
	fake.Reject = func(r *http.Request) *fakeironic.Rejection {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/states/provision") && redirected.Load() {
			node, _ := fake.Node(strings.Split(r.URL.Path, "/")[3])
			info, _ := node.Raw["instance_info"].(map[string]any)
			info["image_source"] = images + "elsewhere.qcow2"
			fake.Set(node.UUID, "instance_info", info)
		}
		return nil
	}
	s := acctest.StartFake(t, fake)
	node := addNode(t, s, "n1", nil)
	s.Patch(node, "add", "/deploy_interface", "direct")
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(node),
		`image = { url = "file:///images/v1.qcow2", checksum = "d41d8cd98f00b204e9800998ecf8427e", disk_format = "qcow2" }`))
	w.Must("apply", "-auto-approve")
	if info := instanceInfo(s, node); info["image_disk_format"] != "raw" || info["image_checksum"] != nil {
		t.Fatalf("Ironic has not converted the image: %v", info)
	}
	noChanges(t, w)

	redirected.Store(true)
	w.Configure(s.Provider() + deployment(quoted(node), image("v2")))
	w.Must("apply", "-auto-approve")
	redirected.Store(false)
	if got := instanceInfo(s, node)["image_source"]; got != images+"elsewhere.qcow2" {
		t.Fatalf("Ironic has not followed the redirection: %v", got)
	}
	noChanges(t, w)
	s.Patch(node, "add", "/instance_info/image_source", images+"other.qcow2")
	output, _ := w.Plan()
	mention(t, output, "Rebuild wipes the root disk", images+"other.qcow2")
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_powerAndMaintenanceAreShown(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(node), image("v1"), `power_state = "on"`))
	w.Must("apply", "-auto-approve")
	s.Must(http.MethodPut, "nodes/"+node+"/states/power", map[string]any{"target": "power off"})
	s.Await(node, "power_state", "power off")
	output, _ := w.Plan()
	mention(t, output, "Power is switched", "is switched on", `"off" -> "on"`)
	w.Configure(s.Provider() + deployment(quoted(node), image("v1"))) // power is not ours
	noChanges(t, w)

	s.Must(http.MethodPut, "nodes/"+node+"/maintenance", map[string]any{"reason": "fan broken"})
	output, changes := w.Plan()
	mention(t, output, "Node in maintenance", "Node "+s.Name("n1")+" ("+node+") is in maintenance: fan broken")
	if changes {
		t.Errorf("maintenance is a change:\n%s", output)
	}
	s.Must(http.MethodPut, "nodes/"+node+"/maintenance", map[string]any{}) // for no reason
	output, _ = w.Plan()
	mention(t, output, "Node "+s.Name("n1")+" ("+node+") is in maintenance.")
	s.Must(http.MethodDelete, "nodes/"+node+"/maintenance", nil)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_nodeThatIsGone(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+allocation(s)+allocated(image("v1")))
	w.Must("apply", "-auto-approve")
	s.Must(http.MethodPut, "nodes/"+node+"/maintenance", map[string]any{})
	s.Must(http.MethodDelete, "nodes/"+node, nil)
	output, _ := w.Plan()
	mention(t, output, "Deployment is gone", "Node "+node+" does not exist in Ironic any more", "Plan: 2 to add")
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Errorf("the apply worked:\n%s", output)
	}
	mention(t, output, "No node matches")
	w.Must("destroy", "-auto-approve")
}
