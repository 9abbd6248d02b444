package allocate_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// slowly lets each request that creates an allocation travel for a while.
func slowly(fake *fakeironic.Server, travels time.Duration) func(*machine.Config) {
	return func(cfg *machine.Config) {
		cfg.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && r.URL.Path == "/v1/allocations" {
				<-time.After(travels)
			}
			return fake.RoundTrip(r)
		})
	}
}

// named is a group of a name.
func named(name string, size int) *allocate.Group {
	g := sitetest.GroupOf(size)
	g.Name = name
	for i, m := range g.Members {
		m.Name = allocate.MemberName(name, i)
	}
	return g
}

// The site has nodes for one of two groups. Two runs reserve for them at once, and each takes longer than a lock is valid without a
// renewal.
func TestGroup_slowerThanTheLease(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(15)
		errs := make(chan error, 2)
		for _, name := range []string{"a", "b"} {
			client := sitetest.NewClient(fake, slowly(fake, 50*time.Second))
			go func() {
				_, err := allocate.ReserveGroup(t.Context(), client.Site, named(name, 12), time.Hour)
				errs <- err
			}()
		}
		first, second := <-errs, <-errs
		if lost := errors.Join(first, second); (first == nil) == (second == nil) || !failure.Is(lost, allocate.KindShortGroup) {
			t.Errorf("the groups end with %v and %v", first, second)
		}
		if posts := ironictest.Count(fake, http.MethodPost, "/v1/allocations"); posts != 12 {
			t.Errorf("%d allocations were created, want 12", posts)
		}
		wantReserved(t, fake, 12)
	})
}

// Many groups of one run wait for each other without requests.
func TestGroup_groupsOfOneRunShareOneTurn(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		const groups = 20
		fake := ironictest.Fleet(2 * groups)
		client, errs := sitetest.NewClient(fake, slowly(fake, 9*time.Second)), make(chan error, groups)
		for i := range groups {
			go func() {
				_, err := allocate.ReserveGroup(t.Context(), client.Site, named(strings.Repeat("g", i+1), 2), time.Hour)
				errs <- err
			}()
		}
		for range groups {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if n := ironictest.Count(fake, http.MethodPost, "/v1/chassis") + ironictest.Count(fake, http.MethodGet,
			"/v1/chassis"); n > 2*groups {
			t.Errorf("%d requests for the lock of %d groups", n, groups)
		}
	})
}

// The time-out of a creation bounds the wait for another run, and the error names that run.
func TestGroup_waitForAnotherRunIsBounded(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		fake := ironictest.Fleet(30)
		done := make(chan error)
		go func() {
			_, err := allocate.ReserveGroup(t.Context(), sitetest.NewClient(fake, slowly(fake, 50*time.Second)).Site,
				named("a", 20), time.Hour)
			done <- err
		}()
		<-time.After(10 * time.Second)
		began := time.Now()
		_, err := allocate.ReserveGroup(t.Context(), sitetest.NewClient(fake).Site, named("b", 2), time.Minute)
		locked := fault.AboutOf[*throttle.Locked](err, throttle.KindLocked)
		if locked == nil || locked.Run == "" || time.Since(began) > 62*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if _, detail := failure.Explain("reserve", err); !strings.Contains(detail, "timeouts") {
			t.Errorf("the error says %q", detail)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
