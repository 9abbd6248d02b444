package host

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/enroll"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/marks"
)

// driverAttribute makes driver, which is never removed, because a node needs a driver. With bmc, it follows from the address.
func driverAttribute() attribute {
	r := row[types.String]{
		name: "driver", path: "/driver", later: true,
		schema: text("Required unless `bmc` or `power_control` is set, from which it follows. Ironic driver, such as `redfish`. A change resets the `hardware_interfaces` that are not set.",
			stringvalidator.LengthAtLeast(1)),
		of:   func(m *model) *types.String { return &m.Driver },
		node: func(n *ironic.Node) types.String { return framework.OrNull(n.Driver) },
	}
	a := r.attribute()
	a.plan = func(_ context.Context, m, config, state *model, _ managed) {
		switch {
		case config.byAgent():
			m.Driver = types.StringValue(machine.AgentDriver)
		case config.Driver.IsNull() && config.BMC.IsNull() && state != nil:
			m.Driver = state.Driver
		}
	}
	return a
}

// driverInfoAttribute makes driver_info. bmc and driver_info_wo set other keys of the same map, and Ironic masks its secrets.
func driverInfoAttribute() attribute {
	r := row[types.Map]{
		name: "driver_info", path: "/driver_info",
		schema: schema.MapAttribute{
			ElementType: types.StringType, Optional: true, Computed: true,
			MarkdownDescription: "Settings of the driver, such as `redfish_address` or `deploy_kernel`. Plans and state show them, so the provider refuses secrets here: use `driver_info_wo`.",
			Validators:          framework.KeyValidators(),
		},
		of: func(m *model) *types.Map { return &m.DriverInfo },
	}
	a := mapRow(r, nil)
	a.read = func(_ context.Context, m *model, node *ironic.Node, everything bool) {
		if node.Hidden.DriverInfo {
			if m.DriverInfo.IsUnknown() {
				m.DriverInfo = types.MapNull(types.StringType)
			}
			return
		}
		readable := framework.Scalars(node.DriverInfo)
		maps.DeleteFunc(readable, func(key, value string) bool { return value == ironic.Masked || key == machine.KeyRunbook })
		switch {
		case everything:
			m.DriverInfo = framework.MapValue(readable)
			return
		case m.DriverInfo.IsUnknown():
			m.DriverInfo = types.MapNull(types.StringType)
		}
		for key, value := range framework.StringMap(m.DriverInfo) {
			if node.DriverInfo[key] == ironic.Masked { // assume that it is unchanged
				readable[key] = value
			}
		}
		m.DriverInfo = framework.RefreshMap(m.DriverInfo, readable)
	}
	a.plan = func(ctx context.Context, m, config, state *model, before managed) {
		switch {
		case !config.DriverInfo.IsNull():
		case state == nil, state.DriverInfo.IsNull():
			m.DriverInfo = types.MapNull(types.StringType)
		case !framework.FullyKnown(ctx, config.BMC):
			m.DriverInfo = types.MapUnknown(types.StringType)
		default:
			m.DriverInfo = state.remainingInfo(ctx, config, before)
		}
	}
	return a
}

// remainingInfo returns what is left of the driver_info of a state under a configuration without driver_info: all that an import has found, with
// the values of bmc, and nothing that the prior configuration has set.
func (m *model) remainingInfo(ctx context.Context, config *model, before managed) types.Map {
	wanted := ironic.Settings{}
	config.encodeBMC(ctx, wanted)
	left := framework.StringMap(m.DriverInfo)
	for key := range left {
		switch value, set := wanted.Keys("driver_info")[key]; {
		case set:
			left[key] = fmt.Sprint(value)
		case slices.Contains(before, "/driver_info/"+key):
			delete(left, key)
		}
	}
	if len(left) == 0 {
		return types.MapNull(types.StringType)
	}
	return framework.MapValue(left)
}

// cleaningRunbookAttribute makes cleaning_runbook, which is a key of driver_info.
func cleaningRunbookAttribute() attribute {
	const key = "/driver_info/" + machine.KeyRunbook
	a := row[types.String]{
		name: machine.KeyRunbook, with: key, since: api.VersionRunbooks,
		schema: text("Runbook for [cleanings](../guides/erasure.md#clean-by-a-runbook): name or UUID. Needs API 1.92.", stringvalidator.LengthAtLeast(1)),
		of:     func(m *model) *types.String { return &m.CleaningRunbook },
	}.attribute()
	a.encode = func(_ context.Context, config *model, s ironic.Settings) {
		if framework.IsSet(config.CleaningRunbook) {
			s.SetKey("driver_info", machine.KeyRunbook, config.CleaningRunbook.ValueString())
		}
	}
	a.read = func(_ context.Context, m *model, node *ironic.Node, _ bool) {
		switch name, _ := node.DriverInfo[machine.KeyRunbook].(string); {
		case !node.Hidden.DriverInfo:
			m.CleaningRunbook = framework.OrNull(name)
		case m.CleaningRunbook.IsUnknown():
			m.CleaningRunbook = types.StringNull()
		}
	}
	a.omit = func(m *model, before managed) {
		if !before.has(key) {
			m.CleaningRunbook = types.StringNull()
		}
	}
	return a
}

// validateRunbook refuses a cleaning runbook in the other attributes that are parts of driver_info.
func (m *model) validateRunbook(diags *diag.Diagnostics) {
	for name, info := range map[string]types.Map{"driver_info": m.DriverInfo, "driver_info_wo": m.DriverInfoWO} {
		if _, set := framework.StringMap(info)[machine.KeyRunbook]; set {
			diags.AddAttributeError(path.Root(name).AtMapKey(machine.KeyRunbook), "Setting has an attribute of its own", "Set cleaning_runbook of the host instead: the plan then checks the runbook.")
		}
	}
}

