package internal_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// An action runs beside the key that signs releases, and a tag can be moved to other code. So the workflows name actions by digest.
func TestWorkflows_pinActionsByDigest(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	uses, pinned := regexp.MustCompile(`(?m)^\s*(?:- )?uses: ([^.\s].*)$`),
		regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v[0-9]+\.[0-9]+\.[0-9]+$`)
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range uses.FindAllStringSubmatch(string(text), -1) {
			found++
			if !pinned.MatchString(match[1]) {
				t.Errorf("%s: %q has no digest, or no comment with the version", file, match[1])
			}
		}
	}
	if found == 0 {
		t.Error("the workflows use no actions")
	}
}

// A token that may write to the repository must not lie in the work tree, where each later step finds it.
func TestWorkflows_checkoutsLeaveNoToken(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		text := read(t, file)
		for _, step := range regexp.MustCompile(`(?m)^ +- `).Split(text, -1) {
			if !strings.HasPrefix(step, "uses: actions/checkout@") {
				continue
			}
			if found++; !regexp.MustCompile(`(?m)^ +persist-credentials: false$`).MatchString(step) {
				t.Errorf("%s: %s", file, step)
			}
		}
	}
	if found == 0 {
		t.Error("the workflows check nothing out")
	}
}

func TestRelease_refusesOtherKeys(t *testing.T) {
	t.Parallel()
	const named = "0123 4567 89AB CDEF 0123  4567 89AB CDEF 0123 4567"
	_, step, _ := strings.Cut(read(t, "../.github/workflows/release.yml"), "name: Refuse a key that SECURITY.md does not name")
	run := regexp.MustCompile(`(?m)^ +run: (.*)$`).FindStringSubmatch(step)
	if run == nil {
		t.Fatal("release.yml has no step that refuses a key")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "SECURITY.md"), []byte("# Security\n\nFingerprint: "+named+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for fingerprint, accepted := range map[string]bool{
		strings.ReplaceAll(named, " ", ""): true, "": false, " ": false, ".": false, "Security": false, "0123": false, "89ABCDEF01234567": false,
		strings.Repeat("F", 40): false, ".{40}": false,
	} {
		command := exec.CommandContext(t.Context(), "bash", "-e", "-c", run[1]) //nolint:gosec // our own workflow
		command.Dir, command.Env = dir, append(os.Environ(), "GPG_FINGERPRINT="+fingerprint)
		if text, err := command.CombinedOutput(); (err == nil) != accepted {
			t.Errorf("fingerprint %q: %v %s", fingerprint, err, text)
		}
	}
}

// Both registries read keys of RSA only, which shows when a release has been made.
func TestRelease_refusesKeysThatTheRegistriesDoNotRead(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("gpg"); err != nil {
		t.Skip(err)
	}
	_, step, _ := strings.Cut(read(t, "../.github/workflows/release.yml"), "name: Refuse a key that the registries do not read")
	run := regexp.MustCompile(`(?m)^ +run: (.*)$`).FindStringSubmatch(step)
	if run == nil {
		t.Fatal("release.yml has no step that refuses a key")
	}
	for algorithm, accepted := range map[string]bool{"rsa3072": true, "ed25519": false, "none": false} {
		home, err := os.MkdirTemp("", "gpg") //nolint:usetesting // the path of a socket is short
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(home) })
		script := "trap 'gpgconf --kill gpg-agent' EXIT\n"
		if algorithm != "none" {
			script += "gpg --batch --quiet --passphrase '' --quick-gen-key test@example.com " + algorithm + " sign never\n"
		}
		command := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", script+run[1]) //nolint:gosec // our own workflow
		command.Env = append(os.Environ(), "GNUPGHOME="+home, "GPG_FINGERPRINT=test@example.com")
		if text, err := command.CombinedOutput(); (err == nil) != accepted {
			t.Errorf("%s: %v %s", algorithm, err, text)
		}
	}
}

func TestRelease_hasNotes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		heading, tag, left, says string
		fails                    bool
	}{
		"a release":                            {"0.1.0 (March 7, 2026)", "v0.1.0", "", "* text", false},
		"another tag":                          {"0.1.0 (March 7, 2026)", "v0.2.0", "", "the tag is v0.2.0", true},
		"a tag without v":                      {"0.1.0 (March 7, 2026)", "0.1.0", "", "the tag is 0.1.0", true},
		"no date":                              {"0.1.0 (Unreleased)", "v0.1.0", "", "needs the date", true},
		"an entry is left":                     {"0.1.0 (March 7, 2026)", "v0.1.0", "a.md", "a.md", true},
		"breaking before 1.0":                  {"0.2.0 (March 7, 2026)\n\nBREAKING CHANGES:", "v0.2.0", "", "* text", false},
		"breaking in a major version":          {"2.0.0 (March 7, 2026)\n\nBREAKING CHANGES:", "v2.0.0", "", "* text", false},
		"breaking in a minor version from 1.0": {"1.1.0 (March 7, 2026)\n\nBREAKING CHANGES:", "v1.1.0", "", "a new major", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			files := map[string]string{
				"tools/release-notes": read(t, "../tools/release-notes"), ".changes/README.md": "",
				"CHANGELOG.md": "## " + tt.heading + "\n\n* text\n\n## 0.0.1 (January 1, 2026)\n\n* older\n",
			}
			if tt.left != "" {
				files[".changes/"+tt.left] = "* more\n"
			}
			for file, content := range files {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o750); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			command := exec.CommandContext(t.Context(), "bash", "tools/release-notes", tt.tag) //nolint:gosec // our own script
			command.Dir = dir
			text, err := command.CombinedOutput()
			if (err != nil) != tt.fails || !strings.Contains(string(text), tt.says) || strings.Contains(string(text), "older") {
				t.Errorf("%v %s", err, text)
			}
		})
	}
}

// Whoever gets a program gets the licences of what is linked into it.
func TestRelease_hasLicences(t *testing.T) {
	t.Parallel()
	release := read(t, "../.goreleaser.yml")
	if zips, packages := strings.Count(release, "src: .cache/release/third-party.txt\n        strip_parent: true"),
		strings.Count(release, "dst: /usr/share/doc/metal/third-party.txt"); zips != 2 || packages != 1 {
		t.Errorf("%d archives and %d lists of packages have third-party.txt, want 2 and 1", zips, packages)
	}
	if !strings.Contains(read(t, "../tools/release-files"), "tools/third-party darwin freebsd linux windows") {
		t.Error("tools/release-files makes no third-party.txt of all platforms")
	}
	script := exec.CommandContext(t.Context(), "../tools/third-party")
	text, err := script.Output()
	if err != nil {
		t.Fatal(err)
	}
	const each = "{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}{{end}}{{end}}"
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", each, "..", "../cmd/metal")
	modules, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	parts := regexp.MustCompile(`(?m)^={80}\n`).Split(string(text), -1)
	for _, module := range slices.Compact(slices.Sorted(slices.Values(strings.Fields("Go " + string(modules))))) {
		name := strings.ReplaceAll(module, "@", " ")
		if !slices.ContainsFunc(parts, func(part string) bool { return strings.HasPrefix(part, name) && len(part) > 500 }) {
			t.Errorf("there is no licence of %s", name)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
