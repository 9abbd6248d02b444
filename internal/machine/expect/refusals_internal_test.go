package expect

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
)

// userOf is a user of the tables of rights: tenant a owns the node, tenant b leases it.
func userOf(t *testing.T, name string) (*api.Rights, []relation) {
	t.Helper()
	where, role, _ := strings.Cut(name, "-")
	roles := []string{"reader", "member", "manager", "admin"}
	who := &api.Rights{Project: where, System: where == "sys"}
	for _, implied := range roles {
		if who.Roles = append(who.Roles, implied); implied == role {
			break
		}
	}
	if who.System {
		who.Project = ""
		return who, relationsOf(who, "node:update")
	}
	return who, relationsTo(where, &ironic.Node{Owner: "a", Lessee: "b"})
}

// What a plan foresees is what real Ironics answer, in the tables that were measured on them (reference/ironic.md#policy).
func TestGranted_foreseesWhatWasMeasured(t *testing.T) {
	t.Parallel()
	seen := 0
	columns := regexp.MustCompile(`  +`)
	for _, version := range []string{"21.4", "39"} {
		table, err := os.ReadFile("../../fake/fakeironic/testdata/rights-" + version + "-default.txt")
		if err != nil {
			t.Fatal(err)
		}
		rows := strings.Split(strings.TrimSpace(string(table)), "\n")
		users := columns.Split(rows[0], -1)
		for _, line := range rows[1:] {
			row := columns.Split(line, -1)
			rule := row[len(row)-1]
			if rule == "-" || strings.Contains(row[0], "no-owner") || strings.Contains(row[0], "owner=") {
				continue
			}
			of, known := failure.GrantOf(rule)
			if !known {
				t.Errorf("%s: nothing is known of the rule", rule)
			}
			for i, user := range users[1 : len(users)-1] {
				cell := row[i+1]
				if cell == "-" || strings.HasPrefix(user, "cloud") || cell == "500" &&
					(strings.HasPrefix(rule, "allocation") || strings.Contains(row[0], "rebuild")) {
					continue
				}
				who, related := userOf(t, user)
				if strings.HasPrefix(rule, "allocation:") && !who.System { // each project has an allocation of its own
					related = relationsOf(who, rule)
				}
				want := Yes
				if cell == "403" || cell == "500" {
					want = No
				}
				if got := to(of, who, related); got != want {
					t.Errorf("%s, %s as %s: %s, but foreseen is %d", version, row[0], user, cell, got)
				}
				seen++
			}
		}
	}
	if seen < 800 {
		t.Errorf("only %d cells have a rule", seen)
	}
}

func TestGranted_isUnknown(t *testing.T) {
	t.Parallel()
	verbs, _ := failure.GrantOf(RuleProvision)
	both := []relation{ofOwner, ofLessee}
	for name, tt := range map[string]struct {
		roles   []string
		related []relation
		want    Answer
	}{
		"a member, owner or lessee":         {[]string{"member"}, both, Unknown},
		"a manager, owner or lessee":        {[]string{"manager"}, both, Yes},
		"a reader, owner or lessee":         {[]string{"reader"}, both, No},
		"a member of many leased nodes":     {[]string{"member"}, []relation{ofLessee, ofLessee}, No},
		"no relation":                       {[]string{"reader"}, nil, Unknown},
		"a service":                         {[]string{"service"}, both, Unknown},
		"a role of the site":                {[]string{"operator"}, both, No},
		"a role of the site beside a usual": {[]string{"operator", "Manager"}, both, Yes},
	} {
		if got := to(verbs, &api.Rights{Project: "a", Roles: tt.roles}, tt.related); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
	if related := relationsOf(&api.Rights{Roles: []string{"admin"}}, "node:update"); related != nil {
		t.Errorf("a user of a domain has the relations %v", related)
	}
}
