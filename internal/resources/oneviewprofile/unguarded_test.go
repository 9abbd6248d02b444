package oneviewprofile_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// unguarded returns the texts that every refusal of a shared machine contains if no OneView is configured.
func unguarded(o *site.OneView) []string {
	return []string{
		"shares its server hardware " + o.Blades.Hardware[0] + " with OneView", "no OneView is configured to ask who uses the server",
		"the oneview block of the provider, or ONEVIEW_ENDPOINT", "set driver_info.dynamic_allocation of the node to false",
	}
}

func TestAccOneView_withoutApplianceSharedNodeIsNotDeployed(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	for name, config := range map[string]string{
		"image": acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")), "live ISO": acctest.Deployment(acctest.Quoted(node), `live_iso = { url = "`+acctest.Images+`x.iso" }`),
	} {
		w := acctest.NewWorkspace(t, s.Provider()+config)
		unmoved := unmoved(t, s, node)
		acctest.Fails(t, w, acctest.Apply(), unguarded(o)...)
		if d := acctest.InState(t, w, acctest.DeploymentAddress); d != nil {
			t.Errorf("%s: the state has %+v", name, d)
		}
		unmoved()
	}
	if asked := len(o.Fake.Requests()); asked > 0 {
		t.Errorf("the provider has sent %d requests to the appliance", asked)
	}
	s.Patch(node, "replace", "/driver_info/dynamic_allocation", false)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	w.Must("destroy", "-auto-approve")
}

func TestAccOneView_withoutApplianceSharedDeploymentIsNotTouched(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	whole := s.Provider(o.Setting()) + profile(acctest.Quoted(node)) + deployedProfile(`power_state = "on"`)
	w := acctest.NewWorkspace(t, whole)
	w.Must("apply", "-auto-approve")
	uri := o.Profiles()[0].URI
	w.Must("state", "rm", profileAddress)
	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `power_state = "on"`))
	w.Must("apply", "-auto-approve") // an empty plan is not refused
	unmoved := unmoved(t, s, node)
	for _, tt := range []struct{ name, config string }{
		{"rebuild", acctest.Deployment(acctest.Quoted(node), acctest.Image("v2"), `power_state = "on"`)},
		{"power", acctest.Deployment(acctest.Quoted(node), acctest.Image("v1"), `power_state = "off"`)},
		{"undeploy", ""},
	} {
		w.Configure(s.Provider() + tt.config)
		acctest.Fails(t, w, acctest.Apply(), unguarded(o)...)
		unmoved()
		if d := acctest.InState(t, w, acctest.DeploymentAddress); d == nil || d.Tainted || d.Values["provision_state"] != "active" || acctest.ImageInState(t, w) != acctest.Images+"v1.qcow2" {
			t.Errorf("%s: the state has %+v", tt.name, d)
		}
	}
	w.Configure(whole)
	w.Must("import", profileAddress, uri)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
	wantFree(t, s, o, node)
}

func TestAccOneView_withoutApplianceSharedHostIsNotPrepared(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	config := func(settings ...string) string { return s.Provider() + blade(s, o, settings...) }
	w := acctest.NewWorkspace(t, config(acctest.Target("available")))
	acctest.Fails(t, w, []string{"plan"}, append(unguarded(o), "Shared host without OneView")...)
	w.Configure(config())
	w.Must("apply", "-auto-approve") // changes that do not concern the machine are applied
	unmoved := unmoved(t, s, s.Name("h"))
	for name, settings := range map[string][]string{
		"provide": {acctest.Target("available")}, "provide without cleaning": {acctest.Target("available"), `automated_clean = false`},
		"inspect": {`inspect = true`}, "power": {`power_state = "on"`},
	} {
		w.Configure(config(settings...))
		acctest.Fails(t, w, acctest.Apply(), unguarded(o)...)
		if h := acctest.InState(t, w, acctest.HostAddress); h == nil || h.Tainted || h.Values["provision_state"] != "manageable" {
			t.Errorf("%s: the state has %+v", name, h)
		}
		unmoved()
	}
	w.Must("destroy", "-auto-approve")
	if left := s.Left(); len(left) > 0 {
		t.Errorf("resources are left in Ironic: %v", left)
	}
}

// A host whose server_hardware_uri is not a URI of server hardware can be corrected or destroyed.
func TestAccOneView_hostWithInvalidHardwareURICanBeDestroyed(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	good := s.Provider(o.Setting()) + blade(s, o, acctest.Target("available"))
	w := acctest.NewWorkspace(t, "")
	for _, uri := range []string{"Encl1, bay 1", "/rest/server-hardware/"} {
		w.Configure(strings.ReplaceAll(good, o.Blades.Hardware[0], uri))
		acctest.Fails(t, w, acctest.Apply(), "is not the URI of a resource")
		acctest.Destroy(t, s, w)
		acctest.Fails(t, w, acctest.Apply(), "is not the URI of a resource")
	}
	w.Configure(good)
	w.Must("apply", "-auto-approve")
	acctest.Destroy(t, s, w)
}
