package marks_test

import (
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/marks"
)

// A look is the state of a node; after ":" the step at work, and after ">" the target state, which is available unless it is given.
func TestErasure_saysWhatWasSeen(t *testing.T) {
	t.Parallel()
	for looks, want := range map[string]string{
		"cleaning, clean wait:a, cleaning:b, available":                                  "a b succeeded",
		"cleaning:a, clean wait:a, clean failed":                                         "a failed",
		"clean wait, clean failed":                                                       " failed",
		"cleaning:a, clean wait:b":                                                       "a b goes on",
		"cleaning:a, clean hold:b":                                                       "a b goes on",   // until an operator ends the hold
		"cleaning:a, clean hold, cleaning:b, available":                                  "a b succeeded", // all of it is one cleaning
		"deleting, cleaning, available":                                                  "",              // Ironic skips it, because automated_clean is false
		"cleaning:raid.delete>manageable, manageable":                                    "",              // a manual cleaning
		"cleaning:raid.delete>manageable, manageable, cleaning:a, available":             "a succeeded",
		"cleaning:a, available, manageable, cleaning:b, clean failed":                    "b failed",
		"cleaning:a, available, manageable, cleaning:raid.delete>manageable, manageable": "a succeeded",
	} {
		var e *marks.Erasure
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
			}
			e, at = e.See(n, "r"), at.Add(time.Minute)
		}
		got := ""
		if e.IsOver() || e != nil && e.Ended.IsZero() {
			got = strings.ReplaceAll(strings.Join(e.Steps, " "), "deploy.", "") + " " + map[bool]string{true: "failed", false: "succeeded"}[e.Failed]
			if e.Ended.IsZero() {
				got = strings.TrimSuffix(got, "succeeded") + "goes on"
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", looks, got, want)
		}
	}
}
