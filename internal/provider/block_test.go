package provider_test

import (
	"strings"
	"testing"
)

// Wrong and missing settings name the attribute, and the variable that may stand in for it.
func TestProviderBlock_wrongSettings(t *testing.T) {
	clearEnvironment(t)
	const url = "http://ironic.example.com:6385"
	for _, tt := range []struct {
		name  string
		block block
		env   map[string]string
		want  []string // the attribute, then what is said
	}{
		{"no endpoint", block{}, nil, []string{"endpoint", "Set endpoint in the provider block, or METAL_ENDPOINT in the environment"}},
		{"endpoint without scheme", block{"endpoint": "ironic.example.com:6385"}, nil, []string{"endpoint", "METAL_ENDPOINT"}},
		{
			"endpoint of another kind",
			block{"endpoint": "ftp://ironic.example.com"},
			nil,
			[]string{"endpoint", "must begin with http:// or https://"},
		},
		{"endpoint of a file", block{}, map[string]string{"METAL_ENDPOINT": url + "\n"}, []string{"endpoint", "white space"}},
		{
			"password of a file",
			block{"endpoint": url},
			map[string]string{"METAL_USERNAME": "admin", "METAL_PASSWORD": "s3cret\n"},
			[]string{"password", "trimspace(password), or correct METAL_PASSWORD"},
		},
		{
			"user of a file",
			block{"endpoint": url, "username": "admin\n", "password": "x"},
			nil,
			[]string{"username", "trimspace(username), or correct METAL_USERNAME"},
		},
		{"endpoint without host", block{"endpoint": "http://:6385"}, nil, []string{"endpoint", "must have a host"}},
		{"no URL at all", block{"endpoint": "http://[::1"}, nil, []string{"endpoint", "brackets"}},
		{"empty endpoint", block{"endpoint": ""}, nil, []string{"endpoint", "METAL_ENDPOINT"}},
		{
			"credentials in the endpoint",
			block{"endpoint": "http://admin:pw@ironic"},
			nil,
			[]string{"endpoint", "contains credentials; use username and password"},
		},
		{
			"endpoint in the environment",
			block{},
			map[string]string{"METAL_ENDPOINT": "ironic:6385"},
			[]string{"endpoint", `"ironic:6385"`, "METAL_ENDPOINT"},
		},
		{"the other variable", block{}, map[string]string{"IRONIC_ENDPOINT": "ironic:6385"}, []string{"endpoint", `"ironic:6385"`}},

		{
			"unknown authentication",
			block{"endpoint": url, "auth_type": "kerberos"},
			nil,
			[]string{"auth_type", `"none" "http_basic" "keystone"`},
		},
		{
			"basic without user",
			block{"endpoint": url, "auth_type": "http_basic", "password": "pw"},
			nil,
			[]string{"username", "METAL_USERNAME"},
		},
		{"basic without password", block{"endpoint": url, "username": "admin"}, nil, []string{"password", "METAL_PASSWORD"}},
		{
			"basic by the environment",
			block{"endpoint": url},
			map[string]string{"METAL_USERNAME": "admin"},
			[]string{"password", "METAL_PASSWORD"},
		},
		{
			"password with none",
			block{"endpoint": url, "auth_type": "none", "password": "pw"},
			nil,
			[]string{"password", `auth_type is "none"`},
		},
		{
			"password with keystone",
			block{"auth_type": "keystone", "password": "pw"},
			nil,
			[]string{"password", "credentials come from clouds.yaml or the OS_* variables"},
		},
		{"keystone without cloud", block{"auth_type": "keystone"}, nil, []string{"cloud", "OS_CLOUD", "OS_AUTH_URL"}},
		{
			"region without keystone",
			block{"endpoint": url, "auth_type": "none", "region": "north"},
			nil,
			[]string{"region", "belongs to auth_type = \"keystone\"; auth_type is \"none\""},
		},
		{"interface without keystone", block{
			"endpoint": url, "auth_type": "http_basic", "interface": "internal", "username": "a",
			"password": "pw",
		}, nil, []string{"interface", "belongs to auth_type = \"keystone\""}},
		{
			"cloud without keystone",
			block{"endpoint": url, "auth_type": "none", "cloud": "site"},
			nil,
			[]string{"cloud", "belongs to auth_type = \"keystone\""},
		},
		{"unknown interface", block{"cloud": "site", "interface": "private"}, nil, []string{"interface", `"public" "internal" "admin"`}},

		{"certificate without key", block{"endpoint": url, "client_cert_file": "c.pem"}, nil, []string{"client_key_file", "go together"}},
		{"key without certificate", block{"endpoint": url, "client_key_file": "k.pem"}, nil, []string{"client_cert_file", "go together"}},

		{"microversion", block{"endpoint": url, "microversion": "82"}, nil, []string{"microversion", `such as "1.82"`}},
		{"microversion of another major", block{"endpoint": url, "microversion": "2.1"}, nil, []string{"microversion", `such as "1.82"`}},
		{
			"request_timeout without unit",
			block{"endpoint": url, "request_timeout": "60"},
			nil,
			[]string{"request_timeout", "must be a duration such as 30s or 5m, at least 1s"},
		},
		{"request_timeout too short", block{"endpoint": url, "request_timeout": "10ms"}, nil, []string{"request_timeout", "at least 1s"}},
		{"api_timeout negative", block{"endpoint": url, "api_timeout": "-5m"}, nil, []string{"api_timeout", "at least 0s"}},
		{"poll_interval too short", block{"endpoint": url, "poll_interval": "1ms"}, nil, []string{"poll_interval", "at least 50ms"}},
		{
			"number of hosts in the environment",
			block{"endpoint": url},
			map[string]string{"MAX_CONCURRENT_PROVISIONING_HOSTS": "many"},
			[]string{"max_concurrent", `MAX_CONCURRENT_PROVISIONING_HOSTS is "many"`, "must be a whole number, 0 for no limit"},
		},
		{
			"negative number in the environment",
			block{"endpoint": url},
			map[string]string{"MAX_CONCURRENT_PROVISIONING_HOSTS": "-1"},
			[]string{"max_concurrent", `MAX_CONCURRENT_PROVISIONING_HOSTS is "-1"`},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			said := configured(t, tt.block)
			if len(said) != 1 || said[0].Attribute == nil {
				t.Fatalf("diagnostics %v, want one at attribute %s", said, tt.want[0])
			}
			if at := said[0].Attribute.String(); !strings.Contains(at, tt.want[0]) {
				t.Errorf("the diagnostic is at %s, want %s", at, tt.want[0])
			}
			for _, text := range tt.want[1:] {
				if !strings.Contains(said[0].Detail, text) {
					t.Errorf("detail %q does not say %q", said[0].Detail, text)
				}
			}
		})
	}
}

