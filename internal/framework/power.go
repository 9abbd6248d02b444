package framework

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// Values of power_state.
const (
	PowerOn  = "on"
	PowerOff = "off"
)

// PowerOffModeAttribute is power_off_mode, which needs API 1.27.
func PowerOffModeAttribute(description string) schema.StringAttribute {
	return schema.StringAttribute{
		Optional: true, MarkdownDescription: description,
		Validators: []validator.String{stringvalidator.OneOf(string(machine.OffHard), string(machine.OffSoft), string(machine.OffGraceful))},
	}
}

// WarnCut tells the user that power_off_mode = "graceful" has cut the power of a machine, and why; nothing if why is empty.
func WarnCut(diags *diag.Diagnostics, node *ironic.Node, why string) {
	if why != "" {
		diags.AddAttributeWarning(path.Root("power_state"), "Power was cut", fmt.Sprintf("Node %s was switched off without a shutdown: %s.", ironic.NodeLabel(node), why))
	}
}
