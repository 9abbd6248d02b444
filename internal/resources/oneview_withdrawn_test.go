package resources_test

import (
	"net/http"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
)

// A pool in which some server is always taken must not make every apply fail: what metal-oneview sync has taken out of service
// it brings back, too.
func TestAccOneView_aHostThatWasWithdrawnIsLeftToSync(t *testing.T) {
	t.Parallel()
	s := acctest.Start(t, nil)
	o := acctest.StartOneView(t, nil, 1)
	config := func(settings ...string) string {
		return s.Provider(o.Setting()) + blade(s, o, append(settings, target("available"))...)
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
	mention(t, output, "Host is used by OneView", "metal-oneview sync cleans it and makes it available")
	w.Configure(config(`description = "spare"`))
	w.Must("apply", "-auto-approve")
	if now := s.Node(node); now["description"] != "spare" || now["maintenance"] != true {
		t.Errorf("the node is %v", now)
	}
	unmoved()

	o.GiveBack(1)
	noChanges(t, w) // freed, but not brought back yet
	unmoved()
	s.Must(http.MethodDelete, "nodes/"+node+"/maintenance", nil)
	s.Verb(node, "provide", "available")
	noChanges(t, w)
	destroy(t, s, w)
}
