package provision

import (
	"strings"
	"testing"
)

func TestTakeOver_obstacles(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		left remains
		ours Tenant
		want string // a part of the reason; "" if it is taken over
	}{
		"as the run left it":                      {remains{recent: true}, Tenant{}, ""},
		"not owned yet":                           {remains{recent: true}, Tenant{Owner: "p1", Lessee: "p2"}, ""},
		"owned as configured":                     {remains{recent: true, owner: "p1", lessee: "p2"}, Tenant{Owner: "p1", Lessee: "p2"}, ""},
		"owned by the project that made it":       {remains{recent: true, owner: "p0"}, Tenant{Owner: "p1", project: "p0"}, ""},
		"owned by another project":                {remains{recent: true, owner: "p3"}, Tenant{Owner: "p1", project: "p0"}, "owner is project p3"},
		"owned, but the configuration names none": {remains{recent: true, owner: "p3"}, Tenant{}, "owner is project p3"},
		"leased to another project":               {remains{recent: true, lessee: "p3"}, Tenant{}, "lessee is project p3"},
		"reserved by the killed run":              {remains{recent: true, instance: "i1", reservedToo: true}, Tenant{}, ""},
		"reserved by others":                      {remains{recent: true, instance: "i1"}, Tenant{}, "instance i1"},
		"too old":                                 {remains{}, Tenant{}, "24 hours"},
	} {
		if got := tt.left.obstacle(tt.ours); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// A host and a deployment may both take over something of one node, and each of them says so once.
func TestTakeOver_eachIsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	var s Run
	for _, what := range marks {
		if first, second := s.Announce(what, "n1"), s.Announce(what, "n1"); !first || second {
			t.Errorf("%s: announced %t, then %t", what, first, second)
		}
	}
	if !s.Announce(MarkCreation, "n2") {
		t.Error("another node is not announced")
	}
}
