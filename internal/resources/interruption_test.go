package resources_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
)

// stop is a way to end a running CLI: Ctrl-C or kill -9.
type stop func(*testing.T, *acctest.Site, *acctest.Running)

// interrupt is Ctrl-C. A run that was interrupted must not say that all went well.
func interrupt(t *testing.T, running *acctest.Running) (output string) {
	t.Helper()
	running.Interrupt()
	output, code := running.Wait()
	if code == 0 {
		t.Errorf("an interrupted run says that it worked:\n%s", output)
	}
	return output
}

// kill is kill -9 of the CLI and the provider, while it does not hold the lock of the provisioning limit: that would keep the
// next run waiting until it expires, of which these tests are not.
func kill(t *testing.T, s *acctest.Site, running *acctest.Running) {
	t.Helper()
	acctest.Until(t, "the end of the lock of the provisioning limit", func() bool { return !isLimitLocked(s) })
	running.Kill()
	running.Wait()
}

// isLimitLocked reports whether a run holds the lock of the provisioning limit.
func isLimitLocked(s *acctest.Site) bool {
	list, _ := s.Must(http.MethodGet, "chassis", nil)["chassis"].([]any)
	return slices.ContainsFunc(list, func(item any) bool {
		record, _ := item.(map[string]any)
		return strings.Contains(text(record["description"]), "admission lock")
	})
}

// busyDeploying are the states in which a node is being deployed, busyUndeploying those in which it is undeployed.
func busyDeploying() []string { return []string{"deploying", "wait call-back"} }

func busyUndeploying() []string { return []string{"deleting", "cleaning", "clean wait"} }

// isBusy reports whether a node is in one of the states.
func isBusy(s *acctest.Site, node string, states []string) bool {
	return slices.Contains(states, text(s.Node(node)["provision_state"]))
}

func TestAccInterruption_applyTakesUpAnInterruptedDeployment(t *testing.T) {
	t.Parallel()
	s := acctest.StartSlow(t)
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+allocation(s)+allocated(image("v1"), `power_state = "on"`))
	running := w.Start("apply", "-auto-approve")
	awaitState(t, s, node, busyDeploying()...)
	output := interrupt(t, running)
	mention(t, output, "Interrupted: deploy node "+s.Name("n1"), "What was started goes on in Ironic; the next apply takes it up again")
	d := deployed(t, w)
	if d.Tainted || d.Values["id"] != node || d.Values["instance_uuid"] != s.Node(node)["instance_uuid"] || d.Values["provision_state"] == "active" {
		t.Errorf("in state is %+v", d)
	}
	if output, _ := w.Plan(); isBusy(s, node, busyDeploying()) {
		mention(t, output, "Unfinished deployment is continued", "0 to add, 1 to change, 0 to destroy")
	}
	w.Must("apply", "-auto-approve")
	wantVerbs(t, s, node, "active")
	if d := deployed(t, w); d.Values["provision_state"] != "active" || d.Values["power_state"] != "on" {
		t.Errorf("in state is %+v", d)
	}
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccInterruption_destroyTakesUpAnInterruptedDeployment(t *testing.T) {
	t.Parallel()
	s := acctest.StartSlow(t)
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+allocation(s, `name = `+quoted(s.Name("web")))+allocated(image("v1")))
	running := w.Start("apply", "-auto-approve")
	awaitState(t, s, node, busyDeploying()...)
	interrupt(t, running)
	w.Must("destroy", "-auto-approve")
	wantVerbs(t, s, node, "active", "deleted")
	if allocationNamed(s, s.Name("web")) != nil {
		t.Error("the allocation is left")
	}
}

func TestAccInterruption_destroyIsTakenUpByDestroy(t *testing.T) {
	t.Parallel()
	s := acctest.StartSlow(t)
	for name, end := range map[string]stop{"interrupted": func(t *testing.T, _ *acctest.Site, r *acctest.Running) { interrupt(t, r) }, "killed": kill} {
		node := addNode(t, s, name, nil)
		w := acctest.NewWorkspace(t, s.Provider()+allocation(s, `name = `+quoted(s.Name("web")))+allocated(image("v1")))
		w.Must("apply", "-auto-approve")
		running := w.Start("destroy", "-auto-approve")
		awaitState(t, s, node, busyUndeploying()...)
		end(t, s, running)
		if deployed(t, w).Tainted || inState(t, w, allocationAddress) == nil {
			t.Errorf("%s: in state is\n%s", name, w.State())
		}
		w.Must("destroy", "-auto-approve")
		wantVerbs(t, s, node, "active", "deleted")
		if allocationNamed(s, s.Name("web")) != nil {
			t.Errorf("%s: the allocation is left", name)
		}
		removeNode(t, s, node)
	}
}

