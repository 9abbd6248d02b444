package deployment_test

import (
	"net/http"
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
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web")), `traits = ["CUSTOM_A"]`, `extra = { team = "web" }`)+acctest.Allocated(acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	before := site.AllocationNamed(s, s.Name("web"))
	site.ForgetVerbs(s)
	w.Must("apply", "-auto-approve", "-replace="+acctest.DeploymentAddress)
	site.WantVerbs(t, s, node, "deleted", "active")
	acctest.WantKept(t, s, w, node, before)
	if now := s.Node(node); now["provision_state"] != "active" || now["allocation_uuid"] != before["uuid"] {
		t.Errorf("the node is %v, of allocation %v", now["provision_state"], now["allocation_uuid"])
	}
	if kept := site.AllocationNamed(s, s.Name("web")); kept["extra"].(map[string]any)["team"] != "web" { //nolint:forcetypeassert // Ironic's schema
		t.Errorf("the allocation lost its extra: %v", kept)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_destroyKeepsAllocation(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	site.AddNode(t, s, "n1", nil)
	site.AddNode(t, s, "n2", nil)
	reserved := s.Provider() + acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web")))
	w := acctest.NewWorkspace(t, reserved+acctest.Allocated(acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	before := site.AllocationNamed(s, s.Name("web"))
	node := site.Text(before["node_uuid"])
	w.Configure(reserved)
	w.Must("apply", "-auto-approve")
	acctest.WantKept(t, s, w, node, before)
	if now := s.Node(node)["provision_state"]; now != "available" {
		t.Errorf("the node is %v", now)
	}
	acctest.NoChanges(t, w)
	w.Configure(reserved + acctest.Allocated(acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	acctest.WantKept(t, s, w, node, before)
	w.Must("destroy", "-auto-approve")
	if site.AllocationNamed(s, s.Name("web")) != nil {
		t.Error("the allocation is left")
	}
}

func TestAccDeployment_movesToOtherAllocation(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	first := site.AddNode(t, s, "first", nil)
	second := site.AddNode(t, s, "second", nil)
	site.AddTrait(s, first, "CUSTOM_A")
	site.AddTrait(s, second, "CUSTOM_B")
	config := func(trait string) string {
		return s.Provider() + acctest.Allocation(s, `traits = [`+acctest.Quoted(trait)+`]`) + acctest.Allocated(acctest.Image("v1"))
	}
	w := acctest.NewWorkspace(t, config("CUSTOM_A"))
	w.Must("apply", "-auto-approve")
	w.Configure(config("CUSTOM_B"))
	output, _ := w.Plan()
	acctest.Mention(t, output, acctest.AllocationAddress+" must be replaced", acctest.DeploymentAddress+" must be replaced")
	w.Must("apply", "-auto-approve")
	if now := s.Node(second)["provision_state"]; now != "active" {
		t.Errorf("the second node is %v", now)
	}
	if now := s.Node(first); now["provision_state"] != "available" || now["instance_uuid"] != nil {
		t.Errorf("the first node is %v, reserved by %v", now["provision_state"], now["instance_uuid"])
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_allocationIDIsOptional(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s)+acctest.Allocated(acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	before := s.Node(node)["provision_updated_at"]
	w.Configure(s.Provider() + acctest.Allocation(s) + acctest.Deployment("metal_allocation.a.node_id", acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	w.Configure(s.Provider() + acctest.Allocation(s) + acctest.Allocated(acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	if s.Node(node)["provision_updated_at"] != before {
		t.Error("the machine was touched")
	}
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_missingAllocation(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	gone := site.Text(s.Must(http.MethodPost, "allocations", map[string]any{"resource_class": s.Class()})["uuid"])
	s.Await(node, "instance_uuid", gone)
	s.Must(http.MethodDelete, "allocations/"+gone, nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), `allocation_id = `+acctest.Quoted(gone), acctest.Image("v1")))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("it was deployed:\n%s", output)
	}
	acctest.Mention(t, output, "is not reserved by "+gone)
	if acctest.InState(t, w, acctest.DeploymentAddress) != nil || s.Node(node)["provision_state"] != "available" {
		t.Errorf("something was done:\n%s", w.State())
	}
}
