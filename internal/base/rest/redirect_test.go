package rest_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
)

func TestRedirect_isRefusedAndExplained(t *testing.T) {
	t.Parallel()
	reached := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	t.Cleanup(other.Close)
	for name, tt := range map[string]struct {
		path, to string // to: after the address of the other server
		says     string
	}{
		"another server":     {"/v1/nodes/web?x=1", "/v1/nodes/web?x=1", "set endpoint to " + other.URL},
		"another path":       {"/v1/nodes", "/baremetal/v1/nodes", "set endpoint to " + other.URL + "/baremetal"},
		"slash at the end":   {"/v1/", "/v1", "set endpoint to " + other.URL},
		"a login page":       {"/v1/nodes", "/login?next=%2Fv1&token=hunter2", "Check endpoint, and the proxies"},
		"below another path": {"/metal/v1/nodes", "/v1/nodes", "set endpoint to " + other.URL},
	} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodDelete, http.MethodPost} {
				address := strings.Replace(other.URL, "http://", "http://user:hunter2@", 1) + tt.to
				s := httptest.NewServer(http.RedirectHandler(address, status))
				req, err := http.NewRequestWithContext(t.Context(), method, s.URL+tt.path, strings.NewReader("secret"))
				if err != nil {
					t.Fatal(err)
				}
				resp, err := rest.NewClient(nil, time.Minute).Do(req)
				if err == nil {
					resp.Body.Close() //nolint:errcheck // the test fails
				}
				s.Close()
				var redirect *rest.RedirectError
				if !errors.As(err, &redirect) {
					t.Fatalf("%s: %s %d: %v", name, method, status, err)
				}
				redirect.Setting, redirect.Root = "endpoint", "/v1"
				if text := redirect.Error(); !strings.Contains(text, tt.says) || strings.Contains(text, "hunter2") ||
					!strings.HasPrefix(text, method+" "+s.URL) {
					t.Errorf("%s: %s %d: %s", name, method, status, text)
				}
			}
		}
	}
	if reached > 0 {
		t.Errorf("the other server was reached %d times", reached)
	}
}
