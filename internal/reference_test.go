package internal_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
)

// citation matches what cites a fact, "reference/FILE.md#anchor", and what was meant to: without an anchor, or with a space
// in the place of the slash.
var citation = regexp.MustCompile(`reference[/ ][\w.-]+\.md(#[\w-]*)?`)

func TestEveryCitedFactIsThereAndEveryFactIsCited(t *testing.T) {
	t.Parallel()
	faults, err := citationFaults(os.DirFS(".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range faults {
		t.Error(fault)
	}
}

func TestCitationFaultsAreFound(t *testing.T) {
	t.Parallel()
	const facts = "# Ironic\n\n## Error `bodies`, twice\n\ntext\n\n```\n## not a heading\n```\n\n## Error `bodies`, twice\n"
	const first, second = "reference/ironic.md#error-bodies-twice", "reference/ironic.md#error-bodies-twice-1"
	for _, tt := range []struct {
		name, file, text string
		want             []string // parts of the faults, in order
	}{
		{"both headings are cited", "a.go", first + ". " + second + ".", nil},
		{"a script cites", "tools/run", first + " " + second, nil},
		{"a heading that nothing cites", "a.go", first, []string{second + ": nothing cites"}},
		{"facts do not count as citations", "reference/b.md", first + " " + second, []string{second + ": nothing", first + ": nothing"}},
		{
			"no such heading", "a.go", first + " " + second + " reference/ironic.md#not-a-heading",
			[]string{"a.go: there is no reference/ironic.md#not-a-heading"},
		},
		{
			"no such file", "a.go", first + " " + second + " reference/nova.md#servers",
			[]string{"a.go: there is no reference/nova.md#servers"},
		},
		{
			"code without an anchor", "a.go", first + " " + second + " reference/ironic.md",
			[]string{"a.go: there is no reference/ironic.md"},
		},
		{
			"the space in the place of the slash", "a.md", first + " " + second + " reference ironic.md 2.4",
			[]string{"a.md: there is no reference ironic.md"},
		},
		{"a page links to a file", "a.md", first + " " + second + " (reference/ironic.md)", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := citationFaults(fstest.MapFS{"reference/ironic.md": {Data: []byte(facts)}, tt.file: {Data: []byte(tt.text)}})
			matches := slices.EqualFunc(got, tt.want, strings.Contains)
			if err != nil || !matches {
				t.Errorf("faults = %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// citationFaults returns what is wrong with the citations in a tree, in alphabetical order: those that lead nowhere, and the
// headings in reference/ that no file outside cites. The title of a file needs no citation.
func citationFaults(tree fs.FS) ([]string, error) {
	known, err := factsIn(tree)
	if err != nil {
		return nil, err
	}
	var faults []string
	uncited := maps.Clone(known)
	err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case slices.Contains([]string{".git", ".cache", "bin", "internal/reference_test.go"}, name):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !entry.Type().IsRegular():
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		for _, cited := range citation.FindAllString(string(text), -1) {
			isPage := strings.HasSuffix(name, ".md") || strings.HasSuffix(name, ".tmpl")
			if _, err := fs.Stat(tree, cited); err == nil && isPage {
				continue
			}
			if !known[cited] {
				faults = append(faults, fmt.Sprintf("%s: there is no %s", name, cited))
			}
			if path.Dir(name) != "reference" {
				delete(uncited, cited)
			}
		}
		return err
	})
	for fact := range uncited {
		faults = append(faults, fact+": nothing cites this heading")
	}
	slices.Sort(faults)
	return faults, err
}

// factsIn returns what can be cited: the headings of the files in reference/, without their titles.
func factsIn(tree fs.FS) (map[string]bool, error) {
	files, err := fs.Glob(tree, "reference/*.md")
	if err != nil {
		return nil, err
	}
	facts := map[string]bool{}
	for _, file := range files {
		text, err := fs.ReadFile(tree, file)
		if err != nil {
			return nil, err
		}
		for _, anchor := range anchors(string(text)) {
			facts[file+"#"+anchor] = true
		}
	}
	return facts, nil
}

// anchors are the anchors that GitHub gives to the headings of a page below its title.
func anchors(page string) []string {
	var found []string
	times, fenced := map[string]int{}, false
	for line := range strings.Lines(page) {
		marks, heading, isHeading := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case !fenced && isHeading && len(marks) > 1 && strings.Trim(marks, "#") == "":
			anchor := strings.Map(anchorRune, heading)
			times[anchor]++
			if n := times[anchor]; n > 1 {
				anchor = fmt.Sprintf("%s-%d", anchor, n-1)
			}
			found = append(found, anchor)
		}
	}
	return found
}

// anchorRune is what a character of a heading becomes in its anchor.
func anchorRune(r rune) rune {
	switch {
	case r == ' ':
		return '-'
	case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
		return unicode.ToLower(r)
	}
	return -1
}
