package fakeironic_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// object returns a value as a JSON object; nil if it is none.
func object(value any) map[string]any {
	o, _ := value.(map[string]any)
	return o
}

// Resources and lists show the fields that the query selects, and links. Without a query, a list shows some, and a resource all.
func TestFields_areThoseOfTheQuery(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	node := a.node("n1", nil)
	chassis := uuidOf(t, a.must(http.StatusCreated, http.MethodPost, "/v1/chassis", map[string]any{"description": "rack"}))
	group := a.group(node, nil)
	step := map[string]any{"interface": "deploy", "step": "x", "args": map[string]any{}, "priority": 50}
	template := map[string]any{"name": "CUSTOM_T", "steps": []any{step}}
	a.must(http.StatusCreated, http.MethodPost, "/v1/deploy_templates", template)
	for _, tt := range []struct{ path, list, want string }{
		{"/v1/chassis", "chassis", "description links uuid"},
		{"/v1/chassis?fields=extra", "chassis", "extra links"},
		{"/v1/chassis?detail=true", "chassis", "created_at description extra links nodes updated_at uuid"},
		{"/v1/chassis?detail=false", "chassis", "description links uuid"},
		{"/v1/chassis/" + chassis + "?fields=uuid", "", "links uuid"},
		{"/v1/deploy_templates", "deploy_templates", "links name uuid"},
		{"/v1/deploy_templates?fields=name,steps", "deploy_templates", "links name steps"},
		{"/v1/deploy_templates/CUSTOM_T?fields=extra", "", "extra links"},
		{"/v1/portgroups/" + group + "?fields=mode", "", "links mode"},
		{"/v1/conductors", "conductors", "alive conductor_group hostname links"},
		{"/v1/conductors?detail=true", "conductors", "alive conductor_group created_at drivers hostname links updated_at"},
		{"/v1/conductors?fields=hostname,drivers", "conductors", "drivers hostname links"},
		{"/v1/conductors/localhost:8089?fields=drivers", "", "drivers links"},
	} {
		got := a.must(http.StatusOK, http.MethodGet, tt.path, nil)
		if tt.list != "" {
			got = object(list(t, got, tt.list)[0])
		}
		if keys := strings.Join(slices.Sorted(maps.Keys(got)), " "); keys != tt.want {
			t.Errorf("%s has %s, want %s", tt.path, keys, tt.want)
		}
	}
	for _, path := range []string{
		"/v1/chassis", "/v1/chassis/" + chassis, "/v1/deploy_templates", "/v1/portgroups/" + group, "/v1/conductors",
	} {
		a.refused(http.StatusBadRequest, `Field(s) "bogus" are not valid`, http.MethodGet, path+"?fields=bogus", nil)
	}
	for _, path := range []string{"/v1/chassis", "/v1/deploy_templates", "/v1/conductors"} {
		a.refused(http.StatusBadRequest, "in the same request", http.MethodGet, path+"?fields=uuid&detail=true", nil)
	}
	template["uuid"] = "malformed"
	a.refused(http.StatusBadRequest, "Expected UUID for uuid: malformed", http.MethodPost, "/v1/deploy_templates", template)
}

// A BIOS setting and an entry of the history have paths of their own.
func TestFields_partsOfRecords(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := a.redfish("n1", nil)
	path := "/v1/nodes/n1"
	a.refused(http.StatusNotFound, "Node "+uuid+" doesn't have a BIOS setting 'foo'", http.MethodGet, path+"/bios/foo", nil)
	a.refused(http.StatusNotFound, "Node history record x could not be found.", http.MethodGet, path+"/history/x", nil)
	a.refused(http.StatusNotFound, "", http.MethodGet, path+"/inventory/x", nil)
	mode := object(a.must(http.StatusOK, http.MethodGet, path+"/bios/BootMode", nil)["BootMode"])
	old := object(a.at("1.73").must(http.StatusOK, http.MethodGet, path+"/bios/BootMode", nil)["BootMode"])
	if mode["attribute_type"] != "Enumeration" || old["value"] != mode["value"] || old["attribute_type"] != nil {
		t.Errorf("the setting is %v, at 1.73 %v", mode, old)
	}
	a.fake.Set(uuid, "provision_state", "manageable")
	a.clean(uuid, "clean failed", step("bios", "nope"))
	entries := list(t, a.must(http.StatusOK, http.MethodGet, path+"/history", nil), "history")
	entry := object(entries[len(entries)-1])
	if got := a.must(http.StatusOK, http.MethodGet, fmt.Sprint(path, "/history/", entry["uuid"]), nil); got["event"] != entry["event"] ||
		got["event_type"] != "cleaning" {
		t.Errorf("the entry is %v", got)
	}
}

