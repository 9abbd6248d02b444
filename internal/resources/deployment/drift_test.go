package deployment_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

func TestAccDeployment_undeployedOutsideIsRecreated(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s)+acctest.Allocated(acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	s.Verb(node, "deleted", "available")
	output, _ := w.Plan()
	acctest.Mention(t, output, "Deployment is gone", "Node "+s.Name("n1")+" ("+node+") was undeployed, not by this resource",
		"Plan: 2 to add, 0 to change, 0 to destroy")
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// What another client has deployed in place of a deployment is refused at plan, with the ways out; what it has only reserved, too.
func TestAccDeployment_redeployedOutsideIsRefused(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	w.Must(acctest.Apply()...)
	s.Verb(node, "deleted", "available")
	s.Patch(node, "add", "/instance_uuid", site.ForeignInstance(s))
	refused := []string{"Another deployment has the machine", site.ForeignInstance(s), "terraform apply -refresh-only"}
	acctest.Fails(t, w, []string{"plan"}, append(refused, "metal release --node "+s.Name("n1"))...)
	deployByHand(s, node, site.ForeignInstance(s))
	acctest.Fails(t, w, []string{"plan"}, append(refused, "metal undeploy --release "+s.Name("n1"))...)
	s.Verb(node, "deleted", "available")
	w.Must(acctest.Apply()...)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// A deployment whose key has changed without a moved block would be undeployed and deployed in no certain order.
func TestAccDeployment_otherAddressIsRefused(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	config := func(key string, moved ...string) string {
		text := s.Provider()
		for _, kind := range moved {
			text += fmt.Sprintf("moved {\n  from = %[1]s.x[\"a\"]\n  to = %[1]s.x[\"b\"]\n}\n", kind)
		}
		return text + fmt.Sprintf(`
			resource "metal_host" "x" {
			  for_each     = toset([%[1]q])
			  name         = %[2]q
			  driver       = "fake-hardware"
			  target_state = "available"
			}
			resource "metal_deployment" "x" {
			  for_each = toset([%[1]q])
			  node_id  = metal_host.x[each.key].id
			  %[3]s
			}`, key, s.Name("h"), acctest.Image("a"))
	}
	w := acctest.NewWorkspace(t, config("a"))
	defer acctest.Destroy(t, s, w)
	w.Must(acctest.Apply()...)
	w.Configure(config("b", "metal_host"))
	acctest.Fails(t, w, acctest.Apply(), "Deployment has another address", "add a moved block")
	w.Configure(config("b", "metal_host", "metal_deployment"))
	acctest.Mention(t, w.Must(acctest.Apply()...), "0 to add, 0 to change, 0 to destroy")
}

func TestAccDeployment_savedPlanKeepsToItsMachine(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *site.Site, node string){
		"switched on since": func(*site.Site, string) {},
		"deployed by others since": func(s *site.Site, node string) {
			s.Verb(node, "deleted", "available")
			deployByHand(s, node, site.ForeignInstance(s))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.Start(t, nil)
			node := site.AddNode(t, s, "n1", nil)
			config := func(tries int) string {
				return s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `power_state = "off"`,
					fmt.Sprintf("max_attempts = %d", tries))
			}
			w := acctest.NewWorkspace(t, config(1))
			w.Must("apply", "-auto-approve")
			w.Configure(config(2))
			w.Must("plan", "-out=plan")
			change(s, node)
			s.Must(http.MethodPut, "nodes/"+node+"/states/power", map[string]any{"target": "power on"})
			s.Await(node, "power_state", "power on")
			output, code := w.Run("apply", "plan")
			ours := s.Node(node)["instance_uuid"] != site.ForeignInstance(s)
			if ours != (code == 0) {
				t.Errorf("exit code %d:\n%s", code, output)
			}
			if got := s.Node(node)["power_state"]; got != "power on" {
				t.Errorf("the machine is %v", got)
			}
			if !ours {
				acctest.Mention(t, output, "is reserved by "+site.ForeignInstance(s))
				s.Verb(node, "deleted", "available")
				return
			}
			acctest.Mention(t, w.Must("apply", "-auto-approve"), "Power is switched")
			s.Await(node, "power_state", "power off")
			acctest.NoChanges(t, w)
			w.Must("destroy", "-auto-approve")
		})
	}
}

