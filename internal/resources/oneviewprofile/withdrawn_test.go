package oneviewprofile_test

import (
	"net/http"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// An apply does not fail because metal oneview sync has taken a host out of service. Sync also returns the host to service.
func TestAccOneView_hostOutOfServiceIsLeftToSync(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	o := site.StartOneView(t, nil, 1)
	config := func(settings ...string) string {
		return s.Provider(o.Setting()) + blade(s, o, append(settings, acctest.Target("available"))...)
	}
	w := acctest.NewWorkspace(t, config())
	w.Must("apply", "-auto-approve")
	node := s.Name("h")
	o.Take(1)
	s.Must(http.MethodPut, "nodes/"+node+"/maintenance", map[string]any{"reason": "node in use by OneView"})
	s.Verb(node, "manage", "manageable")
	unmoved := unmoved(t, s, node)

	output, changes := w.Plan()
	if changes {
		t.Errorf("the plan is not empty:\n%s", output)
	}
	acctest.Mention(t, output, "Host is used by OneView", "metal oneview sync cleans it and makes it available")
	w.Configure(config(`description = "spare"`))
	w.Must("apply", "-auto-approve")
	if now := s.Node(node); now["description"] != "spare" || now["maintenance"] != true {
		t.Errorf("the node is %v", now)
	}
	unmoved()

	o.GiveBack(1)
	acctest.NoChanges(t, w) // free again, but not returned to service yet
	unmoved()
	s.Must(http.MethodDelete, "nodes/"+node+"/maintenance", nil)
	s.Verb(node, "provide", "available")
	acctest.NoChanges(t, w)
	acctest.Destroy(t, s, w)
}
