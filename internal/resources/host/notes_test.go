package host_test

import (
	"net/http"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// Neither an import nor a plan takes the notes of metal on a node for the user's extra, and an apply keeps them.
func TestAccHost_ignoresNotesOfMetal(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	name := s.Name("h")
	notes := []string{"metal_oneview_returning", "metal_oneview_migrating", "terraform_metal_operation"}
	extra := map[string]any{"team": "a"}
	for _, note := range notes {
		extra[note] = "2026-01-02T03:04:05Z"
	}
	s.Must(http.MethodPost, "nodes", map[string]any{"name": name, "driver": "fake-hardware", "resource_class": s.Class(), "extra": extra})
	config := func(team string) string {
		return s.Provider() + acctest.HostBlock(name, `driver = "fake-hardware"`, `resource_class = `+acctest.Quoted(s.Class()),
			`extra = { team = `+acctest.Quoted(team)+` }`)
	}
	w := acctest.NewWorkspace(t, "import {\n  to = metal_host.h\n  id = "+acctest.Quoted(name)+"\n}\n"+config("a"))
	defer acctest.Destroy(t, s, w)
	acctest.Mention(t, w.Must("apply", "-auto-approve"), "1 imported, 0 added, 0 changed, 0 destroyed")
	acctest.NoChanges(t, w)
	w.Configure(config("b"))
	w.Must("apply", "-auto-approve")
	now, _ := s.Node(name)["extra"].(map[string]any)
	if now["team"] != "b" {
		t.Errorf("team = %v, want b", now["team"])
	}
	for _, note := range notes {
		if now[note] == nil {
			t.Errorf("the apply removed %s", note)
		}
		s.Patch(name, "remove", "/extra/"+note, nil)
	}
	acctest.NoChanges(t, w)
}
