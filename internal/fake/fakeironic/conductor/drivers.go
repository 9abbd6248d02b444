package conductor

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/switches"
)

// HardwareType is a driver.
type HardwareType struct {
	Name       string
	class      string              // in error messages
	Interfaces map[string][]string // implementations by kind of interface, the default first
}

// HardwareTypes are the enabled drivers, by name, with the interfaces that Ironic 39 or 21.4 supports (ironic/drivers/*.py). Ironic lets
// fake-hardware use every enabled interface, also those that it does not list.
var HardwareTypes = []HardwareType{
	{Name: "fake-hardware", class: "FakeHardware", Interfaces: map[string][]string{
		"bios": {"fake", "no-bios"}, "boot": {"fake", "ipxe", "pxe"}, "console": {"fake", "no-console", "fake-graphical"},
		"deploy": {"fake", "direct", "ramdisk"}, "firmware": {"fake", "no-firmware"}, "inspect": {"fake", "agent", "no-inspect"},
		"management": {"fake"}, "network": {"noop", "flat", "neutron", switches.Interface}, "power": {"fake"},
		"raid": {"fake", "no-raid", "agent"}, "rescue": {"fake", "no-rescue", "agent"}, "storage": {"noop", "fake"},
		"vendor": {"fake", "no-vendor"},
	}},
	{Name: "idrac", class: "IDRACHardware", Interfaces: map[string][]string{
		"bios": {"idrac-redfish", "redfish", "no-bios"}, "boot": {"ipxe", "pxe", "idrac-redfish-virtual-media", "redfish-https"},
		"console": {"no-console", "redfish-graphical", "ipmitool-socat", "fake-graphical"},
		"deploy":  {"direct", "ramdisk"}, "firmware": {"redfish", "no-firmware"}, "inspect": {"idrac-redfish", "agent", "no-inspect"},
		"management": {"idrac-redfish"}, "network": {"noop", "flat", "neutron", switches.Interface}, "power": {"idrac-redfish", "redfish"},
		"raid":   {"idrac-redfish", "no-raid", "agent"},
		"rescue": {"no-rescue", "agent"}, "storage": {"noop"}, "vendor": {"idrac-redfish", "redfish", "no-vendor"},
	}},
	{Name: "ipmi", class: "IPMIHardware", Interfaces: map[string][]string{
		"bios": {"no-bios"}, "boot": {"ipxe", "pxe"}, "console": {"no-console", "ipmitool-socat", shellinabox, "fake-graphical"},
		"deploy":   {"direct", "ramdisk"},
		"firmware": {"no-firmware"}, "inspect": {"agent", "no-inspect"}, "management": {"ipmitool", "noop"},
		"network": {"noop", "flat", "neutron", switches.Interface},
		"power":   {"ipmitool"}, "raid": {"no-raid", "agent"}, "rescue": {"no-rescue", "agent"}, "storage": {"noop"},
		"vendor": {"ipmitool", "no-vendor"},
	}},
	{Name: "manual-management", class: "ManualManagementHardware", Interfaces: map[string][]string{
		"bios": {"no-bios"}, "boot": {"ipxe", "pxe"}, "console": {"no-console", "fake-graphical"}, "deploy": {"direct", "ramdisk"},
		"firmware": {"no-firmware"},
		"inspect":  {"agent", "no-inspect"}, "management": {"noop", "fake"}, "network": {"noop", "flat", "neutron", switches.Interface},
		"power": {"agent", "fake"}, "raid": {"no-raid", "agent"},
		"rescue": {"no-rescue", "agent"}, "storage": {"noop"}, "vendor": {"no-vendor"},
	}},
	{Name: "redfish", class: "RedfishHardware", Interfaces: map[string][]string{
		"bios": {"redfish", "no-bios"}, "boot": {"ipxe", "pxe", "redfish-virtual-media", "redfish-https"},
		"console": {"no-console", "redfish-graphical", "ipmitool-socat", "fake-graphical"},
		"deploy":  {"direct", "ramdisk"}, "firmware": {"redfish", "no-firmware"}, "inspect": {"redfish", "agent", "no-inspect"},
		"management": {"redfish", "noop"}, "network": {"noop", "flat", "neutron", switches.Interface}, "power": {"redfish"},
		"raid":   {"redfish", "no-raid", "agent"},
		"rescue": {"no-rescue", "agent"}, "storage": {"noop"}, "vendor": {"redfish", "no-vendor"},
	}},
}

const (
	shellinabox      = "ipmitool-shellinabox" // 39 has it no more; 29 is the last that is known to have it
	shellinaboxMinor = 96
)

// absent are the interfaces that the drivers of Ironic 21.4 do not support, by driver and kind; "" stands for all drivers. Ironic 39 does.
var absent = map[string][]string{
	" inspect": {"agent"}, " boot": {"redfish-https"}, " console": {"fake-graphical", "redfish-graphical"},
	"redfish console": {"ipmitool-socat"}, "idrac console": {"ipmitool-socat"},
	"idrac bios": {"redfish"}, "idrac power": {"redfish"}, "idrac vendor": {"redfish"},
}

