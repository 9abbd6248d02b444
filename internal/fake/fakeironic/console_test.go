package fakeironic_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// console reads the console of a node, and returns whether it is enabled, its type and its URL.
func (a *api) console(uuid string) (enabled bool, kind, url string) {
	a.t.Helper()
	got := a.must(http.StatusOK, http.MethodGet, "/v1/nodes/"+uuid+"/states/console", nil)
	info, isThere := got["console_info"].(map[string]any)
	kind, _ = info["type"].(string)
	url, _ = info["url"].(string)
	if enabled, _ = got["console_enabled"].(bool); enabled != isThere {
		a.t.Errorf("the console is %v", got)
	}
	return enabled, kind, url
}

// setConsole sends PUT states/console, and expects a status.
func (a *api) setConsole(status int, uuid string, body any) string {
	a.t.Helper()
	got := a.do(http.MethodPut, "/v1/nodes/"+uuid+"/states/console", body)
	if got.status != status {
		a.t.Fatalf("PUT states/console %v: %d %s, want %d", body, got.status, got.text, status)
	}
	if status >= http.StatusBadRequest {
		return got.fault()
	}
	return got.header.Get("Location")
}

func TestConsole_hasTheShapeOfItsInterface(t *testing.T) {
	t.Parallel()
	newest, oldest := newAPI(t, &fakeironic.Server{}), newAPI(t, &fakeironic.Server{MaxMicroversion: "1.82"})
	on, off := map[string]any{"enabled": true}, map[string]any{"enabled": "false"}
	ipmi := map[string]any{"ipmi_address": "192.0.2.7", "ipmi_terminal_port": 8023}
	for _, tt := range []struct {
		*api
		driver, console string
		info            map[string]any
		kind, url       string
	}{
		{newest, "fake-hardware", "fake", nil, "", ""},
		{newest, "fake-hardware", "fake-graphical", nil, "vnc", "http://127.0.0.1:6090/vnc_auto.html?path=websockify%3Fnode%3D"},
		{newest, "ipmi", "ipmitool-socat", ipmi, "socat", "tcp://127.0.0.1:8023"},
		{oldest, "ipmi", "ipmitool-shellinabox", ipmi, "shellinabox", "http://127.0.0.1:8023"},
	} {
		a := tt.api
		uuid := a.node(tt.console, map[string]any{"driver": tt.driver, "console_interface": tt.console, "driver_info": tt.info})
		if enabled, _, _ := a.console(uuid); enabled {
			t.Errorf("%s: a new console is enabled", tt.console)
		}
		if location := a.setConsole(http.StatusAccepted, uuid, on); !strings.HasSuffix(location, "/v1/nodes/"+uuid+"/states/console") {
			t.Errorf("the location is %q", location)
		}
		if enabled, kind, url := a.console(uuid); !enabled || kind != tt.kind || !strings.HasPrefix(url, tt.url) {
			t.Errorf("%s: %v, %q, %q", tt.console, enabled, kind, url)
		}
		a.setConsole(http.StatusAccepted, uuid, off)
		if enabled, _, _ := a.console(uuid); enabled {
			t.Errorf("%s: is still enabled", tt.console)
		}
	}
}

func TestConsole_refuses(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{StepTime: time.Hour})
	ready := a.node("ready", nil)
	for _, tt := range []struct {
		uuid string
		body map[string]any
		want string
	}{
		{ready, map[string]any{}, "Missing mandatory parameter: enabled"},
		{ready, map[string]any{"enabled": "perhaps"}, "Invalid enabled: Unrecognized value 'perhaps'"},
		{
			a.node("none", map[string]any{"driver": "ipmi"}),
			map[string]any{"enabled": true},
			"Driver ipmi does not support console (disabled or not implemented).",
		},
		{a.node("portless", map[string]any{"driver": "ipmi", "console_interface": "ipmitool-socat", "driver_info": map[string]any{
			"ipmi_address": "192.0.2.7",
		}}), map[string]any{"enabled": false}, "Either missing 'ipmi_terminal_port'"},
	} {
		if got := a.setConsole(http.StatusBadRequest, tt.uuid, tt.body); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%v: %s", tt.body, got)
		}
	}
	a.setConsole(http.StatusAccepted, ready, map[string]any{"enabled": true})
	a.setConsole(http.StatusAccepted, ready, map[string]any{"enabled": false}) // as it is: nothing to do
	if got := a.setConsole(http.StatusConflict, ready, map[string]any{"enabled": true}); !strings.Contains(got, "is locked by host") {
		t.Errorf("a locked node: %s", got)
	}
}

func TestConsole_failsInTheBackground(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fakeironic.Server{Fail: func(_ fakeironic.Node, verb string) string {
		if verb == "console" {
			return "no SOL"
		}
		return ""
	}})
	uuid := a.node("n", nil)
	a.setConsole(http.StatusAccepted, uuid, map[string]any{"enabled": true})
	node := a.must(http.StatusOK, http.MethodGet, "/v1/nodes/"+uuid, nil)
	if want := "Error enabling the console on node " + uuid + ". Reason: no SOL"; node["last_error"] != want ||
		node["console_enabled"] != false {
		t.Errorf("last_error is %v, console_enabled %v", node["last_error"], node["console_enabled"])
	}
	if history := list(t, a.must(http.StatusOK, http.MethodGet, "/v1/nodes/"+uuid+"/history", nil), "history"); len(history) != 1 {
		t.Errorf("the history is %v", history)
	}
}

// A graphical console ends after ten minutes, and when its node is undeployed. Another one is started again by the next deployment.
func TestConsole_ofDeployments(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, &fakeironic.Server{})
		graphical := a.node("graphical", map[string]any{"console_interface": "fake-graphical"})
		plain := a.node("plain", nil)
		enable := func(uuid string) {
			a.setConsole(http.StatusAccepted, uuid, map[string]any{"enabled": true})
			if enabled, _, _ := a.console(uuid); !enabled {
				t.Fatalf("%s has no console", uuid)
			}
		}
		expect := func(when string, uuid string, want bool) {
			if enabled, _, _ := a.console(uuid); enabled != want {
				t.Errorf("%s: the console of %s is %v", when, uuid, enabled)
			}
		}
		for _, uuid := range []string{graphical, plain} {
			a.fake.Set(uuid, "provision_state", "active")
			enable(uuid)
		}
		time.Sleep(9 * time.Minute)
		expect("after 9 minutes", graphical, true)
		time.Sleep(2 * time.Minute)
		expect("after 11 minutes", graphical, false)
		expect("after 11 minutes", plain, true)
		enable(graphical)
		for _, uuid := range []string{graphical, plain} {
			a.provision(uuid, "deleted")
			a.state(uuid, "available")
		}
		expect("undeployed", graphical, false)
		expect("undeployed", plain, true)
	})
}
