package allocate_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// wishes are things that the configuration of an allocation can say. Without them, it is named "web" and asks for class "small".
var wishes = map[string]func(*allocate.Wish){
	"destroyed":                func(w *allocate.Wish) { *w = allocate.Wish{Destroy: true} },
	"other name":               func(w *allocate.Wish) { w.Name = decide.Known("shop") },
	"no name":                  func(w *allocate.Wish) { w.Name = decide.Value[string]{} },
	"other extra":              func(w *allocate.Wish) { w.Extra = decide.Known(map[string]any{"team": "ops"}) },
	"other class":              func(w *allocate.Wish) { w.Class = decide.Known("large") },
	"class not known":          func(w *allocate.Wish) { w.Class = decide.Unknown[string]() },
	"trait that it has":        func(w *allocate.Wish) { w.Traits = decide.Known([]string{"HAS"}) },
	"trait that it lacks":      func(w *allocate.Wish) { w.Traits = decide.Known([]string{"LACKS"}) },
	"also a trait that it has": func(w *allocate.Wish) { w.Traits = decide.Known([]string{"LACKS", "HAS"}) },
	"some traits not known":    func(w *allocate.Wish) { w.Traits = decide.Value[[]string]{V: []string{"HAS"}, Unknown: true} },
	"its owner":                func(w *allocate.Wish) { w.Owner = decide.Known("ours") },
	"its lessee":               func(w *allocate.Wish) { w.Owner = decide.Known("lessee") },
	"other owner":              func(w *allocate.Wish) { w.Owner = decide.Known("theirs") },
	"owner not known":          func(w *allocate.Wish) { w.Owner = decide.Unknown[string]() },
	"backfill it":              func(w *allocate.Wish) { w.Backfill = decide.Known("n1") },
	"backfill another":         func(w *allocate.Wish) { w.Backfill = decide.Known("n9") },
	"other candidates":         func(w *allocate.Wish) { w.Candidates = decide.Known([]string{"n2"}) },
	"no candidates":            func(w *allocate.Wish) { w.Candidates = decide.Known([]string{}) },
	"candidates not known":     func(w *allocate.Wish) { w.Candidates = decide.Unknown[[]string]() },
	"require 4 CPUs":           func(w *allocate.Wish) { w.Require = decide.Known(&allocate.Requirements{MinCPUs: 4}) },
	"require 64 CPUs":          func(w *allocate.Wish) { w.Require = decide.Known(&allocate.Requirements{MinCPUs: 64}) },
	"require not known":        func(w *allocate.Wish) { w.Require = decide.Unknown[*allocate.Requirements]() },
	"replace unusable":         func(w *allocate.Wish) { w.OnUnusable = decide.Known(allocate.UnusableIsReplaced) },
	"on_unusable not known":    func(w *allocate.Wish) { w.OnUnusable = decide.Unknown[allocate.OnUnusable]() },
}

// sights are things that can be seen of an allocation. Without them it is active on node n1, which has 32 CPUs, and nothing was asked.
var sights = map[string]func(*allocate.Seen){
	"none":                       func(s *allocate.Seen) { *s = allocate.Seen{Answers: s.Answers} },
	"had candidates":             func(s *allocate.Seen) { s.Was.Candidates = decide.Known([]string{"n1"}) },
	"required 8 CPUs":            func(s *allocate.Seen) { s.Was.Require = decide.Known(&allocate.Requirements{MinCPUs: 8}) },
	"demanded the missing trait": func(s *allocate.Seen) { s.Was.Traits = decide.Known([]string{"LACKS"}) },
	"allocating":                 func(s *allocate.Seen) { s.State, s.NodeID, s.Node = ironic.AllocationAllocating, "", nil },
	"failed": func(s *allocate.Seen) {
		s.State, s.NodeID, s.Node, s.LastError = ironic.AllocationError, "", nil, "no node."
	},
	"node not read":  func(s *allocate.Seen) { s.Node = nil },
	"in maintenance": func(s *allocate.Seen) { s.Node = unusable(s.Node) },
	"2 nodes match": func(s *allocate.Seen) {
		s.Asked, s.Matches = everything(), &allocate.Census{Total: 3, Matching: 2, OtherClass: 1}
	},
	"no node matches": func(s *allocate.Seen) { s.Asked, s.Matches = everything(), &allocate.Census{Total: 3, OtherClass: 3} },
	"no node n9": func(s *allocate.Seen) {
		s.Asked, s.Matches = everything(), &allocate.Census{Total: 1, Missing: []string{"n9"}}
	},
	"nothing to be asked": func(s *allocate.Seen) { s.Asked = everything() },
	"doubts": func(s *allocate.Seen) {
		s.Asked, s.Doubts = everything(), []expect.Doubt{{Attribute: "traits", Summary: "No node has this trait"}}
	},
	"quarantine begun": func(s *allocate.Seen) { s.Asked, s.Quarantined = everything(), "n1" },
	"nothing is left":  func(s *allocate.Seen) { s.Asked = []allocate.Question{allocate.AskBegun} },
	"left by a killed run": func(s *allocate.Seen) {
		s.Asked, s.Begun = []allocate.Question{allocate.AskBegun}, &allocate.Begun{By: &notes.Creation{Run: "r1"}, What: "allocation web"}
	},
}

