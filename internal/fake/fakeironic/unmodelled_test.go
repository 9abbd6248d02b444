package fakeironic_test

import (
	"net/http"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// A volume connector or target is refused in the words that 21.4 has.
func TestUnmodelled_newVolumesAreRefused(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{MaxMicroversion: "1.82"})
	const nobody = "11111111-2222-4333-8444-555555555555"
	uuid := a.node("n1", nil)
	for _, tt := range []struct {
		kind   string
		change map[string]any // of a right body; nil removes
		status int
		want   string
	}{
		{"connector", nil, 403, "Access was denied to the following resource: baremetal:volume:create"},
		{"connector", map[string]any{"connector_id": nil}, 400, "Schema error for connector: 'connector_id' is a required property"},
		{"connector", map[string]any{"node_uuid": nil}, 400, "Schema error for connector: 'node_uuid' is a required property"},
		{"connector", map[string]any{"more": 1}, 400, "Additional properties are not allowed ('more' was unexpected)"},
		{"connector", map[string]any{"uuid": "malformed"}, 400, "Expected UUID for uuid: malformed"},
		{"connector", map[string]any{"node_uuid": "nonsense"}, 400, "Expected UUID for node_uuid: nonsense"},
		{"connector", map[string]any{"node_uuid": nobody}, 400, "Invalid input for field/attribute node_uuid. Value: '" + nobody + "'. "},
		{"target", nil, 403, "Access was denied to the following resource: baremetal:volume:create"},
		{"target", map[string]any{"boot_index": nil}, 400, "Schema error for target: 'boot_index' is a required property"},
		{"target", map[string]any{"boot_index": "x"}, 400, "Schema error for target: 'x' is not of type 'integer'"},
	} {
		body := map[string]map[string]any{
			"connector": {"node_uuid": uuid, "type": "iqn", "connector_id": "iqn.x"},
			"target":    {"node_uuid": uuid, "volume_type": "iscsi", "boot_index": 0, "volume_id": "v"},
		}[tt.kind]
		for key, value := range tt.change {
			if body[key] = value; value == nil {
				delete(body, key)
			}
		}
		a.refused(tt.status, tt.want, http.MethodPost, "/v1/volume/"+tt.kind+"s", body)
	}
}

// What the server has no model of is empty, and says of requests what Ironic says.
func TestUnmodelled_answers(t *testing.T) {
	t.Parallel()
	for _, version := range bothIronics {
		a := newAPI(t, &fakeironic.Server{MaxMicroversion: version})
		uuid := a.node("n1", map[string]any{"shard": "east"})
		for _, tt := range []struct {
			method, path string
			body         any
			status       int
			want         string // in the fault, or the whole body
		}{
			{"GET", "/v1/nodes/n1/vendor_passthru/methods", nil, 200, "{}"},
			{"POST", "/v1/nodes/n1/vendor_passthru/eject", map[string]any{}, 400, "No handler for method eject"},
			{"POST", "/v1/nodes/n1/vendor_passthru?method=eject", map[string]any{}, 400, "No handler for method eject"},
			{"GET", "/v1/drivers/ipmi/vendor_passthru/methods", nil, 200, "{}"},
			{"POST", "/v1/drivers/ipmi/vendor_passthru/eject", map[string]any{}, 400, "No handler for method eject"},
			{"GET", "/v1/drivers/nope/properties", nil, 404, "Could not find the following driver(s) or hardware type(s): nope."},
			{"GET", "/v1/volume/connectors", nil, 200, `{"connectors":[]}`},
			{"GET", "/v1/volume/targets?detail=True", nil, 200, `{"targets":[]}`},
			{"GET", "/v1/nodes/n1/volume/targets", nil, 200, `{"targets":[]}`},
			{"GET", "/v1/volume/targets/" + uuid, nil, 404, "Volume target " + uuid + " could not be found."},
			{"PUT", "/v1/volume/targets/" + uuid, map[string]any{}, 405, ""},
			{"DELETE", "/v1/volume/targets/nope", nil, 400, "Expected UUID for target_uuid: nope"},
			{"GET", "/v1/shards", nil, 200, `{"shards":[{"name":"east","count":1}]}`},
			{"GET", "/v1/lookup", nil, 400, "At least one of 'addresses' and 'node_uuid' parameters is required"},
			{"GET", "/v1/lookup?node_uuid=" + uuid, nil, 404, "Resource could not be found."},
			{"POST", "/v1/heartbeat/n1", map[string]any{"callback_url": "http://x"}, 400, "Agent token is required for heartbeat"},
			{"POST", "/v1/heartbeat/n1", map[string]any{"callback_url": "x", "agent_token": "a"}, 400, "Invalid or missing agent token"},
			{"POST", "/v1/events", map[string]any{"events": []any{map[string]any{"event": "x"}}}, 400, "'x' is not one of"},
			{"GET", "/v1/nope", nil, 404, ""},
		} {
			if got := a.do(tt.method, tt.path, tt.body); got.status != tt.status || tt.status == 200 && got.text != tt.want {
				t.Errorf("%s: %s %s = %d %s, want %d %s", version, tt.method, tt.path, got.status, got.text, tt.status, tt.want)
			} else if tt.status != 200 {
				a.refused(tt.status, tt.want, tt.method, tt.path, tt.body)
			}
		}
		if got := a.must(200, "GET", "/v1/drivers/redfish/properties", nil); got["redfish_address"] == nil || got["deploy_kernel"] == nil {
			t.Errorf("%s: the properties of redfish are %v", version, got)
		}
		if got := a.must(200, "GET", "/v1/drivers/ipmi/raid/logical_disk_properties", nil); got["raid_level"] == nil {
			t.Errorf("%s: the properties of logical disks are %v", version, got)
		}
		a.must(http.StatusNoContent, "POST", "/v1/events", map[string]any{"events": []any{map[string]any{
			"event": "network.bind_port", "port_id": uuid, "mac_address": "52:54:00:00:00:01", "status": "ACTIVE",
		}}})
		if got := a.at("1.11").do("GET", "/v1/drivers/ipmi/raid/logical_disk_properties", nil); got.status != http.StatusNotAcceptable {
			t.Errorf("%s: logical disks at 1.11: %d", version, got.status)
		}
	}
}

