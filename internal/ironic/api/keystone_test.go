package api_test

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakekeystone"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

// Secrets of the tests; they must occur in no error.
const (
	rightPassword = fakekeystone.Password
	wrongPassword = "wrong-password-8K"
	rightSecret   = "application-secret-5Z"
)

// site is a Keystone and an Ironic that accepts only its tokens, both without sockets.
type site struct {
	keystone *fakekeystone.Server
	ironic   *fakeironic.Server
	down     atomic.Bool // Ironic refuses connections
}

// Addresses of a site. Another Ironic is at elsewhereURL.
const (
	keystoneURL  = "http://keystone.test/v3"
	ironicURL    = "http://ironic.test"
	elsewhereURL = "http://elsewhere.test"
)

// newSite returns a site with two nodes. The catalog has a second region in which only the internal URL is Ironic's.
func newSite() *site {
	s := &site{keystone: fakekeystone.NewSite(ironicURL), ironic: fleet(2)}
	s.keystone.RepeatsSecrets = true
	endpoints := &s.keystone.Catalog[0].Endpoints
	*endpoints = append(*endpoints, fakekeystone.Endpoint{Region: "south", Interface: "internal", URL: ironicURL + "/v1"},
		fakekeystone.Endpoint{Region: "south", Interface: "public", URL: elsewhereURL})
	s.ironic.Reject = func(r *http.Request) *fakeironic.Rejection {
		if _, ok := s.keystone.Identify(r.Header.Get("X-Auth-Token")); ok || r.URL.Path == "/v1/" {
			return nil
		}
		return &fakeironic.Rejection{
			Status: http.StatusUnauthorized,
			Body:   `{"error": {"code": 401, "message": "The request you have made requires authentication."}}`,
		}
	}
	return s
}

// RoundTrip sends a request to the server with its host name.
func (s *site) RoundTrip(r *http.Request) (*http.Response, error) {
	switch r.URL.Host {
	case "keystone.test":
		return s.keystone.RoundTrip(r)
	case "ironic.test":
		if s.down.Load() {
			return nil, syscall.ECONNREFUSED
		}
		return s.ironic.RoundTrip(r)
	}
	return nil, fmt.Errorf("%s: %w", r.URL.Host, errElsewhere)
}

var errElsewhere = errors.New("another server was asked")

// openrc are the variables of OpenStack's documentation, for a member of tenant-a, changed by pairs of name and value.
func openrc(changes ...string) map[string]string {
	variables := map[string]string{
		"OS_AUTH_URL": keystoneURL, "OS_USERNAME": "a-member", "OS_PASSWORD": rightPassword, "OS_PROJECT_NAME": "tenant-a",
		"OS_USER_DOMAIN_NAME": "Default", "OS_PROJECT_DOMAIN_NAME": "Default", "OS_IDENTITY_API_VERSION": "3", "OS_REGION_NAME": "north",
	}
	for i := 0; i < len(changes); i += 2 {
		variables[changes[i]] = changes[i+1]
	}
	return variables
}

// use returns a client of the site whose settings come from variables, except for those that are configured.
func (s *site) use(variables map[string]string, configure ...func(*api.Config)) *ironic.Client {
	cfg := api.Config{Auth: api.AuthKeystone, Transport: s, PollInterval: ironictest.Poll, Environ: []string{"HOME=/none"}}
	for name, value := range variables {
		cfg.Environ = append(cfg.Environ, name+"="+value)
	}
	for _, c := range configure {
		c(&cfg)
	}
	return ironic.New(cfg, ironic.Polls{})
}

// clouds writes a clouds.yaml, and returns the variables that choose its cloud "site", in the region north unless the file speaks of
// regions.
func clouds(t *testing.T, text string, changes ...string) map[string]string {
	t.Helper()
	variables := map[string]string{"OS_CLIENT_CONFIG_FILE": file(t, "clouds.yaml", text), "OS_CLOUD": "site"}
	if !strings.Contains(text, "region") {
		variables["OS_REGION_NAME"] = "north"
	}
	for i := 0; i < len(changes); i += 2 {
		variables[changes[i]] = changes[i+1]
	}
	return variables
}

