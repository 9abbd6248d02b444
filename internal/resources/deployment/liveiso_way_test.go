package deployment_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// redfishNode are the fields of a node of the fake that boots from virtual media, and is cleaned when it is undeployed.
func redfishNode() map[string]any {
	return map[string]any{
		"driver": "redfish", "boot_interface": "redfish-virtual-media", "automated_clean": nil,
		"driver_info": map[string]any{"redfish_address": "https://192.0.2.1", "deploy_kernel": acctest.Images + "kernel", "deploy_ramdisk": acctest.Images + "ramdisk"},
	}
}

// TestFakeLiveISO_waysToRestart boots nodes of allocations with another live ISO, in the way that their Ironic and their
// driver know.
func TestFakeLiveISO_waysToRestart(t *testing.T) {
	t.Parallel()
	broken := func(method, suffix string) func(*http.Request) *fakeironic.Rejection {
		return func(r *http.Request) *fakeironic.Rejection {
			if r.Method != method || !strings.HasSuffix(r.URL.Path, suffix) {
				return nil
			}
			return &fakeironic.Rejection{
				Status: http.StatusInternalServerError, Header: http.Header{"Content-Type": {"application/json"}},
				Body: `{"error_message": "{\"faultcode\": \"Server\", \"faultstring\": \"Unexpected error raised by RPC\", \"debuginfo\": null}"}`,
			}
		}
	}
	rebuildOnce := 0
	for name, tc := range map[string]struct {
		fake   *fakeironic.Server
		fields map[string]any
		verbs  []string // of the second boot
		media  int      // attachments of virtual media
	}{
		"rebuild":             {&fakeironic.Server{MaxMicroversion: "1.82"}, map[string]any{"automated_clean": nil}, []string{"rebuild"}, 0},
		"undeploy and deploy": {&fakeironic.Server{MaxMicroversion: "1.115"}, map[string]any{"automated_clean": nil}, []string{"deleted", "active"}, 0},
		"virtual media":       {&fakeironic.Server{MaxMicroversion: "1.115"}, redfishNode(), nil, 1},
		"virtual media that does not work": {
			&fakeironic.Server{MaxMicroversion: "1.115", Reject: broken(http.MethodPost, "/vmedia")}, redfishNode(), []string{"deleted", "active"}, 1,
		},
		"rebuild that does not work": {
			&fakeironic.Server{MaxMicroversion: "1.82", Reject: func(r *http.Request) *fakeironic.Rejection {
				body := make([]byte, 100)
				n, _ := r.Body.Read(body)
				if rebuildOnce > 0 || !strings.Contains(string(body[:n]), `"rebuild"`) {
					return nil
				}
				rebuildOnce++
				return broken(http.MethodPut, "/states/provision")(r)
			}}, map[string]any{"automated_clean": nil}, []string{"deleted", "active"}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, iso := site.StartFake(t, tc.fake), bmc.ServeISO(t)
			node := addLiveNode(t, s, 1, tc.fields)
			config := func(version string) string {
				return s.Provider() + acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web"))) +
					acctest.Allocated(liveISO(iso.URL(version)+"?token="+version, `host_content = { nmstate = `+acctest.Quoted(version)+` }`))
			}
			w := acctest.NewWorkspace(t, config("v1"))
			w.Must("apply", "-auto-approve")
			before, reserved := s.Node(node), site.AllocationNamed(s, s.Name("web"))
			site.ForgetVerbs(s)
			w.Configure(config("v2"))
			w.Must("apply", "-auto-approve")
			site.WantVerbs(t, s, node, tc.verbs...)
			if got := s.Fake.PowerCycles(node); got != 2 {
				t.Errorf("the machine was started %d times", got)
			}
			if got := s.Fake.BootedISO(node); got != iso.URL("v2")+"?token=v2" {
				t.Errorf("it runs %s", got)
			}
			media := 0
			for _, r := range s.Fake.Requests() {
				if r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/vmedia") {
					media++
				}
			}
			if media != tc.media {
				t.Errorf("media were attached %d times", media)
			}
			after, kept := s.Node(node), site.AllocationNamed(s, s.Name("web"))
			if after["instance_uuid"] != before["instance_uuid"] || after["automated_clean"] != nil || kept["uuid"] != reserved["uuid"] || kept["node_uuid"] != node {
				t.Errorf("the node is reserved by %v, its automated_clean %v; the allocation is %v", after["instance_uuid"], after["automated_clean"], kept)
			}
			for _, state := range s.Fake.Walk(node) {
				if state == "clean wait" {
					t.Error("the node was cleaned")
				}
			}
			acctest.NoChanges(t, w)
			w.Must("destroy", "-auto-approve")
			if walk := strings.Join(s.Fake.Walk(node), " "); !strings.Contains(walk, "clean wait") {
				t.Errorf("the node was not cleaned at the end: %s", walk)
			}
		})
	}
}

