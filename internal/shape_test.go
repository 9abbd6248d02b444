package internal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const mostBack = 0.05 // of the arrows between the files of a package

// shape is what a package has.
type shape struct {
	arrows     int
	back, asks []string
	ages       []string // see TestAges_goThroughTheClock
}

// TestPackagesKeepTheirShape fails if too many calls between the files of a package run back up, or if a resource decides what the nouns
// decide.
func TestPackagesKeepTheirShape(t *testing.T) {
	t.Parallel()
	for name, s := range shapes(t) {
		if most := max(1, int(mostBack*float64(s.arrows))); len(s.back) > most {
			t.Errorf("%s: %d of %d arrows between its files run back up, more than %d: %s", name, len(s.back), s.arrows, most,
				strings.Join(s.back, ", "))
		}
		if len(s.asks) > 0 {
			t.Errorf("%s asks for a state or writes a warning: what a plan does is decided in the package of the noun: %s", name,
				strings.Join(s.asks, ", "))
		}
	}
}

func TestShape_findsWhatRunsBack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		arrows string
		want   int
	}{
		{"a>b b>c a>c", 0},
		{"a>b b>a", 1},
		{"a>b b>c c>a", 1},
		{"a>b b>a c>d d>c", 2},
	} {
		arrows := map[[2]string]bool{}
		for _, arrow := range strings.Fields(tt.arrows) {
			from, to, _ := strings.Cut(arrow, ">")
			arrows[[2]string{from, to}] = true
		}
		if got := backwards(arrows); len(got) != tt.want {
			t.Errorf("%s: %v run back, want %d", tt.arrows, got, tt.want)
		}
	}
}

var reading struct {
	sync.Mutex
	found map[string]shape
}

// shapes reads the product's packages, once for all tests.
func shapes(t *testing.T) map[string]shape {
	t.Helper()
	reading.Lock()
	defer reading.Unlock()
	if reading.found == nil {
		reading.found = readShapes(t)
	}
	return reading.found
}

func readShapes(t *testing.T) map[string]shape {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export", "./...")
	cmd.Dir = ".."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	var own []golist
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var p struct {
			golist
			Export string
		}
		if err := decoder.Decode(&p); err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if isOwn(p.ImportPath) {
			own = append(own, p.golist)
		}
	}
	fset := token.NewFileSet()
	lookUp := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", lookUp)}
	found := map[string]shape{}
	for _, p := range own {
		found[relative(p.ImportPath)] = shapeOf(t, fset, config, p)
	}
	return found
}

// shapeOf reads a package.
func shapeOf(t *testing.T, fset *token.FileSet, config types.Config, p golist) shape {
	t.Helper()
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	if _, err := config.Check(p.ImportPath, fset, files, info); err != nil {
		t.Fatal(err)
	}
	s, arrows := shape{}, map[[2]string]bool{}
	isGlue := strings.HasPrefix(relative(p.ImportPath), "internal/resources/")
	for id, object := range info.Uses {
		from := fset.Position(id.Pos())
		if isGlue && isQuestion(object) {
			s.asks = append(s.asks, fmt.Sprintf("%s:%d", filepath.Base(from.Filename), from.Line))
		}
		if function, is := object.(*types.Func); is && function.Pkg() != nil && function.Pkg().Path() == p.ImportPath {
			if to := fset.Position(function.Origin().Pos()).Filename; to != from.Filename {
				arrows[[2]string{filepath.Base(from.Filename), filepath.Base(to)}] = true
			}
		}
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if call, is := n.(*ast.CallExpr); is && isAge(info, call) {
				from := fset.Position(call.Pos())
				s.ages = append(s.ages, fmt.Sprintf("%s:%d", filepath.Base(from.Filename), from.Line))
			}
			return true
		})
	}
	slices.Sort(s.asks)
	s.arrows, s.back = len(arrows), backwards(arrows)
	return s
}

// isQuestion reports whether an object says what a provision state means, or writes a warning of the resource's own.
func isQuestion(object types.Object) bool {
	switch name := object.Name(); {
	case object.Pkg() == nil:
		return false
	case relative(object.Pkg().Path()) == "internal/machine/states":
		return true
	default:
		return name == "AddWarning" || name == "AddAttributeWarning"
	}
}

// backwards puts files into an order in which few arrows run back up, and returns these (the heuristic of Eades, Lin and Smyth).
func backwards(arrows map[[2]string]bool) (back []string) {
	left := map[string]bool{}
	for arrow := range arrows {
		left[arrow[0]], left[arrow[1]] = true, true
	}
	degrees := func(file string) (out, in int) {
		for arrow := range arrows {
			if left[arrow[0]] && left[arrow[1]] && arrow[0] == file {
				out++
			}
			if left[arrow[0]] && left[arrow[1]] && arrow[1] == file {
				in++
			}
		}
		return out, in
	}
	var first, last []string
	for len(left) > 0 {
		best, most, isLast := "", -len(arrows)-1, false
		for _, file := range slices.Sorted(maps.Keys(left)) {
			out, in := degrees(file)
			if out == 0 {
				best, isLast = file, true
				break
			}
			if in == 0 {
				out += len(arrows)
			}
			if out-in > most {
				best, most = file, out-in
			}
		}
		if delete(left, best); isLast {
			last = append(last, best)
		} else {
			first = append(first, best)
		}
	}
	slices.Reverse(last)
	order := slices.Concat(first, last)
	for arrow := range arrows {
		if slices.Index(order, arrow[0]) > slices.Index(order, arrow[1]) {
			back = append(back, arrow[0]+" -> "+arrow[1])
		}
	}
	slices.Sort(back)
	return back
}
