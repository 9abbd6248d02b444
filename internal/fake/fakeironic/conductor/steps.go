package conductor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/machine"
)

// breakDown puts the node into maintenance, as the conductor does after a step that failed while it ran.
func (n *Node) breakDown(faultName, text string) {
	n.Put("maintenance", true)
	n.Put("fault", faultName)
	n.Put("maintenance_reason", text)
}

// stepDefect returns how a clean step fails, "" if it succeeds, and whether it fails while it runs.
func (c *Conductor) stepDefect(n *Node, step map[string]any) (text string, executing bool) {
	kind, name := api.StepName(step)
	if kind == "bios" && name == "apply_configuration" {
		settings, given := api.Object(step["args"])["settings"].([]any)
		if !given {
			return fmt.Sprintf("Cannot clean node %s: clean step %s is missing these required arguments: settings (List of BIOS "+
				"settings, each item needs to contain a dictionary with name/value pairs)", n.Str("uuid"), c.missingArguments(step)), false
		}
		for _, item := range settings {
			if _, named := api.Object(item)["name"]; !named {
				return fmt.Sprintf("Node %s failed step %s: 'name'", n.Str("uuid"), pyStep(step)), true
			}
		}
	}
	if !slices.Contains(n.steps(kind), name) {
		return c.unsupported(n, []any{step}), false
	}
	reason := n.hardwareDefect(kind, name, step)
	return reason, reason != ""
}

// lacksSteps begins what unsupported says.
const lacksSteps = "Cannot clean node "

// unsupported says which steps the node does not have, "" if it has all.
func (c *Conductor) unsupported(n *Node, steps []any) string {
	var refused []string
	for _, item := range steps {
		kind, name := api.StepName(api.Object(item))
		if skipped := c.leavesOut(name) || c.Skips != nil && c.Skips(kind+"."+name); !skipped && !slices.Contains(n.steps(kind), name) {
			refused = append(refused, "node does not support this clean step: "+pyStep(api.Object(item)))
		}
	}
	if len(refused) == 0 {
		return ""
	}
	return lacksSteps + n.Str("uuid") + ": " + strings.Join(refused, "; ")
}

// steps returns the steps of an interface of the node. The interface fake has no RAID steps.
func (n *Node) steps(kind string) []string {
	if strings.HasPrefix(n.Uses(kind), "no-") {
		return nil
	}
	switch kind {
	case "bios":
		return []string{"apply_configuration", "factory_reset"}
	case "raid":
		if n.Uses("raid") != "fake" {
			return []string{"create_configuration", "delete_configuration"}
		}
	case "vendor":
		return []string{"log_passthrough"}
	case "deploy":
		if !inert(n.Uses("deploy")) {
			return []string{
				"erase_devices", "erase_devices_metadata", "erase_devices_express",
				"burnin_cpu", "burnin_memory", "burnin_disk", "burnin_network", "burnin_gpu",
			}
		}
	case "firmware":
		return []string{"update"}
	}
	return nil
}

// missingArguments formats a step that lacks arguments as Python's repr does. 39 has added the defaults by then.
func (c *Conductor) missingArguments(step map[string]any) string {
	if c.legacy() {
		return pyStep(step)
	}
	return strings.TrimSuffix(pyStep(step), "}") + ", 'abortable': False, 'priority': 0}"
}

// pyStep formats a step as Python's repr does.
func pyStep(step map[string]any) string {
	kind, name := api.StepName(step)
	if args, given := step["args"]; given {
		return fmt.Sprintf("{'interface': '%s', 'step': '%s', 'args': %s, 'abortable': False, 'priority': 0}", kind, name, api.PyRepr(args))
	}
	return fmt.Sprintf("{'interface': '%s', 'step': '%s'}", kind, name)
}

// real reports whether an interface of the node drives hardware.
func (n *Node) real(kind string) bool {
	return n.Uses(kind) != "fake" && !strings.HasPrefix(n.Uses(kind), "no-")
}

// BIOSSettings returns the BIOS settings of the machine. Machines with a BMC have some until they are set.
func (n *Node) BIOSSettings() map[string]machine.BIOSSetting {
	if n.Machine.BIOS == nil {
		n.Machine.BIOS = map[string]machine.BIOSSetting{}
		if n.real("bios") {
			for _, setting := range machine.SampleBIOS {
				n.Machine.BIOS[setting.Name] = setting
			}
		}
	}
	return n.Machine.BIOS
}

