package runbook_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

func TestAccRunbook_listFindsWhatIsThere(t *testing.T) {
	t.Parallel()
	s := start(t)
	name := s.Name("listed")
	config := runbook(name, []string{reset}, `description = "Listed"`)
	w := acctest.NewWorkspace(t, s.Provider()+config)
	w.Must(acctest.Apply()...)
	defer acctest.Destroy(t, s, w)
	for pattern, want := range map[string]int{"^" + name + "$": 1, "^no-such-": 0} {
		query := acctest.Query{Type: "metal_runbook", Filters: map[string]string{"name_regex": acctest.Quoted(pattern)}, Resource: true}
		all, lister := acctest.Search(t, s, query), acctest.NewLister(t, s)
		if len(all) != want {
			t.Errorf("%s: found %v, want %d", pattern, all, want)
		}
		for _, found := range all {
			if found.Name != name {
				t.Errorf("it is displayed as %q, want %q", found.Name, name)
			}
			lister.WantAsImported(t, query.Type, found)
		}
	}
}

// A runbook that is deleted while the list is read is left out.
func TestFakeRunbook_listLeavesOutWhatIsDeleted(t *testing.T) {
	t.Parallel()
	var deleted atomic.Bool
	s := site.StartFake(t, &fakeironic.Server{Reject: func(r *http.Request) *fakeironic.Rejection {
		if !deleted.Load() || !strings.HasPrefix(r.URL.Path, "/v1/runbooks/") {
			return nil
		}
		return &fakeironic.Rejection{Status: http.StatusNotFound, Body: `{"error_message": {"faultstring": "Runbook could not be found."}}`}
	}})
	w := acctest.NewWorkspace(t, s.Provider()+runbook(s.Name("listed"), []string{reset}))
	w.Must(acctest.Apply()...)
	for _, whole := range []bool{false, true} {
		query, want := acctest.Query{Type: "metal_runbook", Resource: whole}, map[bool]int{false: 1, true: 0}[whole]
		deleted.Store(true)
		if all := acctest.Search(t, s, query); len(all) != want {
			t.Errorf("found %v, want %d", all, want)
		}
		deleted.Store(false)
	}
	acctest.Destroy(t, s, w)
}