func TestFakeLiveISO_automatedCleanIsRestored(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]any{"unset": nil, "on": true, "off": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, iso := site.StartFake(t, nil), bmc.ServeISO(t)
			node := addLiveNode(t, s, 1, map[string]any{"automated_clean": before})
			config := func(version string) string {
				return s.Provider() + acctest.Deployment(acctest.Quoted(node), liveISO(iso.URL(version), `host_content = { nmstate = `+acctest.Quoted(version)+` }`))
			}
			w := acctest.NewWorkspace(t, config("v1"))
			w.Must("apply", "-auto-approve")
			instance := s.Node(node)["instance_uuid"]
			w.Configure(config("v2"))
			w.Must("apply", "-auto-approve")
			site.WantVerbs(t, s, node, "active", "deleted", "active")
			if now := s.Node(node); now["automated_clean"] != before || now["instance_uuid"] != instance {
				t.Errorf("automated_clean is %v, and the node reserved by %v instead of %v", now["automated_clean"], now["instance_uuid"], instance)
			}
			acctest.NoChanges(t, w)
			w.Must("destroy", "-auto-approve")
			if now := s.Node(node); now["automated_clean"] != before {
				t.Errorf("automated_clean is %v after the end", now["automated_clean"])
			}
		})
	}
}

func TestFakeLiveISO_configDriveFromVirtualMedia(t *testing.T) {
	t.Parallel()
	for _, api := range []string{"1.82", "1.115"} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			s, iso := site.StartFake(t, &fakeironic.Server{MaxMicroversion: api}), bmc.ServeISO(t)
			node := addLiveNode(t, s, 1, redfishNode())
			config := func(hostname string, settings ...string) string {
				drive := ""
				if hostname != "" {
					drive = `config_drive = { hostname = ` + acctest.Quoted(hostname) + ` }`
				}
				return s.Provider() + acctest.Deployment(acctest.Quoted(node), append(settings, liveISO(iso.URL("v1")), drive)...)
			}
			w := acctest.NewWorkspace(t, config("a"))
			w.Must("apply", "-auto-approve")
			for starts, hostname := range []string{"b", ""} {
				w.Configure(config(hostname))
				output, _ := w.Plan()
				acctest.Mention(t, output, "is restarted: config_drive changed (obsolete: config_drive)", "0 to add, 1 to change, 0 to destroy")
				w.Must("apply", "-auto-approve")
				if got := s.Fake.PowerCycles(node); got != starts+2 {
					t.Errorf("after %q the machine was started %d times", hostname, got)
				}
				acctest.NoChanges(t, w)
			}
			if info := site.InstanceInfo(s, node); info["configdrive"] != nil {
				t.Errorf("the config drive is left: %v", info)
			}
			w.Configure(config("c", `on_change = "ignore"`))
			w.Must("apply", "-auto-approve")
			if got := s.Fake.PowerCycles(node); got != 3 {
				t.Errorf("an ignored change started the machine: %d times", got)
			}
			acctest.NoChanges(t, w)
			w.Must("destroy", "-auto-approve")
		})
	}
}

// A restart with another image deploys what the plan shows: an ignored config drive stays as it was.
func TestFakeLiveISO_ignoredContentStaysAtRestart(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	node := site.AddNode(t, s, "n", bootsISOs())
	config := func(image, hostname string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), `on_change = "ignore"`, `config_drive = { hostname = "`+hostname+`" }`,
			liveISO("http://images.invalid/"+image+".iso", `host_content = { a = "`+image+`" }`, `quiet_period = "0s"`))
	}
	w := acctest.NewWorkspace(t, config("a", "one"))
	w.Must("apply", "-auto-approve")
	w.Configure(config("b", "two"))
	wantRaised(t, w.Save()[acctest.DeploymentAddress], 0, 1)
	site.ForgetVerbs(s)
	w.Must("apply", "saved")
	var drives []string
	for _, r := range s.Fake.Requests() {
		if strings.HasSuffix(r.Path, "/states/provision") && strings.Contains(r.Body, "hostname") {
			drives = append(drives, r.Body)
		}
	}
	if len(drives) != 1 || !strings.Contains(drives[0], `"one"`) || strings.Contains(drives[0], `"two"`) {
		t.Errorf("deployed is %v, want the host name one", drives)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}
