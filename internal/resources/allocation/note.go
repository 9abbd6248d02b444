package allocation

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/allocate"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

// nodeKey is the key in private state of what the last refresh has found out about the reserved node. Plans decide from it, so that
// a saved plan, which Terraform plans again when it applies it, comes out the same.
const nodeKey = "node"

// noteNode records what plans must know of the reserved node. Whether something is deployed on it matters only if it is unusable; a
// deployment in the same apply would otherwise look like drift.
func noteNode(ctx context.Context, private framework.SettablePrivate, node allocate.ReservedNode) diag.Diagnostics {
	node.Deployed = node.Deployed && node.Unusable != ""
	text, err := json.Marshal(node)
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("The provider has a bug", err.Error())}
	}
	return private.SetKey(ctx, nodeKey, text)
}

// notedNode returns what was recorded of the reserved node; nil if there is nothing.
func notedNode(ctx context.Context, private framework.GettablePrivate) *allocate.ReservedNode {
	text, _ := private.GetKey(ctx, nodeKey)
	var node allocate.ReservedNode
	if len(text) == 0 || json.Unmarshal(text, &node) != nil {
		return nil
	}
	return &node
}