func everything() []allocate.Question {
	return []allocate.Question{allocate.AskBegun, allocate.AskNodes, allocate.AskMatches, allocate.AskRelease, allocate.AskMembers}
}

func unusable(node *allocate.ReservedNode) *allocate.ReservedNode {
	if node == nil {
		return nil
	}
	broken := *node
	broken.Unusable = "it is in maintenance"
	return &broken
}

// story returns the wish and the sight of a row: the names of both are in the maps above, with commas between them.
func story(t *testing.T, wished, seen string) (w allocate.Wish, s allocate.Seen) {
	t.Helper()
	w = allocate.Wish{Name: decide.Known("web"), Class: decide.Known("small")}
	was := w
	s = allocate.Seen{Was: &was, ID: "a1", State: ironic.AllocationActive, NodeID: "u1", Node: &allocate.ReservedNode{
		UUID: "u1", Name: "n1", Class: "small", Traits: []string{"HAS"}, Owner: "ours", Lessee: "lessee",
		Properties: map[string]any{"cpus": float64(32)},
	}}
	each(t, seen, sights, &s)
	if s.Was != nil { // what is not named stays as it was
		w = *s.Was
	}
	each(t, wished, wishes, &w)
	return w, s
}

// each applies the things that a cell of a row names.
func each[T any](t *testing.T, cell string, things map[string]func(*T), to *T) {
	t.Helper()
	for name := range strings.SplitSeq(cell, ", ") {
		if name == "" {
			continue
		}
		if things[name] == nil {
			t.Fatalf("%q is in no map", name)
		}
		things[name](to)
	}
}

// happens describes the steps of a plan, and what it asks.
func happens(steps []allocate.Step, replaces []string, asks []allocate.Question) string {
	var parts []string
	for _, step := range steps {
		text := string(step.Do)
		if step.Cost == decide.Wipe {
			text += " and wipe"
		}
		parts = append(parts, text)
	}
	if len(replaces) > 0 {
		parts = append(parts, "for "+strings.Join(replaces, " and "))
	}
	for _, q := range asks {
		parts = append(parts, "ask "+string(q))
	}
	return strings.Join(parts, ", ")
}

// says returns the titles of notices.
func says(notices []decide.Notice) string {
	var titles []string
	for _, n := range notices {
		title := n.Summary
		if n.Severity == decide.Refusal {
			title = "refused: " + title
		}
		titles = append(titles, title)
	}
	return strings.Join(titles, "; ")
}

