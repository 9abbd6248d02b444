package deployment

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

func vifsSchema() schema.Attribute {
	return schema.ListNestedAttribute{
		Optional: true,
		MarkdownDescription: "Ports of Neutron that the machine is connected to. The provider attaches them before the deployment. " +
			"A change attaches the new ones and detaches those that left the list; the machine is not restarted. Without the attribute, " +
			"those that are attached stay. Undeploying detaches them. Needs API 1.28 and the network interface `neutron` or `flat`.",
		Validators: []validator.List{listvalidator.NoNullValues()},
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				Required: true, MarkdownDescription: "UUID of the Neutron port.",
			},
			"mac": schema.StringAttribute{
				Optional: true, MarkdownDescription: "MAC address of the node's port. Needs API 1.67. Default: Ironic chooses a free port.",
				Validators: []validator.String{framework.MACAddress},
			},
		}},
	}
}

func vifAttribute(element attr.Value, name string) types.String {
	object, _ := element.(types.Object)
	value, _ := object.Attributes()[name].(types.String)
	return value
}

func (m *model) vifs() (vifs []deploy.VIF) {
	for _, element := range m.VIFs.Elements() {
		vifs = append(vifs, vifOf(element))
	}
	return vifs
}

func vifOf(element attr.Value) deploy.VIF {
	return deploy.VIF{ID: vifAttribute(element, "id").ValueString(), MAC: vifAttribute(element, "mac").ValueString()}
}

func (m *model) namesPorts() bool {
	return slices.ContainsFunc(m.VIFs.Elements(), func(element attr.Value) bool { return !vifAttribute(element, "mac").IsNull() })
}

func (m *model) validateVIFs(diags *diag.Diagnostics) {
	for _, name := range []string{"id", "mac"} {
		seen := map[string]bool{}
		for i, element := range m.VIFs.Elements() {
			value := vifAttribute(element, name)
			if framework.IsSet(value) && seen[value.ValueString()] {
				diags.AddAttributeError(path.Root("vifs").AtListIndex(i).AtName(name), "Setting configured twice",
					fmt.Sprintf("%s %s occurs twice in vifs. Remove one of them.", name, value.ValueString()))
			}
			seen[value.ValueString()] = true
		}
	}
}

// readVIFs removes from the state the VIFs that are not attached any more, or to another port than they name, and adds those that a killed
// run has attached. It cannot tell for a network
// interface that keeps none.
func (d *deployment) readVIFs(ctx context.Context, state *model, node *ironic.Node, diags *diag.Diagnostics) {
	if len(state.VIFs.Elements()) == 0 || !deploy.KeepsVIFs(node) {
		return
	}
	attached, err := d.Site.Ironic.VIFs(ctx, node.UUID)
	if err != nil {
		framework.Report(diags, "read the VIFs of node "+ironic.NodeLabel(node), err)
		return
	}
	var ports map[string]ironic.Port
	if state.namesPorts() {
		ports, _ = d.Site.Ironic.PortsForRefresh(ctx, node.UUID) // a user who may not read them sees the VIFs only
	}
	left := slices.DeleteFunc(state.VIFs.Elements(), func(element attr.Value) bool {
		vif := vifOf(element)
		return !slices.Contains(attached, vif.ID) || deploy.IsElsewhere(ports, vif)
	})
	of, _ := state.VIFs.ElementType(ctx).(types.ObjectType)
	for _, id := range deploy.OwnVIFs(node, attached) {
		if !slices.ContainsFunc(state.vifs(), func(vif deploy.VIF) bool { return vif.ID == id }) {
			vif := map[string]attr.Value{"id": types.StringValue(id), "mac": types.StringNull()}
			left = append(left, types.ObjectValueMust(of.AttrTypes, vif))
		}
	}
	list, problems := types.ListValue(state.VIFs.ElementType(ctx), left)
	diags.Append(problems...)
	state.VIFs = list
}
