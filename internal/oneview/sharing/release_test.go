package sharing_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

// called returns the reference to the first node: its name or its UUID.
func (s *site) called(byName bool) string {
	if byName {
		return "node-000"
	}
	return s.nodes[0]
}

func TestReleaseKeepsMovedProfileWithoutNodeHardware(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, *site){
		"the node is gone": func(t *testing.T, s *site) {
			if err := s.pool(t).Site.Ironic.DeleteNode(t.Context(), s.nodes[0]); err != nil {
				t.Fatal(err)
			}
		},
		"the node names no hardware any more": func(_ *testing.T, s *site) {
			s.ironic.Set(s.nodes[0], "driver_info", map[string]any{"applied_server_profile_uri": s.profiles()[0].URI})
		},
		"OneView has the hardware not any more": func(_ *testing.T, s *site) {
			s.appliance.Inject(fakeoneview.Fault{
				Path: s.blades.Hardware[0], Count: fakeoneview.Always,
				Effect: fakeoneview.Refuse(http.StatusNotFound, fakeoneview.Problem{Code: "RESOURCE_NOT_FOUND"}),
			})
		},
	} {
		for _, how := range []struct{ told, byName bool }{{told: true}, {told: true, byName: true}, {}, {byName: true}} {
			t.Run(fmt.Sprintf("%s, %+v", name, how), func(t *testing.T) {
				t.Parallel()
				inVirtualTime(t, func(t *testing.T) {
					s := newSite(t, 2)
					uri := s.mustPrepare(t, s.nodes[0]).Profile.URI
					lose(t, s)
					s.appliance.MoveProfile(uri, s.blades.Hardware[1])
					left := ""
					o := sharing.ReleaseOptions{NodeID: s.called(how.byName), ProfileURI: uri, Left: func(_ *oneview.Profile, why string) {
						left = why
					}}
					if how.told {
						o.HardwareURI = s.blades.Hardware[0]
					}
					if err := s.pool(t).Release(t.Context(), o); how.told && err != nil {
						t.Error(err)
					} else if err != nil {
						wantWords(t, err, s.blades.Hardware[1], "delete it in OneView")
					}
					if want := fmt.Sprintf("it is on %s now, not on the node's hardware %s", s.blades.Hardware[1],
						s.blades.Hardware[0]); how.told && !strings.Contains(left, want) {
						t.Errorf("left is said %q, want %q", left, want)
					}
					if h := s.appliance.HardwareAt(s.blades.Hardware[1]); h.ProfileURI != uri || h.Power != fakeoneview.On {
						t.Errorf("the other hardware is %+v, want it to be as the other user left it", h)
					}
					s.wantNoHarm(t)
				})
			})
		}
	}
}

// After the replacement of a blade, a deployment may run with the profile of its node on other hardware.
func TestReleaseRefusesRunningNodeWithoutHardware(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(s *site, uri string){
		"the node names no hardware any more": func(s *site, uri string) {
			s.ironic.Set(s.nodes[0], "driver_info", map[string]any{"applied_server_profile_uri": uri})
		},
		"OneView has the hardware not any more": func(s *site, uri string) {
			s.ironic.Set(s.nodes[0], "driver_info", map[string]any{
				"server_hardware_uri": "/rest/server-hardware/REMOVED", "dynamic_allocation": true, "applied_server_profile_uri": uri,
			})
		},
	} {
		for _, byName := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, by name %t", name, byName), func(t *testing.T) {
				t.Parallel()
				inVirtualTime(t, func(t *testing.T) {
					s := newSite(t, 1)
					uri := s.mustPrepare(t, s.nodes[0]).Profile.URI
					s.appliance.PowerOn(s.blades.Hardware[0])
					s.ironic.Set(s.nodes[0], "provision_state", "active")
					lose(s, uri)
					err := s.pool(t).Release(t.Context(), sharing.ReleaseOptions{
						NodeID: s.called(byName), ProfileURI: uri,
						HardwareURI: s.blades.Hardware[0],
					})
					wantWords(t, err, `state "active"`, "metal_deployment")
					s.wantHeld(t)
					s.wantPower(t, fakeoneview.On)
				})
			})
		}
	}
}

