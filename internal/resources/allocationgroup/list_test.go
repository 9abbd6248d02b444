package allocationgroup_test

import (
	"net/http"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// A list has each series of names from 0 on, and neither an allocation beside them nor one after a gap.
func TestAccAllocationGroup_listFindsSeries(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	addNodes(t, s, 6)
	reserve := func(name string) string {
		id := site.Text(s.Must(http.MethodPost, "allocations", map[string]any{"name": name, "resource_class": s.Class()})["uuid"])
		t.Cleanup(func() { s.Call(http.MethodDelete, "allocations/"+id, nil) })
		site.Until(t, "allocation "+name+" to be active", func() bool { return site.AllocationNamed(s, id)["state"] == "active" })
		return id
	}
	pair, one := reserve(s.Name("pair")+"-0"), reserve(s.Name("one")+"-0")
	for _, name := range []string{s.Name("pair") + "-1", s.Name("pair") + "-3", s.Name("alone"), s.Name("second") + "-1"} {
		reserve(name)
	}
	for name, tc := range map[string]struct {
		filters map[string]string
		want    map[string]string // the name by ID
	}{
		"class": {map[string]string{}, map[string]string{pair: s.Name("pair"), one: s.Name("one")}},
		"name": {
			map[string]string{"name_regex": acctest.Quoted("^" + s.Name("pair") + "$")},
			map[string]string{pair: s.Name("pair")},
		},
		"other class": {map[string]string{"resource_class": acctest.Quoted("other-" + s.Class())}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.filters["resource_class"] == "" {
				tc.filters["resource_class"] = acctest.Quoted(s.Class())
			}
			query := acctest.Query{Type: "metal_allocation_group", Filters: tc.filters, Resource: true}
			all, lister := acctest.Search(t, s, query), acctest.NewLister(t, s)
			if len(all) != len(tc.want) {
				t.Errorf("found %v, want %v", all, tc.want)
			}
			for _, found := range all {
				if found.Name != tc.want[found.ID] {
					t.Errorf("%s is displayed as %q, want %q", found.ID, found.Name, tc.want[found.ID])
				}
				lister.WantAsImported(t, query.Type, found)
			}
		})
	}
}
