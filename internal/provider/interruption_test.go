package provider_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

func TestAccInterruption_applyContinuesDeployment(t *testing.T) {
	t.Parallel()
	s := site.StartSlow(t)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s)+acctest.Allocated(acctest.Image("v1"), `power_state = "on"`))
	release := s.Hold(site.BusyDeploying()...)
	running := w.Start("apply", "-auto-approve")
	site.AwaitState(t, s, node, site.BusyDeploying()...)
	output := acctest.Interrupt(t, running)
	acctest.Mention(t, output, "Interrupted: deploy node "+s.Name("n1"), "Ironic continues the operations that were started; the next "+
		"apply continues from there")
	d := acctest.Deployed(t, w)
	if d.Tainted || d.Values["id"] != node || d.Values["instance_id"] != s.Node(node)["instance_uuid"] ||
		d.Values["provision_state"] == "active" {
		t.Errorf("in state is %+v", d)
	}
	if output, _ := w.Plan(); site.IsBusy(s, node, site.BusyDeploying()) {
		acctest.Mention(t, output, "Unfinished deployment is continued", "0 to add, 1 to change, 0 to destroy")
	}
	acctest.WaitOut(t, s, w, release, "apply", "-auto-approve")
	site.WantVerbs(t, s, node, "active")
	if d := acctest.Deployed(t, w); d.Values["provision_state"] != "active" || d.Values["power_state"] != "on" {
		t.Errorf("in state is %+v", d)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccInterruption_destroyEndsDeployment(t *testing.T) {
	t.Parallel()
	s := site.StartSlow(t)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web")))+
		acctest.Allocated(acctest.Image("v1")))
	release := s.Hold(site.BusyDeploying()...)
	running := w.Start("apply", "-auto-approve")
	site.AwaitState(t, s, node, site.BusyDeploying()...)
	acctest.Interrupt(t, running)
	acctest.WaitOut(t, s, w, release, "destroy", "-auto-approve")
	site.WantVerbs(t, s, node, "active", "deleted")
	if site.AllocationNamed(s, s.Name("web")) != nil {
		t.Error("the allocation is left")
	}
}

func TestAccInterruption_destroyContinuesDestroy(t *testing.T) {
	t.Parallel()
	s := site.StartSlow(t)
	for name, end := range map[string]acctest.Stop{"interrupted": func(t *testing.T, _ *site.Site, r *acctest.Running) {
		acctest.Interrupt(t, r)
	}, "killed": acctest.Kill} {
		node := site.AddNode(t, s, name, nil)
		w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web")))+
			acctest.Allocated(acctest.Image("v1")))
		w.Must("apply", "-auto-approve")
		release := s.Hold(site.BusyUndeploying()...)
		running := w.Start("destroy", "-auto-approve")
		site.AwaitState(t, s, node, site.BusyUndeploying()...)
		end(t, s, running)
		if acctest.Deployed(t, w).Tainted || acctest.InState(t, w, acctest.AllocationAddress) == nil {
			t.Errorf("%s: in state is\n%s", name, w.State())
		}
		acctest.WaitOut(t, s, w, release, "destroy", "-auto-approve")
		site.WantVerbs(t, s, node, "active", "deleted")
		if site.AllocationNamed(s, s.Name("web")) != nil {
			t.Errorf("%s: the allocation is left", name)
		}
		site.RemoveNode(t, s, node)
	}
}

