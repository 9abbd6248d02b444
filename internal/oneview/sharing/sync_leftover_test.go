package sharing

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
)

// temporaryOn puts a temporary profile on a node's hardware, as a run that died before it could write driver_info. It returns the
// profile's URI.
func (s *poolSite) temporaryOn(t *testing.T, i int, purpose Purpose) string {
	t.Helper()
	id := s.node(t, nodeName(i)).UUID
	name := temporaryName(purpose, id)
	uri := s.oneview.AddProfile(fakeoneview.NewProfile{Name: name, HardwareURI: s.hardware[i], TemplateURI: s.template, Unlinked: true})
	s.oneview.EditProfile(uri, func(document map[string]any) { document["description"] = mark(name, id) })
	return uri
}

func TestSyncRemovesLeftovers(t *testing.T) {
	t.Parallel()
	const young, old = 10 * time.Minute, 3 * time.Hour
	for _, tt := range []struct {
		name    string
		purpose Purpose
		age     time.Duration                               // of the profile when the pass comes
		before  func(t *testing.T, s *poolSite, uri string) // between its making and the pass
		state   string                                      // of the node from before the profile was made; "" is available
		removed bool
	}{
		{name: "driver_info does not name it", purpose: Cleaning, age: old, removed: true},
		{name: "it is young: a run may be applying it", purpose: Cleaning, age: young},
		{name: "its cleaning is over", purpose: Cleaning, age: young, removed: true, before: func(_ *testing.T, s *poolSite, _ string) {
			s.ironic.Set(nodeName(0), "provision_state", "available")
		}},
		{name: "its cleaning failed", purpose: Cleaning, age: young, removed: true, before: func(_ *testing.T, s *poolSite, _ string) {
			s.ironic.Set(nodeName(0), "provision_state", "clean failed")
		}},
		{name: "its inspection failed", purpose: Inspecting, age: young, removed: true, before: func(_ *testing.T, s *poolSite, _ string) {
			s.ironic.Set(nodeName(0), "provision_state", "inspect failed")
		}},
		{name: "manageable, and young: a run may start the cleaning soon", purpose: Cleaning, age: young, state: "manageable"},
		{name: "manageable, and old", purpose: Inspecting, age: old, state: "manageable", removed: true},
		{name: "enroll, and old", purpose: Inspecting, age: old, state: "enroll", removed: true},
		{
			name: "out of service, and old: the return needs it", purpose: Cleaning, age: old, state: "manageable",
			before: func(t *testing.T, s *poolSite, _ string) {
				t.Helper()
				s.maintain(t, nodeName(0), maintenanceOurs)
			},
		},
		{
			name: "out of service and retired, and old: it does not return", purpose: Cleaning, age: old,
			state: "manageable", removed: true,
			before: func(t *testing.T, s *poolSite, _ string) {
				t.Helper()
				s.maintain(t, nodeName(0), maintenanceOurs)
				s.ironic.Set(nodeName(0), "retired", true)
			},
		},
		{name: "it is being cleaned", purpose: Cleaning, age: old, state: "cleaning"},
		{name: "it waits for its ramdisk", purpose: Cleaning, age: old, state: "clean wait"},
		{name: "it is being inspected", purpose: Inspecting, age: old, state: "inspect wait"},
		{name: "the node is deployed", purpose: Cleaning, age: old, state: "active"},
		{name: "it is reserved for an instance", purpose: Cleaning, age: old, before: func(_ *testing.T, s *poolSite, _ string) {
			s.ironic.Set(nodeName(0), "instance_uuid", "11111111-1111-1111-1111-111111111111")
		}},
		{
			name: "Ironic has an operation in progress on the node", purpose: Cleaning, age: old,
			before: func(_ *testing.T, s *poolSite, _ string) {
				s.ironic.Set(nodeName(0), "reservation", "conductor-1")
			},
		},
		{name: "it is on other hardware", purpose: Cleaning, age: old, before: func(t *testing.T, s *poolSite, uri string) {
			t.Helper()
			s.driverInfo(t, 0, keyHardware, s.hardware[1])
		}},
		{name: "another user has renamed it", purpose: Cleaning, age: old, before: func(_ *testing.T, s *poolSite, uri string) {
			s.oneview.EditProfile(uri, func(document map[string]any) { document["name"] = "web-0" })
			s.oneview.MarkOthers(uri)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, recorded := range []bool{false, true} {
				inPoolTime(t, func(t *testing.T) {
					s := newPoolSite(t, 2)
					if tt.state != "" {
						s.ironic.Set(nodeName(0), "provision_state", tt.state)
					}
					<-time.After(time.Minute)
					uri := s.temporaryOn(t, 0, tt.purpose)
					if recorded {
						s.driverInfo(t, 0, keyApplied, uri)
					}
					<-time.After(tt.age)
					if tt.before != nil {
						tt.before(t, s, uri)
					}
					s.forget()
					heard, _ := s.sync(t)
					if failed := heard.lines(Failed); len(failed) > 0 {
						t.Errorf("failed: %q", failed)
					}
					if removed := len(s.oneview.Profiles()) == 0; removed != tt.removed {
						t.Errorf("recorded in Ironic %t: the profile was removed %t, want %t; told %q", recorded, removed, tt.removed,
							heard.lines(""))
					}
					if info := s.read(t, nodeName(0)).DriverInfo; tt.removed && info[keyApplied] != nil {
						t.Errorf("the node still names the profile: %v", info)
					}
				})
			}
		})
	}
}

