package deployment_test

import (
	"os"
	"path/filepath"
	"strings"
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
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), liveISO(iso.URL(version)+"?token=ours", `shared_content = { infra_env = "uid/1" }`, "host_content = "+own, `reboot_policy = "affected"`))
	}
	w := acctest.NewWorkspace(t, config("v2", `{ nmstate = "uid/1" }`))
	w.Must("import", acctest.DeploymentAddress, s.Name("n1"))
	watch := watchPower(t, s)
	output, _ := w.Plan()
	acctest.Mention(t, output, "0 to add, 1 to change, 0 to destroy", "Live ISO is taken as booted", "There is no record of what node "+s.Name("n1")+" ("+node+") was booted with.", "does not touch the machine")
	w.Must("apply", "-auto-approve")
	if bootRecord(s, node) == nil {
		t.Error("no baseline was recorded")
	}
	bootStatusIs(t, w, "none", false, "unknown")
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

func TestAccLiveISO_importOfOwnMachine(t *testing.T) {
	t.Parallel()
	s, iso := site.Start(t, nil), bmc.ServeISO(t)
	node := addLiveNode(t, s, 1, nil)
	config := func(version, own string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), liveISO(iso.URL(version)+"?token=hunter2", `version = `+acctest.Quoted("sha256:"+version),
			`shared_content = { infra_env = "uid/1" }`, `host_content = { nmstate = `+acctest.Quoted(own)+` }`, `built_at = "2026-01-02T03:04:05Z"`))
	}
	acctest.NewWorkspace(t, config("v1", "uid/1")).Must("apply", "-auto-approve")
	record := bootRecord(s, node)

	w := acctest.NewWorkspace(t, config("v1", "uid/1")) // the state was lost
	w.Must("import", acctest.DeploymentAddress, node)
	watch := watchPower(t, s)
	output := w.Must("apply", "-auto-approve")
	wantWarned(t, output)
	if now := bootRecord(s, node); now["at"] != record["at"] || now["image"] != record["image"] {
		t.Errorf("the record was %v and is %v", record, now)
	}
	output, changes := w.Plan()
	if changes {
		t.Errorf("the plan is not empty:\n%s", output)
	}
	wantWarned(t, output)
	if live := liveInState(t, w); live["url"] != iso.URL("v1")+"?token=hunter2" || live["version"] != "sha256:v1" {
		t.Errorf("in state is %v", live)
	}
	w.Configure(config("v2", "uid/1"))
	acctest.NoChanges(t, w)
	watch.wantStarts(t, s, map[string]int{node: 0})

	watch = watchPower(t, s)
	w.Configure(config("v3", "uid/2"))
	w.Must("apply", "-auto-approve")
	watch.wantStarts(t, s, map[string]int{node: 1})
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// TestAccLiveISO_importNeverRestarts imports a host whose record says that its configuration concerns it: an import touches
// no machine, and the plan after shows what there is to do.
func TestAccLiveISO_importNeverRestarts(t *testing.T) {
	t.Parallel()
	s, iso := site.Start(t, nil), bmc.ServeISO(t)
	node := addLiveNode(t, s, 1, nil)
	config := func(version, own string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), liveISO(iso.URL(version), `host_content = { nmstate = `+acctest.Quoted(own)+` }`, `reboot_policy = "always"`))
	}
	acctest.NewWorkspace(t, config("v1", "uid/1")).Must("apply", "-auto-approve")
	w := acctest.NewWorkspace(t, config("v2", "uid/2"))
	importing(t, w, node)
	watch := watchPower(t, s)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "is not restarted: it was imported, which touches no machine", "0 added, 1 changed, 0 destroyed")
	watch.wantStarts(t, s, map[string]int{node: 0})
	output, changes := w.Plan()
	if !changes {
		t.Errorf("the plan after does not show that the host is concerned:\n%s", output)
	}
	acctest.Mention(t, output, "is restarted: its own configuration changed (obsolete: host.nmstate)")
	watch = watchPower(t, s)
	w.Must("apply", "-auto-approve")
	watch.wantStarts(t, s, map[string]int{node: 1})
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// TestAccLiveISO_restartUnknownToState gives a run the state of the one before it, as after a crash at the last
// moment or from a backup: what the machine runs is on record.
func TestAccLiveISO_restartUnknownToState(t *testing.T) {
	t.Parallel()
	s, iso := site.Start(t, nil), bmc.ServeISO(t)
	node := addLiveNode(t, s, 1, nil)
	config := func(version string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), liveISO(iso.URL(version), `host_content = { nmstate = `+acctest.Quoted(version)+` }`))
	}
	w := acctest.NewWorkspace(t, config("v1"))
	w.Must("apply", "-auto-approve")
	state := filepath.Join(w.Dir, "terraform.tfstate")
	old, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	w.Configure(config("v2"))
	w.Must("apply", "-auto-approve")
	if err := os.WriteFile(state, old, 0o600); err != nil {
		t.Fatal(err)
	}
	watch := watchPower(t, s)
	output := w.Must("apply", "-auto-approve")
	wantWarned(t, output)
	watch.wantStarts(t, s, map[string]int{node: 0})
	if live := liveInState(t, w); !strings.HasPrefix(site.Text(live["url"]), iso.URL("v2")) {
		t.Errorf("in state is %v", live)
	}
	output, changes := w.Plan()
	if changes {
		t.Errorf("the plan is not empty:\n%s", output)
	}
	wantWarned(t, output)
	w.Must("destroy", "-auto-approve")
}
