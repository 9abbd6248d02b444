package actions

import (
	"cmp"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview/sharing"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/operate"
)

// simple returns an action without settings of its own.
func simple(about string, of func(*sharing.Pool) operate.Operation) action.Action {
	return &invoked[target]{about: about, of: func(_ target, pool *sharing.Pool) operate.Operation { return of(pool) }}
}

// NewAbort returns metal_abort.
func NewAbort() action.Action {
	return simple("Ends an operation of Ironic that waits for the machine or that a step holds. The operation has then failed, as the "+
		"node's provision state says. To continue a held operation, use [`metal_unhold`](unhold.md).",
		func(*sharing.Pool) operate.Operation { return operate.Abort() })
}

// NewUnhold returns metal_unhold.
func NewUnhold() action.Action {
	return simple("Continues an operation of Ironic that a step holds, and waits for its end. Needs API 1.85. To end the operation, use "+
		"[`metal_abort`](abort.md).", func(*sharing.Pool) operate.Operation { return operate.Unhold() })
}

// NewNMI returns metal_nmi.
func NewNMI() action.Action {
	return simple("Sends a machine a non-maskable interrupt, through its BMC. **Most operating systems then crash**: they write a crash "+
		"dump and restart, as they are configured. Needs API 1.29, and a machine that is switched on.",
		func(*sharing.Pool) operate.Operation { return operate.NMI() })
}

// NewInspect returns metal_inspect.
func NewInspect() action.Action {
	return simple("Inspects a free machine again, which **may boot it**. The machine ends `manageable`; if it was `available`, it becomes "+
		"so again, **and Ironic cleans it on the way** unless the site or the node has automated cleaning switched off. Deployed "+
		"and reserved machines are refused.", operate.Inspect)
}

type powerConfig struct {
	target
	Action types.String `tfsdk:"action"`
}

// NewPower returns metal_power.
func NewPower() action.Action {
	return &invoked[powerConfig]{
		about: "Switches a machine on or off, or restarts it, and waits for that.",
		further: func() map[string]schema.Attribute {
			return map[string]schema.Attribute{"action": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "`on`. `off`: cuts the power. `reboot`: **cuts the power and switches the machine on again**. " +
					"`soft_off` and `soft_reboot`: ask the operating system, need a driver that can, and fail if the machine stays on. " +
					"A machine that is off is only switched on by `reboot` and `soft_reboot`.",
				Validators: []validator.String{stringvalidator.OneOf(string(machine.ActionOn), string(machine.ActionOff),
					string(machine.ActionReboot),
					string(machine.ActionSoftOff), string(machine.ActionSoftReboot))},
			}}
		},
		of: func(c powerConfig, _ *sharing.Pool) operate.Operation {
			return operate.Power(machine.PowerAction(c.Action.ValueString()))
		},
	}
}

type mediaConfig struct {
	target
	ImageURL types.String `tfsdk:"image_url"`
	Device   types.String `tfsdk:"device"`
}

// NewVirtualMedia returns metal_virtual_media.
func NewVirtualMedia() action.Action {
	return &invoked[mediaConfig]{
		about: "Inserts an image into a virtual drive of a machine, through its BMC, or empties the drive. The machine " +
			"is not restarted, and its boot device stays. Needs API 1.89 and a Redfish BMC.",
		further: func() map[string]schema.Attribute {
			return map[string]schema.Attribute{
				"image_url": schema.StringAttribute{
					Optional: true, MarkdownDescription: "URL of the image (`http`, `https`, `nfs` or `cifs`), which replaces what is in " +
						"the drive. Null: empties the drive.",
					Validators: []validator.String{framework.MediaURL},
				},
				"device": schema.StringAttribute{
					Optional: true, MarkdownDescription: "`cdrom`, `disk` or `floppy`. Default: `cdrom`, which is refused while a live " +
						"ISO runs on the machine.",
					Validators: []validator.String{stringvalidator.OneOf(string(ironic.DeviceCDROM), string(ironic.DeviceDisk),
						string(ironic.DeviceFloppy))},
				},
			}
		},
		of: func(c mediaConfig, _ *sharing.Pool) operate.Operation {
			return operate.Media(cmp.Or(ironic.Device(c.Device.ValueString()), ironic.DeviceCDROM), c.ImageURL.ValueString())
		},
	}
}