// FindDriver returns the hardware type of that name.
func FindDriver(name string) (HardwareType, bool) {
	for _, h := range HardwareTypes {
		if h.Name == name {
			return h, true
		}
	}
	return HardwareType{}, false
}

// autodetectMinor is the highest API version of Ironic 35.0, which has autodetect. The fake has bootc and noop since then, too.
const autodetectMinor = 111

// At returns the hardware type as an Ironic with a highest API version has it. Autodetect is the default where the driver has no deploy
// interface fake.
func (h HardwareType) At(minor int) HardwareType {
	deploys := slices.Clone(h.Interfaces["deploy"])
	if minor >= autodetectMinor {
		place := 0
		if deploys[0] == "fake" {
			place = 1
		}
		deploys = append(slices.Insert(deploys, place, autodetect), "bootc")
		if h.Name == "manual-management" {
			deploys = append(deploys, "noop")
		}
	}
	h.Interfaces = maps.Clone(h.Interfaces)
	h.Interfaces["deploy"] = append(deploys, "anaconda", "custom-agent")
	for kind, names := range h.Interfaces {
		h.Interfaces[kind] = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			lacks := slices.Contains(absent[" "+kind], name) || slices.Contains(absent[h.Name+" "+kind], name)
			return minor <= api.LegacyMinor && lacks || minor > shellinaboxMinor && name == shellinabox
		})
	}
	return h
}

// NoValidHost is the answer for a driver or conductor group without a conductor.
func NoValidHost(driver, group string, legacy bool) error {
	hint := ""
	if !legacy {
		hint = " Ensure the driver is valid and enabled."
	}
	return api.Fault(http.StatusBadRequest,
		"No valid host was found. Reason: No conductor service registered which supports driver %s for conductor group %q.%s",
		driver, group, hint)
}

// SettleInterfaces checks the interfaces of a node against its driver and sets those that are null to their defaults, except
// interfaces that instance_info overrides.
func (c *Conductor) SettleInterfaces(fields map[string]any) error {
	driver, _ := FindDriver(api.Text(fields["driver"]))
	driver = driver.At(c.MaxMinor)
	overrides := api.Object(fields["instance_info"])
	for _, kind := range api.InterfaceKinds {
		key := kind + "_interface"
		override := overrides[key]
		if override != nil {
			if err := c.checkInterface(driver, kind, api.PyText(override)); err != nil {
				return err
			}
		}
		own := api.Text(fields[key])
		if own == "" && override == nil {
			fields[key] = driver.Interfaces[kind][0]
		} else if own != "" {
			if err := c.checkInterface(driver, kind, own); err != nil {
				return err
			}
		}
	}
	return nil
}

// Supports reports whether nodes of a driver can have an implementation of a kind of interface.
func (c *Conductor) Supports(h HardwareType, kind, implementation string) bool {
	return c.checkInterface(h.At(c.MaxMinor), kind, implementation) == nil
}

// checkInterface refuses an implementation that is not enabled or that the driver does not support.
func (c *Conductor) checkInterface(h HardwareType, kind, implementation string) error {
	if enabled := c.implementations(kind); !slices.Contains(enabled, implementation) {
		return api.Fault(http.StatusBadRequest,
			"Could not find the following interface in the 'ironic.hardware.interfaces.%s' entrypoint: %s. Valid interfaces are %s.",
			kind, implementation, api.PyRepr(api.Clone(enabled)))
	}
	if h.Name != "fake-hardware" && !slices.Contains(h.Interfaces[kind], implementation) {
		return api.Fault(http.StatusBadRequest, "%s interface implementation '%s' is not supported by hardware type %s.", kind,
			implementation, h.class)
	}
	return nil
}

// Uses returns the implementation that the conductor uses: the one in instance_info if there is one, else the node's own.
func (n *Node) Uses(kind string) string {
	key := kind + "_interface"
	if override, given := api.Object(n.Fields["instance_info"])[key]; given {
		return api.PyText(override)
	}
	if own := n.Str(key); own != "" {
		return own
	}
	driver, _ := FindDriver(n.Str("driver"))
	return driver.Interfaces[kind][0]
}

// CheckInterfaces is the conductor's check before an operation. The overrides in instance_info may be wrong: Ironic does not
// check them in a PATCH.
func (c *Conductor) CheckInterfaces(n *Node) error {
	driver, _ := FindDriver(n.Str("driver"))
	driver = driver.At(c.MaxMinor)
	for _, kind := range api.InterfaceKinds {
		if err := c.checkInterface(driver, kind, n.Uses(kind)); err != nil {
			return err
		}
	}
	return nil
}

