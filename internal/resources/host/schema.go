package host

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/enroll"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// Schema describes metal_host.
func (h *host) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Enrolls a physical machine in Ironic, as a node with its ports, and prepares it up to `target_state`.\n\n" +
			"Enrolling and verifying a machine does nothing to it. These do: `target_state = \"available\"`, `inspect`, `inspect_triggers`, `power_state`, `bios_settings`, `raid`, `firmware`, `boot_mode` and `secure_boot`.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				Computed: true, MarkdownDescription: "UUID of the node.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"driver_info_wo": schema.MapAttribute{
				ElementType: types.StringType, Optional: true, WriteOnly: true,
				MarkdownDescription: "Secret settings of the driver, such as `redfish_password`. Never stored in a plan or in state. Needs `driver_info_wo_version`.",
				Validators:          append(framework.KeyValidators(), mapvalidator.AlsoRequires(path.MatchRoot("driver_info_wo_version"))),
			},
			"driver_info_wo_version": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Number of your choice. Change it to send `driver_info_wo` again.",
				Validators: []validator.Int64{int64validator.AlsoRequires(path.MatchRoot("driver_info_wo"))},
			},
			"ports":       portsSchema(),
			"port_groups": groupsSchema(),
			"inspect": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Whether to inspect the machine, unless it was inspected before. **The machine boots.** If the node is `available`, **Ironic cleans it afterwards**. No effect with `target_state = \"enroll\"`. Default: `false`.",
			},
			"inspect_triggers": schema.MapAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "Any change, also adding it, inspects the machine again, whatever `inspect` is. **The machine boots.** If the node is `available`, **Ironic cleans it afterwards**. An error while the node is reserved or deployed, has no BMC, or has `target_state = \"enroll\"`. Removing the attribute does nothing. " +
					"A new or imported host only records the triggers. Example: `{ recabled = \"2026-11-20\" }`.",
			},
			"on_destroy": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "What `terraform destroy` does: `delete` (the default) removes the node from Ironic, " +
					"`forget` leaves it there. Neither does anything to the machine.",
				Validators: []validator.String{stringvalidator.OneOf(destroyDelete, destroyForget)},
			},
			"on_failure": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "What happens if Ironic has the node, but cannot prepare or switch the machine: with `error` (the default), the apply fails, and Terraform applies nothing that refers to any host of this resource. " +
					"With `warn`, the apply warns and goes on without this host: other machines are deployed, and a deployment of this one fails by itself. Either way the next apply tries again; with `warn` a new host is not tainted.",
				Validators: []validator.String{stringvalidator.OneOf(onFailureError, onFailureWarn)},
			},
			"timeouts": framework.TimeoutsAttribute(ctx, timeouts.Opts{
				Create: true, CreateDescription: "Longest time to prepare the machine, without an inspection and without waiting for a slot of `provisioning_limit`. An inspection has as much time again. Default: `60m`.",
				Update: true, UpdateDescription: "The same for an update. Default: `60m`.",
				Delete: true, DeleteDescription: "Longest time to wait for an operation in progress before the node is deleted. Default: `30m`.",
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
	m.validateRAID(ctx, &resp.Diagnostics)
	m.validatePorts(ctx, &resp.Diagnostics)
	m.validateBoot(&resp.Diagnostics)
	framework.Show(&resp.Diagnostics, enroll.RefusePowerOff(m.wish(ctx, &m, nil))...)
	m.validateReasons(&resp.Diagnostics)
	for key := range framework.StringMap(m.DriverInfo) {
		if ironic.IsSecretKey(key) {
			resp.Diagnostics.AddAttributeError(path.Root("driver_info").AtMapKey(key), "Secret in driver_info", "Plans show driver_info, and the state contains it. Move "+key+" to driver_info_wo, "+
				"or use bmc with username and password.")
		}
	}
	m.validateDriver(ctx, &resp.Diagnostics)
	if resp.Diagnostics.HasError() || m.bmc(ctx) == nil || !framework.IsSet(m.bmc(ctx).Address) {
		return
	}
	bmc, err := ironic.ParseBMC(m.bmc(ctx).Address.ValueString())
	if err != nil {
		return // the attribute's validator reports it
	}
	if bmc.VerifyCAKey == "" && framework.IsSet(m.bmc(ctx).VerifyCA) {
		resp.Diagnostics.AddAttributeError(path.Root("bmc").AtName("verify_ca"), "Unused setting", "IPMI has no certificates. Remove verify_ca.")
	}
	for key := range framework.StringMap(m.DriverInfo) {
		_, twice := bmc.Info[key]
		if twice || key == bmc.UsernameKey || key == bmc.PasswordKey || key == bmc.VerifyCAKey && !m.bmc(ctx).VerifyCA.IsNull() {
			resp.Diagnostics.AddAttributeError(path.Root("driver_info").AtMapKey(key), "Setting configured twice",
				key+" follows from bmc. Remove it here, or use driver and driver_info without bmc.")
		}
	}
}

// validateReasons refuses reasons for what is not so. Ironic has no place for them.
func (m *model) validateReasons(diags *diag.Diagnostics) {
	for name, is := range map[string]struct {
		set    types.Bool
		reason types.String
	}{"maintenance": {m.Maintenance, m.MaintenanceReason}, "retired": {m.Retired, m.RetiredReason}} {
		if framework.IsFalse(is.set) && framework.IsSet(is.reason) {
			diags.AddAttributeError(path.Root(name+"_reason"), "Reason without effect", fmt.Sprintf("%s is false, and Ironic keeps a reason only while it is true. Remove %s_reason, or make it null together with %s, "+
				"as in %s_reason = var.%s ? \"broken\" : null.", name, name, name, name, name))
		}
	}
}

// validateDriver refuses a driver that differs from the one that follows from bmc or power_control.
func (m *model) validateDriver(ctx context.Context, diags *diag.Diagnostics) {
	follows, from := "", ""
	if block := m.bmc(ctx); block != nil && framework.IsSet(block.Address) {
		if bmc, err := ironic.ParseBMC(block.Address.ValueString()); err == nil {
			follows, from = bmc.Driver, "the address of bmc"
		}
	} else if m.byAgent() {
		follows, from = machine.AgentDriver, "power_control"
	}
	if follows != "" && framework.IsSet(m.Driver) && m.Driver.ValueString() != follows {
		diags.AddAttributeError(path.Root("driver"), "Driver does not fit", fmt.Sprintf("The driver follows from %s, and is %s. Remove driver here.", from, follows))
	}
}
