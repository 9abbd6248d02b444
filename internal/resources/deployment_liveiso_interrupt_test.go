package resources_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
)

// startSlowISO is an Ironic and a server of live ISOs with which booting one takes some seconds.
func startSlowISO(t *testing.T, api string) (*acctest.Site, *acctest.ISOServer) {
	t.Helper()
	s, iso := acctest.Start(t, &fakeironic.Server{StepTime: 2 * time.Second, MaxMicroversion: api}), acctest.ServeISO(t)
	iso.Delay(3 * time.Second)
	return s, iso
}

// busyRestarting are the states in which a node gets another live ISO, whichever way it goes.
func busyRestarting() []string { return append(busyDeploying(), busyUndeploying()...) }

// restartOnce kills or interrupts a run while it restarts a host, lets another one finish that, and checks that the host was
// started once.
func restartOnce(t *testing.T, s *acctest.Site, iso *acctest.ISOServer, node, deployment string, end stop) {
	t.Helper()
	config := func(version string) string {
		return s.Provider() + deployment + liveISO(iso.URL(version), `own = { nmstate = `+quoted(version)+` }`) + "\n}\n"
	}
	w := acctest.NewWorkspace(t, config("v1"))
	w.Must("apply", "-auto-approve")
	before := s.Node(node)
	watch := watchPower(t, s)
	w.Configure(config("v2"))
	running := w.Start("apply", "-auto-approve")
	awaitState(t, s, node, busyRestarting()...)
	end(t, s, running)
	if output, _ := w.Plan(); isBusy(s, node, busyDeploying()) {
		mention(t, output, "Unfinished deployment is continued")
	}
	mention(t, w.Must("apply", "-auto-approve"), "0 added", "0 destroyed")
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
	restartOnce(t, s, iso, node, "resource \"metal_deployment\" \"d\" {\n  node_id = "+quoted(node)+"\n  ", kill)
}

func TestAccLiveISO_interruptedRestartHappensOnce(t *testing.T) {
	t.Parallel()
	s, iso := startSlowISO(t, "")
	node := addLiveNode(t, s, 1, nil)
	restartOnce(t, s, iso, node, "resource \"metal_deployment\" \"d\" {\n  node_id = "+quoted(node)+"\n  ", func(t *testing.T, _ *acctest.Site, r *acctest.Running) {
		mention(t, interrupt(t, r), "What was started goes on in Ironic; the next apply takes it up again")
	})
}

func TestAccLiveISO_killedRestartKeepsTheAllocation(t *testing.T) {
	t.Parallel()
	s, iso := startSlowISO(t, "")
	node := addLiveNode(t, s, 1, nil)
	restartOnce(t, s, iso, node, allocation(s, `name = `+quoted(s.Name("web")))+
		"resource \"metal_deployment\" \"d\" {\n  node_id = metal_allocation.a.node_id\n  allocation_id = metal_allocation.a.id\n  ", kill)
}

func TestFakeLiveISO_killedRestartByRebuildHappensOnce(t *testing.T) {
	t.Parallel()
	iso := acctest.ServeISO(t)
	s := acctest.StartFake(t, &fakeironic.Server{StepTime: 2 * time.Second, MaxMicroversion: "1.82"})
	node := addLiveNode(t, s, 1, nil)
	restartOnce(t, s, iso, node, "resource \"metal_deployment\" \"d\" {\n  node_id = "+quoted(node)+"\n  ", kill)
}

// TestAccLiveISO_destroyAfterAKilledRestart leaves nothing behind, automated_clean above all.
func TestAccLiveISO_destroyAfterAKilledRestart(t *testing.T) {
	t.Parallel()
	s, iso := startSlowISO(t, "")
	node := addLiveNode(t, s, 1, nil)
	if s.Fake != nil {
		s.Fake.Set(node, "automated_clean", nil)
	}
	config := func(version string) string {
		return s.Provider() + deployment(quoted(node), liveISO(iso.URL(version), `own = { nmstate = `+quoted(version)+` }`))
	}
	w := acctest.NewWorkspace(t, config("v1"))
	w.Must("apply", "-auto-approve")
	before := s.Node(node)["automated_clean"]
	w.Configure(config("v2"))
	running := w.Start("apply", "-auto-approve")
	awaitState(t, s, node, busyRestarting()...)
	kill(t, s, running)
	w.Must("destroy", "-auto-approve")
	if after := s.Node(node)["automated_clean"]; after != before {
		t.Errorf("automated_clean was %v and is %v", before, after)
	}
}

