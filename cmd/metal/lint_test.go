package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
)

// configurationOf writes a configuration and returns the path of its file.
func configurationOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "main.tf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const misspelt = "resource \"metal_allocation\" \"a\" {\n  require = { min_cpu = 64 }\n}\n"

// It needs no settings, and makes no request.
func TestLint_exitCodes(t *testing.T) {
	t.Parallel()
	wrong, right := configurationOf(t, misspelt), configurationOf(t, strings.ReplaceAll(misspelt, "min_cpu", "min_cpus"))
	broken := configurationOf(t, "resource {")
	for _, tt := range []struct {
		name   string
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{"nothing", []string{filepath.Dir(right)}, cli.ExitDone, "", ""},
		{
			"a key", []string{filepath.Dir(wrong)}, cli.ExitFound, wrong + ":2:15: resource metal_allocation.a: require has no key " +
				"min_cpu, so Terraform drops it; did you mean min_cpus?\n", "found 1 key that Terraform drops",
		},
		{"a file, and its directory", []string{wrong, filepath.Dir(wrong)}, cli.ExitFound, wrong, "found 1 key"},
		{"two directories", []string{right, wrong}, cli.ExitFound, wrong, "found 1 key"},
		{"a file that is not HCL", []string{broken}, cli.ExitError, "", broken},
		{"no directory", []string{filepath.Join(right, "nothing")}, cli.ExitError, "", "nothing"},
		{"another format", []string{right, "--output", "xml"}, cli.ExitUsage, "", `--output is "xml"; it must be table, json or sarif`},
	} {
		s := &site{}
		code, stdout, stderr := s.run(t, append([]string{"lint"}, tt.args...)...)
		if code != tt.code || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) ||
			(stdout == "") != (tt.stdout == "") {
			t.Errorf("%s: exit code %d, wrote %q and %q", tt.name, code, stdout, stderr)
		}
	}
}

func TestLint_formatsForPrograms(t *testing.T) {
	t.Parallel()
	s, wrong := &site{}, configurationOf(t, misspelt)
	code, stdout, _ := s.run(t, "lint", "--output", "json", wrong)
	var found []struct{ File, Block, Object, Key, Meant string }
	if err := json.Unmarshal([]byte(stdout), &found); err != nil || code != cli.ExitFound || len(found) != 1 {
		t.Fatalf("exit code %d, %v: %s", code, err, stdout)
	}
	if f := found[0]; f.File != wrong || f.Block != "resource metal_allocation.a" || f.Object != "require" || f.Key != "min_cpu" ||
		f.Meant != "min_cpus" {
		t.Errorf("JSON: %s", stdout)
	}
	code, stdout, _ = s.run(t, "lint", "--output", "sarif", wrong)
	var report struct {
		Version string
		Runs    []struct {
			Results []struct {
				RuleID    string
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine, StartColumn int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != cli.ExitFound {
		t.Fatalf("exit code %d, %v: %s", code, err, stdout)
	}
	place := report.Runs[0].Results[0].Locations[0].PhysicalLocation
	if report.Version != "2.1.0" || place.ArtifactLocation.URI != wrong || place.Region.StartLine != 2 || place.Region.StartColumn != 15 {
		t.Errorf("SARIF: %s", stdout)
	}
	right := configurationOf(t, "")
	if code, stdout, _ := s.run(t, "lint", "--output", "json", right); code != cli.ExitDone || stdout != "[]\n" {
		t.Errorf("nothing found: exit code %d, %q", code, stdout)
	}
}
