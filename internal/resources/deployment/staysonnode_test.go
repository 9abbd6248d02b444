package deployment

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// A list from which node_id is taken must not move a machine. Only another allocation does.
func TestInPlace_staysOnNode(t *testing.T) {
	t.Parallel()
	null, unknown := types.StringNull(), types.StringUnknown()
	for name, tt := range map[string]struct {
		node, allocation types.String
		phase            importPhase
		loses            bool
		moves, warns     bool
	}{
		"the same node":                      {types.StringValue("uuid-1"), null, notImported, false, false, false},
		"the name of the node":               {types.StringValue("n1"), null, notImported, false, false, false},
		"another node":                       {types.StringValue("uuid-2"), null, notImported, false, false, true},
		"another node, the same reservation": {types.StringValue("uuid-2"), types.StringValue("a-1"), notImported, false, false, true},
		"the name that the plan gives it":    {types.StringValue("n2"), null, notImported, false, false, false},
		"a node that is not known yet":       {unknown, null, notImported, false, false, false},
		"a host that is replaced":            {unknown, null, notImported, true, true, false},
		"another allocation":                 {types.StringValue("uuid-2"), types.StringValue("a-2"), notImported, false, true, false},
		"an allocation not known yet":        {unknown, unknown, notImported, false, true, false},
		"another node than the imported one": {types.StringValue("uuid-2"), null, importing, false, true, false},
		"another node, not applied since":    {types.StringValue("uuid-2"), null, unapplied, false, true, false},
		"another node, once applied":         {types.StringValue("uuid-2"), null, applied, false, false, true},
	} {
		state := &model{ID: types.StringValue("uuid-1"), NodeID: types.StringValue("uuid-1"), InstanceID: types.StringValue("a-1"), AllocationID: null}
		plan := &model{NodeID: tt.node, AllocationID: tt.allocation}
		p := inPlace{plan: plan, state: state, past: history{Phase: tt.phase}, imported: tt.phase == importing, losesNode: tt.loses, renamed: "n2", seen: sight{Name: "n1"}, label: func() string { return "n1" }}
		var diags diag.Diagnostics
		p.keepNode(&diags)
		if stays := plan.NodeID.Equal(state.NodeID) || plan.NodeID.ValueString() == "n1"; stays == tt.moves || (len(diags) > 0) != tt.warns {
			t.Errorf("%s: node_id is planned as %s with %d warnings; want a move: %v, a warning: %v", name, plan.NodeID, len(diags), tt.moves, tt.warns)
		}
	}
}
