package api_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/fault"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

func TestClient_newMakesNoRequest(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	client := newClient(fake, func(cfg *api.Config) { cfg.APITimeout = time.Hour })
	if !client.Known() || len(fake.Requests()) != 0 {
		t.Errorf("requests: %v", fake.Requests())
	}
}

func TestClient_highestCommonMicroversion(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		server string
		bound  api.Microversion
		want   string
	}{
		{"1.82", 0, "1.82"},
		{"1.96", 0, "1.96"},
		{"1.115", 0, "1.115"},
		{"1.140", 0, "1.115"}, // newer than what the provider is tested with
		{"1.115", 90, "1.90"},
		{"1.82", 115, "1.82"},
		{"1.140", 130, "1.115"},
	} {
		t.Run(tc.server+" bound by "+tc.bound.String(), func(t *testing.T) {
			t.Parallel()
			fake := fleet(1)
			fake.MaxMicroversion = tc.server
			sent := ""
			fake.Reject = func(r *http.Request) *fakeironic.Rejection {
				sent = r.Header.Get("X-OpenStack-Ironic-API-Version")
				return nil
			}
			client := newClient(fake, func(cfg *api.Config) { cfg.Microversion = tc.bound })
			if version, err := client.Microversion(t.Context()); err != nil || version.String() != tc.want {
				t.Errorf("Microversion = %s, %v, want %s", version, err, tc.want)
			}
			if _, err := client.Node(t.Context(), "node-000"); err != nil || sent != tc.want {
				t.Errorf("requests are sent with %q, want %s (%v)", sent, tc.want, err)
			}
			if n := count(fake, http.MethodGet, "/v1") - count(fake, http.MethodGet, "/v1/nodes"); n != 1 {
				t.Errorf("%d negotiations, want 1", n)
			}
		})
	}
}

func TestClient_missingFeature(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		server string
		bound  api.Microversion
		knows  api.Microversion
	}{
		"by an old server":  {"1.82", 0, 82},
		"by our own choice": {"1.115", 82, 115},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := newClient(&fakeironic.Server{MaxMicroversion: tc.server}, func(cfg *api.Config) { cfg.Microversion = tc.bound })
			if err := client.Requires(t.Context(), 80, "an old feature"); err != nil {
				t.Errorf("an old feature: %v", err)
			}
			err := client.Requires(t.Context(), 95, "disable_power_off")
			version := fault.AboutOf[api.TooOld](err, api.KindVersion)
			if version.Needs != 95 || version.Have != 82 {
				t.Fatalf("Requires = %v, want KindVersion", err)
			}
			if version.Feature != "disable_power_off" || version.Server != tc.knows {
				t.Errorf("%+v, want a server that knows %s", version, tc.knows)
			}
		})
	}
}