// rootDeviceAttribute makes root_device, which is one setting: Ironic replaces the hints as a whole.
func rootDeviceAttribute() attribute {
	a := mapRow(row[types.Map]{
		name: "root_device", with: "/properties/" + rootDeviceKey,
		schema: texts("Hints that select the disk for deployments, such as `serial`, `wwn`, `size` (GiB) or `rotational`. The disk must match all. Default: Ironic chooses. A change takes effect at the next deployment.",
			framework.KeyValidators()...),
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
			MarkdownDescription: "Traits that allocations can ask for: standard ones such as `HW_CPU_X86_AVX2`, or your own, such as `CUSTOM_NVME`.",
			Validators:          framework.TraitValidators(),
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
	a := row[jsontypes.Normalized]{
		name: "network_data", with: "/network_data", since: 66, gone: jsontypes.NewNormalizedNull(),
		schema: schema.StringAttribute{
			Optional: true, Computed: true, CustomType: jsontypes.NormalizedType{},
			MarkdownDescription: "Network settings of Ironic's ramdisk, for sites without DHCP: a JSON object in OpenStack's format, with `links`, `networks` and `services`. " +
				"A change takes effect when the ramdisk boots next. Needs API 1.66.",
			Validators: []validator.String{framework.NetworkData{}},
		},
		of: func(m *model) *jsontypes.Normalized { return &m.NetworkData },
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
			maps.DeleteFunc(extra, func(key string, _ any) bool { return marks.OwnKey(key) })
			m.Extra = framework.DynamicObject(ctx, extra)
		case m.Extra.IsUnknown():
			m.Extra = types.DynamicNull()
		default:
			m.Extra = framework.RefreshObject(ctx, m.Extra, node.Extra)
		}
	}
	return a
}

var interfacesType = func() map[string]attr.Type {
	kinds := map[string]attr.Type{}
	for _, kind := range ironic.HardwareInterfaces {
		kinds[kind] = types.StringType
	}
	return kinds
}()

// interfacesAttribute makes hardware_interfaces. The state has only the configured interfaces, so none after an import.
func interfacesAttribute() attribute {
	const name = "hardware_interfaces"
	nested := map[string]schema.Attribute{}
	for _, kind := range ironic.HardwareInterfaces {
		description := fmt.Sprintf("The %s interface.", kind)
		if kind == "firmware" {
			description += " Needs API 1.86."
		}
		nested[kind] = schema.StringAttribute{Optional: true, MarkdownDescription: description}
	}
	return attribute{
		name: name,
		schema: schema.SingleNestedAttribute{
			Optional: true, Attributes: nested,
			MarkdownDescription: "Hardware interfaces, such as `deploy = \"direct\"` or `boot = \"ipxe\"`. Each boot interface has [its own requirements](../guides/network-boot.md#boot-interfaces). Default: the driver's, and those that the scheme of `bmc.address` implies. " +
				"The data source `metal_host` shows all. A change takes effect at the next operation.",
		},
		feature: func(config *model) framework.Feature {
			return framework.Feature{Used: config.interfaces()["firmware"] != "", Since: 86, Name: path.Root(name).AtName("firmware")}
		},
		encode: func(_ context.Context, config *model, s ironic.Settings) {
			for kind, value := range config.interfaces() {
				s[kind+"_interface"] = value
			}
		},
		read: func(_ context.Context, m *model, node *ironic.Node, _ bool) {
			if !framework.IsSet(m.Interfaces) {
				m.Interfaces = types.ObjectNull(interfacesType)
				return
			}
			known, values := m.interfaces(), map[string]attr.Value{}
			for kind, value := range ironic.InterfacesOf(node) {
				values[kind] = types.StringNull()
				switch configured := known[kind]; {
				case kind == "deploy" && configured == ironic.Autodetect && ironic.HidesAutodetect(node):
					values[kind] = types.StringValue(configured)
				case configured != "":
					values[kind] = framework.OrNull(value)
				}
			}
			m.Interfaces = types.ObjectValueMust(interfacesType, values)
		},
		keep: func(_ context.Context, m, planned *model) { framework.Keep(&m.Interfaces, planned.Interfaces) },
	}
}

// targetStateAttribute makes target_state. Ironic does not store it: after an import it follows from the provision state.
func targetStateAttribute() attribute {
	a := row[types.String]{
		name: "target_state", later: true,
		schema: text("How far Ironic prepares the machine: `enroll`, `manageable` (the default) or `available`. **On the way to `available`, Ironic cleans the machine.** See [Life cycle](#life-cycle).",
			stringvalidator.OneOf(enroll.Targets()...)),
		of: func(m *model) *types.String { return &m.TargetState },
	}.attribute()
	keeps := a.plan
	a.plan = func(ctx context.Context, m, config, state *model, before managed) {
		keeps(ctx, m, config, state, before)
		if state != nil && config.TargetState.IsNull() && !config.BMC.IsNull() {
			m.TargetState = types.StringValue(enroll.TargetWithBMC(state.TargetState.ValueString(), ironic.State(state.ProvisionState.ValueString())))
		}
	}
	a.read = func(_ context.Context, m *model, node *ironic.Node, everything bool) {
		if everything || m.TargetState.IsNull() || m.TargetState.IsUnknown() {
			m.TargetState = types.StringValue(enroll.TargetOf(node))
		}
	}
	return a
}
