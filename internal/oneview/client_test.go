package oneview_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

func TestAConfigurationIsCheckedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	good := func() oneview.Config {
		return oneview.Config{Endpoint: "https://oneview.example.com", Username: "ironic", Password: password}
	}
	notPEM := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(notPEM, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		spoil func(*oneview.Config)
		word  string // of the error; empty: it is fine
	}{
		{"as it should be", func(*oneview.Config) {}, ""},
		{"with /rest", func(c *oneview.Config) { c.Endpoint += "/rest/" }, ""},
		{"no endpoint", func(c *oneview.Config) { c.Endpoint = "" }, "endpoint"},
		{"only a host", func(c *oneview.Config) { c.Endpoint = "oneview.example.com" }, "endpoint"},
		{"a password in the endpoint", func(c *oneview.Config) { c.Endpoint = "https://ironic:" + password + "@oneview.example.com" }, "endpoint"},
		{"no username", func(c *oneview.Config) { c.Username = "" }, "username"},
		{"no password", func(c *oneview.Config) { c.Password = "" }, "password"},
		{"an API that has no templates", func(c *oneview.Config) { c.APIVersion = 120 }, "api_version"},
		{"a CA file that is not there", func(c *oneview.Config) { c.CACertFile = "/nonexistent" }, "cacert_file"},
		{"a CA file without certificates", func(c *oneview.Config) { c.CACertFile = notPEM }, "cacert_file"},
		{"a CA that would not be looked at", func(c *oneview.Config) { c.CACertFile, c.Insecure = notPEM, true }, "insecure"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := good()
			tt.spoil(&cfg)
			_, err := oneview.New(cfg)
			if (err == nil) != (tt.word == "") || (err != nil && !strings.Contains(err.Error(), tt.word)) {
				t.Errorf("New: %v, want an error about %q", err, tt.word)
			}
			if err != nil {
				wantNoSecret(t, err)
			}
		})
	}
}

func TestAConfigurationThatIsNotKnownYetIsSaidOnFirstUse(t *testing.T) {
	t.Parallel()
	client, err := oneview.New(oneview.Config{Unknown: "oneview.endpoint"})
	if err != nil || client.Known() {
		t.Fatalf("New: %v, known %t", err, client.Known())
	}
	_, err = client.Hardware(t.Context(), "/rest/server-hardware/1")
	var unknown *ironic.UnknownConfigError
	if !errors.As(err, &unknown) {
		t.Errorf("err = %v, want an UnknownConfigError", err)
	}
	if err := client.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestOnlyATrustedApplianceIsSpokenTo(t *testing.T) {
	t.Parallel()
	fake := &fakeoneview.Server{Username: "ironic", Password: password}
	fake.AddBlades(1)
	ours, url := serveTLS(t, fake)
	other, _ := serveTLS(t, &fakeoneview.Server{})
	for _, tt := range []struct {
		name   string
		ca     string
		lax    bool
		trusts bool
	}{
		{"its own authority", ours, false, true},
		{"another authority", other, false, false},
		{"the authorities of the system", "", false, false},
		{"whoever it is", "", true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			client, err := oneview.New(oneview.Config{Endpoint: url, Username: "ironic", Password: password, CACertFile: tt.ca, Insecure: tt.lax})
			if err != nil {
				t.Fatal(err)
			}
			found, err := client.ListHardware(t.Context(), oneview.HardwareFilter{})
			if tt.trusts {
				if err != nil || len(found) != 1 {
					t.Errorf("ListHardware = %d, %v", len(found), err)
				}
				return
			}
			wantWords(t, err, "certificate", "cacert_file")
		})
	}
}

// serveTLS serves a fake appliance on a port of this machine, and returns the file of its authority and its URL.
func serveTLS(t *testing.T, fake *fakeoneview.Server) (caFile, url string) {
	t.Helper()
	authority, err := fakeoneview.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	settings, err := authority.ServerConfig("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: fake, TLSConfig: settings, ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.ServeTLS(listener, "", "") // ends with Close
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(caFile, authority.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	return caFile, "https://" + listener.Addr().String()
}

// client is a client of a fake appliance in this process.
func client(t *testing.T, transport http.RoundTripper, configure ...func(*oneview.Config)) *oneview.Client {
	t.Helper()
	cfg := oneview.Config{Endpoint: "https://oneview.test", Username: "ironic", Password: password, Transport: transport}
	for _, c := range configure {
		c(&cfg)
	}
	made, err := oneview.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestTheLowestOfThreeVersionsIsSpoken(t *testing.T) {
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
				var version *oneview.VersionError
				if got != tt.want || errors.As(err, &version) != (tt.want == 0) {
					t.Errorf("Version = %d, %v, want %d", got, err, tt.want)
				}
			})
		})
	}
}

