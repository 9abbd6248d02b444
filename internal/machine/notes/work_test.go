package notes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// A look is the state of a node; after ":" the step at work, and after ">" the target state, which is available unless it is given.
func TestWork_saysWhatWasSeen(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct {
		name string
		see  func(w *notes.Work, n *ironic.Node) *notes.Work
		want map[string]string // by looks
	}{
		{"erasure", func(w *notes.Work, n *ironic.Node) *notes.Work { return w.SeeErasure(n, "r") }, map[string]string{
			"cleaning, clean wait:a, cleaning:b, available": "a b succeeded",
			"cleaning:a, clean wait:a, clean failed":        "a failed",
			"clean wait, clean failed":                      " failed",
			"cleaning:a, clean wait:b":                      "a b goes on",
			// until an operator ends the hold
			"cleaning:a, clean hold:b":                      "a b goes on",
			"cleaning:a, clean hold, cleaning:b, available": "a b succeeded", // all of it is one cleaning
			// Ironic skips it, because automated_clean is false
			"deleting, cleaning, available":                                                  "",
			"cleaning:raid.delete>manageable, manageable":                                    "", // a manual cleaning
			"cleaning:raid.delete>manageable, manageable, cleaning:a, available":             "a succeeded",
			"cleaning:a, available, manageable, cleaning:b, clean failed":                    "b failed",
			"cleaning:a, available, manageable, cleaning:raid.delete>manageable, manageable": "a succeeded",
		}},
		{"service", func(w *notes.Work, n *ironic.Node) *notes.Work { return w.SeeService(n, "r") }, map[string]string{
			"active": "",
			"servicing, service wait:a, servicing:b, active": "a b succeeded",
			"servicing:a, service failed, active":            "a failed",
			"servicing:a, service hold, servicing:b":         "a b goes on",
			"servicing:a, active, servicing:b, active":       "b succeeded",
			"servicing:a, active, cleaning:b, available":     "a succeeded",
		}},
	} {
		for looks, want := range kind.want {
			if got := told(looks, kind.see); got != want {
				t.Errorf("%s, %s: %q, want %q", kind.name, looks, got, want)
			}
		}
	}
}

// told says what is known after looks.
func told(looks string, see func(w *notes.Work, n *ironic.Node) *notes.Work) (got string) {
	var w *notes.Work
	at := time.Date(2026, 11, 26, 1, 0, 0, 0, time.UTC)
	for look := range strings.SplitSeq(looks, ", ") {
		look, target, _ := strings.Cut(look, ">")
		state, step, _ := strings.Cut(look, ":")
		n := &ironic.Node{ProvisionState: state, TargetProvisionState: target, ProvisionUpdatedAt: at}
		if target == "" {
			n.TargetProvisionState = "available"
		}
		if step != "" {
			n.CleanStep = map[string]any{"interface": "deploy", "step": step}
			n.ServiceStep = n.CleanStep
		}
		w, at = see(w, n), at.Add(time.Minute)
	}
	if w.IsOver() || w != nil && w.Ended.IsZero() {
		got = strings.ReplaceAll(strings.Join(w.Steps, " "), "deploy.", "") + " " +
			map[bool]string{true: "failed", false: "succeeded"}[w.Failed]
		if w.Ended.IsZero() {
			got = strings.TrimSuffix(got, "succeeded") + "goes on"
		}
	}
	return got
}