func TestProviderBlock_completeSettingsNeedNoRequest(t *testing.T) {
	clearEnvironment(t)
	const url = "https://nobody.invalid:6385/v1/" // a request to it would fail
	for _, tt := range []struct {
		name  string
		block block
		env   map[string]string
	}{
		{"endpoint", block{"endpoint": url}, nil},
		{"endpoint in the environment", block{}, map[string]string{"METAL_ENDPOINT": url}},
		{"the other variable", block{}, map[string]string{"IRONIC_ENDPOINT": url}},
		{"the first variable wins", block{}, map[string]string{"METAL_ENDPOINT": url, "IRONIC_ENDPOINT": "wrong"}},
		{"the block wins", block{"endpoint": url}, map[string]string{"METAL_ENDPOINT": "wrong"}},
		{"basic", block{"endpoint": url, "username": "admin", "password": "pw"}, nil},
		{"basic, password in the environment", block{"endpoint": url, "username": "admin"}, map[string]string{"METAL_PASSWORD": "pw"}},
		{"none, whatever the environment says", block{"endpoint": url, "auth_type": "none"}, map[string]string{
			"METAL_USERNAME": "admin",
			"OS_CLOUD":       "site",
		}},
		{"keystone by cloud", block{"cloud": "site"}, nil},
		{"keystone by the environment", block{}, map[string]string{"OS_CLOUD": "site"}},
		{"keystone by variables", block{}, map[string]string{"OS_AUTH_URL": "http://keystone"}},
		{"keystone with region and interface", block{"cloud": "site", "region": "north", "interface": "internal"}, nil},
		{"keystone with an unknown interface", block{"cloud": "site", "interface": "?"}, nil},
		{
			"basic beside an openrc",
			block{"endpoint": url, "username": "admin", "password": "pw"},
			map[string]string{"OS_AUTH_URL": "http://keystone", "OS_USERNAME": "x"},
		},
		{"keystone with an endpoint", block{"cloud": "site", "endpoint": url}, nil},
		{"files that are not there", block{
			"endpoint": url, "cacert_file": "/none.pem", "client_cert_file": "/none.pem",
			"client_key_file": "/none.pem",
		}, nil},
		{
			"times",
			block{"endpoint": url, "request_timeout": "1m30s", "api_timeout": "0s", "poll_interval": "50ms", "microversion": "1.82"},
			nil,
		},
		{"number of hosts in the environment", block{"endpoint": url}, map[string]string{"MAX_CONCURRENT_PROVISIONING_HOSTS": "0"}},
		{"unknown endpoint", block{"endpoint": "?"}, nil},
		{"unknown password", block{"endpoint": url, "auth_type": "http_basic", "username": "admin", "password": "?"}, nil},
		{"unknown authentication", block{"endpoint": url, "auth_type": "?", "password": "pw"}, nil},
		{"unknown certificate", block{"endpoint": url, "client_cert_file": "?", "client_key_file": "k.pem"}, nil},
		{"unknown everything", block{
			"endpoint": "?", "cloud": "?", "microversion": "?", "request_timeout": "?", "api_timeout": "?",
			"poll_interval": "?",
		}, nil},
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
