package deployment_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
)

// A refresh right after an apply changes nothing, neither of an allocation nor of a deployment.
func TestAccRefresh_afterApplyFindsNoDrift(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	acctest.AddNode(t, s, "n1", nil)
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

// Of a live ISO, the state has more notes, which the apply must leave as a refresh would.
func TestAccRefresh_liveISOFindsNoDrift(t *testing.T) {
	t.Parallel()
	s, images := acctest.Start(t, nil), acctest.ServeISO(t)
	node := addLiveNode(t, s, 1, nil)
	config := func(settings ...string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), liveISO(images.URL("a")), strings.Join(settings, "\n"))
	}
	w := acctest.NewWorkspace(t, config())
	defer w.Must("destroy", "-auto-approve")
	w.Must(acctest.Apply()...)
	acctest.NoDrift(t, w)

	w.Configure(config("max_attempts = 2"))
	w.Must(acctest.Apply()...)
	acctest.NoDrift(t, w)
}
