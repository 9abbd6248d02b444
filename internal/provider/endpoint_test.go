package provider_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// using is the HCL of a provider block with settings, and of a data source that uses it.
func using(settings ...string) string {
	return "provider \"metal\" {\n  " + strings.Join(settings, "\n  ") + "\n}\ndata \"metal_hosts\" \"all\" {}\n"
}

// host is the HCL of a host that is only enrolled.
func host(name string) string {
	return fmt.Sprintf("resource \"metal_host\" \"h\" {\n  name = %q\n  driver = \"fake-hardware\"\n  target_state = \"enroll\"\n}\n", name)
}

// said matches a text that the CLI may have broken into lines.
func said(texts ...string) *regexp.Regexp {
	var parts []string
	for _, text := range texts {
		parts = append(parts, strings.ReplaceAll(regexp.QuoteMeta(text), " ", `[\s│]+`))
	}
	return regexp.MustCompile("(?i)" + strings.Join(parts, `[\s\S]*`))
}

// test runs steps against the provider in this process, in parallel with other tests.
func test(t *testing.T, steps ...resource.TestStep) {
	t.Helper()
	acctest.Test(t, steps...)
}

// website is a server that is not Ironic.
func website(t *testing.T, status int, kind, body string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the client may be gone
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestFakeProvider_otherServerAtEndpoint(t *testing.T) {
	const check = "Check endpoint (METAL_ENDPOINT)"
	for _, tt := range []struct {
		name, endpoint string
		want           []string
	}{
		{
			"404", website(t, http.StatusNotFound, "text/plain", "404 page not found"),
			[]string{"404 page not found", "The server that answers there is not Ironic", check},
		},
		{
			"a web page", website(t, http.StatusOK, "text/html", "<html><head><title>Welcome to nginx!</title></head></html>"),
			[]string{"is not JSON", check},
		},
		{
			"an error page", website(t, http.StatusBadGateway, "text/html", "<html><head><title>502 Bad Gateway</title></head></html>"),
			[]string{
				"a web page, not the API: 502 Bad Gateway", "answered 502 in place of Ironic", "change endpoint (METAL_ENDPOINT)",
			},
		},
		{
			"another API", website(t, http.StatusOK, "application/json", `{"versions": []}`),
			[]string{"the answer contains no API version", check},
		},
		{"no server", "http://127.0.0.1:1", []string{
			"connection refused", "Is Ironic running there, and can this machine reach it", check,
			"To wait until Ironic has started, set api_timeout",
		}},
		// in other words where no name server answers
		{"no such host", "http://ironic.invalid:6385", []string{"host name ironic.invalid", "endpoint (METAL_ENDPOINT)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			site.StartFake(t, nil) // skips where no acceptance tests are asked for
			test(t, resource.TestStep{
				Config:      using(fmt.Sprintf("endpoint = %q", tt.endpoint)),
				ExpectError: said(append([]string{tt.endpoint}, tt.want...)...),
			})
		})
	}
}

// A wrong endpoint is one error for each resource, whatever its attributes need; Terraform 1.16 shows equal ones once. internal/ironic tests that it comes within seconds.
func TestFakeProvider_refusedConnectionIsOneErrorAResource(t *testing.T) {
	t.Parallel()
	site.StartFake(t, nil) // skips where no acceptance tests are asked for
	w := acctest.NewWorkspace(t, "provider \"metal\" {\n  endpoint = \"http://127.0.0.1:1\"\n}\nresource \"metal_host\" \"h\" {\n  count "+
		"= 20\n  name = \"h-${count.index}\"\n"+
		"  driver = \"fake-hardware\"\n  resource_class = \"c\"\n  traits = [\"CUSTOM_A\"]\n}\n")
	output := acctest.Fails(t, w, []string{"plan"}, "Could not ask Ironic for its API version",
		"Ironic at http://127.0.0.1:1/v1/ does not answer: connection refused", "Is Ironic running there")
	if n := strings.Count(output, "Error:"); n != 20 && n != 1 {
		t.Errorf("%d errors for 20 hosts:\n%s", n, output)
	}
}

func TestFakeProvider_apiTimeoutWaitsForStart(t *testing.T) {
	var asked atomic.Int32
	s := site.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		switch n := asked.Add(1); {
		case n <= 2:
			return &fakeironic.Rejection{Status: http.StatusNotFound}
		case n <= 5 && r.URL.Path == "/v1/drivers": // the API answers, but no conductor is there yet
			return &fakeironic.Rejection{Status: http.StatusOK, Body: `{"drivers": []}`}
		}
		return nil
	}})
	test(t, resource.TestStep{Config: s.Provider(`api_timeout = "1m"`) + "data \"metal_hosts\" \"all\" {}\n"})
}

// An endpoint that something else of the same configuration makes is not known while planning: the plan works all the same.
func TestAccProvider_endpointKnownAfterApply(t *testing.T) {
	s := site.Start(t, nil)
	config := "resource \"terraform_data\" \"site\" {\n  input = " + fmt.Sprintf("%q", s.Endpoint) + "\n}\n" +
		"provider \"metal\" {\n  endpoint = terraform_data.site.output\n  auth_type = \"none\"\n  poll_interval = \"200ms\"\n}\n"
	test(t,
		resource.TestStep{
			Config: config + host(s.Name("h")),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction("metal_host.h", plancheck.ResourceActionCreate),
			}},
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue("metal_host.h", tfjsonpath.New("provision_state"), knownvalue.StringExact("enroll")),
			},
		},
	)
}

