package provision_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/throttle"
)

// slowly lets each request that creates an allocation travel for a while.
func slowly(fake *fakeironic.Server, travels time.Duration) func(*provision.Config) {
	return func(cfg *provision.Config) {
		cfg.Transport = transport(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && r.URL.Path == "/v1/allocations" {
				<-time.After(travels)
			}
			return fake.RoundTrip(r)
		})
	}
}

// named is a group of a name.
func named(name string, size int) *provision.Group {
	g := groupOf(size)
	g.Name = name
	for i, m := range g.Members {
		m.Name = provision.MemberName(name, i)
	}
	return g
}

// The site has nodes for one of two groups. Two runs reserve for them at once, and each takes longer than a lock is valid without a renewal.
func TestGroup_slowerThanTheLease(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(15)
		errs := make(chan error, 2)
		for _, name := range []string{"a", "b"} {
			client := newClient(fake, slowly(fake, 50*time.Second))
			go func() {
				_, err := client.ReserveGroup(t.Context(), named(name, 12), time.Hour)
				errs <- err
			}()
		}
		first, second := <-errs, <-errs
		if lost := errors.Join(first, second); (first == nil) == (second == nil) || !provision.Is(lost, provision.KindShortGroup) {
			t.Errorf("the groups end with %v and %v", first, second)
		}
		if posts := count(fake, http.MethodPost, "/v1/allocations"); posts != 12 {
			t.Errorf("%d allocations were created, want 12", posts)
		}
		wantReserved(t, fake, 12)
	})
}

// Many groups of one run wait for each other without requests.
func TestGroup_groupsOfOneRunShareOneTurn(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		const groups = 20
		fake := fleet(2 * groups)
		client, errs := newClient(fake, slowly(fake, 9*time.Second)), make(chan error, groups)
		for i := range groups {
			go func() {
				_, err := client.ReserveGroup(t.Context(), named(strings.Repeat("g", i+1), 2), time.Hour)
				errs <- err
			}()
		}
		for range groups {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if n := count(fake, http.MethodPost, "/v1/chassis") + count(fake, http.MethodGet, "/v1/chassis"); n > 2*groups {
			t.Errorf("%d requests for the lock of %d groups", n, groups)
		}
	})
}

// The time-out of a creation bounds the wait for another run, and the error names that run.
func TestGroup_waitForAnotherRunIsBounded(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(30)
		done := make(chan error)
		go func() {
			_, err := newClient(fake, slowly(fake, 50*time.Second)).ReserveGroup(t.Context(), named("a", 20), time.Hour)
			done <- err
		}()
		<-time.After(10 * time.Second)
		began := time.Now()
		_, err := newClient(fake).ReserveGroup(t.Context(), named("b", 2), time.Minute)
		var locked *throttle.LockedError
		if !errors.As(err, &locked) || locked.Run == "" || time.Since(began) > 62*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if _, detail := provision.Explain("reserve", err); !strings.Contains(detail, "timeouts") {
			t.Errorf("the error says %q", detail)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
