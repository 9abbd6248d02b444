package sharing_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

func TestTemporary(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		release, err := s.pool(t).Temporary(t.Context(), s.node(t, s.nodes[0]), sharing.Cleaning, 0)
		if err != nil {
			t.Fatal(err)
		}
		s.wantHeld(t)
		if name, want := s.profiles()[0].Name, "Ironic Cleaning ["+s.nodes[0]+"]"; name != want {
			t.Errorf("the profile is named %q, want %q", name, want)
		}
		if err := release(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.wantNothing(t)
	})
}

func TestTemporaryUsesAndRemovesLeftProfile(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		if _, err := s.pool(t).Temporary(t.Context(), s.node(t, s.nodes[0]), sharing.Cleaning, 0); err != nil {
			t.Fatal(err)
		}
		left := s.profiles()[0].URI
		release, err := s.pool(t).Temporary(t.Context(), s.node(t, s.nodes[0]), sharing.Inspecting, 0)
		if err != nil {
			t.Fatal(err)
		}
		if s.wantHeld(t); s.profiles()[0].URI != left {
			t.Errorf("the profile is %s, want the one that was left, %s", s.profiles()[0].URI, left)
		}
		if err := release(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.wantNothing(t)
	})
}

func TestPrepareKeepsLeftTemporaryProfile(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		release, err := s.pool(t).Temporary(t.Context(), s.node(t, s.nodes[0]), sharing.Cleaning, 0)
		if err != nil {
			t.Fatal(err)
		}
		applied := s.mustPrepare(t, s.nodes[0])
		if want := "node-000 [" + s.nodes[0] + "]"; applied.Profile.Name != want || !applied.Reused {
			t.Errorf("applied %q, reused %t, want %q, reused", applied.Profile.Name, applied.Reused, want)
		}
		if err := release(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.wantHeld(t)
	})
}

func TestTemporaryUsesPresentProfile(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.mustPrepare(t, s.nodes[0])
		release, err := s.pool(t).Temporary(t.Context(), s.node(t, s.nodes[0]), sharing.Cleaning, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := release(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.wantHeld(t)
	})
}

func TestTemporaryDoesNothingForUnsharedNodes(t *testing.T) {
	t.Parallel()
	for name, info := range map[string]map[string]any{
		"no hardware in OneView": {},
		"pre-allocated":          {"dynamic_allocation": false},
		"undeclared":             {"dynamic_allocation": nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				s := newSite(t, 1)
				if len(info) > 0 {
					info["server_hardware_uri"] = s.blades.Hardware[0]
				}
				s.ironic.Set(s.nodes[0], "driver_info", info)
				s.appliance.MarkOthers(s.appliance.AddProfile(fakeoneview.NewProfile{HardwareURI: s.blades.Hardware[0]}))
				pool := s.pool(t)
				release, err := pool.Temporary(t.Context(), s.node(t, s.nodes[0]), sharing.Cleaning, 0)
				if err != nil {
					t.Fatal(err)
				}
				if err := release(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := pool.CheckUsable(t.Context(), s.node(t, s.nodes[0])); err != nil {
					t.Errorf("CheckUsable: %v", err)
				}
				if n := len(s.appliance.Requests()); n > 0 {
					t.Errorf("%d requests were sent to OneView, want none", n)
				}
				s.wantNothing(t)
			})
		})
	}
}

func TestTemporaryRefusesHardwareOfAnotherUser(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.appliance.TakeHardware(s.blades.Hardware[0])
		release, err := s.pool(t).Temporary(t.Context(), s.node(t, s.nodes[0]), sharing.Cleaning, 0)
		if !failure.Is(err, sharing.KindInUse) {
			t.Errorf("err = %v, want KindInUse", err)
		}
		if err := release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
		s.wantNothing(t)
	})
}

func TestKilledTemporaryLeavesNothingAfterVacate(t *testing.T) {
	t.Parallel()
	everyKill(t, createProfile, cleanFirst, func(t *testing.T, s *site) {
		<-time.After(time.Minute) // the appliance does not show an accepted operation before it has started
		pool := s.pool(t)
		if err := pool.Vacate(t.Context(), s.nodes[0], 0); err != nil {
			t.Fatal(err)
		}
		if err := pool.Site.Ironic.DeleteNode(t.Context(), s.nodes[0]); err != nil {
			t.Fatal(err)
		}
		if left := s.profiles(); len(left) > 0 {
			t.Errorf("profiles are left: %+v", left)
		}
		s.wantNoHarm(t)
	})
}

