package ironic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Secrets of the tests; they must occur in no error.
const (
	rightPassword = "right-password-7Q"
	wrongPassword = "wrong-password-8K"
	rightSecret   = "application-secret-5Z"
)

// keystone is an identity service with one user, one application credential and one region, and an Ironic that accepts
// only its tokens.
type keystone struct {
	url    string // of the identity API
	ironic *fakeironic.Server

	mu     sync.Mutex
	token  string // the only one that is valid
	issued int
	closed bool // Keystone issues no more tokens
}

// newKeystone starts both.
func newKeystone(t *testing.T) *keystone {
	t.Helper()
	k := &keystone{ironic: fleet(2)}
	k.ironic.Reject = func(r *http.Request) *fakeironic.Rejection {
		k.mu.Lock()
		defer k.mu.Unlock()
		if r.Header.Get("X-Auth-Token") == k.token || r.URL.Path == "/v1/" {
			return nil
		}
		return &fakeironic.Rejection{Status: http.StatusUnauthorized, Body: `{"error": {"code": 401, "message": "The request you have made requires authentication."}}`}
	}
	metal := httptest.NewServer(k.ironic)
	t.Cleanup(metal.Close)
	identity := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { k.identify(w, r, metal.URL) }))
	t.Cleanup(identity.Close)
	k.url = identity.URL + "/v3"
	return k
}

// expire makes the token invalid that was issued last.
func (k *keystone) expire() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.token = "none"
}

