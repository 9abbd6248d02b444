package oneviewprofile_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

const profileAddress = "metal_oneview_profile.p"

// Paths of requests that faults are injected into.
const (
	allProfiles = "^/rest/server-profiles$"
	oneProfile  = "^/rest/server-profiles/[^/]+$"
	oneHardware = "^/rest/server-hardware/[^/]+$"
)

// bladeInfo returns driver_info of a node that is the nth blade of an appliance, with dynamic allocation.
func bladeInfo(o *site.OneView, n int) map[string]any {
	return map[string]any{"server_hardware_uri": o.Blades.Hardware[n-1], "dynamic_allocation": true}
}

// bladeCapabilities returns the capabilities of a node that is a blade of an appliance.
func bladeCapabilities(o *site.OneView) string {
	return fmt.Sprintf("server_hardware_type_uri:%s,server_profile_template_uri:%s,enclosure_group_uri:%s", o.Blades.TypeURI,
		o.Blades.TemplateURI, o.Blades.GroupURI)
}

// addBlade is addNode for a node that is the nth blade of an appliance. Its hardware is free.
func addBlade(t *testing.T, s *site.Site, o *site.OneView, n int) string {
	t.Helper()
	return site.AddNode(t, s, fmt.Sprintf("blade%d", n), map[string]any{
		"driver_info": bladeInfo(o, n), "properties": map[string]any{"capabilities": bladeCapabilities(o)},
	})
}

// blade returns the HCL of the host "h", which is the first blade of an appliance, with further settings.
func blade(s *site.Site, o *site.OneView, settings ...string) string {
	return acctest.HostBlock(s.Name("h"), append([]string{
		`driver = "fake-hardware"`,
		fmt.Sprintf("driver_info = {\n    server_hardware_uri = %q\n    dynamic_allocation = true\n  }", o.Blades.Hardware[0]),
		fmt.Sprintf("capabilities = {\n    server_hardware_type_uri = %q\n    server_profile_template_uri = %q\n "+
			"   enclosure_group_uri = %q\n  }",
			o.Blades.TypeURI, o.Blades.TemplateURI, o.Blades.GroupURI),
	}, settings...)...)
}

// profile returns the HCL of the server profile "p" of a node, with further settings. The node is an expression.
func profile(node string, settings ...string) string {
	return fmt.Sprintf("resource \"metal_oneview_profile\" \"p\" {\n  node_id = %s\n  %s\n}\n", node, strings.Join(settings, "\n  "))
}

// deployedProfile returns the HCL of the deployment "d", which depends on the profile "p".
func deployedProfile(settings ...string) string {
	return acctest.Deployment("metal_oneview_profile.p.node_id", append([]string{acctest.Image("v1")}, settings...)...)
}

// applied returns the profile that driver_info of a node names; "" if none.
func applied(s *site.Site, node string) string {
	info, _ := s.Node(node)["driver_info"].(map[string]any)
	return site.Text(info["applied_server_profile_uri"])
}

// wantHeld fails a test unless the first blade has the only profile of the appliance, and Ironic and the state name it.
func wantHeld(t *testing.T, s *site.Site, o *site.OneView, w *acctest.Workspace, node string) {
	t.Helper()
	profiles, hardware := o.Profiles(), o.Hardware(1)
	if len(profiles) != 1 || profiles[0].InProgress || profiles[0].URI != hardware.ProfileURI {
		t.Fatalf("there are profiles %+v, want one that is applied to %+v", profiles, hardware)
	}
	if got := applied(s, node); got != profiles[0].URI {
		t.Errorf("applied_server_profile_uri is %q, want %q", got, profiles[0].URI)
	}
	p := acctest.InState(t, w, profileAddress)
	if p == nil || p.Tainted || p.Values["id"] != profiles[0].URI || p.Values["ownership"] != "ironic" || p.Values["status"] != "OK" {
		t.Errorf("the state has %+v, want profile %s", p, profiles[0].URI)
	}
}

// wantNoProfile fails a test unless the first blade is free and OneView has no profile of the test. If a run dies right after it
// has deleted a profile, driver_info names that profile until the node gets the next one, which is harmless on free hardware.
func wantNoProfile(t *testing.T, o *site.OneView) {
	t.Helper()
	if left := o.Profiles(); len(left) > 0 || o.Hardware(1).ProfileURI != "" {
		t.Errorf("there are profiles %+v; the hardware is %+v", left, o.Hardware(1))
	}
}

// wantFree is wantNoProfile, and driver_info names no profile either.
func wantFree(t *testing.T, s *site.Site, o *site.OneView, node string) {
	t.Helper()
	wantNoProfile(t, o)
	if got := applied(s, node); got != "" {
		t.Errorf("driver_info still has applied_server_profile_uri: %q", got)
	}
}

// lifeline records the state of the node whenever its profile is created or deleted.
func lifeline(s *site.Site, o *site.OneView, node string) (seen *[]string) {
	seen = &[]string{}
	note := func(what string) fakeoneview.Effect {
		return fakeoneview.Meanwhile(func() { *seen = append(*seen, what+" while "+site.Text(s.Node(node)["provision_state"])) })
	}
	o.Fake.Inject(fakeoneview.Fault{Method: http.MethodPost, Path: allProfiles, Count: fakeoneview.Always, Effect: note("made")})
	o.Fake.Inject(fakeoneview.Fault{Method: http.MethodDelete, Path: oneProfile, Count: fakeoneview.Always, Effect: note("deleted")})
	return seen
}

func destroyAll() []string { return []string{"destroy", "-auto-approve"} }
