package fakeironic_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// The ramdisk of a cleaning that is aborted is switched off (tear_down_inband_cleaning in ironic/drivers/modules/deploy_utils.py), and the
// error names the step (get_last_error in ironic/conductor/cleaning.py; both of 21.4 and 39.0).
func TestAbort_endsTheRamdiskOfACleaning(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := a.node("n", map[string]any{"deploy_interface": "direct"})
	a.provision(uuid, "manage")
	a.fake.Hold("clean wait")
	a.provision(uuid, "provide")
	if got := a.state(uuid, "clean wait"); got["power_state"] != "power on" {
		t.Fatalf("before the abort: %v", got["power_state"])
	}
	a.provision(uuid, "abort")
	got := a.state(uuid, "clean failed")
	steps, noted := object(got["driver_internal_info"])["clean_steps"]
	const why = `By request, the clean operation was aborted during or after the completion of step "deploy.erase_devices_metadata"`
	if got["power_state"] != "power off" || got["last_error"] != why || steps != nil || !noted {
		t.Errorf("power %v, last_error %v, clean_steps %v (noted: %t)", got["power_state"], got["last_error"], steps, noted)
	}
}

// Ironic notes what a BMC calls the vendor, and that the power of a machine was changed only if it was (ironic/conductor/utils.py of 21.4
// and 39.0: node_cache_vendor, node_power_action).
func TestManage_notesWhatTheBMCSays(t *testing.T) {
	t.Parallel()
	for driver, want := range map[string]any{"ipmi": "unknown", "redfish": "Contoso", "fake-hardware": nil} {
		a := newAPI(t, &fakeironic.Server{})
		info := map[string]any{
			"ipmi":    map[string]any{"ipmi_address": "192.0.2.1"},
			"redfish": map[string]any{"redfish_address": "https://192.0.2.1", "redfish_username": "a", "redfish_password": "b"},
		}[driver]
		uuid := a.node("n", map[string]any{"driver": driver, "driver_info": info})
		a.must(http.StatusAccepted, http.MethodPut, "/v1/nodes/n/states/power", map[string]any{"target": "power off"})
		changed := object(a.state(uuid, "enroll")["driver_internal_info"])["last_power_state_change"]
		if simulated := driver == "fake-hardware"; simulated != (changed != nil) {
			t.Errorf("%s: switched off at %v", driver, changed)
		}
		a.provision(uuid, "manage")
		if got := object(a.state(uuid, "manageable")["properties"])["vendor"]; got != want {
			t.Errorf("%s: vendor %v, want %v", driver, got, want)
		}
	}
}

// The word for a step that an interface lacks is that of Python, and Ironic leaves a note of the steps (39.0).
func TestService_namesTheClassThatLacksAStep(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := a.active("n", nil)
	a.must(http.StatusAccepted, http.MethodPut, "/v1/nodes/n/states/provision", map[string]any{
		"target": "service", "service_steps": []any{map[string]any{"interface": "vendor", "step": "nostep"}},
	})
	got := a.state(uuid, "service failed")
	steps, noted := object(got["driver_internal_info"])["service_steps"]
	want := "Node " + uuid + " failed step {'interface': 'vendor', 'step': 'nostep'}: 'FakeVendorB' object has no attribute 'nostep'"
	if got["last_error"] != want || steps != nil || !noted {
		t.Errorf("last_error %v, service_steps %v (noted: %t)", got["last_error"], steps, noted)
	}
}

// A deployment that fails leaves a note of its steps (wipe_deploy_internal_info in ironic/conductor/utils.py of 21.4 and 39.0).
func TestDeploy_aFailureNotesTheSteps(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{Fail: func(fakeironic.Node, string) string { return "no" }})
	uuid := a.node("n", nil)
	a.fake.Set(uuid, "provision_state", "available")
	a.provision(uuid, "active")
	if steps, noted := object(a.state(uuid, "deploy failed")["driver_internal_info"])["deploy_steps"]; steps != nil || !noted {
		t.Errorf("deploy_steps %v (noted: %t)", steps, noted)
	}
}

