// Package internal_test checks what no linter does: which packages import which, the shape of packages, and texts.
package internal_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	nodes     = "github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes" // states and verbs
	otel      = "go.opentelemetry.io/"
	terraform = "github.com/hashicorp/terraform-"
)

// groups says what a group of packages imports besides itself and the standard library: other groups, and beginnings of the paths of other
// modules. A group is a folder under internal; cmd/fake is all cmd/fake*.
var groups = map[string]string{
	"base": otel + " github.com/go-logr/logr golang.org/x/sync/", "throttle": "base " + otel,
	"ironic":  "base github.com/gophercloud/ go.yaml.in/yaml/ " + otel,
	"machine": "throttle ironic base " + nodes + " " + otel,
	"oneview": "machine ironic base " + nodes, "rollout": "machine throttle ironic base", "procedure": "machine ironic base",
	"host":      "oneview rollout machine throttle ironic base " + nodes,
	"allocate":  "host machine throttle ironic base " + nodes,
	"deploy":    "allocate rollout machine throttle ironic base " + nodes,
	"framework": "deploy allocate host oneview rollout machine ironic base github.com/vmihailenco/msgpack/ " + terraform,
	"resources": "framework deploy allocate host procedure oneview rollout machine ironic base " + terraform,
	"actions":   "framework operator oneview machine ironic base " + terraform, "functions": "ironic " + terraform,
	"datasources": "framework deploy host oneview machine ironic base " + terraform,
	"provider": "resources datasources actions functions framework oneview rollout machine throttle ironic base " + otel +
		" " + terraform,
	"main": "provider base " + terraform,
	"operator": "deploy allocate oneview rollout machine throttle ironic base github.com/prometheus/ " +
		"github.com/hashicorp/terraform-json github.com/hashicorp/hcl/ github.com/zclconf/go-cty/ " +
		"github.com/modelcontextprotocol/ github.com/mitchellh/go-wordwrap " + nodes,
	"cmd/metal": "operator oneview machine throttle ironic base github.com/spf13/ golang.org/x/term golang.org/x/sys/",
	"cmd/fake":  "fake", "fake": "",
	"test": "provider allocate deploy host machine throttle ironic base fake " + terraform,
}

// pure are packages that only decide: neither they nor their tests import another one of ours.
var pure = []string{
	"internal/host/naming", "internal/deploy/bootiso", "internal/deploy/deployinterface", "internal/rollout",
	"internal/base/decide",
}

// vague are names of packages that say nothing.
var vague = regexp.MustCompile(`(^|/)(utils?|common|helpers?|misc|shared)(/|$)`)

// mayImport reports whether a package may import a path; inTest: its tests may.
func mayImport(name, path string, inTest bool) bool {
	group, own := groupOf(name), relative(path)
	allowed := strings.Fields(groups[group])
	of, knows := groupOf(own), slices.Contains(allowed, terraform)
	inTest = inTest || group == "test"
	switch {
	case vague.MatchString(name):
		return false
	case isOwn(path) && slices.Contains(pure, name), isOwn(path) && group == "resources" && of == group:
		return inTest && own == name
	case isOwn(path) && inTest: // below Terraform, tests do not know it either
		return knows || own != "internal/test/acctest" && (of == "test" || !slices.Contains(strings.Fields(groups[of]), terraform))
	case isOwn(path):
		return of == group || slices.Contains(allowed, of)
	case path == "testing" || path == "net/http/httptest":
		return inTest
	case !strings.Contains(strings.Split(path, "/")[0], "."):
		return true // the standard library
	}
	return inTest && (knows || !strings.HasPrefix(path, terraform)) || slices.ContainsFunc(allowed, func(word string) bool {
		return strings.HasPrefix(path, word)
	})
}

func TestPackagesKeepToTheImportRules(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		for i, path := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if name := relative(p.ImportPath); !mayImport(name, path, i >= len(p.Imports)) {
				t.Errorf("%s must not import %s", name, path)
			}
		}
	}
}
