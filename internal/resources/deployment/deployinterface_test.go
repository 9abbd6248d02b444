package deployment_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/bmc"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// autodetectMinor is the API version of the first Ironic with the deploy interface autodetect.
const autodetectMinor = 111

// bootingHost is the HCL of a host "h1" that boots from the network, with a deploy interface.
func bootingHost(s *site.Site, deploy string) string {
	return acctest.Host(s, 1, fmt.Sprintf("hardware_interfaces = { boot = \"ipxe\", deploy = %q }", deploy), `automated_clean = false`,
		fmt.Sprintf("ports = { %q = {} }", s.MAC(1)),
		fmt.Sprintf("driver_info = { deploy_kernel = %q, deploy_ramdisk = %q }", acctest.Images+"kernel", acctest.Images+"ramdisk"))
}

// deployInterfaces returns the deploy interface that Ironic shows, and the one that it keeps aside.
func deployInterfaces(s *site.Site, node string) string {
	now := s.Node(s.Name(node))
	internal, _ := now["driver_internal_info"].(map[string]any)
	return fmt.Sprint(now["deploy_interface"], " ", internal["original_deploy_interface"])
}

// A live ISO names the interface that it needs, so autodetect does not choose.
func TestAccDeployInterface_liveISOWithAutodetect(t *testing.T) {
	t.Parallel()
	s, iso := site.Start(t, nil), bmc.ServeISO(t)
	s.SkipBefore(t, autodetectMinor)
	config := func(version string) string {
		return s.Provider() + bootingHost(s, "autodetect") + acctest.Deployment("metal_host.h1.id",
			liveISO(iso.URL(version), `reboot_policy = "always"`))
	}
	w := acctest.NewWorkspace(t, config("v1"))
	w.Must("apply", "-auto-approve")
	for _, version := range []string{"v1", "v2"} {
		w.Configure(config(version))
		w.Must("apply", "-auto-approve")
		if got := deployInterfaces(s, "h1"); got != "autodetect <nil>" {
			t.Errorf("with %s, the deploy interface is %s", version, got)
		}
		acctest.NoChanges(t, w)
	}
	w.Configure(s.Provider() + bootingHost(s, "autodetect") + acctest.Deployment("metal_host.h1.id", acctest.Image("v1")))
	output, _ := w.Plan()
	acctest.Mention(t, output, "must be replaced")
	w.Must("destroy", "-auto-approve")
}

// While Ironic uses another interface in place of autodetect, the host has no drift, other changes of it do not send the interface, and a
// rebuild that needs another one is planned as a replacement.
func TestAccDeployInterface_autodetectIsNoDrift(t *testing.T) {
	t.Parallel()
	s, files := site.Start(t, nil), bmc.ServeISO(t)
	s.SkipBefore(t, autodetectMinor)
	ramdisk := fmt.Sprintf("image = { url = %q, checksum = %q, type = \"partition\", kernel = %q, ramdisk = %q, root_gb = 5 }\n "+
		" instance_info = { ironic_ramdisk_deploy = true }",
		acctest.Images+"v1.qcow2", strings.Repeat("a1", 32), files.URL("kernel"), files.URL("ramdisk"))
	config := func(setting, deployment string) string {
		host := strings.Replace(bootingHost(s, "autodetect"), `automated_clean = false`, "automated_clean = false\n  "+setting, 1)
		return s.Provider() + host + acctest.Deployment("metal_host.h1.id", deployment)
	}
	w := acctest.NewWorkspace(t, config("", ramdisk))
	w.Must("apply", "-auto-approve")
	for _, setting := range []string{"", `description = "changed"`} {
		w.Configure(config(setting, ramdisk))
		w.Must("apply", "-auto-approve")
		if got := deployInterfaces(s, "h1"); got != "ramdisk autodetect" || s.Node(s.Name("h1"))["provision_state"] != "active" {
			t.Errorf("with %q, the deploy interface is %s", setting, got)
		}
		acctest.NoChanges(t, w)
	}
	w.Configure(config("", acctest.Image("v2")))
	output, _ := w.Plan()
	acctest.Mention(t, output, "Deploy interface has to be chosen again", "must be replaced",
		`instance_info = { deploy_interface = "direct" }`)
	w.Configure(config("", acctest.Image("v2")+"\n  instance_info = { deploy_interface = \"direct\" }"))
	output, _ = w.Plan()
	acctest.Mention(t, output, "Rebuild wipes the root disk")
	w.Configure(s.Provider() + bootingHost(s, "autodetect"))
	w.Must("apply", "-auto-approve")
	if got := deployInterfaces(s, "h1"); got != "autodetect <nil>" {
		t.Errorf("undeployed, the deploy interface is %s", got)
	}
	w.Must("destroy", "-auto-approve")
}

