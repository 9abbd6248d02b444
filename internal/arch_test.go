// Package internal_test holds the arrows between the rooms of this house: who may import whom.
package internal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	module    = "github.com/terraform-provider-metal/terraform-provider-metal"
	terraform = "github.com/hashicorp/terraform-"
)

// room says what a package may import besides the standard library.
type room struct {
	own      []string // packages of this module, relative to it
	foreign  []string // beginnings of the paths of other modules
	testOnly bool     // imported by tests only, and may import testing
}

// rooms are all packages of this module. A new one needs a line here, and a reason for every arrow.
func rooms() map[string]room {
	return map[string]room{
		"":                     {own: []string{"internal/provider"}, foreign: []string{terraform}},
		"cmd/fakeironic":       {own: []string{"internal/fakeironic"}},
		"cmd/fakeoneview":      {own: []string{"internal/fakeoneview"}},
		"cmd/metal-oneview":    {own: []string{"internal/oneview", "internal/ironic"}},
		"internal":             {},
		"internal/provider":    {own: []string{"internal/resources", "internal/datasources", "internal/ironic", "internal/oneview", "internal/throttle", "internal/discovery"}, foreign: []string{terraform}},
		"internal/resources":   {own: []string{"internal/ironic", "internal/discovery", "internal/bootiso", "internal/oneview"}, foreign: []string{terraform}},
		"internal/datasources": {own: []string{"internal/ironic", "internal/discovery", "internal/bootiso", "internal/oneview"}, foreign: []string{terraform}},
		"internal/ironic":      {own: []string{"internal/throttle", "internal/discovery", "internal/bootiso"}, foreign: []string{"github.com/gophercloud/gophercloud/v2"}},
		"internal/throttle":    {},
		"internal/discovery":   {},
		"internal/bootiso":     {},
		"internal/fakeironic":  {},
		"internal/fakeoneview": {},
		"internal/oneview":     {own: []string{"internal/ironic"}, foreign: []string{"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"}}, // the names of states
		"internal/acctest":     {own: []string{"internal/provider", "internal/fakeironic", "internal/fakeoneview"}, foreign: []string{terraform}, testOnly: true},
	}
}

// listed is a package as go list prints it.
type listed struct {
	ImportPath, Dir                    string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
}

func TestPackagesImportOnlyAlongTheArrows(t *testing.T) {
	t.Parallel()
	gone := rooms()
	for _, p := range listPackages(t) {
		delete(gone, relative(p.ImportPath))
		for _, fault := range faults(rooms(), p) {
			t.Error(fault)
		}
	}
	for name := range gone {
		t.Errorf("there is no package %q any more; its line is in the way", name)
	}
}

func TestAWrongArrowIsSeen(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		p    listed
		want string
	}{
		{"resources know data sources", listed{ImportPath: "internal/resources", Imports: []string{module + "/internal/datasources"}}, "must not import"},
		{"the domain knows Terraform", listed{ImportPath: "internal/ironic", Imports: []string{terraform + "plugin-framework/types"}}, "must not import"},
		{"the domain's tests know Terraform", listed{ImportPath: "internal/ironic", XTestImports: []string{terraform + "testing/helper/resource"}}, "must not import"},
		{"the domain's tests know the glue", listed{ImportPath: "internal/ironic", XTestImports: []string{module + "/internal/acctest"}}, "must not import"},
		{"the throttle knows the domain", listed{ImportPath: "internal/throttle", Imports: []string{module + "/internal/ironic"}}, "must not import"},
		{"the fake has a dependency", listed{ImportPath: "internal/fakeironic", Imports: []string{"golang.org/x/sync/semaphore"}}, "must not import"},
		{"the fake imports testing", listed{ImportPath: "internal/fakeironic", Imports: []string{"testing"}}, "must not import testing"},
		{"the fake imports httptest", listed{ImportPath: "internal/fakeironic", Imports: []string{"net/http/httptest"}}, "must not import net/http/httptest"},
		{"the product imports acctest", listed{ImportPath: "internal/provider", Imports: []string{module + "/internal/acctest"}}, "must not import"},
		{"a package nobody has placed", listed{ImportPath: "internal/volumes"}, "no line"},
		{"a package for everything", listed{ImportPath: "internal/resources/utils"}, "says nothing"},
		{"tests use acctest", listed{ImportPath: "internal/resources", XTestImports: []string{module + "/internal/acctest", terraform + "testing/helper/resource"}}, ""},
		{"the domain's tests use the fake", listed{ImportPath: "internal/ironic", XTestImports: []string{module + "/internal/fakeironic", module + "/internal/ironic"}}, ""},
		{"acctest imports testing", listed{ImportPath: "internal/acctest", Imports: []string{"testing"}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.p.ImportPath = module + "/" + tt.p.ImportPath
			got := strings.Join(faults(rooms(), tt.p), "; ")
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("faults = %q, want %q", got, tt.want)
			}
		})
	}
}

// faults are what is wrong with a package's name and imports.
func faults(rooms map[string]room, p listed) []string {
	name := relative(p.ImportPath)
	for _, vague := range []string{"util", "utils", "common", "helper", "helpers", "misc", "shared"} {
		if slices.Contains(strings.Split(name, "/"), vague) {
			return []string{name + ": the name " + vague + " says nothing; name the package for what it does"}
		}
	}
	r, placed := rooms[name]
	if !placed {
		return []string{name + " has no line in this test: say what it may import"}
	}
	var found []string
	for _, path := range p.Imports {
		if (path == "testing" || path == "net/http/httptest") && !r.testOnly {
			found = append(found, fmt.Sprintf("%s must not import %s", name, path))
		}
		if !r.allows(path) {
			found = append(found, fmt.Sprintf("%s must not import %s", name, path))
		}
	}
	for _, path := range slices.Concat(p.TestImports, p.XTestImports) {
		if !r.allows(path) && !r.allowsInTests(name, path) {
			found = append(found, fmt.Sprintf("the tests of %s must not import %s", name, path))
		}
	}
	return found
}

// allows reports whether the package may import a path.
func (r room) allows(path string) bool {
	if isOwn(path) {
		return slices.Contains(r.own, relative(path))
	}
	if !strings.Contains(strings.Split(path, "/")[0], ".") {
		return true // the standard library
	}
	return slices.ContainsFunc(r.foreign, func(begin string) bool { return strings.HasPrefix(path, begin) })
}

// allowsInTests reports whether its tests may import a path that it may not import itself: the package, the fakes and, where
// Terraform is known anyway, acctest.
func (r room) allowsInTests(name, path string) bool {
	switch relative(path) {
	case name, "internal/fakeironic", "internal/fakeoneview":
		return isOwn(path)
	case "internal/acctest":
		return slices.Contains(r.foreign, terraform)
	}
	return false
}

func isOwn(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

// relative is the path of one of our packages without the module's.
func relative(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
}

func listPackages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = ".."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var packages []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatal(err)
		}
		p.touch(t)
		packages = append(packages, p)
	}
}

// touch looks at the package's directories and files, so that go test does not answer from its cache when they have changed:
// it does not see what go list reads.
func (p listed) touch(t *testing.T) {
	t.Helper()
	for _, name := range slices.Concat([]string{"", ".."}, p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
		if _, err := os.Stat(filepath.Join(p.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}
