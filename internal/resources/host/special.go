package host

import (
	"context"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

// rootDeviceAttribute makes root_device, which is one setting: Ironic replaces the hints as a whole.
func rootDeviceAttribute() attribute {
	a := mapRow(row[types.Map]{
		name: "root_device", with: "/properties/" + rootDeviceKey,
		schema: texts("Hints that select the disk for deployments, such as `serial`, `wwn`, `size` (GiB) or `rotational`. The disk must "+
			"match all. Default: Ironic chooses. A change takes effect at the next deployment.",
			framework.RootDevice()),
		of: func(m *model) *types.Map { return &m.RootDevice },
	}, func(n *ironic.Node) map[string]string {
		hints, _ := n.Properties[rootDeviceKey].(map[string]any)
		return framework.Scalars(hints)
	})
	a.omit = func(m *model, before managed) {
		if !before.has("/properties/" + rootDeviceKey) {
			m.RootDevice = types.MapNull(types.StringType)
		}
	}
	a.encode = func(_ context.Context, config *model, s ironic.Settings) {
		if hints := framework.StringMap(config.RootDevice); len(hints) > 0 {
			s.SetKey("properties", rootDeviceKey, hints)
		}
	}
	return a
}

// traitsAttribute makes traits. Each trait is added and removed by a request of its own.
func traitsAttribute() attribute {
	a := row[types.Set]{
		name: "traits", with: "/traits", since: 37, gone: types.SetNull(types.StringType),
		schema: schema.SetAttribute{
			ElementType: types.StringType, Optional: true, Computed: true,
			MarkdownDescription: "Traits that allocations can ask for: standard ones such as `HW_CPU_X86_AVX2`, or your own, such as " +
				"`CUSTOM_NVME`.",
			Validators: framework.TraitValidators(),
		},
		of: func(m *model) *types.Set { return &m.Traits },
	}.attribute()
	a.read = func(_ context.Context, m *model, node *ironic.Node, everything bool) {
		wanted := framework.StringSet(m.Traits)
		switch held := framework.Intersection(wanted, node.Traits); {
		case everything:
			m.Traits = framework.SetValue(node.Traits)
		case m.Traits.IsUnknown():
			m.Traits = types.SetNull(types.StringType)
		case len(held) > 0:
			m.Traits = framework.SetValue(held)
		case wanted != nil:
			m.Traits = types.SetValueMust(types.StringType, nil)
		}
	}
	return a
}

// networkDataAttribute makes network_data, a JSON document that Ironic replaces as a whole.
func networkDataAttribute() attribute {
	a := row[framework.JSON]{
		name: "network_data", with: "/network_data", since: 66, gone: framework.JSONNull(),
		schema: schema.StringAttribute{
			Optional: true, Computed: true, CustomType: framework.JSONType{}, PlanModifiers: framework.KeepSpelling(),
			MarkdownDescription: "Network settings of Ironic's ramdisk, for sites without DHCP: a JSON object in OpenStack's format, " +
				"with `links`, `networks` and `services`. A change takes effect when the ramdisk boots next. Needs API 1.66.",
			Validators: []validator.String{framework.NetworkData{}},
		},
		of: func(m *model) *framework.JSON { return &m.NetworkData },
	}.attribute()
	a.encode = func(_ context.Context, config *model, s ironic.Settings) {
		if document := framework.JSONDocument(config.NetworkData); document != nil {
			s["network_data"] = document
		}
	}
	a.read = func(_ context.Context, m *model, node *ironic.Node, _ bool) {
		m.NetworkData = framework.RefreshJSON(m.NetworkData, node.NetworkData)
	}
	return a
}

func extraAttribute() attribute {
	a := row[types.Dynamic]{
		name: "extra", with: "/extra", gone: types.DynamicNull(),
		schema: schema.DynamicAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "Your own data, stored with the node: an object of JSON values, such as `{ rack = \"2\", unit = 1 }`.",
			Validators:          []validator.Dynamic{framework.JSONObjectValue{}},
		},
		of: func(m *model) *types.Dynamic { return &m.Extra },
	}.attribute()
	a.encode = func(_ context.Context, config *model, s ironic.Settings) {
		for key, value := range framework.JSONObject(config.Extra) {
			if value != nil {
				s.SetKey("extra", key, value)
			}
		}
	}
	a.read = func(ctx context.Context, m *model, node *ironic.Node, everything bool) {
		switch {
		case everything:
			extra := maps.Clone(node.Extra)
			maps.DeleteFunc(extra, func(key string, _ any) bool { return notes.OwnKey(key) })
			m.Extra = framework.DynamicObject(ctx, extra)
		case m.Extra.IsUnknown():
			m.Extra = types.DynamicNull()
		default:
			m.Extra = framework.RefreshObject(ctx, m.Extra, node.Extra)
		}
	}
	return a
}

