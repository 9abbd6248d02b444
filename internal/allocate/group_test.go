package allocate_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// groupWishes are things that the configuration of a group can say. Without them, it is named "k8s", has 3 members and asks for class
// "small".
var groupWishes = map[string]func(*allocate.GroupWish){
	"destroyed":            func(w *allocate.GroupWish) { *w = allocate.GroupWish{Destroy: true} },
	"other name":           func(w *allocate.GroupWish) { w.Name = decide.Known("prod") },
	"name not known":       func(w *allocate.GroupWish) { w.Name = decide.Unknown[string]() },
	"5 members":            func(w *allocate.GroupWish) { w.Size = decide.Known(5) },
	"1 member":             func(w *allocate.GroupWish) { w.Size = decide.Known(1) },
	"size not known":       func(w *allocate.GroupWish) { w.Size = decide.Unknown[int]() },
	"other class":          func(w *allocate.GroupWish) { w.Class = decide.Known("large") },
	"class not known":      func(w *allocate.GroupWish) { w.Class = decide.Unknown[string]() },
	"spread by rack":       func(w *allocate.GroupWish) { w.SpreadBy = decide.Known("extra.rack") },
	"other candidates":     func(w *allocate.GroupWish) { w.Candidates = decide.Known([]string{"n7"}) },
	"no candidates":        func(w *allocate.GroupWish) { w.Candidates = decide.Known([]string{}) },
	"candidates not known": func(w *allocate.GroupWish) { w.Candidates = decide.Unknown[[]string]() },
	"require 4 CPUs":       func(w *allocate.GroupWish) { w.Require = decide.Known(&allocate.Requirements{MinCPUs: 4}) },
	"require 64 CPUs":      func(w *allocate.GroupWish) { w.Require = decide.Known(&allocate.Requirements{MinCPUs: 64}) },
	"not on n1":            func(w *allocate.GroupWish) { w.Require = decide.Known(&allocate.Requirements{Exclude: []string{"n1"}}) },
	"trait":                func(w *allocate.GroupWish) { w.Traits = decide.Known([]string{"CUSTOM_NVME"}) },
	"other owner":          func(w *allocate.GroupWish) { w.Owner = decide.Known("theirs") },
	"one a rack": func(w *allocate.GroupWish) {
		w.SpreadBy, w.MaxPerDomain = decide.Known("extra.rack"), decide.Known(1)
	},
	"two a rack": func(w *allocate.GroupWish) {
		w.SpreadBy, w.MaxPerDomain = decide.Known("extra.rack"), decide.Known(2)
	},
	"replace k8s-1": func(w *allocate.GroupWish) { w.Replace = decide.Known(map[string]string{"k8s-1": "now"}) },
	"replace k8s-1 and k8s-2": func(w *allocate.GroupWish) {
		w.Replace = decide.Known(map[string]string{"k8s-2": "now", "k8s-1": "now"})
	},
	"replace k8s-9":     func(w *allocate.GroupWish) { w.Replace = decide.Known(map[string]string{"k8s-9": "now"}) },
	"replace none":      func(w *allocate.GroupWish) { w.Replace = decide.Value[map[string]string]{} },
	"replace not known": func(w *allocate.GroupWish) { w.Replace = decide.Unknown[map[string]string]() },
}

