package allocation_test

import (
	"net/http"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// maintain puts a node into maintenance until the test ends.
func maintain(t *testing.T, s *site.Site, node, reason string) {
	t.Helper()
	s.Must(http.MethodPut, "nodes/"+node+"/maintenance", map[string]any{"reason": reason})
	t.Cleanup(func() { s.Must(http.MethodDelete, "nodes/"+node+"/maintenance", nil) })
}

func TestAccAllocation_unusableNodeIsReplaced(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	first := site.AddNode(t, s, "n1", nil)
	config := s.Provider() + acctest.Allocation(s, "name = "+acctest.Quoted(s.Name("web")), `on_unusable = "replace"`)
	w := acctest.NewWorkspace(t, config)
	w.Must("apply", "-auto-approve")
	second := site.AddNode(t, s, "n2", nil)
	maintain(t, s, first, "broken fan")
	output := w.Must("plan", "-out=saved")
	acctest.Mention(t, output, "Unusable node is released", "Nothing is deployed on node "+s.Name("n1"), "in maintenance (broken fan)",
		"Nodes that match now: 1 of ", "1 in maintenance.", "-/+ destroy and then create replacement",
		"# forces replacement", "1 to add, 0 to change, 1 to destroy")
	w.Must("apply", "saved")
	if now := acctest.InState(t, w, acctest.AllocationAddress); now.Values["node_id"] != second {
		t.Errorf("in state is %+v", now)
	}
	acctest.NoChanges(t, w)
	w.Must("destroy", "-auto-approve")
}

func TestAccAllocation_deployedNodeIsNotReplacedForMaintenance(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	site.AddNode(t, s, "n2", nil)
	w := acctest.NewWorkspace(t, s.Provider()+acctest.Allocation(s, "candidate_nodes = ["+acctest.Quoted(node)+"]",
		`on_unusable = "replace"`)+acctest.Allocated(acctest.Image("v1")))
	w.Must("apply", "-auto-approve")
	site.ForgetVerbs(s)
	s.Must(http.MethodPut, "nodes/"+node+"/maintenance", map[string]any{})
	w.Must("apply", "-auto-approve")
	wantUntouched(t, s, node)
	s.Must(http.MethodDelete, "nodes/"+node+"/maintenance", nil)
	w.Must("destroy", "-auto-approve")
}