func TestManyUsersShareOneSession(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 20)
		pool := s.pool(t)
		all := func() {
			var users sync.WaitGroup
			for _, uri := range s.blades.Hardware {
				users.Go(func() {
					if _, err := pool.OneView.Hardware(t.Context(), uri); err != nil {
						t.Error(err)
					}
				})
			}
			users.Wait()
		}
		all()
		if n := s.appliance.Count("POST", logins); n != 1 {
			t.Errorf("%d logins for %d users, want 1", n, len(s.nodes))
		}
		s.appliance.ExpireSessions()
		all()
		if n := s.appliance.Count("POST", logins); n != 2 {
			t.Errorf("%d logins after the session had ended, want 2", n)
		}
		if err := pool.OneView.Close(t.Context()); err != nil || s.appliance.Sessions() != 0 {
			t.Errorf("Close: %v, %d sessions are left", err, s.appliance.Sessions())
		}
		if err := pool.OneView.Close(t.Context()); err != nil {
			t.Errorf("a second Close: %v", err)
		}
		all()
	})
}

func TestALoginMessageIsAcknowledged(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.appliance.LoginMessage = true
		if _, err := s.pool(t).OneView.Hardware(t.Context(), s.blades.Hardware[0]); err != nil {
			t.Error(err)
		}
	})
}

// A session that is refused may be alive all the same: where there is room for one only, it has to end before the next login.
func TestAnApplianceWithRoomForOneSessionIsLoggedOutOfFirst(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.appliance.SessionLimit = 1
		s.appliance.Inject(fakeoneview.Fault{Method: "GET", Path: hardwares, Effect: fakeoneview.NotAuthorized()})
		if _, err := s.pool(t).OneView.Hardware(t.Context(), s.blades.Hardware[0]); err != nil {
			t.Error(err)
		}
		if in, out := s.appliance.Count("POST", logins), s.appliance.Count("DELETE", logins); in != 2 || out != 1 {
			t.Errorf("%d logins and %d logouts, want 2 and 1", in, out)
		}
	})
}

func TestASessionThatWasIdleForTooLongIsRenewedOnce(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 2)
		s.appliance.IdleTimeout = time.Hour
		pool := s.pool(t)
		for _, tt := range []struct {
			pause  time.Duration
			logins int // so far
		}{{0, 1}, {59 * time.Minute, 1}, {time.Hour, 2}, {59 * time.Minute, 2}} {
			<-time.After(tt.pause)
			for _, uri := range s.blades.Hardware {
				if _, err := pool.OneView.Hardware(t.Context(), uri); err != nil {
					t.Errorf("after %s: %v", tt.pause, err)
				}
			}
			if n := s.appliance.Count("POST", logins); n != tt.logins {
				t.Errorf("%d logins after a pause of %s, want %d", n, tt.pause, tt.logins)
			}
		}
	})
}

func TestAUserWithoutTheRightIsNotLoggedInAgainAndAgain(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.appliance.Inject(fakeoneview.Fault{Method: "GET", Path: hardwares, Count: fakeoneview.Always, Effect: fakeoneview.NotAuthorized()})
		_, err := s.pool(t).OneView.Hardware(t.Context(), s.blades.Hardware[0])
		wantWords(t, err, "401", "AUTHORIZATION", "lacks the right")
		if n, open := s.appliance.Count("POST", logins), s.appliance.Sessions(); n != 2 || open != 1 {
			t.Errorf("%d logins and %d open sessions, want one login again, and one session", n, open)
		}
		if n := s.appliance.Count("GET", hardwares); n != 2 {
			t.Errorf("%d requests, want 2", n)
		}
	})
}

func TestAWrongPasswordIsTriedOnlyOnce(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 10)
		wrong := client(t, s.appliance, func(c *oneview.Config) { c.Password = "incorrect horse" })
		var users sync.WaitGroup
		for _, uri := range s.blades.Hardware {
			users.Go(func() {
				_, err := wrong.Hardware(t.Context(), uri)
				var login *oneview.LoginError
				if !errors.As(err, &login) || strings.Contains(err.Error(), "incorrect horse") {
					t.Errorf("err = %v, want a LoginError without the password", err)
				}
			})
		}
		users.Wait()
		if n := s.appliance.Count("POST", logins); n != 1 {
			t.Errorf("%d logins failed, want 1: so many lock the account", n)
		}
	})
}

