package deployment_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// machines is how many machines a plan is about whose lines are counted.
const machines = 10

// machinesOf returns the HCL of hosts, and, with an image, of an allocation and a deployment of each.
func machinesOf(s *site.Site, image string) string {
	config := fmt.Sprintf(`resource "metal_host" "h" {
  count = %d
  name = "%s-${count.index}"
  resource_class = %q
  driver = "fake-hardware"
  target_state = "available"
}
`, machines, s.Name("h"), s.Class())
	if image == "" {
		return config
	}
	return config + fmt.Sprintf(`resource "metal_allocation" "a" {
  count = %d
  name = "%s-${count.index}"
  resource_class = metal_host.h[count.index].resource_class
}
resource "metal_deployment" "d" {
  count = %d
  node_id = metal_allocation.a[count.index].node_id
  allocation_id = metal_allocation.a[count.index].id
  image = { url = "%s%s.qcow2", checksum = %q }
}
`, machines, s.Name("a"), machines, acctest.Images, image, acctest.Checksum(image))
}

// linesEach returns how many lines of a plan, without warnings, there are for each machine.
func linesEach(t *testing.T, w *acctest.Workspace) int {
	t.Helper()
	output, _ := w.Plan()
	_, changes, _ := strings.Cut(output, "Terraform will perform the following actions:\n")
	changes, _, found := strings.Cut(changes, "\nPlan: ")
	if !found {
		t.Fatalf("no plan:\n%s", output)
	}
	return strings.Count(changes, "\n") / machines
}

// People read a plan before they apply it: what the provider knows that nobody asks for has no line. The limits are what is printed now:
// a new attribute that is neither null nor unchanged in such a plan needs a reason.
func TestFakeDeployment_planLinesOfEachMachine(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	w := acctest.NewWorkspace(t, s.Provider()+machinesOf(s, "v1"))
	check := func(what string, most int) {
		t.Helper()
		if n := linesEach(t, w); n > most {
			output, _ := w.Plan()
			t.Errorf("%s: %d lines for each machine, want at most %d:\n%s", what, n, most, output)
		}
	}
	check("new machines", 49)
	w.Must("apply", "-auto-approve")
	w.Configure(s.Provider() + machinesOf(s, "v2"))
	check("a new image", 13) // one of them because the machines of this fake are off

	imports := acctest.NewWorkspace(t, "")
	var blocks strings.Builder
	for i := range machines {
		fmt.Fprintf(&blocks, "import {\n  to = metal_host.h[%d]\n  id = \"%s-%d\"\n}\n", i, s.Name("h"), i)
	}
	imports.Configure(s.Provider() + machinesOf(s, "") + blocks.String())
	w = imports
	check("an import", 30)
}
