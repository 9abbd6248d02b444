package oneviewprofile_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// The provider finds a profile by the hardware of its node, so it refuses to change the hardware while the node has a profile.
func TestAccOneView_hardwareWithProfileCannotChange(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 2)
	first := s.Provider(o.Setting()) + blade(s, o)
	second := strings.ReplaceAll(first, o.Blades.Hardware[0], o.Blades.Hardware[1])
	w := acctest.NewWorkspace(t, first+profile("metal_host.h.id"))
	w.Must("apply", "-auto-approve")
	w.Configure(second + profile("metal_host.h.id"))
	acctest.Fails(t, w, acctest.Apply(), "driver_info.server_hardware_uri cannot be changed while server profile",
		"by destroying the metal_oneview_profile of the node")
	wantHeld(t, s, o, w, s.Name("h"))

	w.Configure(first)
	w.Must("apply", "-auto-approve")
	wantFree(t, s, o, s.Name("h"))
	w.Configure(second + profile("metal_host.h.id"))
	w.Must("apply", "-auto-approve")
	if o.Hardware(1).ProfileURI != "" || o.Hardware(2).ProfileURI == "" {
		t.Errorf("the hardware is %+v and %+v", o.Hardware(1), o.Hardware(2))
	}
	acctest.Destroy(t, s, w)
}

// A change of hardware_uri replaces the profile. The plan warns that the server is switched off.
func TestAccOneView_otherHardwareReplacesProfile(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 2)
	node := addBlade(t, s, o, 1)
	config := func(n int) string {
		return s.Provider(o.Setting()) + profile(acctest.Quoted(node), `server_hardware_uri = `+acctest.Quoted(o.Blades.Hardware[n-1]))
	}
	w := acctest.NewWorkspace(t, config(1))
	w.Must("apply", "-auto-approve")
	w.Configure(config(2))
	output, _ := w.Plan()
	acctest.Mention(t, output, "forces replacement", "1 to add, 0 to change, 1 to destroy",
		"Server profile is removed", "of node "+s.Name("blade1")+" ("+node+") is removed. OneView switches the server off for that")
	w.Configure(config(1))
	wantHeld(t, s, o, w, node)
	release(t, s, o, w, node)
}

// The appliance accepts URIs in several spellings. A change of the spelling changes nothing.
func TestAccOneView_otherSpellingOfURIChangesNothing(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	config := func(spell func(id string) string) string {
		uri := func(full string) string {
			at := strings.LastIndex(full, "/") + 1
			return acctest.Quoted(full[:at] + spell(full[at:]))
		}
		return s.Provider(o.Setting()) + profile(acctest.Quoted(node), "server_hardware_uri = "+uri(o.Blades.Hardware[0]),
			"server_profile_template_uri = "+uri(o.Blades.TemplateURI))
	}
	uri := withProfile(s, o, node)
	w := acctest.NewWorkspace(t, config(strings.ToLower))
	w.Must("import", profileAddress, uri)
	for _, spell := range []func(string) string{strings.ToLower, strings.ToUpper} {
		w.Configure(config(spell))
		acctest.NoChanges(t, w)
	}
	wantHeld(t, s, o, w, node)
	release(t, s, o, w, node)
}

// A blade is replaced, OneView leaves the profile in its bay, and the operator writes the new blade into driver_info. The profile
// stays, and destroying the resource removes it.
func TestAccOneView_profileOfReplacedBladeStays(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	node := addBlade(t, s, o, 1)
	before, after := o.Blades.Hardware[0], "/rest/server-hardware/REPLACED"
	config := func(uri string) string {
		return s.Provider(o.Setting()) + profile(acctest.Quoted(node), `server_hardware_uri = `+acctest.Quoted(uri))
	}
	w := acctest.NewWorkspace(t, config(before)+deployedProfile())
	w.Must("apply", "-auto-approve")
	o.Fake.EditHardware(before, func(h *fakeoneview.Hardware) { h.URI = after })
	o.Blades.Hardware[0] = after
	s.Patch(node, "replace", "/driver_info/server_hardware_uri", after)
	w.Configure(config(after) + deployedProfile())
	acctest.NoChanges(t, w)
	w.Must("apply", "-refresh-only", "-auto-approve")
	if p := acctest.InState(t, w, profileAddress); p.Values["server_hardware_uri"] != after {
		t.Errorf("the state has %+v", p)
	}
	wantHeld(t, s, o, w, node)
	s.Patch(node, "remove", "/driver_info/applied_server_profile_uri", nil) // as if a run had not recorded it in Ironic
	w.Must("apply", "-auto-approve")
	wantHeld(t, s, o, w, node)
	release(t, s, o, w, node)
}
