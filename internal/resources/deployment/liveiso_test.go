package deployment_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// addLiveNode is addNode for the nth node of a test, which can boot a live ISO over the network. It is not cleaned: for that
// a real Ironic would wait for a ramdisk to report.
func addLiveNode(t *testing.T, s *site.Site, n int, fields map[string]any) string {
	t.Helper()
	all := map[string]any{
		"boot_interface": "ipxe", "automated_clean": false,
		"driver_info": map[string]any{"deploy_kernel": acctest.Images + "kernel", "deploy_ramdisk": acctest.Images + "ramdisk"},
	}
	maps.Copy(all, fields)
	id := site.AddNode(t, s, fmt.Sprintf("n%d", n), all)
	s.Must(http.MethodPost, "ports", map[string]any{"node_uuid": id, "address": s.MAC(n)})
	return id
}

// liveISO is the HCL of a live ISO, with further settings.
func liveISO(url string, settings ...string) string {
	return fmt.Sprintf("live_iso = {\n    url = %q\n    %s\n  }", url, strings.Join(settings, "\n    "))
}

// fleetOf is the HCL of deployments "d" of nodes, by the names of the nodes without the test's suffix, with the live ISO of each.
func fleetOf(s *site.Site, isos map[string]string) string {
	var b strings.Builder
	for name, iso := range isos {
		fmt.Fprintf(&b, "resource \"metal_deployment\" %q {\n  node_id = %q\n  %s\n}\n", name, s.Name(name), iso)
	}
	return b.String()
}

// warned are the summaries of a CLI's warnings, without that of the development overrides and that of the limit, which other
// runs on the same Ironic can cause.
func warned(output string) []string {
	var all []string
	for _, line := range strings.Split(output, "\n") {
		_, summary, found := strings.Cut(line, "Warning: ")
		if found && !strings.HasPrefix(summary, "Provider development overrides") &&
			!strings.HasPrefix(summary, "Hosts waited for their turn") {
			all = append(all, summary)
		}
	}
	return all
}

// wantWarned fails a test unless a CLI has warned of these things, each once.
func wantWarned(t *testing.T, output string, want ...string) {
	t.Helper()
	got := warned(output)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("warned of %q, want %q:\n%s", got, want, output)
	}
}

// bootStatusIs fails a test unless the deployment in state has a status.
func bootStatusIs(t *testing.T, w *acctest.Workspace, action string, stale bool, obsolete ...any) {
	t.Helper()
	if obsolete == nil {
		obsolete = []any{}
	}
	want := map[string]any{"action": action, "stale": stale, "obsolete": obsolete}
	if got := acctest.Deployed(t, w).Values["boot_status"]; !reflect.DeepEqual(got, want) {
		t.Errorf("boot_status is %v, want %v", got, want)
	}
}

// liveInState is live_iso of the deployment in state.
func liveInState(t *testing.T, w *acctest.Workspace) map[string]any {
	t.Helper()
	iso, _ := acctest.Deployed(t, w).Values["live_iso"].(map[string]any)
	return iso
}

// bootRecord is what a node remembers of its live ISO; nil if nothing.
func bootRecord(s *site.Site, node string) map[string]any {
	extra, _ := s.Node(node)["extra"].(map[string]any)
	record, _ := extra["terraform_metal_boot"].(map[string]any)
	return record
}

// powerWatch counts how often machines are started: it counts the different times of the last power change that Ironic shows
// while a node is on.
type powerWatch struct {
	stop func()
	done sync.WaitGroup
	seen map[string]map[string]bool // by the node's UUID: the times
}

// watchPower polls the nodes of an Ironic until starts is called or the test ends.
func watchPower(t *testing.T, s *site.Site) *powerWatch {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	w := &powerWatch{stop: stop, seen: map[string]map[string]bool{}}
	t.Cleanup(w.done.Wait) // t's context has ended by then
	w.look(s)
	w.done.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(50 * time.Millisecond):
				w.look(s)
			}
		}
	})
	return w
}

func (w *powerWatch) look(s *site.Site) {
	_, answer := s.Call(http.MethodGet, "nodes?fields=uuid,power_state,target_power_state,driver_internal_info", nil)
	list, _ := answer["nodes"].([]any)
	for _, item := range list {
		node, _ := item.(map[string]any)
		if node["power_state"] != "power on" || node["target_power_state"] != nil {
			continue
		}
		id := site.Text(node["uuid"])
		info, _ := node["driver_internal_info"].(map[string]any)
		if w.seen[id] == nil {
			w.seen[id] = map[string]bool{}
		}
		w.seen[id][site.Text(info["last_power_state_change"])] = true
	}
}

