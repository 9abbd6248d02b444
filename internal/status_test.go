package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// statusFile says which part of the product is tested on what, and names the families of tests: `TestAccHost` has the tests whose names
// begin with TestAccHost_. README.md and the documentation show it.
const statusFile = "../tools/parts/status.md"

// family matches the name of a test of a part of the product, up to the first underscore.
var family = regexp.MustCompile(
	`(?m)^func (Test(?:Acc|Fake|Metal|Keystone|Neutron|Prometheus|Forecast|Screen|Trace|Kill|Stop|Simulate)[A-Za-z]*)_`)

// The status names only tests that exist, and all families of tests: what is tested cannot be called missing.
func TestStatus_agreesWithTheTests(t *testing.T) {
	t.Parallel()
	exist := families(t)
	named := map[string]bool{}
	for _, row := range statusRows(t) {
		for _, name := range row.tests {
			named[name] = true
			if !exist[name] {
				t.Errorf("%s: no test is named %s_...", row.part, name)
			}
		}
	}
	for name := range exist {
		if !named[name] {
			t.Errorf("%s does not say which part %s_... tests", statusFile, name)
		}
	}
}

// A part is said to be tested on a real Ironic, or on machines that boot, only if it has tests that run there.
func TestStatus_claimsOnlyWhatATestRunsOn(t *testing.T) {
	t.Parallel()
	for _, row := range statusRows(t) {
		has := func(prefix string) bool { return strings.Contains(" "+strings.Join(row.tests, " "), " "+prefix) }
		for claim, prefix := range map[string]string{
			"Ironic 21.4": "TestAcc", "Ironic 39.0": "TestAcc", "simulated BMC": "TestAccBMC",
			"machines that boot": "TestMetal", "Keystone": "TestKeystone", "Neutron": "TestNeutron", "Prometheus": "TestPrometheus",
		} {
			// BIOS settings and the like are tests of hosts with a simulated BMC.
			if strings.Contains(row.on, claim) && !has(prefix) && (claim != "simulated BMC" || !has("TestAccHostBIOS")) {
				t.Errorf("%s: tested on %q, and no test is named %s...", row.part, claim, prefix)
			}
		}
		if untested := row.on == "not tested"; untested != (len(row.tests) == 0) {
			t.Errorf("%s: tested on %q by %v", row.part, row.on, row.tests)
		}
	}
}

// The variants that make test-ironic leaves out exist.
func TestVariants_exist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../tools/variants")
	if err != nil {
		t.Fatal(err)
	}
	exist := tests(t, regexp.MustCompile(`(?m)^func (TestAcc\w+)\(`))
	for _, name := range strings.Fields(regexp.MustCompile(`(?m)^#.*`).ReplaceAllString(string(text), "")) {
		if !exist[name] {
			t.Errorf("there is no test %s", name)
		}
	}
}

// statusRow is a row of the status.
type statusRow struct {
	part, on string
	tests    []string
}

func statusRows(t *testing.T) []statusRow {
	t.Helper()
	text, err := os.ReadFile(statusFile)
	if err != nil {
		t.Fatal(err)
	}
	var rows []statusRow
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[2:] {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 3 {
			t.Fatalf("%q has %d cells, want 3", line, len(cells))
		}
		rows = append(rows, statusRow{
			part: strings.TrimSpace(cells[0]), on: strings.TrimSpace(cells[1]),
			tests: strings.Fields(strings.ReplaceAll(cells[2], "`", " ")),
		})
	}
	return rows
}

// families returns the families of tests in the repository.
func families(t *testing.T) map[string]bool {
	t.Helper()
	return tests(t, family)
}

// tests returns what a pattern finds in the tests of the repository.
func tests(t *testing.T, pattern *regexp.Regexp) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, root := range []string{".", "../cmd"} {
		err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
			// The tests of the stand-in for Terraform's core test no part of the product.
			if err != nil || !strings.HasSuffix(path, "_test.go") || strings.Contains(path, "terraformtest") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, match := range pattern.FindAllStringSubmatch(string(text), -1) {
				found[match[1]] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}
