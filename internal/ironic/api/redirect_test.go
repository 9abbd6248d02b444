package api_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/rest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// elsewhere is a server that must not be reached, and one that redirects every request to it.
func elsewhere(t *testing.T) (address string, redirecting http.Handler) {
	t.Helper()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s reached another server, with the headers %v", r.Method, r.URL, r.Header)
	}))
	t.Cleanup(other.Close)
	return other.URL, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.Replace(other.URL, "//", "//proxy:"+wrongPassword+"@", 1)+r.URL.Path+"?token="+rightSecret,
			http.StatusPermanentRedirect)
	})
}

// wantRedirect fails the test unless an error refuses a redirect, says what is expected, and has no secret.
func wantRedirect(t *testing.T, err error, says ...string) {
	t.Helper()
	var redirect *rest.RedirectError
	if !errors.As(err, &redirect) {
		t.Fatalf("%v, want a RedirectError", err)
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
	for _, secret := range []string{rightPassword, wrongPassword, rightSecret} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%v has the secret %s", err, secret)
		}
	}
}

// A proxy redirects from http to https, or the endpoint has moved: at the first request, or only for some.
func TestRedirect_noRequestGoesElsewhere(t *testing.T) {
	t.Parallel()
	address, redirecting := elsewhere(t)
	fake := fleet(1)
	const id = "node-000"
	var patch ironic.Patch
	patch.Set("/driver_info/redfish_password", rightPassword)
	for name, do := range map[string]func(c *ironic.Client) error{
		"PATCH":  func(c *ironic.Client) error { _, err := c.PatchNode(t.Context(), id, patch); return err },
		"DELETE": func(c *ironic.Client) error { return c.DeleteNode(t.Context(), id) },
		"POST":   func(c *ironic.Client) error { return c.AttachVIF(t.Context(), id, "vif", "") },
		"PUT":    func(c *ironic.Client) error { return c.ChangePowerState(t.Context(), id, "rebooting", 0) },
		"GET":    func(c *ironic.Client) error { _, err := c.Node(t.Context(), id); return err },
		"list":   func(c *ironic.Client) error { _, err := c.ShortNodes(t.Context()); return err },
	} {
		for _, moved := range []string{"/v1/nodes", "/"} {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Path, moved) {
					redirecting.ServeHTTP(w, r)
					return
				}
				fake.ServeHTTP(w, r)
			}))
			client := ironic.New(api.Config{
				Endpoint: s.URL, Auth: api.AuthHTTPBasic, Username: "operator", Password: rightPassword,
				APITimeout: time.Hour,
			}, ironic.Polls{})
			t.Log(name)
			wantRedirect(t, do(client), "308 Permanent Redirect", "set endpoint (METAL_ENDPOINT) to "+address)
			s.Close()
		}
	}
	node := nodeOf(t, fake, id)
	if node.Raw["driver_info"].(map[string]any)["redfish_password"] != nil {
		t.Error("the password was written")
	}
}
