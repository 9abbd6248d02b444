package provider_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
)

// Secrets of the tests, in nothing but requests.
const (
	keystonePassword = "right-password-7Q"
	keystoneSecret   = "application-secret-5Z"
	wrongPassword    = "wrong-password-8K"
	tokenPrefix      = "issued-token-"
)

// startKeystone starts a Keystone in front of a fake Ironic that accepts only its tokens, each for a few requests. It repeats the credentials
// that it refuses.
func startKeystone(t *testing.T) (s *acctest.Site, url string) {
	t.Helper()
	var mu sync.Mutex
	issued, used := 0, 0
	s = acctest.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path == "/v1/" || r.Header.Get("User-Agent") == "Go-http-client/1.1" { // the test's own
			return nil
		}
		if used++; r.Header.Get("X-Auth-Token") == fmt.Sprint(tokenPrefix, issued) && used <= 5 {
			return nil
		}
		return &fakeironic.Rejection{Status: http.StatusUnauthorized, Body: fmt.Sprintf(`{"error_message": "token %s has expired"}`, r.Header.Get("X-Auth-Token"))}
	}})
	keystone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Auth struct {
				Identity struct {
					Password struct {
						User struct{ Password string } `json:"user"`
					} `json:"password"`
					Credential struct{ Secret string } `json:"application_credential"`
				} `json:"identity"`
			} `json:"auth"`
		}
		_ = json.NewDecoder(r.Body).Decode(&asked) // what does not parse has no credentials
		given := asked.Auth.Identity.Password.User.Password + asked.Auth.Identity.Credential.Secret
		if given != keystonePassword && given != keystoneSecret {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprintf(w, `{"error": {"code": 401, "title": "Unauthorized", "message": "Could not authenticate with %s."}}`, given)
			return
		}
		mu.Lock()
		issued, used = issued+1, 0
		w.Header().Set("X-Subject-Token", fmt.Sprint(tokenPrefix, issued))
		mu.Unlock()
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{"token": map[string]any{
			"expires_at": "2100-01-01T00:00:00.000000Z",
			"catalog": []any{map[string]any{"type": "baremetal", "name": "ironic", "endpoints": []any{
				map[string]any{"id": "1", "interface": "public", "region": "north", "region_id": "north", "url": s.Endpoint},
			}}},
		}})
	}))
	t.Cleanup(keystone.Close)
	return s, keystone.URL + "/v3"
}

// What Keystone is given, and what it gives, is in no file, output or log, however much is logged.
func TestFakeProvider_keystoneSecretsStaySecret(t *testing.T) {
	t.Parallel()
	byPassword := func(password string) map[string]string {
		return map[string]string{
			"OS_USERNAME": "operator", "OS_PASSWORD": password, "OS_PROJECT_NAME": "metal", "OS_USER_DOMAIN_NAME": "Default", "OS_PROJECT_DOMAIN_NAME": "Default",
			"OS_DOMAIN_NAME": "Default",
		}
	}
	const clouds = `clouds:
  site-a:
    auth_type: v3applicationcredential
    region_name: north
    auth:
      auth_url: %s
      application_credential_id: app-1
      application_credential_secret: ` + keystoneSecret + "\n"
	for name, tc := range map[string]struct {
		variables map[string]string
		refused   bool
	}{
		"a password":                               {byPassword(keystonePassword), false},
		"an application credential":                {map[string]string{"OS_APPLICATION_CREDENTIAL_ID": "app-1", "OS_APPLICATION_CREDENTIAL_SECRET": keystoneSecret}, false},
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
				for _, secret := range []string{keystonePassword, keystoneSecret, wrongPassword, tokenPrefix} {
					if at := strings.Index(text, secret); at >= 0 {
						t.Errorf("%s is in the %s: …%s", secret, what, text[max(0, at-200):min(len(text), at+100)])
					}
				}
			}
		})
	}
}
