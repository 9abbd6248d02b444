package oneview_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

func TestVersionIsTheLowestOfThree(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ lowest, highest, configured, want int }{
		{300, 2000, 0, 2000},
		{300, 2000, 800, 800},
		{300, 800, 2000, 800},
		{300, 99999, 0, 8600},
		{800, 2000, 500, 0},
		{9000, 99999, 0, 0},
	} {
		t.Run(fmt.Sprintf("%d to %d, at most %d", tt.lowest, tt.highest, tt.configured), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				fake := &fakeoneview.Server{CurrentVersion: tt.highest, MinimumVersion: tt.lowest}
				got, err := client(t, fake, func(c *oneview.Config) { c.APIVersion = tt.configured }).Version(t.Context())
				if got != tt.want || fault.Is(err, oneview.KindVersion) != (tt.want == 0) {
					t.Errorf("Version = %d, %v, want %d", got, err, tt.want)
				}
			})
		})
	}
}

func TestSessionIsShared(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 20)
		c := s.client(t)
		all := func() {
			var users sync.WaitGroup
			for _, uri := range s.blades.Hardware {
				users.Go(func() {
					if _, err := c.Hardware(t.Context(), uri); err != nil {
						t.Error(err)
					}
				})
			}
			users.Wait()
		}
		all()
		if n := s.appliance.Count("POST", logins); n != 1 {
			t.Errorf("%d logins for %d users, want 1", n, len(s.blades.Hardware))
		}
		s.appliance.ExpireSessions()
		all()
		if n := s.appliance.Count("POST", logins); n != 2 {
			t.Errorf("%d logins after the session had ended, want 2", n)
		}
		if err := c.Close(t.Context()); err != nil || s.appliance.Sessions() != 0 {
			t.Errorf("Close: %v, %d sessions are left", err, s.appliance.Sessions())
		}
		if err := c.Close(t.Context()); err != nil {
			t.Errorf("a second Close: %v", err)
		}
		all()
	})
}

func TestLoginAcknowledgesMessage(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.appliance.LoginMessage = true
		if _, err := s.client(t).Hardware(t.Context(), s.blades.Hardware[0]); err != nil {
			t.Error(err)
		}
	})
}

// A session may be open although the appliance has refused its token. If the appliance allows only one session, the client must log
// out before it logs in again.
func TestLoginEndsTheRefusedSessionFirst(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.appliance.SessionLimit = 1
		s.appliance.Inject(fakeoneview.Fault{Method: "GET", Path: hardwares, Effect: fakeoneview.NotAuthorized()})
		if _, err := s.client(t).Hardware(t.Context(), s.blades.Hardware[0]); err != nil {
			t.Error(err)
		}
		if in, out := s.appliance.Count("POST", logins), s.appliance.Count("DELETE", logins); in != 2 || out != 1 {
			t.Errorf("%d logins and %d logouts, want 2 and 1", in, out)
		}
	})
}

func TestIdleSessionIsRenewedOnce(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 2)
		s.appliance.IdleTimeout = time.Hour
		c := s.client(t)
		for _, tt := range []struct {
			pause  time.Duration
			logins int // in total
		}{{0, 1}, {59 * time.Minute, 1}, {time.Hour, 2}, {59 * time.Minute, 2}} {
			<-time.After(tt.pause)
			for _, uri := range s.blades.Hardware {
				if _, err := c.Hardware(t.Context(), uri); err != nil {
					t.Errorf("after %s: %v", tt.pause, err)
				}
			}
			if n := s.appliance.Count("POST", logins); n != tt.logins {
				t.Errorf("%d logins after a pause of %s, want %d", n, tt.pause, tt.logins)
			}
		}
	})
}

func TestMissingRightCausesOneLoginOnly(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.appliance.Inject(fakeoneview.Fault{
			Method: "GET", Path: hardwares, Count: fakeoneview.Always,
			Effect: fakeoneview.NotAuthorized(),
		})
		_, err := s.client(t).Hardware(t.Context(), s.blades.Hardware[0])
		wantWords(t, err, "401", "AUTHORIZATION", "lacks the right")
		if n, open := s.appliance.Count("POST", logins), s.appliance.Sessions(); n != 2 || open != 1 {
			t.Errorf("%d logins and %d open sessions, want one login again, and one session", n, open)
		}
		if n := s.appliance.Count("GET", hardwares); n != 2 {
			t.Errorf("%d requests, want 2", n)
		}
	})
}

func TestWrongPasswordIsTriedOnce(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 10)
		wrong := client(t, s.appliance, func(c *oneview.Config) { c.Password = "incorrect horse" })
		var users sync.WaitGroup
		for _, uri := range s.blades.Hardware {
			users.Go(func() {
				_, err := wrong.Hardware(t.Context(), uri)
				if !fault.Is(err, oneview.KindLogin) || strings.Contains(err.Error(), "incorrect horse") {
					t.Errorf("err = %v, want KindLogin without the password", err)
				}
			})
		}
		users.Wait()
		if n := s.appliance.Count("POST", logins); n != 1 {
			t.Errorf("%d logins failed, want 1: repeated failures lock the account", n)
		}
	})
}

func TestLoginEndsWithTheContext(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		stuck := roundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		c := client(t, stuck)
		begun := time.Now()
		var users sync.WaitGroup
		for range 3 {
			users.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := c.Version(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("err = %v", err)
				}
			})
		}
		users.Wait()
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("they waited for %s, want a second", took)
		}
	})
}
