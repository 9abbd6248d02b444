package internal_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/terraform-provider-metal/terraform-provider-metal"

// golist is a package as go list prints it.
type golist struct {
	ImportPath, Dir                    string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
}

// groupOf returns the group of a package: its folder under internal, such as host; otherwise main, cmd/metal or cmd/fake.
func groupOf(name string) string {
	switch parts := strings.Split(name, "/"); {
	case name == "":
		return "main"
	case strings.HasPrefix(name, "cmd/fake"):
		return "cmd/fake"
	case parts[0] == "internal" && len(parts) > 1:
		return parts[1]
	default:
		return strings.Join(parts[:min(2, len(parts))], "/")
	}
}

func isOwn(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

// relative is the path of one of our packages without the module's.
func relative(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
}

// listPackages returns the packages of the module.
func listPackages(t *testing.T) (packages []golist) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list",
		"-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports", "./...")
	cmd.Dir, cmd.Stderr = "..", os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var p golist
		if err := decoder.Decode(&p); err != nil {
			t.Fatal(err)
		}
		p.touch(t)
		packages = append(packages, p)
	}
	return packages
}

// touch reads the attributes of the package's directories and files, so that go test does not answer from its cache when they have
// changed: go test does not notice what go list reads.
func (p golist) touch(t *testing.T) {
	t.Helper()
	for _, name := range slices.Concat([]string{"", ".."}, p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
		if _, err := os.Stat(filepath.Join(p.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMayImport_findsWhatIsForbidden(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, path    string
		product, test bool
	}{
		{"internal/resources/host", module + "/internal/resources/deployment", false, false},
		{"internal/resources/host", module + "/internal/datasources", false, true},
		{"internal/resources/host", module + "/internal/test/acctest", false, true},
		{"internal/machine", "github.com/hashicorp/terraform-plugin-framework/types", false, false},
		{"internal/machine", module + "/internal/test/acctest", false, false},
		{"internal/machine", module + "/internal/deploy", false, true},
		{"internal/machine", module + "/internal/fake/fakeironic", false, true},
		{"internal/throttle", module + "/internal/ironic", false, true},
		{"internal/host/naming", module + "/internal/ironic", false, false},
		{"internal/host/naming", module + "/internal/host/naming", false, true},
		{"internal/provider", module + "/internal/operator/watch", false, true},
		{"internal/fake/fakeironic", module + "/internal/ironic", false, true},
		{"internal/fake/fakeironic", "golang.org/x/sync/semaphore", false, true},
		{"internal/fake/fakeironic", "net/http/httptest", false, true},
		{"internal/fake/fakeironic", "net/http", true, true},
		{"internal/test/acctest", "testing", true, true},
		{"internal/volumes", module + "/internal/ironic", false, true},
		{"internal/machine/utils", "strings", false, false},
		{"cmd/fakeironic", module + "/internal/ironic", false, true},
		{"cmd/metal/cli", module + "/internal/framework", false, false},
		{"cmd/metal/cli", module + "/internal/operator/watch", true, true},
	} {
		if product, test := mayImport(tt.name, tt.path, false), mayImport(tt.name, tt.path, true); product != tt.product ||
			test != tt.test {
			t.Errorf("%s imports %s: %v, its tests: %v; want %v and %v", tt.name, tt.path, product, test, tt.product, tt.test)
		}
	}
}