func TestAccInterruption_applyRestoresHalfDestroyed(t *testing.T) {
	t.Parallel()
	s := site.StartSlow(t)
	interrupted := func(t *testing.T, s *site.Site, r *acctest.Running) {
		acctest.Mention(t, acctest.Interrupt(t, r), "Interrupted: undeploy node "+s.Name("interrupted"),
			"Run the same command again to finish it")
	}
	for name, end := range map[string]acctest.Stop{"interrupted": interrupted, "killed": acctest.Kill} {
		node := site.AddNode(t, s, name, nil)
		w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web")))+
			acctest.Allocated(acctest.Image("v1")))
		w.Must("apply", "-auto-approve")
		before := site.AllocationNamed(s, s.Name("web"))
		release := s.Hold(site.BusyUndeploying()...)
		running := w.Start("destroy", "-auto-approve")
		site.AwaitState(t, s, node, site.BusyUndeploying()...)
		end(t, s, running)
		acctest.Mention(t, acctest.WaitOut(t, s, w, release, "apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
		site.WantVerbs(t, s, node, "active", "deleted", "active")
		acctest.WantKept(t, s, w, node, before)
		acctest.NoChanges(t, w)
		w.Must("destroy", "-auto-approve")
		site.RemoveNode(t, s, node)
	}
}

func TestAccInterruption_halfDestroyedWithoutAllocation(t *testing.T) {
	t.Parallel()
	s := site.StartSlow(t)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	release := s.Hold(site.BusyUndeploying()...)
	running := w.Start("destroy", "-auto-approve")
	site.AwaitState(t, s, node, site.BusyUndeploying()...)
	acctest.Kill(t, s, running)
	if output, code := w.Run("apply", "-auto-approve"); code != 0 { // it may still be cleaned, or have become so meanwhile
		if !strings.Contains(output, "an operation on it is") {
			acctest.Mention(t, output, "any more", "has released the reservation")
		}
		release()
		s.Await(node, "provision_state", "available")
		w.Must("apply", "-auto-approve")
	}
	site.WantVerbs(t, s, node, "active", "deleted", "active")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccInterruption_killedDeploymentIsAdopted(t *testing.T) {
	t.Parallel()
	s := site.StartSlow(t)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web")))+
		acctest.Allocated(acctest.Image("v1"), `config_drive = { user_data_wo = "secret", user_data_wo_version = 1 }`))
	release := s.Hold(site.BusyDeploying()...)
	running := w.Start("apply", "-auto-approve")
	site.AwaitState(t, s, node, site.BusyDeploying()...)
	acctest.Kill(t, s, running)
	if acctest.InState(t, w, acctest.DeploymentAddress) != nil {
		t.Fatalf("in state is\n%s", w.State())
	}
	release()
	before := s.Await(node, "provision_state", "active")
	w.Must("apply", "-auto-approve")
	if d := acctest.Deployed(t, w); d.Tainted || d.Values["instance_id"] != before["instance_uuid"] {
		t.Errorf("in state is %+v", d)
	}
	if after := s.Node(node); after["provision_updated_at"] != before["provision_updated_at"] {
		t.Error("the node was deployed twice")
	}
	site.WantVerbs(t, s, node, "active")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// A refused creation leaves nothing in the state: a tainted deployment would be undeployed, although the creation has not touched
// the machine.
func TestAccInterruption_refusedDeploymentLeavesMachine(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web")))+
		acctest.Allocated(acctest.Image("v1"), `on_destroy = "forget"`))
	w.Must("apply", "-auto-approve")
	before := s.Node(node)
	w.Configure(s.Provider() + acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web"))) + acctest.Allocated(acctest.Image("v2"),
		`on_destroy = "forget"`))
	output, code := w.Run("apply", "-auto-approve", "-replace="+acctest.DeploymentAddress)
	if code == 0 {
		t.Fatalf("what a forgotten machine runs was replaced:\n%s", output)
	}
	acctest.Mention(t, output, "something is deployed on it, and nothing was done", "create_before_destroy")
	if acctest.InState(t, w, acctest.DeploymentAddress) != nil {
		t.Errorf("in state is\n%s", w.State())
	}
	if output, code = w.Run("apply", "-auto-approve"); code == 0 {
		t.Errorf("the second try worked:\n%s", output)
	}
	w.Must("import", acctest.DeploymentAddress, node)
	if after := s.Node(node); after["provision_updated_at"] != before["provision_updated_at"] || after["provision_state"] != "active" {
		t.Errorf("the machine was touched: %v", after)
	}
	site.WantVerbs(t, s, node, "active")
	w.Configure(s.Provider() + acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web"))) + acctest.Allocated(acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	w.Must("destroy", "-auto-approve")
}

// A deployment in hold by an operator still belongs to its resource.
func TestFakeInterruption_heldDeploymentStaysInState(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s)+acctest.Allocated(acctest.Image("v1")))
	release := s.Hold(site.BusyDeploying()...)
	running := w.Start("apply", "-auto-approve")
	site.AwaitState(t, s, node, site.BusyDeploying()...)
	s.Fake.Set(node, "provision_state", "deploy hold")
	release()
	if output, code := running.Wait(); code == 0 || acctest.InState(t, w, acctest.DeploymentAddress) == nil {
		t.Errorf("exit code %d, in state is %v:\n%s", code, acctest.InState(t, w, acctest.DeploymentAddress), output)
	}
	s.Fake.Set(node, "provision_state", "deploy failed")
	w.Must("destroy", "-auto-approve")
}