// If the node has no server_hardware_uri, Release removes the profile from the hardware on which it was applied.
func TestReleaseRemovesProfileOfNodeWithoutHardware(t *testing.T) {
	t.Parallel()
	for _, byName := range []bool{false, true} {
		t.Run(fmt.Sprintf("by name %t", byName), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				s := newSite(t, 1)
				uri := s.mustPrepare(t, s.nodes[0]).Profile.URI
				s.ironic.Set(s.nodes[0], "driver_info", map[string]any{"applied_server_profile_uri": uri})
				o := sharing.ReleaseOptions{NodeID: s.called(byName), ProfileURI: uri, HardwareURI: s.blades.Hardware[0]}
				if err := s.pool(t).Release(t.Context(), o); err != nil {
					t.Error(err)
				}
				s.wantNothing(t)
			})
		})
	}
}

func TestReleaseOfAnOldProfileLeavesTheNewOne(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		old := s.mustPrepare(t, s.nodes[0]).Profile.URI
		s.appliance.ReleaseHardware(s.blades.Hardware[0])
		s.mustPrepare(t, s.nodes[0])
		if err := s.pool(t).Release(t.Context(), sharing.ReleaseOptions{NodeID: s.nodes[0], ProfileURI: old}); err != nil {
			t.Fatal(err)
		}
		s.wantHeld(t)
	})
}

func TestReleaseRemovesProfileOfDeletedNode(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 2)
		uri := s.mustPrepare(t, s.nodes[0]).Profile.URI
		foreign := s.appliance.TakeHardware(s.blades.Hardware[1])
		s.ironic.Set(s.nodes[0], "provision_state", "manageable")
		if err := s.pool(t).Site.Ironic.DeleteNode(t.Context(), s.nodes[0]); err != nil {
			t.Fatal(err)
		}
		for _, known := range []string{uri, foreign, "", uri} {
			if err := s.pool(t).Release(t.Context(), sharing.ReleaseOptions{
				NodeID: s.nodes[0], ProfileURI: known,
				HardwareURI: s.blades.Hardware[0],
			}); err != nil {
				t.Errorf("release %q: %v", known, err)
			}
		}
		if left := s.profiles(); len(left) > 0 {
			t.Errorf("profiles are left: %+v", left)
		}
		s.wantNoHarm(t)
	})
}

func TestReleaseOfDeletedHardware(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.setApplied(t, s.nodes[0], profileA)
		s.appliance.Inject(fakeoneview.Fault{Path: hardwares, Count: fakeoneview.Always, Effect: fakeoneview.Refuse(http.StatusNotFound,
			fakeoneview.Problem{Code: "RESOURCE_NOT_FOUND"})})
		if err := s.pool(t).Release(t.Context(), sharing.ReleaseOptions{NodeID: s.nodes[0]}); err != nil {
			t.Error(err)
		}
		s.wantNothing(t)
	})
}

func TestReleaseRefusesRunningNode(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"active", "deploying", "cleaning", "deploy failed", "rescue", "error"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				s := newSite(t, 1)
				uri := s.mustPrepare(t, s.nodes[0]).Profile.URI
				s.appliance.PowerOn(s.blades.Hardware[0])
				s.ironic.Set(s.nodes[0], "provision_state", state)
				err := s.pool(t).Release(t.Context(), sharing.ReleaseOptions{NodeID: s.nodes[0], ProfileURI: uri})
				wantWords(t, err, `state "`+state+`"`, "metal_deployment")
				s.wantHeld(t)
				s.wantPower(t, fakeoneview.On)
			})
		})
	}
}

// Release does not remove a profile without proof that it was made for the node, and reports it to the caller.
func TestReleaseReportsProfileWithoutMark(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		uri := s.mustPrepare(t, s.nodes[0]).Profile.URI
		s.appliance.EditProfile(uri, func(document map[string]any) { document["description"] = "web" })
		if err := s.pool(t).Site.Ironic.DeleteNode(t.Context(), s.nodes[0]); err != nil {
			t.Fatal(err)
		}
		left := ""
		o := sharing.ReleaseOptions{
			NodeID: s.nodes[0], ProfileURI: uri, HardwareURI: s.blades.Hardware[0],
			Left: func(profile *oneview.Profile, why string) { left = profile.URI + " " + why },
		}
		if err := s.pool(t).Release(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(left, uri) || !strings.Contains(left, "its description does not say any more") {
			t.Errorf("left is said %q, want profile %s", left, uri)
		}
	})
}
