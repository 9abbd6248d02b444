package deployment_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// threeSettling is the HCL of three hosts that get a new configuration of their own with each version, and the nodes.
func threeSettling(
	t *testing.T, s *site.Site, iso *bmc.ISOServer, settings ...string,
) (nodes []string, config func(version string) string) {
	t.Helper()
	for i := range 3 {
		nodes = append(nodes, addLiveNode(t, s, i, nil))
	}
	return nodes, func(version string) string {
		isos := map[string]string{}
		for i := range 3 {
			isos[fmt.Sprintf("n%d", i)] = liveISO(iso.URL(version)+"?token=hunter2",
				append(settings, `host_content = { nmstate = `+acctest.Quoted(version)+` }`)...)
		}
		return s.Provider() + fleetOf(s, isos)
	}
}

func TestAccLiveISO_imageChangesWhileSettling(t *testing.T) {
	t.Parallel()
	s, iso := site.Start(t, nil), bmc.ServeISO(t)
	nodes, config := threeSettling(t, s, iso, `quiet_period = "2s"`)
	w := acctest.NewWorkspace(t, config("v1"))
	w.Must("apply", "-auto-approve")
	iso.BuildLate("v2")
	iso.AtLook("v2", 2, func() { iso.Build("v2") })
	w.Configure(config("v2"))
	watch := watchPower(t, s)
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Errorf("the apply worked:\n%s", output)
	}
	acctest.Mention(t, output, "changed during its quiet period", "No machine was restarted with it. Wait until the image has been "+
		"built, then run terraform plan again")
	_, errors, _ := strings.Cut(output, "Error: ")
	if strings.Contains(errors, "hunter2") {
		t.Errorf("the token is in the errors:\n%s", errors)
	}
	for _, node := range nodes {
		if now := s.Node(node)["provision_state"]; now != "active" {
			t.Errorf("node %s is %v", node, now)
		}
	}
	if got := watch.starts(s); got[nodes[0]]+got[nodes[1]]+got[nodes[2]] != 0 {
		t.Errorf("started: %v", got)
	}
	if got := iso.Looks("v2"); got != 2 {
		t.Errorf("the image was looked at %d times", got)
	}
	output, _ = w.Plan()
	acctest.Mention(t, output, "0 to add, 3 to change, 0 to destroy")
	w.Must("destroy", "-auto-approve")
}

func TestAccLiveISO_firstBootOfChangingImage(t *testing.T) {
	t.Parallel()
	s, iso := site.Start(t, nil), bmc.ServeISO(t)
	node := addLiveNode(t, s, 1, nil)
	iso.BuildLate("v1")
	iso.AtLook("v1", 2, func() { iso.Build("v1") })
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), liveISO(iso.URL("v1"), `quiet_period = "2s"`)))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Errorf("the apply worked:\n%s", output)
	}
	acctest.Mention(t, output, "changed during its quiet period")
	if now := s.Node(node); now["provision_state"] != "available" {
		t.Errorf("the node is %v", now["provision_state"])
	}
	w.Must("apply", "-auto-approve") // when it has settled
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}
