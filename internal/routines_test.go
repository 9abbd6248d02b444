package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// Only package routine starts goroutines: a panic in any other one would end the process, with the operations of all resources in it.
func TestRoutines_areStartedInOnePlace(t *testing.T) {
	t.Parallel()
	for _, root := range []string{"../main.go", "../internal", "../cmd/metal"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			where := filepath.ToSlash(path)
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				strings.Contains(where, "internal/test/") || strings.Contains(where, "internal/fake/") ||
				strings.Contains(where, "internal/base/routine/") {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				is := false
				switch n := n.(type) {
				case *ast.GoStmt:
					is = true
				case *ast.SelectorExpr:
					of, named := n.X.(*ast.Ident)
					is = named && (of.Name == "sync" && n.Sel.Name == "WaitGroup" || of.Name == "errgroup" || of.Name == "singleflight")
				}
				if is {
					t.Errorf("%s starts a goroutine; use routine.Go, routine.Each or routine.Shared", files.Position(n.Pos()))
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
