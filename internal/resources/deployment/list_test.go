package deployment_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// A list has the reserved nodes on which something runs: neither free nodes nor those that are only reserved.
func TestAccDeployment_listFindsDeployedNodes(t *testing.T) {
	t.Parallel()
	s := site.Start(t, nil)
	deployed := site.AddNode(t, s, "n1", nil)
	site.AddNode(t, s, "n2", nil)
	reserved := site.AddNode(t, s, "n3", nil)
	deployByHand(s, deployed, site.ForeignInstance(s))
	s.Patch(reserved, "add", "/instance_uuid", "5"+site.ForeignInstance(s)[1:])
	t.Cleanup(func() {
		s.Patch(reserved, "remove", "/instance_uuid", nil)
		s.Verb(deployed, "deleted", "available")
	})
	query := acctest.Query{Type: "metal_deployment", Filters: map[string]string{"resource_class": acctest.Quoted(s.Class())}}
	for _, query.Resource = range []bool{false, true} {
		all := acctest.Search(t, s, query)
		if len(all) != 1 || all[0].ID != deployed || all[0].Name != s.Name("n1") {
			t.Fatalf("found %v, want node %s", all, deployed)
		}
		if query.Resource {
			acctest.NewLister(t, s).WantAsImported(t, query.Type, all[0])
		}
	}
	query.Filters["name_regex"] = `"^n2-"`
	if all := acctest.Search(t, s, query); len(all) > 0 {
		t.Errorf("found %v, want nothing", all)
	}
}

func TestFakeDeployment_listSendsOneRequestForEachPage(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, &fakeironic.Server{})
	s.Fake.AddFleet(1100, "baremetal") // all free
	lister := acctest.NewLister(t, s)
	for _, resources := range []bool{false, true} {
		s.Fake.ResetRequests()
		lister.List(t, acctest.Query{Type: "metal_deployment", Resource: resources}, func(found acctest.Found) bool {
			t.Errorf("found %v", found)
			return false
		})
		lists := 0
		for _, r := range s.Fake.Requests() {
			if r.Path == "/v1/nodes" {
				lists++
			}
		}
		if lists != 1 { // Ironic leaves out the free nodes
			t.Errorf("%d lists, want 1: %v", lists, s.Fake.Requests())
		}
	}
}
