package oneview_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// inVirtualTime runs a test with a virtual clock.
func inVirtualTime(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		defer func() { <-time.After(time.Hour) }()
		test(t)
	})
}

const password = "correct horse"

// Paths of requests that faults are injected into.
const (
	hardwares = `/server-hardware/[^/]+$`
	logins    = `/login-sessions$`
)

// site is a fake appliance with blades.
type site struct {
	appliance *fakeoneview.Server
	blades    fakeoneview.Fleet
}

// newSite returns an appliance with n free blades.
func newSite(t *testing.T, n int) *site {
	t.Helper()
	s := &site{appliance: &fakeoneview.Server{Username: "ironic", Password: password}}
	s.blades = s.appliance.AddBlades(n)
	for i, uri := range s.blades.Hardware {
		s.appliance.EditHardware(uri, func(h *fakeoneview.Hardware) { h.MACs = []string{fmt.Sprintf("52:54:00:00:%02X:00", i)} })
	}
	return s
}

// client returns a new client of the site, with its own session.
func (s *site) client(t *testing.T) *oneview.Client {
	t.Helper()
	return client(t, s.appliance)
}

// client returns a client of a fake appliance in this process.
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

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// wantWords fails a test unless an error contains all words.
func wantWords(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that contains %q", words)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not contain %q", err, word)
		}
	}
}

// wantNoSecret fails a test if an error contains the password.
func wantNoSecret(t *testing.T, err error) {
	t.Helper()
	if strings.Contains(err.Error(), password) {
		t.Errorf("the error contains the password: %v", err)
	}
}
