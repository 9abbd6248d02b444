package framework

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// FailureTexts describe the attributes of failure.
var FailureTexts = map[string]string{
	"reason": "Stable name of the reason, such as `image-404`: see [Reasons of failures](../guides/failure-reasons.md). Null if " +
		"the provider does not know Ironic's words.",
	"blame":   "`machine`, `request`, `site`, or `unclear` if the words have several causes. Null if `reason` is.",
	"meaning": "What the words mean.",
	"next":    "What to do.",
	"words":   "Ironic's words: `last_error`, or the reason of the maintenance if that is empty.",
}

// FailureTypes are the types of the attributes of failure.
func FailureTypes() map[string]attr.Type {
	all := map[string]attr.Type{}
	for name := range FailureTexts {
		all[name] = types.StringType
	}
	return all
}

// FailureValue returns why the last operation on a node has failed; null if it has not, or if nothing tells why.
func FailureValue(node *ironic.Node) types.Object {
	f := machine.FailureOf(node)
	if f == nil {
		return types.ObjectNull(FailureTypes())
	}
	return types.ObjectValueMust(FailureTypes(), map[string]attr.Value{
		"reason": OrNull(f.Reason), "blame": OrNull(string(f.Blame)), "meaning": OrNull(f.Meaning), "next": OrNull(f.Next),
		"words": OrNull(f.Words),
	})
}
