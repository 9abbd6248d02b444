package host_test

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Only a machine that is not in the pool is kept out of it, and only while what is known differs.
func TestDecide_expectedHardware(t *testing.T) {
	t.Parallel()
	const misfit, unknown = "128 of 144 GiB of memory: a DIMM is missing", "Ironic has no inventory"
	for _, test := range []struct {
		wish, seen    string
		want, noted   string // what is expected now, and what was compared
		walks, proves bool
		says          string // "": nothing of hardware
		asks          bool
	}{
		{"target_state=available", "", "a DIMM more", "a DIMM more", false, false, misfit, false},
		{"target_state=available", "", "as it is", "as it is", true, true, "", false},
		{"target_state=available", "", "as it is", "a DIMM more", true, true, "", true},
		{"target_state=available", "", "a DIMM more", "", true, true, "", true},
		{"target_state=available", "", "", "", true, false, "", false},
		{"target_state=available inspect_triggers=2", "triggers=1", "a DIMM more", "a DIMM more", true, true, "inspects it again", false},
		{"target_state=available", "state=available", "a DIMM more", "a DIMM more", false, false, "Nothing is done", false},
		{"target_state=available", "state=active", "a DIMM more", "a DIMM more", false, false, "Nothing is done", false},
		{
			"target_state=available inspect replaced=machine:2", "replaced=machine:1 state=active reserved", "a DIMM more", "as it is",
			true, true, "", false,
		},
		{"target_state=manageable", "", "a DIMM more", "a DIMM more", false, false, misfit, false},
		{"target_state=available", "state=available", "a DIMM more", "nothing", false, false, unknown, false},
	} {
		w, s := tell(t, test.wish, test.seen)
		if test.want != "" {
			w.Expected = expected(test.want)
		}
		switch test.noted {
		case "":
		case "nothing":
			s.Proof = proofOf(w.Expected)
			s.Proof.Known, s.Proof.Differences = false, nil
		default:
			s.Proof = proofOf(expected(test.noted))
		}
		p := host.Decide(w, s)
		step, walks := p.Find(host.DoWalk)
		says := ""
		for _, n := range p.Notices {
			says += n.Summary + ": " + n.Detail + "\n"
		}
		asks := false
		for _, ask := range p.Asks {
			asks = asks || ask == host.AskExpected
		}
		about := strings.Contains(says, "Hardware is not as expected") || strings.Contains(says, "Hardware is not known")
		if walks != test.walks || step.Proves != test.proves || asks != test.asks || about != (test.says != "") ||
			!strings.Contains(says, test.says) {
			t.Errorf("%+v:\n%s", test, describe(w, s, p))
		}
		if p.Has(host.DoProve) && (test.want == "" || len(p.Steps) == 1) {
			t.Errorf("%+v compares for nothing:\n%s", test, describe(w, s, p))
		}
		if kept := p.Reaches("available"); test.says == misfit && kept != string(states.GoalManageable) {
			t.Errorf("%+v: others of the run take it for %s", test, kept)
		}
	}
}

// A new machine is compared before it enters the pool, whatever is known while it is planned.
func TestDecide_expectedHardwareOfNew(t *testing.T) {
	t.Parallel()
	for _, want := range []string{"a DIMM more", "?"} {
		w, _ := tell(t, "target_state=available inspect", "")
		if w.Expected = expected(want); want == "?" {
			w.Expected.Set, w.Expected.Unknown = false, true
		}
		p := host.Decide(w, host.Seen{New: true})
		var order []host.Action
		for _, step := range p.Steps {
			order = append(order, step.Do)
		}
		if step, _ := p.Find(host.DoWalk); !step.Proves || p.Forecast.Cleanings != decide.Known[int64](1) ||
			!strings.Contains(words(p), "inspect") || order[len(order)-1] != host.DoWalk || order[len(order)-2] != host.DoProve {
			t.Errorf("%s: %v, cleanings %+v", want, order, p.Forecast.Cleanings)
		}
	}
}
