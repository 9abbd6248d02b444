package api_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakekeystone"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// wantError fails the test unless an error is of a stage, says what is expected, and has no secret.
func wantError(t *testing.T, stage api.Stage, err error, says ...string) {
	t.Helper()
	if api.StageOf(err) != stage || api.IsNotFound(err) {
		t.Fatalf("%T %v, want a ConnectError at %s", err, err, stage)
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
	for _, secret := range []string{rightPassword, wrongPassword, rightSecret, fakekeystone.TokenPrefix} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%v has the secret %s", err, secret)
		}
	}
}

func wantSettingsError(t *testing.T, err error, says ...string) {
	t.Helper()
	wantError(t, api.AtSettings, err, says...)
}

func wantAuthError(t *testing.T, err error, says ...string) {
	t.Helper()
	wantError(t, api.AtKeystone, err, says...)
}

func wantCatalogError(t *testing.T, err error, says ...string) {
	t.Helper()
	wantError(t, api.AtCatalog, err, says...)
}

func wantEndpointError(t *testing.T, err error, says ...string) {
	t.Helper()
	wantError(t, api.AtEndpoint, err, says...)
}

// untrusted is the error of a server whose certificate is signed by an unknown authority.
var untrusted = &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}

// An error says which of the settings, Keystone, its catalog and Ironic is wrong, and where.
func TestConnect_errorsNameTheServerAndThePlace(t *testing.T) {
	t.Parallel()
	const without = "clouds:\n  site:\n    profile: big-cloud\n"
	for name, tt := range map[string]struct {
		variables map[string]string
		change    func(s *site, cfg *api.Config)
		want      func(t *testing.T, err error, says ...string)
		says      []string
	}{
		"no variables": {nil, nil, wantSettingsError, []string{"OS_AUTH_URL is not set"}},
		"no user":      {openrc("OS_USERNAME", ""), nil, wantSettingsError, []string{"OS_USERNAME is not set"}},
		"no password":  {openrc("OS_PASSWORD", ""), nil, wantSettingsError, []string{"OS_PASSWORD is not set"}},
		"no secret": {
			openrc("OS_APPLICATION_CREDENTIAL_ID", "a-member-app-id", "OS_PASSWORD", ""), nil, wantSettingsError,
			[]string{"OS_APPLICATION_CREDENTIAL_SECRET is not set"},
		},
		"unsupported type": {
			openrc("OS_AUTH_TYPE", "v3kerberos"), nil, wantSettingsError,
			[]string{`OS_AUTH_TYPE is "v3kerberos", which the provider does not support`, "v3applicationcredential"},
		},
		"unknown system": {
			openrc("OS_PROJECT_NAME", "", "OS_SYSTEM_SCOPE", "everything"), nil, wantSettingsError,
			[]string{`OS_SYSTEM_SCOPE is "everything"; it must be all`},
		},
		"no such cloud": {
			clouds(t, "clouds:\n  north: {}\n  east: {}\n"), nil, wantSettingsError,
			[]string{"clouds.yaml: there is no cloud \"site\", but there are: east, north"},
		},
		"no such region": {
			clouds(t, "clouds:\n  site: {regions: [north, east]}\n", "OS_REGION_NAME", "south"), nil,
			wantSettingsError,
			[]string{"cloud site has no region \"south\", but has: east, north"},
		},
		"no file": {
			map[string]string{"OS_CLOUD": "site"},
			nil, wantSettingsError,
			[]string{"there is no clouds.yaml in /", "/etc/openstack", "OS_CLIENT_CONFIG_FILE"},
		},
		"a file that is gone": {
			map[string]string{"OS_CLOUD": "site", "OS_CLIENT_CONFIG_FILE": "/none/clouds.yaml"},
			nil,
			wantSettingsError,
			[]string{`OS_CLIENT_CONFIG_FILE is "/none/clouds.yaml": no such file`},
		},
		"no YAML": {clouds(t, "clouds:\n  site: ["+wrongPassword), nil, wantSettingsError, []string{"clouds.yaml: yaml: "}},
		"no mapping": {
			clouds(t, "clouds:\n  site: "+wrongPassword), nil, wantSettingsError,
			[]string{"clouds.yaml: each cloud below clouds must be a mapping"},
		},
		"profile of a vendor": {
			clouds(t, without), nil, wantSettingsError,
			[]string{`the profile "big-cloud" of cloud site is in no clouds-public.yaml`, "write auth_url into the cloud"},
		},
		"file without password": {
			clouds(t, "clouds:\n  site: {auth: {auth_url: 'http://keystone.test', username: x}}"), nil,
			wantSettingsError,
			[]string{"password of cloud site in ", "clouds.yaml is not set"},
		},

		"wrong password": {openrc("OS_PASSWORD", wrongPassword), nil, wantAuthError, []string{"Keystone at " + keystoneURL +
			" refuses the credentials of the OS_* variables", "Could not authenticate with ****** (401 Unauthorized)"}},
		"wrong password, file": {clouds(t, "clouds:\n  site: {auth: {auth_url: 'http://keystone.test', username: x, password: "+
			wrongPassword+"}}"), nil, wantAuthError, []string{"refuses the credentials of cloud site in /", "clouds.yaml: "}},
		"no role": {
			openrc("OS_PROJECT_NAME", "tenant-b"), nil, wantAuthError,
			[]string{"refuses the credentials of the OS_* variables: The request you have made requires authentication"},
		},
		"old token": {
			openrc("OS_AUTH_TYPE", "v3token", "OS_TOKEN", rightSecret), nil, wantAuthError,
			[]string{"Keystone at " + keystoneURL, "404"},
		},
		"wrong URL of Keystone": {
			openrc("OS_AUTH_URL", "http://keystone.test/identity"), nil, wantAuthError,
			[]string{"Keystone at http://keystone.test/identity/v3: ", "404"},
		},
		"Keystone down": {openrc(), func(s *site, _ *api.Config) {
			s.keystone.SetDown(true)
		}, wantAuthError, []string{"Keystone at " + keystoneURL + " does not answer: connection refused"}},
		"Keystone busy": {openrc(), func(s *site, _ *api.Config) {
			s.keystone.Reject = func(*http.Request) *fakekeystone.Rejection {
				return &fakekeystone.Rejection{Status: 503, Body: "<html><title>Busy</title>"}
			}
		}, wantAuthError, []string{"Keystone at " + keystoneURL + ": a web page, not the API: Busy (503 Service Unavailable)"}},
		"Keystone not trusted": {openrc(), func(_ *site, cfg *api.Config) {
			cfg.Transport = transport(func(*http.Request) (*http.Response, error) { return nil, untrusted })
		}, wantAuthError, []string{"Keystone at " + keystoneURL + ": tls: failed to verify certificate"}},

		"no scope": {openrc("OS_PROJECT_NAME", ""), nil, wantCatalogError, []string{"Keystone at " + keystoneURL +
			" has given a token without a service catalog: the token is for no project and not for the system"}},
		"no such place": {
			openrc("OS_REGION_NAME", "east"), nil, wantCatalogError,
			[]string{"the service catalog of Keystone at " + keystoneURL + " has no service of type baremetal in region east with " +
				"interface public. It has: admin in region north, internal in region north, internal in region south, public in region " +
				"north, public in region south"},
		},
		"several regions": {
			openrc("OS_REGION_NAME", ""), nil, wantCatalogError,
			[]string{"has several services of type baremetal with interface public. It has: admin in region north, internal in region " +
				"north, internal in region south, public in region north, public in region south"},
		},
		"no such interface": {openrc("OS_REGION_NAME", "south"), func(_ *site, cfg *api.Config) {
			cfg.Interface = "admin"
		}, wantCatalogError, []string{"in region south with interface admin. It has: "}},
		"no Ironic": {openrc(), func(s *site, _ *api.Config) {
			s.keystone.Catalog = []fakekeystone.Service{{Type: "compute"}, {Type: "identity"}}
		}, wantCatalogError, []string{"has no service of type baremetal. It has: compute, identity"}},

		"Ironic down": {openrc(), func(s *site, _ *api.Config) {
			s.down.Store(true)
		}, wantEndpointError, []string{"Ironic at http://ironic.test/v1/ (region north, interface public of the service catalog) does " +
			"not answer: connection refused"}},
		"Ironic down, given": {openrc(), func(s *site, cfg *api.Config) {
			s.down.Store(true)
			cfg.Endpoint = ironicURL
		}, wantEndpointError, []string{"Ironic at http://ironic.test/v1/ does not answer: connection refused"}},
		"another server": {openrc("OS_REGION_NAME", "south"), nil, wantEndpointError, []string{"Ironic at http://elsewhere.test/v1/ " +
			"(region south, interface public of the service catalog): elsewhere.test: another server was asked"}},
		"Ironic not trusted": {openrc(), func(s *site, cfg *api.Config) {
			cfg.Transport = transport(func(r *http.Request) (*http.Response, error) {
				if r.URL.Host == "keystone.test" {
					return s.RoundTrip(r)
				}
				return nil, untrusted
			})
		}, wantEndpointError, []string{"Ironic at http://ironic.test/v1/ (region north, interface public of the service catalog): tls: " +
			"failed to verify certificate"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				s := newSite()
				client := s.use(tt.variables, func(cfg *api.Config) {
					if tt.change != nil {
						tt.change(s, cfg)
					}
				})
				_, err := client.Node(t.Context(), "node-000")
				tt.want(t, err, tt.says...)
			})
		})
	}
}