func TestTheLoginIsWaitedForOnlyAsLongAsTheCallerWants(t *testing.T) {
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

func TestARedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		elsewhere := false
		transport := roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host != "oneview.test" {
				elsewhere = true
			}
			return s.appliance.RoundTrip(r)
		})
		s.appliance.Inject(fakeoneview.Fault{Method: "GET", Path: hardwares, Effect: fakeoneview.Effect{Change: func(r *fakeoneview.Reply) {
			r.Status = http.StatusFound
			r.Header.Set("Location", "https://elsewhere.test/rest/server-hardware/1")
		}}})
		_, err := client(t, transport).Hardware(t.Context(), s.blades.Hardware[0])
		wantWords(t, err, "302")
		if elsewhere {
			t.Error("another host was asked")
		}
	})
}

func TestReadsAreRepeatedOnlyWithinBounds(t *testing.T) {
	t.Parallel()
	for name, effect := range map[string]fakeoneview.Effect{
		"not available": fakeoneview.Unavailable(-1), "not available for an hour": fakeoneview.Unavailable(time.Hour),
		"too many requests": fakeoneview.TooManyRequests(-1), "locked": fakeoneview.Locked(), "no connection": fakeoneview.Drop(), "a web page": fakeoneview.HTML(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				s := newSite(t, 1)
				s.appliance.Inject(fakeoneview.Fault{Method: "GET", Path: hardwares, Count: fakeoneview.Always, Effect: effect})
				begun := time.Now()
				if _, err := s.pool(t).OneView.Hardware(t.Context(), s.blades.Hardware[0]); err == nil {
					t.Error("it worked")
				}
				if took := time.Since(begun); took > oneview.DefaultPatience {
					t.Errorf("it took %s, want at most %s", took, oneview.DefaultPatience)
				}
			})
		})
	}
}

func TestADeadAddressIsGivenUpSoon(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.appliance.Inject(fakeoneview.Fault{Count: fakeoneview.Always, Effect: fakeoneview.Drop()})
		begun := time.Now()
		client := s.pool(t).OneView
		_, err := client.Version(t.Context())
		wantWords(t, err, "OneView at oneview.test")
		for range 100 { // as many hosts would
			_, err = client.Hardware(t.Context(), s.blades.Hardware[0])
			wantWords(t, err, "OneView at oneview.test")
		}
		if took := time.Since(begun); took > 15*time.Second {
			t.Errorf("it took %s", took)
		}
		s.appliance.ClearFaults()
		time.Sleep(time.Minute)
		if _, err := client.Hardware(t.Context(), s.blades.Hardware[0]); err != nil {
			t.Errorf("an appliance that is back is not asked again: %v", err)
		}
	})
}

func TestAnApplianceThatStartsIsWaitedFor(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.appliance.Restart(time.Minute)
		if _, err := s.pool(t).OneView.Hardware(t.Context(), s.blades.Hardware[0]); err != nil {
			t.Error(err)
		}
	})
}

func TestAllPagesAreReadAndFiltersHold(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 150)
		rack := s.appliance.AddRackServers(3)
		s.appliance.PageLimit = 40
		pool := s.pool(t)
		list := func(f oneview.HardwareFilter) []oneview.Hardware {
			found, err := pool.OneView.ListHardware(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			return found
		}
		taken := s.appliance.TakeHardware(s.blades.Hardware[7])
		seventh := s.appliance.HardwareAt(s.blades.Hardware[7])
		for _, tt := range []struct {
			name   string
			filter oneview.HardwareFilter
			want   int
		}{
			{"all", oneview.HardwareFilter{}, 153},
			{"by name, in another case", oneview.HardwareFilter{Name: "ENCL1, BAY 8"}, 1},
			{"by a name that is a pattern", oneview.HardwareFilter{Name: "Encl1, bay _"}, 0},
			{"by a name with a quote", oneview.HardwareFilter{Name: "Encl1' or 'a'='a"}, 0},
			{"by serial", oneview.HardwareFilter{SerialNumber: seventh.SerialNumber}, 1},
			{"by type", oneview.HardwareFilter{HardwareTypeURI: rack.TypeURI}, 3},
			{"by group", oneview.HardwareFilter{GroupURI: s.blades.GroupURI}, 150},
			{"by MAC", oneview.HardwareFilter{MAC: "52-54-00-00-07-00"}, 1},
			{"free ones of a type", oneview.HardwareFilter{HardwareTypeURI: s.blades.TypeURI, State: oneview.HardwareNoProfileApplied}, 149},
		} {
			if got := list(tt.filter); len(got) != tt.want {
				t.Errorf("%s: %d found, want %d", tt.name, len(got), tt.want)
			}
		}
		got := list(oneview.HardwareFilter{MAC: "52:54:00:00:07:00"})[0]
		if got.ProfileURI != taken || got.PowerState != oneview.PowerOn || got.State != oneview.HardwareProfileApplied || got.Name != "Encl1, bay 8" ||
			len(got.ManagementAddresses) != 1 || got.ManagementAddresses[0] != seventh.ILOAddress {
			t.Errorf("found %+v", got)
		}
		profiles, err := pool.OneView.ListProfiles(t.Context(), oneview.ProfileFilter{NamePrefix: "OTHER-"})
		if err != nil || len(profiles) != 1 || profiles[0].URI != taken || profiles[0].Created.IsZero() {
			t.Errorf("ListProfiles = %+v, %v", profiles, err)
		}
		templates, err := pool.OneView.ListTemplates(t.Context(), oneview.TemplateFilter{HardwareTypeURI: rack.TypeURI})
		if err != nil || len(templates) != 1 || templates[0].URI != rack.TemplateURI || templates[0].MACType != "Physical" || !templates[0].ManageBoot {
			t.Errorf("ListTemplates = %+v, %v", templates, err)
		}
	})
}

