package keystonetest_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
)

// credentials is a form in which users give their credentials.
type credentials struct {
	name, settings string            // of the provider block
	env            map[string]string // "" removes a variable of base
	clouds         string            // clouds.yaml, in the directory of the configuration
	fails          []string          // texts of the error
}

// Each usual form of openrc and clouds.yaml finds the Ironic of its region.
func TestKeystone_formsOfCredentials(t *testing.T) {
	t.Parallel()
	s := start(t, ironicVariable)
	node := s.Name("seen")
	s.node("seen")
	for _, form := range forms(t, node) {
		t.Run(form.name, func(t *testing.T) {
			t.Parallel()
			w := workspace(t, form.env, provider(form.settings)+"data \"metal_hosts\" \"h\" {\n  name_regex = "+acctest.Quoted("^"+node+
				"$")+"\n}\noutput \"found\" {\n  value = [for h in data.metal_hosts.h.hosts : \"found ${h.name}\"]\n}\n")
			if form.clouds != "" {
				w.OwnProcess() // clouds.yaml is found in the working directory
				if err := os.WriteFile(filepath.Join(w.Dir, "clouds.yaml"), []byte(form.clouds), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if len(form.fails) > 0 {
				output := acctest.Fails(t, w, []string{"plan"}, form.fails...)
				acctest.NeverMention(t, output, password)
				return
			}
			acctest.Mention(t, w.Must("plan"), "found "+node)
		})
	}
}

// forms returns the forms of credentials of a-member, and of an operator, with a name for what is made.
func forms(t *testing.T, unique string) []credentials {
	t.Helper()
	url, secure := os.Getenv(identityVariable), os.Getenv(secureVariable)
	rc := func(changes map[string]string) map[string]string {
		all := openrc("a-member")
		maps.Copy(all, changes)
		maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
		return all
	}
	byID, byName := applicationCredential(t, "a-member", unique)
	bare := map[string]string{"OS_AUTH_URL": url, "OS_REGION_NAME": "north"}
	with := func(changes map[string]string) map[string]string {
		all := maps.Clone(bare)
		maps.Copy(all, changes)
		return all
	}
	cloud := func(rest string) string {
		return "clouds:\n  site:\n    auth: {auth_url: " + acctest.Quoted(url) + ", username: a-member, password: " + password +
			", user_domain_name: Default, project_name: tenant-a, project_domain_name: Default}\n" + rest
	}
	site := map[string]string{"OS_CLOUD": "site"}
	return []credentials{
		{name: "guide of OpenStack", env: rc(nil)},
		{name: "Kolla", env: rc(map[string]string{
			"OS_TENANT_NAME": "tenant-a", "OS_INTERFACE": "internal",
			"OS_ENDPOINT_TYPE": "internalURL", "OS_AUTH_PLUGIN": "password", "OS_AUTH_URL": strings.TrimSuffix(url, "/v3"),
		})},
		{name: "Horizon", env: rc(map[string]string{
			"OS_PROJECT_ID": id(t, "tenant-a"), "OS_PROJECT_DOMAIN_NAME": "",
			"OS_PROJECT_DOMAIN_ID": "default", "OS_INTERFACE": "public",
		})},
		{name: "IDs", env: with(map[string]string{
			"OS_USER_ID": id(t, "a-member"), "OS_PASSWORD": password,
			"OS_PROJECT_ID": id(t, "tenant-a"),
		})},
		{name: "whole system", env: openrc("system-reader")},
		{name: "token", env: with(map[string]string{
			"OS_AUTH_TYPE": "token", "OS_TOKEN": tokenOf(t, "a-member"),
			"OS_PROJECT_NAME": "tenant-a", "OS_PROJECT_DOMAIN_NAME": "Default",
		})},
		{name: "application credential by ID", env: with(byID)},
		{name: "application credential by name", env: with(byName)},
		{name: "internal interface", env: rc(map[string]string{"OS_REGION_NAME": "south", "OS_INTERFACE": "internal"})},
		{name: "region and interface of the provider block", env: rc(nil), settings: "region = \"south\"\n  interface = \"internal\""},
		{name: "dead endpoint", env: rc(map[string]string{"OS_REGION_NAME": "south"}), fails: []string{"127.0.0.1:1"}},
		{name: "region that is not there", env: rc(map[string]string{"OS_REGION_NAME": "west"}), fails: []string{"west"}},
		{
			name: "endpoint beside a wrong region",
			env:  rc(map[string]string{"OS_REGION_NAME": "west", "METAL_ENDPOINT": os.Getenv(ironicVariable)}),
		},
		{name: "TLS", env: rc(map[string]string{"OS_AUTH_URL": secure, "OS_REGION_NAME": "secure", "OS_CACERT": file("ca.pem")})},
		{
			name: "TLS without the authority", env: rc(map[string]string{"OS_AUTH_URL": secure, "OS_REGION_NAME": "secure"}),
			fails: []string{"certificate"},
		},
		{name: "wrong password", env: rc(map[string]string{"OS_PASSWORD": "another"}), fails: []string{"401"}},
		{name: "clouds.yaml", env: site, clouds: cloud("    region_name: north\n")},
		{name: "clouds.yaml with regions", env: site, clouds: cloud("    regions: [north, south]\n")},
		{name: "clouds.yaml with an endpoint", env: site, clouds: cloud("    region_name: west\n    baremetal_endpoint_override: " +
			acctest.Quoted(os.Getenv(ironicVariable)) + "\n")},
		{name: "clouds.yaml with an interface", env: site, clouds: cloud("    region_name: south\n    interface: internal\n")},
		{
			name: "clouds.yaml without the password", env: map[string]string{"OS_CLOUD": "site", "OS_PASSWORD": password},
			clouds: strings.Replace(cloud("    region_name: north\n"), " password: "+password+",", "", 1),
		},
	}
}

// applicationCredential makes an application credential of a user, and returns the variables for it by ID and by name.
func applicationCredential(t *testing.T, user, name string) (byID, byName map[string]string) {
	t.Helper()
	users := os.Getenv(identityVariable) + "/users/" + id(t, user) + "/application_credentials"
	header := http.Header{"X-Auth-Token": {tokenOf(t, user)}}
	_, text := request(t, http.MethodPost, users, header,
		map[string]any{"application_credential": map[string]any{"name": name, "secret": password}})
	var answer struct {
		Credential struct{ ID string } `json:"application_credential"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { request(t, http.MethodDelete, users+"/"+answer.Credential.ID, header, nil) })
	byID = map[string]string{
		"OS_AUTH_TYPE": "v3applicationcredential", "OS_APPLICATION_CREDENTIAL_ID": answer.Credential.ID,
		"OS_APPLICATION_CREDENTIAL_SECRET": password,
	}
	byName = map[string]string{
		"OS_AUTH_TYPE": "v3applicationcredential", "OS_APPLICATION_CREDENTIAL_NAME": name, "OS_APPLICATION_CREDENTIAL_SECRET": password,
		"OS_USERNAME": user, "OS_USER_DOMAIN_NAME": "Default",
	}
	return byID, byName
}
