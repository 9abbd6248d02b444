package fakeironic_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// allocate creates an allocation and returns it after the fake has processed it.
func (a *api) allocate(body map[string]any) map[string]any {
	a.t.Helper()
	made := a.must(http.StatusCreated, http.MethodPost, "/v1/allocations", body)
	if made["state"] != "allocating" || made["node_uuid"] != nil {
		a.t.Errorf("POST answers state %v, node %v; want allocating, none", made["state"], made["node_uuid"])
	}
	return a.must(http.StatusOK, http.MethodGet, "/v1/allocations/"+uuidOf(a.t, made), nil)
}

func TestAllocation_reservesANode(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	node := a.available("n1", nil)
	got := a.allocate(map[string]any{"name": "a1", "resource_class": "baremetal"})
	if got["state"] != "active" || got["node_uuid"] != node {
		t.Fatalf("allocation = %v, want it active on %s", got, node)
	}
	n, _ := a.fake.Node("n1")
	if n.InstanceUUID != got["uuid"] || n.AllocationUUID != got["uuid"] || n.ProvisionState != "available" {
		t.Errorf("node: instance %s, allocation %s, %s", n.InstanceUUID, n.AllocationUUID, n.ProvisionState)
	}
	if again := a.must(http.StatusOK, http.MethodGet, "/v1/nodes/n1/allocation", nil); again["uuid"] != got["uuid"] {
		t.Errorf("allocation of the node is %v, want %v", again["uuid"], got["uuid"])
	}
	a.must(http.StatusNoContent, http.MethodDelete, "/v1/allocations/a1", nil)
	if n, _ := a.fake.Node("n1"); n.InstanceUUID != "" {
		t.Errorf("instance_uuid = %s after the allocation was deleted, want none", n.InstanceUUID)
	}
}

func TestAllocation_skipsNodesWithoutPowerState(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	a.node("n1", nil)
	a.fake.Set("n1", "provision_state", "available")
	got := a.allocate(map[string]any{"resource_class": "baremetal"})
	lastError, _ := got["last_error"].(string)
	if got["state"] != "error" || !strings.HasSuffix(lastError, "no available nodes match the resource class baremetal.") {
		t.Errorf("state %v, last_error %q", got["state"], lastError)
	}
}

func TestAllocation_lastErrorSaysWhyNoNodeMatches(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		field string // field of the only node
		value any
		body  map[string]any
		text  string
	}{
		{"maintenance", true, nil, "no available nodes match the resource class baremetal."},
		{"instance_uuid", someUUID, nil, "no available nodes match the resource class baremetal."},
		{"provision_state", "active", nil, "no available nodes match the resource class baremetal."},
		{"resource_class", "gold", nil, "no available nodes match the resource class baremetal."},
		{"parent_node", someUUID, nil, "no available nodes match the resource class baremetal."},
		{"owner", "you", map[string]any{"owner": "me"}, "no available nodes match the resource class baremetal."},
		{"maintenance", true, map[string]any{"candidate_nodes": []string{"n1"}}, "none of the requested nodes are available and match " +
			"the resource class baremetal."},
		{"maintenance", false, map[string]any{"traits": []string{"CUSTOM_A"}}, "no suitable nodes have the requested traits CUSTOM_A."},
		{"lessee", "me", map[string]any{"owner": "me"}, ""},
		{"owner", "me", map[string]any{"owner": "me"}, ""},
		{"traits", []string{"CUSTOM_B", "CUSTOM_A"}, map[string]any{"traits": []string{"CUSTOM_A"}}, ""},
	} {
		a := newAPI(t, &fakeironic.Server{})
		a.available("n1", nil)
		a.fake.Set("n1", tt.field, tt.value)
		body := map[string]any{"resource_class": "baremetal"}
		for key, value := range tt.body {
			body[key] = value
		}
		got := a.allocate(body)
		want := any(nil)
		if tt.text != "" {
			want = "Failed to process allocation " + uuidOf(t, got) + ": " + tt.text
		}
		if got["last_error"] != want {
			t.Errorf("node with %s %v, allocation %v: last_error = %v, want %v", tt.field, tt.value, tt.body, got["last_error"], want)
		}
	}
}

func TestAllocation_prefersTheNodeOfItsName(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{}
	fake.AddFleet(50, "baremetal")
	a := newAPI(t, fake)
	wanted, _ := fake.Node("node-037")
	if got := a.allocate(map[string]any{"name": "node-037", "resource_class": "baremetal"}); got["node_uuid"] != wanted.UUID {
		t.Errorf("allocation got %v, want node-037 (%s)", got["node_uuid"], wanted.UUID)
	}
}

func TestAllocation_patchChangesOnlyNameAndExtra(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	a.allocate(map[string]any{"name": "a1", "resource_class": "x", "extra": map[string]any{"a": 1}})
	a.must(http.StatusOK, http.MethodPatch, "/v1/allocations/a1", patch("add", "/extra/b", 2))
	a.must(http.StatusOK, http.MethodPatch, "/v1/allocations/a1", patch("replace", "/name", "a2"))
	a.refused(http.StatusBadRequest, "Cannot patch /resource_class. Only the following can be updated: name, extra", http.MethodPatch,
		"/v1/allocations/a2",
		patch("add", "/resource_class", "y"))
	a.allocate(map[string]any{"name": "other", "resource_class": "x"})
	a.refused(http.StatusConflict, "already exists", http.MethodPatch, "/v1/allocations/a2", patch("add", "/name", "other"))
}

func TestAllocation_backfillNeedsAnActiveNode(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	a.active("used", map[string]any{"resource_class": "gold"})
	got := a.must(http.StatusCreated, http.MethodPost, "/v1/allocations", map[string]any{"node": "used", "name": "a1"})
	if n, _ := a.fake.Node("used"); got["state"] != "active" || got["resource_class"] != "gold" || n.InstanceUUID != got["uuid"] {
		t.Errorf("backfill = %v, instance %s", got, n.InstanceUUID)
	}
	a.available("free", nil)
	a.refused(http.StatusInternalServerError, `Node must be in the "active" state, but the current state is "available".`, http.MethodPost,
		"/v1/allocations", map[string]any{"node": "free", "name": "a2"})
	if left := a.must(http.StatusOK, http.MethodGet, "/v1/allocations/a2", nil); left["state"] != "error" {
		t.Errorf("the failed backfill is %v, want a record in state error", left["state"])
	}
}

func TestAllocation_endsWhenTheInstanceIsRemoved(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	a.available("n1", nil)
	a.allocate(map[string]any{"name": "a1", "resource_class": "baremetal"})
	a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/n1", patch("remove", "/instance_uuid", nil))
	a.must(http.StatusNotFound, http.MethodGet, "/v1/allocations/a1", nil)
}

func TestAllocation_deleteOfAnActiveNodeNeedsMaintenance(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	a.available("n1", nil)
	a.allocate(map[string]any{"name": "a1", "resource_class": "baremetal"})
	a.provision("n1", "active")
	a.refused(http.StatusConflict, "because the node is active (and maintenance mode is off)", http.MethodDelete,
		"/v1/nodes/n1/allocation", nil)
	a.must(http.StatusAccepted, http.MethodPut, "/v1/nodes/n1/maintenance", nil)
	a.must(http.StatusNoContent, http.MethodDelete, "/v1/nodes/n1/allocation", nil)
	a.state("n1", "active")
}
