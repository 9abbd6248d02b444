package deployment_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// liveByHand boots a node with a live ISO without this provider.
func liveByHand(s *site.Site, node, url string) {
	s.Patch(node, "add", "/instance_uuid", site.ForeignInstance(s))
	s.Patch(node, "add", "/instance_info/deploy_interface", "ramdisk")
	s.Patch(node, "add", "/instance_info/boot_iso", url)
	s.Verb(node, "active", "active")
}

func TestAccLiveISO_importOfForeignMachine(t *testing.T) {
	t.Parallel()
	s, iso := site.Start(t, nil), bmc.ServeISO(t)
	node := addLiveNode(t, s, 1, nil)
	liveByHand(s, node, iso.URL("v1")+"?token=theirs")
	config := func(version, own string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), liveISO(iso.URL(version)+"?token=ours",
			`shared_content = { infra_env = "uid/1" }`, "host_content = "+own, `reboot_policy = "affected"`))
	}
	w := acctest.NewWorkspace(t, config("v2", `{ nmstate = "uid/1" }`))
	w.Must("import", acctest.DeploymentAddress, s.Name("n1"))
	watch := watchPower(t, s)
	output, _ := w.Plan()
	acctest.Mention(t, output, "0 to add, 1 to change, 0 to destroy", "Live ISO is taken as booted", "There is no record of what node "+
		s.Name("n1")+" ("+node+") was booted with.", "does not touch the machine")
	w.Must("apply", "-auto-approve")
	if bootRecord(s, node) == nil {
		t.Error("no baseline was recorded")
	}
	bootStatusIs(t, w, "none", false)
	acctest.NoChanges(t, w)
	watch.wantStarts(t, s, map[string]int{node: 0})

	watch = watchPower(t, s)
	w.Configure(config("v3", `{ nmstate = "uid/1" }`))
	acctest.NoChanges(t, w)
	w.Configure(config("v3", `{ nmstate = "uid/2" }`)) // what is known by now
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "is restarted: its own configuration changed (obsolete: host.nmstate)")
	watch.wantStarts(t, s, map[string]int{node: 1})
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}
