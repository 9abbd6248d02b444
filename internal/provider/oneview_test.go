package provider_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakehttp"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeoneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// appliance is a provider block with a complete setting oneview, changed by more settings. An empty value takes one away.
func appliance(more block) block {
	b := block{
		"endpoint": "http://ironic.example.com:6385", "oneview.endpoint": "https://oneview.invalid", "oneview.username": "admin",
		"oneview.password": "tell-nobody-44dd",
	}
	maps.Copy(b, more)
	maps.DeleteFunc(b, func(_, value string) bool { return value == "" })
	return b
}

// Wrong and missing settings name the attribute, and the variable that may stand in for it.
func TestOneViewBlock_wrongSettings(t *testing.T) {
	clearEnvironment(t)
	for _, tt := range []struct {
		name  string
		block block
		env   map[string]string
		want  []string // the attribute, then what is said
	}{
		{
			"no endpoint", appliance(block{"oneview.endpoint": ""}), nil,
			[]string{"endpoint", "Set endpoint in oneview, or ONEVIEW_ENDPOINT in the environment"},
		},
		{
			"no username", appliance(block{"oneview.username": ""}), nil,
			[]string{"username", "Set username in oneview, or ONEVIEW_USERNAME in the environment"},
		},
		{
			"no password", appliance(block{"oneview.password": ""}), nil,
			[]string{"password", "Set password in oneview, or ONEVIEW_PASSWORD in the environment"},
		},
		{
			"only an endpoint and a user in the environment",
			block{"endpoint": "http://ironic"},
			map[string]string{"ONEVIEW_ENDPOINT": "https://oneview", "ONEVIEW_USERNAME": "admin"},
			[]string{"password", "ONEVIEW_PASSWORD"},
		},
		{
			"no URL", appliance(block{"oneview.endpoint": "oneview.example.com"}), nil,
			[]string{"oneview", "such as https://oneview.example.com"},
		},
		{
			"credentials in the endpoint", appliance(block{"oneview.endpoint": "https://admin:pw@oneview"}), nil,
			[]string{"oneview", "give username and password as such"},
		},
		{"old version", appliance(block{"oneview.api_version": "200"}), nil, []string{"api_version", "must be at least 300"}},
		{
			"old version in the environment", appliance(nil),
			map[string]string{"ONEVIEW_API_VERSION": "120"},
			[]string{"oneview", "120 is too old"},
		},
		{
			"no number in the environment", appliance(nil),
			map[string]string{"ONEVIEW_API_VERSION": "new"},
			[]string{"api_version", `ONEVIEW_API_VERSION is "new"`, "must be a number such as 3800"},
		},
		{
			"no truth in the environment", appliance(nil),
			map[string]string{"ONEVIEW_INSECURE": "perhaps"},
			[]string{"insecure", `ONEVIEW_INSECURE is "perhaps"`, "must be true or false"},
		},
		{
			"verified or not", appliance(block{"oneview.insecure": "true", "oneview.cacert_file": "ca.pem"}), nil,
			[]string{"oneview", "set only one of the two"},
		},
		{
			"no such file", appliance(block{"oneview.cacert_file": "/no/such/ca.pem"}), nil,
			[]string{"oneview", "cacert_file: open /no/such/ca.pem"},
		},
		{"no certificate", appliance(block{"oneview.cacert_file": os.DevNull}), nil, []string{"oneview", "contains no PEM certificate"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			said := configured(t, tt.block)
			if len(said) != 1 || said[0].Attribute == nil {
				t.Fatalf("diagnostics %v, want one at attribute %s", said, tt.want[0])
			}
			if at := said[0].Attribute.String(); !strings.Contains(at, `"oneview"`) || !strings.Contains(at, `"`+tt.want[0]+`"`) {
				t.Errorf("the diagnostic is at %s, want %s of oneview", at, tt.want[0])
			}
			for _, text := range tt.want[1:] {
				if !strings.Contains(said[0].Detail, text) {
					t.Errorf("detail %q does not say %q", said[0].Detail, text)
				}
			}
			if strings.Contains(said[0].Summary+said[0].Detail, "tell-nobody") {
				t.Errorf("the password is in %q: %q", said[0].Summary, said[0].Detail)
			}
		})
	}
}

// An empty setting asks for all three at once.
func TestOneViewBlock_emptyNamesMissingSettings(t *testing.T) {
	clearEnvironment(t)
	said := configured(t, block{"endpoint": "http://ironic", "oneview": "{}"})
	if len(said) != 3 {
		t.Fatalf("diagnostics %v, want three", said)
	}
	for i, name := range []string{"endpoint", "username", "password"} {
		if want := "Provider setting missing: oneview." + name; said[i].Summary != want {
			t.Errorf("diagnostic %d is %q, want %q", i, said[i].Summary, want)
		}
	}
}

