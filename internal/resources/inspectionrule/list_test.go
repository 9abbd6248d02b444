package inspectionrule_test

import (
	"fmt"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

func TestAccInspectionRule_listFindsWhatIsThere(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	s.SkipBefore(t, 96)
	name := s.Name("listed")
	config := fmt.Sprintf("resource \"metal_inspection_rule\" \"b\" {\n  description = %q\n  actions = [{ op = \"set-attribute\", args "+
		"= jsonencode({ path = \"/description\", value = \"x\" }) }]\n}\n", name)
	w := acctest.NewWorkspace(t, s.Provider()+config)
	w.Must(acctest.Apply()...)
	defer acctest.Destroy(t, s, w)
	for pattern, want := range map[string]int{"^" + name + "$": 1, "^no-such-": 0} {
		query := acctest.Query{
			Type: "metal_inspection_rule", Filters: map[string]string{"name_regex": acctest.Quoted(pattern)},
			Resource: true,
		}
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