// Components returns the firmware components of the machine. Machines with a BMC have some until they are set.
func (n *Node) Components() map[string]*machine.Component {
	if n.Machine.Firmware == nil {
		n.Machine.Firmware = map[string]*machine.Component{}
		if n.real("firmware") {
			n.Machine.Firmware["bios"] = &machine.Component{Initial: "2.18.0", Current: "2.18.0"}
			n.Machine.Firmware["bmc"] = &machine.Component{Initial: "7.00.00", Current: "7.00.00", Model: "Example BMC"}
			n.Machine.Firmware["nic:NIC0001"] = &machine.Component{
				Initial: "22.5.7", Current: "22.5.7", Vendor: "Example Networks",
				Model: "E810", Serial: "NIC0001",
			}
		}
	}
	return n.Machine.Firmware
}

// serviceSteps are the steps of hardware that Ironic 39 has in a service; those of the ramdisk are its own
// (reference/ironic.md#deploy-templates-and-runbooks).
var serviceSteps = []string{
	"bios.apply_configuration", "bios.factory_reset", "firmware.update", "raid.delete_configuration", "vendor.log_passthrough",
	"deploy.erase_devices", "deploy.erase_devices_metadata", "deploy.erase_devices_express",
}

// classes are the names of the interfaces fake (ironic/drivers/modules/fake.py of 39.0). Others are called alike.
var classes = map[string]string{
	"bios": "FakeBIOS", "deploy": "FakeDeploy", "firmware": "FakeFirmware", "management": "FakeManagement", "power": "FakePower",
	"raid": "FakeRAID", "vendor": "FakeVendorB",
}

// runSteps plans the steps of a manual cleaning or a service. run executes those before the first that fails. defect says how that
// one fails, and executing whether it had begun.
func (c *Conductor) runSteps(n *Node, steps []any, service bool) (run func(n *Node), defect string, executing bool) {
	var effects []func(n *Node)
	run = func(n *Node) {
		for _, effect := range effects {
			effect(n)
		}
	}
	if refused := c.unsupported(n, steps); refused != "" && !service {
		return run, refused, false
	}
	for _, item := range steps {
		step := api.Object(item)
		kind, name := api.StepName(step)
		if c.leavesOut(name) || c.Skips != nil && c.Skips(kind+"."+name) {
			continue
		}
		if defect, executing = c.stepDefect(n, step); service &&
			(defect != "" || n.real(kind) && !slices.Contains(serviceSteps, kind+"."+name)) {
			return run, fmt.Sprintf("Node %s failed step {'interface': '%s', 'step': '%s'}: '%s' object has no attribute '%s'",
				n.Str("uuid"), kind, name, classes[kind], name), true
		}
		if defect != "" {
			return run, defect, executing
		}
		if effect := c.effect(kind, name, api.Object(api.Clone(step["args"]))); effect != nil {
			effects = append(effects, effect)
		}
	}
	return run, "", false
}

// leavesOut reports whether a step is one that the conductor itself would take: Ironic 39.0 accepts it and forgets it (_validate_user_steps
// in ironic/conductor/steps.py).
func (c *Conductor) leavesOut(name string) bool {
	return !c.legacy() && slices.Contains([]string{"hold", "wait", "power_on", "power_off", "reboot"}, name)
}

// effect returns what a step does to a machine; nil if nothing.
func (c *Conductor) effect(kind, name string, args map[string]any) func(n *Node) {
	list, _ := args["settings"].([]any)
	switch kind + "." + name {
	case "bios.apply_configuration":
		return func(n *Node) { n.applyBIOS(list) }
	case "bios.factory_reset":
		return func(n *Node) { n.Machine.BIOS = nil }
	case "raid.delete_configuration":
		return func(n *Node) {
			n.Put("raid_config", map[string]any{"logical_disks": []any{}})
			c.changeVolumes(n, name)
		}
	case "raid.create_configuration":
		return func(n *Node) {
			n.createVolumes()
			c.changeVolumes(n, name)
		}
	case "deploy.erase_devices", "deploy.erase_devices_metadata", "deploy.erase_devices_express":
		return c.eraseDisks
	case "deploy.burnin_disk": // it writes to all disks, whatever skip_block_devices says
		return func(n *Node) { c.tellWrites(n, "erased", machine.Erase(c.DisksOf(n), nil)...) }
	case "firmware.update":
		return func(n *Node) { n.updateFirmware(list) }
	}
	return nil
}