// implementations returns the enabled implementations of a kind of interface.
func (c *Conductor) implementations(kind string) []string {
	found := map[string]bool{}
	for _, h := range HardwareTypes {
		for _, name := range h.At(c.MaxMinor).Interfaces[kind] {
			if name != switches.Interface || c.SwitchPorts {
				found[name] = true
			}
		}
	}
	return api.SortedKeys(found)
}

// PowerFault returns why the power interface refuses the node, "" if it accepts it. The power interface agent needs fast track and
// an agent that answers.
func (c *Conductor) PowerFault(n *Node) string {
	switch {
	case !n.byAgent():
		return n.BMCFault("power")
	case !c.FastTrack:
		return "Fast track mode must be enabled to use the agent power interface"
	case !n.Machine.Agent:
		return "Agent seems offline for node " + n.Str("uuid") + ", the agent power interface cannot be used"
	}
	return ""
}

// byAgent reports whether the node's only control of power is Ironic's agent on the machine, which can restart it and nothing else.
func (n *Node) byAgent() bool { return n.Uses("power") == "agent" }

// BMCFault returns why the power or management interface cannot reach the BMC, "" if it can.
func (n *Node) BMCFault(kind string) string {
	info := api.Object(n.Fields["driver_info"])
	switch implementation := n.Uses(kind); {
	case implementation == "ipmitool" && api.Text(info["ipmi_address"]) == "":
		return "Missing the following IPMI credentials in node's driver_info: ['ipmi_address']."
	case strings.HasSuffix(implementation, "redfish") && api.Text(info["redfish_address"]) == "":
		return missingRedfishAddress(n)
	}
	return ""
}

// consoleFault returns why the console interface refuses the node, "" if it accepts it. There is no range of ports from which the conductor
// could take one.
func (n *Node) consoleFault() string {
	info := api.Object(n.Fields["driver_info"])
	switch console := n.Uses("console"); {
	case !strings.HasPrefix(console, "ipmitool"):
		return ""
	case api.Text(info["ipmi_address"]) == "":
		return "Missing the following IPMI credentials in node's driver_info: ['ipmi_address']."
	case info["ipmi_terminal_port"] == nil:
		return "Either missing 'ipmi_terminal_port' parameter in node's driver_info or [console]port_range is not configured"
	}
	return ""
}

// missingRedfishAddress is the error of every Redfish interface without an address.
func missingRedfishAddress(n *Node) string {
	return fmt.Sprintf("Missing the following Redfish properties in node %s driver_info: ['redfish_address']", n.Str("uuid"))
}

// Host is the conductor's name in reservations.
const Host = "localhost"

// autodetect is the deploy interface in whose place the conductor uses one that fits the instance.
const autodetect = "autodetect"

// detect returns the deploy interface that fits the instance: the first of ramdisk, bootc and direct, Ironic's default list. The name of a
// bootable container begins with "bootc", because there is no registry to ask.
func detect(n *Node) string {
	info := api.Object(n.Fields["instance_info"])
	given := func(key string) bool { return api.Text(info[key]) != "" }
	if asked, _ := info["ironic_ramdisk_deploy"].(bool); asked && (given("boot_iso") || given("kernel") && given("ramdisk")) {
		return "ramdisk"
	}
	if source := api.Text(info["image_source"]); strings.HasPrefix(source, "oci://") && strings.Contains(source, "/bootc") {
		return "bootc"
	}
	return "direct"
}

// switchDeploy writes the deploy interface that fits into a node with autodetect. Before a deployment, Ironic does that even if it then
// refuses it.
func (c *Conductor) switchDeploy(n *Node) {
	// Other states use no deploy interface.
	//exhaustive:ignore
	switch n.State() {
	case Verifying, Inspecting, InspectWait, Rescuing, RescueWait, Unrescuing:
		return
	}
	if n.Uses("deploy") != autodetect {
		return
	}
	n.Note(keyOriginalDeploy, n.Fields["deploy_interface"])
	n.Put("deploy_interface", detect(n))
}

// inert reports whether a deploy interface touches no machine.
func inert(deploy string) bool { return deploy == "fake" || deploy == "noop" }

// restoreDeploy gives a node its own deploy interface back.
func (c *Conductor) restoreDeploy(n *Node) {
	if original := api.Object(n.Fields["driver_internal_info"])[keyOriginalDeploy]; original != nil {
		n.Put("deploy_interface", original)
		n.unnote(keyOriginalDeploy)
	}
}

// endsDetection reports whether the end of an operation gives a node its own deploy interface back: cleaning, service, and an adoption that
// fails.
func endsDetection(before, after State) bool {
	// After others it stays.
	//exhaustive:ignore
	switch before {
	case Cleaning, CleanWait, CleanHold, Servicing, ServiceWait, ServiceHold:
		return after != before && !after.Transient()
	}
	return after == AdoptFail
}
