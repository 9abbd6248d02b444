package resources_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeoneview"
)

// A profile is found by the hardware of its node. So the node stays that hardware as long as it has a profile.
func TestAccOneView_aHostWithAProfileStaysTheHardwareThatItIs(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 2)
	first := s.Provider(o.Setting()) + blade(s, o)
	second := strings.ReplaceAll(first, o.Blades.Hardware[0], o.Blades.Hardware[1])
	w := acctest.NewWorkspace(t, first+profile("metal_host.h.id"))
	w.Must("apply", "-auto-approve")
	w.Configure(second + profile("metal_host.h.id"))
	fails(t, w, apply(), "driver_info.server_hardware_uri cannot be changed while server profile", "by destroying the metal_oneview_profile of the node")
	wantHeld(t, s, o, w, s.Name("h"))

	w.Configure(first)
	w.Must("apply", "-auto-approve")
	wantFree(t, s, o, s.Name("h"))
	w.Configure(second + profile("metal_host.h.id"))
	w.Must("apply", "-auto-approve")
	if o.Hardware(1).ProfileURI != "" || o.Hardware(2).ProfileURI == "" {
		t.Errorf("the hardware is %+v and %+v", o.Hardware(1), o.Hardware(2))
	}
	destroy(t, s, w)
}

// Other hardware for the same node means another profile. What that does to the server is said before.
func TestAccOneView_otherHardwareMeansAnotherProfile(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 2)
	node := addBlade(t, s, o, 1)
	config := func(n int) string {
		return s.Provider(o.Setting()) + profile(quoted(node), `server_hardware_uri = `+quoted(o.Blades.Hardware[n-1]))
	}
	w := acctest.NewWorkspace(t, config(1))
	w.Must("apply", "-auto-approve")
	w.Configure(config(2))
	output, _ := w.Plan()
	mention(t, output, "forces replacement", "1 to add, 0 to change, 1 to destroy",
		"Server profile is removed", "of node "+s.Name("blade1")+" ("+node+") is removed. For that its server is switched off")
	w.Configure(config(1))
	wantHeld(t, s, o, w, node)
	release(t, s, o, w, node)
}

// The appliance takes a URI in any spelling. Another spelling is no other hardware and no other template, whatever runs on it.
func TestAccOneView_otherSpellingOfAURIChangesNothing(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	config := func(spell func(id string) string) string {
		uri := func(full string) string {
			at := strings.LastIndex(full, "/") + 1
			return quoted(full[:at] + spell(full[at:]))
		}
		return s.Provider(o.Setting()) + profile(quoted(node), "server_hardware_uri = "+uri(o.Blades.Hardware[0]), "server_profile_template_uri = "+uri(o.Blades.TemplateURI))
	}
	uri := withProfile(s, o, node)
	w := acctest.NewWorkspace(t, config(strings.ToLower))
	w.Must("import", profileAddress, uri)
	for _, spell := range []func(string) string{strings.ToLower, strings.ToUpper} {
		w.Configure(config(spell))
		noChanges(t, w)
	}
	wantHeld(t, s, o, w, node)
	release(t, s, o, w, node)
}

// A blade is replaced, OneView leaves the profile in its bay, and the operator tells Ironic which blade it is now: the profile
// stays, whatever runs with it, and goes with the resource.
func TestAccOneView_profileFollowsItsNodeToAReplacedBlade(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	before, after := o.Blades.Hardware[0], "/rest/server-hardware/REPLACED"
	config := func(uri string) string {
		return s.Provider(o.Setting()) + profile(quoted(node), `server_hardware_uri = `+quoted(uri))
	}
	w := acctest.NewWorkspace(t, config(before)+deployedProfile())
	w.Must("apply", "-auto-approve")
	o.Fake.EditHardware(before, func(h *fakeoneview.Hardware) { h.URI = after })
	o.Blades.Hardware[0] = after
	s.Patch(node, "replace", "/driver_info/server_hardware_uri", after)
	w.Configure(config(after) + deployedProfile())
	noChanges(t, w)
	w.Must("apply", "-refresh-only", "-auto-approve")
	if p := inState(t, w, profileAddress); p.Values["server_hardware_uri"] != after {
		t.Errorf("in state is %+v", p)
	}
	wantHeld(t, s, o, w, node)
	s.Patch(node, "remove", "/driver_info/applied_server_profile_uri", nil) // as if a run had not told Ironic
	w.Must("apply", "-auto-approve")
	wantHeld(t, s, o, w, node)
	release(t, s, o, w, node)
}
