package machine

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

func TestPick_takesTheOneThatIsMeant(t *testing.T) {
	t.Parallel()
	all := []ironic.IndicatorState{"blinking", "off", "on"}
	of := func(name string, readonly bool, states ...ironic.IndicatorState) ironic.Indicator {
		_, component, _ := strings.Cut(name, "@")
		return ironic.Indicator{Name: name, Component: component, ReadOnly: readonly, States: states}
	}
	server := []ironic.Indicator{
		of("c@chassis", false, all...), of("s@system", false, all...), of("1@disk", false, "on", "off"), of("2@disk", false, "on", "off"),
	}
	for name, tt := range map[string]struct {
		has     []ironic.Indicator
		choice  IndicatorChoice
		state   ironic.IndicatorState
		want    string
		refused string
	}{
		"the system":            {server, IndicatorChoice{}, "blinking", "s@system", ""},
		"no system":             {server[:1], IndicatorChoice{}, "on", "c@chassis", ""},
		"a component":           {server, IndicatorChoice{Component: "chassis"}, "on", "c@chassis", ""},
		"several":               {server, IndicatorChoice{Component: "disk"}, "on", "", "several such indicators: 1@disk, 2@disk"},
		"one of several":        {server, IndicatorChoice{Component: "disk", Name: "2"}, "on", "2@disk", ""},
		"by Ironic's name":      {server, IndicatorChoice{Name: "2@disk"}, "on", "2@disk", ""},
		"a state that it lacks": {server, IndicatorChoice{Name: "2"}, "blinking", "", "no indicator 2 that can be switched to blinking"},
		"read-only":             {[]ironic.Indicator{of("l@system", true, all...)}, IndicatorChoice{}, "on", "", "no indicator system that"},
		"none":                  {nil, IndicatorChoice{}, "on", "", "no indicator chassis that"},
	} {
		if got, refused := tt.choice.pick(tt.has, tt.state); got != tt.want || !strings.Contains(refused, tt.refused) ||
			(refused == "") != (tt.refused == "") {
			t.Errorf("%s: %q, %q", name, got, refused)
		}
	}
}
