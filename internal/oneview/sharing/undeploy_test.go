package sharing

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
)

// guardedSite returns the site of a new process that the pool guards, and calls sent before each verb that reaches Ironic.
func (s *poolSite) guardedSite(t *testing.T, sent func(verb string)) (*machine.Site, *Pool) {
	t.Helper()
	watched := roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/states/provision") {
			sent(r.URL.Path)
		}
		return s.ironic.RoundTrip(r)
	})
	return New(machine.Config{Config: api.Config{Endpoint: "http://ironic.test", Auth: api.AuthNone, Transport: watched}},
		s.pool(t).OneView)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Undeploying a node cleans it, which boots the machine: never while a OneView user has the server, and with a temporary profile if the
// profile of the deployment is gone.
func TestUndeployCleansWithATemporaryProfile(t *testing.T) {
	t.Parallel()
	const instance = "0f8a0e44-6b6c-4a3c-9a55-3a3f7b8b0c11"
	for _, tt := range []struct {
		name, state string
		lost        bool   // a OneView user has removed the profile of the deployment, and taken the server for a while
		uncleaned   bool   // automated_clean is false
		with        string // profile while the node is cleaned
		after       string // and afterwards
	}{
		{name: "own profile", state: "active", with: "web-0", after: "web-0"},
		{name: "lost profile", state: "active", lost: true, with: "Ironic Cleaning"},
		{name: "failed deployment", state: "deploy failed", lost: true, with: "Ironic Cleaning"},
		{name: "lost profile, no cleaning", state: "active", lost: true, uncleaned: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inPoolTime(t, func(t *testing.T) {
				s := newPoolSite(t, 1)
				id := s.node(t, nodeName(0)).UUID
				if _, err := s.pool(t).Prepare(t.Context(), ProfileSpec{NodeID: id, Name: "web-0"}); err != nil {
					t.Fatal(err)
				}
				s.ironic.Set(id, "provision_state", tt.state)
				s.ironic.Set(id, "instance_uuid", instance)
				s.ironic.Set(id, "automated_clean", !tt.uncleaned)
				s.oneview.PowerOn(s.hardware[0])
				profile := func() string {
					for _, p := range s.oneview.Profiles() {
						if p.URI == s.oneview.HardwareAt(s.hardware[0]).ProfileURI {
							return strings.TrimSuffix(p.Name, " ["+id+"]")
						}
					}
					return ""
				}
				var with []string
				site, pool := s.guardedSite(t, func(string) { with = append(with, profile()) })
				undeploy := func() error {
					m, err := site.Machine(t.Context(), id)
					if err == nil {
						_, err = deploy.Undeploy(t.Context(), m, instance, "", 12*time.Hour)
					}
					return err
				}
				if tt.lost {
					s.oneview.ReleaseHardware(s.hardware[0])
					s.oneview.TakeHardware(s.hardware[0])
					if err := undeploy(); !failure.Is(err, KindInUse) || len(with) > 0 {
						t.Fatalf("taken: %v, after %d verbs", err, len(with))
					}
					s.oneview.ReleaseHardware(s.hardware[0])
				}
				if err := errors.Join(undeploy(), pool.EndTemporary(t.Context(), id, 0)); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(with, []string{tt.with}) || profile() != tt.after {
					t.Errorf("the verbs were sent with the profiles %q, and %q is left; want %q and %q", with, profile(), tt.with, tt.after)
				}
				s.wantNode(t, 0, "available", "")
			})
		})
	}
}