func TestAccInterruption_applyBringsAHalfDestroyedDeploymentBack(t *testing.T) {
	t.Parallel()
	s := acctest.StartSlow(t)
	interrupted := func(t *testing.T, s *acctest.Site, r *acctest.Running) {
		mention(t, interrupt(t, r), "Interrupted: undeploy node "+s.Name("interrupted"), "Destroy again to finish it; an apply would deploy the node again")
	}
	for name, end := range map[string]stop{"interrupted": interrupted, "killed": kill} {
		node := addNode(t, s, name, nil)
		w := acctest.NewWorkspace(t, s.Provider()+allocation(s, `name = `+quoted(s.Name("web")))+allocated(image("v1")))
		w.Must("apply", "-auto-approve")
		before := allocationNamed(s, s.Name("web"))
		running := w.Start("destroy", "-auto-approve")
		awaitState(t, s, node, busyUndeploying()...)
		end(t, s, running)
		mention(t, w.Must("apply", "-auto-approve"), "0 added, 1 changed, 0 destroyed")
		wantVerbs(t, s, node, "active", "deleted", "active")
		wantKept(t, s, w, node, before)
		noChanges(t, w)
		w.Must("destroy", "-auto-approve")
		removeNode(t, s, node)
	}
}

func TestAccInterruption_halfDestroyedDeploymentWithoutAnAllocationIsMadeAnew(t *testing.T) {
	t.Parallel()
	s := acctest.StartSlow(t)
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(node), image("v1")))
	w.Must("apply", "-auto-approve")
	running := w.Start("destroy", "-auto-approve")
	awaitState(t, s, node, busyUndeploying()...)
	kill(t, s, running)
	if output, code := w.Run("apply", "-auto-approve"); code != 0 { // it may still be cleaned, or have become so meanwhile
		if !strings.Contains(output, "Ironic is at work on it. Apply again when it is available") {
			mention(t, output, "any more", "That reservation was released")
		}
		s.Await(node, "provision_state", "available")
		w.Must("apply", "-auto-approve")
	}
	wantVerbs(t, s, node, "active", "deleted", "active")
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// recallAllocation takes the allocation "web" into the state of a run that was killed. Terraform keeps a local state up to
// date as it goes; OpenTofu, and both with a remote state, write it only every 20 seconds.
func recallAllocation(t *testing.T, s *acctest.Site, w *acctest.Workspace) {
	t.Helper()
	if inState(t, w, allocationAddress) != nil {
		return
	}
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("a second allocation was made:\n%s", output)
	}
	mention(t, output, "An allocation with name "+s.Name("web")+" already exists", "Import the existing allocation")
	w.Must("import", allocationAddress, s.Name("web"))
}

