package internal_test

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
)

// dependenciesFile has a row for each module that this repository requires directly.
const dependenciesFile = "tools/dependencies.md"

// oldest is how much older than the newest of all dependencies a version may be without a reason. The clock on the wall does not count: a
// commit that passed its tests goes on to pass them.
const oldest = 3 * 365 * 24 * time.Hour

// goMod is a go.mod, as go mod edit -json prints it, with what its module imports.
type goMod struct {
	Module  struct{ Path string }
	Require []required
	Tool    []struct{ Path string }

	dir     string          // relative to the repository
	imports map[string]bool // of all its Go files, for all platforms
}

// required is a line of a go.mod.
type required struct {
	Path, Version string
	Indirect      bool
}

// reasons are the rows of dependenciesFile.
type reasons []struct {
	module string   // or PATH/...
	dirs   []string // of the go.mods that require it
	why    string
	old    string // why an old version will do; empty: it will not
}

// TestDependencies fails if a requirement has no reason, is not used, is declared as indirect although it is imported, or is old.
func TestDependencies(t *testing.T) {
	t.Parallel()
	mods := readGoMods(t)
	for _, fault := range slices.Concat(unused(mods), unexplained(mods, readReasons(t)), aged(readReasons(t), dates(t, mods))) {
		t.Error(fault)
	}
}

func TestDependencies_faultsAreFound(t *testing.T) {
	t.Parallel()
	day := func(year int) time.Time { return time.Date(year, 5, 1, 0, 0, 0, 0, time.UTC) }
	row := func(module, dirs, old string) reasons {
		return reasons{{module: module, dirs: strings.Fields(dirs), why: "for a test", old: old}}
	}
	one := func(indirect bool, imports ...string) []goMod {
		m := goMod{dir: ".", imports: map[string]bool{}, Require: []required{{Path: "example.com/a", Indirect: indirect}}}
		for _, path := range imports {
			m.imports[path] = true
		}
		return []goMod{m}
	}
	for name, tt := range map[string]struct {
		got  []string
		want string
	}{
		"imported": {unused(one(false, "example.com/a/b")), ""},
		"not imported": {
			unused(one(false, "example.com/ab")),
			"./go.mod requires example.com/a, which no package imports",
		},
		"imported, but called indirect": {unused(one(true, "example.com/a")), "./go.mod calls example.com/a indirect, but a package " +
			"imports example.com/a"},
		"indirect":          {unused(one(true)), ""},
		"a row":             {unexplained(one(false), row("example.com/a", ".", "")), ""},
		"a row for several": {unexplained(one(false), row("example.com/...", ".", "")), ""},
		"no row":            {unexplained(one(false), nil), "./go.mod requires example.com/a, which has no row"},
		"no row for this go.mod": {
			unexplained(one(false), row("example.com/a", "tools", "")),
			"./go.mod requires example.com/a, which has no row; there is no tools/go.mod that requires example.com/a",
		},
		"a row too many": {
			unexplained(one(true), row("example.com/a", ".", "")),
			"there is no ./go.mod that requires example.com/a",
		},
		"young": {aged(nil, map[string]time.Time{"example.com/a": day(2024), "example.com/b": day(2026)}), ""},
		"old": {
			aged(nil, map[string]time.Time{"example.com/a": day(2022), "example.com/b": day(2026)}),
			"example.com/a is from 2022-05-01",
		},
		"old for a reason": {aged(row("example.com/a", ".", "it is complete"),
			map[string]time.Time{"example.com/a": day(2022), "example.com/b": day(2026)}), ""},
		"a reason for what is not old": {aged(row("example.com/a", ".", "it is complete"),
			map[string]time.Time{"example.com/a": day(2024), "example.com/b": day(2026)}), "example.com/a is not old"},
		"a reason without a known date": {aged(row("example.com/a", ".", "it is complete"),
			map[string]time.Time{"example.com/b": day(2026)}), ""},
		"a tool needs a row": {unexplained([]goMod{{dir: "x", Require: one(true)[0].Require, Tool: []struct {
			Path string
		}{{"example.com/a/cmd/a"}}}}, nil), "x/go.mod requires example.com/a"},
		"the repository needs no row": {unexplained([]goMod{{dir: "x", Require: []required{{Path: module}}}}, nil), ""},
		"a tool needs no import": {unused([]goMod{{
			dir: "x", imports: map[string]bool{}, Require: one(false)[0].Require,
			Tool: []struct{ Path string }{{"example.com/a"}},
		}}), ""},
		"a module below another is used": {unused([]goMod{{
			dir: "x", imports: map[string]bool{"example.com/a/b/c": true},
			Require: []required{{Path: "example.com/a", Indirect: true}, {Path: "example.com/a/b"}},
		}}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(tt.got, "; ")
			if (tt.want == "") != (got == "") || !matches(got, tt.want) {
				t.Errorf("faults = %q, want %q", got, tt.want)
			}
		})
	}
}

