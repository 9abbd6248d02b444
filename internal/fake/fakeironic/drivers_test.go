package fakeironic_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

func TestDriver_interfacesForLiveISOs(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	for driver, boots := range map[string][]string{
		"fake-hardware": {"fake", "ipxe", "pxe", "redfish-virtual-media"},
		"ipmi":          {"ipxe", "pxe"},
		"redfish":       {"ipxe", "pxe", "redfish-virtual-media"},
	} {
		got := a.must(http.StatusOK, http.MethodGet, "/v1/drivers/"+driver, nil)
		if deploys := list(t, got, "enabled_deploy_interfaces"); !slices.Contains(deploys, any("ramdisk")) {
			t.Errorf("%s deploys with %v, want ramdisk among them", driver, deploys)
		}
		enabled := list(t, got, "enabled_boot_interfaces")
		for _, boot := range boots {
			if !slices.Contains(enabled, any(boot)) {
				t.Errorf("%s boots with %v, want %s among them", driver, enabled, boot)
			}
		}
	}
}

func TestDriver_instanceInfoOverridesInterfaces(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := a.available("n1", nil)
	path := "/v1/nodes/" + uuid
	for _, tt := range []struct {
		interfaces map[string]any
		kind, want string // want is the reason of GET validate for the interface kind
	}{
		{map[string]any{}, "deploy", ""},
		{map[string]any{"deploy_interface": "direct"}, "deploy", "Missing are: ['instance_info.image_source']"},
		{map[string]any{"boot_interface": "ipxe", "deploy_interface": "ramdisk"}, "deploy", "does not have any port"},
		{map[string]any{"power_interface": "ipmitool"}, "power", "Missing the following IPMI credentials"},
		{map[string]any{"power_interface": "ipmitool"}, "management", ""},
		{map[string]any{"management_interface": "redfish"}, "management", "Missing the following Redfish properties"},
		{map[string]any{"bios_interface": "no-bios"}, "bios", "Driver fake-hardware does not support bios (disabled or not implemented)."},
	} {
		got := a.must(http.StatusOK, http.MethodPatch, path, patch("add", "/instance_info", tt.interfaces))
		if got["deploy_interface"] != "fake" || got["power_interface"] != "fake" {
			t.Errorf("%v changes the node's own interfaces to %v and %v", tt.interfaces, got["deploy_interface"], got["power_interface"])
		}
		if reason := a.verdict(uuid, tt.kind); !strings.Contains(reason, tt.want) || tt.want == "" && reason != "" {
			t.Errorf("with %v: verdict on %s = %q, want %q", tt.interfaces, tt.kind, reason, tt.want)
		}
	}
	a.must(http.StatusOK, http.MethodPatch, path, patch("add", "/instance_info", map[string]any{"power_interface": "ipmitool"}))
	a.refused(http.StatusBadRequest, "Missing the following IPMI credentials", http.MethodPut, path+"/states/power",
		map[string]any{"target": "power on"})
	a.refused(http.StatusBadRequest, "Missing the following IPMI credentials", http.MethodPut, provisionPath(uuid), requestOf("active"))
}

func TestDriver_wrongOverrideIsStoredAndBlocksOperations(t *testing.T) {
	t.Parallel()
	for _, override := range []any{"nope", nil, ""} {
		a := newAPI(t, &fakeironic.Server{})
		uuid := a.available("n1", nil)
		path := "/v1/nodes/" + uuid
		a.must(http.StatusOK, http.MethodPatch, path, patch("add", "/instance_info/deploy_interface", override))
		const complaint = "Could not find the following interface in the 'ironic.hardware.interfaces.deploy' entrypoint: "
		for _, request := range []struct {
			method, path string
			body         any
		}{
			{http.MethodGet, path + "/validate", nil},
			{http.MethodPut, path + "/states/provision", requestOf("active")},
			{http.MethodPut, path + "/states/power", map[string]any{"target": "power on"}},
			{http.MethodGet, path + "/management/boot_device", nil},
			{http.MethodPut, path + "/management/boot_device", map[string]any{"boot_device": "pxe"}},
			{http.MethodDelete, path + "/vmedia", nil},
		} {
			a.refused(http.StatusBadRequest, complaint, request.method, request.path, request.body)
		}
		a.must(http.StatusOK, http.MethodPatch, path, patch("add", "/extra/a", 1))
		a.must(http.StatusOK, http.MethodPatch, path, patch("remove", "/instance_info/deploy_interface", nil))
		a.provision(uuid, "active")
	}
}

