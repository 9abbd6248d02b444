package resources_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
)

func TestAccDeployment_failureIsExplainedAndRepairedByTheNextApply(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	reserved := s.Provider() + allocation(s, `name = `+quoted(s.Name("web")))
	w := acctest.NewWorkspace(t, reserved+allocated(image("v1"), failingStep, `max_attempts = 2`))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the deployment worked:\n%s", output)
	}
	mention(t, output, "Could not deploy node "+s.Name("n1")+" ("+node+")", `is in state "deploy failed": `+lastErrorOfFailingStep,
		"Mend the cause (image, checksum, network, the machine's console) and apply again")
	if d := deployed(t, w); !d.Tainted || d.Values["provision_state"] != "deploy failed" || d.Values["last_error"] != lastErrorOfFailingStep ||
		fmt.Sprint(d.Values["attempts"]) != "2" {
		t.Errorf("in state is %+v", d)
	}
	wantVerbs(t, s, node, "active", "active")
	before := allocationNamed(s, s.Name("web"))

	forgetVerbs(s)
	w.Configure(reserved + allocated(image("v1")))
	output, _ = w.Plan()
	mention(t, output, deploymentAddress+" is tainted")
	w.Must("apply", "-auto-approve")
	wantVerbs(t, s, node, "deleted", "active")
	wantKept(t, s, w, node, before)
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_failureWithoutAnAllocationIsDestroyed(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(node), image("v1"), failingStep))
	if output, code := w.Run("apply", "-auto-approve"); code == 0 {
		t.Fatalf("the deployment worked:\n%s", output)
	}
	w.Must("destroy", "-auto-approve")
	wantVerbs(t, s, node, "active", "deleted")
}

func TestFakeDeployment_isTriedAgainOnTheSameNode(t *testing.T) {
	t.Parallel()
	var failures atomic.Int32
	s := acctest.StartFake(t, &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
		if verb == "active" && failures.Add(1) <= 2 {
			return "the switch port was down"
		}
		return ""
	}})
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(node), image("v1"), `max_attempts = 3`))
	w.Must("apply", "-auto-approve")
	if d := deployed(t, w); fmt.Sprint(d.Values["attempts"]) != "3" || d.Values["last_error"] != nil {
		t.Errorf("in state is %+v", d)
	}
	wantVerbs(t, s, node, "active", "active", "active")
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_failureOfOneLeavesTheOthers(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	var nodes []string
	for i := range 3 {
		nodes = append(nodes, addNode(t, s, fmt.Sprintf("n%d", i), nil))
	}
	config := func(steps string) string {
		return s.Provider() + fmt.Sprintf(`resource "metal_deployment" "d" {
  count = 3
  node_id = [%q, %q, %q][count.index]
  %s
  deploy_steps = count.index == 1 ? %s : null
}
`, nodes[0], nodes[1], nodes[2], image("v1"), steps)
	}
	w := acctest.NewWorkspace(t, config(`[{ interface = "deploy", step = "deploy", args = "{}", priority = 0 }]`))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the deployment worked:\n%s", output)
	}
	mention(t, output, "Could not deploy node "+s.Name("n1"))
	for i, want := range []string{"active", "deploy failed", "active"} {
		d := inState(t, w, fmt.Sprintf("metal_deployment.d[%d]", i))
		if d == nil || d.Values["provision_state"] != want || d.Tainted != (i == 1) {
			t.Errorf("in state is %+v", d)
		}
	}
	forgetVerbs(s)
	w.Configure(config("null"))
	w.Must("apply", "-auto-approve")
	wantVerbs(t, s, nodes[0])
	wantVerbs(t, s, nodes[1], "deleted", "active")
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_timeoutIsHandledByTheNextApply(t *testing.T) {
	t.Parallel()
	s := acctest.StartSlow(t)
	node := addNode(t, s, "n1", nil)
	reserved := s.Provider() + allocation(s, `name = `+quoted(s.Name("web")))
	w := acctest.NewWorkspace(t, reserved+allocated(image("v1"), `timeouts = { create = "1s" }`))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the deployment worked:\n%s", output)
	}
	mention(t, output, `is still in state "deploying" after 1s`, "raise the resource's timeouts")
	if d := deployed(t, w); !d.Tainted || d.Values["instance_uuid"] != s.Node(node)["instance_uuid"] {
		t.Errorf("in state is %+v", d)
	}
	before := allocationNamed(s, s.Name("web"))
	w.Configure(reserved + allocated(image("v1")))
	w.Must("apply", "-auto-approve")
	wantKept(t, s, w, node, before)
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
	wantVerbs(t, s, node, "active", "deleted", "active", "deleted")
}

func TestAccDeployment_detachIsNotForADeploymentThatFailed(t *testing.T) {
	t.Parallel()
	s := acctest.StartSlow(t)
	node := addNode(t, s, "n1", nil)
	config := func(more ...string) string {
		return s.Provider() + deployment(quoted(node), append([]string{image("v1"), `on_destroy = "detach"`}, more...)...)
	}
	w := acctest.NewWorkspace(t, config(`timeouts = { create = "1s" }`))
	if output, code := w.Run("apply", "-auto-approve"); code == 0 {
		t.Fatalf("the deployment worked:\n%s", output)
	}
	if d := deployed(t, w); !d.Tainted || d.Values["on_destroy"] != nil {
		t.Errorf("in state is %+v", d)
	}
	s.Await(node, "provision_state", "active")
	w.Configure(config())
	output := w.Must("apply", "-auto-approve")
	mention(t, output, "Destroying undeploys the machine", "is undeployed and cleaned", "1 added, 0 changed, 1 destroyed")
	if d := deployed(t, w); d.Tainted || d.Values["instance_uuid"] != s.Node(node)["instance_uuid"] || d.Values["on_destroy"] != "detach" {
		t.Errorf("in state is %+v", d)
	}
	noChanges(t, w)
	wantVerbs(t, s, node, "active", "deleted", "active")
	w.Configure(s.Provider() + deployment(quoted(node), image("v1")))
	w.Must("apply", "-auto-approve")
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_untaintedAfterATimeoutIsKeptAndDetached(t *testing.T) {
	t.Parallel()
	s := acctest.StartSlow(t)
	node := addNode(t, s, "n1", nil)
	config := func(more ...string) string {
		return s.Provider() + deployment(quoted(node), append([]string{image("v1"), `on_destroy = "detach"`}, more...)...)
	}
	w := acctest.NewWorkspace(t, config(`timeouts = { create = "1s" }`))
	if output, code := w.Run("apply", "-auto-approve"); code == 0 {
		t.Fatalf("the deployment worked:\n%s", output)
	}
	w.Must("untaint", deploymentAddress)
	s.Await(node, "provision_state", "active")
	w.Configure(config())
	w.Must("apply", "-auto-approve")
	noChanges(t, w)
	wantVerbs(t, s, node, "active")
	w.Must("destroy", "-auto-approve")
	if now := s.Node(node)["provision_state"]; now != "active" {
		t.Errorf("the node is %v", now)
	}
	s.Verb(node, "deleted", "available")
}
