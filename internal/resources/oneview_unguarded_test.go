package resources_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
)

// unguarded is what every refusal of a shared machine says where no OneView is configured.
func unguarded(o *acctest.OneView) []string {
	return []string{
		"shares its server hardware " + o.Blades.Hardware[0] + " with OneView", "the provider has no oneview block",
		"nobody can tell whose server it is", "Configure oneview", "set driver_info.dynamic_allocation of the node to false",
	}
}

func TestAccOneView_withoutAnApplianceASharedNodeIsNotDeployed(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	for name, config := range map[string]string{
		"image": deployment(quoted(node), image("v1")), "live ISO": deployment(quoted(node), `live_iso = { url = "`+images+`x.iso" }`),
	} {
		w := acctest.NewWorkspace(t, s.Provider()+config)
		unmoved := unmoved(t, s, node)
		fails(t, w, apply(), unguarded(o)...)
		if d := inState(t, w, deploymentAddress); d != nil {
			t.Errorf("%s: in state is %+v", name, d)
		}
		unmoved()
	}
	if asked := len(o.Fake.Requests()); asked > 0 {
		t.Errorf("the appliance was sent %d requests", asked)
	}
	s.Patch(node, "replace", "/driver_info/dynamic_allocation", false)
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(node), image("v1")))
	w.Must("apply", "-auto-approve")
	w.Must("destroy", "-auto-approve")
}

func TestAccOneView_withoutAnApplianceWhatRunsOnASharedNodeIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	whole := s.Provider(o.Setting()) + profile(quoted(node)) + deployedProfile(`power_state = "on"`)
	w := acctest.NewWorkspace(t, whole)
	w.Must("apply", "-auto-approve")
	uri := o.Profiles()[0].URI
	w.Must("state", "rm", profileAddress)
	w.Configure(s.Provider() + deployment(quoted(node), image("v1"), `power_state = "on"`))
	w.Must("apply", "-auto-approve") // nothing is to be done: nothing is refused
	unmoved := unmoved(t, s, node)
	for _, tt := range []struct{ name, config string }{
		{"rebuild", deployment(quoted(node), image("v2"), `power_state = "on"`)},
		{"power", deployment(quoted(node), image("v1"), `power_state = "off"`)},
		{"undeploy", ""},
	} {
		w.Configure(s.Provider() + tt.config)
		fails(t, w, apply(), unguarded(o)...)
		unmoved()
		if d := inState(t, w, deploymentAddress); d == nil || d.Tainted || d.Values["provision_state"] != "active" || imageInState(t, w) != images+"v1.qcow2" {
			t.Errorf("%s: in state is %+v", tt.name, d)
		}
	}
	w.Configure(whole)
	w.Must("import", profileAddress, uri)
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
	wantFree(t, s, o, node)
}

func TestAccOneView_withoutAnApplianceASharedHostIsNotPrepared(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	config := func(settings ...string) string { return s.Provider() + blade(s, o, settings...) }
	w := acctest.NewWorkspace(t, config(target("available")))
	fails(t, w, []string{"plan"}, append(unguarded(o), "Shared host without OneView")...)
	w.Configure(config())
	w.Must("apply", "-auto-approve") // what touches no machine is done
	unmoved := unmoved(t, s, s.Name("h"))
	for name, settings := range map[string][]string{
		"provide": {target("available")}, "provide without cleaning": {target("available"), `automated_clean = false`},
		"inspect": {`inspect = true`}, "power": {`power_state = "on"`},
	} {
		w.Configure(config(settings...))
		fails(t, w, apply(), unguarded(o)...)
		if h := inState(t, w, hostAddress); h == nil || h.Tainted || h.Values["provision_state"] != "manageable" {
			t.Errorf("%s: in state is %+v", name, h)
		}
		unmoved()
	}
	w.Must("destroy", "-auto-approve")
	if left := s.Left(); len(left) > 0 {
		t.Errorf("left in Ironic: %v", left)
	}
}

// A host that names no server hardware of OneView, but something else, was never anything there. It can be corrected, or go.
func TestAccOneView_aHostWithAMisspelledServerCanBeDestroyed(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	good := s.Provider(o.Setting()) + blade(s, o, target("available"))
	w := acctest.NewWorkspace(t, "")
	for _, uri := range []string{"Encl1, bay 1", "/rest/server-hardware/"} {
		w.Configure(strings.ReplaceAll(good, o.Blades.Hardware[0], uri))
		fails(t, w, apply(), "is not the URI of a resource")
		destroy(t, s, w)
		fails(t, w, apply(), "is not the URI of a resource")
	}
	w.Configure(good)
	w.Must("apply", "-auto-approve")
	destroy(t, s, w)
}