// Every form of openrc and clouds.yaml that the openstack command accepts makes the provider ask for the same token.
func TestKeystone_forms(t *testing.T) {
	t.Parallel()
	const member, app = "password a-member@Default for ", "application_credential "
	const entry = "clouds:\n  site:\n    auth:\n      auth_url: " + keystoneURL +
		"\n      username: a-member\n      user_domain_name: Default\n"
	inA := entry + "      project_name: tenant-a\n      project_domain_name: Default\n"
	withPassword := inA + "      password: " + rightPassword + "\n"
	credential := []string{
		"OS_USERNAME", "", "OS_PASSWORD", "", "OS_PROJECT_NAME", "", "OS_AUTH_TYPE", "v3applicationcredential",
		"OS_APPLICATION_CREDENTIAL_SECRET", rightPassword,
	}
	for name, tt := range map[string]struct {
		variables map[string]string
		asked     string
		project   string // "tenant-a-id" if empty, "-" for none
	}{
		"documentation": {openrc(), member + "tenant-a@Default", ""},
		"Kolla": {openrc("OS_TENANT_NAME", "tenant-a", "OS_INTERFACE", "internal", "OS_ENDPOINT_TYPE", "internalURL",
			"OS_REGION_NAME", "north", "OS_AUTH_PLUGIN", "password"), member + "tenant-a@Default", ""},
		"Horizon": {
			openrc("OS_PROJECT_ID", "tenant-a-id", "OS_PROJECT_DOMAIN_NAME", "", "OS_PROJECT_DOMAIN_ID",
				"default", "OS_REGION_NAME", "north", "OS_INTERFACE", "public", "OS_TENANT_ID", "", "OS_DOMAIN_NAME", ""),
			member + "#tenant-a-id", "",
		},
		"domains by ID": {openrc("OS_USER_DOMAIN_NAME", "", "OS_PROJECT_DOMAIN_NAME", "", "OS_USER_DOMAIN_ID", "default",
			"OS_PROJECT_DOMAIN_ID", "default"), "password a-member@#default for tenant-a@#default", ""},
		"one domain for both": {
			openrc("OS_USER_DOMAIN_NAME", "", "OS_PROJECT_DOMAIN_NAME", "", "OS_DOMAIN_NAME", "Default"),
			member + "tenant-a@Default", "",
		},
		"no domain": {
			openrc("OS_USER_DOMAIN_NAME", "", "OS_PROJECT_DOMAIN_NAME", ""),
			"password a-member@#default for tenant-a@#default", "",
		},
		"project by ID": {
			openrc("OS_PROJECT_NAME", "", "OS_PROJECT_DOMAIN_NAME", "", "OS_PROJECT_ID", "tenant-a-id"),
			member + "#tenant-a-id", "",
		},
		"tenant by ID": {openrc("OS_PROJECT_NAME", "", "OS_TENANT_ID", "tenant-a-id"), member + "#tenant-a-id", ""},
		"user by ID": {
			openrc("OS_USERNAME", "", "OS_USER_DOMAIN_NAME", "", "OS_USER_ID", "a-member-id"),
			"password #a-member-id for tenant-a@Default", "",
		},
		"system": {openrc("OS_USERNAME", "sys-admin", "OS_PROJECT_NAME", "", "OS_PROJECT_DOMAIN_NAME", "",
			"OS_SYSTEM_SCOPE", "all"), "password sys-admin@Default for the system", "-"},
		"credential by ID": {
			openrc(append(credential, "OS_APPLICATION_CREDENTIAL_ID", "a-member-app-id")...),
			app + "#a-member-app-id", "",
		},
		"credential, no type": {openrc(append(credential, "OS_AUTH_TYPE", "", "OS_APPLICATION_CREDENTIAL_ID",
			"a-member-app-id")...), app + "#a-member-app-id", ""},
		"credential by name": {openrc(append(credential, "OS_APPLICATION_CREDENTIAL_NAME", "a-member-app", "OS_USERNAME",
			"a-member")...), app + "a-member-app of a-member@Default", ""},
		"credential of ID": {openrc(append(credential, "OS_APPLICATION_CREDENTIAL_NAME", "a-member-app", "OS_USER_ID",
			"a-member-id")...), app + "a-member-app of #a-member-id", ""},
		"credential beside a project": {openrc(append(credential, "OS_APPLICATION_CREDENTIAL_ID", "a-member-app-id", "OS_PROJECT_ID",
			"tenant-a-id")...), app + "#a-member-app-id", ""},
		"token": {openrc("OS_AUTH_TYPE", "v3token", "OS_TOKEN", "TOKEN", "OS_USERNAME", "", "OS_PASSWORD", "",
			"OS_USER_DOMAIN_NAME", ""), "token for tenant-a@Default", ""},
		"token beside a user":     {openrc("OS_AUTH_TYPE", "token", "OS_TOKEN", "TOKEN"), "token for tenant-a@Default", ""},
		"token without a project": {openrc("OS_TOKEN", "SCOPED", "OS_USERNAME", "", "OS_PROJECT_NAME", ""), "", ""},
		"URL without version":     {openrc("OS_AUTH_URL", "http://keystone.test"), member + "tenant-a@Default", ""},
		"URL with slash":          {openrc("OS_AUTH_URL", keystoneURL+"/"), member + "tenant-a@Default", ""},
		"internal URL":            {openrc("OS_REGION_NAME", "south", "OS_INTERFACE", "internal"), member + "tenant-a@Default", ""},
		"another endpoint": {
			openrc("OS_REGION_NAME", "nowhere", "OS_BAREMETAL_ENDPOINT_OVERRIDE", ironicURL),
			member + "tenant-a@Default", "",
		},

		"file": {clouds(t, withPassword), member + "tenant-a@Default", ""},
		"file, project by ID": {
			clouds(t, entry+"      project_id: tenant-a-id\n      password: "+rightPassword),
			member + "#tenant-a-id", "",
		},
		"file, system": {clouds(t, "clouds:\n  site:\n    auth: {auth_url: '"+keystoneURL+"', username: sys-admin, "+
			"user_domain_id: default, system_scope: all, password: "+rightPassword+"}"), "password sys-admin@#default for the system", "-"},
		"file, credential": {
			clouds(t, "clouds:\n  site:\n    auth_type: v3applicationcredential\n    auth: {auth_url: '"+
				keystoneURL+"', application_credential_id: a-member-app-id, application_credential_secret: "+rightPassword+"}"),
			app + "#a-member-app-id", "",
		},
		"file, password in a variable": {clouds(t, inA, "OS_PASSWORD", rightPassword), member + "tenant-a@Default", ""},
		"file, user in variables": {clouds(t, "clouds:\n  site:\n    auth: {auth_url: '"+keystoneURL+"'}", "OS_USERNAME", "a-member",
			"OS_PASSWORD", rightPassword, "OS_PROJECT_ID", "tenant-a-id", "OS_USER_DOMAIN_NAME", "Default"), member + "#tenant-a-id", ""},
		"file beside another openrc": {clouds(t, withPassword, "OS_AUTH_URL", elsewhereURL, "OS_USERNAME", "b-member", "OS_PASSWORD",
			wrongPassword, "OS_PROJECT_ID", "tenant-b-id", "OS_SYSTEM_SCOPE", "all"), member + "tenant-a@Default", ""},
		"file, first of its regions": {
			clouds(t, withPassword+"    regions: [north, south]\n", "OS_INTERFACE", "admin"),
			member + "tenant-a@Default", "",
		},
		"file, one of its regions": {clouds(t, withPassword+"    regions:\n    - north\n    - name: south\n      values: "+
			"{interface: internal}\n", "OS_REGION_NAME", "south"), member + "tenant-a@Default", ""},
		"file, another region": {
			clouds(t, withPassword+"    region_name: nowhere\n", "OS_REGION_NAME", "north"),
			member + "tenant-a@Default", "",
		},
		"file, interface": {
			clouds(t, withPassword+"    region_name: south\n    interface: internal\n"),
			member + "tenant-a@Default", "",
		},
		"file, interface of the type": {clouds(t, withPassword+"    region_name: south\n    interface: public\n "+
			"   baremetal_interface: internal\n"), member + "tenant-a@Default", ""},
		"file, old name of interface": {
			clouds(t, withPassword+"    region_name: south\n    endpoint_type: internalURL\n"),
			member + "tenant-a@Default", "",
		},
		"file, another endpoint": {clouds(t, withPassword+"    region_name: nowhere\n    baremetal_endpoint_override: "+ironicURL+
			"/v1/\n"), member + "tenant-a@Default", ""},
		"file, settings outside auth": {clouds(t, "clouds:\n  site: {auth_url: '"+keystoneURL+
			"', username: a-member, user_domain_name: Default, tenant_name: tenant-a, project-domain-name: Default, password: "+
			rightPassword+"}"), member + "tenant-a@Default", ""},
		"file, a project in the domain": {
			clouds(t, "clouds:\n  site:\n    auth: {auth_url: '"+keystoneURL+
				"', username: a-member, domain_id: default, project_name: tenant-a, password: "+rightPassword+"}"),
			"password a-member@#default for tenant-a@#default", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite()
			for variable, value := range tt.variables {
				switch value {
				case "TOKEN":
					tt.variables[variable] = token(t, s, "")
				case "SCOPED":
					tt.variables[variable] = token(t, s, `,"scope":{"project":{"id":"tenant-a-id"}}`)
				}
			}
			client := s.use(tt.variables)
			_, err := client.Node(t.Context(), "node-000")
			log := s.keystone.Requests()
			project := strings.TrimPrefix(cmp.Or(tt.project, "tenant-a-id"), "-")
			if err != nil || log[len(log)-1].Asked != tt.asked || client.Project() != project {
				t.Errorf("%v; project %q, want %q; Keystone was asked for %+v, want %q", err, client.Project(), project, log, tt.asked)
			}
		})
	}
}

// token returns a token of a-member.
func token(t *testing.T, s *site, scope string) string {
	t.Helper()
	body := `{"auth":{"identity":{"methods":["password"],"password":{"user":{"id":"a-member-id","password":"` + rightPassword +
		`"}}}` + scope + `}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, keystoneURL+"/auth/tokens", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.keystone.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it has no socket
	return resp.Header.Get("X-Subject-Token")
}
