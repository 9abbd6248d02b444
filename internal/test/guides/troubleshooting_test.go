package guides_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const nightPage = "../../../templates/guides/three-in-the-morning.md"

// titleCell is the first cell of a row in the guides about messages; quoted is a title or a part of a message in it.
var (
	titleCell = regexp.MustCompile("(?m)^\\| ([^|]*`[^|]*) \\|")
	quoted    = regexp.MustCompile("`([^`]+)`")
)

// TestTroubleshooting_explainsEveryTitle compares the titles in the golden files of messages with those in the guides, which make docs
// writes.
func TestTroubleshooting_explainsEveryTitle(t *testing.T) {
	t.Parallel()
	provider, guides := providerTitles(t), map[string]bool{}
	for _, page := range troubleshootingPages(t) {
		for _, title := range explained.FindAllStringSubmatch(read(t, page), -1) {
			guides[title[1]] = true
		}
	}
	const where = "tools/troubleshooting, then run make docs"
	for title := range provider {
		if !guides[title] {
			t.Errorf("no guide explains %q: add cause and next step to a page in %s", title, where)
		}
	}
	for title := range guides {
		if !provider[title] {
			t.Errorf("the provider has no message %q any more: remove it from %s", title, where)
		}
	}
}

var (
	explained   = regexp.MustCompile("`((?:Error|Warning): [^`]+)`")
	goldenTitle = regexp.MustCompile(`(?m)^(error|warning): (.*)$`)
	placeholder = regexp.MustCompile(`\{[^{}]*\}`)
)

// providerTitles has the titles in the golden files of messages as Terraform shows them, with … for what only a run knows.
func providerTitles(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, pattern := range []string{
		"../../*/testdata/diagnostics.txt", "../../*/*/testdata/diagnostics.txt",
		"../../*/*/*/testdata/diagnostics.txt",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			for _, m := range goldenTitle.FindAllStringSubmatch(read(t, file), -1) {
				found[map[string]string{"error": "Error: ", "warning": "Warning: "}[m[1]]+placeholder.ReplaceAllString(m[2], "…")] = true
			}
		}
	}
	if len(found) == 0 {
		t.Fatal("there are no golden files")
	}
	return found
}

func troubleshootingPages(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("../../../templates/guides/troubleshooting*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("pages: %v, %v", pages, err)
	}
	return pages
}

// TestTroubleshooting_textsAreThoseOfTheProvider finds in the code what guides say that users see below a title.
func TestTroubleshooting_textsAreThoseOfTheProvider(t *testing.T) {
	t.Parallel()
	code := providerCode(t)
	text, _, _ := strings.Cut(read(t, nightPage), "\n## ")
	for _, page := range troubleshootingPages(t) {
		text += read(t, page)
	}
	cells := titleCell.FindAllStringSubmatch(text, -1)
	if len(cells) == 0 {
		t.Fatal("the guides have no table")
	}
	for _, cell := range cells {
		for _, title := range quoted.FindAllStringSubmatch(cell[1], -1) {
			if explained.MatchString(title[0]) {
				continue
			}
			for part := range strings.SplitSeq(strings.TrimPrefix(title[1], "Could not "), "…") {
				if part = strings.Trim(part, " :"); part != "" && !strings.Contains(code, part) && !notOurs[part] {
					t.Errorf("the provider has no message with %q", part)
				}
			}
		}
	}
}

// notOurs are parts of messages that the provider composes, or takes over from Ironic and from the network, and titles of Terraform and of the
// plugin framework.
var notOurs = map[string]bool{
	"connection refused": true, "no such host": true, "certificate": true,
	"HTTP response to HTTPS client": true, "HTTP request to an HTTPS server": true,
	"Unexpected exception": true, "during processing for node": true,
	"401": true, "403": true, "already exists": true, "0 of 42 nodes": true, "clean failed": true, "inspect failed": true,
	"deploy failed": true,
	"Module output value precondition failed": true, "Resource precondition failed": true, "Invalid Attribute Value": true,
	"Invalid Attribute Combination":             true,
	"Provider produced inconsistent final plan": true,
	"wait call-back":                            true, "clean wait": true, "Still creating...": true, `fault "power failure"`: true,
}

// providerCode is the code of the provider, without fakes and tests.
func providerCode(t *testing.T) string {
	t.Helper()
	var code strings.Builder
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "fake" || entry.Name() == "test") {
			return fs.SkipDir
		}
		if filepath.Ext(path) == ".go" && !strings.HasSuffix(path, "_test.go") {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			code.Write(content)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return code.String()
}
