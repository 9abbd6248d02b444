package deployment_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
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

// The plan asks Ironic nothing to find out whether node_id still names the same node: a read has noted its name.
func TestFakeDeployment_nameOfTheSameNode(t *testing.T) {
	t.Parallel()
	var failing atomic.Bool
	s := acctest.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		if failing.Load() && r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/nodes/") {
			return &fakeironic.Rejection{Status: http.StatusInternalServerError}
		}
		return nil
	}})
	node := acctest.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(s.Name("n1")), acctest.Image("v1"))) // the same node
	failing.Store(true)
	acctest.Mention(t, w.Must("plan", "-refresh=false"), "0 to add, 1 to change, 0 to destroy")
	failing.Store(false)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
	w.Must("destroy", "-auto-approve")
	acctest.WantVerbs(t, s, node, "active", "deleted")
}

func TestAccDeployment_keepsNodeIfNewOneIsUnfit(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node, other := acctest.AddNode(t, s, "n1", nil), acctest.AddNode(t, s, "n2", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(s.Name("n1")), acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	stays := "Without this change, node " + s.Name("n1") + " (" + node + ") keeps running"

	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted("unknown-"+s.Class()), acctest.Image("v1")))
	wantRefused(t, w, "Node does not exist", `node_id = "unknown-`+s.Class(), `Ironic has no node "unknown-`+s.Class()+`"`, "refer to its id: node_id = metal_host.<name>.id", stays)

	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(s.Name("n2")), acctest.Image("v1")))
	s.Patch(other, "add", "/instance_uuid", acctest.ForeignInstance(s))
	wantRefused(t, w, "Node cannot be deployed", "Node "+s.Name("n2")+" ("+other+") is reserved by "+acctest.ForeignInstance(s)+": another user or another metal_deployment uses it", stays)
	s.Patch(other, "remove", "/instance_uuid", nil)

	s.Verb(other, "active", "active")
	wantRefused(t, w, "Node cannot be deployed", `is in state "active": something is deployed on it`, stays)
	s.Verb(other, "deleted", "available")

	taken := acctest.Text(s.Must(http.MethodPost, "allocations", map[string]any{"resource_class": s.Class(), "candidate_nodes": []string{other}})["uuid"])
	s.Await(other, "instance_uuid", taken)
	third := acctest.AddNode(t, s, "n3", nil)
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(third), `allocation_id = `+acctest.Quoted(taken), acctest.Image("v1")))
	wantRefused(t, w, "Allocation of another node", "Allocation "+taken+" reserves node "+other+", not node "+s.Name("n3"), stays)
	s.Must(http.MethodDelete, "allocations/"+taken, nil)
	wantRefused(t, w, "Allocation does not exist", "Ironic has no allocation "+taken, stays)

	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	w.Must("destroy", "-auto-approve")
	acctest.WantVerbs(t, s, node, "active", "deleted")
}

func TestAccDeployment_movesToNodeOfSameApply(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := acctest.AddNode(t, s, "n1", nil)
	config := func(state, node string) string {
		return s.Provider() + strings.Replace(acctest.Host(s, 1), `"available"`, acctest.Quoted(state), 1) + acctest.Deployment(node, acctest.Image("v1"))
	}
	w := acctest.NewWorkspace(t, config("manageable", acctest.Quoted(node)))
	w.Must("apply", "-auto-approve")
	w.Configure(config("available", "metal_host.h1.id"))
	output, _ := w.Plan()
	acctest.Mention(t, output, acctest.DeploymentAddress+" must be replaced")
	if strings.Contains(output, "Node cannot be deployed as it is now") {
		t.Errorf("the plan makes the host available, and warns that it is not:\n%s", output)
	}
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 added, 1 changed, 1 destroyed")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_planWarnsOfUndeploying(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node, other := acctest.AddNode(t, s, "n1", nil), acctest.AddNode(t, s, "n2", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	if output, _ := w.Plan(); strings.Contains(output, "Destroying") {
		t.Errorf("the first deployment of a free node warns:\n%s", output)
	}
	w.Must("apply", "-auto-approve")
	lost := "Node " + s.Name("n1") + " (" + node + ") is undeployed and cleaned: it stops, and the data on its disks is lost"
	plan := func(args ...string) string { return w.Must(append([]string{"plan"}, args...)...) }
	acctest.Mention(t, plan("-destroy"), "Destroying undeploys the machine", lost)
	w.Must("taint", acctest.DeploymentAddress)
	acctest.Mention(t, plan(), "Destroying undeploys the machine",
		`Node `+s.Name("n1")+` (`+node+`) is deployed already, in state "active". If this plan replaces that deployment because it is tainted, the node is undeployed and cleaned: `)
	w.Must("untaint", acctest.DeploymentAddress)
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(other), acctest.Image("v1")))
	acctest.Mention(t, plan(), acctest.DeploymentAddress+" must be replaced", "Destroying undeploys the machine", lost)
	w.Configure(s.Provider())
	acctest.Mention(t, plan(), "Destroying undeploys the machine", lost)
	s.Patch(node, "add", "/automated_clean", false)
	acctest.Mention(t, plan(), "is undeployed, and not cleaned (automated_clean is false): it stops, and its disks keep their data")
	s.Patch(node, "add", "/automated_clean", true)

	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `on_destroy = "forget"`))
	w.Must("apply", "-auto-approve")
	output := plan("-destroy")
	acctest.Mention(t, output, "Destroying leaves the machine running", `on_destroy is "forget": node `+s.Name("n1"), "keeps running and stays reserved. Terraform does not manage it any more")
	if strings.Contains(output, "undeploy") {
		t.Errorf("the plan claims that the node is undeployed:\n%s", output)
	}
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_forgottenMachineIsNotReplaced(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := acctest.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `on_destroy = "forget"`))
	w.Must("apply", "-auto-approve")
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), `live_iso = { url = "`+acctest.Images+`live.iso" }`, `on_destroy = "forget"`))
	wantRefused(t, w, "Forgotten machine cannot be replaced", `on_destroy is "forget": node `+s.Name("n1"), `apply on_destroy = "undeploy" first`)
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	w.Must("destroy", "-auto-approve")
}