func TestAccInterruption_killedDeploymentIsAwaited(t *testing.T) {
	t.Parallel()
	s := site.StartSlow(t)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web")))+
		acctest.Allocated(acctest.Image("v1")))
	release := s.Hold(site.BusyDeploying()...)
	running := w.Start("apply", "-auto-approve")
	site.AwaitState(t, s, node, site.BusyDeploying()...)
	acctest.Kill(t, s, running)
	output, _ := w.Plan()
	goesOn := "this deployment on node " + s.Name("n1")
	if acctest.InState(t, w, acctest.AllocationAddress) == nil { // OpenTofu does not save it at once: the allocation tells of both
		goesOn = "has also begun a deployment on node " + s.Name("n1")
	}
	acctest.Mention(t, output, "Interrupted creation is continued", goesOn, "takes it over and finishes it")
	if strings.Contains(output, "Destroying undeploys the machine") {
		t.Errorf("the plan threatens a machine that the apply only waits for:\n%s", output)
	}
	acctest.WaitOut(t, s, w, release, "apply", "-auto-approve")
	site.WantVerbs(t, s, node, "active")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccInterruption_killedWithoutAllocationIsFinished(t *testing.T) {
	t.Parallel()
	s := site.StartSlow(t)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(s.Name("n1")), acctest.Image("v1"),
		`config_drive = { user_data = "x" }`))
	release := s.Hold(site.BusyDeploying()...)
	running := w.Start("apply", "-auto-approve")
	site.AwaitState(t, s, node, site.BusyDeploying()...)
	acctest.Kill(t, s, running)
	w.Must("plan", "-out", "plan.bin")
	output := acctest.WaitOut(t, s, w, release, "apply", "plan.bin")
	acctest.Mention(t, output, "Interrupted creation is continued", "node "+s.Name("n1"), "which began at")
	if n := strings.Count(output, "Interrupted creation is continued"); n != 1 {
		t.Errorf("the apply says so %d times:\n%s", n, output)
	}
	s.Await(node, "provision_state", "active")
	acctest.NoChanges(t, w)
	site.WantVerbs(t, s, node, "active")
	w.Must("destroy", "-auto-approve")
}

func TestAccInterruption_killedRebuildHappensOnce(t *testing.T) {
	t.Parallel()
	s := site.StartSlow(t)
	node := site.AddNode(t, s, "n1", nil)
	config := func(version string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image(version),
			`config_drive = { user_data = "`+version+`" }`)
	}
	w := acctest.NewWorkspace(t, config("v1"))
	w.Must("apply", "-auto-approve")
	w.Configure(config("v2"))
	interrupted := func(t *testing.T, s *site.Site, r *acctest.Running) {
		acctest.Mention(t, acctest.Interrupt(t, r), "Warning: Interrupted: deploy node "+s.Name("n1"))
	}
	for i, end := range []acctest.Stop{acctest.Kill, interrupted} {
		release := s.Hold(site.BusyDeploying()...)
		running := w.Start("apply", "-auto-approve")
		site.AwaitState(t, s, node, site.BusyDeploying()...)
		end(t, s, running)
		if output, _ := w.Plan(); site.IsBusy(s, node, site.BusyDeploying()) {
			acctest.Mention(t, output, "Unfinished deployment is continued")
		}
		acctest.WaitOut(t, s, w, release, "apply", "-auto-approve")
		acctest.NoChanges(t, w)
		if i == 0 {
			w.Configure(config("v3"))
		}
	}
	site.WantVerbs(t, s, node, "active", "rebuild", "rebuild")
	if got := site.InstanceInfo(s, node)["image_source"]; got != acctest.Images+"v3.qcow2" {
		t.Errorf("the node runs %v", got)
	}
	w.Must("destroy", "-auto-approve")
}

