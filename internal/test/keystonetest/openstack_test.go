package keystonetest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// Variables of tools/keystone-up.
const (
	identityVariable = "METAL_KEYSTONE_URL"
	briefVariable    = "METAL_KEYSTONE_BRIEF_URL"
	secureVariable   = "METAL_KEYSTONE_TLS_URL"
	ironicVariable   = "METAL_KEYSTONE_IRONIC"
	legacyVariable   = "METAL_KEYSTONE_IRONIC_LEGACY"
	dirVariable      = "METAL_KEYSTONE_DIR"
)

// password is the password of all users.
const password = "secret"

// openstack is a Keystone with an Ironic, seen by its administrator.
type openstack struct {
	*site.Site
	t *testing.T
}

// start returns the site with the Ironic that a variable names. It skips the test without one.
func start(t *testing.T, ironic string) *openstack {
	t.Helper()
	if os.Getenv(identityVariable) == "" {
		t.Skip("there is a Keystone in tools/test-keystone only")
	}
	return &openstack{site.StartAt(t, os.Getenv(ironic), tokenOf(t, "system-admin")), t}
}

// id returns the ID of a user or project.
func id(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(file("ids.json"))
	if err != nil {
		t.Fatal(err)
	}
	var ids map[string]string
	if err := json.Unmarshal(text, &ids); err != nil || ids[name] == "" {
		t.Fatalf("ids.json has no %s: %v", name, err)
	}
	return ids[name]
}

// file is the path of a file that tools/keystone-up has written.
func file(name string) string { return filepath.Join(os.Getenv(dirVariable), name) }

// tenant returns the project of a user, such as "tenant-a" for "a-member"; "" if the role is one of the whole system.
func tenant(user string) string {
	name, _, _ := strings.Cut(user, "-")
	if name == "system" {
		return ""
	}
	return "tenant-" + name
}

// openrc returns the variables that the installation guide of OpenStack puts into an openrc file, and the region.
func openrc(user string) map[string]string {
	rc := map[string]string{
		"OS_AUTH_URL": os.Getenv(identityVariable), "OS_IDENTITY_API_VERSION": "3", "OS_REGION_NAME": "north",
		"OS_USERNAME": user, "OS_PASSWORD": password, "OS_USER_DOMAIN_NAME": "Default",
	}
	if project := tenant(user); project != "" {
		rc["OS_PROJECT_NAME"], rc["OS_PROJECT_DOMAIN_NAME"] = project, "Default"
	} else {
		rc["OS_SYSTEM_SCOPE"] = "all"
	}
	return rc
}

// workspace returns a workspace of a user with a configuration.
func workspace(t *testing.T, rc map[string]string, config string) *acctest.Workspace {
	t.Helper()
	w := acctest.NewWorkspace(t, config)
	w.Patience = patience
	for name, value := range rc {
		w.Setenv(name, value)
	}
	return w
}

// tokenOf returns a token of a user.
func tokenOf(t *testing.T, user string) string {
	t.Helper()
	scope := map[string]any{"system": map[string]any{"all": true}}
	if project := tenant(user); project != "" {
		scope = map[string]any{"project": map[string]any{"name": project, "domain": map[string]any{"id": "default"}}}
	}
	resp, _ := request(t, http.MethodPost, os.Getenv(identityVariable)+"/auth/tokens", nil, map[string]any{"auth": map[string]any{
		"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{"user": map[string]any{
			"name": user, "domain": map[string]any{"id": "default"}, "password": password,
		}}},
		"scope": scope,
	}})
	return resp.Header.Get("X-Subject-Token")
}

// asKeystone sends a request to Keystone as the administrator, and returns the answer.
func asKeystone(t *testing.T, method, path string, body any) map[string]any {
	t.Helper()
	_, text := request(t, method, os.Getenv(identityVariable)+"/"+path, http.Header{"X-Auth-Token": {tokenOf(t, "system-admin")}}, body)
	var answer map[string]any
	_ = json.Unmarshal(text, &answer) // some answers have no body
	return answer
}

// request sends a request, and fails the test unless it succeeds.
func request(t *testing.T, method, url string, header http.Header, body any) (resp *http.Response, answer []byte) {
	t.Helper()
	resp, answer = send(t, method, url, header, body)
	if resp.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, url, resp.StatusCode, answer)
	}
	return resp, answer
}

// send sends a request and returns the answer, whatever it is.
func send(t *testing.T, method, url string, header http.Header, body any) (resp *http.Response, answer []byte) {
	t.Helper()
	var content []byte // Keystone refuses the body null
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	req, err := http.NewRequest(method, url, bytes.NewReader(content)) //nolint:noctx // ends with the test
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for name, values := range header {
		req.Header[name] = values
	}
	resp, err = http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, answer
}

// provider is a provider block for tests: where and who is in the environment.
func provider(settings ...string) string {
	return fmt.Sprintf("provider \"metal\" {\n  poll_interval = \"500ms\"\n  %s\n}\n", strings.Join(settings, "\n  "))
}

// node adds an available node of tenant-a, which tenant-b may use.
func (s *openstack) node(name string) (uuid string) {
	s.t.Helper()
	return site.AddNode(s.t, s.Site, name, map[string]any{"owner": id(s.t, "tenant-a"), "lessee": id(s.t, "tenant-b")})
}
