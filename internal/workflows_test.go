package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
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