// A machine of manual-management with noop is recorded as active; Ironic writes nothing.
func TestAccDeployInterface_noop(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	s.SkipBefore(t, autodetectMinor)
	host := fmt.Sprintf("resource \"metal_host\" \"h1\" {\n  name = %q\n  driver = \"manual-management\"\n  hardware_interfaces = { "+
		"deploy = \"noop\", power = \"fake\", management = \"fake\" }\n}\n", s.Name("h1"))
	w := acctest.NewWorkspace(t, s.Provider()+host+acctest.Deployment("metal_host.h1.id", `adopt = true`, `on_destroy = "forget"`))
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	if now := s.Node(s.Name("h1")); now["provision_state"] != "active" || now["deploy_interface"] != "noop" {
		t.Errorf("the node is %v with %v", now["provision_state"], now["deploy_interface"])
	}
	w.Configure(s.Provider() + host + acctest.Deployment("metal_host.h1.id", `adopt = true`, `on_destroy = "undeploy"`))
	w.Must("apply", "-auto-approve")
	w.Must("destroy", "-auto-approve")
}

// What Ironic itself checks of each interface. The fake must say the same.
func TestAccDeployInterface_validation(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := addLiveNode(t, s, 1, nil)
	disk, registry := map[string]any{"image_source": "http://images/i"}, map[string]any{"image_source": "oci://registry/app:1"}
	summed := map[string]any{"image_source": "http://images/i", "image_checksum": "c"}
	const noSource = "Missing are: ['instance_info.image_source']"
	for _, tt := range []struct {
		how   string
		info  map[string]any
		want  string
		since int
	}{
		{"direct", map[string]any{}, noSource, 0},
		{"direct", disk, "must be provided in instance_info", 0},
		{"direct", summed, "", 0},
		{"ramdisk", map[string]any{"boot_iso": "http://images/i.iso"}, "", 0},
		{"ramdisk", map[string]any{"kernel": "http://k", "ramdisk": "http://r"}, "", 0},
		{"anaconda", map[string]any{}, "Missing are: ['image_source', 'kernel', 'ramdisk']", 0},
		{"anaconda", map[string]any{"image_source": "http://images/tree/", "kernel": "http://k", "ramdisk": "http://r"}, "", 0},
		{"custom-agent", map[string]any{}, "", 0},
		{"custom-agent", disk, "", 0},
		{"bootc", map[string]any{}, "Invalid image href None.", autodetectMinor},
		{"bootc", summed, "Invalid image href http://images/i.", autodetectMinor},
		{"bootc", registry, "", autodetectMinor},
		{"noop", map[string]any{}, "", autodetectMinor},
		{"autodetect", map[string]any{}, noSource, autodetectMinor},
		{"autodetect", map[string]any{"boot_iso": "http://images/i.iso"}, noSource, autodetectMinor},
		{"autodetect", summed, "", autodetectMinor},
		{"autodetect", map[string]any{"boot_iso": "http://images/i.iso", "deploy_interface": "ramdisk"}, "", autodetectMinor},
	} {
		if s.Newest() < tt.since {
			continue
		}
		s.Patch(node, "add", "/deploy_interface", tt.how)
		s.Patch(node, "add", "/instance_info", tt.info)
		verdict, _ := s.Must(http.MethodGet, "nodes/"+node+"/validate", nil)["deploy"].(map[string]any)
		if reason := site.Text(verdict["reason"]); !strings.Contains(reason, tt.want) || tt.want == "" && reason != "" {
			t.Errorf("%s with %v: %q, want %q", tt.how, tt.info, reason, tt.want)
		}
	}
	s.Patch(node, "add", "/instance_info", map[string]any{})
	enabled, _ := s.Must(http.MethodGet, "drivers/redfish", nil)["enabled_deploy_interfaces"].([]any)
	for _, name := range []any{"direct", "ramdisk", "anaconda", "custom-agent"} {
		if !slices.Contains(enabled, name) {
			t.Errorf("redfish has %v, without %v", enabled, name)
		}
	}
}
