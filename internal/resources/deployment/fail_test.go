package deployment_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

func TestAccDeployment_failureIsRepairedByNextApply(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	reserved := s.Provider() + acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web")))
	w := acctest.NewWorkspace(t, reserved+acctest.Allocated(acctest.Image("v1"), acctest.FailingStep, `max_attempts = 2`))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the deployment worked:\n%s", output)
	}
	acctest.Mention(t, output, "Could not deploy node "+s.Name("n1")+" ("+node+")", `is in state "deploy failed".`, "Ironic's last_error: "+acctest.LastErrorOfFailingStep,
		"Fix the cause (check the image, the checksum, the network and the machine's console) and apply again",
		"Terraform marks this resource as tainted: the next apply first undeploys the machine, which cleans it", "run terraform untaint")
	if d := acctest.Deployed(t, w); !d.Tainted || d.Values["provision_state"] != "deploy failed" || d.Values["last_error"] != acctest.LastErrorOfFailingStep ||
		fmt.Sprint(d.Values["attempts"]) != "2" {
		t.Errorf("in state is %+v", d)
	}
	site.WantVerbs(t, s, node, "active", "active")
	before := site.AllocationNamed(s, s.Name("web"))

	site.ForgetVerbs(s)
	w.Configure(reserved + acctest.Allocated(acctest.Image("v1")))
	output, _ = w.Plan()
	acctest.Mention(t, output, acctest.DeploymentAddress+" is tainted")
	w.Must("apply", "-auto-approve")
	site.WantVerbs(t, s, node, "deleted", "active")
	acctest.WantKept(t, s, w, node, before)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_failureWithoutAllocation(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), acctest.FailingStep))
	if output, code := w.Run("apply", "-auto-approve"); code == 0 {
		t.Fatalf("the deployment worked:\n%s", output)
	}
	w.Must("destroy", "-auto-approve")
	site.WantVerbs(t, s, node, "active", "deleted")
}

func TestFakeDeployment_retriesOnSameNode(t *testing.T) {
	t.Parallel()
	var failures atomic.Int32
	s := site.StartFake(t, &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
		if verb == "active" && failures.Add(1) <= 2 {
			return "the switch port was down"
		}
		return ""
	}})
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `max_attempts = 3`))
	w.Must("apply", "-auto-approve")
	if d := acctest.Deployed(t, w); fmt.Sprint(d.Values["attempts"]) != "3" || d.Values["last_error"] != nil {
		t.Errorf("in state is %+v", d)
	}
	site.WantVerbs(t, s, node, "active", "active", "active")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_failureOfOneLeavesOthers(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	var nodes []string
	for i := range 3 {
		nodes = append(nodes, site.AddNode(t, s, fmt.Sprintf("n%d", i), nil))
	}
	config := func(steps string) string {
		return s.Provider() + fmt.Sprintf(`resource "metal_deployment" "d" {
  count = 3
  node_id = [%q, %q, %q][count.index]
  %s
  deploy_steps = count.index == 1 ? %s : null
}
`, nodes[0], nodes[1], nodes[2], acctest.Image("v1"), steps)
	}
	w := acctest.NewWorkspace(t, config(`[{ interface = "deploy", step = "deploy", args = "{}", priority = 0 }]`))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the deployment worked:\n%s", output)
	}
	acctest.Mention(t, output, "Could not deploy node "+s.Name("n1"))
	for i, want := range []string{"active", "deploy failed", "active"} {
		d := acctest.InState(t, w, fmt.Sprintf("metal_deployment.d[%d]", i))
		if d == nil || d.Values["provision_state"] != want || d.Tainted != (i == 1) {
			t.Errorf("in state is %+v", d)
		}
	}
	site.ForgetVerbs(s)
	w.Configure(config("null"))
	w.Must("apply", "-auto-approve")
	site.WantVerbs(t, s, nodes[0])
	site.WantVerbs(t, s, nodes[1], "deleted", "active")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_timeOut(t *testing.T) {
	t.Parallel()
	s := site.StartSlow(t)
	node := site.AddNode(t, s, "n1", nil)
	reserved := s.Provider() + acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web")))
	w := acctest.NewWorkspace(t, reserved+acctest.Allocated(acctest.Image("v1"), `timeouts = { create = "1s" }`))
	w.Patience = time.Minute
	release := s.Hold(site.BusyDeploying()...)
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the deployment worked:\n%s", output)
	}
	acctest.Mention(t, output, `is still in state "deploying" after 1s`, "raise the resource's timeouts")
	if d := acctest.Deployed(t, w); !d.Tainted || d.Values["instance_id"] != s.Node(node)["instance_uuid"] {
		t.Errorf("in state is %+v", d)
	}
	before := site.AllocationNamed(s, s.Name("web"))
	w.Configure(reserved + acctest.Allocated(acctest.Image("v1")))
	acctest.WaitOut(t, s, w, release, "apply", "-auto-approve")
	acctest.WantKept(t, s, w, node, before)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
	site.WantVerbs(t, s, node, "active", "deleted", "active", "deleted")
}