// matches reports whether a text has all parts of another, which are separated by semicolons.
func matches(text, parts string) bool {
	return !slices.ContainsFunc(strings.Split(parts, "; "), func(part string) bool { return !strings.Contains(text, part) })
}

// unused returns the requirements that no package imports, and the imported ones that are called indirect.
func unused(mods []goMod) []string {
	var faults []string
	for _, m := range mods {
		imported := map[string]string{} // an import path by its module
		for _, path := range slices.Sorted(maps.Keys(m.imports)) {
			if r := m.provider(path); r != nil {
				imported[r.Path] = path
			}
		}
		for _, r := range m.Require {
			switch path := imported[r.Path]; {
			case r.Indirect && path != "":
				faults = append(faults, fmt.Sprintf("%s/go.mod calls %s indirect, but a package imports %s: run go mod tidy",
					m.dir, r.Path, path))
			case !r.Indirect && path == "" && !m.isTool(r):
				faults = append(faults, fmt.Sprintf("%s/go.mod requires %s, which no package imports: run go mod tidy", m.dir, r.Path))
			}
		}
	}
	return faults
}

// unexplained returns the direct requirements without a row, and the rows without a requirement.
func unexplained(mods []goMod, rows reasons) []string {
	var faults []string
	explained := map[string]bool{} // by directory and row
	for _, m := range mods {
		for _, r := range m.direct() {
			i := rows.of(r.Path)
			if i < 0 || !slices.Contains(rows[i].dirs, m.dir) {
				faults = append(faults, fmt.Sprintf("%s/go.mod requires %s, which has no row for it in %s: say why we need it", m.dir,
					r.Path, dependenciesFile))
				continue
			}
			explained[m.dir+" "+rows[i].module] = true
		}
	}
	for _, row := range rows {
		if row.why == "" || len(row.dirs) == 0 {
			faults = append(faults, fmt.Sprintf("%s gives no reason or no go.mod for %s", dependenciesFile, row.module))
		}
		for _, dir := range row.dirs {
			if !explained[dir+" "+row.module] {
				faults = append(faults, fmt.Sprintf("there is no %s/go.mod that requires %s: remove that from %s", dir, row.module,
					dependenciesFile))
			}
		}
	}
	return faults
}

// aged returns the modules whose version is old without a reason, and those with a reason that are not old. dates are those of the versions
// in use.
func aged(rows reasons, dates map[string]time.Time) []string {
	var faults []string
	newest := time.Time{}
	for _, date := range dates {
		if date.After(newest) {
			newest = date
		}
	}
	for _, path := range slices.Sorted(maps.Keys(dates)) {
		i := rows.of(path)
		reason := i >= 0 && rows[i].old != ""
		switch old := newest.Sub(dates[path]) > oldest; {
		case old && !reason:
			faults = append(faults, fmt.Sprintf("the version of %s is from %s: raise or replace it, or give a reason in the last "+
				"column of %s", path, dates[path].Format(time.DateOnly), dependenciesFile))
		case !old && reason:
			faults = append(faults, fmt.Sprintf("the version of %s is not old: remove the reason from the last column of %s", path,
				dependenciesFile))
		}
	}
	return faults
}

// provider returns the requirement that an import path is from; nil: the standard library, or the module itself.
func (m goMod) provider(path string) *required {
	var found *required
	for i, r := range m.Require {
		if (path == r.Path || strings.HasPrefix(path, r.Path+"/")) && (found == nil || len(r.Path) > len(found.Path)) {
			found = &m.Require[i]
		}
	}
	return found
}