func TestSyncKeepsProfileOfAnotherIronic(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 1)
		uri := s.oneview.AddProfile(fakeoneview.NewProfile{
			Name:        temporaryName(Cleaning, "99999999-9999-4999-8999-999999999999"),
			HardwareURI: s.hardware[0],
		})
		s.oneview.MarkOthers(uri)
		<-time.After(24 * hour)
		s.forget()
		s.sync(t)
		s.wantNode(t, 0, "manageable", ReasonInUse)
		if changes := s.appliance(); len(changes) > 0 {
			t.Errorf("requests to the appliance: %q", changes)
		}
	})
}

func TestSyncDryRunRemovesNoLeftover(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 1)
		s.temporaryOn(t, 0, Cleaning)
		<-time.After(24 * hour)
		s.forget()
		would, _ := s.sync(t, dryRun)
		if writes := slices.Concat(s.writes(""), s.appliance()); len(writes) > 0 {
			t.Errorf("the dry run has changed something: %q", writes)
		}
		did, _ := s.sync(t)
		if len(would.lines(Changed)) != 1 || !slices.Equal(would.lines(""), did.lines("")) {
			t.Errorf("the dry run told %q, the run %q", would.lines(""), did.lines(""))
		}
	})
}

// If a run dies before it can write its temporary profile into driver_info, the next pass returns the node to service.
func TestSyncFinishesKilledReturn(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 1)
		s.ironic.Set(nodeName(0), "provision_state", "manageable")
		s.maintain(t, nodeName(0), maintenanceOurs)
		s.temporaryOn(t, 0, Cleaning)
		s.sync(t)
		s.wantNode(t, 0, "cleaning", "")
		if profiles := s.oneview.Profiles(); len(profiles) != 1 {
			t.Errorf("profiles: %+v", profiles)
		}
	})
}

func TestSyncKeepsProfileTakenOverMeanwhile(t *testing.T) {
	t.Parallel()
	inPoolTime(t, func(t *testing.T) {
		s := newPoolSite(t, 1)
		uri := s.temporaryOn(t, 0, Cleaning)
		s.driverInfo(t, 0, keyApplied, uri)
		<-time.After(24 * hour)
		id := s.node(t, nodeName(0)).UUID
		s.oneview.Inject(fakeoneview.Fault{
			Method: http.MethodGet, Path: "/rest/server-profiles$", Nth: 2,
			Effect: fakeoneview.RightAfter(func() {
				if _, err := s.pool(t).Prepare(t.Context(), ProfileSpec{NodeID: id, Name: "web-0"}); err != nil {
					t.Errorf("Prepare: %v", err)
				}
			}),
		})
		heard, summary := s.sync(t)
		if summary.Failed > 0 || summary.Changed > 0 {
			t.Errorf("told %q", heard.lines(""))
		}
		if profiles := s.oneview.Profiles(); len(profiles) != 1 || profiles[0].Name != "web-0" {
			t.Errorf("profiles: %+v", profiles)
		}
	})
}
