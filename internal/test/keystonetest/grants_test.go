package keystonetest_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// grant replaces the rules of Ironic's policy file, which Ironic reads at once, until the test ends. Such a test must not run in
// parallel to others.
func (s *openstack) grant(rules string) {
	s.t.Helper()
	write := func(text string) {
		if err := os.WriteFile(file("keystone-policy.yaml"), []byte(text), 0o644); err != nil { //nolint:gosec // Ironic reads it
			s.t.Fatal(err)
		}
	}
	write(rules)
	s.t.Cleanup(func() { write("{}\n") })
}

// The rules of the guide grant what it says. The lock record of the limit needs a token of the whole system, whatever the rule says.
func TestKeystone_policyGrants(t *testing.T) { //nolint:paralleltest // it changes the policy for all
	s := start(t, ironicVariable)
	rules, err := os.ReadFile("../../../examples/guides/rights/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	granted := map[string][]string{
		"a-member":  {"create, delete ports, groups", "traits", "interfaces"},
		"b-manager": {"reservation without allocation", "inventory"},
	}
	limit := "limit over all projects"
	for user, deeds := range granted {
		before, _ := s.try(t, user, append(deeds, limit)...)
		for _, deed := range deeds {
			if before[deed] {
				t.Errorf("%s: %s without the rules", user, deed)
			}
		}
	}
	chassis := "\n"
	for _, verb := range []string{"create", "get", "update", "delete"} {
		chassis += `"baremetal:chassis:` + verb + `": "role:member"` + "\n"
	}
	s.grant(string(rules) + chassis)
	site.Until(t, "Ironic to read its policy", func() bool {
		status, answer := s.ask(t, tokenOf(t, "a-member"), strings.NewReplacer("{node}", s.node("probe")),
			ask{http.MethodPut, "nodes/{node}/traits/CUSTOM_T", nil})
		return !refused(status, answer)
	})
	for user, deeds := range granted {
		after, _ := s.try(t, user, append(deeds, limit)...)
		for _, deed := range deeds {
			if !after[deed] {
				t.Errorf("%s: %s is refused despite the rules", user, deed)
			}
		}
		if after[limit] {
			t.Errorf("%s may write the lock record: correct the guide", user)
		}
	}
}
