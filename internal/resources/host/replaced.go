package host

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
)

type replacedModel struct {
	Part types.String `tfsdk:"part"`
	On   types.String `tfsdk:"on"`
}

func replacedSchema() schema.Attribute {
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "What people have replaced of the machine. **A new value acts once**; a new or imported host only records " +
			"it, and removing it does nothing. While something is deployed, a new BMC address together with new MAC addresses needs it. " +
			"See [Replace hardware](../guides/replace-hardware.md).",
		Attributes: map[string]schema.Attribute{
			"part": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "`mainboard`: the disks stay, what is deployed goes on, and only the changed addresses are written. " +
					"`machine`: what ran there is gone. **Ironic undeploys the node and cleans the new machine**, and inspects and " +
					"configures it as a new one. Its deployment and allocation end; **the next plan** reserves and deploys anew.",
				Validators: []validator.String{stringvalidator.OneOf(string(hosts.ReplacedMainboard), string(hosts.ReplacedMachine))},
			},
			"on": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "When, in any text that differs from the one before, such as `2026-11-27`.",
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
		},
	}
}

func replacedOf(ctx context.Context, value types.Object) decide.Value[hosts.Replaced] {
	m := framework.Decoded[replacedModel](ctx, value)
	switch {
	case value.IsNull():
		return decide.Value[hosts.Replaced]{}
	case !framework.FullyKnown(ctx, value), m == nil:
		return decide.Unknown[hosts.Replaced]()
	}
	return decide.Known(hosts.Replaced{Part: hosts.ReplacedPart(m.Part.ValueString()), On: m.On.ValueString()})
}
