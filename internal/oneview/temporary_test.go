package oneview_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

func TestCleaningGetsAProfileForAsLongAsItLasts(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		release, err := s.pool(t).Temporary(t.Context(), s.node(t, s.nodes[0]), oneview.Cleaning, 0)
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

func TestATemporaryProfileThatWasLeftIsUsedAndThenRemoved(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		if _, err := s.pool(t).Temporary(t.Context(), s.node(t, s.nodes[0]), oneview.Cleaning, 0); err != nil {
			t.Fatal(err)
		}
		left := s.profiles()[0].URI
		release, err := s.pool(t).Temporary(t.Context(), s.node(t, s.nodes[0]), oneview.Inspecting, 0)
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

func TestATemporaryProfileThatWasLeftBecomesTheNodesOwn(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		release, err := s.pool(t).Temporary(t.Context(), s.node(t, s.nodes[0]), oneview.Cleaning, 0)
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

func TestCleaningUsesTheProfileThatIsThereAndLeavesIt(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.mustPrepare(t, s.nodes[0])
		release, err := s.pool(t).Temporary(t.Context(), s.node(t, s.nodes[0]), oneview.Cleaning, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := release(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.wantHeld(t)
	})
}

func TestNodesThatShareNothingGetNoTemporaryProfile(t *testing.T) {
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
				release, err := pool.Temporary(t.Context(), s.node(t, s.nodes[0]), oneview.Cleaning, 0)
				if err != nil {
					t.Fatal(err)
				}
				if err := release(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := pool.Admit(t.Context(), s.node(t, s.nodes[0])); err != nil {
					t.Errorf("Admit: %v", err)
				}
				if n := len(s.appliance.Requests()); n > 0 {
					t.Errorf("%d requests were sent to OneView, want none", n)
				}
				s.wantNothing(t)
			})
		})
	}
}

func TestCleaningHardwareOfAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.appliance.TakeHardware(s.blades.Hardware[0])
		release, err := s.pool(t).Temporary(t.Context(), s.node(t, s.nodes[0]), oneview.Cleaning, 0)
		var inUse *oneview.InUseError
		if !errors.As(err, &inUse) {
			t.Errorf("err = %v, want an InUseError", err)
		}
		if err := release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
		s.wantNothing(t)
	})
}

func TestTemporaryThatWasKilledLeavesNothingAfterTheNext(t *testing.T) {
	t.Parallel()
	work := func(ctx context.Context, t *testing.T, s *site, pool *oneview.Pool) {
		release, err := pool.Temporary(ctx, s.node(t, s.nodes[0]), oneview.Cleaning, 0)
		if err == nil {
			_ = release(ctx)
		}
	}
	everyKill(t, work, func(t *testing.T, s *site) {
		release, err := s.pool(t).Temporary(t.Context(), s.node(t, s.nodes[0]), oneview.Cleaning, 0)
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