// startRedirecting is an Ironic that finds every image at another URL than the one that it is given, and notes that.
func startRedirecting(t *testing.T) *site.Site {
	t.Helper()
	fake := &fakeironic.Server{}
	fake.Reject = func(r *http.Request) *fakeironic.Rejection {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/states/provision") {
			node, _ := fake.Node(strings.Split(r.URL.Path, "/")[3])
			info, _ := node.Raw["instance_info"].(map[string]any)
			if source := site.Text(info["image_source"]); source != "" {
				info["image_source"] = strings.Replace(source, acctest.Images, acctest.Images+"mirror/", 1)
				fake.Set(node.UUID, "instance_info", info)
			}
		}
		return nil
	}
	return site.StartFake(t, fake)
}

func TestFakeInterruption_killedRebuildFromRedirect(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		settings string
		during   bool // the plan is made while Ironic is at work
	}{
		"an image":                    {},
		"an image and a config drive": {settings: `config_drive = { user_data = "x" }`},
		"planned while it is written": {during: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startRedirecting(t)
			node := site.AddNode(t, s, "n1", nil)
			config := func(version, settings string) string {
				return s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image(version), settings)
			}
			w := acctest.NewWorkspace(t, config("v1", ""))
			w.Must("apply", "-auto-approve")
			acctest.NoChanges(t, w)
			w.Configure(config("v2", tc.settings))
			release := s.Hold(site.BusyDeploying()...)
			running := w.Start("apply", "-auto-approve")
			site.AwaitState(t, s, node, site.BusyDeploying()...)
			acctest.Kill(t, s, running)
			if tc.during {
				acctest.Mention(t, w.Must("plan", "-out=plan.bin"), "Unfinished deployment is continued")
			}
			release()
			s.Await(node, "provision_state", "active")
			if tc.during {
				w.Must("apply", "plan.bin")
			} else {
				acctest.Mention(t, w.Must("apply", "-auto-approve"), "Deployment of an earlier run is recorded",
					"an earlier run has deployed it")
			}
			acctest.NoChanges(t, w)
			if got := site.InstanceInfo(s, node)["image_source"]; got != acctest.Images+"mirror/v2.qcow2" {
				t.Errorf("the node runs %v", got)
			}
			site.WantVerbs(t, s, node, "active", "rebuild")
			acctest.RunImage(s, node, "other") // a change by another client is still noticed
			output, _ := w.Plan()
			acctest.Mention(t, output, "Rebuild wipes the root disk", acctest.Images+"other.qcow2")
			w.Must("apply", "-auto-approve")
			if got := site.InstanceInfo(s, node)["image_source"]; got != acctest.Images+"mirror/v2.qcow2" {
				t.Errorf("after the apply that repairs it the node runs %v", got)
			}
			w.Must("destroy", "-auto-approve")
		})
	}
}

func TestAccInterruption_importOfRunningDeployment(t *testing.T) {
	t.Parallel()
	s := site.StartSlow(t)
	node := site.AddNode(t, s, "n1", nil)
	s.Patch(node, "add", "/instance_uuid", site.ForeignInstance(s))
	release := s.Hold(site.BusyDeploying()...)
	s.Must("PUT", "nodes/"+node+"/states/provision", map[string]any{"target": "active"})
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	w.Must("import", acctest.DeploymentAddress, node)
	acctest.WaitOut(t, s, w, release, "apply", "-auto-approve") // takes it over, and waits for it
	s.Await(node, "provision_state", "active")
	acctest.NoChanges(t, w)
	site.WantVerbs(t, s, node, "active") // but never deploys it over
	w.Must("destroy", "-auto-approve")
}