func TestDriver_overrideMustFitTheDriver(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := a.redfish("n1", nil)
	a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/n1", patch("add", "/instance_info/deploy_interface", "fake"))
	a.refused(http.StatusBadRequest, "is not supported by hardware type RedfishHardware.", http.MethodPut, provisionPath(uuid),
		requestOf("active"))
}

func TestDriver_overrideAtCreationLeavesInterfaceNull(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := a.netbooting("n1", liveISO(isoA))
	if got := a.state(uuid, "available")["deploy_interface"]; got != nil {
		t.Errorf("deploy_interface = %v, want null", got)
	}
	a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/n1", patch("add", "/instance_info", map[string]any{}))
	if got := a.verdict(uuid, "deploy"); got != "" {
		t.Errorf("without the override: verdict on deploy = %q, want the driver's default at work", got)
	}
	a.must(http.StatusOK, http.MethodPatch, "/v1/nodes/n1", patch("add", "/boot_interface", "pxe"))
	if got := a.state(uuid, "available")["deploy_interface"]; got != "fake" {
		t.Errorf("deploy_interface = %v after a patch of another one, want fake", got)
	}
	a.refused(http.StatusBadRequest, "Could not find the following interface", http.MethodPost, "/v1/nodes",
		map[string]any{"driver": "fake-hardware", "instance_info": map[string]any{"deploy_interface": "nope"}})
}

func TestDriver_interfacesChangeOnlyInSomeStates(t *testing.T) {
	t.Parallel()
	interfaces := map[string]string{
		"bios": "no-bios", "boot": "pxe", "console": "no-console", "deploy": "direct", "inspect": "no-inspect", "management": "ipmitool",
		"power": "ipmitool", "raid": "no-raid", "rescue": "no-rescue", "storage": "fake", "vendor": "no-vendor",
	}
	for state, status := range map[string]int{
		"enroll": 200, "manageable": 200, "available": 200, "inspect wait": 200,
		"active": 409, "deploy failed": 409, "rescue": 409, "clean failed": 409, "error": 409,
	} {
		for _, version := range bothIronics {
			a := newAPI(t, &fakeironic.Server{MaxMicroversion: version})
			uuid := a.node("n1", map[string]any{"boot_interface": "ipxe"})
			path := "/v1/nodes/" + uuid
			a.fake.Set(uuid, "provision_state", state)
			ending := " states or in maintenance mode."
			if version == "1.115" {
				ending += " Current state is '" + state + "'."
			}
			for kind, value := range interfaces {
				text := ""
				if status == 409 {
					text = "Node " + uuid + " can not have " + kind + "_interface updated unless it is in one of allowed (enroll, " +
						"inspecting, inspect wait, manageable, available)" + ending
				}
				a.refused(status, text, http.MethodPatch, path, patch("add", "/"+kind+"_interface", value))
			}
			for _, harmless := range []string{"/instance_info/deploy_interface", "/extra/a"} {
				a.must(http.StatusOK, http.MethodPatch, path, patch("add", harmless, "ramdisk"))
			}
			a.must(http.StatusOK, http.MethodPatch, path, patch("add", "/automated_clean", true))
			// no change
			a.must(http.StatusOK, http.MethodPatch, path, patch("add", "/storage_interface", a.state(uuid, state)["storage_interface"]))
			a.must(http.StatusAccepted, http.MethodPut, path+"/maintenance", map[string]any{})
			a.must(http.StatusOK, http.MethodPatch, path, patch("add", "/boot_interface", "fake"))
		}
	}
}
