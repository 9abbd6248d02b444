package notes

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ownKeys are the keys in the source of the provider that only a note of it can have.
var ownKeys = regexp.MustCompile(`"(terraform_metal(_[a-z]+)?)"`)

func TestTable_hasEachNote(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	for _, note := range table {
		listed[note.key] = true
		if !OwnKey(note.key) {
			t.Errorf("%s is no key that users cannot set", note.key)
		}
	}
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if entry.IsDir() && (entry.Name() == "test" || entry.Name() == "fake") {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, key := range ownKeys.FindAllStringSubmatch(string(text), -1) {
			if name := key[1]; !listed[name] {
				t.Errorf("%s: the table of notes has no %s", path, name)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