func TestFakeDeployment_resolvedImageIsNoDrift(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	var redirected atomic.Bool
	fake.Reject = func(r *http.Request) *fakeironic.Rejection {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/states/provision") && redirected.Load() {
			node, _ := fake.Node(strings.Split(r.URL.Path, "/")[3])
			info, _ := node.Raw["instance_info"].(map[string]any)
			info["image_source"] = acctest.Images + "elsewhere.qcow2"
			fake.Set(node.UUID, "instance_info", info)
		}
		return nil
	}
	s := site.StartFake(t, fake)
	node := site.AddNode(t, s, "n1", nil)
	s.Patch(node, "add", "/deploy_interface", "direct")
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node),
		`image = { url = "file:///images/v1.qcow2", checksum = "d41d8cd98f00b204e9800998ecf8427e", disk_format = "qcow2" }`))
	w.Must("apply", "-auto-approve")
	if info := site.InstanceInfo(s, node); info["image_disk_format"] != "raw" || info["image_checksum"] != nil {
		t.Fatalf("Ironic has not converted the image: %v", info)
	}
	acctest.NoChanges(t, w)

	redirected.Store(true)
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v2")))
	w.Must("apply", "-auto-approve")
	redirected.Store(false)
	if got := site.InstanceInfo(s, node)["image_source"]; got != acctest.Images+"elsewhere.qcow2" {
		t.Fatalf("Ironic has not followed the redirection: %v", got)
	}
	acctest.NoChanges(t, w)
	acctest.RunImage(s, node, "other")
	output, _ := w.Plan()
	acctest.Mention(t, output, "Rebuild wipes the root disk", acctest.Images+"other.qcow2")
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_powerAndMaintenanceDrift(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `power_state = "on"`))
	w.Must("apply", "-auto-approve")
	s.Must(http.MethodPut, "nodes/"+node+"/states/power", map[string]any{"target": "power off"})
	s.Await(node, "power_state", "power off")
	output, _ := w.Plan()
	acctest.Mention(t, output, "Power is switched", "is switched on", `"off" -> "on"`)
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"))) // power is not ours
	acctest.NoChanges(t, w)

	s.Must(http.MethodPut, "nodes/"+node+"/maintenance", map[string]any{"reason": "fan broken"})
	output, changes := w.Plan()
	acctest.Mention(t, output, "Node in maintenance", "Node "+s.Name("n1")+" ("+node+") is in maintenance: fan broken")
	if changes {
		t.Errorf("maintenance is a change:\n%s", output)
	}
	s.Must(http.MethodPut, "nodes/"+node+"/maintenance", map[string]any{}) // for no reason
	output, _ = w.Plan()
	acctest.Mention(t, output, "Node "+s.Name("n1")+" ("+node+") is in maintenance.")
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v2")))
	output, _ = w.Plan()
	acctest.Mention(t, output, "Maintenance prevents the deployment", "Unless the maintenance ends first, the apply will fail for "+
		"this deployment.")
	acctest.Fails(t, w, []string{"apply", "-auto-approve"}, "maintenance")
	s.Must(http.MethodDelete, "nodes/"+node+"/maintenance", nil)
	w.Must("apply", "-auto-approve")
	w.Must("destroy", "-auto-approve")
}

// A plan that ends the maintenance of the host does not warn that it prevents the deployment.
func TestAccDeployment_afterMaintenance(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	config := func(maintenance, image string) string {
		return s.Provider() + acctest.HostBlock(s.Name("h"), `driver = "fake-hardware"`, acctest.Target("available"),
			"maintenance = "+maintenance) +
			acctest.Deployment("metal_host.h.id", acctest.Image(image))
	}
	w := acctest.NewWorkspace(t, config("false", "v1"))
	defer acctest.Destroy(t, s, w)
	w.Must("apply", "-auto-approve")
	w.Configure(config("true", "v1"))
	w.Must("apply", "-auto-approve")
	w.Configure(config("true", "v2"))
	output, _ := w.Plan()
	acctest.Mention(t, output, "Maintenance prevents the deployment")
	w.Configure(config("false", "v2"))
	if output, _ := w.Plan(); strings.Contains(output, "Maintenance prevents") {
		t.Errorf("the plan ends the maintenance first:\n%s", output)
	}
	w.Must("apply", "-auto-approve")
}

func TestAccDeployment_missingNode(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s)+acctest.Allocated(acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	s.Must(http.MethodPut, "nodes/"+node+"/maintenance", map[string]any{})
	s.Must(http.MethodDelete, "nodes/"+node, nil)
	for _, args := range [][]string{{"plan"}, {"plan", "-destroy"}, {"plan", "-replace=metal_deployment.d"}} {
		acctest.Fails(t, w, args, "has no record of machines that are in this state", "It is the Ironic that the state knows",
			"n1", "reserved", `lost_records = "recreate"`, "-refresh=false")
	}
	acctest.Mention(t, w.Must("apply", "-refresh-only", "-auto-approve"), "Record lost in Ironic")
	if acctest.InState(t, w, "metal_deployment.d") == nil || acctest.InState(t, w, "metal_allocation.a") == nil {
		t.Error("the refresh has dropped what Ironic has lost")
	}
	w.Configure(s.Provider(`lost_records = "recreate"`) + acctest.Allocation(s) + acctest.Allocated(acctest.Image("v1")))
	output, _ := w.Plan()
	acctest.Mention(t, output, "Deployment is gone", "Node "+node+" does not exist in Ironic any more", "Plan: 2 to add",
		"It is the Ironic that the state knows", "deployments that do not adopt are deployed, which erases")
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Errorf("the apply worked:\n%s", output)
	}
	acctest.Mention(t, output, "No node matches")
	w.Must("destroy", "-auto-approve")
}