func TestMicroversion_parse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]api.Microversion{"1.82": 82, "1.1": 1, "1.115": 115} {
		if got, err := api.ParseMicroversion(text); err != nil || got != want || got.String() != text {
			t.Errorf("ParseMicroversion(%q) = %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "1", "1.", "2.1", "1.0", "1.-3", "latest", "1.82.1", "v1.82"} {
		if got, err := api.ParseMicroversion(text); err == nil {
			t.Errorf("ParseMicroversion(%q) = %d, want an error", text, got)
		}
	}
}

func TestClient_endpointNotations(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{
		"http://ironic.test", "http://ironic.test/", "http://ironic.test/v1", "http://ironic.test/v1/", "http://ironic.test//",
	} {
		if _, err := newClient(fleet(1), func(cfg *api.Config) { cfg.Endpoint = endpoint }).Node(t.Context(), "node-000"); err != nil {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
	fake := fleet(1)
	for _, endpoint := range []string{"http://site.test/baremetal", "http://site.test/baremetal/", "http://site.test/baremetal/v1"} {
		client := newClient(nil, func(cfg *api.Config) {
			cfg.Endpoint = endpoint
			cfg.Transport = transport(func(r *http.Request) (*http.Response, error) {
				path, below := strings.CutPrefix(r.URL.Path, "/baremetal/")
				if !below {
					t.Errorf("a request for %s", r.URL)
				}
				r.URL.Path = "/" + path
				return fake.RoundTrip(r)
			})
		})
		if _, err := client.Node(t.Context(), "node-000"); err != nil {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

func TestClient_wrongEndpoint(t *testing.T) {
	t.Parallel()
	answer := func(status int, body string) transport {
		fake := &fakeironic.Server{Reject: func(*http.Request) *fakeironic.Rejection {
			return &fakeironic.Rejection{Status: status, Body: body}
		}}
		return fake.RoundTrip
	}
	for name, tc := range map[string]struct {
		transport transport
		says      string
	}{
		"no server": {
			func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }, "connection refused",
		},
		"another service":  {answer(404, ""), "404 Not Found"},
		"Ironic elsewhere": {answer(404, answerOf(404, "").Body), "404 Not Found"},
		"a web site": {
			answer(200, "<!DOCTYPE html><html><title>Welcome</title></html>"), "not JSON",
		},
		"a web site's error": {
			answer(500, "<html><head><title>Oh no</title></head></html>"), "a web page, not the API: Oh no",
		},
		"other JSON":        {answer(200, `{"hello": "world"}`), "contains no API version"},
		"other JSON's type": {answer(200, `[]`), "http://ironic.test/v1/"},
		"credentials asked": {answer(401, `{"error": {"message": "Authorization required", "code": 401}}`), "Authorization required"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				client := newClient(nil, func(cfg *api.Config) { cfg.Transport = tc.transport })
				_, err := client.Node(t.Context(), "node-000")
				if api.StageOf(err) != api.AtEndpoint || api.IsNotFound(err) {
					t.Fatalf("Node = %v, want a ConnectError at the endpoint", err)
				}
				if !strings.Contains(err.Error(), "http://ironic.test/v1/") || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("%v, want the endpoint and %q", err, tc.says)
				}
			})
		})
	}
}

func TestClient_unknownConfiguration(t *testing.T) {
	t.Parallel()
	fake := fleet(1)
	client := newClient(fake, func(cfg *api.Config) { cfg.Endpoint, cfg.Unknown = "", "endpoint" })
	_, err := client.Node(t.Context(), "node-000")
	if fault.AboutOf[string](err, rest.KindUnknownConfig) != "endpoint" || client.Known() {
		t.Fatalf("Node = %v, want KindUnknownConfig", err)
	}
	if len(fake.Requests()) != 0 {
		t.Errorf("requests: %v", fake.Requests())
	}
}

func TestClient_failedConnectionIsRepeated(t *testing.T) {
	t.Parallel()
	fake := fleet(1)
	fake.Reject = once(http.MethodGet, "/v1", &fakeironic.Rejection{Status: http.StatusNotFound})
	client := newClient(fake)
	if _, err := client.Node(t.Context(), "node-000"); err == nil {
		t.Fatal("the first use must fail")
	}
	if _, err := client.Node(t.Context(), "node-000"); err != nil {
		t.Errorf("the second: %v", err)
	}
}

func TestClient_apiTimeoutWaitsForConductor(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(1)
		start := time.Now()
		fake.Reject = func(r *http.Request) *fakeironic.Rejection {
			switch up := time.Since(start); {
			case up < 10*time.Minute:
				return &fakeironic.Rejection{Drop: true}
			case up < 20*time.Minute:
				return &fakeironic.Rejection{Status: http.StatusServiceUnavailable}
			case up < 30*time.Minute && r.URL.Path == "/v1/drivers":
				return &fakeironic.Rejection{Status: http.StatusOK, Body: `{"drivers": []}`}
			}
			return nil
		}
		client := newClient(fake, func(cfg *api.Config) { cfg.APITimeout = time.Hour })
		if _, err := client.Node(t.Context(), "node-000"); err != nil {
			t.Fatal(err)
		}
		wantNear(t, "waiting", time.Since(start), 30*time.Minute)
	})
}