// targetStateAttribute makes target_state. Ironic does not store it: after an import it follows from the provision state.
func targetStateAttribute() attribute {
	a := row[types.String]{
		name: "target_state", later: true,
		schema: text("How far Ironic prepares the machine: `enroll`, `manageable` (the default) or `available`. **On the way to "+
			"`available`, Ironic cleans the machine.** See [Life cycle](#life-cycle).",
			stringvalidator.OneOf(hosts.Targets()...)),
		of: func(m *model) *types.String { return &m.TargetState },
	}.attribute()
	keeps := a.plan
	a.plan = func(ctx context.Context, m, config, state *model, before managed) {
		keeps(ctx, m, config, state, before)
		if state != nil && config.TargetState.IsNull() && !config.BMC.IsNull() {
			m.TargetState = types.StringValue(hosts.TargetWithBMC(state.TargetState.ValueString(),
				ironic.State(state.ProvisionState.ValueString())))
		}
	}
	a.read = func(_ context.Context, m *model, node *ironic.Node, everything bool) {
		if everything || m.TargetState.IsNull() || m.TargetState.IsUnknown() {
			m.TargetState = types.StringValue(hosts.TargetOf(node))
		}
	}
	return a
}

const bootModeKey = "boot_mode"

func bootModeAttribute() attribute {
	r := row[types.String]{
		name: bootModeKey, since: api.VersionBootMode,
		schema: schema.StringAttribute{
			Optional: true, Validators: []validator.String{stringvalidator.OneOf(string(ironic.BootUEFI), string(ironic.BootBIOS))},
			MarkdownDescription: "Boot mode of the firmware: `uefi` or `bios`. **A change restarts the machine** if its BMC needs that; " +
				"a deployed host keeps its mode until it is free. Deployments choose their mode by the capability `boot_mode`. Needs API " +
				"1.76. Default: not managed.",
		},
		of:   func(m *model) *types.String { return &m.BootMode },
		node: func(n *ironic.Node) types.String { return framework.OrNull(n.BootMode) },
	}
	return bootAttribute(r, types.StringNull())
}

func secureBootAttribute() attribute {
	r := row[types.Bool]{
		name: "secure_boot", since: api.VersionBootMode,
		schema: schema.BoolAttribute{
			Optional: true, MarkdownDescription: "Whether the firmware starts only signed code. **A change restarts the machine** if its " +
				"BMC needs that; a deployed host keeps its setting until it is free. Needs UEFI and API 1.76. Default: not managed.",
		},
		of:   func(m *model) *types.Bool { return &m.SecureBoot },
		node: func(n *ironic.Node) types.Bool { return types.BoolPointerValue(n.SecureBoot) },
	}
	return bootAttribute(r, types.BoolNull())
}

// bootAttribute makes an attribute that is set by a request of its own. The state has it only if it is configured. While Ironic does not
// know the value, or while a deployment may have changed it, the state keeps the configured value.
func bootAttribute[T attr.Value](r row[T], null T) attribute {
	a := r.attribute()
	a.plan = nil
	a.read = func(_ context.Context, m *model, node *ironic.Node, everything bool) {
		value := r.of(m)
		switch actual := r.node(node); {
		case everything, (*value).IsUnknown():
			*value = null
		case !(*value).IsNull() && !actual.IsNull() && hosts.KeepsBootSettings(node):
			*value = actual
		}
	}
	return a
}

