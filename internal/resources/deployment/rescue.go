package deployment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

type rescueModel struct {
	PasswordWO        types.String `tfsdk:"password_wo"`
	PasswordWOVersion types.String `tfsdk:"password_wo_version"`
}

var rescueTypes = map[string]attr.Type{"password_wo": types.StringType, "password_wo_version": types.StringType}

func rescueSchema() schema.Attribute {
	version := framework.SecretVersion("password_wo", " and boots the rescue system again")
	version.Required, version.Optional = true, false
	return schema.SingleNestedAttribute{
		Optional: true, MarkdownDescription: "While it is set, the machine runs Ironic's rescue system in place of what is deployed. " +
			"Adding it, removing it and a new `password_wo_version` each **restart** the machine; its disks keep their data. The node's " +
			"rescue interface must not be `no-rescue`. Not possible when the deployment is created or replaced, or with `power_state = " +
			"\"off\"`. Default: the provider leaves a machine that another client has put into rescue mode there, and warns.",
		Attributes: map[string]schema.Attribute{
			"password_wo": schema.StringAttribute{
				Required: true, WriteOnly: true,
				MarkdownDescription: "Password of the user `rescue`. Not stored.",
				Validators:          []validator.String{framework.NotBlank, framework.Trimmed},
			},
			"password_wo_version": version,
		},
	}
}

// rescuePassword returns the password of a configuration, or "".
func (m *model) rescuePassword(ctx context.Context) string {
	if rescue := framework.Decoded[rescueModel](ctx, m.Rescue); rescue != nil {
		return rescue.PasswordWO.ValueString()
	}
	return ""
}

// unsureRescue is the value of a machine that must enter or leave rescue mode once more: it differs from every configured one.
func unsureRescue() types.Object {
	return types.ObjectValueMust(rescueTypes, map[string]attr.Value{
		"password_wo":         types.StringNull(),
		"password_wo_version": types.StringNull(),
	})
}

// readRescue refreshes rescue. It is null for a machine that this resource has not put into rescue mode.
func (m *model) readRescue(node *ironic.Node, diags *diag.Diagnostics) {
	mode := deploy.RescueOf(ironic.State(node.ProvisionState))
	switch {
	case m.Rescue.IsNull():
		framework.Show(diags, deploy.WarnRescued(node)...)
	case mode == deploy.NotRescued:
		m.Rescue = types.ObjectNull(rescueTypes)
	case mode == deploy.RescueFailed:
		m.Rescue = unsureRescue()
	}
}
