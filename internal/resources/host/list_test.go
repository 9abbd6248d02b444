package host_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
)

// hostsQuery lists the hosts of the test's class with further filters.
func hostsQuery(s *site.Site, filters map[string]string) acctest.Query {
	all := map[string]string{"resource_class": acctest.Quoted(s.Class())}
	for name, value := range filters {
		all[name] = value
	}
	return acctest.Query{Type: "metal_host", Filters: all}
}

func TestAccHost_listFindsWhatFiltersSelect(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	a := site.AddNode(t, s, "a", map[string]any{"description": "a red fox"})
	s.Patch(a, "add", "/owner", "carol")
	b := site.AddNode(t, s, "b", map[string]any{"lessee": "carol", "automated_clean": false})
	s.Verb(b, "manage", "manageable")
	t.Cleanup(func() { s.Verb(b, "provide", "available") })
	for name, tc := range map[string]struct {
		filters map[string]string
		want    []string
	}{
		"all":             {nil, []string{a, b}},
		"provision_state": {map[string]string{"provision_state": `"manageable"`}, []string{b}},
		"owner":           {map[string]string{"owner": `"carol"`}, []string{a}},
		"project":         {map[string]string{"project": `"carol"`}, []string{a, b}},
		"name_regex":      {map[string]string{"name_regex": `"^` + s.Name("b") + `$"`}, []string{b}},
		"two filters":     {map[string]string{"name_regex": `"^a-"`, "provision_state": `"manageable"`}, nil},
		"description":     {map[string]string{"description_contains": `"red"`}, []string{a}},
		"not associated":  {map[string]string{"associated": "false"}, []string{a, b}},
		"in maintenance":  {map[string]string{"maintenance": "true"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			names := map[string]string{a: s.Name("a"), b: s.Name("b")}
			var ids []string
			for _, found := range acctest.Search(t, s, hostsQuery(s, tc.filters)) {
				ids = append(ids, found.ID)
				if found.Name != names[found.ID] {
					t.Errorf("host %s is displayed as %q, want %q", found.ID, found.Name, names[found.ID])
				}
			}
			if slices.Sort(tc.want); !slices.Equal(ids, tc.want) {
				t.Errorf("found %v, want %v", ids, tc.want)
			}
		})
	}
}

func TestAccHost_listIncludesResource(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	id := site.AddNode(t, s, "a", map[string]any{"description": "by hand", "properties": map[string]any{"cpus": 4}})
	s.Must(http.MethodPost, "ports", map[string]any{"node_uuid": id, "address": s.MAC(1), "pxe_enabled": false})
	query := hostsQuery(s, nil)
	query.Resource = true
	all := acctest.Search(t, s, query)
	if len(all) != 1 {
		t.Fatalf("found %v", all)
	}
	for attribute, want := range map[string]string{
		"id": id, "name": s.Name("a"), "driver": "fake-hardware", "description": "by hand", "provision_state": "available",
		"resource_class": s.Class(),
	} {
		if got := all[0].Attribute(t, attribute); got != want {
			t.Errorf("%s is %q, want %q", attribute, got, want)
		}
	}
	acctest.NewLister(t, s).WantAsImported(t, query.Type, all[0])
}

func TestAccHost_listDisplaysUUIDWithoutName(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	id := site.AddNode(t, s, "a", nil)
	s.Patch(id, "remove", "/name", nil)
	if all := acctest.Search(t, s, hostsQuery(s, nil)); len(all) != 1 || all[0].Name != id {
		t.Errorf("found %v, want the name %s", all, id)
	}
}

