package resources_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
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