// What may come up is waited for, and the log says so; a wrong setting is an error at once.
func TestConnect_waitsForAStart(t *testing.T) {
	t.Parallel()
	const limit = 5 * time.Minute
	for name, tt := range map[string]struct {
		variables map[string]string
		begin     func(s *site)
		change    func(s *site) // after three minutes
		waits     time.Duration // 0: an error at once
		logs      string
	}{
		"Keystone starts": {openrc(), func(s *site) {
			s.keystone.SetDown(true)
		}, func(s *site) {
			s.keystone.SetDown(false)
		}, 3 * time.Minute, "Keystone at " + keystoneURL + " does not answer: connection refused; waiting for it"},
		"Keystone's proxy has no Keystone": {openrc(), func(s *site) {
			s.keystone.Reject = func(*http.Request) *fakekeystone.Rejection {
				return &fakekeystone.Rejection{Status: http.StatusServiceUnavailable}
			}
		}, func(s *site) {
			s.keystone.Change(func() { s.keystone.Reject = nil })
		}, 3 * time.Minute, "503 Service Unavailable; waiting for it"},
		"Keystone does not start": {openrc(), func(s *site) { s.keystone.SetDown(true) }, nil, limit, "Keystone at " + keystoneURL},
		"Ironic of the catalog starts": {openrc(), func(s *site) {
			s.down.Store(true)
		}, func(s *site) {
			s.down.Store(false)
		}, 3 * time.Minute, "Ironic at http://ironic.test/v1/ (region north, interface public of the service catalog) does not answer"},
		"wrong password": {openrc("OS_PASSWORD", wrongPassword), nil, nil, 0, ""},
		"no role":        {openrc("OS_PROJECT_NAME", "tenant-b"), nil, nil, 0, ""},
		"no password":    {openrc("OS_PASSWORD", ""), nil, nil, 0, ""},
		"wrong region":   {openrc("OS_REGION_NAME", "east"), nil, nil, 0, ""},
		"no scope":       {openrc("OS_PROJECT_NAME", ""), nil, nil, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				s := newSite()
				if tt.begin != nil {
					tt.begin(s)
				}
				var log bytes.Buffer
				client := s.use(tt.variables, func(cfg *api.Config) {
					cfg.APITimeout, cfg.PollInterval, cfg.Logger = limit, 10*time.Second, slog.New(slog.NewTextHandler(&log, nil))
				})
				if tt.change != nil {
					time.AfterFunc(3*time.Minute, func() { tt.change(s) })
				}
				start := time.Now()
				_, err := client.Node(t.Context(), "node-000")
				if took := time.Since(start); took < tt.waits-time.Second || took > tt.waits+min(tt.waits, time.Minute) {
					t.Errorf("it waited %s, want %s", took, tt.waits)
				}
				if (err == nil) != (tt.change != nil) || !strings.Contains(log.String(), tt.logs) || (tt.waits == 0) != (log.Len() == 0) {
					t.Errorf("%v; log:\n%s", err, log.String())
				}
				if lines := strings.Count(log.String(), "waiting for it"); lines > 11 {
					t.Errorf("%d lines of log", lines)
				}
			})
		})
	}
}

