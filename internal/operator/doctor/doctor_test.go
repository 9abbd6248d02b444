package doctor_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/doctor"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

func TestDoctor_healthySite(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*site{"without Keystone": newSite(), "behind Keystone": newSite().behindKeystone("sys-admin")} {
		report := s.run(t)
		for _, c := range report.Checks {
			if c.Result != doctor.OK {
				t.Errorf("%s: %+v", name, c)
			}
		}
		if name == "behind Keystone" {
			want(t, report, "Keystone", doctor.OK, "region north, interface public")
			want(t, report, "user", doctor.OK, "user sys-admin (domain Default) with system scope, roles admin, manager, member, reader")
		}
	}
}

// The number of requests does not depend on that of the machines.
func TestDoctor_fewRequests(t *testing.T) {
	t.Parallel()
	s := newSite().behindKeystone("sys-admin")
	s.run(t)
	few := len(s.ironic.Requests())
	s.ironic.AddFleet(900, "baremetal")
	s.ironic.ResetRequests()
	s.run(t)
	if many := len(s.ironic.Requests()); many != few || many > 30 {
		t.Errorf("%d requests with 3 nodes, %d with 903", few, many)
	}
}

// Every stage of a connection that fails has a name, and what to do. The other checks go on.
func TestDoctor_noConnection(t *testing.T) {
	t.Parallel()
	untrusted := &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}
	for name, tt := range map[string]struct {
		fails func(r *http.Request) (*http.Response, error)
		says  []string
	}{
		"refused": {func(*http.Request) (*http.Response, error) {
			return nil, syscall.ECONNREFUSED
		}, []string{"TCP: ", "connection refused", "Is Ironic running there"}},
		"no such": {func(*http.Request) (*http.Response, error) {
			return nil, &net.DNSError{Name: "ironic.test", IsNotFound: true, Err: "no such host"}
		}, []string{"Name resolution: ", "check the host name ironic.test"}},
		"untrusted": {func(*http.Request) (*http.Response, error) { return nil, untrusted }, []string{"TLS: ", "Set cacert_file"}},
		"wrong path": {func(r *http.Request) (*http.Response, error) {
			return answer(r, 404, "<html><title>Not here</title>"), nil
		}, []string{"Path: ", "is not Ironic"}},
		"wrong proxy": {func(r *http.Request) (*http.Response, error) {
			return answer(r, 502, "<html><title>Bad gateway</title>"), nil
		}, []string{"HTTP: ", "502"}},
		"not JSON": {func(r *http.Request) (*http.Response, error) {
			return answer(r, 200, "hello"), nil
		}, []string{"Answer: ", "not JSON"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				s := newSite()
				s.options.Image = "http://images.test/a.raw"
				s.options.Site.Transport = ironictest.Transport(tt.fails)
				report := s.run(t)
				want(t, report, "Ironic", doctor.Problem, tt.says...)
				want(t, report, "machines", doctor.Unknown, "Ironic could not be asked")
				want(t, report, "image server", doctor.OK, "http://images.test answers here")
			})
		})
	}
}

func TestDoctor_keystoneFails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		breaks func(s *site)
		ironic doctor.Result
		says   string
	}{
		"wrong password": {func(s *site) {
			s.keystone.Change(func() { s.keystone.Users = nil })
		}, doctor.Unknown, "refuses the credentials"},
		"no catalog": {func(s *site) { s.keystone.Catalog = nil }, doctor.Unknown, "service catalog"},
		"Ironic configured": {func(s *site) {
			s.keystone.Change(func() { s.keystone.Users = nil })
			s.options.Site.Endpoint = "http://ironic.test"
		}, doctor.OK, "refuses the credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite().behindKeystone("a-member")
			tt.breaks(s)
			report := s.run(t)
			want(t, report, "Keystone", doctor.Problem, tt.says)
			want(t, report, "Ironic", tt.ironic)
			want(t, report, "rights", doctor.Unknown)
		})
	}
}

func TestDoctor_wrongPasswordOfIronic(t *testing.T) {
	t.Parallel()
	s := newSite()
	s.ironic.Username, s.ironic.Password = "metal", "hidden-in-url"
	s.options.Site.Auth, s.options.Site.Username, s.options.Site.Password = api.AuthHTTPBasic, "metal", "wrong"
	want(t, s.run(t), "user", doctor.Problem, "Incorrect username or password", "METAL_PASSWORD")
	s.options.Site.Password = "hidden-in-url"
	want(t, s.run(t), "user", doctor.OK, "user metal")
}

// A request that hangs takes its own check, and not the time of the others.
func TestDoctor_hangingRequests(t *testing.T) {
	t.Parallel()
	ironictest.InVirtualTime(t, func(t *testing.T) {
		s := newSite().behindKeystone("sys-admin")
		s.options.Site.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
			if strings.HasPrefix(r.URL.Path, "/v1/drivers") || strings.HasPrefix(r.URL.Path, "/v1/conductors") {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return s.RoundTrip(r)
		})
		begun := time.Now()
		report := s.run(t)
		if took := time.Since(begun); took > s.options.Budget {
			t.Errorf("took %s", took)
		}
		want(t, report, "drivers", doctor.Unknown)
		want(t, report, "conductors", doctor.Unknown)
		want(t, report, "machines", doctor.OK)
		want(t, report, "lock records", doctor.OK)
		want(t, report, "rights on machines", doctor.OK)
	})
}

