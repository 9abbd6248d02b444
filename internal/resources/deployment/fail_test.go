package deployment_test

import (
	"fmt"
	"testing"

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
	acctest.Mention(t, output, "Could not deploy node "+s.Name("n1")+" ("+node+")", `is in state "deploy failed".`, "Ironic's last_error: "+
		acctest.LastErrorOfFailingStep,
		"Fix the cause (check the image, the checksum, the network and the machine's console) and apply again",
		"Terraform marks this resource as tainted: the next apply first undeploys the machine, which cleans it", "run terraform untaint")
	if d := acctest.Deployed(t, w); !d.Tainted || d.Values["provision_state"] != "deploy failed" ||
		d.Values["last_error"] != acctest.LastErrorOfFailingStep || fmt.Sprint(d.Values["attempts"]) != "2" ||
		fmt.Sprint(d.Values["failure"]) != "map[blame:<nil> meaning:<nil> next:<nil> reason:<nil> words:"+acctest.LastErrorOfFailingStep+"]" {
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
	if failed := acctest.Deployed(t, w).Values["failure"]; failed != nil {
		t.Errorf("failure is %v", failed)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_forgetDoesNotApplyToFailedDeployment(t *testing.T) {
	t.Parallel()
	s := site.StartSlow(t)
	node := site.AddNode(t, s, "n1", nil)
	config := func(more ...string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node),
			append([]string{acctest.Image("v1"), `on_destroy = "forget"`}, more...)...)
	}
	w := acctest.NewWorkspace(t, config(`timeouts = { create = "1s" }`))
	release := s.Hold(site.BusyDeploying()...)
	acctest.Fails(t, w, acctest.Apply(), `is still in state "deploying" after 1s`, "raise the resource's timeouts")
	release()
	if d := acctest.Deployed(t, w); !d.Tainted || d.Values["on_destroy"] != nil {
		t.Errorf("in state is %+v", d)
	}
	s.Await(node, "provision_state", "active")
	w.Configure(config())
	output := w.Must("apply", "-auto-approve")
	acctest.Mention(t, output, "Destroying undeploys the machine", "is undeployed and cleaned", "1 added, 0 changed, 1 destroyed")
	if d := acctest.Deployed(t, w); d.Tainted || d.Values["instance_id"] != s.Node(node)["instance_uuid"] ||
		d.Values["on_destroy"] != "forget" {
		t.Errorf("in state is %+v", d)
	}
	acctest.NoChanges(t, w)
	site.WantVerbs(t, s, node, "active", "deleted", "active")
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	w.Must("destroy", "-auto-approve")
}