func TestAccInterruption_killedDeploymentOfAnAllocationIsAdopted(t *testing.T) {
	t.Parallel()
	s := acctest.StartSlow(t)
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+allocation(s, `name = `+quoted(s.Name("web")))+
		allocated(image("v1"), `config_drive = { user_data_wo = "secret", user_data_wo_version = 1 }`))
	running := w.Start("apply", "-auto-approve")
	awaitState(t, s, node, busyDeploying()...)
	kill(t, s, running)
	recallAllocation(t, s, w)
	if inState(t, w, deploymentAddress) != nil {
		t.Fatalf("in state is\n%s", w.State())
	}
	before := s.Await(node, "provision_state", "active")
	w.Must("apply", "-auto-approve")
	if d := deployed(t, w); d.Tainted || d.Values["instance_uuid"] != before["instance_uuid"] {
		t.Errorf("in state is %+v", d)
	}
	if after := s.Node(node); after["provision_updated_at"] != before["provision_updated_at"] {
		t.Error("the node was deployed twice")
	}
	wantVerbs(t, s, node, "active")
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// What a refused creation has not touched, nothing that follows may touch either: a tainted deployment would be undeployed.
func TestAccInterruption_refusedDeploymentOfAnAllocationLeavesWhatRuns(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+allocation(s, `name = `+quoted(s.Name("web")))+allocated(image("v1"), `on_destroy = "detach"`))
	w.Must("apply", "-auto-approve")
	before := s.Node(node)
	w.Configure(s.Provider() + allocation(s, `name = `+quoted(s.Name("web"))) + allocated(image("v2"), `on_destroy = "detach"`))
	output, code := w.Run("apply", "-auto-approve", "-replace="+deploymentAddress)
	if code == 0 {
		t.Fatalf("what a detached machine runs was replaced:\n%s", output)
	}
	mention(t, output, "it runs something that this resource did not deploy", "terraform import")
	if inState(t, w, deploymentAddress) != nil {
		t.Errorf("in state is\n%s", w.State())
	}
	if output, code = w.Run("apply", "-auto-approve"); code == 0 {
		t.Errorf("the second try worked:\n%s", output)
	}
	w.Must("import", deploymentAddress, node)
	if after := s.Node(node); after["provision_updated_at"] != before["provision_updated_at"] || after["provision_state"] != "active" {
		t.Errorf("the machine was touched: %v", after)
	}
	wantVerbs(t, s, node, "active")
	w.Configure(s.Provider() + allocation(s, `name = `+quoted(s.Name("web"))) + allocated(image("v1")))
	w.Must("apply", "-auto-approve")
	w.Must("destroy", "-auto-approve")
}

// Somebody who holds what we deploy does not make it somebody else's.
func TestFakeInterruption_deploymentThatIsHeldStaysInState(t *testing.T) {
	t.Parallel()
	s := acctest.StartFake(t, &fakeironic.Server{StepTime: 2 * time.Second})
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+allocation(s)+allocated(image("v1")))
	running := w.Start("apply", "-auto-approve")
	awaitState(t, s, node, busyDeploying()...)
	s.Fake.Set(node, "provision_state", "deploy hold")
	if output, code := running.Wait(); code == 0 || inState(t, w, deploymentAddress) == nil {
		t.Errorf("exit code %d, in state is %v:\n%s", code, inState(t, w, deploymentAddress), output)
	}
	s.Fake.Set(node, "provision_state", "deploy failed")
	w.Must("destroy", "-auto-approve")
}

func TestAccInterruption_killedDeploymentOfAnAllocationIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := acctest.StartSlow(t)
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+allocation(s, `name = `+quoted(s.Name("web")))+allocated(image("v1")))
	running := w.Start("apply", "-auto-approve")
	awaitState(t, s, node, busyDeploying()...)
	kill(t, s, running)
	recallAllocation(t, s, w)
	w.Must("apply", "-auto-approve")
	wantVerbs(t, s, node, "active")
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccInterruption_killedDeploymentWithoutAnAllocationIsImported(t *testing.T) {
	t.Parallel()
	s := acctest.StartSlow(t)
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(s.Name("n1")), image("v1"), `config_drive = { user_data = "x" }`))
	running := w.Start("apply", "-auto-approve")
	awaitState(t, s, node, busyDeploying()...)
	kill(t, s, running)
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the apply worked:\n%s", output)
	}
	mention(t, output, "is reserved by ", "Somebody else uses this node, or perhaps an earlier run of yours that was killed", "terraform import <address of the metal_deployment> "+node)
	w.Must("import", deploymentAddress, node)
	w.Must("apply", "-auto-approve")
	s.Await(node, "provision_state", "active")
	noChanges(t, w)
	wantVerbs(t, s, node, "active")
	w.Must("destroy", "-auto-approve")
}

