package datasources_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/knownvalue"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/acctest"
)

func TestAccAllocationDataSource_byUUIDAndName(t *testing.T) {
	s := acctest.Start(t, nil)
	node := addNode(t, s, "h", nil)
	s.Must(http.MethodPut, "nodes/"+node+"/traits", map[string]any{"traits": []string{"CUSTOM_NVME"}})
	s.Must(http.MethodPut, "nodes/"+node+"/states/power", map[string]any{"target": "power off"}) // Ironic allocates no node of unknown power
	s.Await(node, "power_state", "power off")
	s.Verb(node, "manage", "manageable")
	s.Verb(node, "provide", "available")
	id, _ := s.Must(http.MethodPost, "allocations", map[string]any{
		"name": s.Name("a"), "resource_class": s.Class(), "traits": []string{"CUSTOM_NVME"}, "candidate_nodes": []string{node},
		"extra": map[string]any{"team": "web", "terraform_metal_enrolled": "our own note"},
	})["uuid"].(string)
	t.Cleanup(func() { s.Must(http.MethodDelete, "allocations/"+id, nil) })
	s.Await(node, "instance_uuid", id)

	text := knownvalue.StringExact
	for by, value := range map[string]string{"id": id, "name": s.Name("a")} {
		t.Run(by, func(t *testing.T) {
			const address = "data.metal_allocation.a"
			test(t, s.Provider()+data("metal_allocation", "a", fmt.Sprintf("%s = %q", by, value)), "",
				is(address, "id", text(id)), is(address, "name", text(s.Name("a"))), is(address, "resource_class", text(s.Class())),
				is(address, "state", text("active")), is(address, "node_id", text(node)), is(address, "node_name", text(s.Name("h"))),
				is(address, "traits", knownvalue.ListExact([]knownvalue.Check{text("CUSTOM_NVME")})),
				is(address, "candidate_nodes", knownvalue.ListExact([]knownvalue.Check{text(node)})),
				is(address, "extra_json", text(`{"team":"web"}`)), is(address, "owner", knownvalue.Null()), is(address, "last_error", knownvalue.Null()),
				is(address, "created_at", knownvalue.NotNull()),
			)
		})
	}
}

func TestAccAllocationDataSource_notFound(t *testing.T) {
	s := acctest.Start(t, nil)
	for _, tt := range []struct{ name, settings, want string }{
		{"name", `name = "no-such-allocation"`, "Could not find allocation no-such-allocation"},
		{"id", `id = "6a0d3a2e-5b3c-4c9a-9a55-0c1f5e7d4b21"`, "Could not find allocation 6a0d3a2e-5b3c-4c9a-9a55-0c1f5e7d4b21"},
		{"neither", ``, "Exactly one of these attributes must be configured"},
	} {
		t.Run(tt.name, func(t *testing.T) { test(t, s.Provider()+data("metal_allocation", "a", tt.settings), tt.want) })
	}
}

func TestAccAllocationDataSource_oldAPI(t *testing.T) {
	s := acctest.Start(t, nil)
	test(t, s.Provider(`microversion = "1.51"`)+data("metal_allocation", "a", `name = "a"`), "An allocation needs API 1.52 of Ironic, but 1.51 is in use")
}