// By default, 39 boots the ramdisk for an inspection itself, and says if it cannot (validate_inspection in
// ironic/drivers/modules/pxe_base.py).
func TestValidate_managedInspectionNeedsAPort(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := a.node("n", map[string]any{"driver": "ipmi", "driver_info": map[string]any{"ipmi_address": "192.0.2.1"}})
	got := object(a.must(http.StatusOK, http.MethodGet, "/v1/nodes/n/validate", nil)["inspect"])
	want := "Insufficient information provided for managed inspection: Node " + uuid + " does not have any port associated with it"
	if got["result"] != false || got["reason"] != want {
		t.Errorf("inspect is %v, want %q", got, want)
	}
	a.must(http.StatusCreated, http.MethodPost, "/v1/ports", map[string]any{"node_uuid": uuid, "address": "52:54:00:00:00:01"})
	if got := object(a.must(http.StatusOK, http.MethodGet, "/v1/nodes/n/validate", nil)["inspect"]); got["result"] != true {
		t.Errorf("with a port: %v", got)
	}
}

// Secrets in texts are hidden, too, and stay in the database (mask_password in oslo_utils/strutils.py, measured with both versions).
func TestNode_hidesSecretsInTexts(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{MaxMicroversion: "1.82"})
	for text, want := range map[string]string{
		"http://x/v1.iso?token=hunter2&a=b c": "http://x/v1.iso?token=****** c",
		"http://x/?X-Auth-Token=abc":          "http://x/?X-Auth-Token=******",
		"--password abc def":                  "--password ****** def",
		"http://x?token-id=5":                 "http://x?token-id******",
		`token="a b"`:                         `token="******"`,
		"http://u:p@x/?tokens=5":              "http://u:p@x/?tokens=5",
		"token: abc":                          "token: abc",
	} {
		uuid := a.node("n", map[string]any{"instance_info": map[string]any{"boot_iso": text}})
		if got := object(a.state(uuid, "enroll")["instance_info"])["boot_iso"]; got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
		if n, _ := a.fake.Node(uuid); object(n.Raw["instance_info"])["boot_iso"] != text {
			t.Errorf("%q is stored as %v", text, n.Raw["instance_info"])
		}
		a.must(http.StatusNoContent, http.MethodDelete, "/v1/nodes/n", nil)
	}
}

// What a replay of Ironic's answers found in small things, each of 39.0, and but for the first one of 21.4, too.
func TestReplayed_smallThings(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := a.node("n", map[string]any{"instance_info": map[string]any{"image_source": "http://img/i", "image_checksum": "00"}})
	group := a.must(http.StatusCreated, http.MethodPost, "/v1/portgroups", map[string]any{"node_uuid": uuid, "name": "g"})["uuid"]
	shown := list(t, a.at("1.82").must(http.StatusOK, http.MethodGet, "/v1/portgroups/detail", nil), "portgroups")
	if got := object(shown[0]); got["dynamic_portgroup"] != false {
		t.Errorf("the detailed list of 1.82 lacks newer fields: %v", got)
	}
	port := map[string]any{"node_uuid": uuid, "address": "52:54:00:00:00:01", "portgroup_uuid": group}
	a.must(http.StatusCreated, http.MethodPost, "/v1/ports", port)
	a.must(http.StatusOK, http.MethodPatch, "/v1/portgroups/g", patch("add", "/physical_network", "rack1"))
	ports := list(t, a.must(http.StatusOK, http.MethodGet, "/v1/ports/detail", nil), "ports")
	if got := object(ports[0]); got["physical_network"] != "rack1" || got["updated_at"] == nil {
		t.Errorf("the port of a group with a new network is %v", got)
	}
	if got := a.must(http.StatusOK, http.MethodGet, "/v1/drivers/fake-hardware", nil); got["properties"] == nil {
		t.Errorf("the driver has no link to its properties: %v", got)
	}
	if got := a.do(http.MethodGet, "/v1/nodes/n/bios", nil).text; strings.Contains(got, uuid) {
		t.Errorf("the links of BIOS settings do not name the node as the request does: %s", got)
	}
	a.provision(uuid, "manage")
	step := func(name string) any { return map[string]any{"interface": "deploy", "step": name} }
	a.must(http.StatusAccepted, http.MethodPut, provisionPath(uuid), map[string]any{
		"target": "clean", "clean_steps": []any{step("a"), step("b")},
	})
	const refused = "node does not support this clean step: {'interface': 'deploy', 'step': "
	if got := a.state(uuid, "clean failed")["last_error"]; got != "Cannot clean node "+uuid+": "+refused+"'a'}; "+refused+"'b'}" {
		t.Errorf("not each step is named: %v", got)
	}
	a.provision(uuid, "manage")
	a.provision(uuid, "adopt")
	got := a.state(uuid, "active")
	if object(got["instance_info"])["image_type"] != "whole-disk" || object(got["driver_internal_info"])["is_whole_disk_image"] != true {
		t.Errorf("the kind of an adopted image is not noted: %v", got)
	}
}
