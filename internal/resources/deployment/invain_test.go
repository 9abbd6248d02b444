package deployment_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// withoutImage returns a fake whose image server lacks an image, and how many deployments of it were tried.
func withoutImage(name string) (fake *fakeironic.Server, deployed *atomic.Int64) {
	deployed = &atomic.Int64{}
	return &fakeironic.Server{Fail: func(n fakeironic.Node, verb string) string {
		info, _ := n.Raw["instance_info"].(map[string]any)
		url := fmt.Sprint(info["image_source"])
		if (verb == "active" || verb == "rebuild") && strings.Contains(url, name) {
			deployed.Add(1)
			return "Validation of image href " + url + " failed, reason: Got HTTP code 404 instead of 200 in response to HEAD request."
		}
		return ""
	}}, deployed
}

// An image that is not there fails on two machines, once each, whatever max_attempts and max_failures say. The other creations leave no
// state, no reservation and no taint, and the other machines of a rollout run what they ran, as protected as they were; another image goes
// on.
func TestFakeDeployment_stopsAfterTwoFailuresOfOneImage(t *testing.T) {
	t.Parallel()
	fake, deployed := withoutImage("gone")
	s := site.StartFake(t, fake)
	nodes := addNodes(t, s, 6)
	w := acctest.NewWorkspace(t, s.Provider()+fleet(nodes[:5], acctest.Image("gone"), `max_attempts = 3`)+
		strings.Replace(fleet(nodes[5:], acctest.Image("v1")), `"d"`, `"other"`, 1))
	apply := []string{"apply", "-auto-approve", "-parallelism=1"}
	acctest.Fails(t, w, apply, "image-404", "Machine was not started", "which were to get the same, failed with image-404",
		"The image server does not have the image.", "Nothing was sent to it.")
	if n := deployed.Load(); n != 2 {
		t.Errorf("%d deployments of the image were tried", n)
	}
	inState, list := 0, w.Must("state", "list")
	for _, id := range nodes {
		node := s.Node(id)
		if strings.Contains(list, id) {
			inState++
		} else if node["instance_uuid"] != nil || node["provision_state"] != "available" {
			t.Errorf("a machine that was not started is %v, reserved by %v", node["provision_state"], node["instance_uuid"])
		}
	}
	if inState != 3 || s.Node(nodes[5])["provision_state"] != "active" {
		t.Errorf("%d deployments are in state; that of another image is %v", inState, s.Node(nodes[5])["provision_state"])
	}

	w.Configure(s.Provider() + fleet(nodes[:5], acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	deployed.Store(0)
	w.Configure(s.Provider() + fleet(nodes[:5], acctest.Image("gone"), `rollout = { max_failures = 0 }`, `max_attempts = 3`))
	acctest.Fails(t, w, apply, "Machine was not started", "failed with image-404")
	if n := deployed.Load(); n != 2 {
		t.Errorf("%d rebuilds with the image were tried", n)
	}
	if n := images(s, nodes[:5], "v1"); n != 3 {
		t.Errorf("%d machines still run their image", n)
	}
	w.Must("destroy", "-auto-approve")
}

// A machine whose protection the same apply ends is protected again if it is not started after all.
func TestFakeDeployment_isProtectedAgainIfNotStarted(t *testing.T) {
	t.Parallel()
	fake, _ := withoutImage("gone")
	s := site.StartFake(t, fake)
	nodes := addNodes(t, s, 5)
	w := acctest.NewWorkspace(t, s.Provider()+fleet(nodes, acctest.Image("v1"), `protected = true`))
	w.Must("apply", "-auto-approve")
	w.Configure(s.Provider(`provisioning_limit = { max_concurrent = 1 }`) + // they wait for slots unprotected
		fleet(nodes, acctest.Image("gone"), `rollout = { max_failures = 0 }`, `protected = false`))
	acctest.Fails(t, w, acctest.Apply(), "Machine was not started", "failed with image-404")
	protected := 0
	for _, id := range nodes {
		if s.Node(id)["protected"] == true {
			protected++
		}
	}
	if n := images(s, nodes, "v1"); protected != n || n == 0 {
		t.Errorf("%d machines are still protected, and %d were not started", protected, n)
	}
	w.Configure(s.Provider() + fleet(nodes, acctest.Image("v1"), `protected = false`))
	w.Must("apply", "-auto-approve")
	w.Must("destroy", "-auto-approve")
}
