package host

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/disks"
)

// driverAttribute makes driver, which is never removed, because a node needs a driver. With bmc, it follows from the address.
func driverAttribute() attribute {
	r := row[types.String]{
		name: "driver", path: "/driver", later: true,
		schema: text("Required unless `bmc` or `power_control` is set, from which it follows. Ironic driver, such as `redfish`. A change "+
			"resets the `hardware_interfaces` that are not set.",
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
			MarkdownDescription: "Settings of the driver, such as `redfish_address` or `deploy_kernel`. Plans and state show them, so " +
				"the provider refuses secrets here: use `driver_info_wo`.",
			Validators: append(framework.KeyValidators(), mapvalidator.ValueStringsAre(framework.Trimmed)),
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

// remainingInfo returns what is left of the driver_info of a state under a configuration without driver_info: all that an import has found,
// with the values of bmc, and nothing that the prior configuration has set.
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
		schema: text("Runbook for [cleanings](../guides/erasure.md#clean-by-a-runbook): name or UUID. Needs API 1.92.",
			stringvalidator.LengthAtLeast(1)),
		of: func(m *model) *types.String { return &m.CleaningRunbook },
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

// ownAttributes are keys that are attributes of their own: Ironic or its agent reads more than a text there, or the plan checks the value.
var ownAttributes = map[string][]string{
	"properties":  {capabilitiesKey, rootDeviceKey, disks.KeySkip},
	"driver_info": {machine.KeyRunbook}, "driver_info_wo": {machine.KeyRunbook},
}

// noTexts are keys in which Ironic or its agent reads something that no text is (reference/ironic.md#keys-that-are-no-texts).
var noTexts = map[string]string{
	"inject_files": "Ironic's agent reads a list of files there. Give it to a step of the deployment: deploy_steps = [{ interface = " +
		"\"deploy\", step = \"inject_files\", priority = 50, args = jsonencode({ files = [...] }) }].",
	"agent_burnin_fio_network_config": "Ironic's agent reads an object there. Set it with another client of Ironic.",
}

// numbers are keys of properties in which Ironic reads numbers.
var numbers = []string{"cpus", "local_gb", "memory_mb"}

// imageKeys are keys of driver_info with images that Ironic boots.
var imageKeys = []string{
	"bootloader", "deploy_iso", "deploy_kernel", "deploy_ramdisk", "rescue_iso", "rescue_kernel", "rescue_ramdisk",
}

// anyTextIsTrue are keys of driver_info in which every text counts as true.
var anyTextIsTrue = []string{"agent_burnin_fio_disk_smart_test", "config_via_floppy", "config_via_removable"}

func (m *model) validateKeys(diags *diag.Diagnostics) {
	burnIn, _ := m.Qualification.Attributes()["parameters"].(framework.JSON)
	temporary := framework.JSONDocument(burnIn)
	for name, values := range map[string]types.Map{
		"properties": m.Properties, "driver_info": m.DriverInfo, "driver_info_wo": m.DriverInfoWO,
	} {
		for _, key := range ownAttributes[name] {
			if _, set := values.Elements()[key]; set {
				diags.AddAttributeError(path.Root(name).AtMapKey(key), "Setting has an attribute of its own",
					fmt.Sprintf("Set %s of the host instead: %s takes texts only, and the plan checks %s.", key, name, key))
			}
		}
		for key, text := range framework.StringMap(values) {
			if _, twice := temporary[key]; twice && name != "properties" {
				diags.AddAttributeError(path.Root(name).AtMapKey(key), "Setting has an attribute of its own",
					fmt.Sprintf("qualification.parameters sets %s while its steps run, and removes it afterwards. Remove it here.", key))
			}
			if name != "properties" && slices.Contains(imageKeys, key) {
				framework.ImageReference.Check(path.Root(name).AtMapKey(key), text, diags)
			}
			if _, err := strconv.ParseUint(text, 10, 31); err != nil && name == "properties" && slices.Contains(numbers, key) {
				diags.AddAttributeError(path.Root(name).AtMapKey(key), "Not a number", fmt.Sprintf("%q must be a whole number.", text))
			}
			why := noTexts[key]
			if is, err := strconv.ParseBool(text); err == nil && !is && slices.Contains(anyTextIsTrue, key) {
				why = fmt.Sprintf("Ironic takes every text in %s for true, also %q. Remove it.", key, text)
			}
			if why != "" {
				diags.AddAttributeError(path.Root(name).AtMapKey(key), "Setting is not a text", why)
			}
		}
	}
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
		description := ""
		if kind == "firmware" {
			description = "Needs API 1.86."
		}
		nested[kind] = schema.StringAttribute{Optional: true, MarkdownDescription: description}
	}
	return attribute{
		name: name,
		schema: schema.SingleNestedAttribute{
			Optional: true, Attributes: nested,
			MarkdownDescription: "Hardware interfaces, such as `deploy = \"direct\"` or `boot = \"ipxe\"`. Each boot interface has [its " +
				"own requirements](../guides/network-boot.md#boot-interfaces). Default: the driver's, and those that the scheme of " +
				"`bmc.address` implies. A change takes effect at the next operation.",
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

// bootInterfaceAttribute makes boot_interface. A scheme of a BMC address may change it, and hardware_interfaces has only what is
// configured.
func bootInterfaceAttribute() attribute {
	return attribute{
		name: "boot_interface",
		schema: shown("Boot interface of the node: that of `hardware_interfaces`, of the scheme of `bmc.address`, or of the driver. " +
			"**The plan shows what changes.**"),
		read: func(_ context.Context, m *model, node *ironic.Node, _ bool) {
			m.BootInterface = framework.OrNull(node.BootInterface)
		},
		keep: func(_ context.Context, m, planned *model) { framework.Keep(&m.BootInterface, planned.BootInterface) },
		plan: func(_ context.Context, m, _, state *model, _ managed) {
			if state != nil {
				m.BootInterface = state.BootInterface
			}
		},
	}
}

// hardwareInterface returns what Terraform knows of the interface of a kind under a configuration. state is nil for a new host.
func (m *model) hardwareInterface(ctx context.Context, config, state *model, kind string) (is hosts.Interface) {
	name := config.plannedInterface(ctx, kind)
	is.Name = decide.Value[string]{V: name, Set: name != ""}
	if own := config.Interfaces.Attributes()[kind]; m.Driver.IsUnknown() || config.Interfaces.IsUnknown() || own != nil &&
		own.IsUnknown() || name == "" && config.hidesAddress(ctx) {
		is.Name = decide.Unknown[string]()
	}
	is.Was = state != nil && state.plannedInterface(ctx, kind) != ""
	return is
}

func (m *model) hidesAddress(ctx context.Context) bool {
	block := m.bmc(ctx)
	return m.BMC.IsUnknown() || block != nil && block.Address.IsUnknown()
}

// movesInterfaces reports whether the driver or hardware interfaces of a wish differ from those of a state, or may: the scheme or another
// client has changed them.
func (m *model) movesInterfaces(ctx context.Context, wanted map[string]hosts.Interface, state *model) bool {
	for kind, is := range wanted {
		if is.Name.Unknown || m.plannedInterface(ctx, kind) != state.plannedInterface(ctx, kind) {
			return true
		}
	}
	boot := wanted["boot"].Name
	return !m.Driver.Equal(state.Driver) || boot.Set && framework.IsSet(state.BootInterface) && boot.V != state.BootInterface.ValueString()
}

// plannedInterface returns the hardware interface of a kind that a configuration sets, also by the scheme of its BMC address; "" if it sets
// none.
func (m *model) plannedInterface(ctx context.Context, kind string) string {
	if name := m.interfaces()[kind]; name != "" {
		return name
	}
	_, bmc := m.scheme(ctx)
	if bmc == nil {
		return ""
	}
	return bmc.Interfaces[kind]
}
