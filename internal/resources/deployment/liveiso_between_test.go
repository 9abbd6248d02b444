package deployment_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// twoImages is the HCL of a deployment with one live ISO or the other, and something of its own in each.
func twoImages(s *site.Site, iso *bmc.ISOServer, node string, settings ...string) func(version string) string {
	return func(version string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node),
			liveISO(iso.URL(version), append(settings, `host_content = { nmstate = `+acctest.Quoted(version)+` }`)...))
	}
}

// wantNotRestarted fails a test unless an apply of a planned restart has failed because the node is protected now, and has
// changed nothing. Then it takes the protection away, and plans again.
func wantNotRestarted(t *testing.T, s *site.Site, w *acctest.Workspace, iso *bmc.ISOServer, node, output string, code int) {
	t.Helper()
	if code == 0 {
		t.Errorf("the apply worked:\n%s", output)
	}
	acctest.Mention(t, output, "has changed since the plan: it is protected", "The node was not changed. Run terraform plan again.")
	if live := liveInState(t, w); live["url"] != iso.URL("v1") || bootRecord(s, node)["boots"] != 1.0 {
		t.Errorf("in state is %v, on the node %v", live, bootRecord(s, node))
	}
	bootStatusIs(t, w, "none", false)
	acctest.NoChanges(t, w)
	s.Patch(node, "replace", "/protected", false)
	output, _ = w.Plan()
	acctest.Mention(t, output, "Machine is restarted with a new live ISO", "0 to add, 1 to change, 0 to destroy")
}

func TestAccLiveISO_protectedWhileSettling(t *testing.T) {
	t.Parallel()
	s, iso := site.Start(t, nil), bmc.ServeISO(t)
	node := addLiveNode(t, s, 1, nil)
	config := twoImages(s, iso, node, `quiet_period = "2s"`)
	w := acctest.NewWorkspace(t, config("v1"))
	w.Must("apply", "-auto-approve")
	iso.BuildLate("v2")
	iso.AtLook("v2", 2, func() { s.Patch(node, "replace", "/protected", true) })
	w.Configure(config("v2"))
	watch := watchPower(t, s)
	output, code := w.Run("apply", "-auto-approve")
	wantNotRestarted(t, s, w, iso, node, output, code)
	watch.wantStarts(t, s, map[string]int{node: 0})
	w.Must("destroy", "-auto-approve")
}

// Terraform plans again during apply: that plan must not decide by a node that has lost its protection since.
func TestAccLiveISO_unprotectedAfterPlan(t *testing.T) {
	t.Parallel()
	s, iso := site.Start(t, nil), bmc.ServeISO(t)
	node := addLiveNode(t, s, 1, nil)
	config := twoImages(s, iso, node)
	w := acctest.NewWorkspace(t, config("v1"))
	w.Must("apply", "-auto-approve")
	s.Patch(node, "replace", "/protected", true)
	w.Configure(twoImages(s, iso, node, `reboot_policy = "affected"`)("v2"))
	w.Must("plan", "-out=plan")
	s.Patch(node, "replace", "/protected", false)
	watch := watchPower(t, s)
	acctest.Mention(t, w.Must("apply", "plan"), "0 added, 1 changed, 0 destroyed")
	watch.wantStarts(t, s, map[string]int{node: 0})
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "Machine is restarted with a new live ISO")
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}