func TestAccInterruption_oneOfMany(t *testing.T) {
	t.Parallel()
	s := site.StartSlow(t)
	var nodes []string
	for i := range 3 {
		// other tests do not take its slot
		nodes = append(nodes, site.AddNode(t, s, fmt.Sprintf("n%d", i), map[string]any{"shard": s.Class()}))
	}
	w := acctest.NewWorkspace(t, s.Provider(`provisioning_limit = { max_concurrent = 1, scope = "shard", coordination = "process" }`)+fmt.Sprintf(`resource "metal_deployment" "d" {
  count = 3
  node_id = [%q, %q, %q][count.index]
  %s
}
`, nodes[0], nodes[1], nodes[2], acctest.Image("v1")))
	release := s.Hold(site.BusyDeploying()...)
	running := w.Start("apply", "-auto-approve")
	site.Until(t, "the first deployment, with two in the queue", func() bool {
		return slices.ContainsFunc(nodes, func(node string) bool { return site.IsBusy(s, node, site.BusyDeploying()) }) &&
			!slices.ContainsFunc(nodes, func(node string) bool { return s.Node(node)["instance_uuid"] == nil })
	})
	acctest.Interrupt(t, running)
	for i := range nodes {
		if d := acctest.InState(t, w, fmt.Sprintf("metal_deployment.d[%d]", i)); d == nil || d.Tainted {
			t.Errorf("in state is %+v", d)
		}
	}
	acctest.WaitOut(t, s, w, release, "apply", "-auto-approve")
	for _, node := range nodes {
		site.WantVerbs(t, s, node, "active")
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccInterruption_writeOnlyUserDataStaysSecret(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(version int, more string) string {
		return "variable \"secret\" {\n  type = string\n  ephemeral = true\n  sensitive = true\n}\n" + s.Provider() +
			acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"),
				fmt.Sprintf("config_drive = {\n    user_data_wo = var.secret\n    user_data_wo_version = %d\n  }", version), more)
	}
	w := acctest.NewWorkspace(t, config(1, ""))
	const secret = "hunter2-and-more"
	log := filepath.Join(w.Dir, "trace.log")
	w.Setenv("TF_LOG", "TRACE")
	w.Setenv("TF_LOG_PATH", log)
	w.Setenv("TF_VAR_secret", secret)
	var said strings.Builder
	said.WriteString(w.Must("plan", "-out=plan.bin"))
	said.WriteString(w.Must("show", "-json", "plan.bin"))
	said.WriteString(w.Must("apply", "plan.bin"))
	w.Configure(config(2, acctest.FailingStep))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the rebuild worked:\n%s", output)
	}
	said.WriteString(output)
	w.Configure(config(3, ""))
	said.WriteString(w.Must("apply", "-auto-approve"))
	said.WriteString(w.Must("show", "-json"))
	said.WriteString(w.Must("destroy", "-auto-approve"))
	trace, err := os.ReadFile(log)
	if err != nil || !strings.Contains(string(trace), "request to Ironic") {
		t.Fatalf("the log has nothing of the provider: %v", err)
	}
	for where, content := range map[string]string{"output": said.String(), "state": w.State(), "log": string(trace)} {
		if at := strings.Index(content, secret); at >= 0 {
			t.Errorf("the secret is in the %s: %q", where, content[max(0, at-200):at+len(secret)])
		}
	}
}

