package fakeironic_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// What the drivers of both versions support, as ironic/drivers/*.py of 21.4.4 and 39.0.0 say; deploy interfaces have tests of their own.
func TestDriver_interfacesOfTheVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"1.82": `fake-hardware bios fake no-bios | boot fake ipxe pxe | console fake no-console | inspect fake no-inspect |
management fake | power fake | raid fake no-raid agent
idrac bios idrac-redfish no-bios | boot ipxe pxe idrac-redfish-virtual-media | console no-console | inspect idrac-redfish no-inspect |
management idrac-redfish | power idrac-redfish | raid idrac-redfish no-raid agent
ipmi bios no-bios | boot ipxe pxe | console no-console ipmitool-socat ipmitool-shellinabox | inspect no-inspect | management ipmitool noop |
power ipmitool | raid no-raid agent
manual-management bios no-bios | boot ipxe pxe | console no-console | inspect no-inspect | management noop fake | power agent fake |
raid no-raid agent
redfish bios redfish no-bios | boot ipxe pxe redfish-virtual-media | console no-console | inspect redfish no-inspect |
management redfish noop | power redfish | raid redfish no-raid agent`,
		"1.115": `fake-hardware bios fake no-bios | boot fake ipxe pxe | console fake no-console fake-graphical |
inspect fake agent no-inspect | management fake | power fake | raid fake no-raid agent
idrac bios idrac-redfish redfish no-bios | boot ipxe pxe idrac-redfish-virtual-media redfish-https |
console no-console redfish-graphical ipmitool-socat fake-graphical | inspect idrac-redfish agent no-inspect | management idrac-redfish |
power idrac-redfish redfish | raid idrac-redfish no-raid agent
ipmi bios no-bios | boot ipxe pxe | console no-console ipmitool-socat fake-graphical | inspect agent no-inspect | management ipmitool noop |
power ipmitool | raid no-raid agent
manual-management bios no-bios | boot ipxe pxe | console no-console fake-graphical | inspect agent no-inspect | management noop fake |
power agent fake | raid no-raid agent
redfish bios redfish no-bios | boot ipxe pxe redfish-virtual-media redfish-https |
console no-console redfish-graphical ipmitool-socat fake-graphical | inspect redfish agent no-inspect | management redfish noop |
power redfish | raid redfish no-raid agent`,
	} {
		a := newAPI(t, &fakeironic.Server{MaxMicroversion: version})
		var got []string
		for _, driver := range []string{"fake-hardware", "idrac", "ipmi", "manual-management", "redfish"} {
			shown := a.must(http.StatusOK, http.MethodGet, "/v1/drivers/"+driver, nil)
			var kinds []string
			for _, kind := range []string{"bios", "boot", "console", "inspect", "management", "power", "raid"} {
				kinds = append(kinds, kind+" "+strings.Trim(fmt.Sprint(list(t, shown, "enabled_"+kind+"_interfaces")), "[]"))
			}
			got = append(got, driver+" "+strings.Join(kinds, " | "))
		}
		if got, want := strings.Join(got, "\n"), strings.ReplaceAll(want, "|\n", "| "); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", version, got, want)
		}
	}
	a := newAPI(t, &fakeironic.Server{MaxMicroversion: "1.82"})
	a.node("n1", map[string]any{"boot_interface": "redfish-virtual-media", "power_interface": "ipmitool"}) // fake-hardware has all
	a.refused(http.StatusBadRequest, "Could not find the following interface", http.MethodPost, "/v1/nodes", map[string]any{
		"driver": "ipmi", "inspect_interface": "agent",
	})
	a.refused(http.StatusBadRequest, "is not supported by hardware type RedfishHardware.", http.MethodPost, "/v1/nodes", map[string]any{
		"driver": "redfish", "console_interface": "ipmitool-socat",
	})
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
