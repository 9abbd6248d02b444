package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write makes a repository with the given pages.
func write(t *testing.T, pages map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, source := range pages {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestProse_findings(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", maxSentence) + "end."
	for _, c := range []struct{ name, source, want string }{
		{"word of the list", "# A\n\nSomebody waits.\n", `docs/a.md:3: "Somebody": name the actor`},
		{"word in a table", "| a |\n|---|\n| this is no error |\n", `is no error": write`},
		{"word in front of a line break", "It is no\nerror.\n", `is no error": write`},
		{"long sentence", "Short. " + long + "\n", "docs/a.md:1: a sentence of 41 words"},
		{"long sentence of a list", "* one\n* " + long + "\n", "docs/a.md:2: a sentence of 41 words"},
		{"line after a front matter", "---\ntitle: x\n---\n\nWhoever\n", `docs/a.md:5: "Whoever"`},
		{"row after an empty line", "| a |\n|---|\n| b |\n\n| c |\n", "docs/a.md:5: a row without the head of its table"},
		{"missing page", "[b](b.md)\n", "docs/a.md:1: b.md: no such file"},
		{"missing heading", "# One\n\n[b](#two)\n", "#two: no such heading"},
		{"missing diagram", "![x](" + published + "x.svg)\n", "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			found, err := run(write(t, map[string]string{"docs/a.md": c.source}), false)
			if err != nil || len(found) != 1 || !strings.Contains(found[0], c.want) {
				t.Errorf("got %q, %v; want %q", found, err, c.want)
			}
		})
	}
}

func TestProse_accepts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", maxSentence)
	for _, c := range []struct{ name, source string }{
		{"absence", "There is no other way.\n"},
		{"longer is a comparison", "It is no longer used.\n"},
		{"code", "`somebody` and\n\n```text\nsomebody\n" + long + "end\n```\n"},
		{"two sentences", long[5:] + "end. " + long[5:] + "end.\n"},
		{"cells of a table", "| a | b |\n|---|---|\n| " + long + "| " + long + "|\n"},
		{"heading with code", "## Set `a_b`, or not\n\n[x](#set-a_b-or-not)\n"},
		{"nested schema", "<a id=\"nestedatt--bmc\"></a>\n### Nested\n\n[x](#nestedatt--bmc)\n"},
		{"other site", "[x](https://example.com/none#none)\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if found, err := run(write(t, map[string]string{"docs/a.md": c.source}), false); err != nil || len(found) > 0 {
				t.Errorf("got %q, %v", found, err)
			}
		})
	}
}

func TestProse_pageOverItsLimit(t *testing.T) {
	t.Parallel()
	root := write(t, map[string]string{"docs/guides/a.md": strings.Repeat("Word. ", 1501)})
	found, err := run(root, false)
	if err != nil || len(found) != 1 || !strings.Contains(found[0], "1501 words, more than 1500") {
		t.Errorf("got %q, %v", found, err)
	}
}
