package fakeironic_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

func TestPower_changeLastsOneStepTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, &fakeironic.Server{StepTime: time.Minute})
		a.node("n1", nil)
		path := "/v1/nodes/n1/states/power"
		for _, tt := range []struct {
			target, result string
			cycles         int
		}{
			{"power on", "power on", 1},
			{"power on", "power on", 1},
			{"rebooting", "power on", 2},
			{"soft rebooting", "power on", 3},
			{"soft power off", "power off", 3},
			{"power off", "power off", 3},
		} {
			a.must(http.StatusAccepted, http.MethodPut, path, map[string]any{"target": tt.target})
			if n, _ := a.fake.Node("n1"); n.TargetPowerState != tt.result || n.Reservation == "" {
				t.Errorf("%s: target %q, reservation %q; want %q, some", tt.target, n.TargetPowerState, n.Reservation, tt.result)
			}
			time.Sleep(time.Minute)
			if n, _ := a.fake.Node("n1"); n.PowerState != tt.result || n.TargetPowerState != "" || a.fake.PowerCycles("n1") != tt.cycles {
				t.Errorf("%s: %q, target %q, %d cycles; want %q, none, %d", tt.target, n.PowerState, n.TargetPowerState,
					a.fake.PowerCycles("n1"), tt.result, tt.cycles)
			}
		}
	})
}

func TestPower_refusals(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := a.node("n1", nil)
	for _, tt := range []struct {
		body map[string]any
		text string
	}{
		{map[string]any{}, "Missing mandatory parameter: target"},
		{map[string]any{"target": "on"}, `The requested action "on" can not be performed on node "` + uuid +
			`" while it is in state "None".`},
		{map[string]any{"target": "power on", "timeout": 0}, "timeout has to be positive integer"},
	} {
		a.refused(http.StatusBadRequest, tt.text, http.MethodPut, "/v1/nodes/n1/states/power", tt.body)
	}
	a.fake.Set(uuid, "provision_state", "cleaning")
	a.refused(http.StatusBadRequest, `in state "cleaning"`, http.MethodPut, "/v1/nodes/n1/states/power",
		map[string]any{"target": "power on"})
}

func TestPower_failureSetsLastError(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
		return "Failed to change power state to '" + verb + "': no answer"
	}})
	a.node("n1", nil)
	a.must(http.StatusAccepted, http.MethodPut, "/v1/nodes/n1/states/power", map[string]any{"target": "power on"})
	if n, _ := a.fake.Node("n1"); n.PowerState != "" || n.TargetPowerState != "" ||
		n.LastError != "Failed to change power state to 'power on': no answer" {
		t.Errorf("power %q, target %q, last_error %q", n.PowerState, n.TargetPowerState, n.LastError)
	}
}

func TestPower_agentOnlyRestartsAndOnlyWhileItRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, &fakeironic.Server{StepTime: time.Minute, FastTrack: true})
		uuid := a.node("n1", map[string]any{"driver": "manual-management", "power_interface": "agent", "network_interface": "noop"})
		const path = "/v1/nodes/n1/states/power"
		for _, target := range []string{"power off", "rebooting"} {
			a.refused(http.StatusBadRequest, "Agent seems offline", http.MethodPut, path, map[string]any{"target": target})
		}
		lastError := func(target string, meanwhile func()) string {
			a.fake.RunAgent(uuid, true)
			a.must(http.StatusAccepted, http.MethodPut, path, map[string]any{"target": target})
			meanwhile()
			time.Sleep(time.Minute)
			n, _ := a.fake.Node(uuid)
			return n.LastError
		}
		if got := lastError("power off", func() {}); !strings.Contains(got, "Failed to set node power state to power off.") {
			t.Errorf("power off: last_error %q", got)
		}
		if got := lastError("rebooting", func() { a.fake.RunAgent(uuid, false) }); !strings.Contains(got, "Connection to agent failed") {
			t.Errorf("restart while the agent falls silent: last_error %q", got)
		}
		if got := lastError("rebooting", func() {}); got != "" {
			t.Errorf("restart: last_error %q", got)
		}
	})
}