// Clients repeat requests that end in 5xx, so a wrong node in a patch is the fault of the client.
func TestFields_portsStayOnTheirNode(t *testing.T) {
	t.Parallel()
	for version, want := range map[string][]string{
		"1.82":  {"Expected a UUID or int but received nonsense.", "Node " + someUUID + " could not be found."},
		"1.115": {"'nonsense'. Requested value was invalid.", "'" + someUUID + "'. Requested value was invalid."},
	} {
		a := newAPI(t, &fakeironic.Server{MaxMicroversion: version})
		node := a.node("n1", nil)
		for _, path := range []string{a.port(node, someMAC, nil), "/v1/portgroups/" + a.group(node, nil)} {
			a.refused(http.StatusBadRequest, want[0], http.MethodPatch, path, patch("replace", "/node_uuid", "nonsense"))
			a.refused(http.StatusBadRequest, want[1], http.MethodPatch, path, patch("replace", "/node_uuid", someUUID))
		}
	}
}

// Old API versions refuse only what came later.
func TestFields_oldVersions(t *testing.T) {
	t.Parallel()
	for _, version := range bothIronics {
		a := newAPI(t, &fakeironic.Server{MaxMicroversion: version})
		node := a.node("n1", nil)
		group := "/v1/portgroups/" + a.group(node, nil)
		got := a.at("1.23").must(http.StatusOK, http.MethodPatch, group, patch("add", "/extra/a", 1))
		if hidden := got["mode"] == nil; hidden != (version == "1.115") {
			t.Errorf("%s: 1.23 shows the mode %v", version, got["mode"])
		}
		a.at("1.23").refused(http.StatusNotAcceptable, "", http.MethodPatch, group, patch("add", "/mode", "802.3ad"))
		a.at("1.23").must(http.StatusOK, http.MethodPatch, group, patch("add", "/properties/miimon", "100"))
		chassis := uuidOf(t, a.must(http.StatusCreated, http.MethodPost, "/v1/chassis", map[string]any{}))
		a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/n1", patch("add", "/chassis_uuid", chassis))
		a.node("n2", nil)
		if nodes := list(t, a.must(http.StatusOK, http.MethodGet, "/v1/chassis/"+chassis+"/nodes", nil), "nodes"); len(nodes) != 1 {
			t.Errorf("%s: the chassis has %v", version, nodes)
		}
		if got := a.must(http.StatusOK, http.MethodGet, "/v1/nodes/states/console/n1", nil); got["console_enabled"] != false {
			t.Errorf("%s: the console is %v", version, got)
		}
		a.fake.Set(node, "provision_state", "available") // which has no name before 1.2
		if got := a.at("1.1").must(http.StatusOK, http.MethodGet, "/v1/nodes/n1/states", nil); got["provision_state"] != nil {
			t.Errorf("%s: at 1.1 the state is %v", version, got["provision_state"])
		}
		traits := "/v1/nodes/n1/traits"
		a.at("1.36").refused(http.StatusNotAcceptable, "", http.MethodGet, traits, nil)
		a.at("1.36").refused(http.StatusMethodNotAllowed, "", http.MethodPut, traits, map[string]any{"traits": []any{}})
		a.at("1.36").refused(http.StatusNotFound, "", http.MethodDelete, traits+"/CUSTOM_A", nil)
	}
}

// A deployment notes what kind of image it has (update_image_type in ironic/conductor/utils.py of 21.4 and 39.0).
func TestFields_kindOfTheImage(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	for name, want := range map[string]any{"whole": true, "partition": false, "none": nil} {
		info := map[string]any{"image_source": "http://img/i", "image_checksum": "00"}
		switch name {
		case "partition":
			info["kernel"], info["ramdisk"] = "http://img/k", "http://img/r"
		case "none":
			info = map[string]any{}
		}
		uuid := a.active(name, map[string]any{"instance_info": info})
		got := object(a.state(uuid, "active")["driver_internal_info"])
		if got["is_whole_disk_image"] != want {
			t.Errorf("%s: is_whole_disk_image is %v", name, got["is_whole_disk_image"])
		}
		a.provision(uuid, "deleted")
		if _, left := object(a.state(uuid, "available")["driver_internal_info"])["is_whole_disk_image"]; left {
			t.Errorf("%s: is_whole_disk_image outlives the instance (do_node_tear_down in ironic/conductor/manager.py)", name)
		}
	}
}
