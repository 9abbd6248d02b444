package lint_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/lint"
)

const repository = "../../.."

// files returns the files of the repository below some directories whose names have an ending.
func files(t *testing.T, ending string, dirs ...string) (all []string) {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(filepath.Join(repository, dir), func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(path, ending) {
				all = append(all, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func clean(t *testing.T, where string, found []lint.Finding) {
	t.Helper()
	for _, f := range found {
		t.Errorf("%s: line %d: %s", where, f.Line, f.Text)
	}
}

func TestRepository_examplesAndModulesHaveOnlyKeysThatExist(t *testing.T) {
	t.Parallel()
	var dirs []string
	for _, file := range files(t, ".tf", "examples", "modules") {
		dirs = append(dirs, filepath.Dir(file))
	}
	dirs = slices.Compact(dirs)
	found, err := lint.Directories(dirs...)
	if err != nil || len(dirs) < 50 {
		t.Fatalf("%d directories: %v", len(dirs), err)
	}
	clean(t, "", found)
}

// snippet matches the configurations in a page.
var snippet = regexp.MustCompile("(?ms)^ *```(?:terraform|hcl)\n(.*?)^ *```")

func TestRepository_pagesHaveOnlyKeysThatExist(t *testing.T) {
	t.Parallel()
	read := 0
	for _, page := range append(files(t, ".md", "docs", "modules"), filepath.Join(repository, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range snippet.FindAllSubmatch(text, -1) {
			found, err := lint.Directories(configuration(t, string(match[1])))
			if err == nil { // else it has an ellipsis, or a module that is elsewhere
				read++
				clean(t, page, found)
			}
		}
	}
	if read < 150 {
		t.Errorf("only %d configurations were read", read)
	}
}
