package host

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// powerByAgent is the value of power_control.
const powerByAgent = "agent"

// powerControlAttribute makes power_control, from which driver, power and network interface follow.
func powerControlAttribute() attribute {
	return attribute{
		name: "power_control",
		schema: schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "Required unless `bmc` or `driver` is set. The only value is `agent`: Ironic has no BMC credentials, and prepares the machine through the Ironic agent on it. " +
				"Needs `[deploy]fast_track`. See [Discovery](../guides/discovery.md).",
			Validators: []validator.String{stringvalidator.OneOf(powerByAgent), stringvalidator.ConflictsWith(path.MatchRoot("bmc"))},
		},
		encode: func(_ context.Context, config *model, s ironic.Settings) {
			if config.byAgent() {
				maps.Copy(s, machine.AgentSettings())
			}
		},
		read: func(_ context.Context, m *model, node *ironic.Node, everything bool) {
			switch agent := node.Driver == machine.AgentDriver && machine.ByAgent(node); {
			case everything && agent:
				m.PowerControl = types.StringValue(powerByAgent)
			case !agent:
				m.PowerControl = types.StringNull()
			}
		},
		keep: func(_ context.Context, m, planned *model) { framework.Keep(&m.PowerControl, planned.PowerControl) },
	}
}

// byAgent reports whether Ironic prepares the machine through its agent.
func (m *model) byAgent() bool { return m.PowerControl.ValueString() == powerByAgent }

// validateAgent refuses what Ironic cannot do through its agent.
func (m *model) validateAgent(diags *diag.Diagnostics) {
	if !m.byAgent() {
		return
	}
	if !m.PowerState.IsNull() {
		diags.AddAttributeError(path.Root("power_state"), "Power needs BMC credentials", "With power_control = \"agent\", Ironic can neither switch the machine on nor off. Remove power_state, "+
			"or give the host a bmc with address, username and password_wo in place of power_control.")
	}
	settings := machine.AgentSettings()
	for kind, chosen := range m.interfaces() {
		if value := settings.Text(kind + "_interface"); value != "" && chosen != value {
			at := interfacesPath(kind)
			diags.AddAttributeError(at, "Interface does not fit power_control", "power_control = \"agent\" needs the "+kind+" interface "+value+". Remove it here.")
		}
	}
}

// interfacesPath returns the path of a hardware interface.
func interfacesPath(kind string) path.Path { return path.Root("hardware_interfaces").AtName(kind) }
