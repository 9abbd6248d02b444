package fakeironic_test

import (
	"net/http"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/seed"
)

// TestAddSeed_servesTheSite: clients see and change the nodes of a seed as those that they created.
func TestAddSeed_servesTheSite(t *testing.T) {
	t.Parallel()
	const held = "7f1e2c9a-51d0-4b8e-8a43-0b6c9a7d4e21"
	var records seed.Seed
	err := records.Read("nodes.json", []byte(`[
		{"name": "free", "driver": "redfish", "resource_class": "gold", "conductor_group": "rack1", "driver_info": {"redfish_address": "https://192.0.2.1", "redfish_password": "******"},
		 "traits": ["CUSTOM_NVME"], "ports": [{"address": "52:54:00:00:00:01", "pxe_enabled": false}]},
		{"name": "used", "driver": "ipmi", "resource_class": "gold", "provision_state": "active", "instance_info": {"configdrive": "******"}, "allocation_uuid": "`+held+`"}]`))
	if err == nil {
		err = records.Settle()
	}
	if err != nil {
		t.Fatal(err)
	}
	a := newAPI(t, &fakeironic.Server{})
	a.fake.AddSeed(&records)

	if got := a.must(http.StatusOK, http.MethodGet, "/v1/allocations/"+held, nil); got["state"] != "active" ||
		got["resource_class"] != "gold" {
		t.Errorf("the allocation is %v", got)
	}
	list := a.must(http.StatusOK, http.MethodGet, "/v1/ports/detail?node=free", nil)
	if ports, _ := list["ports"].([]any); len(ports) != 1 {
		t.Errorf("the ports are %v", list)
	}
	a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/free", []any{map[string]any{"op": "add", "path": "/extra/rack", "value": "1"}})
	group := map[string]any{"name": "new", "driver": "redfish", "conductor_group": "rack1"}
	a.must(http.StatusCreated, http.MethodPost, "/v1/nodes", group)
	group["name"], group["conductor_group"] = "other", "rack2"
	a.refused(http.StatusBadRequest, "No valid host was found", http.MethodPost, "/v1/nodes", group)

	a.must(http.StatusCreated, http.MethodPost, "/v1/allocations", map[string]any{
		"name": "web", "resource_class": "gold",
		"traits": []any{"CUSTOM_NVME"},
	})
	free := a.must(http.StatusOK, http.MethodGet, "/v1/nodes/free", nil)
	if free["allocation_uuid"] == nil || free["deploy_interface"] == nil || free["created_at"] == nil {
		t.Errorf("the node is %v", free)
	}
	a.must(http.StatusAccepted, http.MethodPut, provisionPath("used"), map[string]any{"target": "deleted"})
	if used := a.state("used", "available"); used["allocation_uuid"] != nil {
		t.Errorf("the node is %v", used)
	}
}
