package deployment

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

// unknownFailure is failure of a plan that does not know how its operation ends.
var unknownFailure = types.ObjectUnknown(framework.FailureTypes())

func failureSchema() schema.Attribute {
	all := map[string]schema.Attribute{}
	for name, description := range framework.FailureTexts {
		all[name] = schema.StringAttribute{Computed: true, MarkdownDescription: description}
	}
	return schema.SingleNestedAttribute{
		Computed: true, Attributes: all,
		MarkdownDescription: "What `last_error` means; null if the last operation has not failed.",
	}
}
