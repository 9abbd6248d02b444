package failure

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The advice names the roles that real Ironics grant a rule to, in the tables that were measured on them (reference/ironic.md#policy).
func TestGrants_areAsMeasured(t *testing.T) {
	t.Parallel()
	const order = "reader member manager admin"
	least := func(role, needs string) bool {
		return needs != "" && strings.Index(order, role) >= strings.Index(order, needs)
	}
	seen := 0
	for _, version := range []string{"21.4", "39"} {
		table, err := os.ReadFile("../../fake/fakeironic/testdata/rights-" + version + "-default.txt")
		if err != nil {
			t.Fatal(err)
		}
		rows := strings.Split(strings.TrimSpace(string(table)), "\n")
		columns := regexp.MustCompile(`  +`)
		users := columns.Split(rows[0], -1)
		for _, line := range rows[1:] {
			row := columns.Split(line, -1)
			rule := row[len(row)-1]
			// a project has a rule of its own; no row of PATCH
			if rule == "-" || strings.HasSuffix(rule, "node:create") || strings.HasPrefix(rule, "port") ||
				strings.Contains(row[0], "no-owner") {
				continue
			}
			of, known := GrantOf("baremetal:" + rule)
			if !known {
				t.Errorf("%s: nothing is known of the rule", rule)
			}
			for i, user := range users[1 : len(users)-1] {
				where, role, _ := strings.Cut(user, "-")
				if where == "cloud" { // it does not see the node
					continue
				}
				want := least(role, of.Any) || least(role, map[string]string{"sys": of.System, "a": of.Owner, "b": of.Lessee}[where])
				if strings.HasPrefix(rule, "allocation:") { // each project has an allocation of its own
					want = least(role, of.Any) || least(role, of.Owner)
				}
				cell := row[i+1]
				// for another reason
				failed := cell == "500" && (strings.HasPrefix(rule, "allocation") || strings.Contains(row[0], "rebuild"))
				if got := cell != "403" && (cell != "500" || failed); cell == "-" || got == want {
					continue
				}
				t.Errorf("%s, %s as %s: %s, but the advice is %q", version, row[0], user, cell, of.Of("node"))
			}
			seen++
		}
	}
	if seen < 80 {
		t.Errorf("only %d rows have a rule", seen)
	}
}
