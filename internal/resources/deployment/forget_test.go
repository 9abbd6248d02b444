package deployment_test

import (
	"net/http"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

const kept = "lifecycle {\n    destroy = false\n  }"

// imports returns import blocks, by address.
func imports(of map[string]string) (text string) {
	for address, id := range of {
		text += "import {\n  to = " + address + "\n  id = " + acctest.Quoted(id) + "\n}\n"
	}
	return text
}

// With destroy = false in a lifecycle block, a CLI drops resources without a request to the provider: everything stays in Ironic, and an
// import takes it back. Without the block, Terraform destroys, and OpenTofu goes by what the state says.
func TestFakeDeployment_destroyFalseLeavesAll(t *testing.T) {
	t.Parallel()
	acctest.SkipBelow(t, "destroy = false in a lifecycle block", 16, 12)
	s := site.StartFake(t, nil)
	managed := s.Provider() + acctest.Host(s, 1, kept) +
		acctest.Allocation(s, "name = "+acctest.Quoted(s.Name("web")), "depends_on = [metal_host.h1]", kept) +
		acctest.Allocated(acctest.Image("v1"), "protected = true", kept)
	w := acctest.NewWorkspace(t, managed)
	w.RealCLI()
	w.Must("apply", "-auto-approve")
	before := s.Node(s.Name("h1"))
	s.Fake.ResetRequests()
	w.Configure(s.Provider())
	if acctest.IsOpenTofu(t) {
		acctest.Mention(t, w.Must("plan"), "0 to destroy, 3 to forget")
	} else {
		acctest.Fails(t, w, []string{"plan"}, "Machine is protected", "this plan would destroy its deployment")
	}
	w.Configure(managed)
	output, code := w.Run("destroy", "-auto-approve")
	if (code != 0) != acctest.IsOpenTofu(t) {
		t.Errorf("exit code %d", code)
	}
	acctest.NeverMention(t, output, "Destroying leaves the machine running")
	if left := acctest.InState(t, w, acctest.DeploymentAddress); left != nil {
		t.Errorf("the state still has %v:\n%s", left.Values, output)
	}
	for _, r := range s.Fake.Requests() {
		if r.Method != http.MethodGet {
			t.Errorf("the destroy has sent %s %s", r.Method, r.Path)
		}
	}
	after := s.Node(s.Name("h1"))
	if after["provision_state"] != "active" || after["protected"] != true || after["allocation_uuid"] != before["allocation_uuid"] {
		t.Errorf("the node was %v and is %v", before, after)
	}
	w.Configure(managed + imports(map[string]string{
		"metal_host.h1": s.Name("h1"), acctest.AllocationAddress: s.Name("web"), acctest.DeploymentAddress: s.Name("h1"),
	}))
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "3 imported, 0 added, 0 changed, 0 destroyed")
	acctest.NoChanges(t, w)
	if acctest.IsOpenTofu(t) {
		w.Must("apply", "-auto-approve") // only now does the state say destroy = false of what was imported
		w.Configure(s.Provider())
		acctest.Mention(t, w.Must("plan"), "0 to destroy, 3 to forget")
	}
}

// Terraform drops an instance whose key is gone, and yet destroys what it replaces: its plan says so. OpenTofu drops both.
func TestFakeDeployment_destroyFalseAndReplacements(t *testing.T) {
	t.Parallel()
	acctest.SkipBelow(t, "destroy = false in a lifecycle block", 16, 12)
	s := site.StartFake(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	managed := func(count string) string {
		return s.Provider() + acctest.Deployment(acctest.Quoted(node), count, acctest.Image("v1"), kept)
	}
	w := acctest.NewWorkspace(t, managed("count = 1"))
	w.RealCLI()
	w.Must("apply", "-auto-approve")
	site.ForgetVerbs(s)
	output := w.Must("plan", "-replace="+acctest.DeploymentAddress+"[0]")
	if acctest.IsOpenTofu(t) {
		acctest.Mention(t, output, "1 to add, 0 to change, 0 to destroy, 1 to forget")
	} else {
		acctest.Mention(t, output, "1 to add, 0 to change, 1 to destroy")
	}
	w.Configure(managed("count = 0"))
	w.Run("apply", "-auto-approve")
	if left := acctest.InState(t, w, acctest.DeploymentAddress+"[0]"); left != nil {
		t.Errorf("the state still has %v", left.Values)
	}
	site.WantVerbs(t, s, node)
	s.Verb(node, "deleted", "available")
}
