package fakekeystone_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakekeystone"
)

// ask sends a request without a socket, and returns the status, the token and the body of the answer.
func ask(t *testing.T, s *fakekeystone.Server, method, path, body string, header ...string) (status int, token, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://keystone.test"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := s.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	read, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("X-Subject-Token"), string(read)
}

func login(t *testing.T, s *fakekeystone.Server, identity, scope string) (status int, token, text string) {
	t.Helper()
	if scope != "" {
		scope = `,"scope":` + scope
	}
	return ask(t, s, http.MethodPost, "/v3/auth/tokens", `{"auth":{"identity":`+identity+scope+`}}`)
}

// by is the identity of a user with a password.
func by(user, password string) string {
	return `{"methods":["password"],"password":{"user":{` + user + `,"password":"` + password + `"}}}`
}

const (
	member  = `"name":"a-member","domain":{"name":"Default"}`
	tenantA = `{"project":{"name":"tenant-a","domain":{"id":"default"}}}`
	right   = fakekeystone.Password
)

func TestTokens(t *testing.T) {
	t.Parallel()
	app := func(credential string) string {
		return `{"methods":["application_credential"],"application_credential":{` + credential + `,"secret":"` + right + `"}}`
	}
	inA := fakekeystone.Identity{UserID: "a-member-id", ProjectID: "tenant-a-id", Roles: []string{"member", "reader"}}
	nowhere, none := fakekeystone.Identity{UserID: "a-member-id"}, fakekeystone.Identity{}
	for name, tt := range map[string]struct {
		identity, scope string
		status          int
		asked           string
		want            fakekeystone.Identity
	}{
		"names": {by(member, right), tenantA, 201, "password a-member@Default for tenant-a@#default", inA},
		"IDs": {
			by(`"id":"a-member-id"`, right), `{"project":{"id":"tenant-a-id"}}`, 201, "password #a-member-id for #tenant-a-id", inA,
		},
		"no scope": {by(member, right), "", 201, "password a-member@Default", nowhere},
		"unscoped": {by(member, right), `"unscoped"`, 201, "password a-member@Default", nowhere},
		"system": {by(`"id":"sys-member-id"`, right), `{"system":{"all":true}}`, 201, "password #sys-member-id for " +
			"the system", fakekeystone.Identity{UserID: "sys-member-id", System: true, Roles: []string{"member", "reader"}}},
		"credential by ID": {app(`"id":"a-member-app-id"`), "", 201, "application_credential #a-member-app-id", inA},
		"credential by name": {
			app(`"name":"a-member-app","user":{` + member + `}`), "", 201,
			"application_credential a-member-app of a-member@Default", inA,
		},
		"credential with a scope": {
			app(`"id":"a-member-app-id"`), tenantA, 401,
			"application_credential #a-member-app-id for tenant-a@#default",
			none,
		},
		"credential of another user": {
			app(`"name":"a-member-app","user":{"id":"a-admin-id"}`), "", 401,
			"application_credential a-member-app of #a-admin-id",
			none,
		},
		"wrong password":  {by(member, "wrong"), tenantA, 401, "password a-member@Default for tenant-a@#default", none},
		"no such user":    {by(`"id":"none"`, right), tenantA, 401, "password #none for tenant-a@#default", none},
		"no such project": {by(member, right), `{"project":{"id":"none"}}`, 401, "password a-member@Default for #none", none},
		"no role in the project": {
			by(member, right), `{"project":{"id":"tenant-b-id"}}`, 401,
			"password a-member@Default for #tenant-b-id",
			none,
		},
		"no role on the system": {by(member, right), `{"system":{"all":true}}`, 401, "password a-member@Default for the system", none},
		"no role on the domain": {
			by(member, right), `{"domain":{"id":"default"}}`, 401,
			"password a-member@Default for domain @#default",
			none,
		},
		"a user without a domain": {by(`"name":"a-member"`, right), tenantA, 400, "password a-member for tenant-a@#default", none},
		"a project without a domain": {
			by(member, right), `{"project":{"name":"tenant-a"}}`, 400,
			"password a-member@Default for tenant-a",
			none,
		},
		"a domain that does not exist": {
			by(`"name":"a-member","domain":{"name":"none"}`, right), tenantA, 401,
			"password a-member@none for tenant-a@#default",
			none,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fakekeystone.NewSite("http://ironic.test")
			status, token, text := login(t, s, tt.identity, tt.scope)
			if status != tt.status || strings.Contains(text, right) {
				t.Fatalf("status %d, want %d: %s", status, tt.status, text)
			}
			if log := s.Requests(); len(log) != 1 || log[0].Asked != tt.asked || log[0].Status != status {
				t.Errorf("log %+v, want %q", log, tt.asked)
			}
			got, ok := s.Identify(token)
			if ok != (status == http.StatusCreated) || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("identity %+v, %t, want %+v", got, ok, tt.want)
			}
			if scoped := strings.Contains(text, `"catalog"`); scoped != (len(tt.want.Roles) > 0) {
				t.Errorf("the token shows a catalog: %t: %s", scoped, text)
			}
		})
	}
}