func TestWhatBecomesOfAnAllocation(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ wished, seen, happens, says string }{
		{"", "", "", ""},
		{"", "none, nothing to be asked", "reserve", ""},
		{"", "none", "reserve, ask what a killed run has created of a reservation", ""},
		{"", "none, nothing is left", "reserve, ask what speaks against a reservation", ""},
		{"", "none, left by a killed run", "reserve", "Interrupted creation is continued"},
		{"no name", "none", "reserve, ask what speaks against a reservation", ""}, // no run can recognise it
		{"candidates not known", "none", "reserve, ask what speaks against a reservation", ""},
		{"", "none, doubts", "reserve", "No node has this trait"},
		{"no candidates", "none", "reserve", "No candidates"},
		{"", "allocating", "continue", ""},
		{"", "failed", "release, reserve, for state", "Failed allocation is replaced"},

		// In place.
		{"other name", "", "edit", ""},
		{"no name", "", "edit", ""},
		{"other extra", "", "edit", ""},
		{"other name, trait that it has, its owner, backfill it", "", "edit", ""},
		{"its lessee", "", "", ""},
		{"other extra", "allocating", "edit, continue", ""},

		// Candidates and requirements limit the search only.
		{"other candidates", "", "", ""},
		{"other candidates", "had candidates", "", ""},
		{"no candidates", "had candidates", "", ""},
		{"candidates not known", "had candidates", "", ""},
		{"require 4 CPUs", "required 8 CPUs", "", ""},
		{"require 64 CPUs", "", "", ""},
		{"require 64 CPUs", "required 8 CPUs", "", "Reserved node does not meet require"},
		{"require not known", "required 8 CPUs", "", ""},
		{"require 64 CPUs", "required 8 CPUs, node not read", "", ""},
		{"require 64 CPUs", "required 8 CPUs, allocating", "continue", ""},

		// The node does not fit any more.
		{"other class", "", "ask which nodes match", ""},
		{"other class", "2 nodes match", "release and wipe, reserve, for resource_class", "Reserved node is released"},
		{
			"other class, trait that it lacks", "2 nodes match", "release and wipe, reserve, for resource_class and traits",
			"Reserved node is released",
		},
		{"other owner", "2 nodes match", "release and wipe, reserve, for owner", "Reserved node is released"},
		{
			"trait that it lacks", "2 nodes match, quarantine begun", "release and wipe, reserve, for traits",
			"Reserved node is released; Quarantine is finished",
		},
		{"trait that it lacks", "no node matches", "", "refused: No other node matches"},
		{
			"trait that it lacks, candidates not known", "no node matches", "release and wipe, reserve, for traits",
			"Reserved node is released",
		},
		{"trait that it lacks", "nothing to be asked", "", ""},
		{"trait that it lacks", "demanded the missing trait", "", ""},
		{"also a trait that it has", "2 nodes match, demanded the missing trait", "", ""}, // a trait that goes gives up nothing
		{"backfill another", "2 nodes match", "release and wipe, reserve, for backfill_node", "Reserved node is released"},
		{"backfill another", "no node n9", "", "No node has this name yet"},
		{"backfill another, other class", "no node n9", "", "refused: No other node matches"},
		{"class not known, owner not known, some traits not known", "2 nodes match", "", ""},
		{"other class", "allocating", "release, reserve, for resource_class", ""},
		{"class not known", "allocating", "continue", ""},
		{"other class", "node not read", "", ""},

		// Nothing can be deployed on the node.
		{"", "in maintenance", "", "Reserved node is unusable"},
		{"other name", "in maintenance", "edit", "Reserved node is unusable"},
		{"replace unusable", "", "", ""},
		{"replace unusable", "in maintenance", "release, reserve, for node_id, ask which nodes match, ask what the release of a " +
			"node finishes", "Unusable node is released"},
		{"replace unusable", "in maintenance, nothing to be asked", "release, reserve, for node_id", "Unusable node is released"},
		{"on_unusable not known", "", "", "refused: Value must be known during plan"},

		{"destroyed", "", "release, ask what the release of a node finishes", ""},
		{"destroyed", "nothing to be asked", "release", ""},
		{"destroyed", "quarantine begun", "release and wipe", "Quarantine is finished"},
		{"destroyed", "allocating", "release", ""},
	} {
		w, s := story(t, row.wished, row.seen)
		p := allocate.Decide(w, s)
		if got := happens(p.Steps, p.Replaces, p.Asks); got != row.happens {
			t.Errorf("wished: %s; seen: %s: happens %q, want %q", row.wished, row.seen, got, row.happens)
		}
		if got := says(p.Notices); got != row.says {
			t.Errorf("wished: %s; seen: %s: says %q, want %q", row.wished, row.seen, got, row.says)
		}
	}
}

