package datasources_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/knownvalue"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

func TestAccAllocationDataSource_byUUIDAndName(t *testing.T) {
	s := site.Start(t, nil)
	node := addNode(t, s, "h", nil)
	s.Must(http.MethodPut, "nodes/"+node+"/traits", map[string]any{"traits": []string{"CUSTOM_NVME"}})
	// Ironic allocates no node of unknown power
	s.Must(http.MethodPut, "nodes/"+node+"/states/power", map[string]any{"target": "power off"})
	s.Await(node, "power_state", "power off")
	s.Verb(node, "manage", "manageable")
	s.Verb(node, "provide", "available")
	id, _ := s.Must(http.MethodPost, "allocations", map[string]any{
		"name": s.Name("a"), "resource_class": s.Class(), "traits": []string{"CUSTOM_NVME"}, "candidate_nodes": []string{node},
		"extra": map[string]any{"team": "web", "terraform_metal_enrolled": "our own note"},
	})["uuid"].(string)
	t.Cleanup(func() { s.Must(http.MethodDelete, "allocations/"+id, nil) })
	s.Await(node, "instance_uuid", id)

	for by, value := range map[string]string{"id": id, "name": s.Name("a")} {
		t.Run(by, func(t *testing.T) {
			const address = "data.metal_allocation.a"
			test(t, s.Provider()+data("metal_allocation", "a", fmt.Sprintf("%s = %q", by, value)), "",
				is(address, "id", text(id)), is(address, "name", text(s.Name("a"))), is(address, "resource_class", text(s.Class())),
				is(address, "state", text("active")), is(address, "node_id", text(node)), is(address, "node_name", text(s.Name("h"))),
				is(address, "traits", knownvalue.SetExact([]knownvalue.Check{text("CUSTOM_NVME")})),
				is(address, "candidate_nodes", knownvalue.SetExact([]knownvalue.Check{text(node)})),
				is(address, "extra_json", text(`{"team":"web"}`)), is(address, "owner", knownvalue.Null()),
				is(address, "last_error", knownvalue.Null()),
				is(address, "created_at", knownvalue.NotNull()),
			)
		})
	}
}

func TestAccAllocationDataSource_notFound(t *testing.T) {
	s := site.Start(t, nil)
	for _, tt := range []struct{ name, settings, want string }{
		{"name", `name = "no-such-allocation"`, "Could not find allocation no-such-allocation"},
		{"id", `id = "6a0d3a2e-5b3c-4c9a-9a55-0c1f5e7d4b21"`, "Could not find allocation 6a0d3a2e-5b3c-4c9a-9a55-0c1f5e7d4b21"},
		{"neither", ``, "Exactly one of these attributes must be configured"},
	} {
		t.Run(tt.name, func(t *testing.T) { test(t, s.Provider()+data("metal_allocation", "a", tt.settings), tt.want) })
	}
}

func TestAccAllocationDataSource_oldAPI(t *testing.T) {
	s := site.Start(t, nil)
	test(t, s.Provider(`microversion = "1.51"`)+data("metal_allocation", "a", `name = "a"`),
		"An allocation needs API 1.52 of Ironic, but 1.51 is in use")
}

// reserved makes an allocation of a free node, and returns both UUIDs.
func reserved(t *testing.T, s *site.Site, name string) (id, node string) {
	t.Helper()
	node = site.AddNode(t, s, name, nil)
	id = site.Text(s.Must(http.MethodPost, "allocations", map[string]any{
		"name": s.Name("for-" + name), "resource_class": s.Class(), "candidate_nodes": []string{node},
	})["uuid"])
	t.Cleanup(func() { s.Must(http.MethodDelete, "allocations/"+id, nil) })
	s.Await(node, "instance_uuid", id)
	return id, node
}

func TestAccAllocationDataSource_byNode(t *testing.T) {
	s := site.Start(t, nil)
	id, node := reserved(t, s, "h1")
	site.AddNode(t, s, "h2", nil)
	for _, ref := range []string{node, s.Name("h1")} {
		t.Run(ref, func(t *testing.T) {
			test(t, s.Provider()+data("metal_allocation", "a", `node = `+acctest.Quoted(ref)), "",
				is("data.metal_allocation.a", "id", knownvalue.StringExact(id)),
				is("data.metal_allocation.a", "node_id", knownvalue.StringExact(node)))
		})
	}
	for name, ref := range map[string]string{"free": s.Name("h2"), "unknown": s.Name("h3")} {
		t.Run(name, func(t *testing.T) {
			test(t, s.Provider()+data("metal_allocation", "a", `node = `+acctest.Quoted(ref)), "Could not find the allocation of node "+ref)
		})
	}
}

func TestAccAllocationsDataSource_filters(t *testing.T) {
	s := site.Start(t, nil)
	first, node := reserved(t, s, "h1")
	second, _ := reserved(t, s, "h2")
	failed := site.Text(s.Must(http.MethodPost, "allocations", map[string]any{"name": s.Name("none"), "resource_class": s.Class()})["uuid"])
	t.Cleanup(func() { s.Must(http.MethodDelete, "allocations/"+failed, nil) })
	site.Until(t, "the allocation to fail", func() bool { return site.AllocationNamed(s, failed)["state"] == "error" })
	const address = "data.metal_allocations.a"
	class := "resource_class = " + acctest.Quoted(s.Class())
	for filter, want := range map[string][]string{
		class:                              {first, second, failed},
		class + "\nstate = \"active\"":     {first, second},
		class + "\nstate = \"error\"":      {failed},
		class + "\nstate = \"allocating\"": {},
		"node = " + acctest.Quoted(node):   {first},
		class + "\nowner = " + acctest.Quoted("no-owner-"+s.Class()): {},
	} {
		ids := []knownvalue.Check{}
		for _, id := range want {
			ids = append(ids, knownvalue.StringExact(id))
		}
		t.Run(filter, func(t *testing.T) {
			test(t, s.Provider()+data("metal_allocations", "a", filter), "", is(address, "ids", knownvalue.ListExact(ids)))
		})
	}
	t.Run("attributes", func(t *testing.T) {
		test(t, s.Provider()+data("metal_allocations", "a", class), "",
			is(address, "allocations", knownvalue.ListPartial(map[int]knownvalue.Check{
				0: knownvalue.ObjectPartial(map[string]knownvalue.Check{
					"id": knownvalue.StringExact(first), "name": knownvalue.StringExact(s.Name("for-h1")),
					"state":   knownvalue.StringExact("active"),
					"node_id": knownvalue.StringExact(node), "node_name": knownvalue.StringExact(s.Name("h1")),
				}),
				2: knownvalue.ObjectPartial(map[string]knownvalue.Check{
					"state":     knownvalue.StringExact("error"),
					"node_name": knownvalue.Null(), "last_error": knownvalue.NotNull(),
				}),
			})))
	})
}

func TestAccAllocationsDataSource_refused(t *testing.T) {
	s := site.Start(t, nil)
	for name, tt := range map[string]struct{ provider, settings, want string }{
		"state":       {s.Provider(), `state = "broken"`, "value must be one of"},
		"node":        {s.Provider(), `node = "no-such-node"`, "Could not list allocations"},
		"API":         {s.Provider(`microversion = "1.51"`), ``, "An allocation needs API 1.52 of Ironic, but 1.51 is in use"},
		"API (owner)": {s.Provider(`microversion = "1.59"`), `owner = "a"`, "Owner needs API 1.60 of Ironic, but 1.59 is in use"},
	} {
		t.Run(name, func(t *testing.T) { test(t, tt.provider+data("metal_allocations", "a", tt.settings), tt.want) })
	}
}