// groupSights are things that can be seen of a group. Without them, its 3 members have the nodes n0 to n2.
var groupSights = map[string]func(*allocate.GroupSeen){
	"none":           func(s *allocate.GroupSeen) { *s = allocate.GroupSeen{} },
	"had candidates": func(s *allocate.GroupSeen) { s.Was.Candidates = decide.Known([]string{"n0", "n1", "n2"}) },
	"k8s-2 is gone":  func(s *allocate.GroupSeen) { s.Members["k8s-2"] = allocate.Member{} },
	"all are gone": func(s *allocate.GroupSeen) {
		s.Members = map[string]allocate.Member{"k8s-0": {}, "k8s-1": {}, "k8s-2": {}}
	},
	"k8s-2 has no node":   func(s *allocate.GroupSeen) { s.Members["k8s-2"] = allocate.Member{ID: decide.Known("a2")} },
	"leftover k8s-3":      func(s *allocate.GroupSeen) { s.Leftovers = []string{"k8s-3"} },
	"nothing to be asked": func(s *allocate.GroupSeen) { s.Asked = everything() },
	"too few nodes": func(s *allocate.GroupSeen) {
		s.Asked, s.Doubts = everything(), []expect.Doubt{{Attribute: "resource_class", Summary: "Too few nodes match now"}}
	},
	"racks too small": func(s *allocate.GroupSeen) {
		s.Asked, s.Doubts = everything(), []expect.Doubt{{Attribute: "max_per_domain", Summary: "Group cannot be spread", Fatal: true}}
	},
	"imported":       func(s *allocate.GroupSeen) { s.Imported = true },
	"replaced k8s-1": func(s *allocate.GroupSeen) { s.Was.Replace = decide.Known(map[string]string{"k8s-1": "now"}) },
	"replaced k8s-1 before": func(s *allocate.GroupSeen) {
		s.Was.Replace = decide.Known(map[string]string{"k8s-1": "before"})
	},
	"its nodes": func(s *allocate.GroupSeen) { s.Asked, s.Nodes = everything(), nodesOfGroup() },
	"k8s-1 is protected": func(s *allocate.GroupSeen) {
		s.Asked, s.Nodes = everything(), nodesOfGroup()
		node := s.Nodes["k8s-1"]
		node.Protected = true
		s.Nodes["k8s-1"] = node
	},
	"host of k8s-1 ends": func(s *allocate.GroupSeen) { s.HostEnds = []string{"k8s-1"} },
	"quarantine begun":   func(s *allocate.GroupSeen) { s.Asked, s.Quarantined = everything(), map[string]string{"k8s-1": "n1"} },
	"left by a killed run": func(s *allocate.GroupSeen) {
		s.Asked, s.Begun = everything(), &allocate.Begun{By: &notes.Creation{Run: "r1"}, What: "members of the group k8s (k8s-1)"}
	},
}

// nodesOfGroup are the nodes of the 3 members, which have 32 CPUs. Two are in rack a.
func nodesOfGroup() map[string]allocate.MemberNode {
	all := map[string]allocate.MemberNode{}
	for i, rack := range []string{"a", "a", "b"} {
		n := fmt.Sprint(i)
		all["k8s-"+n] = allocate.MemberNode{ReservedNode: allocate.ReservedNode{
			UUID: "u" + n, Name: "n" + n, Class: "small", Owner: "ours",
			Properties: map[string]any{"cpus": 32.0},
		}, Domain: rack}
	}
	return all
}

// groupStory returns the wish and the sight of a row.
func groupStory(t *testing.T, wished, seen string) (w allocate.GroupWish, s allocate.GroupSeen) {
	t.Helper()
	w = allocate.GroupWish{Name: decide.Known("k8s"), Size: decide.Known(3), Class: decide.Known("small")}
	was := w
	s = allocate.GroupSeen{Was: &was, Members: map[string]allocate.Member{}}
	for i := range 3 {
		n := fmt.Sprint(i)
		s.Members["k8s-"+n] = allocate.Member{ID: decide.Known("a" + n), NodeID: decide.Known("u" + n), NodeName: decide.Known("n" + n)}
	}
	each(t, seen, groupSights, &s)
	if s.Was != nil {
		w = *s.Was
	}
	each(t, wished, groupWishes, &w)
	return w, s
}

