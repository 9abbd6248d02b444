package deployment_test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// startSlowISO is an Ironic and a server of live ISOs with which booting one takes some seconds.
func startSlowISO(t *testing.T, api string) (*site.Site, *bmc.ISOServer) {
	t.Helper()
	s, iso := site.StartSlowWith(t, &fakeironic.Server{MaxMicroversion: api}), bmc.ServeISO(t)
	if s.Fake == nil {
		iso.Delay(3 * time.Second)
	}
	return s, iso
}

// busyRestarting are the states in which a node gets another live ISO, whichever way it goes.
func busyRestarting() []string { return append(site.BusyDeploying(), site.BusyUndeploying()...) }

// restartOnce kills or interrupts a run while it restarts a host, lets another one finish that, and checks that the host was
// started once.
func restartOnce(t *testing.T, s *site.Site, iso *bmc.ISOServer, node, deployment string, end acctest.Stop) {
	t.Helper()
	config := func(version string) string {
		return s.Provider() + deployment + liveISO(iso.URL(version), `host_content = { nmstate = `+acctest.Quoted(version)+` }`) + "\n}\n"
	}
	w := acctest.NewWorkspace(t, config("v1"))
	w.Must("apply", "-auto-approve")
	before := s.Node(node)
	watch := watchPower(t, s)
	w.Configure(config("v2"))
	release := s.Hold(busyRestarting()...)
	running := w.Start("apply", "-auto-approve")
	site.AwaitState(t, s, node, busyRestarting()...)
	end(t, s, running)
	if output, _ := w.Plan(); site.IsBusy(s, node, site.BusyDeploying()) {
		acctest.Mention(t, output, "Unfinished deployment is continued")
	}
	acctest.Mention(t, acctest.WaitOut(t, s, w, release, "apply", "-auto-approve"), "0 added", "0 destroyed")
	watch.wantStarts(t, s, map[string]int{node: 1})
	output, changes := w.Plan()
	if changes {
		t.Errorf("the plan is not empty:\n%s", output)
	}
	wantWarned(t, output)
	after := s.Node(node)
	if after["instance_uuid"] != before["instance_uuid"] || after["automated_clean"] != before["automated_clean"] {
		t.Errorf("the node is reserved by %v, its automated_clean %v; before, %v and %v", after["instance_uuid"], after["automated_clean"],
			before["instance_uuid"], before["automated_clean"])
	}
	if live := liveInState(t, w); live["url"] != iso.URL("v2") {
		t.Errorf("in state is %v", live)
	}
	w.Must("destroy", "-auto-approve")
}

func TestAccLiveISO_killedRestartHappensOnce(t *testing.T) {
	t.Parallel()
	s, iso := startSlowISO(t, "")
	node := addLiveNode(t, s, 1, nil)
	restartOnce(t, s, iso, node, "resource \"metal_deployment\" \"d\" {\n  node_id = "+acctest.Quoted(node)+"\n  ", acctest.Kill)
}

// TestFakeLiveISO_destroyAfterFailedRestart undeploys a machine for a new live ISO, which Ironic then does not validate. What the
// machine has run is cleaned before another user can have the node, and the plan says so.
func TestFakeLiveISO_destroyAfterFailedRestart(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	s, iso := site.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		if !broken.Load() || !strings.HasSuffix(r.URL.Path, "/states/provision") {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || !bytes.Contains(body, []byte(`"active"`)) {
			r.Body = io.NopCloser(bytes.NewReader(body))
			return nil
		}
		return &fakeironic.Rejection{
			Status: http.StatusBadRequest,
			Body:   `{"error_message": "Failed to validate deploy or power info: the ISO has no kernel"}`,
		}
	}}), bmc.ServeISO(t)
	node := addLiveNode(t, s, 1, map[string]any{"automated_clean": nil})
	config := func(version string) string {
		return s.Provider() + acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web"))) +
			acctest.Allocated(liveISO(iso.URL(version), `host_content = { nmstate = `+acctest.Quoted(version)+` }`))
	}
	w := acctest.NewWorkspace(t, config("v1"))
	w.Must("apply", "-auto-approve")
	reserved := site.AllocationNamed(s, s.Name("web"))
	w.Configure(config("v2"))
	broken.Store(true)
	if output, code := w.Run("apply", "-auto-approve"); code == 0 {
		t.Errorf("the apply worked:\n%s", output)
	}
	broken.Store(false)
	cleaned := func() bool { return slices.Contains(s.Fake.Walk(node), "manageable") } // cleaning makes it available again
	if state := s.Node(node)["provision_state"]; state != "available" || cleaned() {
		t.Fatalf("the node is %v, after %v", state, s.Fake.Walk(node))
	}
	output := w.Must("destroy", "-auto-approve", "-target="+acctest.DeploymentAddress)
	acctest.Mention(t, output, "Destroying undeploys the machine", "Node "+s.Name("n1")+" ("+node+
		") is cleaned, because an earlier run has undeployed it without cleaning")
	if !cleaned() {
		t.Errorf("the node was not cleaned: %v", s.Fake.Walk(node))
	}
	if kept := site.AllocationNamed(s, s.Name("web")); kept["uuid"] != reserved["uuid"] || s.Node(node)["automated_clean"] != nil {
		t.Errorf("the allocation was %v and is %v; automated_clean is %v", reserved["uuid"], kept["uuid"], s.Node(node)["automated_clean"])
	}
	w.Must("destroy", "-auto-approve")
}
