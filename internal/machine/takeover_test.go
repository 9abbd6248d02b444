package machine

import (
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

func TestTakeOver_obstacles(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		left Remains
		ours Tenant
		want string // a part of the reason; "" if it is taken over
	}{
		"as the run left it": {Remains{recent: true}, Tenant{}, ""},
		"not owned yet":      {Remains{recent: true}, Tenant{Owner: "p1", Lessee: "p2"}, ""},
		"owned as configured": {
			Remains{recent: true, owner: "p1", lessee: "p2"},
			Tenant{Owner: "p1", Lessee: "p2"},
			"",
		},
		"owned by the project that made it": {Remains{recent: true, owner: "p0"}, Tenant{Owner: "p1", Project: "p0"}, ""},
		"owned by another project": {
			Remains{recent: true, owner: "p3"},
			Tenant{Owner: "p1", Project: "p0"},
			"owner is project p3",
		},
		"owned, but the configuration names none": {Remains{recent: true, owner: "p3"}, Tenant{}, "owner is project p3"},
		"leased to another project":               {Remains{recent: true, lessee: "p3"}, Tenant{}, "lessee is project p3"},
		"reserved by the killed run":              {Remains{recent: true, instance: "i1", reservedToo: true}, Tenant{}, ""},
		"reserved by others":                      {Remains{recent: true, instance: "i1"}, Tenant{}, "instance i1"},
		"too old":                                 {Remains{}, Tenant{}, "24 hours"},
	} {
		if got := tt.left.Obstacle(tt.ours); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// A host and a deployment may both take over something of one node, and each of them says so once.
func TestTakeOver_eachIsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	var s notes.Run
	for _, what := range notes.All {
		if first, second := s.Announce(what, "n1"), s.Announce(what, "n1"); !first || second {
			t.Errorf("%s: announced %t, then %t", what, first, second)
		}
	}
	if !s.Announce(notes.MarkCreation, "n2") {
		t.Error("another node is not announced")
	}
}
