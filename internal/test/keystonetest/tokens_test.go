package keystonetest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// These tests run before all others: beside them, a token of seconds can end before it is used.
func TestKeystone_tokens(t *testing.T) {
	for name, test := range map[string]func(t *testing.T){
		"last seconds": outlastTokens, "Keystone stops": stopKeystone, "a role is revoked": revokeRole,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// slow returns the Ironic that takes more than 15 seconds for a deployment, a machine of tenant-a, and the configuration of a deployment
// of it by a-member. It is the Ironic of the region "legacy".
func slow(t *testing.T) (s *openstack, machine, config string) {
	t.Helper()
	s = start(t, legacyVariable)
	machine = s.node("slow")
	return s, machine, provider() + acctest.Deployment(acctest.Quoted(machine), acctest.Image("one"))
}

// A deployment outlasts its tokens.
func outlastTokens(t *testing.T) {
	t.Helper()
	s, machine, config := slow(t)
	rc := openrc("a-member")
	rc["OS_AUTH_URL"], rc["OS_REGION_NAME"] = os.Getenv(briefVariable), "legacy"
	w := workspace(t, rc, config)
	defer w.Must("destroy", "-auto-approve")
	w.Must(acctest.Apply()...)
	if state := s.Node(machine)["provision_state"]; state != "active" {
		t.Errorf("the machine is %v", state)
	}
	acctest.NoChanges(t, w)
}

// Keystone stops in the middle of a deployment, and the token ends. When Keystone is back, the run goes on.
func stopKeystone(t *testing.T) {
	t.Helper()
	s, machine, config := slow(t)
	identity, stopped := fragile(t, os.Getenv(briefVariable))
	rc := openrc("a-member")
	rc["OS_AUTH_URL"], rc["OS_REGION_NAME"] = identity, "legacy"
	w := workspace(t, rc, config)
	defer w.Must("destroy", "-auto-approve")
	running := w.Start(acctest.Apply()...)
	site.AwaitState(t, s.Site, machine, site.BusyDeploying()...)
	stopped.Store(true)
	site.AwaitState(t, s.Site, machine, "active")
	stopped.Store(false)
	output, code := running.Wait()
	if code != 0 {
		t.Errorf("exit code %d\n%s", code, output)
	}
	s.wantKept(t, w, machine, output)
}

// The role of a user is revoked in the middle of a deployment, and given back later.
func revokeRole(t *testing.T) {
	t.Helper()
	s, machine, config := slow(t)
	user := s.Name("a-brief")
	made, _ := asKeystone(t, http.MethodPost, "users",
		map[string]any{"user": map[string]any{"name": user, "password": password, "domain_id": "default"}})["user"].(map[string]any)
	uuid := site.Text(made["id"])
	t.Cleanup(func() { asKeystone(t, http.MethodDelete, "users/"+uuid, nil) })
	list, _ := asKeystone(t, http.MethodGet, "roles?name=member", nil)["roles"].([]any)
	role, _ := list[0].(map[string]any)
	grant := fmt.Sprintf("projects/%s/users/%s/roles/%s", id(t, "tenant-a"), uuid, role["id"])
	asKeystone(t, http.MethodPut, grant, nil)
	rc := openrc("a-member")
	rc["OS_USERNAME"], rc["OS_REGION_NAME"] = user, "legacy"
	w := workspace(t, rc, config)
	defer w.Must("destroy", "-auto-approve")
	running := w.Start(acctest.Apply()...)
	site.AwaitState(t, s.Site, machine, site.BusyDeploying()...)
	asKeystone(t, http.MethodDelete, grant, nil)
	output, _ := running.Wait()
	asKeystone(t, http.MethodPut, grant, nil)
	s.wantKept(t, w, machine, output)
}

// wantKept fails the test unless the deployment is in the state, not tainted, and the next apply deploys nothing.
func (s *openstack) wantKept(t *testing.T, w *acctest.Workspace, machine, output string) {
	t.Helper()
	if d := acctest.InState(t, w, acctest.DeploymentAddress); d == nil || d.Tainted {
		t.Errorf("in state is %+v after\n%s", d, output)
	}
	s.Await(machine, "provision_state", "active")
	before := s.Node(machine)["provision_updated_at"]
	w.Must(acctest.Apply()...)
	if after := s.Node(machine)["provision_updated_at"]; after != before {
		t.Errorf("the next apply changes the machine: %v, then %v", before, after)
	}
	acctest.NoChanges(t, w)
}

// fragile puts a server in front of Keystone that drops connections while it is stopped.
func fragile(t *testing.T, keystone string) (address string, stopped *atomic.Bool) {
	t.Helper()
	target, err := url.Parse(strings.TrimSuffix(keystone, "/v3"))
	if err != nil {
		t.Fatal(err)
	}
	stopped = &atomic.Bool{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if stopped.Load() {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v3", stopped
}
