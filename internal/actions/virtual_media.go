package actions

import (
	"cmp"
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

var _ action.ActionWithModifyPlan = (*virtualMedia)(nil)

// NewVirtualMedia returns metal_virtual_media.
func NewVirtualMedia() action.Action { return &virtualMedia{operator{name: "metal_virtual_media"}} }

type virtualMedia struct{ operator }

type virtualMediaModel struct {
	target
	ImageURL types.String `tfsdk:"image_url"`
	Device   types.String `tfsdk:"device"`
}

const virtualMediaLimit = 10 * time.Minute

// Schema describes the action.
func (a *virtualMedia) Schema(ctx context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schemaOf(ctx, "Inserts an image into a virtual drive of a machine, through its BMC, or empties the drive. The machine "+
		"is not restarted, and its boot device stays. Needs API 1.89 and a Redfish BMC.", virtualMediaLimit, map[string]schema.Attribute{
		"image_url": schema.StringAttribute{
			Optional: true, MarkdownDescription: "URL of the image (`http`, `https`, `nfs` or `cifs`), which replaces what is in the " +
				"drive. Null: empties the drive.",
			Validators: []validator.String{framework.MediaURL},
		},
		"device": schema.StringAttribute{
			Optional: true, MarkdownDescription: "`cdrom`, `disk` or `floppy`. Default: `cdrom`, which is refused while a live ISO runs " +
				"on the machine.",
			Validators: []validator.String{stringvalidator.OneOf(string(ironic.DeviceCDROM), string(ironic.DeviceDisk),
				string(ironic.DeviceFloppy))},
		},
	})
}

// ModifyPlan refuses the action if the API version does not support it.
func (a *virtualMedia) ModifyPlan(ctx context.Context, _ action.ModifyPlanRequest, resp *action.ModifyPlanResponse) {
	a.offered(ctx, api.VersionVirtualMedia, &resp.Diagnostics)
}

// Invoke changes the medium.
func (a *virtualMedia) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var m virtualMediaModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	doing := "attach virtual media to"
	if m.ImageURL.IsNull() {
		doing = "detach virtual media from"
	}
	device := cmp.Or(ironic.Device(m.Device.ValueString()), ironic.DeviceCDROM)
	a.operate(ctx, m.target, doing, virtualMediaLimit, resp, func(machine *machine.Machine, limit time.Duration) error {
		return machine.ChangeMedia(ctx, device, m.ImageURL.ValueString(), limit)
	})
}