// applyBIOS changes BIOS settings. The interface fake has no machine: it keeps exactly the settings of the last step.
func (n *Node) applyBIOS(list []any) {
	before := n.BIOSSettings()
	if !n.real("bios") {
		before = maps.Clone(before)
		for name, setting := range n.Machine.BIOS {
			if setting.Type == "" {
				delete(before, name)
			}
		}
	}
	for _, item := range list {
		name := api.Text(api.Object(item)["name"])
		setting := before[name]
		setting.Name, setting.Value = name, api.PyText(api.Object(item)["value"])
		before[name] = setting
	}
	n.Machine.BIOS = before
}

// createVolumes adds the volumes of target_raid_config. A root volume changes the properties of the node, as in Ironic.
func (n *Node) createVolumes() {
	wanted, _ := api.Object(api.Clone(n.Fields["target_raid_config"]))["logical_disks"].([]any)
	have, _ := api.Object(api.Clone(n.Fields["raid_config"]))["logical_disks"].([]any)
	for _, item := range wanted {
		volume := api.Object(item)
		if volume["size_gb"] == "MAX" {
			volume["size_gb"] = 894.0
		}
		volume["id"] = fmt.Sprintf("Disk.Virtual.%d", len(have))
		have = append(have, volume)
		if volume["is_root_volume"] == true {
			properties := api.Object(api.Clone(n.Fields["properties"]))
			properties["local_gb"] = volume["size_gb"]
			entries := slices.DeleteFunc(strings.Split(api.Text(properties["capabilities"]), ","), func(entry string) bool {
				return entry == "" || strings.HasPrefix(entry, "raid_level:")
			})
			properties["capabilities"] = strings.Join(append(entries, "raid_level:"+api.Text(volume["raid_level"])), ",")
			n.Put("properties", properties)
		}
	}
	n.Put("raid_config", map[string]any{"logical_disks": have, "last_updated": "2026-01-01 12:00:00"})
}

// updateFirmware gives components the versions of their images.
func (n *Node) updateFirmware(list []any) {
	if !n.real("firmware") {
		return
	}
	for _, item := range list {
		update := api.Object(item)
		if part := n.Components()[api.Text(update["component"])]; part != nil {
			part.Current = machine.FirmwareVersion(api.Text(update["url"]))
			part.Flashed = part.Current
		}
	}
}

// hardwareDefect returns how a step fails on a machine with a BMC; "" if it succeeds.
func (n *Node) hardwareDefect(kind, name string, step map[string]any) string {
	list, _ := api.Object(step["args"])["settings"].([]any)
	switch {
	case kind == "bios" && name == "apply_configuration" && n.real("bios"):
		var invalid []string
		for _, item := range list {
			setting, known := n.BIOSSettings()[api.Text(api.Object(item)["name"])]
			if !known || !setting.Accepts(api.Object(item)["value"]) {
				invalid = append(invalid, api.Text(api.Object(item)["name"]))
			}
		}
		if len(invalid) > 0 {
			return fmt.Sprintf("Redfish BIOS apply_configuration failed for node %s: invalid value for setting(s): %s", n.Str("uuid"),
				strings.Join(invalid, ", "))
		}
	case kind == "raid" && name == "create_configuration" && len(api.Object(n.Fields["target_raid_config"])) == 0:
		return fmt.Sprintf("Node %s has no target RAID configuration.", n.Str("uuid"))
	case kind == "raid" && name == "create_configuration" && n.Uses("raid") == "agent":
		return n.softwareDefect()
	case kind == "firmware" && n.real("firmware"):
		for _, item := range list {
			if part := api.Text(api.Object(item)["component"]); n.Components()[part] == nil {
				return fmt.Sprintf("Firmware update failed for node %s: component %s not found", n.Str("uuid"), part)
			}
		}
	}
	return ""
}