func TestFakeInterruption_pullSecretStaysSecret(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	config := func(version int) string {
		return "variable \"secret\" {\n  type = string\n  ephemeral = true\n}\n" + s.Provider() + acctest.Deployment(acctest.Quoted(node),
			fmt.Sprintf("image = {\n    url = \"oci://registry.example.com/debian:12\"\n    pull_secret_wo = var.secret\n "+
				"   pull_secret_wo_version = %d\n  }", version))
	}
	w := acctest.NewWorkspace(t, config(1))
	log := filepath.Join(w.Dir, "trace.log")
	w.Setenv("TF_LOG", "TRACE")
	w.Setenv("TF_LOG_PATH", log)
	var said strings.Builder
	for i, secret := range []string{"dXNlcjpodW50ZXIy", "dXNlcjpodW50ZXIz"} {
		w.Setenv("TF_VAR_secret", secret)
		w.Configure(config(i + 1))
		said.WriteString(w.Must("plan", "-out=plan.bin"))
		said.WriteString(w.Must("show", "-json", "plan.bin"))
		said.WriteString(w.Must("apply", "plan.bin"))
		now, _ := s.Fake.Node(node)
		got := now.Raw["instance_info"].(map[string]any)["image_pull_secret"]
		if got != secret {
			t.Errorf("the node has the secret %v, want %v", got, secret)
		}
		acctest.NoChanges(t, w)
	}
	w.Setenv("TF_VAR_secret", "")
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	said.WriteString(w.Must("apply", "-auto-approve"))
	if _, left := site.InstanceInfo(s, node)["image_pull_secret"]; left {
		t.Error("the secret is left on a node that needs it no more")
	}
	said.WriteString(w.Must("destroy", "-auto-approve"))
	site.WantVerbs(t, s, node, "active", "rebuild", "deleted") // a new secret is sent, and wipes nothing
	trace, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for where, content := range map[string]string{"output": said.String(), "state": w.State(), "log": string(trace)} {
		if strings.Contains(content, "dXNlcjpodW50ZXI") {
			t.Errorf("the secret is in the %s", where)
		}
	}
}

func TestFakeInterruption_repeatedUserDataIsMasked(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-and-more"
	s := site.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		body, _ := io.ReadAll(r.Body) // in memory
		if r.Method != http.MethodPut || !strings.Contains(string(body), secret) {
			return nil
		}
		return &fakeironic.Rejection{
			Status: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/json"}},
			Body: `{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"Invalid configdrive format: '` + secret +
				`' is not liked\", \"debuginfo\": null}"}`,
		}
	}})
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"),
		`config_drive = { user_data_wo = "`+secret+`", user_data_wo_version = 1 }`))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the deployment worked:\n%s", output)
	}
	acctest.Mention(t, output, "Invalid configdrive format: '******' is not liked")
	if strings.Contains(output, secret) || strings.Contains(w.State(), secret) {
		t.Errorf("the secret is in the output or the state:\n%s", output)
	}
	w.Must("destroy", "-auto-approve")
}

// After Ctrl-C the state contains the objects that Ironic was creating.
func TestFakeInterruption_unfinishedObjectIsInState(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		method  string
		config  func(s *site.Site, node string) string
		address string
	}{
		"host": {http.MethodPost, func(s *site.Site, _ string) string {
			return acctest.HostBlock(s.Name("h"), `driver = "fake-hardware"`)
		}, "metal_host.h"},
		"allocation": {http.MethodPost, func(s *site.Site, _ string) string { return acctest.Allocation(s) }, acctest.AllocationAddress},
		"deployment": {http.MethodPatch, func(_ *site.Site, node string) string {
			return acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"))
		}, acctest.DeploymentAddress},
	} {
		for how, rejection := range map[string]*fakeironic.Rejection{"answered": nil, "answer lost": {After: true}} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				started := make(chan *acctest.Running, 1)
				var starts atomic.Bool
				var once sync.Once
				s := site.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) (answer *fakeironic.Rejection) {
					if r.Method == tc.method && starts.Load() {
						once.Do(func() {
							(<-started).InterruptProvider()
							answer = rejection
						})
					}
					return answer
				}})
				node := site.AddNode(t, s, "n1", nil)
				w := acctest.NewWorkspace(t, s.Provider()+tc.config(s, node))
				w.Trace()
				starts.Store(true)
				running := w.Start("apply", "-auto-approve")
				started <- running
				output, _ := running.Wait()
				if acctest.InState(t, w, tc.address) == nil {
					t.Fatalf("what was made is not in state:\n%s", output)
				}
				w.Must("apply", "-auto-approve")
				acctest.NoChanges(t, w)
				w.Must("destroy", "-auto-approve")
				if after, left := s.Node(node), s.Left(); after["instance_uuid"] != nil || len(left) != 1 {
					t.Errorf("left are %v, and the node is %v", left, after)
				}
			})
		}
	}
}