func TestDoctor_versions(t *testing.T) {
	t.Parallel()
	for version, tt := range map[string]struct {
		result doctor.Result
		says   string
	}{
		"1.82": {doctor.OK, "Ironic 21.4 (2023.1)"}, "1.96": {doctor.OK, "Ironic 29.0 (2025.1)"},
		"1.100": {doctor.OK, "between two releases, after 30.0 or 31.0"},
		"1.81":  {doctor.Warning, "Ironic 21.3"}, "1.140": {doctor.OK, "newer than 39.0"},
	} {
		s := newSite()
		s.ironic.MaxMicroversion = version
		want(t, s.run(t), "API version", tt.result, tt.says)
	}
	s := newSite()
	s.options.Site.Microversion = 90
	want(t, s.run(t), "API version", doctor.Warning, "limits the API to 1.90")
}

func TestDoctor_conductorsAndClocks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		group  string
		alive  bool
		ahead  time.Duration
		result doctor.Result
		clocks doctor.Result
	}{
		"alive":                 {"", true, -3 * time.Second, doctor.OK, doctor.OK},
		"dead":                  {"", false, -time.Hour, doctor.Problem, doctor.OK},
		"only of another group": {"rack9", true, -3 * time.Second, doctor.Problem, doctor.OK},
		"clock ahead":           {"", true, time.Minute, doctor.OK, doctor.Warning},
		"clock behind":          {"", true, -5 * time.Minute, doctor.OK, doctor.Warning},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				s := newSite()
				s.ironic.Reject = func(r *http.Request) *fakeironic.Rejection {
					if r.URL.Path != "/v1/conductors" {
						return nil
					}
					return &fakeironic.Rejection{
						Status: 200,
						Body: fmt.Sprintf(`{"conductors": [{"hostname": "c1", "conductor_group": %q, "alive": %t, "updated_at": %q}]}`,
							tt.group, tt.alive, time.Now().Add(tt.ahead).UTC().Format(time.RFC3339)),
					}
				}
				report := s.run(t)
				want(t, report, "conductors", tt.result, "c1")
				want(t, report, "clocks", tt.clocks)
			})
		})
	}
}

func TestDoctor_clockOfThisMachine(t *testing.T) {
	t.Parallel()
	s := newSite()
	s.options.Site.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
		resp, err := s.RoundTrip(r)
		if err == nil {
			resp.Header.Set("Date", time.Now().Add(-10*time.Minute).UTC().Format(http.TimeFormat))
		}
		return resp, err
	})
	want(t, s.run(t), "clocks", doctor.Warning, "behind that of this machine", "NTP")
}

// Two services answer by turns, and their clocks differ.
func TestDoctor_clocksOfSeveralServices(t *testing.T) {
	t.Parallel()
	s := newSite()
	var asked atomic.Int32
	s.options.Site.Transport = ironictest.Transport(func(r *http.Request) (*http.Response, error) {
		resp, err := s.RoundTrip(r)
		if err == nil {
			ahead := time.Duration(asked.Add(1)%2) * 90 * time.Second
			resp.Header.Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		}
		return resp, err
	})
	want(t, s.run(t), "clocks", doctor.Warning, "answers of the API differ by 1m", "NTP")
}

// Whoever may deploy chooses what stands in image_source. Only servers that the user names are asked, and no server that these name.
func TestDoctor_asksNoServerOfOthers(t *testing.T) {
	t.Parallel()
	s := newSite()
	var asked []string
	status := http.StatusForbidden
	s.images = func(r *http.Request) (*http.Response, error) {
		asked = append(asked, r.Method+" "+r.URL.String())
		if r.URL.Host == "dead.test" {
			return nil, syscall.ECONNREFUSED
		}
		resp := answer(r, status, "")
		resp.Header.Set("Location", "http://10.0.0.1/internal/api?action=reboot")
		return resp, nil
	}
	for i, image := range []string{
		"http://images.test/a.raw", "http://user:hidden-in-url@images.test/b.raw?sig=hidden-signature", "http://10.0.0.1/api?action=reboot",
	} {
		s.ironic.Set(fmt.Sprintf("node-%03d", i), "instance_info", map[string]any{"image_source": image, "boot_iso": image})
	}
	report := s.run(t)
	want(t, report, "image server", doctor.Unknown, "Machines run images of 2 servers. None was asked", "--image-url URL")
	if named := of(report, "image server")[0].Details; !slices.Equal(named, []string{"http://10.0.0.1", "http://images.test"}) {
		t.Errorf("it names %q", named)
	}
	if len(asked) > 0 {
		t.Errorf("it asked %q", asked)
	}
	s.options.Image = "http://user:hidden-in-url@images.test/b.raw?sig=hidden-signature#hidden-part"
	want(t, s.run(t), "image server", doctor.Warning, "http://images.test answers to the URL of the image with 403")
	status = http.StatusFound
	want(t, s.run(t), "image server", doctor.OK, "http://images.test answers here, and redirects to http://10.0.0.1, which was not asked")
	if !slices.Equal(asked, []string{"HEAD http://images.test/b.raw", "HEAD http://images.test/b.raw"}) {
		t.Errorf("it asked %q", asked)
	}
	s.options.Image = "http://dead.test/c.raw"
	want(t, s.run(t), "image server", doctor.Warning, "http://dead.test does not answer here: connection refused", "Ironic's conductors")
}
