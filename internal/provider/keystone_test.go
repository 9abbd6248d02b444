package provider_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakekeystone"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// wrongPassword is in nothing but requests.
const wrongPassword = "wrong-password-8K"

// startKeystone starts a Keystone in front of a fake Ironic that accepts only its tokens, each for a few requests. It repeats the
// credentials that it refuses.
func startKeystone(t *testing.T) (s *site.Site, url string) {
	t.Helper()
	keystone := fakekeystone.NewSite("")
	keystone.RepeatsSecrets = true
	var used atomic.Int32
	s = site.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		if r.URL.Path == "/v1/" || r.Header.Get("User-Agent") == "Go-http-client/1.1" { // the test's own
			return nil
		}
		if used.Add(1)%5 == 0 {
			keystone.RevokeTokens()
		}
		if _, valid := keystone.Identify(r.Header.Get("X-Auth-Token")); valid {
			return nil
		}
		return &fakeironic.Rejection{Status: http.StatusUnauthorized, Body: fmt.Sprintf(`{"error_message": "token %s has expired"}`,
			r.Header.Get("X-Auth-Token"))}
	}})
	for i := range keystone.Catalog[0].Endpoints {
		keystone.Catalog[0].Endpoints[i].URL = s.Endpoint
	}
	server := httptest.NewServer(keystone)
	t.Cleanup(server.Close)
	return s, server.URL + "/v3"
}

// What Keystone is given, and what it gives, is in no file, output or log, however much is logged.
func TestFakeProvider_keystoneSecretsStaySecret(t *testing.T) {
	t.Parallel()
	byPassword := func(password string) map[string]string {
		return map[string]string{
			"OS_USERNAME": "a-admin", "OS_PASSWORD": password, "OS_PROJECT_NAME": "tenant-a", "OS_USER_DOMAIN_NAME": "Default",
			"OS_PROJECT_DOMAIN_NAME": "Default",
		}
	}
	const clouds = `clouds:
  site-a:
    auth_type: v3applicationcredential
    region_name: north
    auth:
      auth_url: %s
      application_credential_id: a-member-app-id
      application_credential_secret: ` + fakekeystone.Password + "\n"
	for name, tc := range map[string]struct {
		variables map[string]string
		refused   bool
	}{
		"a password": {byPassword(fakekeystone.Password), false},
		"an application credential": {map[string]string{
			"OS_APPLICATION_CREDENTIAL_ID":     "a-member-app-id",
			"OS_APPLICATION_CREDENTIAL_SECRET": fakekeystone.Password,
		}, false},
		"an application credential in clouds.yaml": {map[string]string{"OS_CLOUD": "site-a"}, false},
		"a password that is refused":               {byPassword(wrongPassword), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, keystone := startKeystone(t)
			w := acctest.NewWorkspace(t, host(s.Name("h")))
			for variable, value := range tc.variables {
				w.Setenv(variable, value)
			}
			if tc.variables["OS_CLOUD"] == "" {
				w.Setenv("OS_AUTH_URL", keystone)
				w.Setenv("OS_REGION_NAME", "north")
			} else {
				file := filepath.Join(t.TempDir(), "clouds.yaml")
				if err := os.WriteFile(file, fmt.Appendf(nil, clouds, keystone), 0o600); err != nil {
					t.Fatal(err)
				}
				w.Setenv("OS_CLIENT_CONFIG_FILE", file)
			}
			w.Setenv("TF_LOG", "TRACE")
			w.Setenv("TF_LOG_PATH", filepath.Join(w.Dir, "trace.log"))
			output, code := w.Run("apply", "-auto-approve")
			if (code != 0) != tc.refused {
				t.Fatalf("exit code %d:\n%s", code, output)
			}
			more, _ := w.Run("destroy", "-auto-approve")
			log, err := os.ReadFile(filepath.Join(w.Dir, "trace.log"))
			shows := "request to Ironic"
			if tc.refused {
				shows = "Could not authenticate" // what Keystone says
			}
			if err != nil || !strings.Contains(string(log), shows) {
				t.Fatalf("the log does not show what the provider does (%v), so it proves nothing", err)
			}
			for what, text := range map[string]string{"output": output + more, "state": w.State(), "log": string(log)} {
				for _, secret := range []string{fakekeystone.Password, wrongPassword, fakekeystone.TokenPrefix} {
					if at := strings.Index(text, secret); at >= 0 {
						t.Errorf("%s is in the %s: …%s", secret, what, text[max(0, at-200):min(len(text), at+100)])
					}
				}
			}
		})
	}
}
