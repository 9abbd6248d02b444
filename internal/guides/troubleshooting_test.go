package guides_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const nightPage = "../../templates/guides/three-in-the-morning.md"

// titleCell is the first cell of a row in the guide Troubleshooting; quoted is a title or a part of a message in it.
var (
	titleCell = regexp.MustCompile("(?m)^\\| ([^|]*`[^|]*) \\|")
	quoted    = regexp.MustCompile("`([^`]+)`")
)

// TestTroubleshooting_titlesAreThoseOfTheProvider finds in the code what guides say that users see.
func TestTroubleshooting_titlesAreThoseOfTheProvider(t *testing.T) {
	t.Parallel()
	code := providerCode(t)
	atNight, _, _ := strings.Cut(read(t, nightPage), "\n## ")
	cells := titleCell.FindAllStringSubmatch(read(t, "../../templates/guides/troubleshooting.md")+atNight, -1)
	if len(cells) == 0 {
		t.Fatal("the guide has no table")
	}
	for _, cell := range cells {
		for _, title := range quoted.FindAllStringSubmatch(cell[1], -1) {
			for part := range strings.SplitSeq(strings.TrimPrefix(title[1], "Could not "), "…") {
				if part = strings.Trim(part, " :"); part != "" && !strings.Contains(code, part) && !notOurs[part] {
					t.Errorf("the provider has no message with %q", part)
				}
			}
		}
	}
}

// notOurs are parts of messages that the provider composes, or takes over from Ironic and from the network.
var notOurs = map[string]bool{
	"Provider setting missing or wrong: endpoint": true, "connection refused": true, "no such host": true, "certificate": true,
	"HTTP response to HTTPS client": true, "HTTP request to an HTTPS server": true,
	"Unexpected exception": true, "during processing for node": true,
	"401": true, "403": true, "already exists": true, "0 of 42 nodes": true, "clean failed": true, "inspect failed": true, "deploy failed": true,
	"wait call-back": true, "clean wait": true, "Still creating...": true, `fault "power failure"`: true,
}

// providerCode is the code of the provider, without fakes and tests.
func providerCode(t *testing.T) string {
	t.Helper()
	var code strings.Builder
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (strings.HasPrefix(entry.Name(), "fake") || entry.Name() == "acctest") {
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
