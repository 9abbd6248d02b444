package host

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Schema describes metal_host.
func (h *host) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A physical machine that Ironic knows: a node with its ports. Enrolling it erases nothing; only " +
			"`target_state = \"available\"` cleans it.\n\n" +
			"**What you write is managed; what you leave out is not.** A setting that you remove from the configuration again is " +
			"returned to Ironic's default; one that you never wrote is left as it is, and so are keys of maps, traits and ports that others added.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				Computed: true, MarkdownDescription: "UUID of the node.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"driver_info_wo": schema.MapAttribute{
				ElementType: types.StringType, Optional: true, WriteOnly: true,
				MarkdownDescription: "Secret settings of the driver, such as `redfish_password`. Write-only: in no plan and no state (Terraform and OpenTofu from 1.11). " +
					"Sent when the host is created and whenever `driver_info_wo_version` changes.",
				Validators: append(framework.KeyValidators(), mapvalidator.AlsoRequires(path.MatchRoot("driver_info_wo_version"))),
			},
			"driver_info_wo_version": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Change it to send `driver_info_wo` again. Costs nothing.",
				Validators: []validator.Int64{int64validator.AlsoRequires(path.MatchRoot("driver_info_wo"))},
			},
			"ports": portsSchema(),
			"inspect": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Inspect the node once, unless it has been inspected already. The machine boots for it. Default: `false`. " +
					"Turned on for an `available` node, the node becomes manageable for it and is cleaned afterwards.",
			},
			"on_destroy": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "What destroying this resource does: `delete` (the default) removes the node from Ironic, " +
					"`forget` leaves it there. The machine is not touched. A node that something is deployed on, or that is reserved, is not deleted: that must go first.",
				Validators: []validator.String{stringvalidator.OneOf(destroyDelete, destroyForget)},
			},
			"timeouts": framework.TimeoutsAttribute(ctx, timeouts.Opts{
				Create: true, CreateDescription: "Time for verifying, inspecting and cleaning each, without the time in the queue. Default: `60m`.",
				Update: true, UpdateDescription: "As for create. Default: `60m`.",
				Delete: true, DeleteDescription: "Time for the node to become deletable. Default: `30m`.",
			}),
		},
	}
	for _, a := range attributes {
		resp.Schema.Attributes[a.name] = a.schema
	}
}

// ValidateConfig checks rules that concern more than one attribute.
func (h *host) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	m.validateAgent(&resp.Diagnostics)
	for key := range framework.StringMap(m.DriverInfo) {
		if ironic.IsSecretKey(key) {
			resp.Diagnostics.AddAttributeError(path.Root("driver_info").AtMapKey(key), "Secret in driver_info", "Plans show driver_info, and the state contains it. Move "+key+" to driver_info_wo, "+
				"or use bmc with username and password.")
		}
	}
	if resp.Diagnostics.HasError() || m.bmc(ctx) == nil || !framework.IsSet(m.bmc(ctx).Address) {
		return
	}
	if block := m.bmc(ctx); !block.Username.IsNull() && block.Password.IsNull() && block.PasswordWO.IsNull() {
		resp.Diagnostics.AddAttributeWarning(path.Root("bmc").AtName("username"), "BMC without a password", "bmc has a username and no password, so the BMC will probably refuse Ironic. "+
			"Set password_wo and password_wo_version, or password.")
	}
	bmc, err := ironic.ParseBMC(m.bmc(ctx).Address.ValueString())
	if err != nil {
		return // the attribute's validator reports it
	}
	if bmc.VerifyCAKey == "" && framework.IsSet(m.bmc(ctx).VerifyCA) {
		resp.Diagnostics.AddAttributeError(path.Root("bmc").AtName("verify_ca"), "Unused setting", "IPMI has no certificates. Remove verify_ca.")
	}
	for key := range framework.StringMap(m.DriverInfo) {
		if _, twice := bmc.Info[key]; twice || key == bmc.UsernameKey || key == bmc.PasswordKey || key == bmc.VerifyCAKey {
			resp.Diagnostics.AddAttributeError(path.Root("driver_info").AtMapKey(key), "Setting configured twice",
				key+" follows from bmc. Remove it here, or use driver and driver_info without bmc.")
		}
	}
}