// The bookmarks in answers have no version. Ironic puts v1 before such a path (ironic/api/controllers/root.py, 21.4 and 39.0).
func TestUnmodelled_bookmarks(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := a.node("n1", nil)
	for _, path := range []string{"/nodes/" + uuid, "/nodes/n1/", "/v1/nodes/n1/"} {
		if got := a.must(http.StatusOK, http.MethodGet, path, nil); got["uuid"] != uuid {
			t.Errorf("%s is %v", path, got["uuid"])
		}
	}
}

// A ramdisk finds the node that waits for it, and reports with the token that it got.
func TestUnmodelled_ramdisk(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := a.available("n1", nil)
	a.must(http.StatusCreated, http.MethodPost, "/v1/ports", map[string]any{"node_uuid": uuid, "address": "52:54:00:00:00:01"})
	path := "/v1/lookup?addresses=nonsense,52:54:00:00:00:01"
	a.refused(http.StatusNotFound, "Resource could not be found.", http.MethodGet, path, nil)
	a.fake.Set(uuid, "provision_state", "wait call-back")
	config, _ := a.must(http.StatusOK, http.MethodGet, path, nil)["config"].(map[string]any)
	a.must(http.StatusAccepted, http.MethodPost, "/v1/heartbeat/"+uuid, map[string]any{
		"callback_url": "http://192.0.2.9:9999", "agent_token": config["agent_token"], "agent_version": "11.0",
	})
}

// Ironic 39.0 accepts the steps that its conductor would take itself, and forgets them. 21.4 does not know them.
func TestHardware_stepsOfTheConductor(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := a.active("n1", nil)
	for _, own := range []map[string]any{step("deploy", "reboot"), step("power", "hold"), step("deploy", "wait")} {
		a.must(http.StatusAccepted, http.MethodPut, provisionPath(uuid), map[string]any{"target": "service", "service_steps": []any{own}})
		if node := a.state(uuid, "active"); node["maintenance"] != false {
			t.Errorf("%v: the node is in maintenance", own)
		}
	}
	a.fake.Set(uuid, "provision_state", "manageable")
	a.clean(uuid, "manageable", step("power", "hold"))
	old := newAPI(t, &fakeironic.Server{MaxMicroversion: "1.82"})
	uuid = old.node("n1", nil)
	old.fake.Set(uuid, "provision_state", "manageable")
	old.clean(uuid, "clean failed", step("power", "hold"))
}
