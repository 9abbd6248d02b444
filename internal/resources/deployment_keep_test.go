package resources_test

import (
	"net/http"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
)

// wantKept fails a test unless the allocation "web" is the one of before, holds the node, and is in state.
func wantKept(t *testing.T, s *acctest.Site, w *acctest.Workspace, node string, before map[string]any) {
	t.Helper()
	kept := allocationNamed(s, s.Name("web"))
	for _, attribute := range []string{"uuid", "name", "resource_class", "owner", "node_uuid"} {
		if kept[attribute] != before[attribute] {
			t.Errorf("%s of the allocation was %v and is %v", attribute, before[attribute], kept[attribute])
		}
	}
	if kept["state"] != "active" || s.Node(node)["instance_uuid"] != before["uuid"] {
		t.Errorf("the allocation is %v; the node is reserved by %v", kept, s.Node(node)["instance_uuid"])
	}
	if a := inState(t, w, allocationAddress); a == nil || a.Values["id"] != before["uuid"] || a.Values["node_id"] != node {
		t.Errorf("in state is %+v", a)
	}
	if _, left := s.Node(node)["extra"].(map[string]any)["terraform_metal_allocation"]; left { //nolint:forcetypeassert // Ironic's schema
		t.Error("the note of the allocation is left on the node")
	}
}

func TestAccDeployment_replacementKeepsNodeAndAllocation(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	addNode(t, s, "n2", nil) // a node that could be chosen instead
	addTrait(s, node, "CUSTOM_A")
	w := acctest.NewWorkspace(t, s.Provider()+allocation(s, `name = `+quoted(s.Name("web")), `traits = ["CUSTOM_A"]`, `extra = { team = "web" }`)+allocated(image("v1")))
	w.Must("apply", "-auto-approve")
	before := allocationNamed(s, s.Name("web"))
	forgetVerbs(s)
	w.Must("apply", "-auto-approve", "-replace="+deploymentAddress)
	wantVerbs(t, s, node, "deleted", "active")
	wantKept(t, s, w, node, before)
	if now := s.Node(node); now["provision_state"] != "active" || now["allocation_uuid"] != before["uuid"] {
		t.Errorf("the node is %v, of allocation %v", now["provision_state"], now["allocation_uuid"])
	}
	if kept := allocationNamed(s, s.Name("web")); kept["extra"].(map[string]any)["team"] != "web" { //nolint:forcetypeassert // Ironic's schema
		t.Errorf("the allocation lost its extra: %v", kept)
	}
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_destroyedAloneLeavesTheAllocation(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	addNode(t, s, "n1", nil)
	addNode(t, s, "n2", nil)
	reserved := s.Provider() + allocation(s, `name = `+quoted(s.Name("web")))
	w := acctest.NewWorkspace(t, reserved+allocated(image("v1")))
	w.Must("apply", "-auto-approve")
	before := allocationNamed(s, s.Name("web"))
	node := text(before["node_uuid"])
	w.Configure(reserved)
	w.Must("apply", "-auto-approve")
	wantKept(t, s, w, node, before)
	if now := s.Node(node)["provision_state"]; now != "available" {
		t.Errorf("the node is %v", now)
	}
	noChanges(t, w)
	w.Configure(reserved + allocated(image("v1")))
	w.Must("apply", "-auto-approve")
	wantKept(t, s, w, node, before)
	w.Must("destroy", "-auto-approve")
	if allocationNamed(s, s.Name("web")) != nil {
		t.Error("the allocation is left")
	}
}

func TestAccDeployment_movesToTheNodeOfAnotherAllocation(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	first := addNode(t, s, "first", nil)
	second := addNode(t, s, "second", nil)
	config := func(candidate string) string {
		return s.Provider() + allocation(s, `candidate_nodes = [`+quoted(candidate)+`]`) + allocated(image("v1"))
	}
	w := acctest.NewWorkspace(t, config(first))
	w.Must("apply", "-auto-approve")
	w.Configure(config(second))
	output, _ := w.Plan()
	mention(t, output, allocationAddress+" must be replaced", deploymentAddress+" must be replaced")
	w.Must("apply", "-auto-approve")
	if now := s.Node(second)["provision_state"]; now != "active" {
		t.Errorf("the second node is %v", now)
	}
	if now := s.Node(first); now["provision_state"] != "available" || now["instance_uuid"] != nil {
		t.Errorf("the first node is %v, reserved by %v", now["provision_state"], now["instance_uuid"])
	}
	noChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_namingOrNotNamingItsReservationChangesNothing(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+allocation(s)+allocated(image("v1")))
	w.Must("apply", "-auto-approve")
	before := s.Node(node)["provision_updated_at"]
	w.Configure(s.Provider() + allocation(s) + deployment("metal_allocation.a.node_id", image("v1")))
	w.Must("apply", "-auto-approve")
	noChanges(t, w)
	w.Configure(s.Provider() + allocation(s) + allocated(image("v1")))
	w.Must("apply", "-auto-approve")
	noChanges(t, w)
	if s.Node(node)["provision_updated_at"] != before {
		t.Error("the machine was touched")
	}
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_allocationThatIsGoneIsNotUsed(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	node := addNode(t, s, "n1", nil)
	gone := text(s.Must(http.MethodPost, "allocations", map[string]any{"resource_class": s.Class()})["uuid"])
	s.Await(node, "instance_uuid", gone)
	s.Must(http.MethodDelete, "allocations/"+gone, nil)
	w := acctest.NewWorkspace(t, s.Provider()+deployment(quoted(node), `allocation_id = `+quoted(gone), image("v1")))
	output, code := w.Run("apply", "-auto-approve")
	if code == 0 {
		t.Fatalf("it was deployed:\n%s", output)
	}
	mention(t, output, "is not reserved by "+gone)
	if inState(t, w, deploymentAddress) != nil || s.Node(node)["provision_state"] != "available" {
		t.Errorf("something was done:\n%s", w.State())
	}
}