func TestWhatBecomesOfAGroup(t *testing.T) {
	t.Parallel()
	const keep, begun, doubts = "Members keep their nodes", "ask what a killed run has created of a reservation",
		"ask what speaks against a reservation"
	const asks = "reserve, " + begun + ", " + doubts
	const moves, nodes = "Member moves to another node", "ask which nodes the members have"
	for _, row := range []struct{ wished, seen, happens, says string }{
		{"", "", "", ""},
		{"", "none", asks, ""},
		{"", "none, left by a killed run", "reserve", "Interrupted creation is continued"},
		{"class not known", "none", "reserve, " + doubts, ""},
		{"", "none, too few nodes", "reserve", "Too few nodes match now"},
		{"", "none, racks too small", "reserve", "refused: Group cannot be spread"},
		{"no candidates", "none", "reserve", "refused: No candidates"},
		{"size not known", "none", "", ""},
		{"name not known", "none", "", ""},

		{"other name", "", "edit", ""},
		{"5 members", "", asks, ""},
		{"5 members, other name", "nothing to be asked", "edit, reserve", ""},
		{"name not known, 5 members", "", "edit, reserve", ""},
		{"1 member", "", "release and wipe", "Members are released"},
		{"1 member, other class", "its nodes", "release and wipe", "Members are released; " + keep},
		{"size not known", "", "release and wipe", "Members may be released"},

		// Members keep their nodes, and the plan says so if a node does not satisfy what changes.
		{"other class", "", nodes, ""},
		{"other class", "its nodes", "", keep},
		{"other class", "nothing to be asked", "", ""}, // the nodes could not be read
		{"class not known", "its nodes", "", ""},
		{"require 4 CPUs", "its nodes", "", ""},
		{"require 64 CPUs", "its nodes", "", keep},
		{"not on n1", "its nodes", "", keep},
		{"not on n1, replace k8s-1", "its nodes", "move and wipe, reserve", moves},
		{"trait", "its nodes", "", keep},
		{"other owner", "its nodes", "", keep},
		{"spread by rack", "its nodes", "domains", ""},
		{"one a rack", "its nodes", "domains", keep},
		{"two a rack", "its nodes", "domains", ""},
		{"one a rack, replace k8s-1", "its nodes", "move and wipe, reserve, domains", moves},
		{"other class, 5 members", "its nodes", "reserve", keep},
		{"other class", "all are gone, nothing to be asked", "reserve", ""},

		// Candidates limit the search, which is over once all members have nodes.
		{"other candidates", "had candidates", "", ""},
		{"no candidates", "had candidates", "", ""},
		{"candidates not known", "had candidates", "", ""},
		{"other candidates", "its nodes", "", ""},
		{"other candidates, 5 members", "had candidates, its nodes", "reserve", ""},
		{"no candidates, 5 members", "had candidates", "reserve", "refused: No candidates"},

		// A new or another value moves a member that has a node.
		{"replace k8s-1", "", "move and wipe, reserve, " + nodes + ", " + begun + ", " + doubts, moves},
		{"replace k8s-1", "its nodes", "move and wipe, reserve", moves},
		{"replace k8s-1 and k8s-2", "its nodes", "move and wipe, reserve", "Members move to other nodes"},
		{"replace k8s-1", "replaced k8s-1 before, its nodes", "move and wipe, reserve", moves},
		{"replace k8s-1", "replaced k8s-1", "", ""},
		{"replace none", "replaced k8s-1", "", ""},
		{"replace k8s-1 and k8s-2", "replaced k8s-1, k8s-2 is gone, its nodes", "reserve", ""}, // a killed run has given up its node
		{"replace k8s-1 and k8s-2", "replaced k8s-1, k8s-2 has no node, its nodes", "reserve", ""},
		{"replace k8s-1", "none, nothing to be asked", "reserve", ""},
		{"replace k8s-9", "", "", "refused: No such member"},
		{"replace k8s-9", "none, nothing to be asked", "reserve", "refused: No such member"},
		{"replace none, 1 member", "replaced k8s-1", "release and wipe", "Members are released"},
		{"1 member", "replaced k8s-1", "release and wipe", "Members are released; refused: No such member"},
		{"replace k8s-1, 5 members, other name", "its nodes", "edit, move and wipe, reserve", moves},
		{"replace k8s-1, size not known", "its nodes", "release and wipe, move and wipe", "Members may be released; " + moves},
		{"replace k8s-1", "k8s-1 is protected", "move and wipe, reserve", "refused: Member is protected; " + moves},
		{"replace k8s-1", "its nodes, racks too small", "move and wipe, reserve", moves + "; refused: Group cannot be spread"},
		{"replace not known", "", "", "refused: Value must be known during plan"},
		{"replace not known", "none, nothing to be asked", "reserve", ""},
		{"replace k8s-1", "imported", "", "Members stay after an import"},

		// The plan destroys the host of a member, which stays, moves or leaves.
		{"", "host of k8s-1 ends", "", "refused: Host of a member is destroyed"},
		{"replace k8s-1", "its nodes, host of k8s-1 ends", "", "refused: Host of a member is destroyed"},
		{"1 member", "host of k8s-1 ends", "", "refused: Host of a member is destroyed"},
		{"destroyed", "host of k8s-1 ends, nothing to be asked", "release", ""},

		// A member has lost its allocation, or a killed run has left some.
		{"", "k8s-2 is gone", asks, ""},
		{"", "k8s-2 has no node, nothing to be asked", "reserve", ""},
		{"1 member", "k8s-2 is gone", "release and wipe", "Members are released"},
		{"1 member", "all are gone, nothing to be asked", "reserve", ""},
		{"", "leftover k8s-3", "reserve", "Reservations of a killed run are released"},
		{"5 members", "leftover k8s-3", asks, ""},
		{
			"5 members, other name", "leftover k8s-3, left by a killed run", "edit, reserve",
			"Reservations of a killed run are released; Interrupted creation is continued",
		},
		{"5 members, other name", "leftover k8s-3", "edit, reserve, " + begun, "Reservations of a killed run are released"},

		{"destroyed", "", "release, ask what the release of a node finishes", ""},
		{"destroyed", "leftover k8s-3, nothing to be asked", "release", "Reservations of a killed run are released"},
		{"destroyed", "quarantine begun", "release and wipe", "Quarantine is finished"},
	} {
		w, s := groupStory(t, row.wished, row.seen)
		p := allocate.DecideGroup(w, s)
		if got := happens(p.Steps, nil, p.Asks); got != row.happens {
			t.Errorf("wished: %s; seen: %s: happens %q, want %q", row.wished, row.seen, got, row.happens)
		}
		if got := says(p.Notices); got != row.says {
			t.Errorf("wished: %s; seen: %s: says %q, want %q", row.wished, row.seen, got, row.says)
		}
	}
}