func TestTokens_ofTokens(t *testing.T) {
	t.Parallel()
	s := fakekeystone.NewSite("http://ironic.test")
	_, first, _ := login(t, s, by(member, right), "")
	status, second, _ := login(t, s, `{"methods":["token"],"token":{"id":"`+first+`"}}`, tenantA)
	if got, _ := s.Identify(second); status != http.StatusCreated || got.ProjectID != "tenant-a-id" {
		t.Errorf("%d, %+v", status, got)
	}
	if status, _, text := login(t, s, `{"methods":["token"],"token":{"id":"none"}}`, tenantA); status != http.StatusNotFound {
		t.Errorf("%d %s", status, text)
	}
	status, shown, text := ask(t, s, http.MethodGet, "/v3/auth/tokens", "", "X-Auth-Token", second, "X-Subject-Token", second)
	var document struct {
		Token struct {
			Project struct{ ID string }
			Catalog []fakekeystone.Service
		}
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil || status != http.StatusOK || shown != second ||
		document.Token.Project.ID != "tenant-a-id" || len(document.Token.Catalog) != 1 || len(document.Token.Catalog[0].Endpoints) != 3 {
		t.Errorf("%d, %v: %s", status, err, text)
	}
	if status, _, _ := ask(t, s, http.MethodDelete, "/v3/auth/tokens", "", "X-Auth-Token", second, "X-Subject-Token",
		second); status != http.StatusNoContent {
		t.Errorf("%d", status)
	}
	for _, token := range []string{second, ""} {
		if _, ok := s.Identify(token); ok {
			t.Errorf("%q is valid", token)
		}
	}
}

func TestTokens_end(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := fakekeystone.NewSite("http://ironic.test")
		s.TokenLife = time.Minute
		_, token, _ := login(t, s, by(member, right), tenantA)
		valid := func(want bool, when string) {
			t.Helper()
			if _, ok := s.Identify(token); ok != want {
				t.Errorf("%s: valid %t", when, ok)
			}
		}
		valid(true, "at first")
		var roles []string
		s.Change(func() { roles, s.Users[2].Projects["tenant-a-id"] = s.Users[2].Projects["tenant-a-id"], nil })
		valid(false, "without a role")
		s.Change(func() { s.Users[2].Projects["tenant-a-id"] = roles })
		valid(true, "with the role")
		time.Sleep(time.Minute)
		valid(false, "after its life")
		_, token, _ = login(t, s, by(member, right), tenantA)
		s.RevokeTokens()
		valid(false, "revoked")
		if s.Issued() != 2 {
			t.Errorf("%d tokens", s.Issued())
		}
	})
}

func TestVersionsAndFaults(t *testing.T) {
	t.Parallel()
	s := fakekeystone.NewSite("http://ironic.test")
	s.Path, s.RepeatsSecrets = "/identity", true
	for path, want := range map[string]int{"/identity": 300, "/identity/v3/": 200, "/v3": 404, "/identity/v2.0": 404} {
		status, _, text := ask(t, s, http.MethodGet, path, "")
		if status != want || want < 400 && !strings.Contains(text, "http://keystone.test/identity/v3/") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if _, _, text := ask(t, s, http.MethodPost, "/identity/v3/auth/tokens", `{"auth":{"identity":`+by(member, "w0rd")+
		`}}`); !strings.Contains(text, "w0rd") {
		t.Error(text)
	}
	s.Reject = func(*http.Request) *fakekeystone.Rejection { return &fakekeystone.Rejection{Status: 503, Body: "busy"} }
	if status, _, text := ask(t, s, http.MethodGet, "/identity/v3", ""); status != 503 || text != "busy" {
		t.Errorf("%d %s", status, text)
	}
	s.SetDown(true)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://keystone.test/identity", http.NoBody)
	if resp, err := s.RoundTrip(r); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v, %v", resp, err)
	}
	server := httptest.NewServer(s)
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/identity", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := server.Client().Do(r); err == nil {
		t.Errorf("%d from a Keystone that is down", resp.StatusCode)
		resp.Body.Close()
	}
}
