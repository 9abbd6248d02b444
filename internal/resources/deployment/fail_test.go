package deployment_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/reason"
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

// An image that its server does not have, and a server that does not answer, are the reasons of the failure, in the words of real Ironics.
func TestAccBMC_missingImageNamesTheReason(t *testing.T) {
	t.Parallel()
	words := "" // of the fake
	s := site.StartWithBMCs(t, &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
		if verb == "active" {
			return words
		}
		return ""
	}}) // the other real Ironics have no use for an image
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	node := site.AddNode(t, s, "n1", map[string]any{"deploy_interface": "direct", "boot_interface": "fake", "automated_clean": false})
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node),
		fmt.Sprintf("image = { url = %q, checksum = %q }", server.URL+"/none.img", acctest.Checksum("none"))))
	validation := "Validation of image href " + server.URL + "/none.img failed, reason: "
	fails := func(id, fake string) {
		t.Helper()
		words = validation + fake
		acctest.Fails(t, w, acctest.Apply(), reason.ByID(id).Meaning, "Validation of image href", fake)
		if got := acctest.Deployed(t, w).Values["failure"].(map[string]any)["reason"]; got != id {
			t.Errorf("failure.reason is %v, want %s", got, id)
		}
		t.Logf("Ironic says %q", s.Node(node)["last_error"])
	}
	fails("image-404", "Got HTTP code 404 instead of 200 in response to HEAD request.")
	server.Close()
	fails("image-unreachable", "HTTPConnectionPool")
	w.Must("destroy", "-auto-approve")
}
