package watch

import (
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// The legend of the page has each state that a machine can be in, and each entry of it a colour, by day and by night.
func TestLegend_hasEachState(t *testing.T) {
	t.Parallel()
	looks := append(states.All(), stateChecked, statePower, stateLeft)
	for _, one := range looks {
		class := classOf(one, false)
		if class == "other" || !slices.ContainsFunc(legends, func(l legend) bool { return l.Class == class }) {
			t.Errorf("the state %q has the class %q, which the legend does not explain", one, class)
		}
	}
	for looks := range classes {
		if !slices.Contains(append(states.All(), stateChecked, statePower, stateLeft), looks) {
			t.Errorf("no machine is in the state %q", looks)
		}
	}
	if got := classOf("a state of a later Ironic", false); got != "other" {
		t.Errorf("an unknown state has the class %q", got)
	}
	for _, l := range legends {
		if !strings.Contains(chartText, "."+l.Class+" {") {
			t.Errorf("the page has no colour for %q", l.Class)
		}
		if colours := strings.Count(chartText, "--"+l.Class+":"); colours != 2 {
			t.Errorf("the page has %d colours for %q, want one by day and one by night", colours, l.Class)
		}
	}
}

// A change of power gives a machine a colour of its own, except while an operation is in progress.
func TestMachine_looks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		m    Machine
		want string
	}{
		{Machine{State: "active"}, "active"},
		{Machine{State: "active", Power: "power on"}, statePower},
		{Machine{State: "available", Power: "power off"}, statePower},
		{Machine{State: "active", Power: "rebooting", Checked: true}, statePower},
		{Machine{State: "active", Checked: true}, stateChecked},
		{Machine{State: "deploying", Power: "rebooting"}, "deploying"},
		{Machine{State: "service wait", Power: "rebooting"}, "service wait"},
		{Machine{State: "rescue", Power: "power off"}, statePower},
	} {
		if got := tt.m.looks(); got != tt.want {
			t.Errorf("%+v looks like %q, want %q", tt.m, got, tt.want)
		}
	}
}
