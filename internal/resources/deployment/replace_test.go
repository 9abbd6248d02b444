package deployment_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// wantRefused fails a test unless a plan fails with all the texts, and plans to replace nothing.
func wantRefused(t *testing.T, w *acctest.Workspace, texts ...string) {
	t.Helper()
	output, code := w.Run("plan", "-refresh=false")
	if code == 0 || strings.Contains(output, "must be replaced") {
		t.Errorf("this was planned:\n%s", output)
	}
	acctest.Mention(t, output, texts...)
}

func TestAccDeployment_keepsNodeIfNewOneIsUnfit(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node, other := site.AddNode(t, s, "n1", nil), site.AddNode(t, s, "n2", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(s.Name("n1")), acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	stays := "Without this change, node " + s.Name("n1") + " (" + node + ") keeps running"
	taken := site.Text(s.Must(http.MethodPost, "allocations", map[string]any{
		"resource_class":  s.Class(),
		"candidate_nodes": []string{other},
	})["uuid"])
	s.Await(other, "instance_uuid", taken)
	moves := func(node string) {
		w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), `allocation_id = `+acctest.Quoted(taken), acctest.Image("v1")))
	}

	moves("unknown-" + s.Class())
	wantRefused(t, w, "Node does not exist", `node_id = "unknown-`+s.Class(), `Ironic has no node "unknown-`+s.Class()+`"`,
		"refer to its id: node_id = metal_host.<name>.id", stays)
	moves(site.AddNode(t, s, "n3", nil))
	wantRefused(t, w, "Allocation of another node", "Allocation "+taken+" reserves node "+other+", not node "+s.Name("n3"), stays)
	moves(s.Name("n2"))
	s.Verb(other, "active", "active")
	wantRefused(t, w, "Node cannot be deployed", `is in state "active": something is deployed on it`, stays)
	s.Verb(other, "deleted", "available") // Ironic deletes the allocation
	wantRefused(t, w, "Allocation does not exist", "Ironic has no allocation "+taken, stays)

	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	w.Must("destroy", "-auto-approve")
	site.WantVerbs(t, s, node, "active", "deleted")
}

// A plan destroys no host whose machine keeps its deployment. It destroys both in the right order.
func TestAccDeployment_keepsItsHost(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	hosts := func(names string) string {
		return s.Provider() + fmt.Sprintf("resource \"metal_host\" \"h\" {\n  for_each = toset([%s])\n  name = each.key\n  driver = "+
			"\"fake-hardware\"\n  resource_class = %q\n  target_state = \"available\"\n}\n", names, s.Class())
	}
	name, users := s.Name("h1"), acctest.Allocation(s, "depends_on = [metal_host.h]")+acctest.Allocated(acctest.Image("v1"))
	w := acctest.NewWorkspace(t, hosts(acctest.Quoted(name))+users)
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w) // the plan of the deployment has nothing to decide

	w.Configure(hosts("") + users)
	acctest.Fails(t, w, []string{"plan"}, "Deployed host is destroyed", "metal_host of node "+name, "keeps this deployment",
		"add the host to the configuration again")
	w.Configure(hosts(""))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 0 changed, 3 destroyed")

	on := func(name string) string {
		return hosts(acctest.Quoted(name)) + acctest.Deployment("metal_host.h["+acctest.Quoted(name)+"].id", acctest.Image("v1"))
	}
	w.Configure(on(name))
	w.Must("apply", "-auto-approve")
	w.Configure(on(s.Name("h2"))) // the plan of the deployment does not see -replace
	output := w.Must("apply", "-auto-approve", "-replace="+acctest.DeploymentAddress)
	acctest.Mention(t, output, "Warning: Deployed host is destroyed", "2 added, 0 changed, 2 destroyed")
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_planWarnsOfUndeploying(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	if output, _ := w.Plan(); strings.Contains(output, "Destroying") {
		t.Errorf("the first deployment of a free node warns:\n%s", output)
	}
	w.Must("apply", "-auto-approve")
	lost := "Node " + s.Name("n1") + " (" + node + ") is undeployed and cleaned: it stops, and the data on its disks is lost"
	plan := func(args ...string) string { return w.Must(append([]string{"plan"}, args...)...) }
	acctest.Mention(t, plan("-destroy"), "Destroying undeploys the machine", lost)
	w.Must("taint", acctest.DeploymentAddress)
	tainted := plan()
	acctest.Mention(t, tainted, "Destroying undeploys the machine", `Node `+s.Name("n1")+` (`+node+
		`) is deployed already, in state "active", and the state has that deployment. `+
		`If it is tainted, or named by -replace, this plan replaces it: the node is undeployed and cleaned: `,
		"run terraform untaint with its address")
	acctest.NeverMention(t, tainted, "Two deployments")
	w.Must("untaint", acctest.DeploymentAddress)
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v2"), `on_change = "replace"`))
	acctest.Mention(t, plan(), acctest.DeploymentAddress+" must be replaced", "Destroying undeploys the machine", lost)
	w.Configure(s.Provider())
	acctest.Mention(t, plan(), "Destroying undeploys the machine", lost)
	s.Patch(node, "add", "/automated_clean", false)
	acctest.Mention(t, plan(), "is undeployed, and not cleaned (automated_clean is false): it stops, and its disks keep their data")
	s.Patch(node, "add", "/automated_clean", true)

	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `on_destroy = "forget"`))
	w.Must("apply", "-auto-approve")
	output := plan("-destroy")
	acctest.Mention(t, output, "Destroying leaves the machine running", `on_destroy is "forget": node `+s.Name("n1"),
		"keeps running and stays reserved. Terraform does not manage it any more")
	if strings.Contains(output, "undeploy") {
		t.Errorf("the plan claims that the node is undeployed:\n%s", output)
	}
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_forgottenMachineIsNotReplaced(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `on_destroy = "forget"`))
	w.Must("apply", "-auto-approve")
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), `live_iso = { url = "`+acctest.Images+`live.iso" }`,
		`on_destroy = "forget"`))
	wantRefused(t, w, "Forgotten machine cannot be replaced", `on_destroy is "forget": node `+s.Name("n1"),
		`apply on_destroy = "undeploy" first`)
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	w.Must("destroy", "-auto-approve")
}

// Terraform creates a deployment with create_before_destroy before it destroys the former one, and tells no provider. The machine stays as
// it is, the apply fails, and no later apply wipes it.
func TestAccDeployment_createBeforeDestroyReplacesNothing(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"),
		"lifecycle {\n    create_before_destroy = true\n  }"))
	w.RealCLI()
	w.Must("apply", "-auto-approve")
	before := s.Node(node)["instance_uuid"]
	replace := []string{"apply", "-auto-approve", "-replace=" + acctest.DeploymentAddress}
	text := "cannot replace a deployment on the same node"
	acctest.Mention(t, strings.Join(strings.Fields(acctest.Fails(t, w, replace)), " "), text, "Apply once more")
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 0 changed, 1 destroyed")
	acctest.NoChanges(t, w)
	later := strings.Join(strings.Fields(acctest.Fails(t, w, replace)), " ") // the mark of the creation is gone
	acctest.Mention(t, later, text)
	acctest.NoChanges(t, w)
	if is := s.Node(node); is["instance_uuid"] != before || is["provision_state"] != "active" {
		t.Errorf("the machine was touched: %v", is)
	}
	w.Must("destroy", "-auto-approve")
}
