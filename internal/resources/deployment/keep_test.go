package deployment_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

func TestAccDeployment_replacementKeepsReservation(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	site.AddNode(t, s, "n2", nil) // a node that could be chosen instead
	site.AddTrait(s, node, "CUSTOM_A")
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web")), `traits = ["CUSTOM_A"]`,
		`extra = { team = "web" }`)+acctest.Allocated(acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	before := site.AllocationNamed(s, s.Name("web"))
	site.ForgetVerbs(s)
	w.Must("apply", "-auto-approve", "-replace="+acctest.DeploymentAddress)
	site.WantVerbs(t, s, node, "deleted", "active")
	acctest.WantKept(t, s, w, node, before)
	if now := s.Node(node); now["provision_state"] != "active" || now["allocation_uuid"] != before["uuid"] {
		t.Errorf("the node is %v, of allocation %v", now["provision_state"], now["allocation_uuid"])
	}
	kept := site.AllocationNamed(s, s.Name("web"))
	if kept["extra"].(map[string]any)["team"] != "web" {
		t.Errorf("the allocation lost its extra: %v", kept)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}