// consoleAttribute makes console, which is set by a request of its own. The state has it only if it is configured.
func consoleAttribute() attribute {
	r := row[types.String]{
		name: "console",
		schema: schema.StringAttribute{
			Optional: true, Validators: []validator.String{stringvalidator.OneOf(hosts.ConsoleOn, hosts.ConsoleOff)},
			MarkdownDescription: "[Console](../guides/consoles.md): `enabled`, not for graphical ones, or `disabled`. A change touches " +
				"nothing on the machine. Default: not managed.",
		},
		of: func(m *model) *types.String { return &m.Console },
		node: func(n *ironic.Node) types.String {
			if n.ConsoleEnabled {
				return types.StringValue(hosts.ConsoleOn)
			}
			return types.StringValue(hosts.ConsoleOff)
		},
	}
	a := r.attribute()
	a.plan = nil
	a.read = func(_ context.Context, m *model, node *ironic.Node, everything bool) {
		switch {
		case everything, m.Console.IsUnknown():
			m.Console = types.StringNull()
		case !m.Console.IsNull():
			m.Console = r.node(node)
		}
	}
	return a
}

func (m *model) bootSettings() machine.BootSettings {
	return machine.BootSettings{Mode: ironic.BootMode(m.BootMode.ValueString()), Secure: m.SecureBoot.ValueBoolPointer()}
}

func (m *model) validateBoot(diags *diag.Diagnostics) {
	if m.BootMode.ValueString() == string(ironic.BootBIOS) && m.SecureBoot.ValueBool() {
		diags.AddAttributeError(path.Root("secure_boot"), "Secure boot needs UEFI",
			"boot_mode = \"bios\" has no secure boot. Set boot_mode = \"uefi\", or secure_boot = false.")
	}
	if deployed, given := framework.StringMap(m.Capabilities)[bootModeKey]; given && framework.IsSet(m.BootMode) &&
		deployed != m.BootMode.ValueString() {
		diags.AddAttributeError(path.Root("capabilities").AtMapKey(bootModeKey), "Boot modes differ",
			fmt.Sprintf("boot_mode is %q, and a deployment would change it to %q, as capabilities says. Set both to the same mode.",
				m.BootMode.ValueString(), deployed))
	}
}

// powerStateAttribute makes power_state. It stays as configured while Ironic does not know the power state of the machine, and while its
// record is being restored.
func powerStateAttribute() attribute {
	a := row[types.String]{
		name: "power_state", later: true,
		schema: text("`on` or `off`. Default: not managed. **A "+
			"change switches the machine.** While the node is deployed, its `metal_deployment` controls the power, and this attribute "+
			"has no effect.",
			stringvalidator.OneOf(framework.PowerOn, framework.PowerOff)),
		of: func(m *model) *types.String { return &m.PowerState },
	}.attribute()
	a.read = func(_ context.Context, m *model, node *ironic.Node, _ bool) {
		if machine.ByAgent(node) { // Ironic's power state of such a machine is not real
			m.PowerState = types.StringNull()
			return
		}
		if m.PowerState.IsUnknown() || hosts.ShowsPower(node) && (!notes.IsRestoring(node) || !framework.IsSet(m.PowerState)) {
			m.PowerState = framework.OrNull(machine.Power(node))
		}
	}
	a.omit = func(m *model, before managed) {
		m.PowerState = types.StringNull()
		for _, applied := range before.below("/power_state") {
			m.PowerState = types.StringValue(applied)
		}
	}
	return a
}

// powerOffModeAttribute makes power_off_mode, which Ironic does not store.
func powerOffModeAttribute() attribute {
	a := row[types.String]{
		name: "power_off_mode", since: api.VersionSoftPower,
		schema: framework.PowerOffModeAttribute("How the machine is switched off: `hard` (default) cuts the power; `soft` asks the " +
			"operating system, and fails if the machine stays on; `graceful` asks, and cuts the power after 3 minutes."),
		of: func(m *model) *types.String { return &m.PowerOffMode },
	}.attribute()
	a.plan = nil
	return a
}

// powerManagedAttribute makes power_managed, which settle plans, because it follows from several attributes.
func powerManagedAttribute() attribute {
	a := row[types.Bool]{
		name: "power_managed",
		schema: schema.BoolAttribute{
			Computed: true, MarkdownDescription: "Whether Ironic can switch the machine on and off. `false` if it does not know the BMC, " +
				"and with `power_control`.",
		},
		of:   func(m *model) *types.Bool { return &m.PowerManaged },
		node: func(n *ironic.Node) types.Bool { return types.BoolValue(machine.PowerManaged(n)) },
	}.attribute()
	a.plan = nil
	return a
}