func TestAccInterruption_killedRebuildHappensOnce(t *testing.T) {
	t.Parallel()
	s := acctest.StartSlow(t)
	node := addNode(t, s, "n1", nil)
	config := func(version string) string {
		return s.Provider() + deployment(quoted(node), image(version), `config_drive = { user_data = "`+version+`" }`)
	}
	w := acctest.NewWorkspace(t, config("v1"))
	w.Must("apply", "-auto-approve")
	w.Configure(config("v2"))
	interrupted := func(t *testing.T, s *acctest.Site, r *acctest.Running) {
		mention(t, interrupt(t, r), "Warning: Interrupted: deploy node "+s.Name("n1"))
	}
	for i, end := range []stop{kill, interrupted} {
		running := w.Start("apply", "-auto-approve")
		awaitState(t, s, node, busyDeploying()...)
		end(t, s, running)
		if output, _ := w.Plan(); isBusy(s, node, busyDeploying()) {
			mention(t, output, "Unfinished deployment is continued")
		}
		w.Must("apply", "-auto-approve")
		noChanges(t, w)
		if i == 0 {
			w.Configure(config("v3"))
		}
	}
	wantVerbs(t, s, node, "active", "rebuild", "rebuild")
	if got := instanceInfo(s, node)["image_source"]; got != images+"v3.qcow2" {
		t.Errorf("the node runs %v", got)
	}
	w.Must("destroy", "-auto-approve")
}

// startRedirecting is an Ironic that finds every image at another URL than the one that it is given, and notes that.
func startRedirecting(t *testing.T) *acctest.Site {
	t.Helper()
	fake := &fakeironic.Server{StepTime: 2 * time.Second}
	fake.Reject = func(r *http.Request) *fakeironic.Rejection {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/states/provision") {
			node, _ := fake.Node(strings.Split(r.URL.Path, "/")[3])
			info, _ := node.Raw["instance_info"].(map[string]any)
			if source := text(info["image_source"]); source != "" {
				info["image_source"] = strings.Replace(source, images, images+"mirror/", 1)
				fake.Set(node.UUID, "instance_info", info)
			}
		}
		return nil
	}
	return acctest.StartFake(t, fake)
}

func TestFakeInterruption_killedRebuildFromARedirectHappensOnce(t *testing.T) {
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
			node := addNode(t, s, "n1", nil)
			config := func(version, settings string) string {
				return s.Provider() + deployment(quoted(node), image(version), settings)
			}
			w := acctest.NewWorkspace(t, config("v1", ""))
			w.Must("apply", "-auto-approve")
			noChanges(t, w)
			w.Configure(config("v2", tc.settings))
			running := w.Start("apply", "-auto-approve")
			awaitState(t, s, node, busyDeploying()...)
			kill(t, s, running)
			s.Await(node, "provision_state", "active")
			if tc.during {
				s.Fake.Set(node, "provision_state", "deploying") // still, for the plan
				mention(t, w.Must("plan", "-out=plan.bin"), "Unfinished deployment is continued")
				s.Fake.Set(node, "provision_state", "active")
				w.Must("apply", "plan.bin")
			} else {
				mention(t, w.Must("apply", "-auto-approve"), "Deployment of an earlier run is noted", "an earlier run has deployed it, and was killed before it could say so. The machine is not touched")
			}
			noChanges(t, w)
			if got := instanceInfo(s, node)["image_source"]; got != images+"mirror/v2.qcow2" {
				t.Errorf("the node runs %v", got)
			}
			wantVerbs(t, s, node, "active", "rebuild")
			s.Patch(node, "add", "/instance_info/image_source", images+"other.qcow2") // and what somebody else does is still seen
			output, _ := w.Plan()
			mention(t, output, "Rebuild wipes the root disk", images+"other.qcow2")
			w.Must("apply", "-auto-approve")
			if got := instanceInfo(s, node)["image_source"]; got != images+"mirror/v2.qcow2" {
				t.Errorf("after the apply that repairs it the node runs %v", got)
			}
			w.Must("destroy", "-auto-approve")
		})
	}
}

func TestAccInterruption_deploymentOfSomebodyElseIsImportedWhileItIsUnderWay(t *testing.T) {
	t.Parallel()
	s := acctest.StartSlow(t)
	node := addNode(t, s, "n1", nil)
	s.Patch(node, "add", "/instance_uuid", foreignInstance(s))
	s.Must("PUT", "nodes/"+node+"/states/provision", map[string]any{"target": "active"})
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(node), image("v1")))
	w.Must("import", deploymentAddress, node)
	w.Must("apply", "-auto-approve") // takes it over
	w.Must("apply", "-auto-approve") // and waits for it
	s.Await(node, "provision_state", "active")
	noChanges(t, w)
	wantVerbs(t, s, node, "active") // but never deploys it over
	w.Must("destroy", "-auto-approve")
}