// TestRandomGroups checks what holds for each wish and each sight.
func TestRandomGroups(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		wished, seen := some(r, groupWishes), some(r, groupSights)
		if strings.Contains(seen, "none") && seen != "none" { // a group that does not exist has no members that can be gone
			continue
		}
		w, s := groupStory(t, wished, seen)
		p := allocate.DecideGroup(w, s)
		if fault := groupFaultOf(w, s, p); fault != "" {
			t.Fatalf("wished: %s; seen: %s: %s: %+v", wished, seen, fault, p)
		}
	}
}

// groupFaultOf says which promise a plan breaks; "" if none.
func groupFaultOf(w allocate.GroupWish, s allocate.GroupSeen, p allocate.GroupPlan) string {
	wipes := slices.ContainsFunc(p.Steps, func(step allocate.Step) bool { return step.Cost >= decide.Clean })
	announced := slices.ContainsFunc(p.Notices, func(n decide.Notice) bool {
		return slices.Contains([]string{
			"Members are released", "Members may be released", "Quarantine is finished",
			"Member moves to another node", "Members move to other nodes",
		}, n.Summary)
	})
	if wipes != announced {
		return "a step that costs has its notice, and the reverse"
	}
	if s.Was == nil || w.Destroy {
		return ""
	}
	complete := len(s.Leftovers)+len(s.HostEnds) == 0
	for _, m := range s.Members {
		complete = complete && m.NodeID.Set
	}
	if same := allocate.DecideGroup(*s.Was, s); complete && len(same.Steps)+len(same.Notices) > 0 {
		return "an unchanged wish has no step"
	}
	for _, size := range []int{0, 1, 3, 5} { // during the apply
		for _, name := range []string{"k8s", "prod"} {
			if again := allocate.DecideGroup(knownGroup(w, size, name), s); !decide.Refused(p.Notices) && !releasesOnly(again, p) {
				return "deciding with more known values never adds a release"
			}
		}
	}
	if w.Size.Unknown || w.Name.Unknown || decide.Refused(p.Notices) {
		return ""
	}
	after := allocate.GroupSeen{Was: &w, Members: map[string]allocate.Member{}}
	for key := range p.Forecast.Members {
		after.Members[key] = allocate.Member{ID: decide.Known("a"), NodeID: decide.Known("u")}
	}
	if again := allocate.DecideGroup(w, after); !again.IsEmpty() {
		return "deciding again after an execution is empty"
	}
	return ""
}

// releasesOnly reports whether a plan releases no member that the plan before did not announce. One that did not know the size announces
// any.
func releasesOnly(now, before allocate.GroupPlan) bool {
	is, was := allocate.In(now.Steps, allocate.DoRelease), allocate.In(before.Steps, allocate.DoRelease)
	if is == nil || was == nil {
		return is == nil
	}
	announced := func(key string) bool { return slices.Contains(was.Members, key) }
	return is.Cost <= was.Cost && (before.Forecast.Members == nil || !slices.ContainsFunc(is.Members, func(key string) bool {
		return !announced(key)
	}))
}

// knownGroup returns a wish in which what was unknown is known.
func knownGroup(w allocate.GroupWish, size int, name string) allocate.GroupWish {
	if w.Size.Unknown {
		w.Size = decide.Known(size)
	}
	if w.Name.Unknown {
		w.Name = decide.Known(name)
	}
	if w.Class.Unknown {
		w.Class = decide.Known("large")
	}
	if w.Candidates.Unknown {
		w.Candidates = decide.Known([]string{"n7"})
	}
	return w
}