// some returns a few of the names in a map, as a cell of a row.
func some[T any](r *rand.Rand, things map[string]func(*T)) string {
	names := slices.Sorted(maps.Keys(things))
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return strings.Join(names[:r.IntN(4)], ", ")
}

// compatible reports whether the things that a row sees can be seen together.
func compatible(seen string) bool {
	with := func(a, b string) bool { return strings.Contains(seen, a) && strings.Contains(seen, b) }
	for _, state := range []string{"none", "allocating", "failed", "node not read"} {
		for _, other := range []string{
			"had", "required", "demanded", "allocating", "failed", "node not read", "in maintenance",
			"quarantine",
		} {
			if state != other && with(state, other) {
				return false
			}
		}
	}
	return true
}

// TestRandomAllocations checks what holds for each wish and each sight.
func TestRandomAllocations(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		wished, seen := some(r, wishes), some(r, sights)
		if !compatible(seen) {
			continue
		}
		w, s := story(t, wished, seen)
		p := allocate.Decide(w, s)
		if fault := faultOf(w, s, p); fault != "" {
			t.Fatalf("wished: %s; seen: %s: %s: %+v", wished, seen, fault, p)
		}
	}
}

// faultOf says which promise a plan breaks; "" if none.
func faultOf(w allocate.Wish, s allocate.Seen, p allocate.Plan) string {
	wipes := slices.ContainsFunc(p.Steps, func(step allocate.Step) bool { return step.Cost >= decide.Clean })
	announced := slices.ContainsFunc(p.Notices, func(n decide.Notice) bool {
		return n.Summary == "Reserved node is released" || n.Summary == "Quarantine is finished"
	})
	releases := allocate.In(p.Steps, allocate.DoRelease) != nil
	switch {
	case wipes != announced:
		return "a step that costs has its notice, and the reverse"
	case releases != (w.Destroy || len(p.Replaces) > 0):
		return "a release is a destruction or a replacement, and the reverse"
	case decide.Refused(p.Notices) && len(p.Steps) > 0 && releases:
		return "a refused plan releases nothing"
	}
	if s.Was == nil || w.Destroy {
		return ""
	}
	if same := allocate.Decide(*s.Was, s); s.State == ironic.AllocationActive && s.Was.OnUnusable.V != allocate.UnusableIsReplaced &&
		len(same.Steps) > 0 {
		return "an unchanged wish has no step"
	}
	if releases {
		return ""
	}
	after := s
	after.Was, after.State, after.NodeID = &w, ironic.AllocationActive, "u1"
	if again := allocate.Decide(w, after); len(again.Steps) > 0 && !decide.Refused(p.Notices) && !w.Extra.Unknown {
		return "deciding again after an execution is empty, but it is " + happens(again.Steps, again.Replaces, again.Asks)
	}
	for _, later := range []allocate.Wish{known(w, "small"), known(w, "large")} { // during the apply
		during := s
		during.Asked, during.Matches = everything(), nil
		if again := allocate.Decide(later, during); allocate.In(again.Steps, allocate.DoRelease) != nil && !decide.Refused(p.Notices) &&
			len(again.Replaces) == 0 { // Terraform refuses a replacement that the plan did not show
			return "deciding with more known values never adds a release"
		}
	}
	return ""
}

// known returns a wish in which what was unknown is known.
func known(w allocate.Wish, class string) allocate.Wish {
	if w.Class.Unknown {
		w.Class = decide.Known(class)
	}
	if w.Owner.Unknown {
		w.Owner = decide.Known("theirs")
	}
	if w.Traits.Unknown {
		w.Traits = decide.Known([]string{"HAS", "LACKS"})
	}
	if w.Candidates.Unknown {
		w.Candidates = decide.Known([]string{"n2"})
	}
	if w.Require.Unknown {
		w.Require = decide.Known(&allocate.Requirements{MinCPUs: 64})
	}
	return w
}