// Pages are read only if Terraform wants more hosts.
func TestFakeHost_listSendsFewRequests(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		query    acctest.Query
		stop     int // after so many results; 0: never
		found    int
		requests []string // paths, in order
	}{
		"names":              {acctest.Query{}, 0, 2100, []string{"nodes", "nodes", "nodes"}},
		"limit":              {acctest.Query{Limit: 100}, 0, 100, []string{"nodes"}},
		"limit over a page":  {acctest.Query{Limit: 1500}, 0, 1500, []string{"nodes", "nodes"}},
		"limit with a regex": {acctest.Query{Limit: 5, Filters: map[string]string{"name_regex": `"7$"`}}, 0, 5, []string{"nodes"}},
		"reader stops":       {acctest.Query{}, 3, 3, []string{"nodes"}},
		"resources": {
			acctest.Query{Resource: true},
			0, 2100,
			slices.Concat([]string{"nodes", "ports/detail", "ports/detail"}, slices.Repeat([]string{"ports/detail"}, 5),
				[]string{"nodes", "nodes"}),
		},
		"one resource": {acctest.Query{Resource: true, Limit: 1}, 0, 1, []string{"nodes", "ports/detail"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ironictest.InVirtualTime(t, func(t *testing.T) { // ports are read again after some time
				fake := ironictest.Fleet(2100) // with two ports each: pages have 1000 objects
				lister := acctest.NewListerOver(t, fake)
				tc.query.Type = "metal_host"
				count := 0
				if problems := lister.List(t, tc.query, func(acctest.Found) bool { count++; return count != tc.stop }); len(problems) > 0 {
					t.Fatal(problems[0].Detail)
				}
				if count != tc.found {
					t.Errorf("found %d hosts, want %d", count, tc.found)
				}
				var paths []string
				for _, r := range fake.Requests() {
					if path, is := strings.CutPrefix(r.Path, "/v1/"); is && path != "" {
						paths = append(paths, path)
					}
				}
				if !slices.Equal(paths, tc.requests) {
					t.Errorf("requests %v, want %v", paths, tc.requests)
				}
			})
		})
	}
}

// A result arrives before the next page is requested.
func TestFakeHost_listStreamsPages(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{})
	s.Fake.AddFleet(1010, "baremetal")
	count := 0
	acctest.NewLister(t, s).List(t, acctest.Query{Type: "metal_host"}, func(acctest.Found) bool {
		count++
		pages := 0
		for _, r := range s.Fake.Requests() {
			if r.Path == "/v1/nodes" {
				pages++
			}
		}
		if want := (count + 999) / 1000; pages != want {
			t.Errorf("host %d arrives after %d pages, want %d", count, pages, want)
			return false
		}
		return true
	})
}

// A node that another client deletes between two pages neither ends the list nor repeats hosts.
func TestFakeHost_listOutlastsDeletion(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	s := site.StartFake(t, fake)
	fake.AddFleet(1010, "baremetal")
	deleted, seen := "", map[string]bool{}
	problems := acctest.NewLister(t, s).List(t, acctest.Query{Type: "metal_host"}, func(found acctest.Found) bool {
		if seen[found.ID] {
			t.Errorf("host %s is found twice", found.ID)
		}
		if seen[found.ID] = true; len(seen) == 1000 {
			deleted = found.ID // the marker of the next page
			s.Must(http.MethodDelete, "nodes/"+deleted, nil)
		}
		return true
	})
	if len(problems) > 0 || len(seen) != 1010 {
		t.Errorf("found %d hosts, want 1010: %v", len(seen), problems)
	}
}

func TestFakeHost_listFailsWithExplanation(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		filters map[string]string
		status  int
		want    []string
	}{
		"regular expression": {map[string]string{"name_regex": `"("`}, 0, []string{"Not a regular expression", "missing closing"}},
		"forbidden":          {nil, http.StatusForbidden, []string{"Could not list hosts", "403"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := &fakeironic.Server{}
			if tc.status != 0 {
				fake.Reject = func(r *http.Request) *fakeironic.Rejection {
					if !strings.HasPrefix(r.URL.Path, "/v1/nodes") {
						return nil
					}
					return &fakeironic.Rejection{Status: tc.status}
				}
			}
			s := site.StartFake(t, fake)
			problems := acctest.NewLister(t, s).List(t, acctest.Query{Type: "metal_host", Filters: tc.filters},
				func(found acctest.Found) bool {
					t.Errorf("found %v", found)
					return true
				})
			if len(problems) != 1 {
				t.Fatalf("diagnostics %v, want one", problems)
			}
			acctest.Mention(t, fmt.Sprint(problems[0].Summary, " ", problems[0].Detail), tc.want...)
		})
	}
}
