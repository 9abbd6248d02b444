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

// An image that is not there fails on two machines, once each, whatever max_attempts and max_failures say. The other creations leave no
// state, no reservation and no taint, and the other machines of a rollout run what they ran; another image goes on.
func TestFakeDeployment_stopsAfterTwoFailuresOfOneImage(t *testing.T) {
	t.Parallel()
	var deployed atomic.Int64
	fake := &fakeironic.Server{Fail: func(n fakeironic.Node, verb string) string {
		info, _ := n.Raw["instance_info"].(map[string]any)
		url := fmt.Sprint(info["image_source"])
		if (verb == "active" || verb == "rebuild") && strings.Contains(url, "gone") {
			deployed.Add(1)
			return "Validation of image href " + url + " failed, reason: Got HTTP code 404 instead of 200 in response to HEAD request."
		}
		return ""
	}}
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