// isTool reports whether a requirement has one of the programs that the go.mod names as tools.
func (m goMod) isTool(r required) bool {
	return slices.ContainsFunc(m.Tool, func(tool struct{ Path string }) bool {
		from := m.provider(tool.Path)
		return from != nil && from.Path == r.Path
	})
}

// direct returns the requirements that need a reason.
func (m goMod) direct() []required {
	return slices.DeleteFunc(slices.Clone(m.Require), func(r required) bool { return r.Path == module || r.Indirect && !m.isTool(r) })
}

// of returns the index of the row about a module; -1: there is none.
func (rows reasons) of(path string) int {
	for i, row := range rows {
		family, isFamily := strings.CutSuffix(row.module, "/...")
		if row.module == path || isFamily && (path == family || strings.HasPrefix(path, family+"/")) {
			return i
		}
	}
	return -1
}

// readReasons reads dependenciesFile.
func readReasons(t *testing.T) reasons {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", dependenciesFile))
	if err != nil {
		t.Fatal(err)
	}
	var rows reasons
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 {
			t.Fatalf("%s: not four cells: %s", dependenciesFile, line)
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, struct {
			module   string
			dirs     []string
			why, old string
		}{strings.Trim(cells[0], "`"), strings.Fields(strings.ReplaceAll(cells[1], "`", "")), cells[2], cells[3]})
	}
	return rows
}

// readGoMods reads the modules of the repository.
func readGoMods(t *testing.T) []goMod {
	t.Helper()
	byDir := map[string]*goMod{}
	goFiles := map[string][]string{} // by directory of their go.mod
	err := filepath.WalkDir("..", func(name string, entry fs.DirEntry, err error) error {
		switch base := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && name != ".." && (strings.HasPrefix(base, ".") || base == "bin" || base == "testdata"):
			return fs.SkipDir
		case base == "go.mod":
			dir := filepath.Dir(name)
			byDir[dir] = readGoMod(t, dir)
		case strings.HasSuffix(base, ".go"):
			goFiles[filepath.Dir(name)] = append(goFiles[filepath.Dir(name)], name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, names := range goFiles {
		of := dir
		for byDir[of] == nil {
			of = filepath.Dir(of)
		}
		for _, name := range names {
			byDir[of].addImports(t, name)
		}
	}
	var mods []goMod
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		mods = append(mods, *byDir[dir])
	}
	return mods
}

// readGoMod reads the go.mod of a directory.
func readGoMod(t *testing.T, dir string) *goMod {
	t.Helper()
	name := filepath.Join(dir, "go.mod")
	if _, err := os.ReadFile(name); err != nil { // so that go test does not answer from its cache when it has changed
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	m := goMod{imports: map[string]bool{}}
	if err := json.Unmarshal(out, &m); err != nil {
		t.Fatal(err)
	}
	if m.dir, err = filepath.Rel("..", dir); err != nil {
		t.Fatal(err)
	}
	return &m
}

// addImports adds the imports of a file.
func (m *goMod) addImports(t *testing.T, name string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		m.imports[path] = true
	}
}

// dates returns when the versions of direct requirements were published, by module. The cache of go has the dates of the versions that it has;
// those of the repository's own module are there, because this test was built with them.
func dates(t *testing.T, mods []goMod) map[string]time.Time {
	t.Helper()
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	dates := map[string]time.Time{}
	for _, m := range mods {
		for _, r := range m.direct() {
			text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(cache)), "cache/download", escaped(r.Path), "@v",
				escaped(r.Version)+".info"))
			if err != nil {
				if m.dir == "." {
					t.Errorf("the date of %s %s is not known: %v", r.Path, r.Version, err)
				}
				continue
			}
			var info struct{ Time time.Time }
			if err := json.Unmarshal(text, &info); err != nil || info.Time.IsZero() {
				t.Errorf("the date of %s %s is not known: %v", r.Path, r.Version, err)
			}
			dates[r.Path] = info.Time
		}
	}
	return dates
}

// escaped writes a path as the cache of go does: an upper-case letter is ! and the lower-case one.
func escaped(path string) string {
	var text strings.Builder
	for _, r := range path {
		if unicode.IsUpper(r) {
			text.WriteByte('!')
			r = unicode.ToLower(r)
		}
		text.WriteRune(r)
	}
	return text.String()
}
