package oneviewprofile_test

import (
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
	s.Patch(node, "add", "/boot_interface", "ipxe") // which boots live ISOs
	for name, config := range map[string]string{
		"image": acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")), "live ISO": acctest.Deployment(acctest.Quoted(node),
			`live_iso = { url = "`+acctest.Images+`x.iso" }`),
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
