package datasources

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

func failureAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"reason": text("Stable name of the reason, such as `image-404`: see [Reasons of failures](../guides/failure-reasons.md). Null if " +
			"the provider does not know Ironic's words."),
		"blame":   text("`machine`, `request`, `site`, or `unclear` if the words have several causes. Null if `reason` is."),
		"meaning": text("What the words mean."), "next": text("What to do."),
		"words": text("Ironic's words: `last_error`, or the reason of the maintenance if that is empty."),
	}
}

func failureSchema() schema.Attribute {
	return schema.SingleNestedAttribute{
		Computed: true, Attributes: failureAttributes(),
		MarkdownDescription: "Why the last operation on the node has failed; null if it has not failed, or Ironic says nothing.",
	}
}

func failureValue(node *ironic.Node) types.Object {
	kinds, f := typesOf(failureAttributes()), machine.FailureOf(node)
	if f == nil {
		return types.ObjectNull(kinds)
	}
	return types.ObjectValueMust(kinds, map[string]attr.Value{
		"reason": orNull(f.Reason), "blame": orNull(string(f.Blame)), "meaning": orNull(f.Meaning), "next": orNull(f.Next),
		"words": orNull(f.Words),
	})
}
