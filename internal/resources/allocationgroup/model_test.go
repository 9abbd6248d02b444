package allocationgroup

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"
)

func TestMembers_asPlanned(t *testing.T) {
	t.Parallel()
	is, unknown, null := types.StringValue, types.StringUnknown(), types.StringNull()
	for name, tt := range map[string]struct{ planned, now, want memberModel }{
		"new":                        {memberModel{unknown, unknown, unknown, unknown}, memberModel{is("a"), is("n"), is("web"), null}, memberModel{is("a"), is("n"), is("web"), null}},
		"its node was renamed":       {memberModel{is("a"), is("n"), is("web"), unknown}, memberModel{is("a"), is("n"), is("db"), is("r1")}, memberModel{is("a"), is("n"), is("web"), is("r1")}},
		"its node got a name":        {memberModel{is("a"), is("n"), null, null}, memberModel{is("a"), is("n"), is("db"), null}, memberModel{is("a"), is("n"), null, null}},
		"its allocation was deleted": {memberModel{is("a"), is("n"), is("web"), unknown}, memberModel{null, null, null, null}, memberModel{is("a"), is("n"), is("web"), null}},
		"it has lost its node":       {memberModel{is("a"), unknown, unknown, unknown}, memberModel{is("a"), is("m"), null, is("r2")}, memberModel{is("a"), is("m"), null, is("r2")}},
	} {
		got := asPlanned(map[string]memberModel{"g-0": tt.planned}, map[string]memberModel{"g-0": tt.now, "g-1": tt.now})
		if got["g-0"] != tt.want || got["g-1"] != tt.now {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