func TestEndTemporarySparesOtherProfiles(t *testing.T) {
	t.Parallel()
	forbidden := fakeoneview.Refuse(http.StatusForbidden, fakeoneview.Problem{Code: "E1", Message: "No."})
	for name, put := range map[string]func(*testing.T, *site){
		"another user's": func(_ *testing.T, s *site) { s.appliance.TakeHardware(s.blades.Hardware[0]) },
		"another user's that may not be read": func(_ *testing.T, s *site) {
			s.appliance.TakeHardware(s.blades.Hardware[0])
			s.appliance.Inject(fakeoneview.Fault{Path: profiles, Count: fakeoneview.Always, Effect: forbidden})
		},
		"another user's for which there is no right": func(_ *testing.T, s *site) {
			s.appliance.TakeHardware(s.blades.Hardware[0])
			s.appliance.Inject(fakeoneview.Fault{Path: profiles, Count: fakeoneview.Always, Effect: fakeoneview.NotAuthorized()})
		},
		"the node's own": func(t *testing.T, s *site) { s.mustPrepare(t, s.nodes[0]) },
		"the profile of the node, not in driver_info": func(t *testing.T, s *site) {
			s.mustPrepare(t, s.nodes[0])
			s.setApplied(t, s.nodes[0], "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				s := newSite(t, 1)
				put(t, s)
				if err := s.pool(t).Vacate(t.Context(), s.nodes[0], 0); err != nil {
					t.Error(err)
				}
				if h := s.appliance.HardwareAt(s.blades.Hardware[0]); h.ProfileURI == "" {
					t.Errorf("the hardware is %+v, want it with its profile", h)
				}
				s.wantNoHarm(t)
			})
		})
	}
}

// A node with an invalid server_hardware_uri has no profile. Vacate does not fail for it, so that the node can be deleted.
func TestVacateIgnoresInvalidHardwareURI(t *testing.T) {
	t.Parallel()
	for _, uri := range []string{"Encl1, bay 1", "/rest/server-hardware/"} {
		t.Run(uri, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				s := newSite(t, 1)
				s.ironic.Set(s.nodes[0], "driver_info", map[string]any{"server_hardware_uri": uri, "dynamic_allocation": true})
				if err := s.pool(t).Vacate(t.Context(), s.nodes[0], 0); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// If the login fails, Vacate cannot read the profile, and must not assume that another user has it.
func TestVacateFailsWithTheLogin(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		if _, err := s.pool(t).Temporary(t.Context(), s.node(t, s.nodes[0]), sharing.Cleaning, 0); err != nil {
			t.Fatal(err)
		}
		s.setApplied(t, s.nodes[0], "")
		out := fakeoneview.NotAuthorized()
		out.Before = s.appliance.ExpireSessions
		s.appliance.Inject(fakeoneview.Fault{Path: profiles, Effect: out})
		s.appliance.Inject(fakeoneview.Fault{
			Path: "^/rest/login-sessions$", Nth: 2, Count: fakeoneview.Always,
			Effect: fakeoneview.NotAuthorized(),
		})
		wantWords(t, s.pool(t).Vacate(t.Context(), s.nodes[0], 0), "log in")
	})
}

// cleanFirst cleans the first node.
func cleanFirst(ctx context.Context, t *testing.T, s *site, pool *sharing.Pool) {
	t.Helper()
	release, err := pool.Temporary(ctx, s.node(t, s.nodes[0]), sharing.Cleaning, 0)
	if err == nil {
		_ = release(ctx)
	}
}

func TestKilledTemporaryLeavesNothingAfterTheNext(t *testing.T) {
	t.Parallel()
	everyKill(t, createProfile, cleanFirst, func(t *testing.T, s *site) {
		release, err := s.pool(t).Temporary(t.Context(), s.node(t, s.nodes[0]), sharing.Cleaning, 0)
		if err != nil {
			t.Fatal(err)
		}
		s.wantHeld(t)
		if err := release(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		s.wantNothing(t)
	})
}
