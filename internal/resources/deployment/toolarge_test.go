package deployment_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// A request that a gateway does not let through for its size has begun nothing: the first deployment is neither tainted nor in the state,
// the node is as before, and a machine that runs keeps what it runs.
func TestFakeDeployment_requestTooLargeForAGateway(t *testing.T) {
	t.Parallel()
	const limit = 64 << 10
	fake := &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		if r.ContentLength <= limit {
			return nil
		}
		return &fakeironic.Rejection{
			Status: http.StatusRequestEntityTooLarge, Body: "<html><head><title>413 Request Entity Too Large</title></head></html>",
		}
	}}
	s := site.StartFake(t, fake)
	node := onNeutron(t, s, "n1")
	before, _ := fake.Node(node)
	config := func(userData string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"),
			"config_drive = { user_data = "+userData+" }", vifs(1))
	}
	large := `format("#cloud-config\n# %0100000d", 0)`
	said := []string{
		"413", "KiB, and the gateway or proxy at " + s.Endpoint, "client_max_body_size", "config_drive.url",
		"Ironic has not got the request",
	}
	w := acctest.NewWorkspace(t, config(large))
	acctest.Fails(t, w, []string{"apply", "-auto-approve"}, said...)
	if plan := w.Must("plan"); !strings.Contains(plan, "1 to add, 0 to change, 0 to destroy") || strings.Contains(plan, "tainted") {
		t.Errorf("the next plan:\n%s", plan)
	}
	wantAttached(t, s, node)
	after, _ := fake.Node(node)
	for _, key := range []string{"provision_state", "instance_uuid", "instance_info", "extra"} {
		if was, is := fmt.Sprint(before.Raw[key]), fmt.Sprint(after.Raw[key]); was != is {
			t.Errorf("%s of the node was %v, and is %v", key, was, is)
		}
	}

	w.Configure(config(`"#cloud-config\n"`))
	w.Must("apply", "-auto-approve")
	w.Configure(config(large))
	acctest.Fails(t, w, []string{"apply", "-auto-approve"}, said...)
	w.Configure(config(`"#cloud-config\n"`))
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}