func TestBootDevice_staysUntilItIsUsed(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	uuid := a.redfish("n1", nil)
	path := "/v1/nodes/" + uuid + "/management/boot_device"
	shows := func(when, want string) {
		t.Helper()
		if got := fmt.Sprint(a.must(http.StatusOK, http.MethodGet, path, nil)); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	shows("at first", "map[boot_device:<nil> persistent:<nil>]")
	a.must(http.StatusNoContent, http.MethodPut, path+"?boot_device=pxe&persistent=true", nil)
	a.power(uuid, "power on")
	shows("for good", "map[boot_device:pxe persistent:true]")
	a.must(http.StatusNoContent, http.MethodPut, path, map[string]any{"boot_device": "cdrom"})
	shows("for the next start", "map[boot_device:cdrom persistent:false]")
	a.power(uuid, "rebooting")
	shows("after that start", "map[boot_device:cdrom persistent:<nil>]")
	a.fake.Set(uuid, "reservation", "localhost")
	a.refused(http.StatusConflict, "is locked by host", http.MethodPut, path, map[string]any{"boot_device": "cdrom"})
}

func TestBootDevice_supportedByManagementInterface(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ version, management, want string }{
		{"1.115", "fake", "[pxe]"},
		{"1.115", "ipmitool", "[pxe disk cdrom bios safe]"},
		{"1.82", "redfish", "[pxe disk cdrom bios]"},
		{"1.115", "redfish", "[pxe disk cdrom bios uefihttp]"},
	} {
		a := newAPI(t, &fakeironic.Server{MaxMicroversion: tt.version})
		a.node("n1", map[string]any{"management_interface": tt.management})
		got := a.must(http.StatusOK, http.MethodGet, "/v1/nodes/n1/management/boot_device/supported", nil)
		if devices := fmt.Sprint(list(t, got, "supported_boot_devices")); devices != tt.want {
			t.Errorf("%s at %s = %s, want %s", tt.management, tt.version, devices, tt.want)
		}
	}
}

func TestPower_softOffNeedsTheOperatingSystem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, &fakeironic.Server{IgnoresSoftOff: func(n fakeironic.Node) bool { return n.Name == "deaf" }})
		path := "/v1/nodes/" + a.node("deaf", nil) + "/states/power"
		a.must(http.StatusAccepted, http.MethodPut, path, map[string]any{"target": "power on"})
		for timeout, lasts := range map[any]time.Duration{180: 3 * time.Minute, nil: 10 * time.Minute} {
			a.must(http.StatusAccepted, http.MethodPut, path, map[string]any{"target": "soft power off", "timeout": timeout})
			time.Sleep(lasts - time.Second)
			if n, _ := a.fake.Node("deaf"); n.TargetPowerState != "power off" || n.Reservation == "" {
				t.Errorf("timeout %v: before its end the target is %q, the lock %q", timeout, n.TargetPowerState, n.Reservation)
			}
			time.Sleep(time.Second)
			if n, _ := a.fake.Node("deaf"); n.PowerState != "power on" || n.TargetPowerState != "" ||
				!strings.Contains(n.LastError, "by 'soft power off'") {
				t.Errorf("timeout %v: at its end the machine is %q, the target %q, the error %q", timeout, n.PowerState,
					n.TargetPowerState, n.LastError)
			}
		}
		a.must(http.StatusAccepted, http.MethodPut, path, map[string]any{"target": "power off"})
		if n, _ := a.fake.Node("deaf"); n.PowerState != "power off" {
			t.Errorf("a hard power-off leaves the machine %q", n.PowerState)
		}
	})
}

// What a soft restart of a machine tells depends on its power interface.
func TestPower_softRestart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		driver, name, power string // the operating system of the machine deaf ignores requests
		lasts               time.Duration
		starts              int
		words               string
	}{
		{"redfish", "polite", "power on", time.Second, 1, ""},
		{"redfish", "deaf", "power on", time.Second, 0, ""},
		{"redfish", "polite", "power off", time.Second, 0, "by 'soft rebooting': Redfish exception occurred"},
		{"ipmi", "deaf", "power on", time.Minute, 0, "by 'soft rebooting': Failed to set node power state to power off."},
		{"ipmi", "polite", "power off", time.Second, 0, "by 'soft rebooting': IPMI call failed"},
		{"fake-hardware", "polite", "power off", time.Second, 1, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := newAPI(t, &fakeironic.Server{StepTime: time.Second, IgnoresSoftOff: func(n fakeironic.Node) bool {
				return n.Name == "deaf"
			}})
			a.node(tt.name, map[string]any{"driver": tt.driver, "driver_info": map[string]any{
				"redfish_address": "https://192.0.2.1", "ipmi_address": "192.0.2.1", "ipmi_username": "a", "ipmi_password": "b",
			}})
			a.fake.Set(tt.name, "power_state", tt.power)
			a.must(http.StatusAccepted, http.MethodPut, "/v1/nodes/"+tt.name+"/states/power",
				map[string]any{"target": "soft rebooting", "timeout": 60})
			time.Sleep(tt.lasts)
			n, _ := a.fake.Node(tt.name)
			if starts := a.fake.PowerCycles(n.UUID); n.TargetPowerState != "" || starts != tt.starts ||
				!strings.Contains(n.LastError, tt.words) || tt.words == "" && n.LastError != "" {
				t.Errorf("%s, %s, %s: the target is %q, the machine has started %d times, the error is %q", tt.driver, tt.name, tt.power,
					n.TargetPowerState, starts, n.LastError)
			}
		})
	}
}

