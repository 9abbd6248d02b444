package keystonetest_test

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

var update = flag.Bool("update", false, "write the tables of rights")

// Ironic gives each role the rights that the table says. The guide "What a user may do" shows the table.
func TestKeystone_rights(t *testing.T) {
	t.Parallel()
	s := start(t, ironicVariable)
	s.compareRights(t, "")
}

// So does an Ironic with the policy that was the default before 2023.
func TestKeystone_rightsOfLegacyPolicy(t *testing.T) {
	t.Parallel()
	s := start(t, legacyVariable)
	s.compareRights(t, "-legacy")
}

// groups are the relations of a user to a node, and the roles in each: a role includes those after it.
var groups = []struct {
	name, prefix string
	roles        []string
}{
	{"system", "system-", []string{"admin", "member", "reader"}},
	{"owner", "a-", []string{"admin", "manager", "member", "reader"}},
	{"lessee", "b-", []string{"admin", "manager", "member", "reader"}},
	{"other", "none-", []string{"admin"}},
}

// compareRights compares the rights that Ironic gives with the table of this version.
func (s *openstack) compareRights(t *testing.T, policy string) {
	version := "21.4"
	if s.Newest() > 82 {
		version = "39"
	}
	file := filepath.Join("testdata", "rights-"+version+policy+".txt")
	got := s.rights(t)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, diff := range [][3]string{{"Ironic gives", got, string(want)}, {"the table has", string(want), got}} {
		for line := range strings.Lines(diff[1]) {
			if !strings.Contains(diff[2], line) {
				t.Errorf("%s: %s", diff[0], line)
			}
		}
	}
}

// rights returns a line for each deed: who may do it, the rules that decide, and the requests.
func (s *openstack) rights(t *testing.T) string {
	var mu sync.Mutex
	may := map[string]map[string]bool{} // deed, user
	rules := map[string]map[string]bool{}
	t.Run("roles", func(t *testing.T) {
		for _, g := range groups {
			for _, role := range g.roles {
				user := g.prefix + role
				t.Run(user, func(t *testing.T) {
					t.Parallel()
					allowed, refusedBy := s.try(t, user)
					mu.Lock()
					defer mu.Unlock()
					for deed, yes := range allowed {
						if may[deed] == nil {
							may[deed], rules[deed] = map[string]bool{}, map[string]bool{}
						}
						may[deed][user] = yes
						maps.Copy(rules[deed], refusedBy[deed])
					}
				})
			}
		}
	})
	var b strings.Builder
	for _, deed := range deeds {
		if may[deed.what] == nil {
			continue // this version cannot
		}
		cells := []string{deed.what}
		for _, g := range groups {
			cells = append(cells, g.name+" "+least(g.prefix, g.roles, may[deed.what]))
		}
		fmt.Fprintf(&b, "%s | %s | %s\n", strings.Join(cells, " | "), strings.Join(slices.Sorted(maps.Keys(rules[deed.what])),
			" "), deed.String())
	}
	return b.String()
}

// least names the least of the roles that have a right: those above have it, too. If they do not, it names all that have it.
func least(prefix string, roles []string, may map[string]bool) string {
	var have []string
	for _, role := range roles {
		if may[prefix+role] {
			have = append(have, role)
		}
	}
	switch {
	case len(have) == 0:
		return "none"
	case have[len(have)-1] == roles[len(have)-1]:
		return have[len(have)-1]
	}
	return "only " + strings.Join(have, ", ")
}

// try does deeds as a user, by default all, on a node of its own. It reports which are allowed, and which rules refuse the others.
func (s *openstack) try(t *testing.T, user string, only ...string) (allowed map[string]bool, refusedBy map[string]map[string]bool) {
	own := &openstack{site.StartAt(t, s.Endpoint, tokenOf(t, "system-admin")), t}
	scene := own.scene(t, user)
	token := tokenOf(t, user)
	newest := own.Newest()
	allowed, refusedBy = map[string]bool{}, map[string]map[string]bool{}
	for _, deed := range deeds {
		if deed.since > newest || len(only) > 0 && !slices.Contains(only, deed.what) {
			continue
		}
		allowed[deed.what], refusedBy[deed.what] = true, map[string]bool{}
		for _, r := range deed.requests {
			status, answer := own.ask(t, token, scene, r)
			if !refused(status, answer) {
				continue
			}
			allowed[deed.what] = false
			for _, rule := range ruleName.FindAllString(answer, -1) {
				refusedBy[deed.what][rule] = true
			}
		}
	}
	return allowed, refusedBy
}

var ruleName = regexp.MustCompile(`baremetal:[a-z_:]*[a-z]`)

// refused reports whether an answer is a refusal by Ironic's policy. Machines that the user may not see do not exist, and a rule that
// needs another scope answers 500 (reference/keystone.md#scopes).
func refused(status int, answer string) bool {
	switch status {
	case http.StatusForbidden:
		return true
	case http.StatusNotFound:
		return !strings.Contains(answer, "inventory record")
	case http.StatusInternalServerError:
		return strings.Contains(answer, "requires a scope of") || strings.Contains(answer, "disallowed by policy")
	}
	return false
}

// ask sends a request of a user, again while the node is locked. What it makes is removed.
func (s *openstack) ask(t *testing.T, token string, scene *strings.Replacer, r ask) (status int, answer string) {
	t.Helper()
	header := http.Header{"X-Auth-Token": {token}, "X-Openstack-Ironic-Api-Version": {"latest"}}
	site.Until(t, "the lock of the node to end", func() bool {
		resp, text := send(t, r.method, s.Endpoint+"/v1/"+scene.Replace(r.path), header, r.content(scene))
		status, answer = resp.StatusCode, string(text)
		return !strings.Contains(answer, "is locked")
	})
	if status == http.StatusUnauthorized || status == http.StatusNotAcceptable {
		t.Fatalf("%s: %d %s", r, status, answer)
	}
	if status == http.StatusCreated && r.method == http.MethodPost && !strings.Contains(r.path, "{") {
		s.CallAt("latest", http.MethodDelete, r.path+"/"+made(answer), nil)
	}
	return status, answer
}