// starts ends the watch. It returns how often each node that was on in the beginning has been started since.
func (w *powerWatch) starts(s *site.Site) map[string]int {
	w.stop()
	w.done.Wait()
	w.look(s)
	counts := map[string]int{}
	for id, times := range w.seen {
		counts[id] = len(times) - 1
	}
	return counts
}

// wantStarts ends the watch, and fails a test unless nodes were started as often as given.
func (w *powerWatch) wantStarts(t *testing.T, s *site.Site, want map[string]int) {
	t.Helper()
	got := w.starts(s)
	for id, n := range want {
		if got[id] != n {
			t.Errorf("node %v was started %d times, want %d", s.Node(id)["name"], got[id], n)
		}
	}
}

func TestAccLiveISO_firstBoot(t *testing.T) {
	t.Parallel()
	s, iso := site.Start(t, nil), bmc.ServeISO(t)
	node := addLiveNode(t, s, 1, nil)
	url := iso.URL("v1") + "?token=hunter2-and-more"
	config := func(settings ...string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node),
			liveISO(url, append(settings, `shared_content = { infra_env = "uid/7" }`, `host_content = { nmstate = "uid/3" }`)...))
	}
	w := acctest.NewWorkspace(t, config(`contains = { infra_env = "uid/7", nmstate = "uid/2" }`))
	acctest.Fails(t, w, []string{"plan"}, "Live ISO lacks wanted content", "the image was built without host.nmstate")
	w.Configure(config())
	wantWarned(t, w.Must("apply", "-auto-approve"))
	acctest.NoDrift(t, w)
	now := s.Node(node)
	info := site.InstanceInfo(s, node)
	if now["provision_state"] != "active" || now["power_state"] != "power on" || now["deploy_interface"] == "ramdisk" ||
		info["deploy_interface"] != "ramdisk" ||
		!strings.HasPrefix(site.Text(info["boot_iso"]), iso.URL("v1")) {
		t.Errorf("the node is %v, %v, its deploy_interface %v, its instance_info %v", now["provision_state"], now["power_state"],
			now["deploy_interface"], info)
	}
	if s.Fake != nil && s.Fake.BootedISO(node) != url {
		t.Errorf("the machine runs %q", s.Fake.BootedISO(node))
	}
	record := bootRecord(s, node)
	if len(site.Text(record["image"])) != 32 || record["boots"] != 1.0 {
		t.Errorf("the record is %v", record)
	}
	for _, said := range []string{"hunter2", "127.0.0.1", "uid/"} {
		if strings.Contains(fmt.Sprint(record), said) {
			t.Errorf("the record tells %q: %v", said, record)
		}
	}
	bootStatusIs(t, w, "none", false)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve") // leaves nothing on the node, which removeNode checks
}

// Neither another token in the URL nor a setting that decides about later images touches the machine.
func TestAccLiveISO_tokenInURLIsNoChange(t *testing.T) {
	t.Parallel()
	s, iso := site.Start(t, nil), bmc.ServeISO(t)
	node := addLiveNode(t, s, 1, nil)
	config := func(token string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), liveISO(iso.URL("v1")+"?"+token, `reboot_policy = "always"`))
	}
	w := acctest.NewWorkspace(t, config("api_key=first-token"))
	w.Must("apply", "-auto-approve")
	before := s.Node(node)["updated_at"]
	for _, token := range []string{"api_key=second-token", "token=third&x=y", ""} {
		w.Configure(config(token))
		output, changes := w.Plan()
		if changes {
			t.Errorf("with %q the plan is\n%s", token, output)
		}
		wantWarned(t, output)
		w.Must("apply", "-auto-approve")
	}
	for _, settings := range []string{`reboot_policy = "never"`, `quiet_period = "5m"`, `installing = true`, `registered = false`, ``} {
		w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), liveISO(iso.URL("v1"), settings)))
		output := w.Must("apply", "-auto-approve")
		acctest.Mention(t, output, "0 added, 1 changed, 0 destroyed")
		wantWarned(t, output)
		acctest.NoChanges(t, w)
	}
	if s.Node(node)["updated_at"] != before {
		t.Error("the node was touched")
	}
	w.Must("destroy", "-auto-approve")
}