func TestClient_apiTimeoutEnds(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := &fakeironic.Server{}
		fake.Reject = times(1000, http.MethodGet, "/v1/drivers", &fakeironic.Rejection{Status: http.StatusOK, Body: `{"drivers": []}`})
		told := 0
		client := newClient(fake, func(cfg *api.Config) { cfg.APITimeout, cfg.Silent = 10*time.Minute, func(string) { told++ } })
		start := time.Now()
		_, err := client.Node(t.Context(), "node-000")
		if told < 9 || told > 21 {
			t.Errorf("it was told %d times in ten minutes", told)
		}
		if err == nil || !strings.Contains(err.Error(), "no conductor is running") {
			t.Errorf("Node = %v, want what was missing", err)
		}
		wantNear(t, "giving up", time.Since(start), 10*time.Minute)
	})
}

func TestClient_httpBasic(t *testing.T) {
	t.Parallel()
	fake := fleet(1)
	fake.Username, fake.Password = "admin", "correct horse"
	basic := func(password string) *ironic.Client {
		return newClient(fake, func(cfg *api.Config) {
			cfg.Auth, cfg.Username, cfg.Password = api.AuthHTTPBasic, "admin", password
		})
	}
	if _, err := basic("correct horse").Node(t.Context(), "node-000"); err != nil {
		t.Error(err)
	}
	_, err := basic("battery staple").Node(t.Context(), "node-000")
	var status *api.StatusError
	if !errors.As(err, &status) || status.Status != http.StatusUnauthorized {
		t.Fatalf("Node = %v, want a 401", err)
	}
	if strings.Contains(err.Error(), "battery staple") {
		t.Errorf("%v has the password", err)
	}
}

func TestClient_passwordInEndpoint(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{Reject: func(*http.Request) *fakeironic.Rejection {
		return &fakeironic.Rejection{Status: http.StatusNotFound}
	}}
	client := newClient(fake, func(cfg *api.Config) { cfg.Endpoint = "http://admin:correcthorse@ironic.test" })
	_, err := client.Node(t.Context(), "node-000")
	if err == nil || strings.Contains(err.Error(), "correcthorse") {
		t.Errorf("%v has the password", err)
	}
}

// A caller that waits while another connects can be interrupted.
func TestClient_connectingCanBeInterrupted(t *testing.T) {
	t.Parallel()
	asked, answered := make(chan struct{}), make(chan struct{})
	fake := fleet(1)
	client := newClient(fake, func(cfg *api.Config) {
		cfg.Transport = transport(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/v1/" {
				close(asked)
				<-answered
			}
			return fake.RoundTrip(r)
		})
	})
	read := func(ctx context.Context) <-chan error {
		ended := make(chan error, 1)
		go func() {
			_, err := client.Node(ctx, "node-000")
			ended <- err
		}()
		return ended
	}
	first := read(t.Context())
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	select {
	case err := <-read(ctx):
		if !api.IsInterrupted(err) {
			t.Errorf("the error is %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("an interrupted caller waits until another has connected")
	}
	close(answered)
	if err := <-first; err != nil {
		t.Error(err)
	}
}

func TestClient_dotsAreNoNames(t *testing.T) {
	t.Parallel()
	fake := fleet(1)
	client := newClient(fake)
	for _, name := range []string{".", ".."} {
		if _, err := client.FindNode(t.Context(), name); !api.IsNotFound(err) || strings.Contains(err.Error(), "http") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if n := count(fake, http.MethodGet, "/v1/nodes"); n > 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestClient_tooOldForListsAndPolls(t *testing.T) {
	t.Parallel()
	fake := fleet(1)
	for version, tt := range map[api.Microversion]struct{ list, poll string }{
		20: {"listing nodes needs API 1.43 of Ironic, but 1.20 is in use", "needs API 1.46"},
		43: {"", "waiting for a node needs API 1.46"}, 46: {},
	} {
		client := newClient(fake, func(cfg *api.Config) { cfg.Microversion = version })
		_, err := client.ListNodes(t.Context(), ironic.NodeFilter{})
		_, polled := client.ShortNodes(t.Context())
		for _, problem := range []struct {
			want string
			got  error
		}{{tt.list, err}, {tt.poll, polled}} {
			if (problem.want == "") != (problem.got == nil) || problem.got != nil && !strings.Contains(problem.got.Error(), problem.want) {
				t.Errorf("%s: %v, want %q", version, problem.got, problem.want)
			}
		}
	}
}
