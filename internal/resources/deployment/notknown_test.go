package deployment_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// deferred returns a deployment whose reservation comes from a data source that is read during the apply if note changes: it depends on
// something that changes then, as the data sources of a module with depends_on do.
func deferred(note, name string, settings ...string) string {
	return fmt.Sprintf(`
resource "terraform_data" "record" {
  input = %q
}

data "metal_allocation" "a" {
  name       = %q
  depends_on = [terraform_data.record, metal_allocation.a, metal_allocation.b]
}
`, note, name) + acctest.Deployment("data.metal_allocation.a.node_id", append(settings, "allocation_id = data.metal_allocation.a.id",
		acctest.Image("v1"), `on_change = "replace"`)...)
}

// A reservation that is not known yet is no other one: nothing is planned. If it turns out to be another one, Terraform stops.
func TestAccDeployment_unknownReservationIsKept(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	site.AddTrait(s, node, "CUSTOM_A")
	site.AddNode(t, s, "n2", nil)
	first := acctest.Allocation(s, "name = "+acctest.Quoted(s.Name("web")), `traits = ["CUSTOM_A"]`)
	w := acctest.NewWorkspace(t, s.Provider()+first)
	w.Must("apply", "-auto-approve")
	config := func(note, name string, settings ...string) {
		w.Configure(s.Provider() + first + fmt.Sprintf("resource \"metal_allocation\" \"b\" {\n  resource_class = %q\n  name = %q\n}\n",
			s.Class(), s.Name("other")) + deferred(note, s.Name(name), settings...))
	}
	config("1", "web")
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)

	config("2", "web")
	if planned := w.Save()[acctest.DeploymentAddress]; !slices.Equal(planned.Actions, []string{"no-op"}) {
		t.Errorf("a reservation that is not known yet plans %v", planned.Actions)
	}
	w.Must("apply", "saved")
	graceful := `power_off_mode = "graceful"`
	config("3", "web", graceful)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "0 added, 2 changed, 0 destroyed")

	config("4", "other", `power_off_mode = "soft"`)
	acctest.Fails(t, w, []string{"apply", "-auto-approve"}, "Provider produced inconsistent final plan")
	site.WantVerbs(t, s, node, "active")
	output, _ := w.Plan() // now it is known
	acctest.Mention(t, output, "must be replaced", "allocation_id")
	config("4", "web", graceful)
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

// A reservation that the same plan ends is another one, though its ID is not known yet.
func TestAccDeployment_replacedReservationMovesDeployment(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	site.AddNode(t, s, "n1", nil)
	site.AddNode(t, s, "n2", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, "name = "+acctest.Quoted(s.Name("web")))+acctest.Allocated(
		acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	before := acctest.Deployed(t, w).Values["allocation_id"]
	output := w.Must("plan", "-replace=metal_allocation.a")
	acctest.Mention(t, output, "2 to add, 0 to change, 2 to destroy")
	w.Must("apply", "-auto-approve", "-replace=metal_allocation.a")
	if after := acctest.Deployed(t, w).Values["allocation_id"]; after == before {
		t.Error("the deployment has the former allocation")
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}
