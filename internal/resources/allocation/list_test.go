package allocation_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// reserve makes an allocation without the provider and returns its UUID.
func reserve(t *testing.T, s *site.Site, fields map[string]any) string {
	t.Helper()
	body := map[string]any{"resource_class": s.Class()}
	for key, value := range fields {
		body[key] = value
	}
	id := site.Text(s.Must(http.MethodPost, "allocations", body)["uuid"])
	t.Cleanup(func() { s.Call(http.MethodDelete, "allocations/"+id, nil) })
	site.Until(t, "the allocation to end", func() bool { return site.AllocationNamed(s, id)["state"] != "allocating" })
	return id
}

func TestAccAllocation_listFindsWhatFiltersSelect(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	node := site.AddNode(t, s, "n1", nil)
	web := reserve(t, s, map[string]any{"name": s.Name("web"), "extra": map[string]any{"team": "a"}, "candidate_nodes": []string{node}})
	failed := reserve(t, s, nil) // there is no second node
	for name, tc := range map[string]struct {
		filters map[string]string
		want    []string
	}{
		"all":           {nil, []string{web, failed}},
		"state":         {map[string]string{"state": `"error"`}, []string{failed}},
		"node":          {map[string]string{"node": acctest.Quoted(s.Name("n1"))}, []string{web}},
		"name_regex":    {map[string]string{"name_regex": `"^web-"`}, []string{web}},
		"other owner":   {map[string]string{"owner": `"other"`}, nil},
		"two, no match": {map[string]string{"name_regex": `"^web-"`, "state": `"error"`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			query := acctest.Query{
				Type: "metal_allocation", Filters: map[string]string{"resource_class": acctest.Quoted(s.Class())},
				Resource: true,
			}
			for attribute, value := range tc.filters {
				query.Filters[attribute] = value
			}
			all, lister := acctest.Search(t, s, query), acctest.NewLister(t, s)
			var ids []string
			for _, found := range all {
				ids = append(ids, found.ID)
				if want := map[string]string{web: s.Name("web"), failed: failed}[found.ID]; found.Name != want {
					t.Errorf("allocation %s is displayed as %q, want %q", found.ID, found.Name, want)
				}
				lister.WantAsImported(t, query.Type, found)
			}
			if slices.Sort(tc.want); !slices.Equal(ids, tc.want) {
				t.Errorf("found %v, want %v", ids, tc.want)
			}
		})
	}
}

func TestFakeAllocation_listSendsFewRequests(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{})
	s.Fake.AddFleet(30, s.Class())
	for range 30 {
		reserve(t, s, nil)
	}
	for name, tc := range map[string]struct {
		query       acctest.Query
		found, most int
	}{
		"identities": {acctest.Query{}, 30, 1},
		"limit":      {acctest.Query{Limit: 7}, 7, 1},
		"resources":  {acctest.Query{Resource: true}, 30, 4}, // two nodes, then a list of them
	} {
		t.Run(name, func(t *testing.T) {
			lister := acctest.NewLister(t, s)
			s.Fake.ResetRequests()
			tc.query.Type = "metal_allocation"
			count := 0
			lister.List(t, tc.query, func(acctest.Found) bool { count++; return true })
			if count != tc.found {
				t.Errorf("found %d allocations, want %d", count, tc.found)
			}
			// the negotiation
			sent := slices.DeleteFunc(s.Fake.Requests(), func(r fakeironic.Request) bool { return len(r.Path) < len("/v1/x") })
			if len(sent) > tc.most {
				t.Errorf("%d requests, want at most %d: %v", len(sent), tc.most, sent)
			}
		})
	}
}

func TestFakeAllocation_listRefusesOwnerOnOldServer(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{MaxMicroversion: "1.58"})
	problems := acctest.NewLister(t, s).List(t, acctest.Query{Type: "metal_allocation", Filters: map[string]string{"owner": `"carol"`}},
		func(acctest.Found) bool { return true })
	if len(problems) != 1 {
		t.Fatalf("diagnostics %v, want one", problems)
	}
	acctest.Mention(t, problems[0].Summary+" "+problems[0].Detail, "owner", "1.60")
}
