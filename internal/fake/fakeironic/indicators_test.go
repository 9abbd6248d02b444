package fakeironic_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// 21.4 and 39.0 answer so, both with the drivers fake-hardware, redfish (before a fakebmc), ipmi and manual-management.
func TestIndicators_likeIronic(t *testing.T) {
	t.Parallel()
	for _, version := range bothIronics {
		a := newAPI(t, &fakeironic.Server{MaxMicroversion: version})
		plain, red, ipmi := a.node("plain", nil), a.redfish("red", nil), a.node("ipmi", map[string]any{"driver": "ipmi"})
		path := func(node, name string) string { return "/v1/nodes/" + node + "/management/indicators" + name }
		on := map[string]any{"state": "on"}
		names := func(node, want string) {
			t.Helper()
			got := ""
			for _, one := range list(t, a.must(http.StatusOK, http.MethodGet, path(node, ""), nil), "indicators") {
				i := one.(map[string]any)
				got += fmt.Sprint(i["name"], " ", i["component"], " ", i["readonly"], " ", i["states"], ", ")
			}
			if got != want {
				t.Errorf("%s: %s, want %s", version, got, want)
			}
		}
		names(plain, "led-0@chassis chassis true [off on], led@system system false [blinking off on], ")
		names(red, "c"+red[1:]+"@chassis chassis false [blinking off on], "+red+"@system system false [blinking off on], ")
		a.at("1.62").must(http.StatusOK, http.MethodGet, path(plain, ""), nil)
		shows := func(name, want string) {
			t.Helper()
			if got := a.must(http.StatusOK, http.MethodGet, path(red, name), nil)["state"]; got != want {
				t.Errorf("%s shows %v, want %s", name, got, want)
			}
		}
		shows("/"+red+"@system", "off")
		for _, state := range []string{"on", "blinking", "off"} {
			a.must(http.StatusNoContent, http.MethodPut, path(red, "/"+red+"@system"), map[string]any{"state": state})
			shows("/"+red+"@system", state)
		}
		a.must(http.StatusNoContent, http.MethodPut, path(red, "/"+red+"@system?state=on"), nil)
		for _, tt := range []struct {
			status       int
			text         string
			method, path string
			body         any
		}{
			{400, "Driver fake-hardware does not support set_indicator_state", "PUT", path(plain, "/led@system"), on},
			{400, "Invalid component disk specified.", "GET", path(plain, "/led@disk"), nil},
			{400, "Invalid indicator nope specified.", "GET", path(plain, "/nope@system"), nil},
			{400, "Malformed indicator name \"led\"", "GET", path(plain, "/led"), nil},
			{400, "Malformed indicator name \"led\"", "PUT", path(plain, "/led"), on},
			{400, "Driver ipmi does not support get_supported_indicators", "GET", path(ipmi, ""), nil},
			{400, "Unknown indicator nope for component system of node " + red, "PUT", path(red, "/nope@system"), on},
			{400, "Unknown indicator nope for component system of node " + red, "GET", path(red, "/nope@system"), nil},
			{500, "Unexpected error raised by RPC", "PUT", path(red, "/"+red+"@system"), map[string]any{"state": "blink"}},
			{400, "Missing mandatory parameter: state", "PUT", path(red, "/"+red+"@system"), map[string]any{}},
			{400, "Unexpected arguments: x", "PUT", path(red, "/"+red+"@system"), map[string]any{"state": "on", "x": 1}},
			{400, "Expected string for state: True", "PUT", path(red, "/"+red+"@system"), map[string]any{"state": true}},
			{400, "Missing mandatory parameter: indicator", "PUT", path(red, ""), on},
			{405, "", "DELETE", path(red, "/"+red+"@system"), nil},
		} {
			a.refused(tt.status, tt.text, tt.method, tt.path, tt.body)
		}
	}
}