func TestOneViewBlock_completeSettingsNeedNoRequest(t *testing.T) {
	clearEnvironment(t)
	environment := map[string]string{
		"ONEVIEW_ENDPOINT": "https://nobody.invalid", "ONEVIEW_USERNAME": "admin", "ONEVIEW_PASSWORD": "pw", "ONEVIEW_DOMAIN": "corp",
		"ONEVIEW_API_VERSION": "3800",
		"ONEVIEW_INSECURE":    "true",
	}
	const ironic = "http://ironic"
	for _, tt := range []struct {
		name  string
		block block
		env   map[string]string
	}{
		{"block", appliance(block{"oneview.domain": "corp", "oneview.api_version": "300", "oneview.insecure": "true"}), nil},
		{"environment", block{"endpoint": ironic}, environment},
		{"environment and an empty setting", block{"endpoint": ironic, "oneview": "{}"}, environment},
		{
			"the block wins", appliance(block{"oneview.api_version": "300", "oneview.insecure": "false"}),
			map[string]string{"ONEVIEW_API_VERSION": "x", "ONEVIEW_INSECURE": "x", "ONEVIEW_ENDPOINT": "x"},
		},
		{"password in the environment", appliance(block{"oneview.password": ""}), map[string]string{"ONEVIEW_PASSWORD": "pw"}},
		{"none, and half an environment", block{"endpoint": ironic}, map[string]string{
			"ONEVIEW_USERNAME": "admin",
			"ONEVIEW_PASSWORD": "pw",
		}},
		{"unknown setting", block{"endpoint": ironic, "oneview": "?"}, nil},
		{"unknown endpoint", appliance(block{"oneview.endpoint": "?"}), nil},
		{"unknown user", appliance(block{"oneview.username": "?"}), nil},
		{"unknown password", appliance(block{"oneview.password": "?"}), nil},
		{"unknown certificate", appliance(block{"oneview.cacert_file": "?"}), nil},
		{"unknown rest", appliance(block{"oneview.domain": "?", "oneview.api_version": "?", "oneview.insecure": "?"}), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			if said := configured(t, tt.block); len(said) > 0 {
				t.Errorf("diagnostics at %v: %s", said[0].Attribute, said[0].Detail)
			}
		})
	}
}

// servers is the HCL of a data source that asks the appliance.
const servers = "data \"metal_oneview_server_hardware\" \"all\" {}\n"

