package allocate_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/decide"
)

func TestMembersAreAsPlanned(t *testing.T) {
	t.Parallel()
	is, unknown, null := decide.Known[string], decide.Unknown[string](), decide.Value[string]{}
	for name, tt := range map[string]struct{ planned, now, want allocate.Member }{
		"new":                        {allocate.Member{unknown, unknown, unknown, unknown}, allocate.Member{is("a"), is("n"), is("web"), null}, allocate.Member{is("a"), is("n"), is("web"), null}},
		"its node was renamed":       {allocate.Member{is("a"), is("n"), is("web"), unknown}, allocate.Member{is("a"), is("n"), is("db"), is("r1")}, allocate.Member{is("a"), is("n"), is("web"), is("r1")}},
		"its node got a name":        {allocate.Member{is("a"), is("n"), null, null}, allocate.Member{is("a"), is("n"), is("db"), null}, allocate.Member{is("a"), is("n"), null, null}},
		"its allocation was deleted": {allocate.Member{is("a"), is("n"), is("web"), unknown}, allocate.Member{}, allocate.Member{is("a"), is("n"), is("web"), null}},
		"it has lost its node":       {allocate.Member{is("a"), unknown, unknown, unknown}, allocate.Member{is("a"), is("m"), null, is("r2")}, allocate.Member{is("a"), is("m"), null, is("r2")}},
	} {
		got := allocate.AsPlanned(map[string]allocate.Member{"g-0": tt.planned}, map[string]allocate.Member{"g-0": tt.now, "g-1": tt.now})
		if got["g-0"] != tt.want || got["g-1"] != tt.now {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