func TestFakeLiveISO_killedFirstBootHappensOnce(t *testing.T) {
	t.Parallel()
	iso := acctest.ServeISO(t)
	s := acctest.StartFake(t, &fakeironic.Server{StepTime: 2 * time.Second})
	node := addLiveNode(t, s, 1, nil)
	w := acctest.NewWorkspace(t, s.Provider()+allocation(s, `name = `+quoted(s.Name("web")))+allocated(liveISO(iso.URL("v1"), `own = { nmstate = "uid/1" }`)))
	running := w.Start("apply", "-auto-approve")
	awaitState(t, s, node, busyDeploying()...)
	kill(t, s, running)
	recallAllocation(t, s, w)
	w.Must("apply", "-auto-approve")
	if got := s.Fake.PowerCycles(node); got != 1 {
		t.Errorf("the machine was started %d times", got)
	}
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// What an interrupted run has begun is waited for; whether the image of the configuration asks for a restart is for the next
// plan to say, which knows what the machine runs.
func TestFakeLiveISO_unfinishedBootIsNotFollowedByARestartThatNoPlanShowed(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.82", "1.115"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			iso := acctest.ServeISO(t)
			s := acctest.StartFake(t, &fakeironic.Server{StepTime: 2 * time.Second, MaxMicroversion: version})
			node := addLiveNode(t, s, 1, nil)
			config := func(image string) string {
				return s.Provider() + deployment(quoted(node), liveISO(iso.URL(image), `own = { nmstate = "uid/1" }`))
			}
			w := acctest.NewWorkspace(t, config("v1"))
			running := w.Start("apply", "-auto-approve")
			awaitState(t, s, node, busyDeploying()...)
			interrupt(t, running)
			w.Configure(config("v2"))
			output := w.Must("apply", "-auto-approve")
			mention(t, output, "what an earlier run has begun is waited for")
			if got := s.Fake.PowerCycles(node); got != 1 {
				t.Errorf("the machine was started %d times", got)
			}
			mention(t, w.Must("plan"), "Host runs an older live ISO")
			w.Must("destroy", "-auto-approve")
		})
	}
}

// TestFakeLiveISO_destroyAfterAFailedRestartCleans undeploys a machine for a new live ISO, which Ironic then does not validate. What the
// machine has run is cleaned before the node is anybody else's, and the plan says so.
func TestFakeLiveISO_destroyAfterAFailedRestartCleans(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	s, iso := acctest.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		if broken.Load() && strings.HasSuffix(r.URL.Path, "/validate") {
			return &fakeironic.Rejection{Status: http.StatusInternalServerError, Body: `{"error_message": "the ISO has no kernel"}`}
		}
		return nil
	}}), acctest.ServeISO(t)
	node := addLiveNode(t, s, 1, map[string]any{"automated_clean": nil})
	config := func(version string) string {
		return s.Provider() + allocation(s, `name = `+quoted(s.Name("web"))) + allocated(liveISO(iso.URL(version), `own = { nmstate = `+quoted(version)+` }`))
	}
	w := acctest.NewWorkspace(t, config("v1"))
	w.Must("apply", "-auto-approve")
	reserved := allocationNamed(s, s.Name("web"))
	w.Configure(config("v2"))
	broken.Store(true)
	if output, code := w.Run("apply", "-auto-approve"); code == 0 {
		t.Errorf("the apply worked:\n%s", output)
	}
	broken.Store(false)
	cleaned := func() bool { return slices.Contains(s.Fake.Walk(node), "manageable") } // from there it gets available by cleaning
	if state := s.Node(node)["provision_state"]; state != "available" || cleaned() {
		t.Fatalf("the node is %v, after %v", state, s.Fake.Walk(node))
	}
	output := w.Must("destroy", "-auto-approve", "-target="+deploymentAddress)
	mention(t, output, "Destroying undeploys the machine", "Node "+s.Name("n1")+" ("+node+") is cleaned: an earlier run has undeployed it without that")
	if !cleaned() {
		t.Errorf("the node was not cleaned: %v", s.Fake.Walk(node))
	}
	if kept := allocationNamed(s, s.Name("web")); kept["uuid"] != reserved["uuid"] || s.Node(node)["automated_clean"] != nil {
		t.Errorf("the allocation was %v and is %v; automated_clean is %v", reserved["uuid"], kept["uuid"], s.Node(node)["automated_clean"])
	}
	w.Must("destroy", "-auto-approve")
}
