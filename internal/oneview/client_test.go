package oneview_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

func TestRedirectIsNotFollowed(t *testing.T) {
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
			r.Header.Set("Location", "https://elsewhere.test/rest/server-hardware/1?auth=hunter2")
		}}})
		_, err := client(t, transport).Hardware(t.Context(), s.blades.Hardware[0])
		wantWords(t, err, "302", "elsewhere.test/rest/server-hardware/1", "follows no redirect")
		if elsewhere {
			t.Error("the client sent a request to another host")
		}
	})
}

func TestReadsAreRetriedWithinBounds(t *testing.T) {
	t.Parallel()
	for name, effect := range map[string]fakeoneview.Effect{
		"not available": fakeoneview.Unavailable(-1), "not available for an hour": fakeoneview.Unavailable(time.Hour),
		"too many requests": fakeoneview.TooManyRequests(-1), "locked": fakeoneview.Locked(), "no connection": fakeoneview.Drop(),
		"a web page": fakeoneview.HTML(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				s := newSite(t, 1)
				s.appliance.Inject(fakeoneview.Fault{Method: "GET", Path: hardwares, Count: fakeoneview.Always, Effect: effect})
				begun := time.Now()
				if _, err := s.client(t).Hardware(t.Context(), s.blades.Hardware[0]); err == nil {
					t.Error("it worked")
				}
				if took := time.Since(begun); took > oneview.DefaultPatience {
					t.Errorf("it took %s, want at most %s", took, oneview.DefaultPatience)
				}
			})
		})
	}
}

func TestDeadAddressFailsSoon(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.appliance.Inject(fakeoneview.Fault{Count: fakeoneview.Always, Effect: fakeoneview.Drop()})
		begun := time.Now()
		client := s.client(t)
		_, err := client.Version(t.Context())
		wantWords(t, err, "OneView at oneview.test")
		for range 100 { // one request for each of many hosts
			_, err = client.Hardware(t.Context(), s.blades.Hardware[0])
			wantWords(t, err, "OneView at oneview.test")
		}
		if took := time.Since(begun); took > 15*time.Second {
			t.Errorf("it took %s", took)
		}
		s.appliance.ClearFaults()
		time.Sleep(time.Minute)
		if _, err := client.Hardware(t.Context(), s.blades.Hardware[0]); err != nil {
			t.Errorf("the client does not use an appliance that answers again: %v", err)
		}
	})
}

func TestClientWaitsForStartingAppliance(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.appliance.Restart(time.Minute)
		if _, err := s.client(t).Hardware(t.Context(), s.blades.Hardware[0]); err != nil {
			t.Error(err)
		}
	})
}

func TestLogHasRequestsAndNoSecrets(t *testing.T) {
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
			t.Errorf("the log does not contain the request: %s", text)
		}
		if token == "" || strings.Contains(text, token) || strings.Contains(text, password) {
			t.Errorf("the log contains a secret: %s", text)
		}
	})
}

func TestErrorHasTheAppliancesDescription(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		s.appliance.Inject(fakeoneview.Fault{Method: "GET", Path: hardwares, Effect: fakeoneview.Effect{Refuse: &fakeoneview.Reply{
			Status: http.StatusBadRequest, Body: []byte(`{"errorCode":"E1","message":"{\"name\":\"Encl1, bay 3\", \"uri\":\"/rest/server-hardware/3\"} is odd, ` + password + `.",
				"details":"It has two heads.","recommendedActions":["Look again."],"nestedErrors":[{"errorCode":"E2","message":"One is sick."}],"data":{}}`),
		}}})
		_, err := s.client(t).Hardware(t.Context(), s.blades.Hardware[0])
		wantWords(t, err, "400 Bad Request", "Encl1, bay 3 (/rest/server-hardware/3) is odd", "E1", "It has two heads", "One is sick", "E2",
			"OneView recommends: Look again.")
		wantNoSecret(t, err)
	})
}

func TestVersionIsNegotiatedAgainAfterUpgrade(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite(t, 1)
		c := s.client(t)
		s.appliance.CurrentVersion = 800
		if _, err := c.Hardware(t.Context(), s.blades.Hardware[0]); err != nil {
			t.Fatal(err)
		}
		s.appliance.CurrentVersion, s.appliance.MinimumVersion = 2000, 1200
		if _, err := c.Hardware(t.Context(), s.blades.Hardware[0]); err == nil {
			t.Error("the appliance still supports the old version")
		}
		if version, err := c.Version(t.Context()); version != 2000 || err != nil {
			t.Errorf("Version = %d, %v, want 2000", version, err)
		}
		if _, err := c.Hardware(t.Context(), s.blades.Hardware[0]); err != nil {
			t.Error(err)
		}
	})
}