// After Ctrl-C before anything was created, the error says so and does not blame the provider.
func TestFakeInterruption_beforeCreation(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]func(s *site.Site, node string) string{
		"host": func(s *site.Site, _ string) string {
			return acctest.HostBlock(s.Name("h"), `driver = "fake-hardware"`)
		},
		"allocation": func(s *site.Site, _ string) string { return acctest.Allocation(s) },
		"deployment": func(_ *site.Site, node string) string {
			return acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			creates := http.MethodPost
			if name == "deployment" {
				creates = http.MethodPatch
			}
			started := make(chan *acctest.Running, 1)
			var starts atomic.Bool
			var once sync.Once
			s := site.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
				if !starts.Load() || r.Method != creates {
					return nil
				}
				once.Do(func() { (<-started).InterruptProvider() })
				return &fakeironic.Rejection{Status: http.StatusServiceUnavailable}
			}})
			node := site.AddNode(t, s, "n1", nil)
			w := acctest.NewWorkspace(t, s.Provider()+config(s, node))
			w.Trace()
			starts.Store(true)
			running := w.Start("apply", "-auto-approve")
			started <- running
			output, code := running.Wait()
			if code == 0 {
				t.Errorf("an interrupted run says that it worked:\n%s", output)
			}
			acctest.Mention(t, output, "The run was interrupted")
			for _, word := range []string{"Missing Resource State", "issue in the Terraform Provider"} {
				if strings.Contains(output, word) {
					t.Errorf("the provider is blamed:\n%s", output)
				}
			}
		})
	}
}

// A role that is revoked hides the nodes. What Ironic deploys meanwhile is not tainted, with an apply that succeeds and, by a
// postcondition, with one that fails. Once the role is granted again, the next apply waits for the same deployments.
func TestFakeInterruption_unwatchedDeploymentIsNotTainted(t *testing.T) {
	t.Parallel()
	var hidden atomic.Bool
	s := site.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		if r.Method != http.MethodGet || !hidden.Load() || !strings.HasPrefix(r.URL.Path, "/v1/nodes/") {
			return nil
		}
		return ironictest.Fault(http.StatusNotFound, "Node "+strings.TrimPrefix(r.URL.Path, "/v1/nodes/")+" could not be found.")
	}})
	plain, checked := site.AddNode(t, s, "plain", nil), site.AddNode(t, s, "checked", nil)
	deployment := func(name, node, more string) string {
		return fmt.Sprintf("resource \"metal_deployment\" %q {\n  node_id = %q\n%s\n%s\n}\n", name, node, acctest.Image("v1"), more)
	}
	w := acctest.NewWorkspace(t, s.Provider()+deployment("plain", plain, "")+deployment("checked", checked, `
  lifecycle {
    postcondition {
      condition     = self.provision_state == "active"
      error_message = "The machine is not known to run."
    }
  }`))
	release := s.Hold(site.BusyDeploying()...)
	running := w.Start("apply", "-auto-approve")
	site.AwaitState(t, s, plain, site.BusyDeploying()...)
	site.AwaitState(t, s, checked, site.BusyDeploying()...)
	hidden.Store(true)
	output, code := running.Wait()
	acctest.Mention(t, output, "Unfinished: deploy node "+s.Name("plain"), "Unfinished: deploy node "+s.Name("checked"),
		"The machine is not known to run")
	if code == 0 {
		t.Error("the apply succeeds in spite of the postcondition")
	}
	hidden.Store(false)
	for _, name := range []string{"plain", "checked"} {
		if d := acctest.InState(t, w, "metal_deployment."+name); d == nil || d.Tainted {
			t.Errorf("%s: in state is %+v", name, d)
		}
	}
	output, _ = w.Plan()
	acctest.Mention(t, output, "Unfinished deployment is continued", "0 to add, 2 to change, 0 to destroy")
	acctest.WaitOut(t, s, w, release, "apply", "-auto-approve")
	site.WantVerbs(t, s, plain, "active")
	site.WantVerbs(t, s, checked, "active")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}
