package discoveryimport_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// A list has the discoveries whose names are on nodes: also one that is not in a state any more, and none that has taken no machine.
func TestAccDiscovery_listFindsOwners(t *testing.T) {
	t.Parallel()
	s := site.StartDiscovery(t)
	query := acctest.Query{
		Type: "metal_discovery_import", Filters: map[string]string{"name_regex": acctest.Quoted("^" + s.Name("rack"))},
		Resource: true,
	}
	if all := acctest.Search(t, s, query); len(all) > 0 {
		t.Errorf("found %v before any discovery", all)
	}
	s.DiscoverAll(machines(s, 3)...)
	w := acctest.NewWorkspace(t, s.Provider()+discoveryBlock(s, "rack", s.Name("rack"), bySerial("r12-"))+
		discoveryBlock(s, "none", s.Name("rack-none"), bySerial("r13-"), "include = []"))
	w.Must("apply", "-auto-approve")
	w.Must("state", "rm", rackAddress)
	all := acctest.Search(t, s, query)
	if len(all) != 1 || all[0].ID != s.Name("rack") || all[0].Name != s.Name("rack") {
		t.Fatalf("found %v, want %s", all, s.Name("rack"))
	}
	acctest.NewLister(t, s).WantAsImported(t, query.Type, all[0], "name_template")
	query.Filters["name_regex"] = `"^no-such-"`
	if all := acctest.Search(t, s, query); len(all) > 0 {
		t.Errorf("found %v, want nothing", all)
	}
}
