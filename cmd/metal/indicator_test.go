package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/cmd/metal/cli"
)

// lit is a site of two machines with Redfish, one of which is deployed.
func lit(t *testing.T) *site {
	t.Helper()
	s := deployedSite(t)
	for i := range 2 {
		s.ironic.Set(name(i), "management_interface", "redfish")
		s.ironic.Set(name(i), "driver_info", map[string]any{"redfish_address": "https://192.0.2.7"})
	}
	return s
}

// switched are the bodies of the requests that have switched an indicator.
func (s *site) switched() (all []string) {
	for _, r := range s.ironic.Requests() {
		if r.Method == http.MethodPut && strings.Contains(r.Path, "/management/indicators/") && strings.HasSuffix(r.Path, "@system") {
			all = append(all, r.Body)
		}
	}
	return all
}

func TestIndicator_listsAndRefuses(t *testing.T) {
	t.Parallel()
	s := lit(t)
	s.wants(t, cli.ExitWouldChange, []string{"switches an indicator: off"}, "indicator", name(0), "off", "--dry-run")
	if got := s.switched(); len(got) > 0 {
		t.Errorf("%q", got)
	}
	s.wants(t, cli.ExitDone, []string{"done"}, "indicator", name(0), "blink")
	if got := s.switched(); len(got) != 1 || !strings.Contains(got[0], `"blinking"`) {
		t.Errorf("%q", got)
	}
	s.wants(t, cli.ExitDone, []string{"COMPONENT", "chassis", "@system", "blinking off on"}, "indicator", name(0))
	s.wants(t, cli.ExitUsage, []string{"needs the names or UUIDs"}, "indicator", "on")
	s.wants(t, cli.ExitNothing, nil, "indicator", "nope", "blink")
	s.wants(t, cli.ExitNodesFailed, []string{"has no indicator disk"}, "indicator", name(0), "on", "--component", "disk")
	s.ironic.Set(name(1), "management_interface", "ipmitool")
	s.wants(t, cli.ExitNodesFailed, []string{"its management interface, ipmitool, cannot switch indicators"}, "indicator", name(1), "on")
	var shown []struct {
		Name       string           `json:"node_name"`
		Indicators []map[string]any `json:"indicators"`
	}
	out := s.wants(t, cli.ExitDone, nil, "indicator", "--all", "--output", "json")
	if err := json.Unmarshal([]byte(out), &shown); err != nil || len(shown) != 2 || len(shown[0].Indicators) != 2 ||
		shown[1].Indicators == nil || len(shown[1].Indicators) != 0 {
		t.Errorf("%v: %s", err, out)
	}
	s.ironic.MaxMicroversion = "1.62"
	s.wants(t, cli.ExitError, []string{"1.63"}, "indicator", name(0), "on")
}
