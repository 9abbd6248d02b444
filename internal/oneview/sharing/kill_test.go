package sharing_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

// Requests that change something on the appliance.
const (
	switchOff     = "PUT /rest/server-hardware/*/powerState"
	createProfile = "POST /rest/server-profiles"
	changeProfile = "PUT /rest/server-profiles/*"
	deleteProfile = "DELETE /rest/server-profiles/*"
)

// everyKill runs work in a process, and kills it before and after each of its requests. Then it runs story, at once or later. The work
// must send the request named must.
func everyKill(t *testing.T, must string, work func(context.Context, *testing.T, *site, *sharing.Pool), story func(t *testing.T, s *site)) {
	t.Helper()
	for _, later := range []time.Duration{0, 7 * time.Second, time.Hour} {
		sharing.EveryKill(t, []string{must}, func(t *testing.T, m *sharing.Mortal) {
			t.Helper()
			t.Run(fmt.Sprintf("%s, next after %s", m, later), func(t *testing.T) {
				inVirtualTime(t, func(t *testing.T) {
					s := newSite(t, 1)
					s.appliance.PowerOn(s.blades.Hardware[0])
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					m.Die = cancel
					work(ctx, t, s, s.pool(t, m.Through))
					<-time.After(later)
					story(t, s)
				})
			})
		})
	}
}

func prepareFirst(ctx context.Context, _ *testing.T, s *site, pool *sharing.Pool) {
	_, _ = pool.Prepare(ctx, sharing.ProfileSpec{NodeID: s.nodes[0]})
}

func TestKilledPrepareIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	everyKill(t, createProfile, prepareFirst, func(t *testing.T, s *site) {
		s.mustPrepare(t, s.nodes[0])
		s.wantHeld(t)
	})
}

func TestKilledPrepareLeavesNothingAfterRelease(t *testing.T) {
	t.Parallel()
	everyKill(t, createProfile, prepareFirst, func(t *testing.T, s *site) {
		<-time.After(time.Minute) // the appliance does not show an accepted operation before it has started
		if err := s.pool(t).Release(t.Context(), sharing.ReleaseOptions{NodeID: s.nodes[0]}); err != nil {
			t.Fatal(err)
		}
		s.wantNothing(t)
	})
}

func TestKilledReleaseIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	uri := ""
	everyKill(t, deleteProfile, func(ctx context.Context, t *testing.T, s *site, pool *sharing.Pool) {
		uri = s.mustPrepare(t, s.nodes[0]).Profile.URI
		s.appliance.PowerOn(s.blades.Hardware[0])
		_ = pool.Release(ctx, sharing.ReleaseOptions{NodeID: s.nodes[0], ProfileURI: uri})
	}, func(t *testing.T, s *site) {
		if err := s.pool(t).Release(t.Context(), sharing.ReleaseOptions{NodeID: s.nodes[0], ProfileURI: uri}); err != nil {
			t.Fatal(err)
		}
		s.wantNothing(t)
	})
}

func TestKilledReleaseThenPrepareIsConsistent(t *testing.T) {
	t.Parallel()
	everyKill(t, deleteProfile, func(ctx context.Context, t *testing.T, s *site, pool *sharing.Pool) {
		uri := s.mustPrepare(t, s.nodes[0]).Profile.URI
		s.appliance.PowerOn(s.blades.Hardware[0])
		_ = pool.Release(ctx, sharing.ReleaseOptions{NodeID: s.nodes[0], ProfileURI: uri})
	}, func(t *testing.T, s *site) {
		s.mustPrepare(t, s.nodes[0])
		s.wantHeld(t)
	})
}

func TestKilledRollbackIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	everyKill(t, deleteProfile, func(ctx context.Context, t *testing.T, s *site, pool *sharing.Pool) {
		s.appliance.Inject(fakeoneview.Fault{Method: "POST", Path: posting, Effect: fakeoneview.FailApply(broken, false)})
		prepareFirst(ctx, t, s, pool)
	}, func(t *testing.T, s *site) {
		s.appliance.ClearFaults()
		s.mustPrepare(t, s.nodes[0])
		s.wantHeld(t)
	})
}

func TestKilledUpdateIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	update := func(ctx context.Context, s *site, pool *sharing.Pool) error {
		_, err := pool.Update(ctx, sharing.UpdateOptions{NodeID: s.nodes[0], ProfileURI: s.profiles()[0].URI, Name: "web", Reapply: true})
		return err
	}
	everyKill(t, changeProfile, func(ctx context.Context, t *testing.T, s *site, pool *sharing.Pool) {
		s.mustPrepare(t, s.nodes[0])
		s.newBIOS()
		s.appliance.PowerOn(s.blades.Hardware[0])
		_ = update(ctx, s, pool)
	}, func(t *testing.T, s *site) {
		if err := update(t.Context(), s, s.pool(t)); err != nil {
			t.Fatal(err)
		}
		holding, err := s.pool(t).Inspect(t.Context(), s.node(t, s.nodes[0]))
		if err != nil || holding.Compliance != oneview.Compliant || holding.Profile.Name != "web" {
			t.Errorf("Inspect = %+v, %v", holding, err)
		}
		s.wantHeld(t)
	})
}

func TestInterruptedPrepareRecordsProfile(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		ctx, interrupt := context.WithCancel(t.Context())
		s.appliance.Inject(fakeoneview.Fault{Method: "POST", Path: posting, Effect: fakeoneview.RightAfter(func() {
			time.AfterFunc(time.Second, interrupt)
		})})
		recorded := ""
		_, err := s.pool(t).Prepare(ctx, sharing.ProfileSpec{NodeID: s.nodes[0], Record: func(uri string) { recorded = uri }})
		wantWords(t, err, "context canceled")
		if found := s.profiles(); len(found) != 1 || recorded != found[0].URI || s.applied(t, s.nodes[0]) != recorded {
			t.Errorf("recorded %q, Ironic has %q, want both to be that of %+v", recorded, s.applied(t, s.nodes[0]), found)
		}
		s.mustPrepare(t, s.nodes[0])
		s.wantHeld(t)
	})
}
