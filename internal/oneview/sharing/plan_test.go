package sharing_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
)

// profileThings are what a configuration can say of a server profile, and what can be seen of it. Without them, the profile is on node
// blade1, which is available, and complies with its template; node_id and the rest are as in state.
var profileThings = map[string]func(*sharing.Wish, *sharing.Seen){
	"destroyed":       func(w *sharing.Wish, _ *sharing.Seen) { *w = sharing.Wish{Destroy: true} },
	"none":            func(_ *sharing.Wish, s *sharing.Seen) { s.Was = nil },
	"other name":      func(w *sharing.Wish, _ *sharing.Seen) { w.Name = decide.Known("db") },
	"other template":  func(w *sharing.Wish, _ *sharing.Seen) { w.Template = decide.Known("/rest/server-profile-templates/b") },
	"template's case": func(w *sharing.Wish, _ *sharing.Seen) { w.Template = decide.Known("/REST/server-profile-templates/A") },
	"other hardware": func(w *sharing.Wish, _ *sharing.Seen) {
		w.Hardware, w.NamesHardware = decide.Known("/rest/server-hardware/9"), true
	},
	"hardware not known": func(w *sharing.Wish, _ *sharing.Seen) { w.Hardware, w.NamesHardware = decide.Unknown[string](), true },
	"template not known": func(w *sharing.Wish, _ *sharing.Seen) { w.Template = decide.Unknown[string]() },
	"node by name":       func(w *sharing.Wish, _ *sharing.Seen) { w.Node = decide.Known("blade1") },
	"node not known":     func(w *sharing.Wish, s *sharing.Seen) { w.Node, s.Other = decide.Unknown[string](), true },
	"other node":         func(w *sharing.Wish, s *sharing.Seen) { w.Node, s.Other = decide.Known("blade2"), true },
	"its node is gone":   func(_ *sharing.Wish, s *sharing.Seen) { s.Gone = true },
	"no such node":       func(w *sharing.Wish, s *sharing.Seen) { w.Node, s.NoNode, s.Node = decide.Known("bladd"), true, nil },
	"node not read":      func(_ *sharing.Wish, s *sharing.Seen) { s.Node = nil },
	"node runs":          func(_ *sharing.Wish, s *sharing.Seen) { s.Node.ProvisionState = "active" },
	"strays":             func(_ *sharing.Wish, s *sharing.Seen) { s.Strays = true },
	"unfinished":         func(_ *sharing.Wish, s *sharing.Seen) { s.Unfinished = true },
	"being deleted":      func(_ *sharing.Wish, s *sharing.Seen) { s.Deleting = true },
	"used by OneView": func(_ *sharing.Wish, s *sharing.Seen) {
		s.Ownership, s.InUse, s.Displaced = sharing.UsedByOneView, "it is used", true
	},
}

// profileStory returns the wish and the sight of a row.
func profileStory(t *testing.T, cell string) (sharing.Wish, sharing.Seen) {
	t.Helper()
	w := sharing.Wish{
		Node: decide.Known("u1"), Hardware: decide.Known("/rest/server-hardware/1"),
		Template: decide.Known("/rest/server-profile-templates/a"), Name: decide.Known("web"),
	}
	was := w
	s := sharing.Seen{
		Was: &was, URI: "/rest/server-profiles/1", Ownership: sharing.UsedByIronic, Node: &ironic.Node{}, Label: "blade1",
		Asked: []sharing.Question{sharing.AskSameNode, sharing.AskNode, sharing.AskUse, sharing.AskRemoval},
	}
	s.Node.ProvisionState = "available"
	for name := range strings.SplitSeq(cell, ", ") {
		if name == "" {
			continue
		}
		if profileThings[name] == nil {
			t.Fatalf("%q is not in the map", name)
		}
		profileThings[name](&w, &s)
	}
	return w, s
}

func TestWhatBecomesOfAServerProfile(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ story, happens, says string }{
		{"", "", ""},
		{"none", "create", ""},
		{"none, used by OneView", "create", "Server hardware is in use"},
		{"none, no such node", "create", "refused: No such node"},
		{"none, node not known", "create", ""},
		{"destroyed", "remove and restart", "Server profile is removed"},
		{"destroyed, used by OneView", "remove", ""},

		{"other name", "update", ""},
		{"other name, node runs", "update", ""},
		{"other name, node not read", "update", ""},
		{"template's case", "", ""},
		{"other template", "update and restart", "Server profile template is applied"},
		{"other template, node runs", "", "refused: Template cannot be changed now"},
		{"strays", "update and restart", "Server profile template is applied"},
		{"strays, node runs", "", "Server profile template is not applied"},
		{"strays, other name, node runs", "update", "Server profile template is not applied"},
		{"unfinished", "complete and restart", "Unfinished server profile is completed"},
		{"unfinished, used by OneView", "complete and restart", "Unfinished server profile is completed"},
		{"being deleted", "complete and restart", "Deleted server profile is replaced"},
		{"being deleted, other template", "complete and restart", "Deleted server profile is replaced"},
		{"being deleted, node runs", "", "Server profile is being deleted"},
		{"being deleted, strays, other template, node runs", "", "Server profile is being deleted"},
		{"being deleted, node not read", "", ""},
		{"used by OneView, other name", "", ""},

		{"node by name", "", ""},
		{"other node", "", "Server profile stays on its node"},
		{"other node, its node is gone", "remove and restart, create, for node_id", "Server profile is removed"},
		{"node not known", "", ""},
		{"node not known, its node is gone", "remove and restart, create, for node_id", "Server profile is removed"},
		{"hardware not known", "", ""},
		{"template not known", "", ""},
		{"template not known, node runs", "", ""},
		{"no such node", "", "refused: No such node"},
		{"other hardware", "remove and restart, create, for server_hardware_uri", "Server profile is removed"},
	} {
		w, s := profileStory(t, row.story)
		p := sharing.Decide(w, s)
		if got := profileHappens(p); got != row.happens {
			t.Errorf("%s: happens %q, want %q", row.story, got, row.happens)
		}
		if got := profileSays(p); got != row.says {
			t.Errorf("%s: says %q, want %q", row.story, got, row.says)
		}
		costs := slices.ContainsFunc(p.Steps, func(step sharing.Step) bool { return step.Cost > decide.Free })
		warns := strings.Contains(row.says, "is removed") || strings.Contains(row.says, "is applied") ||
			strings.Contains(row.says, "is completed") || strings.Contains(row.says, "is replaced")
		if costs != warns {
			t.Errorf("%s: a step that costs has its notice, and the reverse: %+v", row.story, p)
		}
	}
}

func profileHappens(p sharing.Plan) string {
	var parts []string
	for _, step := range p.Steps {
		text := string(step.Do)
		if step.Cost == decide.Restart {
			text += " and restart"
		}
		parts = append(parts, text)
	}
	if len(p.Replaces) > 0 {
		parts = append(parts, "for "+strings.Join(p.Replaces, " and "))
	}
	for _, q := range p.Asks {
		parts = append(parts, "ask "+string(q))
	}
	return strings.Join(parts, ", ")
}

func profileSays(p sharing.Plan) string {
	var titles []string
	for _, n := range p.Notices {
		title := n.Summary
		if n.Severity == decide.Refusal {
			title = "refused: " + title
		}
		titles = append(titles, title)
	}
	return strings.Join(titles, "; ")
}