// TestAccLiveISO_newImageRestartsStaleMachines gives hosts of all kinds a new image, and all but one of them new host_content.
func TestAccLiveISO_newImageRestartsStaleMachines(t *testing.T) {
	t.Parallel()
	s, iso := site.Start(t, nil), bmc.ServeISO(t)
	kinds := []struct {
		name      string
		settings  string
		own       bool // has an entry of its own in the second image
		protected bool
		starts    int
		says      string
	}{
		{name: "n0", starts: 0, says: "is not restarted: only what all machines share has changed"},
		{name: "n1", own: true, starts: 1, says: "is restarted: it got a configuration of its own (obsolete: host.nmstate, " +
			"shared.infra_env)"},
		{name: "n2", own: true, settings: `installing = true`, starts: 0, says: "is not restarted: it is being installed"},
		{name: "n3", own: true, protected: true, starts: 0, says: "is not restarted: it is protected in Ironic"},
		{name: "n4", own: true, settings: `reboot_policy = "never"`, starts: 0, says: `is not restarted: reboot_policy is "never"`},
		{
			name: "n5", settings: `reboot_policy = "always"`, starts: 1,
			says: `is restarted: reboot_policy is "always" (obsolete: shared.infra_env)`,
		},
		{name: "n6", settings: `registered = false`, starts: 1, says: "is restarted: it has not registered, and there is a newer image " +
			"(obsolete: image, shared.infra_env)"},
		{
			name: "n7", own: true, settings: `installing = true, reboot_policy = "always"`, starts: 0,
			says: "is not restarted: it is being installed",
		},
	}
	config := func(version string) string {
		isos := map[string]string{}
		for _, kind := range kinds {
			own := `host_content = {}` // what is null cannot be planned to stay so when the configuration has something
			if kind.own && version == "v2" {
				own = `host_content = { nmstate = "uid/1" }`
			}
			isos[kind.name] = liveISO(iso.URL(version)+"?token="+version, fmt.Sprintf("shared_content = { infra_env = %q }", version), own,
				strings.ReplaceAll(kind.settings, ", ", "\n    "))
		}
		return s.Provider() + fleetOf(s, isos)
	}
	ids, want := map[string]string{}, map[string]int{}
	for i, kind := range kinds {
		ids[kind.name] = addLiveNode(t, s, i, nil)
		want[ids[kind.name]] = kind.starts
	}
	w := acctest.NewWorkspace(t, config("v1"))
	w.Must("apply", "-auto-approve")
	for _, kind := range kinds {
		if kind.protected {
			s.Patch(ids[kind.name], "add", "/protected", true)
		}
	}
	w.Configure(config("v2"))
	for _, kind := range kinds { // alone: folded with others each would not be shown
		output := w.Must("plan", "-target=metal_deployment."+kind.name)
		acctest.Mention(t, output, "Node "+s.Name(kind.name)+" ("+ids[kind.name]+") "+kind.says)
	}
	watch := watchPower(t, s)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 8 changed, 0 destroyed") // of five only boot_status
	watch.wantStarts(t, s, want)
	output, changes := w.Plan()
	if changes {
		t.Errorf("the plan after is not empty:\n%s", output)
	}
	for _, kind := range kinds {
		if kind.protected {
			s.Patch(ids[kind.name], "add", "/protected", false)
		}
	}
	w.Must("destroy", "-auto-approve")
}

func TestAccLiveISO_replacesImage(t *testing.T) {
	t.Parallel()
	s, iso := site.Start(t, nil), bmc.ServeISO(t)
	node := addLiveNode(t, s, 1, nil)
	written, live := s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")), s.Provider()+
		acctest.Deployment(acctest.Quoted(node), liveISO(iso.URL("v1")))
	w := acctest.NewWorkspace(t, written)
	w.Must("apply", "-auto-approve")
	w.Configure(live)
	output, _ := w.Plan()
	acctest.Mention(t, output, "must be replaced", "1 to add, 0 to change, 1 to destroy")
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	if info := site.InstanceInfo(s, node); info["image_source"] != nil || bootRecord(s, node) == nil {
		t.Errorf("instance_info is %v, the record %v", info, bootRecord(s, node))
	}
	w.Configure(written)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 added, 0 changed, 1 destroyed")
	acctest.NoChanges(t, w)
	if info := site.InstanceInfo(s, node); info["boot_iso"] != nil || info["deploy_interface"] != nil || bootRecord(s, node) != nil {
		t.Errorf("instance_info is %v, the record %v", info, bootRecord(s, node))
	}
	site.WantVerbs(t, s, node, "active", "deleted", "active", "deleted", "active")
	w.Must("destroy", "-auto-approve")
}