func TestAccInterruption_oneOfManyKeepsItsPlace(t *testing.T) {
	t.Parallel()
	s := acctest.StartSlow(t)
	var nodes []string
	for i := range 3 {
		nodes = append(nodes, addNode(t, s, fmt.Sprintf("n%d", i), map[string]any{"shard": s.Class()})) // other tests do not take its slot
	}
	w := acctest.NewWorkspace(t, s.Provider(`provisioning_limit = { max_hosts = 1, scope = "shard", coordination = "process" }`)+fmt.Sprintf(`resource "metal_deployment" "d" {
  count = 3
  node_id = [%q, %q, %q][count.index]
  %s
}
`, nodes[0], nodes[1], nodes[2], image("v1")))
	running := w.Start("apply", "-auto-approve")
	acctest.Until(t, "the first deployment", func() bool {
		return slices.ContainsFunc(nodes, func(node string) bool { return isBusy(s, node, busyDeploying()) })
	})
	interrupt(t, running) // two are in the queue
	for i := range nodes {
		if d := inState(t, w, fmt.Sprintf("metal_deployment.d[%d]", i)); d == nil || d.Tainted {
			t.Errorf("in state is %+v", d)
		}
	}
	w.Must("apply", "-auto-approve")
	for _, node := range nodes {
		wantVerbs(t, s, node, "active")
	}
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccInterruption_writeOnlyUserDataIsWrittenNowhere(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	config := func(version int, more string) string {
		return "variable \"secret\" {\n  type = string\n  ephemeral = true\n  sensitive = true\n}\n" + s.Provider() + deployment(quoted(node), image("v1"),
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
	w.Configure(config(2, failingStep))
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

func TestFakeInterruption_pullSecretGoesToIronicAlone(t *testing.T) {
	t.Parallel()
	s := acctest.StartFake(t, nil)
	node := addNode(t, s, "n1", nil)
	config := func(version int) string {
		return "variable \"secret\" {\n  type = string\n  ephemeral = true\n}\n" + s.Provider() + deployment(quoted(node),
			fmt.Sprintf("image = {\n    url = \"oci://registry.example.com/debian:12\"\n    pull_secret_wo = var.secret\n    pull_secret_wo_version = %d\n  }", version))
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
		if got := now.Raw["instance_info"].(map[string]any)["image_pull_secret"]; got != secret { //nolint:forcetypeassert // Ironic's schema
			t.Errorf("the node is deployed with the secret %v, want %v", got, secret)
		}
		noChanges(t, w)
	}
	w.Setenv("TF_VAR_secret", "")
	w.Configure(s.Provider() + deployment(quoted(node), image("v1")))
	said.WriteString(w.Must("apply", "-auto-approve"))
	if _, left := instanceInfo(s, node)["image_pull_secret"]; left {
		t.Error("the secret is left on a node that needs it no more")
	}
	said.WriteString(w.Must("destroy", "-auto-approve"))
	wantVerbs(t, s, node, "active", "rebuild", "rebuild", "deleted")
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

func TestFakeInterruption_userDataThatIronicRepeatsIsMasked(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-and-more"
	s := acctest.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		body, _ := io.ReadAll(r.Body) // in memory
		if r.Method != http.MethodPut || !strings.Contains(string(body), secret) {
			return nil
		}
		return &fakeironic.Rejection{
			Status: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/json"}},
			Body: `{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"Invalid configdrive format: '` + secret + `' is not liked\", \"debuginfo\": null}"}`,
		}
	}})
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(node), image("v1"), `config_drive = { user_data_wo = "`+secret+`", user_data_wo_version = 1 }`))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("the deployment worked:\n%s", output)
	}
	mention(t, output, "Invalid configdrive format: '******' is not liked")
	if strings.Contains(output, secret) || strings.Contains(w.State(), secret) {
		t.Errorf("the secret is in the output or the state:\n%s", output)
	}
	w.Must("destroy", "-auto-approve")
}