func TestPagesThatLeadBackEndTheList(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 150)
		s.appliance.PageLimit = 100
		s.appliance.Inject(fakeoneview.Fault{Method: "GET", Path: `/server-hardware$`, Nth: 2, Count: fakeoneview.Always, Effect: fakeoneview.PageLoop()})
		found, err := s.pool(t).OneView.ListHardware(t.Context(), oneview.HardwareFilter{})
		if err != nil || len(found) != 150 {
			t.Errorf("ListHardware = %d, %v, want 150", len(found), err)
		}
	})
}

func TestOnlyURIsOfSingleResourcesAreAskedFor(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		pool := s.pool(t)
		for _, uri := range []string{
			"", "/", "/rest/server-profiles", "/rest/server-profiles/", "/rest/server-profiles/..", "/rest/server-profiles/1/../2",
			"/rest/server-profiles/?filter=x", "/rest/server-profiles/%2e", "https://elsewhere.test/rest/tasks/1", "/rest/server-hardware/1",
		} {
			if _, err := pool.OneView.Profile(t.Context(), uri); err == nil || oneview.IsNotFound(err) {
				t.Errorf("Profile(%q): %v, want it refused", uri, err)
			}
		}
		if n := len(s.appliance.Requests()); n > 0 {
			t.Errorf("%d requests were sent", n)
		}
	})
}

func TestTheLogTellsRequestsAndNoSecrets(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		var log bytes.Buffer
		token := ""
		transport := roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Header.Get("auth") != "" {
				token = r.Header.Get("auth")
			}
			return s.appliance.RoundTrip(r)
		})
		c := client(t, transport, func(c *oneview.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			c.UserAgent = "metal/1"
		})
		if _, err := c.Hardware(t.Context(), s.blades.Hardware[0]); err != nil {
			t.Fatal(err)
		}
		text := log.String()
		if !strings.Contains(text, "path="+s.blades.Hardware[0]) || !strings.Contains(text, "status=200") {
			t.Errorf("the log does not tell the request: %s", text)
		}
		if token == "" || strings.Contains(text, token) || strings.Contains(text, password) {
			t.Errorf("the log tells a secret: %s", text)
		}
	})
}

func TestAnAppliancesWordsAreTold(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.appliance.Inject(fakeoneview.Fault{Method: "GET", Path: hardwares, Effect: fakeoneview.Effect{Refuse: &fakeoneview.Reply{
			Status: http.StatusBadRequest, Body: []byte(`{"errorCode":"E1","message":"{\"name\":\"Encl1, bay 3\", \"uri\":\"/rest/server-hardware/3\"} is odd, ` + password + `.",
				"details":"It has two heads.","recommendedActions":["Look again."],"nestedErrors":[{"errorCode":"E2","message":"One is sick."}],"data":{}}`),
		}}})
		_, err := s.pool(t).OneView.Hardware(t.Context(), s.blades.Hardware[0])
		wantWords(t, err, "400 Bad Request", "Encl1, bay 3 (/rest/server-hardware/3) is odd", "E1", "It has two heads", "One is sick", "E2", "OneView recommends: Look again.")
		wantNoSecret(t, err)
	})
}

func TestAnApplianceThatWasUpgradedIsAskedAgainWhatItSpeaks(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		pool := s.pool(t)
		s.appliance.CurrentVersion = 800
		if _, err := pool.OneView.Hardware(t.Context(), s.blades.Hardware[0]); err != nil {
			t.Fatal(err)
		}
		s.appliance.CurrentVersion, s.appliance.MinimumVersion = 2000, 1200
		if _, err := pool.OneView.Hardware(t.Context(), s.blades.Hardware[0]); err == nil {
			t.Error("the appliance still speaks the old version")
		}
		if version, err := pool.OneView.Version(t.Context()); version != 2000 || err != nil {
			t.Errorf("Version = %d, %v, want 2000", version, err)
		}
		if _, err := pool.OneView.Hardware(t.Context(), s.blades.Hardware[0]); err != nil {
			t.Error(err)
		}
	})
}
