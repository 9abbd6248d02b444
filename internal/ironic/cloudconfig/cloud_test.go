package cloudconfig_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/cloudconfig"
)

// write writes a file below a directory.
func write(t *testing.T, directory, name, text string) {
	t.Helper()
	path := filepath.Join(directory, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// internal/ironic tests what the settings make of a request for a token. This test is about files: where they are, and which one wins.
func TestRead_files(t *testing.T) {
	t.Parallel()
	const site = "clouds: {site: {profile: big, region_name: own, auth: {username: u, password: open}}}"
	for name, tt := range map[string]struct {
		files map[string]string // below the home
		env   []string          // HOME stands for the home
		want  map[string]string
		says  string
	}{
		"secure.yaml beats clouds.yaml, which beats the profile": {
			files: map[string]string{
				".config/openstack/clouds.yaml": site, ".config/openstack/secure.yaml": "clouds: {site: {auth: {password: shut}}}",
				".config/openstack/clouds-public.yaml": "public-clouds: {big: {regions: [theirs], interface: internal, auth: {auth_url: " +
					"https://k, username: nobody}}}",
			},
			want: map[string]string{
				"auth_url": "https://k", "username": "u", "password": "shut", "region_name": "own",
				"interface": "internal",
			},
		},
		"the regions of the profile": {
			files: map[string]string{
				".config/openstack/clouds.yaml": "clouds: {site: {cloud: big}}",
				".config/openstack/clouds-public.yaml": "public-clouds: {big: {regions: [{name: first, values: {interface: " +
					"admin}}, second]}}",
			},
			want: map[string]string{"region_name": "first", "interface": "admin"},
		},
		"JSON": {files: map[string]string{
			".config/openstack/clouds.json": `{"clouds": {"site": {"auth": {"project_id": 123, "password": null}, "verify": false}}}`,
		}, want: map[string]string{"project_id": "123", "password": "", "verify": "false"}},
		"XDG_CONFIG_HOME first": {
			files: map[string]string{
				".config/openstack/clouds.yaml": site,
				"x/openstack/clouds.yml":        "clouds: {site: {auth: {username: x}}}",
			}, env: []string{"XDG_CONFIG_HOME=HOME/x"},
			want: map[string]string{"username": "x"},
		},
		"a file that is named": {
			files: map[string]string{
				".config/openstack/clouds.yaml": site,
				"c":                             "clouds: {site: {auth: {username: c}}}",
				"secure.yaml":                   "clouds: {site: {auth: {password: beside}}}",
			},
			env: []string{"OS_CLIENT_CONFIG_FILE=HOME/c"}, want: map[string]string{"username": "c", "password": "beside"},
		},
		"a secure file": {
			files: map[string]string{
				"c": "clouds: {site: {auth: {username: c}}}",
				"s": "clouds: {site: {auth: {password: s}}}",
			}, env: []string{"OS_CLIENT_CONFIG_FILE=HOME/c", "OS_CLIENT_SECURE_FILE=HOME/s"},
			want: map[string]string{"password": "s"},
		},
		"a variable beats it": {
			files: map[string]string{".config/openstack/clouds.yaml": "clouds: {site: {interface: admin, " +
				"cacert: a.pem}}"}, env: []string{"OS_CLOUD=site", "OS_INTERFACE=internal", "OS_CACERT=b.pem"},
			want: map[string]string{"interface": "internal", "cacert": "b.pem"},
		},
		"a user of several projects": {
			files: map[string]string{".config/openstack/clouds.yaml": "clouds: {site: {auth: {username: u, " +
				"project_domain_name: d}}}"}, env: []string{"OS_CLOUD=site", "OS_PROJECT_NAME=p", "OS_USERNAME=other"},
			want: map[string]string{"username": "u", "project_name": "p", "project_domain_name": "d"},
		},
		"a project of another cloud": {
			files: map[string]string{".config/openstack/clouds.yaml": "clouds: {site: {auth: {username: u}}}"},
			env:   []string{"OS_CLOUD=other", "OS_PROJECT_NAME=p"}, want: map[string]string{"project_name": ""},
		},
		"a scope beside a project": {
			files: map[string]string{".config/openstack/clouds.yaml": "clouds: {site: {auth: {username: u, " +
				"system_scope: all}}}"}, env: []string{"OS_CLOUD=site", "OS_PROJECT_NAME=p"},
			want: map[string]string{"project_name": "", "system_scope": "all"},
		},
		"a credential has a project": {
			files: map[string]string{".config/openstack/clouds.yaml": "clouds: {site: {auth: {username: u, " +
				"application_credential_name: c}}}"}, env: []string{"OS_CLOUD=site", "OS_PROJECT_NAME=p"},
			want: map[string]string{"project_name": ""},
		},
		"a variable stands in": {
			files: map[string]string{".config/openstack/clouds.yaml": "clouds: {site: {interface: admin}}"},
			env:   []string{"OS_CLOUD=other", "OS_INTERFACE=internal", "OS_CACERT=b.pem"}, want: map[string]string{
				"interface": "admin",
				"cacert":    "b.pem",
			},
		},
		"a profile of no file": {
			files: map[string]string{".config/openstack/clouds.yaml": site},
			says:  `the profile "big" of cloud site is in no clouds-public.yaml`,
		},
		"no file": {says: "there is no clouds.yaml in "},
		"a secure file is wrong": {files: map[string]string{
			".config/openstack/clouds.yaml": "clouds: {site: {}}",
			".config/openstack/secure.yaml": "clouds: {site: hunter2}",
		}, says: "secure.yaml: each cloud below clouds must be a mapping"},
		"a password like an alias": {
			files: map[string]string{".config/openstack/clouds.yaml": "clouds: {site: {auth: {password: *hunter2}}}"},
			says:  "clouds.yaml is not YAML as it is meant: a text that begins with *, & or { needs quotes",
		},
		"a password like a key": {
			files: map[string]string{".config/openstack/clouds.yaml": "clouds: {site: {auth: {password: {{hunter2}}}}}"},
			says:  "a text that begins with *, & or { needs quotes",
		},
		"a line break of a secret store": {
			files: map[string]string{".config/openstack/clouds.yaml": "clouds: {site: {auth: {username: a}}}"},
			env:   []string{"OS_PASSWORD=hunter2\n"},
			says:  "OS_PASSWORD begins or ends with white space",
		},
		"tabs": {
			files: map[string]string{".config/openstack/clouds.yaml": "clouds:\n\tsite: hunter2"},
			says:  "clouds.yaml: yaml: line 2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			for file, text := range tt.files {
				write(t, home, file, text)
			}
			environ := []string{"HOME=" + home}
			for _, entry := range tt.env {
				environ = append(environ, strings.ReplaceAll(entry, "HOME/", home+"/"))
			}
			cloud, err := cloudconfig.Read("site", "", environ)
			if tt.says != "" {
				if err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("%v, want %q", err, tt.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for setting, want := range tt.want {
				if got := cloud.Get(setting); got != want {
					t.Errorf("%s is %q, want %q", setting, got, want)
				}
			}
		})
	}
}

// A message names a setting where the user finds it.
func TestSetting(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write(t, home, "c.yaml", "clouds: {site: {auth: {username: u}}}")
	environ := []string{"OS_CLIENT_CONFIG_FILE=" + home + "/c.yaml", "OS_PASSWORD=p", "OS_TENANT_NAME=t"}
	cloud, err := cloudconfig.Read("site", "", environ)
	if err != nil {
		t.Fatal(err)
	}
	for setting, want := range map[string]string{
		"username": "username of cloud site in " + home + "/c.yaml", "password": "OS_PASSWORD",
		"auth_url": "auth_url of cloud site in " + home + "/c.yaml",
	} {
		if got := cloud.Setting(setting); got != want {
			t.Errorf("%s is called %q, want %q", setting, got, want)
		}
	}
	if cloud, err = cloudconfig.Read("", "", environ); err != nil || cloud.Setting("project_name") != "OS_TENANT_NAME" ||
		cloud.Setting("auth_url") != "OS_AUTH_URL" || cloud.Place() != "the OS_* variables" {
		t.Errorf("%v: %q, %q, %q", err, cloud.Setting("project_name"), cloud.Setting("auth_url"), cloud.Place())
	}
}
