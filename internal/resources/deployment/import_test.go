package deployment_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// deployByHand deploys a node without this provider.
func deployByHand(s *site.Site, node, instance string) {
	if instance != "" {
		s.Patch(node, "add", "/instance_uuid", instance)
	}
	s.Patch(node, "add", "/instance_info/image_source", acctest.Images+"v1.qcow2")
	s.Patch(node, "add", "/instance_info/image_checksum", "d41d8cd98f00b204e9800998ecf8427e")
	s.Verb(node, "active", "active")
}

func TestAccDeployment_import(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	deployByHand(s, node, site.ForeignInstance(s))
	before := s.Node(node)["updated_at"]
	config := s.Provider() + acctest.Deployment(acctest.Quoted(s.Name("n1")), `image = { url = "`+acctest.Images+
		`v1.qcow2", checksum = "d41d8cd98f00b204e9800998ecf8427e" }`, `config_drive = { user_data_wo = "x", user_data_wo_version = 1 }`)
	w := acctest.NewWorkspace(t, config)
	w.Must("import", acctest.DeploymentAddress, s.Name("n1"))
	output, _ := w.Plan()
	acctest.Mention(t, output, "Imported deployment is recorded only", "deploys nothing for them", "0 to add, 1 to change, 0 to destroy")
	w.Must("apply", "-auto-approve")
	if s.Node(node)["updated_at"] != before {
		t.Error("the import changed the node")
	}
	site.WantVerbs(t, s, node, "active")
	if d := acctest.Deployed(t, w); d.Values["instance_id"] != site.ForeignInstance(s) || d.Values["id"] != node {
		t.Errorf("in state is %v", d.Values)
	}
	acctest.NoChanges(t, w)

	w.Configure(s.Provider() + acctest.Deployment(acctest.Quoted(s.Name("n1")), acctest.Image("v2")))
	output, _ = w.Plan()
	acctest.Mention(t, output, "Rebuild wipes the root disk")
	w.Must("apply", "-auto-approve")
	acctest.NoChanges(t, w)
	site.WantVerbs(t, s, node, "active", "rebuild")
	w.Must("destroy", "-auto-approve")
}

func TestAccDeployment_importWithAllocation(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	first := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web")))+
		acctest.Allocated(acctest.Image("v1")))
	first.Must("apply", "-auto-approve")
	reserved := site.AllocationNamed(s, s.Name("web"))
	before := s.Node(node)["updated_at"]

	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, `name = `+acctest.Quoted(s.Name("web")))+
		acctest.Allocated(acctest.Image("v1"))+
		"import {\n  to = metal_allocation.a\n  id = "+acctest.Quoted(s.Name("web"))+"\n}\n"+
		"import {\n  to = metal_deployment.d\n  id = "+acctest.Quoted(node)+"\n}\n")
	output := w.Must("apply", "-auto-approve")
	acctest.Mention(t, output, "2 imported, 0 added, 0 changed, 0 destroyed")
	acctest.NoChanges(t, w)
	if s.Node(node)["updated_at"] != before {
		t.Error("the import changed the node")
	}
	acctest.WantKept(t, s, w, node, reserved)
	w.Must("destroy", "-auto-approve")
	output, _ = first.Plan() // the node's deployment and allocation are gone now
	acctest.Mention(t, output, "2 to add, 0 to change, 0 to destroy")
}

func TestAccDeployment_importOfNothing(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Deployment(acctest.Quoted(node), acctest.Image("v1")))
	output, code := w.Run("import", acctest.DeploymentAddress, s.Name("n1"))
	if code == 0 {
		t.Errorf("a node without a deployment was imported:\n%s", output)
	}
	acctest.Mention(t, output, `is in state "available" and not reserved: there is no deployment to import`)
	output, code = w.Run("import", acctest.DeploymentAddress, "unknown-"+s.Class())
	if code == 0 {
		t.Errorf("an unknown node was imported:\n%s", output)
	}
	acctest.Mention(t, output, "Node unknown-"+s.Class()+" could not be found")
}
