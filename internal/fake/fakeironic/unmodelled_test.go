package fakeironic_test

import (
	"net/http"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

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
