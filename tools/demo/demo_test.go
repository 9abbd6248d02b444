package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

func TestRow_countsOperationsInProgress(t *testing.T) {
	t.Parallel()
	text := row(&screen{}, map[string]string{
		"node-1": "clean wait", "node-2": "deleting", "node-3": "active", "node-4": "manageable",
		"node-5": "deploy failed",
	})
	got := strings.Join(strings.Fields(text), " ")
	if want := "cleaning undeploying active manageable failed - 2 of 2"; got != want {
		t.Errorf("row is %q, want %q", got, want)
	}
}

func TestShow_showsThePlanAndEachKindOfWarningOnce(t *testing.T) {
	t.Parallel()
	const output = `  # metal_deployment.web[0] will be updated in-place
  ~ resource "metal_deployment" "web" {
        id              = "8412e12e"
      ~ rebuilds        = 0 -> 1
    }

Plan: 0 to add, 1 to change, 0 to destroy.

Warning: Machines waited for a slot: 2 so far

  with metal_deployment.web[0],
  on main.tf line 40, in resource "metal_deployment" "web":
  40: resource "metal_deployment" "web" {

The longest waited for 2s.

(and 2 more similar warnings elsewhere)

Warning: Machines waited for a slot: 3 so far

The longest waited for 3s.
`
	var out strings.Builder
	w := &workspace{out: &screen{out: &out}, told: map[string]bool{}}
	log := w.show(strings.NewReader(output), showPlan)
	const want = `     # metal_deployment.web[0] will be updated in-place
         ~ rebuilds        = 0 -> 1
   Plan: 0 to add, 1 to change, 0 to destroy.
   Warning: Machines waited for a slot: 2 so far
     The longest waited for 2s.
`
	if out.String() != want {
		t.Errorf("shown is\n%swant\n%s", out.String(), want)
	}
	if log != output {
		t.Errorf("the log is\n%swant all of the output", log)
	}
}

func TestShow_showsEachError(t *testing.T) {
	t.Parallel()
	const failed = "Error: Could not deploy node node-2\n\n  with metal_deployment.web[0],\n\nThe disk is broken.\n"
	var out strings.Builder
	w := &workspace{out: &screen{out: &out}, told: map[string]bool{}}
	w.show(strings.NewReader("metal_deployment.web[0]: Modifying...\n"+failed+failed), showResult)
	const want = "   Error: Could not deploy node node-2\n     The disk is broken.\n"
	if out.String() != want+want {
		t.Errorf("shown is\n%swant\n%s", out.String(), want+want)
	}
}

func TestFailOnce_failsTheFirstOperationWithItsVerb(t *testing.T) {
	t.Parallel()
	fail := failOnce("rebuild")
	var got []bool
	for _, verb := range []string{"active", "rebuild", "rebuild"} {
		got = append(got, fail(fakeironic.Node{}, verb) != "")
	}
	if want := []bool{false, true, false}; !slices.Equal(got, want) {
		t.Errorf("active, rebuild and rebuild fail: %v, want %v", got, want)
	}
}

func TestShow_withoutAFilterShowsNothing(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	w := &workspace{out: &screen{out: &out}, told: map[string]bool{}}
	w.show(strings.NewReader("Plan: 1\nWarning: Lock file\n\nIncomplete.\nError: No\n"), nil)
	if out.Len() > 0 {
		t.Errorf("shown is %q", out.String())
	}
}
