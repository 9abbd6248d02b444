package guides_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// openTested returns a workspace in the module of the guide "Test your own module", without an Ironic.
func openTested(t *testing.T) *acctest.Workspace {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(guides+"/test-a-module/database")); err != nil {
		t.Fatal(err)
	}
	w := acctest.OpenWorkspace(t, dir)
	w.OwnProcess() // a CLI attaches all configurations of a provider to one server, and the test command makes several
	return w
}

func TestFakeExamples_testAModule(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"mock": {"test"}, "fake": {"test", "-test-directory=tests/fake"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openTested(t)
			s := site.StartFake(t, nil)
			if name == "fake" {
				w.Setenv("METAL_ENDPOINT", s.Endpoint)
			}
			w.Must("get", "-test-directory=tests/fake")
			before := len(s.Fake.Requests())
			if output := w.Must(args...); !strings.Contains(output, "3 passed, 0 failed") {
				t.Errorf("not all tests ran:\n%s", output)
			}
			if asked := len(s.Fake.Requests()) > before; asked != (name == "fake") {
				t.Errorf("the tests sent requests: %v", asked)
			}
			wantEmpty(t, s)
		})
	}
}

// mockFacts are the rows of the guide's table that say whether a mock finds a mistake (reference/terraform.md#mocks-of-a-provider): an edit
// of the module, the error of a mock ("" if the test passes), and that of a fake.
var mockFacts = map[string]struct{ old, edited, mock, fake string }{
	"one attribute": {
		old: "  protected = ", edited: "  on_change = \"sometimes\"\n  protected = ",
		mock: `on_change value must be one of: ["rebuild" "replace" "ignore"]`,
		fake: `on_change value must be one of: ["rebuild" "replace" "ignore"]`,
	},
	"a combination of attributes": {
		old: `, checksum = "http://images.example.com/SHA256SUMS"`, edited: "",
		mock: "Ironic demands a checksum for http images", fake: "Ironic demands a checksum for http images",
	},
	"an argument of a function": {
		old: "mac       = data.metal_host.node[each.key].macs[0]", edited: `mac = "52:54"`,
		mock: `"52:54" must be a MAC address`, fake: `"52:54" must be a MAC address`,
	},
	"what Ironic refuses": {
		old: `output "databases"`, edited: "resource \"metal_host\" \"twin\" {\n  for_each = toset([\"twin-1\", \"twin-2\"])\n\n  name " +
			"  = each.key\n  driver = \"fake-hardware\"\n  ports  = { \"52:54:00:0d:b0:02\" = {} }\n}\n\noutput \"databases\"",
		fake: "52:54:00:0d:b0:02",
	},
}

func TestFakeExamples_whatAMockFinds(t *testing.T) {
	t.Parallel()
	for name, fact := range mockFacts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openTested(t)
			w.Setenv("METAL_ENDPOINT", site.StartFake(t, nil).Endpoint)
			replaceIn(t, w, "main.tf", fact.old, fact.edited)
			w.Must("get", "-test-directory=tests/fake")
			if fact.mock == "" {
				w.Must("test")
			} else {
				acctest.Fails(t, w, []string{"test"}, fact.mock)
			}
			acctest.Fails(t, w, []string{"test", "-test-directory=tests/fake"}, fact.fake)
		})
	}
}

// A mock decides no step of a plan: another image neither raises a counter nor replaces a deployment.
func TestFakeExamples_aMockPlansNoRebuild(t *testing.T) {
	t.Parallel()
	w := openTested(t)
	file := filepath.Join("tests", "mock.tftest.hcl")
	text, _, found := strings.Cut(read(t, filepath.Join(w.Dir, file)), "\nrun ")
	if !found {
		t.Fatal("the test of the guide has no run")
	}
	write(t, filepath.Join(w.Dir, file), text+`
run "deploys" {}

run "another_image" {
  variables {
    image = "http://images.example.com/debian-13.qcow2"
  }

  assert {
    condition     = metal_deployment.db["db-1"].rebuilds == 0 && endswith(metal_deployment.db["db-1"].image.url, "debian-13.qcow2")
    error_message = "A mock has planned a rebuild."
  }
}
`)
	if output := w.Must("test"); !strings.Contains(output, "2 passed, 0 failed") {
		t.Errorf("not all tests ran:\n%s", output)
	}
}
