package framework

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// FailureTexts describe the attributes of failure.
var FailureTexts = map[string]string{
	"reason":  "The [reason](../guides/failure-reasons.md), such as `image-404`; null if it has none.",
	"blame":   "`machine`, `request`, `site` or `unclear`.",
	"meaning": "What the words mean.",
	"next":    "What to do.",
	"words":   "Ironic's words: `last_error`, else the reason of the maintenance.",
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
