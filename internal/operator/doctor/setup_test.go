package doctor_test

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakekeystone"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/doctor"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

// site is an Ironic with three nodes, a Keystone and a server of images.
type site struct {
	ironic   *fakeironic.Server
	keystone *fakekeystone.Server
	images   func(r *http.Request) (*http.Response, error)
	options  doctor.Options
}

// newSite returns a site on which nothing is wrong. Ironic needs no credentials.
func newSite() *site {
	s := &site{ironic: ironictest.Fleet(3), keystone: fakekeystone.NewSite("http://ironic.test")}
	s.images = func(r *http.Request) (*http.Response, error) { return answer(r, http.StatusOK, ""), nil }
	s.options = doctor.Options{
		Site: machine.Config{Config: api.Config{
			Endpoint: "http://ironic.test", Auth: api.AuthNone, Transport: s,
			PollInterval: ironictest.Poll, RequestTimeout: time.Minute,
		}},
		Budget: time.Minute, StuckAfter: 45 * time.Minute,
		Images: ironictest.Transport(func(r *http.Request) (*http.Response, error) { return s.images(r) }),
	}
	return s
}

// behindKeystone makes the site ask its Keystone. The user is one of fakekeystone.NewSite. The first node belongs to tenant-a, which lets
// it to tenant-b.
func (s *site) behindKeystone(user string) *site {
	s.ironic.Identify = func(token string) (fakeironic.Caller, bool) {
		who, known := s.keystone.Identify(token)
		return fakeironic.Caller{Project: who.ProjectID, System: who.System, Roles: who.Roles}, known
	}
	s.ironic.Set("node-000", "owner", "tenant-a-id")
	s.ironic.Set("node-000", "lessee", "tenant-b-id")
	cfg := &s.options.Site
	cfg.Endpoint, cfg.Auth = "", api.AuthKeystone
	cfg.Environ = []string{"HOME=/none", "OS_AUTH_URL=http://keystone.test/v3", "OS_USERNAME=" + user, "OS_PASSWORD=" +
		fakekeystone.Password, "OS_USER_DOMAIN_NAME=Default", "OS_REGION_NAME=north"}
	if tenant, _, _ := strings.Cut(user, "-"); tenant == "sys" {
		cfg.Environ = append(cfg.Environ, "OS_SYSTEM_SCOPE=all")
	} else {
		cfg.Environ = append(cfg.Environ, "OS_PROJECT_NAME=tenant-"+tenant, "OS_PROJECT_DOMAIN_NAME=Default")
	}
	return s
}

// RoundTrip sends a request to the server with its host name.
func (s *site) RoundTrip(r *http.Request) (*http.Response, error) {
	switch r.URL.Host {
	case "keystone.test":
		return s.keystone.RoundTrip(r)
	case "ironic.test":
		return s.ironic.RoundTrip(r)
	}
	return nil, &net.OpError{Op: "dial", Err: errors.New("another server was asked: " + r.URL.Host)}
}

// answer is an answer of another server.
func answer(r *http.Request, status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}
}

// run makes all checks, and fails the test if they tell a secret or change anything.
func (s *site) run(t *testing.T) *doctor.Report {
	t.Helper()
	before := s.ironic.Nodes()
	report := doctor.Run(t.Context(), s.options)
	if after := s.ironic.Nodes(); len(before) != len(after) {
		t.Errorf("there were %d nodes before, and are %d now", len(before), len(after))
	}
	for _, n := range before {
		now, _ := s.ironic.Node(n.UUID)
		if n.Raw["updated_at"] != now.Raw["updated_at"] || n.ProvisionState != now.ProvisionState || n.PowerState != now.PowerState {
			t.Errorf("node %s was changed: %v, was %v", n.Name, now.Raw, n.Raw)
		}
	}
	var text strings.Builder
	if err := report.Write(&text, 10_000); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{fakekeystone.Password, "hidden-in-url", "hidden-signature"} {
		if strings.Contains(text.String(), secret) {
			t.Errorf("the report has the secret %q: %s", secret, text.String())
		}
	}
	return report
}

// of returns the checks whose names begin with a text.
func of(r *doctor.Report, name string) (found []doctor.Check) {
	for _, c := range r.Checks {
		if strings.HasPrefix(c.Name, name) {
			found = append(found, c)
		}
	}
	return found
}

// want fails the test unless a check has a result and, in its fact, details or advice, each text.
func want(t *testing.T, r *doctor.Report, name string, result doctor.Result, texts ...string) {
	t.Helper()
	all := of(r, name)
	for _, c := range all {
		said := c.Fact + "\n" + strings.Join(c.Details, "\n") + "\n" + c.Next
		if c.Result != result {
			continue
		}
		has := true
		for _, text := range texts {
			has = has && strings.Contains(said, text)
		}
		if has {
			return
		}
	}
	t.Errorf("check %s: %+v, want %s with %q", name, all, result, texts)
}

// object decodes a JSON object.
func object(t *testing.T, text string) (decoded map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}
