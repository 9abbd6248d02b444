package resources_test

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
	mention(t, output, texts...)
}

func TestFakeDeployment_answerLostInAPlanReplacesNothing(t *testing.T) {
	t.Parallel()
	var failing atomic.Bool
	s := acctest.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		if failing.Load() && r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/nodes/") {
			return &fakeironic.Rejection{Status: http.StatusInternalServerError}
		}
		return nil
	}})
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(node), image("v1")))
	w.Must("apply", "-auto-approve")
	w.Configure(s.Provider() + deployment(quoted(s.Name("n1")), image("v1"))) // the same node
	failing.Store(true)
	wantRefused(t, w, "Could not read node "+node, `node_id = "`+s.Name("n1"), `Whether "`+s.Name("n1")+`" still names it is not known`)
	failing.Store(false)
	mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
	w.Must("destroy", "-auto-approve")
	wantVerbs(t, s, node, "active", "deleted")
}

func TestAccDeployment_isNotUndeployedForANodeThatCannotBeDeployed(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node, other := addNode(t, s, "n1", nil), addNode(t, s, "n2", nil)
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(s.Name("n1")), image("v1")))
	w.Must("apply", "-auto-approve")
	stays := "Without this change, node " + s.Name("n1") + " (" + node + ") runs on"

	w.Configure(s.Provider() + deployment(quoted("nobody-"+s.Class()), image("v1")))
	wantRefused(t, w, "Node does not exist", `node_id = "nobody-`+s.Class(), `Ironic has no node "nobody-`+s.Class()+`"`, "refer to its id: node_id = metal_host.<name>.id", stays)

	w.Configure(s.Provider() + deployment(quoted(s.Name("n2")), image("v1")))
	s.Patch(other, "add", "/instance_uuid", foreignInstance(s))
	wantRefused(t, w, "Node cannot be deployed", "Node "+s.Name("n2")+" ("+other+") is reserved by "+foreignInstance(s)+": somebody else uses it, or another deployment of yours", stays)
	s.Patch(other, "remove", "/instance_uuid", nil)

	s.Verb(other, "active", "active")
	wantRefused(t, w, "Node cannot be deployed", `is in state "active": something is deployed on it`, stays)
	s.Verb(other, "deleted", "available")

	taken := text(s.Must(http.MethodPost, "allocations", map[string]any{"resource_class": s.Class(), "candidate_nodes": []string{other}})["uuid"])
	s.Await(other, "instance_uuid", taken)
	third := addNode(t, s, "n3", nil)
	w.Configure(s.Provider() + deployment(quoted(third), `allocation_id = `+quoted(taken), image("v1")))
	wantRefused(t, w, "Allocation of another node", "Allocation "+taken+" reserves node "+other+", not node "+s.Name("n3"), stays)
	s.Must(http.MethodDelete, "allocations/"+taken, nil)
	wantRefused(t, w, "Allocation does not exist", "Ironic has no allocation "+taken, stays)

	w.Configure(s.Provider() + deployment(quoted(node), image("v1")))
	w.Must("destroy", "-auto-approve")
	wantVerbs(t, s, node, "active", "deleted")
}

func TestAccDeployment_movesToANodeThatTheSameApplyPrepares(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	config := func(state, node string) string {
		return s.Provider() + strings.Replace(host(s, 1), `"available"`, quoted(state), 1) + deployment(node, image("v1"))
	}
	w := acctest.NewWorkspace(t, config("manageable", quoted(node)))
	w.Must("apply", "-auto-approve")
	w.Configure(config("available", "metal_host.h1.id"))
	output, _ := w.Plan()
	mention(t, output, deploymentAddress+" must be replaced", "Node cannot be deployed as it is now", "Unless this apply puts that right, it will undeploy node "+s.Name("n1"), `is in state "manageable"`)
	mention(t, w.Must("apply", "-auto-approve"), "1 added, 1 changed, 1 destroyed")
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_planWarnsOfWhatUndeployingLoses(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node, other := addNode(t, s, "n1", nil), addNode(t, s, "n2", nil)
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(node), image("v1")))
	if output, _ := w.Plan(); strings.Contains(output, "Destroying") {
		t.Errorf("the first deployment of a free node warns:\n%s", output)
	}
	w.Must("apply", "-auto-approve")
	lost := "Node " + s.Name("n1") + " (" + node + ") is undeployed and cleaned: what it runs ends, and what is on its disks is lost"
	plan := func(args ...string) string { return w.Must(append([]string{"plan"}, args...)...) }
	mention(t, plan("-destroy"), "Destroying undeploys the machine", lost)
	w.Must("taint", deploymentAddress)
	mention(t, plan(), "Destroying undeploys the machine",
		`Something is on node `+s.Name("n1")+` (`+node+`), which is in state "active". If that is what this plan replaces, because it is tainted, the node is undeployed and cleaned: `)
	w.Must("untaint", deploymentAddress)
	w.Configure(s.Provider() + deployment(quoted(other), image("v1")))
	mention(t, plan(), deploymentAddress+" must be replaced", "Destroying undeploys the machine", lost)
	w.Configure(s.Provider())
	mention(t, plan(), "Destroying undeploys the machine", lost)
	s.Patch(node, "add", "/automated_clean", false)
	mention(t, plan(), "is undeployed, and not cleaned (automated_clean is false): what it runs ends, and its disks keep their data")
	s.Patch(node, "add", "/automated_clean", true)

	w.Configure(s.Provider() + deployment(quoted(node), image("v1"), `on_destroy = "detach"`))
	w.Must("apply", "-auto-approve")
	output := plan("-destroy")
	mention(t, output, "Destroying leaves the machine running", `on_destroy is "detach": node `+s.Name("n1"), "is left running and keeps its reservation, and nobody manages it")
	if strings.Contains(output, "undeploy") {
		t.Errorf("the plan claims that the node is undeployed:\n%s", output)
	}
	w.Configure(s.Provider() + deployment(quoted(node), image("v1")))
	w.Must("apply", "-auto-approve")
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_detachedMachineIsNotReplacedOnItsNode(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(node), image("v1"), `on_destroy = "detach"`))
	w.Must("apply", "-auto-approve")
	w.Configure(s.Provider() + deployment(quoted(node), `live_iso = { url = "`+images+`live.iso" }`, `on_destroy = "detach"`))
	wantRefused(t, w, "Detached machine cannot be replaced", `on_destroy is "detach": node `+s.Name("n1"), `apply on_destroy = "undeploy" first`)
	w.Configure(s.Provider() + deployment(quoted(node), image("v1")))
	w.Must("apply", "-auto-approve")
	w.Must("destroy", "-auto-approve")
}