func TestPower_offIsRefused(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{NoSoftPower: true})
	a.node("never", map[string]any{"disable_power_off": true})
	a.node("hard", nil)
	for _, target := range []string{"power off", "soft power off"} {
		a.refused(http.StatusConflict, "Failed to set node power state to "+target+".", http.MethodPut, "/v1/nodes/never/states/power",
			map[string]any{"target": target})
	}
	a.must(http.StatusAccepted, http.MethodPut, "/v1/nodes/never/states/power", map[string]any{"target": "rebooting"})
	for _, target := range []string{"soft rebooting", "soft power off"} {
		a.refused(http.StatusBadRequest, "The driver fake-hardware does not support the power state, "+target, http.MethodPut,
			"/v1/nodes/hard/states/power", map[string]any{"target": target})
	}
}

func TestBootMode_needsRedfish(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{})
	a.node("n1", nil)
	uuid := a.node("n2", map[string]any{"driver": "redfish", "driver_info": map[string]any{"redfish_address": "https://bmc"}})
	a.provision(uuid, "manage")
	if n, _ := a.fake.Node(uuid); n.Raw["boot_mode"] != "uefi" || n.Raw["secure_boot"] != false {
		t.Errorf("a verified node has %v and %v", n.Raw["boot_mode"], n.Raw["secure_boot"])
	}
	for _, what := range []struct {
		name   string
		target any
		method string
	}{{"boot_mode", "bios", "set_boot_mode"}, {"secure_boot", true, "set_secure_boot_state"}} {
		body := map[string]any{"target": what.target}
		a.must(http.StatusAccepted, http.MethodPut, "/v1/nodes/n1/states/"+what.name, body)
		if n, _ := a.fake.Node("n1"); n.Raw[what.name] != nil ||
			!strings.Contains(n.LastError, "Driver fake-hardware does not support "+what.method) {
			t.Errorf("%s of fake-hardware is %v, the error %q", what.name, n.Raw[what.name], n.LastError)
		}
		a.must(http.StatusAccepted, http.MethodPut, "/v1/nodes/"+uuid+"/states/"+what.name, body)
		if n, _ := a.fake.Node(uuid); n.Raw[what.name] != what.target || n.LastError != "" {
			t.Errorf("%s is %v, the error %q", what.name, n.Raw[what.name], n.LastError)
		}
		a.at("1.75").refused(http.StatusNotFound, "", http.MethodPut, "/v1/nodes/n1/states/"+what.name, body)
	}
	a.refused(http.StatusBadRequest, "Invalid boot mode nope", http.MethodPut, "/v1/nodes/n1/states/boot_mode",
		map[string]any{"target": "nope"})
	a.fake.Set(uuid, "provision_state", "cleaning")
	a.refused(http.StatusConflict, "the boot mode will not be set", http.MethodPut, "/v1/nodes/"+uuid+"/states/boot_mode",
		map[string]any{"target": "uefi"})
}

// 21.4 and 39.0 answer so with the driver fake-hardware; the answers with Redfish are read from the source of 39.0.
func TestNMI_needsAManagementInterfaceThatCan(t *testing.T) {
	t.Parallel()
	for _, version := range bothIronics {
		api := newAPI(t, &fakeironic.Server{MaxMicroversion: version})
		plain, redfish := api.node("plain", nil), api.redfish("redfish", nil)
		path := func(uuid string) string { return "/v1/nodes/" + uuid + "/management/inject_nmi" }
		api.refused(http.StatusBadRequest, "Driver fake-hardware does not support inject_nmi (disabled or not implemented).",
			http.MethodPut, path(plain), map[string]any{})
		api.at("1.28").refused(http.StatusNotFound, "Resource could not be found.", http.MethodPut, path(redfish), map[string]any{})
		api.must(http.StatusNoContent, http.MethodPut, path(redfish), map[string]any{})
	}
}
