package fakeironic_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

func step(kind, name string, settings ...any) map[string]any {
	s := map[string]any{"interface": kind, "step": name}
	if settings != nil {
		s["args"] = map[string]any{"settings": settings}
	}
	return s
}

func named(name string, value any) any { return map[string]any{"name": name, "value": value} }

// clean runs steps in a manual cleaning and waits for a state.
func (a *api) clean(uuid, until string, steps ...map[string]any) map[string]any {
	a.t.Helper()
	a.must(http.StatusAccepted, http.MethodPut, provisionPath(uuid), map[string]any{"target": "clean", "clean_steps": steps})
	return a.state(uuid, until)
}

// The interface fake keeps exactly the settings of the last step, and has no registry. That of a BMC keeps the others.
func TestHardware_bios(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	fake, real := a.node("fake", nil), a.redfish("real", nil)
	for _, uuid := range []string{fake, real} {
		a.fake.Set(uuid, "provision_state", "manageable")
		a.clean(uuid, "manageable", step("bios", "apply_configuration", named("AssetTag", "a")))
		a.clean(uuid, "manageable", step("bios", "apply_configuration", named("BootMode", "Bios")))
	}
	if got := a.fake.BIOS(fake); !maps.Equal(got, map[string]string{"BootMode": "Bios"}) {
		t.Errorf("the interface fake has %v", got)
	}
	if got := a.fake.BIOS(real); got["BootMode"] != "Bios" || got["AssetTag"] != "a" || got["LogicalProc"] != "Enabled" {
		t.Errorf("the BMC has %v", got)
	}
	a.at("1.73").must(http.StatusBadRequest, http.MethodGet, "/v1/nodes/"+real+"/bios?detail=true", nil)
	for path, want := range map[string]any{"/bios": nil, "/bios?detail=true": "Enumeration"} {
		list, _ := a.must(http.StatusOK, http.MethodGet, "/v1/nodes/"+real+path, nil)["bios"].([]any)
		if setting, _ := list[1].(map[string]any); setting["name"] != "BootMode" || setting["attribute_type"] != want {
			t.Errorf("%s shows %v", path, setting)
		}
	}
	for _, wrong := range []any{
		named("BootMode", "uefi"), named("NumberOfCores", 65), named("NumberOfCores", "8"),
		named("SystemServiceTag", "x"), named("Nope", "x"),
	} {
		node := a.clean(real, "clean failed", step("bios", "apply_configuration", wrong))
		if text, _ := node["last_error"].(string); !strings.Contains(text, "invalid value for setting(s)") ||
			node["fault"] != "clean failure" {
			t.Errorf("%v: %s, %v", wrong, text, node["fault"])
		}
		a.must(http.StatusAccepted, http.MethodDelete, "/v1/nodes/"+real+"/maintenance", nil)
		a.provision(real, "manage")
	}
}

// Steps run in order; those before the one that fails have an effect.
func TestHardware_raidAndFirmware(t *testing.T) {
	t.Parallel()
	skipped := ""
	a := newAPI(t, &fakeironic.Server{Skips: func(step string) bool { return step == skipped }})
	uuid := a.redfish("n", nil)
	a.fake.Set(uuid, "provision_state", "manageable")
	node := a.clean(uuid, "clean failed", step("raid", "create_configuration"))
	if text, _ := node["last_error"].(string); !strings.Contains(text, "no target RAID configuration") {
		t.Errorf("without a target: %s", text)
	}
	a.must(http.StatusAccepted, http.MethodDelete, "/v1/nodes/"+uuid+"/maintenance", nil)
	a.provision(uuid, "manage")
	a.must(http.StatusNoContent, http.MethodPut, "/v1/nodes/"+uuid+"/states/raid", map[string]any{
		"logical_disks": []any{map[string]any{"raid_level": "1", "size_gb": "MAX", "is_root_volume": true}},
	})
	update := step("firmware", "update", map[string]any{"component": "bios", "url": "http://images/bios-2.19.1.bin"})
	count := func(node map[string]any) int {
		config, _ := node["raid_config"].(map[string]any)
		disks, _ := config["logical_disks"].([]any)
		return len(disks)
	}
	node = a.clean(uuid, "manageable", step("raid", "create_configuration"), update)
	properties, _ := node["properties"].(map[string]any)
	if count(node) != 1 || properties["local_gb"] != 894.0 || properties["capabilities"] != "raid_level:1" {
		t.Errorf("raid_config is %v, properties are %v", node["raid_config"], properties)
	}
	list, _ := a.must(http.StatusOK, http.MethodGet, "/v1/nodes/"+uuid+"/firmware", nil)["firmware"].([]any)
	if part, _ := list[0].(map[string]any); part["component"] != "bios" || part["current_version"] != "2.19.1" ||
		part["initial_version"] != "2.18.0" {
		t.Errorf("the firmware is %v", part)
	}
	if node = a.clean(uuid, "manageable", step("raid", "create_configuration")); count(node) != 2 {
		t.Errorf("a second creation leaves %v", node["raid_config"])
	}
	if skipped = "raid.delete_configuration"; count(a.clean(uuid, "manageable", step("raid", "delete_configuration"))) != 2 {
		t.Error("a skipped step had an effect")
	}
	skipped = ""
	update["args"] = map[string]any{"settings": []any{map[string]any{"component": "nic:none", "url": "http://images/nic-1.bin"}}}
	if node = a.clean(uuid, "clean failed", step("raid", "delete_configuration"), update); count(node) != 0 {
		t.Errorf("before the failed step: %v", node["raid_config"])
	}
}

// The identity of components came later than their versions.
func TestHardware_firmwareIdentity(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	path := "/v1/nodes/" + a.redfish("n", nil) + "/firmware"
	for version, want := range map[string]bool{"1.113": false, "1.114": true} {
		for _, item := range list(t, a.at(version).must(http.StatusOK, http.MethodGet, path, nil), "firmware") {
			part, _ := item.(map[string]any)
			if model, known := part["model"]; known != want || known && part["component"] == "bmc" && model != "Example BMC" {
				t.Errorf("API %s: %v", version, part)
			}
		}
	}
	a.at("1.85").must(http.StatusNotFound, http.MethodGet, path, nil)
	old := newAPI(t, &fakeironic.Server{MaxMicroversion: "1.82"})
	old.must(http.StatusBadRequest, http.MethodGet, "/v1/nodes/"+old.redfish("n", nil)+"/firmware", nil)
}

// Ironic validates every interface but vendor, and firmware where it has that.
func TestHardware_validate(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]int{"1.82": 11, "1.115": 12} {
		a := newAPI(t, &fakeironic.Server{MaxMicroversion: version})
		results := a.must(http.StatusOK, http.MethodGet, "/v1/nodes/"+a.redfish("n", nil)+"/validate", nil)
		if rescue, _ := results["rescue"].(map[string]any); len(results) != want || rescue["result"] != false ||
			rescue["reason"] != "Driver redfish does not support rescue (disabled or not implemented)." {
			t.Errorf("%s: %v", version, results)
		}
	}
}