func TestAccInterruption_changeThatIsIgnoredDoesNotRebuildWhatIsContinued(t *testing.T) {
	t.Parallel()
	s := acctest.StartSlow(t)
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(node), image("v1"), `on_change = "ignore"`))
	running := w.Start("apply", "-auto-approve")
	awaitState(t, s, node, busyDeploying()...)
	interrupt(t, running)
	w.Configure(s.Provider() + deployment(quoted(node), image("v2"), `on_change = "ignore"`))
	w.Must("apply", "-auto-approve")
	wantVerbs(t, s, node, "active")
	if got := instanceInfo(s, node)["image_source"]; got != images+"v1.qcow2" {
		t.Errorf("the node runs %v", got)
	}
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// Who presses Ctrl-C while Ironic makes something finds it in the state.
func TestFakeInterruption_whatIsBeingMadeIsRecorded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		method  string
		config  func(s *acctest.Site, node string) string
		address string
	}{
		"host":       {http.MethodPost, func(s *acctest.Site, _ string) string { return hostBlock(s.Name("h"), `driver = "fake-hardware"`) }, "metal_host.h"},
		"allocation": {http.MethodPost, func(s *acctest.Site, _ string) string { return allocation(s) }, allocationAddress},
		"deployment": {http.MethodPatch, func(_ *acctest.Site, node string) string { return deployment(quoted(node), image("v1")) }, deploymentAddress},
	} {
		for how, rejection := range map[string]*fakeironic.Rejection{"answered": nil, "answer lost": {After: true}} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				started := make(chan *acctest.Running, 1)
				var once sync.Once
				s := acctest.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) (answer *fakeironic.Rejection) {
					if r.Method == tc.method && (tc.method == http.MethodPatch || len(started) > 0) {
						once.Do(func() {
							(<-started).InterruptProvider()
							answer = rejection
						})
					}
					return answer
				}})
				node := addNode(t, s, "n1", nil)
				w := acctest.NewWorkspace(t, s.Provider()+tc.config(s, node))
				w.Trace()
				running := w.Start("apply", "-auto-approve")
				started <- running
				output, _ := running.Wait()
				if inState(t, w, tc.address) == nil {
					t.Fatalf("what was made is not in state:\n%s", output)
				}
				w.Must("apply", "-auto-approve")
				noChanges(t, w)
				w.Must("destroy", "-auto-approve")
				if after, left := s.Node(node), s.Left(); after["instance_uuid"] != nil || len(left) != 1 {
					t.Errorf("left are %v, and the node is %v", left, after)
				}
			})
		}
	}
}

// Who presses Ctrl-C before there is anything to record is told just that: nothing is wrong with the provider.
func TestFakeInterruption_beforeAnythingWasMade(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]func(s *acctest.Site, node string) string{
		"host":       func(s *acctest.Site, _ string) string { return hostBlock(s.Name("h"), `driver = "fake-hardware"`) },
		"allocation": func(s *acctest.Site, _ string) string { return allocation(s) },
		"deployment": func(_ *acctest.Site, node string) string { return deployment(quoted(node), image("v1")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			started := make(chan *acctest.Running, 1)
			var once sync.Once
			s := acctest.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
				if name == "deployment" && r.Method != http.MethodPatch || name != "deployment" && (r.Method != http.MethodPost || len(started) == 0) {
					return nil
				}
				once.Do(func() { (<-started).InterruptProvider() })
				return &fakeironic.Rejection{Status: http.StatusServiceUnavailable}
			}})
			node := addNode(t, s, "n1", nil)
			w := acctest.NewWorkspace(t, s.Provider()+config(s, node))
			w.Trace()
			running := w.Start("apply", "-auto-approve")
			started <- running
			output, code := running.Wait()
			if code == 0 {
				t.Errorf("an interrupted run says that it worked:\n%s", output)
			}
			mention(t, output, "The run was interrupted")
			for _, word := range []string{"Missing Resource State", "issue in the Terraform Provider"} {
				if strings.Contains(output, word) {
					t.Errorf("the provider is blamed:\n%s", output)
				}
			}
		})
	}
}
