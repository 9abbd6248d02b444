package failure_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

// An answer that a proxy or a gateway has given in the place of Ironic or Keystone names it, and the URL that was asked for: it is no
// missing right, and the endpoint may be right.
func TestExplain_answersOfProxiesAndGateways(t *testing.T) {
	t.Parallel()
	const plain, secret = "http://ironic.test:6385", "https://ironic.test:6385"
	page := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	denied := page(403, "<html><head><title>Access Denied</title></head></html>")
	const (
		proxy   = "the proxy http://proxy.test:3128"
		noProxy = "If ironic.test is reached without it, add ironic.test to NO_PROXY"
		check   = "Check endpoint"
		right   = "lack the right"
	)
	for name, tc := range map[string]struct {
		endpoint string
		direct   bool // the server is a gateway, and no proxy is configured
		keystone bool
		server   http.HandlerFunc
		want     []string
		unlike   []string
	}{
		"403 page of a proxy": {
			endpoint: plain, server: denied,
			want:   []string{"Ironic at " + plain + "/v1/ through " + proxy + ": a web page, not the API: Access Denied (403", noProxy},
			unlike: []string{right, check},
		},
		"403 page of a gateway": {
			endpoint: plain, direct: true, server: denied,
			want:   []string{"/v1/: a web page", "The gateway or proxy at " + plain + " refuses the request, not Ironic"},
			unlike: []string{right, "NO_PROXY"},
		},
		"407": {
			endpoint: plain, server: page(407, "<html>"),
			want:   []string{"407 Proxy", noProxy, "credentials"},
			unlike: []string{check},
		},
		"502": {
			endpoint: plain, server: page(502, "<html>"),
			want:   []string{"502 Bad", noProxy},
			unlike: []string{check},
		},
		"503": {
			endpoint: plain, server: page(503, ""),
			want:   []string{"503 Service", noProxy},
			unlike: []string{check},
		},
		"504": {
			endpoint: plain, server: page(504, "no route"),
			want:   []string{"no route (504", noProxy},
			unlike: []string{check},
		},
		"504 of a gateway": {
			endpoint: plain, direct: true, server: page(504, "<html>"),
			want:   []string{"The gateway or proxy at " + plain + " answered 504 in place of Ironic", "proxy_read_timeout", "api_timeout"},
			unlike: []string{check},
		},
		"a login page of a proxy": {
			endpoint: plain, server: page(200, "<html>"),
			want: []string{plain + "/v1/ through the proxy http://proxy.test:3128 is not JSON", noProxy},
		},
		"a refused tunnel": {
			endpoint: secret, server: denied,
			want:   []string{"Ironic at " + secret + "/v1/: through the proxy http://proxy.test:3128: Forbidden", noProxy},
			unlike: []string{check, right},
		},
		"a tunnel without credentials": {
			endpoint: secret, server: page(407, ""),
			want: []string{"through the proxy http://proxy.test:3128: Proxy Authentication Required", noProxy},
		},
		"no proxy there": {
			endpoint: plain,
			want:     []string{"through the proxy http://proxy.test:3128: ", "connection refused", noProxy},
			unlike:   []string{"Is Ironic running"},
		},
		"empty": {
			endpoint: plain, direct: true, server: page(200, ""),
			want:   []string{"the answer to GET " + plain + "/v1/ is empty", "gateway"},
			unlike: []string{"running there"},
		},
		"cut off": {
			endpoint: plain, direct: true, server: page(200, `{"version": {`),
			want: []string{"the answer to GET " + plain + "/v1/ is cut off", "gateway"},
		},
		"a web site": {
			endpoint: plain, direct: true, server: page(200, "<html>"),
			want: []string{"the answer to GET " + plain + "/v1/ is not JSON", check},
		},
		"403 page for Keystone": {
			endpoint: plain, keystone: true, server: denied, unlike: []string{right, "OS_AUTH_URL"},
			want: []string{"Keystone at " + plain + "/v3 through " + proxy + ": a web page, not the API: Access Denied (403", noProxy},
		},
		"504 of Keystone's gateway": {
			endpoint: plain, direct: true, keystone: true, server: page(504, "<html>"),
			want:   []string{"The gateway or proxy at " + plain + " answered 504 in place of Keystone", "OS_AUTH_URL"},
			unlike: []string{check},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) {
				u, err := url.Parse("http://user:hunter2@proxy.test:3128")
				if err != nil {
					t.Fatal(err)
				}
				transport := &http.Transport{Proxy: http.ProxyURL(u), DialContext: answering(tc.server)}
				if tc.direct {
					transport.Proxy = nil
				}
				defer transport.CloseIdleConnections()
				cfg := api.Config{Endpoint: tc.endpoint, Auth: api.AuthNone, Transport: transport, RequestTimeout: time.Minute}
				if tc.keystone {
					cfg.Auth, cfg.Environ = api.AuthKeystone, []string{"OS_AUTH_URL=" + plain, "OS_USERNAME=u", "OS_PASSWORD=p"}
				}
				_, err = ironic.New(cfg, ironic.Polls{}).Node(t.Context(), "x")
				_, detail := failure.Explain("read node x", err)
				for _, text := range tc.want {
					if !strings.Contains(detail, text) {
						t.Errorf("%q does not say %q", detail, text)
					}
				}
				for _, text := range append(tc.unlike, "hunter2", "user:") {
					if strings.Contains(detail, text) {
						t.Errorf("%q says %q", detail, text)
					}
				}
			})
		})
	}
}

// answering returns connections to a server in this process; nil: one that refuses them.
func answering(server http.HandlerFunc) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		if server == nil {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}
		ours, theirs := net.Pipe()
		go func() {
			defer func() { _ = theirs.Close() }()
			request, err := http.ReadRequest(bufio.NewReader(theirs))
			if err != nil {
				return
			}
			recorder := httptest.NewRecorder()
			server.ServeHTTP(recorder, request)
			answer := recorder.Result()
			answer.ContentLength, answer.Close = int64(recorder.Body.Len()), true
			_ = answer.Write(theirs) // the client may be gone
		}()
		return ours, nil
	}
}
