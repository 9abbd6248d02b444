package operate

import (
	"strings"
	"testing"
)

// The line of a terminal with 80 columns has room for the state of a machine.
func TestProgressShowsTheState(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &progress{line: &out, width: func() int { return 80 }, command: "inspect", total: 2}
	p.tell(nil, "node rack1-07 (1be26c0b-03f2-4d2e-ae87-c02d7f33c123): inspecting, power off")
	if want := "metal inspect: 0 of 2 ended, 0 not done; node rack1-07: inspecting, power off"; !strings.Contains(out.String(), want) {
		t.Errorf("%q", out.String())
	}
}