func TestFakeProvider_oneViewCertificates(t *testing.T) {
	s := site.StartFake(t, nil)
	o := site.StartOneView(t, nil, 1)
	other, err := fakehttp.New()
	if err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(t.TempDir(), "wrong.pem")
	if err := os.WriteFile(wrong, other.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	config := func(more string) string {
		return s.Provider(fmt.Sprintf("oneview = {\n    endpoint = %q\n    username = %q\n    password = %q\n    %s\n  }", o.Endpoint,
			o.Username, o.Password, more)) + servers
	}
	refused := said("certificate signed by unknown authority", "Set cacert_file to the certificate of the authority that signed "+
		"the appliance's")
	test(t,
		resource.TestStep{Config: config(""), ExpectError: refused},
		resource.TestStep{Config: config(fmt.Sprintf("cacert_file = %q", wrong)), ExpectError: refused},
		resource.TestStep{Config: config(fmt.Sprintf("cacert_file = %q", o.CACertFile))},
		resource.TestStep{Config: config(`insecure = true`)},
	)
}

// The environment can hold everything, and no secret is in any file, output or log.
func TestFakeProvider_oneViewEnvironment(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	o := site.StartOneView(t, nil, 1)
	w := acctest.NewWorkspace(t, s.Provider()+servers+"output \"uris\" {\n  value = data.metal_oneview_server_hardware.all.uris\n}\n")
	o.Setenv(w.Setenv)
	w.Setenv("TF_LOG", "TRACE")
	w.Setenv("TF_LOG_PATH", filepath.Join(w.Dir, "trace.log"))
	output := w.Must("apply", "-auto-approve")
	if !strings.Contains(output, o.Blades.Hardware[0]) {
		t.Errorf("the appliance was not asked:\n%s", output)
	}
	log, err := os.ReadFile(filepath.Join(w.Dir, "trace.log"))
	if err != nil || !strings.Contains(string(log), "request to OneView") {
		t.Fatalf("the log does not show the provider's requests (%v), so it proves nothing", err)
	}
	for what, text := range map[string]string{"output": output, "state": w.State(), "log": string(log)} {
		if strings.Contains(text, o.Password) {
			t.Errorf("the password is in the %s", what)
		}
	}
	if open := o.Fake.Sessions(); open > 0 {
		t.Errorf("%d sessions are left open", open)
	}
}

func TestFakeProvider_oneViewRefusedCredentials(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	o := site.StartOneView(t, &fakeoneview.Server{Domain: "corp"}, 1)
	w := acctest.NewWorkspace(t, s.Provider(`oneview = { domain = "elsewhere" }`)+servers)
	o.Setenv(w.Setenv)
	output, code := w.Run("plan")
	if want := said("log in to OneView as ironic of domain elsewhere", "Check username, password and domain"); code == 0 ||
		!want.MatchString(output) {
		t.Errorf("exit code %d:\n%s", code, output)
	}
	w.Configure(s.Provider(`oneview = { domain = "corp", password = "wrong-55ee" }`) + servers)
	output, code = w.Run("plan")
	if want := said("log in to OneView as ironic of domain corp", "Check username, password and domain"); code == 0 ||
		!want.MatchString(output) {
		t.Errorf("exit code %d:\n%s", code, output)
	}
	if strings.Contains(output, "wrong-55ee") || strings.Contains(output, o.Password) {
		t.Errorf("the password is in the output:\n%s", output)
	}
	w.Configure(s.Provider(`oneview = { domain = "corp" }`) + servers)
	w.Must("plan")
}

// The error names a server that is not an appliance or not supported.
func TestFakeProvider_otherServerAtOneViewEndpoint(t *testing.T) {
	s := site.StartFake(t, nil)
	old := site.StartOneView(t, &fakeoneview.Server{CurrentVersion: 500, MinimumVersion: 300}, 1)
	for name, tt := range map[string]struct{ settings, want string }{
		"another kind": {
			fmt.Sprintf("oneview = {\n    endpoint = %q\n    username = \"u\"\n    password = \"p\"\n  }", s.Endpoint),
			"not from OneView",
		},
		"no server": {
			"oneview = {\n    endpoint = \"http://127.0.0.1:1\"\n    username = \"u\"\n    password = \"p\"\n  }",
			"connection refused",
		},
		"too old for us": {old.Setting(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			step := resource.TestStep{Config: s.Provider(tt.settings) + servers}
			if tt.want != "" {
				step.ExpectError = said(tt.want)
			}
			test(t, step)
		})
	}
}

// profiled is the HCL of a host on a blade of an appliance, and of its server profile.
func profiled(s *site.Site, o *site.OneView) string {
	return fmt.Sprintf(`resource "metal_host" "h" {
  name        = %q
  driver      = "fake-hardware"
  driver_info = {
    server_hardware_uri = %q
    dynamic_allocation  = true
  }
  capabilities = { server_profile_template_uri = %q }
}
resource "metal_oneview_profile" "p" {
  node_id = metal_host.h.id
}
`, s.Name("h"), o.Blades.Hardware[0], o.Blades.TemplateURI)
}

// An appliance that something else of the same configuration makes is not known while planning: the plan works all the same.
func TestAccProvider_oneViewKnownAfterApply(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	endpoint := fmt.Sprintf("resource \"terraform_data\" \"site\" {\n  input = %q\n}\n", o.Endpoint)
	block := s.Provider(fmt.Sprintf("oneview = {\n    endpoint = terraform_data.site.output\n    username = %q\n    password = %q\n "+
		"   cacert_file = %q\n  }", o.Username, o.Password, o.CACertFile))
	w := acctest.NewWorkspace(t, endpoint+block+profiled(s, o))
	w.Must("apply", "-auto-approve")
	if len(o.Profiles()) != 1 {
		t.Errorf("there are profiles %+v", o.Profiles())
	}
	if output, changes := w.Plan(); changes {
		t.Errorf("the plan is not empty:\n%s", output)
	}
	w.Must("destroy", "-auto-approve")

	w = acctest.NewWorkspace(t, endpoint+block+servers)
	output, code := w.Run("plan")
	if want := said("configuration is not known yet: oneview.endpoint depends on something that does not exist yet",
		"Apply what it depends on first, with -target"); code == 0 || !want.MatchString(output) {
		t.Errorf("exit code %d:\n%s", code, output)
	}
}
