package deployment_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// A refresh right after an apply changes nothing, neither of an allocation nor of a deployment.
func TestAccRefresh_afterApplyFindsNoDrift(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	site.AddNode(t, s, "n1", nil)
	config := func(settings ...string) string {
		return s.Provider() + acctest.Allocation(s, "name = "+acctest.Quoted(s.Name("web"))) + acctest.Allocated(settings...)
	}
	w := acctest.NewWorkspace(t, config(acctest.Image("a")))
	defer w.Must("destroy", "-auto-approve")
	w.Must(acctest.Apply()...)
	acctest.NoDrift(t, w)

	w.Configure(config(acctest.Image("b"))) // a rebuild
	w.Must(acctest.Apply()...)
	acctest.NoDrift(t, w)

	w.Configure(config(acctest.Image("b"), "max_attempts = 2")) // an update that sends nothing
	w.Must(acctest.Apply()...)
	acctest.NoDrift(t, w)
}

// The state names the node, also after another client, or the same configuration, has renamed it.
func TestAccRefresh_nodeName(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	config := func(host string, settings ...string) string {
		return s.Provider() + acctest.HostBlock(s.Name(host), `driver = "fake-hardware"`, acctest.Target("available")) +
			acctest.Deployment(acctest.HostAddress+".id", settings...)
	}
	w := acctest.NewWorkspace(t, config("h1", acctest.Image("a")))
	defer w.Must("destroy", "-auto-approve")
	wantName := func(want string) {
		t.Helper()
		if got := acctest.Deployed(t, w).Values["node_name"]; got != s.Name(want) {
			t.Errorf("node_name is %v, want %s", got, s.Name(want))
		}
	}
	w.Must(acctest.Apply()...)
	wantName("h1")
	acctest.NoChanges(t, w)

	w.Configure(config("h2", acctest.Image("a"), "max_attempts = 2")) // one apply renames the node and updates the deployment
	w.Must(acctest.Apply()...)
	wantName("h1")
	w.Must("apply", "-refresh-only", "-auto-approve")
	wantName("h2")
	acctest.NoChanges(t, w)

	w.Configure(config("h3", acctest.Image("b"))) // and rebuilds it
	w.Must(acctest.Apply()...)
	w.Must("apply", "-refresh-only", "-auto-approve")
	wantName("h3")
	acctest.NoChanges(t, w)
}