func TestAccDeployment_forgetDoesNotApplyToFailedDeployment(t *testing.T) {
	t.Parallel()
	s := site.StartSlow(t)
	node := site.AddNode(t, s, "n1", nil)
	config := func(more ...string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), append([]string{acctest.Image("v1"), `on_destroy = "forget"`}, more...)...)
	}
	w := acctest.NewWorkspace(t, config(`timeouts = { create = "1s" }`))
	release := s.Hold(site.BusyDeploying()...)
	if output, code := w.Run("apply", "-auto-approve"); code == 0 {
		t.Fatalf("the deployment worked:\n%s", output)
	}
	release()
	if d := acctest.Deployed(t, w); !d.Tainted || d.Values["on_destroy"] != nil {
		t.Errorf("in state is %+v", d)
	}
	s.Await(node, "provision_state", "active")
	w.Configure(config())
	output := w.Must("apply", "-auto-approve")
	acctest.Mention(t, output, "Destroying undeploys the machine", "is undeployed and cleaned", "1 added, 0 changed, 1 destroyed")
	if d := acctest.Deployed(t, w); d.Tainted || d.Values["instance_id"] != s.Node(node)["instance_uuid"] || d.Values["on_destroy"] != "forget" {
		t.Errorf("in state is %+v", d)
	}
	acctest.NoChanges(t, w)
	site.WantVerbs(t, s, node, "active", "deleted", "active")
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_untaintedAfterATimeoutIsKeptAndForgotten(t *testing.T) {
	t.Parallel()
	s := site.StartSlow(t)
	node := site.AddNode(t, s, "n1", nil)
	config := func(more ...string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), append([]string{acctest.Image("v1"), `on_destroy = "forget"`}, more...)...)
	}
	w := acctest.NewWorkspace(t, config(`timeouts = { create = "1s" }`))
	release := s.Hold(site.BusyDeploying()...)
	if output, code := w.Run("apply", "-auto-approve"); code == 0 {
		t.Fatalf("the deployment worked:\n%s", output)
	}
	release()
	w.Must("untaint", acctest.DeploymentAddress)
	s.Await(node, "provision_state", "active")
	w.Configure(config())
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	site.WantVerbs(t, s, node, "active")
	w.Must("destroy", "-auto-approve")
	if now := s.Node(node)["provision_state"]; now != "active" {
		t.Errorf("the node is %v", now)
	}
	s.Verb(node, "deleted", "available")
}

// Undeploying that ends in Ironic's state error is repeated: the deployment stays in state, though Ironic has removed its reservation.
func TestFakeDeployment_failedUndeployIsRepeated(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string][2]string{
		"of its own reservation": {"", ""},
		"of an allocation":       {"allocation_id = metal_allocation.a.id", "metal_allocation.a.node_id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var failing atomic.Bool
			s := site.StartFake(t, &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
				if verb == "deleted" && failing.Load() {
					return "the switch port was down"
				}
				return ""
			}})
			node := site.AddNode(t, s, "n1", nil)
			allocation, id := "", acctest.Quoted(node)
			if settings[1] != "" {
				allocation, id = acctest.Allocation(s), settings[1]
			}
			config := s.Provider() + allocation + acctest.Deployment(id, settings[0], acctest.Image("v1"))
			w := acctest.NewWorkspace(t, config)
			w.Must("apply", "-auto-approve")
			failing.Store(true)
			w.Configure(s.Provider() + allocation)
			for range 2 {
				acctest.Fails(t, w, acctest.Apply(), `is in state "error"`, "Fix the cause and run the same command again")
			}
			failing.Store(false)
			w.Configure(config) // still wanted: undeployed again, then deployed again
			wantRaised(t, w.Save()[acctest.DeploymentAddress], 1, 0)
			w.Must("apply", "saved")
			acctest.NoChanges(t, w)
			failing.Store(true)
			w.Configure(s.Provider() + allocation)
			acctest.Fails(t, w, acctest.Apply(), `is in state "error"`)
			failing.Store(false)
			acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 0 changed, 1 destroyed")
			site.WantVerbs(t, s, node, "active", "deleted", "deleted", "deleted", "active", "deleted", "deleted")
			acctest.NoChanges(t, w)
			w.Must("destroy", "-auto-approve")
		})
	}
}
