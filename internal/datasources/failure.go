package datasources

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/evidence"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

func failureSchema() schema.Attribute {
	all := map[string]schema.Attribute{}
	for name, description := range framework.FailureTexts {
		all[name] = text(description)
	}
	return schema.SingleNestedAttribute{
		Computed: true, Attributes: all,
		MarkdownDescription: "Why the last operation on the node has failed; null if it has not failed, or Ironic says nothing.",
	}
}

// learnFailure completes last_error of a node that has failed from its history, if Ironic has cleared it.
func learnFailure(ctx context.Context, client *ironic.Client, node *ironic.Node) {
	if node.LastError == "" && states.OperationFailed(node) {
		node.LastError = evidence.LastError(ctx, client, node.UUID)
	}
}