// A user who may not list drivers waits no longer than others, on both versions of Ironic.
func TestConnect_waitsNoLongerWithoutTheRightToListDrivers(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]fakeironic.Rejection{
		"21.4": {
			Status: 500,
			Body:   `{"error_message": "{\"faultcode\": \"Server\", \"faultstring\": \"\\\"baremetal:driver:get\\\": requires a scope of ['system'], request was made with project scope.\"}"}`,
		},
		"39": {
			Status: 403,
			Body:   `{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"Access was denied to the following resource: baremetal:driver:get\"}"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T) {
				s := newSite()
				s.ironic.Reject = func(r *http.Request) *fakeironic.Rejection {
					if r.URL.Path == "/v1/drivers" {
						return &refusal
					}
					return nil
				}
				start := time.Now()
				_, err := s.use(openrc(), func(cfg *api.Config) { cfg.APITimeout = time.Hour }).Node(t.Context(), "node-000")
				if took := time.Since(start); err != nil || took > 0 {
					t.Errorf("%v after %s", err, took)
				}
			})
		})
	}
}

// Without Keystone, wrong credentials are not waited for either.
func TestConnect_wrongBasicPasswordIsAnErrorAtOnce(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		fake := fleet(1)
		fake.Username, fake.Password = "operator", rightPassword
		client := newClient(fake, func(cfg *api.Config) {
			cfg.Auth, cfg.Username, cfg.Password, cfg.APITimeout = api.AuthHTTPBasic, "operator", wrongPassword, time.Hour
		})
		start := time.Now()
		if _, err := client.Node(t.Context(), "node-000"); err == nil || time.Since(start) > 0 {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

// A cloud in clouds.yaml may be an Ironic without Keystone, as Bifrost writes it.
func TestConnect_cloudWithoutKeystone(t *testing.T) {
	t.Parallel()
	for name, auth := range map[string]string{
		"none":       "auth_type: none, auth: {endpoint: '" + ironicURL + "'}",
		"override":   "auth_type: none, baremetal_endpoint_override: '" + ironicURL + "/v1'",
		"http_basic": "auth_type: http_basic, auth: {endpoint: '" + ironicURL + "', username: operator, password: " + rightPassword + "}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite()
			s.ironic.Reject = nil
			if name == "http_basic" {
				s.ironic.Username, s.ironic.Password = "operator", rightPassword
			}
			if _, err := s.use(clouds(t, "clouds:\n  site: {"+auth+"}\n")).Node(t.Context(), "node-000"); err != nil ||
				len(s.keystone.Requests()) > 0 {
				t.Errorf("%v; Keystone was asked for %+v", err, s.keystone.Requests())
			}
		})
	}
}

// Keystone and Ironic are trusted by the same settings: of the provider block, of the variables, of clouds.yaml.
func TestTLS_trustOfAnOpenrc(t *testing.T) {
	t.Parallel()
	s := newSite()
	s.ironic.Reject = nil
	server := newTLSServer(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v3") {
			s.keystone.ServeHTTP(w, r)
			return
		}
		s.ironic.ServeHTTP(w, r)
	})
	s.keystone.Catalog[0].Endpoints[0].URL = server.URL // north, public
	authority := authorityOf(t, server)
	for name, tt := range map[string]struct {
		changes   []string
		configure func(*api.Config)
		says      string // "" is success
	}{
		"nothing": {nil, nil, "Keystone at " + server.URL + "/v3: tls: failed to verify certificate: x509: certificate " +
			"signed by unknown authority"},
		"the variable":           {[]string{"OS_CACERT", authority}, nil, ""},
		"the block":              {nil, func(cfg *api.Config) { cfg.CACertFile = authority }, ""},
		"the block first":        {[]string{"OS_CACERT", "/none"}, func(cfg *api.Config) { cfg.CACertFile = authority }, ""},
		"a variable of no file":  {[]string{"OS_CACERT", "/none"}, nil, "OS_CACERT: open /none"},
		"insecure":               {[]string{"OS_INSECURE", "True"}, nil, ""},
		"not insecure":           {[]string{"OS_INSECURE", "false"}, nil, "x509"},
		"insecure, block trusts": {[]string{"OS_INSECURE", "true"}, func(cfg *api.Config) { cfg.CACertFile = authority }, ""},
		"nonsense":               {[]string{"OS_INSECURE", "maybe"}, nil, `OS_INSECURE is "maybe"; it must be true or false`},
		"no such certificate":    {[]string{"OS_CACERT", authority, "OS_CERT", "/none"}, nil, "OS_CERT and OS_KEY: open /none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := s.use(openrc(append(tt.changes, "OS_AUTH_URL", server.URL)...), func(cfg *api.Config) {
				cfg.Transport = nil
				if tt.configure != nil {
					tt.configure(cfg)
				}
			}).Node(t.Context(), "node-000")
			if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
				t.Errorf("%v, want %q", err, tt.says)
			}
		})
	}
	t.Run("clouds.yaml", func(t *testing.T) {
		t.Parallel()
		for _, trust := range []string{"verify: false", "insecure: true", "cacert: " + authority} {
			variables := clouds(t, "clouds:\n  site: {"+trust+", auth: {auth_url: '"+server.URL+
				"', user_id: a-member-id, project_id: tenant-a-id, password: "+rightPassword+"}}\n")
			if _, err := s.use(variables, func(cfg *api.Config) { cfg.Transport = nil }).Node(t.Context(), "node-000"); err != nil {
				t.Errorf("%s: %v", trust, err)
			}
		}
	})
}

// Tokens that expire are renewed, unless Keystone refuses.
func TestKeystone_expiredToken(t *testing.T) {
	t.Parallel()
	s := newSite()
	client := s.use(openrc())
	if _, err := client.Node(t.Context(), "node-000"); err != nil {
		t.Fatal(err)
	}
	s.keystone.RevokeTokens()
	if _, err := client.Node(t.Context(), "node-001"); err != nil || s.keystone.Issued() != 2 {
		t.Errorf("after expiry: %v, %d tokens issued", err, s.keystone.Issued())
	}
	s.keystone.RevokeTokens()
	if _, err := client.Node(t.Context(), "node-777"); !api.IsNotFound(err) {
		t.Errorf("a missing node after expiry: %v, want not found", err)
	}
	s.keystone.RevokeTokens()
	s.keystone.Change(func() { s.keystone.Users[2].Password = rightSecret })
	_, err := client.Node(t.Context(), "node-000")
	wantAuthError(t, err, "refuses the credentials", "Could not authenticate with ****** (401 Unauthorized)")
	if strings.Contains(err.Error(), "more") {
		t.Errorf("%q: want the first line", err)
	}
}

// A token that the user has given cannot be renewed.
func TestKeystone_expiredTokenOfTheUser(t *testing.T) {
	t.Parallel()
	s := newSite()
	client := s.use(openrc("OS_AUTH_TYPE", "v3token", "OS_TOKEN", token(t, s, "")))
	if _, err := client.Node(t.Context(), "node-000"); err != nil {
		t.Fatal(err)
	}
	s.keystone.RevokeTokens()
	_, err := client.Node(t.Context(), "node-000")
	if status := new(api.StatusError); !errors.As(err, &status) || status.Status != http.StatusUnauthorized {
		t.Errorf("%v", err)
	}
}

// While Keystone is down, a token that it has issued before works, and a new one is asked for again and again.
func TestKeystone_downWhileATokenExpires(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite()
		client := s.use(openrc())
		if _, err := client.Node(t.Context(), "node-000"); err != nil {
			t.Fatal(err)
		}
		s.keystone.RevokeTokens()
		s.keystone.SetDown(true)
		time.AfterFunc(5*time.Second, func() { s.keystone.SetDown(false) })
		if _, err := client.Node(t.Context(), "node-000"); err != nil {
			t.Error(err)
		}
	})
}

func TestKeystone_endpointBeatsCatalog(t *testing.T) {
	t.Parallel()
	for _, region := range []string{"north", "east"} { // the second is not in the catalog
		s := newSite()
		client := s.use(openrc("OS_REGION_NAME", region), func(cfg *api.Config) { cfg.Endpoint = ironicURL + "/v1" })
		if _, err := client.Node(t.Context(), "node-000"); err != nil {
			t.Errorf("%s: %v", region, err)
		}
	}
}

// The settings of the configuration beat those of the environment.
func TestKeystone_configurationBeatsEnvironment(t *testing.T) {
	t.Parallel()
	file := "clouds:\n  %s: {region_name: east, auth: {auth_url: 'http://keystone.test', user_id: a-member-id, project_id: tenant-a-id, " +
		"password: " + rightPassword + "}}\n"
	variables := clouds(t, strings.ReplaceAll(file, "%s", "mine"), "OS_CLOUD", "other", "OS_REGION_NAME", "west", "OS_INTERFACE", "admin",
		"OS_SYSTEM_SCOPE", "all", "OS_PASSWORD", wrongPassword)
	s := newSite()
	client := s.use(variables, func(cfg *api.Config) { cfg.Cloud, cfg.Region, cfg.Interface = "mine", "south", "internal" })
	if _, err := client.Node(t.Context(), "node-000"); err != nil {
		t.Error(err)
	}
	// the region of clouds.yaml, not of another openrc
	_, err := s.use(variables, func(cfg *api.Config) { cfg.Cloud = "mine" }).Node(t.Context(), "node-000")
	wantCatalogError(t, err, "region east with interface admin")
}

// Keystone is asked for a token at another address, and the catalog names an Ironic that has moved.
func TestRedirect_ofKeystoneAndItsCatalog(t *testing.T) {
	t.Parallel()
	s := newSite()
	address, redirecting := elsewhere(t)
	moved := httptest.NewServer(redirecting)
	t.Cleanup(moved.Close)
	sockets := func(cfg *api.Config) { cfg.Transport = nil }
	_, err := s.use(openrc("OS_AUTH_URL", moved.URL), sockets).Node(t.Context(), "node-000")
	wantAuthError(t, err, "set OS_AUTH_URL to "+address+"/v3")
	wantRedirect(t, err)
	keystone := httptest.NewServer(s.keystone)
	t.Cleanup(keystone.Close)
	_, err = s.use(openrc("OS_AUTH_URL", keystone.URL), sockets, func(cfg *api.Config) {
		cfg.Endpoint = moved.URL
	}).Node(t.Context(), "node-000")
	wantRedirect(t, err, "set endpoint (METAL_ENDPOINT) to "+address)
}

// Requests that need a new token at the same time wait for the same renewal. One that is interrupted does not end those of the others.
func TestKeystone_interruptedRenewal(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T) {
		s := newSite()
		client := s.use(openrc(), func(cfg *api.Config) { cfg.Transport = far{s} })
		if _, err := client.Node(t.Context(), "node-000"); err != nil {
			t.Fatal(err)
		}
		s.keystone.RevokeTokens()
		s.keystone.SetDown(true)
		time.AfterFunc(5*time.Second, func() { s.keystone.SetDown(false) })
		first, interrupt := context.WithTimeout(t.Context(), time.Hour)
		time.AfterFunc(time.Second, interrupt)
		interrupted := make(chan error)
		go func() {
			_, err := client.Node(first, "node-000")
			interrupted <- err
		}()
		time.Sleep(100 * time.Millisecond)
		if _, err := client.Node(t.Context(), "node-001"); err != nil {
			t.Errorf("the other request: %v, interrupted: %t", err, api.IsInterrupted(err))
		}
		if err := <-interrupted; !api.IsInterrupted(err) {
			t.Errorf("the interrupted request: %v", err)
		}
	})
}

// far is a site whose Ironic answers late, so that several requests are on their way when a token ends.
type far struct{ *site }

func (f far) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := f.site.RoundTrip(r)
	if r.URL.Host == "ironic.test" {
		time.Sleep(500 * time.Millisecond)
	}
	return answer, err
}