func TestAccProvider_dataSourceAtUnknownEndpoint(t *testing.T) {
	s := site.Start(t, nil)
	test(t, resource.TestStep{
		Config: "resource \"terraform_data\" \"site\" {\n  input = " + fmt.Sprintf("%q", s.Endpoint) + "\n}\n" +
			using(`endpoint = terraform_data.site.output`),
		ExpectError: said("The provider's configuration is not known yet: endpoint depends on something that does not exist yet",
			"Apply what it depends on first, with -target, or set the value directly"),
	})
}

// secured is an Ironic that asks for a name and a password.
func secured(t *testing.T) (endpoint, username, password, name string) {
	t.Helper()
	if os.Getenv("METAL_ACC_ENDPOINT") == "" {
		s := site.StartFake(t, &fakeironic.Server{Username: "admin", Password: "tell-nobody-77aa"})
		return s.Endpoint, s.Fake.Username, s.Fake.Password, s.Name("h")
	}
	endpoint = os.Getenv("METAL_ACC_BASIC_ENDPOINT")
	if endpoint == "" {
		t.Fatal("METAL_ACC_ENDPOINT is set, so METAL_ACC_BASIC_ENDPOINT must be too")
	}
	return endpoint, os.Getenv("METAL_ACC_BASIC_USERNAME"), os.Getenv("METAL_ACC_BASIC_PASSWORD"), site.Start(t, nil).Name("h")
}

// basic are the settings for HTTP basic authentication.
func basic(endpoint, username, password string) string {
	return fmt.Sprintf("provider \"metal\" {\n  endpoint = %q\n  username = %q\n  password = %q\n  poll_interval = \"200ms\"\n}\n",
		endpoint, username, password)
}

func TestAccProvider_httpBasic(t *testing.T) {
	endpoint, username, password, name := secured(t)
	config := basic(endpoint, username, password) + strings.Replace(host(name), "enroll", "manageable", 1)
	test(t,
		resource.TestStep{Config: config + "data \"metal_host\" \"h\" {\n  id = metal_host.h.id\n}\n"},
		resource.TestStep{ResourceName: "metal_host.h", ImportState: true, ImportStateVerify: true},
	)
}

func TestAccProvider_refusedCredentials(t *testing.T) {
	endpoint, username, password, _ := secured(t)
	refused := said("401", "Ironic does not accept the credentials. Check auth_type, username (METAL_USERNAME) and password "+
		"(METAL_PASSWORD)")
	all := "data \"metal_hosts\" \"all\" {}\n"
	test(t,
		resource.TestStep{Config: basic(endpoint, username, "wrong") + all, ExpectError: refused},
		resource.TestStep{Config: using(fmt.Sprintf("endpoint = %q", endpoint), `auth_type = "none"`), ExpectError: refused},
		resource.TestStep{Config: basic(endpoint, username, password) + all},
	)
}

// The environment can hold everything, and then no secret is in any file.
func TestAccProvider_environment(t *testing.T) {
	t.Parallel()
	endpoint, username, password, name := secured(t)
	w := acctest.NewWorkspace(t, host(name))
	w.Setenv("METAL_ENDPOINT", endpoint)
	w.Setenv("IRONIC_ENDPOINT", "http://wrong.invalid")
	w.Setenv("METAL_USERNAME", username)
	w.Setenv("METAL_PASSWORD", password)
	w.Setenv("TF_LOG", "TRACE")
	w.Setenv("TF_LOG_PATH", filepath.Join(w.Dir, "trace.log"))
	output := w.Must("apply", "-auto-approve") + w.Must("destroy", "-auto-approve")
	if password == username {
		return // as on the real one: it cannot be told from the user name
	}
	log, err := os.ReadFile(filepath.Join(w.Dir, "trace.log"))
	if err != nil || !strings.Contains(string(log), "request to Ironic") {
		t.Fatalf("the log does not show the provider's requests (%v), so it proves nothing", err)
	}
	for what, text := range map[string]string{"output": output, "state": w.State(), "log": string(log)} {
		if strings.Contains(text, password) {
			t.Errorf("the password is in the %s", what)
		}
	}
}

func TestAccProvider_wrongEnvironment(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	w := acctest.NewWorkspace(t, s.Provider()+host(s.Name("h")))
	w.Setenv("MAX_CONCURRENT_PROVISIONING_HOSTS", "twenty")
	output, code := w.Run("plan")
	if want := said("The environment variable MAX_CONCURRENT_PROVISIONING_HOSTS is \"twenty\". It must be a whole number"); code == 0 ||
		!want.MatchString(output) {
		t.Errorf("exit code %d:\n%s", code, output)
	}
}

func TestFakeProvider_validatesOffline(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	w := acctest.NewWorkspace(t, s.Provider()+host(s.Name("h")))
	w.Must("validate")
	if asked := s.Fake.Requests(); len(asked) > 0 {
		t.Errorf("validate asked Ironic %v", asked)
	}
}

func TestFakeProvider_certificates(t *testing.T) {
	server := httptest.NewTLSServer(&fakeironic.Server{})
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	site.StartFake(t, nil) // skips where no acceptance tests are asked for
	endpoint := fmt.Sprintf("endpoint = %q", server.URL)
	test(t,
		resource.TestStep{Config: using(endpoint), ExpectError: said("certificate signed by unknown authority", "cacert_file")},
		resource.TestStep{Config: using(endpoint, `insecure = true`)},
		resource.TestStep{Config: using(endpoint, fmt.Sprintf("cacert_file = %q", file))},
		resource.TestStep{
			Config:      using(endpoint, `cacert_file = "/no/such/file.pem"`),
			ExpectError: said("cacert_file: open /no/such/file.pem: no such file"),
		},
		resource.TestStep{
			Config:      using(endpoint, `client_cert_file = "/no/c.pem"`, `client_key_file = "/no/k.pem"`),
			ExpectError: said("client_cert_file and client_key_file: open /no/c.pem"),
		},
	)
}
