package internal_test

import (
	"go/ast"
	"go/types"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// ordered are the files that compare times of others themselves, and why that is no age.
var ordered = map[string]string{
	"internal/deploy/bootiso/record.go":         "imports nothing; both bounds",
	"internal/deploy/look_image.go":             "only a note of before this run counts, so none of a time to come",
	"internal/host/cabling/proof.go":            "two inspections of a node",
	"internal/host/ports_neighbours.go":         "the same",
	"internal/resources/host/private.go":        "the same",
	"internal/ironic/known.go":                  "two answers of Ironic",
	"internal/machine/log.go":                   "two states of a node",
	"internal/machine/lost/lost.go":             "two records of a node",
	"internal/machine/notes/creation.go":        "a mark and the beginning of a run, with both bounds",
	"internal/machine/unanswered.go":            "a node before and after a request",
	"internal/machine/qualify.go":               "what has happened to a node since a note on it",
	"internal/oneview/sharing/decision.go":      "a mark and the state of its node",
	"internal/oneview/sharing/sync_leftover.go": "the order of a profile and a cleaning",
	"internal/operator/doctor/reach.go":         "says how far a clock is ahead",
	"internal/operator/operate/note.go":         "a note and the inspection that follows it",
	"internal/operator/timeline/stays.go":       "the order of what is told",
	"internal/operator/watch/slots.go":          "the word that has waited longest",
	"internal/resources/allocation/private.go":  "a node and its reservation",
	"internal/throttle/freeze.go":               "an end, which is to come: it can only hold back, and no longer than a time-out",
	"internal/throttle/schedule.go":             "the order of the queue: words that are no longer renewed do not count",
}

// TestAges_goThroughTheClock fails if a time that another program has written, a field that is read from JSON, is compared with one of ours
// outside internal/base/clock: its clock may be wrong, and whoever wrote it may have made it up.
func TestAges_goThroughTheClock(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for name, s := range shapes(t) {
		for _, at := range s.ages {
			file, _, _ := strings.Cut(name+"/"+at, ":")
			if found[file] = true; ordered[file] == "" {
				t.Errorf("%s/%s compares a time of others: use Age, IsYoung or IsOld of internal/base/clock", name, at)
			}
		}
	}
	for file := range ordered {
		if !found[file] {
			t.Errorf("%s compares no time of others: take it out of the list", file)
		}
	}
}

// comparisons are the methods of time.Time, and the functions of package time, that tell how two times differ.
var comparisons = []string{"Sub", "Before", "After", "Compare", "Since", "Until"}

// isAge reports whether a call compares a time of others with one of ours.
func isAge(info *types.Info, call *ast.CallExpr) bool {
	selector, is := call.Fun.(*ast.SelectorExpr)
	if !is || !slices.Contains(comparisons, selector.Sel.Name) || len(call.Args) != 1 {
		return false
	}
	function, is := info.Uses[selector.Sel].(*types.Func)
	if !is || function.Pkg() == nil || function.Pkg().Path() != "time" {
		return false
	}
	if info.Selections[selector] == nil { // time.Since, time.Until
		return isOfOthers(info, call.Args[0])
	}
	return isOfOthers(info, selector.X) != isOfOthers(info, call.Args[0])
}

// isOfOthers reports whether an expression is a field that is read from JSON, perhaps with a method such as UTC or Add.
func isOfOthers(info *types.Info, e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CallExpr:
		selector, is := e.Fun.(*ast.SelectorExpr)
		return is && info.Selections[selector] != nil && isOfOthers(info, selector.X)
	case *ast.ParenExpr:
		return isOfOthers(info, e.X)
	case *ast.SelectorExpr:
		selection := info.Selections[e]
		if selection == nil || selection.Kind() != types.FieldVal {
			return false
		}
		return tagOf(selection) != ""
	}
	return false
}

// tagOf returns the JSON tag of a selected field.
func tagOf(selection *types.Selection) (tag string) {
	at := selection.Recv()
	for _, i := range selection.Index() {
		if pointer, is := at.Underlying().(*types.Pointer); is {
			at = pointer.Elem()
		}
		fields, is := at.Underlying().(*types.Struct)
		if !is {
			return ""
		}
		tag, at = reflect.StructTag(fields.Tag(i)).Get("json"), fields.Field(i).Type()
	}
	return tag
}