func (k *keystone) identify(w http.ResponseWriter, r *http.Request, metal string) {
	if r.Method != http.MethodPost || r.URL.Path != "/v3/auth/tokens" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	var body struct {
		Auth struct {
			Identity struct {
				Password struct {
					User struct{ Name, Password string } `json:"user"`
				} `json:"password"`
				Credential struct{ ID, Secret string } `json:"application_credential"`
			} `json:"identity"`
		} `json:"auth"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body) // what does not parse has no credentials
	user, credential := body.Auth.Identity.Password.User, body.Auth.Identity.Credential
	byPassword := user.Name == "operator" && user.Password == rightPassword
	if k.closed || !byPassword && (credential.ID != "app-1" || credential.Secret != rightSecret) {
		w.WriteHeader(http.StatusUnauthorized) // and it repeats what it should not
		_, _ = fmt.Fprintf(w, `{"error": {"code": 401, "title": "Unauthorized", "message": "Could not authenticate with %s%s.\nmore"}}`, user.Password, credential.Secret)
		return
	}
	k.mu.Lock()
	k.issued++
	k.token = fmt.Sprintf("secret-token-%d", k.issued)
	w.Header().Set("X-Subject-Token", k.token)
	k.mu.Unlock()
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"token": map[string]any{
		"project":    map[string]any{"id": "project-1", "name": "metal"},
		"expires_at": time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano),
		"catalog": []any{map[string]any{"type": "baremetal", "name": "ironic", "endpoints": []any{
			map[string]any{"interface": "public", "region": "RegionOne", "region_id": "RegionOne", "url": metal},
		}}},
	}})
}

// environment sets the variables that choose a cloud, and removes all others.
func environment(t *testing.T, variables map[string]string) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "OS_") {
			t.Setenv(name, "")
		}
	}
	for name, value := range variables {
		t.Setenv(name, value)
	}
}

func (k *keystone) variables(password string) map[string]string {
	return map[string]string{
		"OS_AUTH_URL": k.url, "OS_USERNAME": "operator", "OS_PASSWORD": password, "OS_PROJECT_NAME": "metal",
		"OS_USER_DOMAIN_NAME": "Default", "OS_PROJECT_DOMAIN_NAME": "Default", "OS_DOMAIN_NAME": "Default", "OS_REGION_NAME": "RegionOne",
	}
}

// useKeystone returns a client whose settings come from the environment, except for those that are configured.
func useKeystone(configure ...func(*ironic.Config)) *ironic.Client {
	cfg := ironic.Config{Auth: ironic.AuthKeystone}
	for _, c := range configure {
		c(&cfg)
	}
	return ironic.New(cfg)
}

func TestKeystone_variables(t *testing.T) {
	k := newKeystone(t)
	environment(t, k.variables(rightPassword))
	client := useKeystone()
	if client.Project() != "" {
		t.Error("the project is known before the first request")
	}
	if _, err := client.Node(t.Context(), "node-000"); err != nil || client.Project() != "project-1" {
		t.Fatalf("project %q, %v", client.Project(), err)
	}
	last := k.ironic.Requests()[len(k.ironic.Requests())-1]
	if last.Path != "/v1/nodes/node-000" || last.Status != http.StatusOK {
		t.Errorf("the last request was %+v", last)
	}
}

func TestKeystone_cloudsYAML(t *testing.T) {
	k := newKeystone(t)
	environment(t, map[string]string{"OS_CLIENT_CONFIG_FILE": file(t, "clouds.yaml", fmt.Sprintf(`
clouds:
  site-a:
    auth_type: v3applicationcredential
    region_name: RegionOne
    auth:
      auth_url: %s
      application_credential_id: app-1
      application_credential_secret: %s
`, k.url, rightSecret))})
	client := useKeystone(func(cfg *ironic.Config) { cfg.Cloud = "site-a" })
	if _, err := client.Node(t.Context(), "node-000"); err != nil {
		t.Error(err)
	}
	_, err := useKeystone(func(cfg *ironic.Config) { cfg.Cloud = "site-b" }).Node(t.Context(), "node-000")
	wantAuthError(t, err, "site-b")
}

func TestKeystone_unknownRegion(t *testing.T) {
	k := newKeystone(t)
	environment(t, k.variables(rightPassword))
	_, err := useKeystone(func(cfg *ironic.Config) { cfg.Region = "RegionTwo" }).Node(t.Context(), "node-000")
	wantAuthError(t, err, "endpoint")
}

func TestKeystone_endpointBeatsCatalog(t *testing.T) {
	k := newKeystone(t)
	environment(t, k.variables(rightPassword))
	other := httptest.NewServer(k.ironic)
	t.Cleanup(other.Close)
	for _, region := range []string{"RegionOne", "RegionTwo"} { // the second has no endpoint in the catalog
		client := useKeystone(func(cfg *ironic.Config) { cfg.Endpoint, cfg.Region = other.URL+"/v1", region })
		if _, err := client.Node(t.Context(), "node-000"); err != nil {
			t.Errorf("%s: %v", region, err)
		}
	}
}

func TestKeystone_expiredToken(t *testing.T) {
	k := newKeystone(t)
	environment(t, k.variables(rightPassword))
	client := useKeystone()
	if _, err := client.Node(t.Context(), "node-000"); err != nil {
		t.Fatal(err)
	}
	k.expire()
	if _, err := client.Node(t.Context(), "node-001"); err != nil || k.issued != 2 {
		t.Errorf("after expiry: %v, %d tokens issued", err, k.issued)
	}
	k.expire()
	if _, err := client.Node(t.Context(), "node-777"); !ironic.IsNotFound(err) {
		t.Errorf("a missing node after expiry: %v, want not found", err)
	}
}

func TestKeystone_wrongPassword(t *testing.T) {
	k := newKeystone(t)
	environment(t, k.variables(wrongPassword))
	_, err := useKeystone().Node(t.Context(), "node-000")
	wantAuthError(t, err, "Could not authenticate with ******")
	if strings.Contains(err.Error(), "more") {
		t.Errorf("%q: want the first line", err)
	}
}

func TestKeystone_tokenIsNotRenewed(t *testing.T) {
	k := newKeystone(t)
	environment(t, k.variables(rightPassword))
	client := useKeystone()
	if _, err := client.Node(t.Context(), "node-000"); err != nil {
		t.Fatal(err)
	}
	k.expire()
	k.closed = true
	_, err := client.Node(t.Context(), "node-000")
	wantAuthError(t, err, "authenticat")
}

func TestKeystone_noVariables(t *testing.T) {
	environment(t, nil)
	_, err := useKeystone().Node(t.Context(), "node-000")
	wantAuthError(t, err, "OS_AUTH_URL")
}

func TestKeystone_wrongAuthURL(t *testing.T) {
	k := newKeystone(t)
	variables := k.variables(rightPassword)
	variables["OS_AUTH_URL"] = strings.TrimSuffix(k.url, "v3") + "identity/v3"
	environment(t, variables)
	_, err := useKeystone().Node(t.Context(), "node-000")
	wantAuthError(t, err, "404")
}

// Keystone is asked for a token at another address, and the catalog names an Ironic that has moved.
func TestRedirect_ofKeystoneAndItsCatalog(t *testing.T) {
	k := newKeystone(t)
	address, redirecting := elsewhere(t)
	moved := httptest.NewServer(redirecting)
	t.Cleanup(moved.Close)
	variables := k.variables(rightPassword)
	variables["OS_AUTH_URL"] = moved.URL + "/v3"
	environment(t, variables)
	_, err := useKeystone().Node(t.Context(), "node-000")
	wantAuthError(t, err, "set OS_AUTH_URL (auth_url in clouds.yaml) to "+address+"/v3")
	wantRedirect(t, err)
	environment(t, k.variables(rightPassword))
	_, err = useKeystone(func(cfg *ironic.Config) { cfg.Endpoint = moved.URL }).Node(t.Context(), "node-000")
	wantRedirect(t, err, "set endpoint (METAL_ENDPOINT) to "+address)
}

// wantAuthError fails the test unless an error is about authentication, says what is expected, and has no secret.
func wantAuthError(t *testing.T, err error, says string) {
	t.Helper()
	var auth *ironic.AuthError
	if !errors.As(err, &auth) || ironic.IsNotFound(err) {
		t.Fatalf("%v, want an AuthError", err)
	}
	if !strings.Contains(err.Error(), says) {
		t.Errorf("%v, want %q", err, says)
	}
	for _, secret := range []string{rightPassword, wrongPassword, rightSecret, "secret-token"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%v has the secret %s", err, secret)
		}
	}
}
