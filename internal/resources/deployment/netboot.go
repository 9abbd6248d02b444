package deployment

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// checkBoot warns if the plan boots a machine in a way that its node cannot serve.
func (d *deployment) checkBoot(ctx context.Context, plan, state *model, fresh bool, diags *diag.Diagnostics) {
	rescues := state != nil && !plan.Rescue.IsNull() && !plan.Rescue.Equal(state.Rescue)
	if plan.adopted() || !framework.IsSet(plan.NodeID) || !fresh && !plan.ProvisionState.IsUnknown() && !rescues || plan.overridesBoot() {
		return
	}
	node, err := d.plannedNode(ctx, plan)
	if err != nil {
		return // the apply reports what is wrong with the node
	}
	boot := d.Client.AsPlanned(node).BootInterface
	if !plan.LiveISO.IsNull() && provision.BootsNoISO(boot) {
		diags.AddAttributeWarning(path.Root("live_iso"), "Boot interface boots no ISO", fmt.Sprintf("The boot interface of node %s is %s, which boots no ISO. Ironic accepts the deployment all the same, and the "+
			"machine does not boot the ISO. Set hardware_interfaces = { boot = \"ipxe\" }, or one with virtual media, on its metal_host.", ironic.NodeLabel(node), boot))
	}
	if lacks := d.Client.LacksBootPort(ctx, node); lacks != "" {
		diags.AddAttributeWarning(path.Root("node_id"), "Network boot needs a port", fmt.Sprintf("Node %s boots from the network (boot interface %s), and %s. The apply will probably fail. "+
			"Name the network card that boots on its metal_host: ports = { \"<MAC address>\" = { pxe_enabled = true } }.", ironic.NodeLabel(node), boot, lacks))
	}
}

// checkFormat warns of a raw image without disk_format, if the plan writes the image.
func (d *deployment) checkFormat(ctx context.Context, plan, config *model, fresh bool, diags *diag.Diagnostics) {
	wanted, problems := config.deployment(ctx)
	if wanted.Image == nil || problems.HasError() || !framework.FullyKnown(ctx, plan.Image) || !fresh && !plan.ProvisionState.IsUnknown() {
		return
	}
	if why := d.Client.LookAtFormat(ctx, *wanted.Image); why != "" {
		diags.AddAttributeWarning(path.Root("image").AtName("disk_format"), "Raw image needs disk_format", fmt.Sprintf("The image %s %s. Set disk_format = \"raw\". Without it, Ironic's ramdisk fails to write "+
			"the image (qemu-img: Unknown driver 'gpt'), unless the conductor downloads it (image_download_source = local).", provision.ImageName(wanted.Image.URL), why))
	}
}

// overridesBoot reports whether instance_info has a boot interface of its own, or may have one.
func (m *model) overridesBoot() bool {
	_, overrides := framework.JSONObject(m.InstanceInfo)["boot_interface"]
	return overrides || m.InstanceInfo.IsUnknown()
}
