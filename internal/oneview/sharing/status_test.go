package sharing

import (
	"net/http"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 8)
		ours := s.give(t, 1, "web-1")
		s.ironic.Set(nodeName(1), "provision_state", "active")
		s.oneview.TakeHardware(s.hardware[2])
		s.temporaryOn(t, 3, Cleaning)
		s.driverInfo(t, 4, keyHardware, "/rest/server-hardware/NONE")
		s.preAllocated(t, 5, "available")
		s.ironic.Set(nodeName(7), "driver_info", map[string]any{})
		s.maintain(t, nodeName(0), maintenanceForeign)
		s.give(t, 6, "web-6")
		s.beginDeletion(t, 6)
		s.forget()
		all, err := s.pool(t).Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != 7 {
			t.Fatalf("%d nodes, want those 7 that have hardware in OneView", len(all))
		}
		for i, want := range []Standing{
			{Owner: Free, Next: Leave, Mode: Dynamic},
			{Owner: UsedByIronic, Next: Leave, Mode: Dynamic},
			{Owner: UsedByOneView, Next: TakeOut, Mode: Dynamic},
			{Owner: UsedByIronic, Next: Leave, Mode: Dynamic}, // a run died before it could write driver_info
			{Owner: OwnershipUnknown, Next: Leave, Mode: Dynamic},
			{Owner: UsedByOneView, Next: Leave, Mode: Undeclared}, // a pass does not change it
			{Owner: UsedByIronic, Next: Leave, Mode: Dynamic, Removing: true},
		} {
			got := all[i]
			if got.NodeName != nodeName(i) || got.Owner != want.Owner || got.Next != want.Next || got.Mode != want.Mode ||
				got.Removing != want.Removing {
				t.Errorf("node %d: %+v, want %+v", i, got, want)
			}
		}
		if all[0].MaintenanceReason != "disk swap" || all[0].ProvisionState != "available" || all[0].HardwareName != "Encl1, bay 1" ||
			all[0].PowerState != oneview.PowerOff {
			t.Errorf("the first node: %+v", all[0])
		}
		if all[1].ProfileURI != ours || all[1].ProfileName != "web-1" || all[1].AppliedURI != ours {
			t.Errorf("the second node: %+v", all[1])
		}
		if all[4].Error == "" {
			t.Error("the status has no reason why the hardware could not be read")
		}
		if writes := append(s.writes(""), s.appliance()...); len(writes) > 0 {
			t.Errorf("Status has changed something: %q", writes)
		}
	})
}

// beginDeletion makes the appliance delete the profile of a server, without an end.
func (s *poolSite) beginDeletion(t *testing.T, i int) {
	t.Helper()
	s.oneview.Inject(fakeoneview.Fault{Method: http.MethodDelete, Path: "/server-profiles/", Effect: fakeoneview.StuckTask()})
	client := s.pool(t).OneView
	h, err := client.Hardware(t.Context(), s.hardware[i])
	if err != nil {
		t.Fatal(err)
	}
	p, err := client.Profile(t.Context(), h.ProfileURI)
	if err == nil {
		_, err = client.DeleteProfile(t.Context(), p.URI, p.ETag)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestStatusOfManyNodesCostsThreeLists(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 300)
		s.forget()
		if _, err := s.pool(t).Status(t.Context()); err != nil {
			t.Fatal(err)
		}
		if reads := s.oneview.Count(http.MethodGet, "^/rest/server-"); reads != 3 { // two pages of hardware, one of profiles
			t.Errorf("%d reads from the appliance, want 3", reads)
		}
	})
}

// Next is not Return for a node that every pass would refuse to return.
func TestStatusShowsNoImpossibleReturn(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 5)
		for i := range s.hardware {
			s.ironic.Set(nodeName(i), "provision_state", "manageable")
			s.maintain(t, nodeName(i), maintenanceOurs)
		}
		s.ironic.Set(nodeName(1), "properties", map[string]any{}) // no template
		s.ironic.Set(nodeName(2), "properties", map[string]any{})
		s.ironic.Set(nodeName(2), "automated_clean", false)
		s.ironic.Set(nodeName(3), "retired", true)
		s.ironic.Set(nodeName(4), "reservation", "conductor-1")
		all, err := s.pool(t).Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []Action{Return, Leave, Return, Leave, Leave} {
			if all[i].Next != want {
				t.Errorf("node %d: %q, want %q", i, all[i].Next, want)
			}
		}
	})
}
