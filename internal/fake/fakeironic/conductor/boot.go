package conductor

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/machine"
)

// InterfaceFault returns why an interface of the node cannot work, "" if it can.
func (c *Conductor) InterfaceFault(n *Node, kind string) string {
	if strings.HasPrefix(n.Uses(kind), "no-") {
		return "Driver " + n.Str("driver") + " does not support " + kind + " (disabled or not implemented)."
	}
	switch kind {
	case "power":
		return c.PowerFault(n)
	case "management":
		return n.BMCFault(kind)
	case "boot":
		return c.bootFault(n)
	case "deploy":
		return c.deployFault(n)
	case "inspect": // which boots the ramdisk itself by default (validate_inspection in drivers/modules/pxe_base.py of 39.0)
		if n.Uses(kind) == "agent" && machine.Netboots(n.Uses("boot")) && !c.hasPort(n) {
			return "Insufficient information provided for managed inspection: " + c.bootFault(n)
		}
	case "console":
		return n.consoleFault()
	case "network":
		return c.NetworkFault(n)
	}
	return ""
}

// vmediaBoot is the suffix of the boot interfaces that use virtual media.
const vmediaBoot = "virtual-media"

// ramdiskBoots reports whether a boot interface has the capability ramdisk_boot.
func ramdiskBoots(boot string) bool { return boot != "fake" }

// ramdiskFault returns why the node cannot boot a ramdisk or an ISO, "" if it can.
func (c *Conductor) ramdiskFault(n *Node) string {
	if !ramdiskBoots(n.Uses("boot")) {
		return "Invalid configuration: The boot interface must have the `ramdisk_boot` capability. You are using an incompatible " +
			"boot interface."
	}
	return c.bootFault(n)
}

// bootFault returns why the boot interface refuses the node, "" if it accepts it. The boot interface fake accepts every node.
// Ironic's own ramdisk is always configured.
func (c *Conductor) bootFault(n *Node) string {
	boot := n.Uses("boot")
	switch {
	case !ramdiskBoots(boot):
		return ""
	case machine.Netboots(boot) && !c.hasPort(n):
		return "Node " + n.Str("uuid") + " does not have any port associated with it"
	case n.Uses("deploy") == "ramdisk":
		return c.bootImageFault(n)
	}
	return ""
}

// bootImageFault returns the error in what instance_info has to boot, an ISO or a kernel and a ramdisk, or "". 39 also accepts
// an image_source, because Glance may know its kernel and ramdisk.
func (c *Conductor) bootImageFault(n *Node) string {
	info := api.Object(n.Fields["instance_info"])
	iso, source := api.Text(info["boot_iso"]), api.Text(info["image_source"])
	switch {
	case iso != "" && source != "":
		complaint := "An 'image_source' and 'boot_iso' parameter may not be specified at the same time"
		if !machine.Netboots(n.Uses("boot")) {
			complaint += "."
		}
		return complaint
	case iso != "":
		return imageFault(iso)
	case source != "" && !c.legacy() && api.Text(info["kernel"]) == "" && api.Text(info["ramdisk"]) == "":
		return imageFault(source)
	}
	return missing("Cannot validate image information for node "+n.Str("uuid")+" because one or more parameters are missing from its "+
		"instance_info and insufficient information is present to boot from a remote volume", info, "kernel", "ramdisk")
}

// missing returns complaint and the keys without a value, "" if all have one.
func missing(complaint string, info map[string]any, keys ...string) string {
	var lacking []string
	for _, key := range keys {
		if api.Text(info[key]) == "" {
			lacking = append(lacking, key)
		}
	}
	if lacking == nil {
		return ""
	}
	return complaint + ". Missing are: " + api.PyRepr(api.Clone(lacking))
}

// deployRamdisk makes o the deployment of an ISO or a ramdisk: it switches the machine off, fetches the image, prepares the
// boot and switches the machine on. If that fails, the machine stays off.
func (c *Conductor) deployRamdisk(n *Node, o *operation) {
	boot := n.Uses("boot")
	iso := api.Text(api.Object(n.Fields["instance_info"])["boot_iso"])
	o.phases = []phase{
		{in: Deploying, length: c.StepTime / 2, then: func(n *Node) { c.switchPower(n, PowerOff) }},
		{in: Deploying, length: c.StepTime - c.StepTime/2},
	}
	const step = "Deploy step deploy.deploy failed"
	unfetched := ""
	if reason := c.FetchFault(iso); reason != "" {
		unfetched = step + ": " + reason + "."
	}
	o.defect = unfetched
	if reason := c.vmediaDefect(n, boot); reason != "" {
		o.defect = step + reason
	}
	o.fail = func(n *Node, text string) {
		n.Machine.Empty(boot)
		if text == unfetched && !machine.Netboots(boot) && !c.legacy() {
			text = "" // the clean-up switches the machine off again, which clears last_error
		}
		c.rest(n, DeployFail, Active, text)
	}
	o.done = func(n *Node) {
		if machine.Netboots(boot) {
			n.Machine.Network = iso
			n.Machine.BootFrom(machine.DevicePXE, true)
		} else {
			n.Machine.Insert(iso, c.Published(n, "boot"))
			n.Machine.BootFrom(machine.DeviceCDROM, true)
		}
		c.switchPower(n, PowerOn)
		c.deployed(n)
	}
}

// vmediaDefect returns the error of inserting an ISO with a driver that cannot, "" if it can or if the boot interface does
// not use virtual media.
func (c *Conductor) vmediaDefect(n *Node, boot string) string {
	if !strings.HasSuffix(boot, vmediaBoot) {
		return ""
	}
	if reason := redfishAddressFault(n); reason != "" {
		return ": " + reason + ".. Also failed to clean up due to: " + reason
	}
	if PublishesImages(n) {
		return ""
	}
	exception := "KeyError"
	if !c.legacy() {
		exception = "NoSuchOptError"
	}
	return " with " + exception + ": " + c.noSuchOption(n) +
		".. An unhandled exception was encountered while aborting. More information may be found in the log file."
}

// tearDownDefect returns the last_error of an undeploy that cannot clean up the boot, "" if it can.
func (c *Conductor) tearDownDefect(n *Node) string {
	if n.byAgent() {
		return "Failed to tear down: Failed to set node power state to power off."
	}
	if !strings.HasSuffix(n.Uses("boot"), vmediaBoot) {
		return ""
	}
	reason := redfishAddressFault(n)
	if reason == "" && !PublishesImages(n) {
		reason = c.noSuchOption(n)
	}
	if reason == "" {
		return ""
	}
	return "Failed to tear down: " + reason
}

// FetchFault returns why the conductor cannot fetch an image, "" if it can.
func (c *Conductor) FetchFault(url string) string {
	if url == "" || c.ImageFault == nil {
		return ""
	}
	reason := c.ImageFault(url)
	if reason == "" {
		return ""
	}
	return "Validation of image href " + url + " failed, reason: " + reason
}

// redfishAddressFault returns the error of a node without redfish_address, "" if the node has one.
func redfishAddressFault(n *Node) string {
	if api.Text(api.Object(n.Fields["driver_info"])["redfish_address"]) == "" {
		return missingRedfishAddress(n)
	}
	return ""
}

// PublishesImages reports whether Ironic can publish images for the BMCs of the node's driver.
func PublishesImages(n *Node) bool { return n.Str("driver") == "redfish" || n.Str("driver") == "idrac" }

// noSuchOption is Ironic's error if it has no settings to publish images for the driver.
func (c *Conductor) noSuchOption(n *Node) string {
	if c.legacy() {
		return api.PyRepr(n.Str("driver"))
	}
	return "no such option " + n.Str("driver") + " in group [DEFAULT]"
}

// deployFault returns why the deploy interface refuses the node, "" if it accepts it. The deploy interface fake accepts every
// node.
func (c *Conductor) deployFault(n *Node) string {
	how := n.Uses("deploy")
	if how == autodetect {
		how = detect(n)
	}
	switch how {
	case "ramdisk":
		return cmp.Or(c.NetworkFault(n), c.ramdiskFault(n))
	case "direct", "bootc":
		if reason := cmp.Or(c.NetworkFault(n), c.bootFault(n)); reason != "" {
			return reason
		}
		if how == "bootc" {
			return bootcFault(n)
		}
		return cmp.Or(directFault(n), n.capabilityFault(), n.hintFault())
	case "anaconda":
		return c.anacondaFault(n)
	case "custom-agent":
		return c.bootFault(n)
	}
	return ""
}

// supported are the values of the capabilities that Ironic knows.
var supported = []struct {
	name   string
	values []string
}{
	{"boot_option", []string{"local", "netboot", "ramdisk", "kickstart"}},
	{"boot_mode", []string{"bios", "uefi"}},
	{"secure_boot", []string{"true", "false"}},
	{"trusted_boot", []string{"true", "false"}},
	{"disk_label", []string{"msdos", "gpt"}},
}

// capabilityFault returns which capability has a value that Ironic does not know, in its words, or "".
func (n *Node) capabilityFault() string {
	instance, own := api.Object(api.Object(n.Fields["instance_info"])["capabilities"]), map[string]any{}
	for entry := range strings.SplitSeq(api.Text(api.Object(n.Fields["properties"])["capabilities"]), ",") {
		if name, value, is := strings.Cut(entry, ":"); is {
			own[strings.TrimSpace(name)] = value
		}
	}
	for _, known := range supported {
		for field, all := range map[string]map[string]any{"properties/capabilities": own, "instance_info['capabilities']": instance} {
			if value := api.PyText(all[known.name]); all[known.name] != nil && value != "" && !slices.Contains(known.values, value) {
				return fmt.Sprintf("The parameter '%s' from %s has an invalid value: '%s'. Acceptable values are: %s.", known.name, field,
					value, strings.Join(known.values, ", "))
			}
		}
	}
	return ""
}

// hintFault returns what the conductor refuses in the hints of the root disk, or "".
func (n *Node) hintFault() string {
	hints, source := api.Object(api.Object(n.Fields["instance_info"])["root_device"]), "instance_info"
	if len(hints) == 0 {
		hints, source = api.Object(api.Object(n.Fields["properties"])["root_device"]), "properties"
	}
	fault := machine.HintFault(hints)
	if fault == "" {
		return ""
	}
	return fmt.Sprintf("Failed to validate the root device hints %s (from the node's %s) for node %s: %s", api.PyRepr(hints), source,
		n.Str("uuid"), fault)
}

// anacondaFault returns what the installer lacks, "" if the conductor does not see it.
func (c *Conductor) anacondaFault(n *Node) string {
	if reason := c.bootFault(n); reason != "" || !machine.Netboots(n.Uses("boot")) {
		return reason
	}
	info := api.Object(n.Fields["instance_info"])
	if !c.legacy() && api.Text(info["image_source"]) != "" {
		return "" // Glance may know the kernel and the ramdisk
	}
	return missing("Cannot validate image information for node "+n.Str("uuid")+" because one or more parameters are missing from its "+
		"instance_info and insufficient information is present to boot from a remote volume", info, "image_source", "kernel", "ramdisk")
}

// anacondaDefect returns what the installer lacks after Ironic has accepted its deployment, "" if it lacks nothing.
func (c *Conductor) anacondaDefect(n *Node) string {
	info := api.Object(n.Fields["instance_info"])
	source := api.Text(info["image_source"])
	switch {
	case api.IsUUID(source) || strings.HasPrefix(source, "glance://"):
		return ""
	case api.Text(info["kernel"]) == "" || api.Text(info["ramdisk"]) == "":
		return "Deploy step deploy.deploy failed with KeyError: 'ks_template'."
	case info["root_gb"] == nil && !strings.HasSuffix(source, "/"):
		return "Failed to prepare to deploy: Some parameters were missing in node's instance_info. Missing are: ['root_gb']"
	}
	return ""
}

// bootcFault returns the error in the bootable container, or "".
func bootcFault(n *Node) string {
	source := api.Object(n.Fields["instance_info"])["image_source"]
	if strings.HasPrefix(api.Text(source), "oci://") {
		return ""
	}
	return "Invalid image href " + api.PyText(source) + "."
}

// directFault returns the error in the image to write to the disk, or "".
func directFault(n *Node) string {
	info := api.Object(n.Fields["instance_info"])
	source := api.Text(info["image_source"])
	switch {
	case source == "":
		return "Node " + n.Str("uuid") + " failed to validate deploy image info. Some parameters were missing. Missing are: " +
			"['instance_info.image_source']"
	case imageFault(source) != "":
		return imageFault(source)
	case isURL(source) && api.Text(info["image_checksum"]) == "" &&
		(api.Text(info["image_os_hash_algo"]) == "" || api.Text(info["image_os_hash_value"]) == ""):
		return "image_source's \"image_checksum\", or \"image_os_hash_algo\" and \"image_os_hash_value\" must be provided in " +
			"instance_info for node " + n.Str("uuid")
	}
	return ""
}

// imageFault returns why a text cannot refer to an image, "" if it can.
func imageFault(reference string) string {
	scheme, _, found := strings.Cut(reference, "://")
	switch {
	case isURL(reference) || api.IsUUID(reference):
		return ""
	case found:
		return "Validation of image href " + reference + " failed, reason: Image download protocol " + scheme + " is not supported."
	}
	return "Validation of image href " + reference + " failed, reason: Scheme-less image href is not a UUID."
}

// isURL reports whether Ironic can fetch an image reference by its scheme.
func isURL(reference string) bool {
	scheme, _, found := strings.Cut(reference, "://")
	return found && slices.Contains([]string{"http", "https", "file", "glance", "oci"}, strings.ToLower(scheme))
}

// inferImageType sets image_type if it is missing: partition if there is a kernel or a ramdisk, else whole-disk.
func inferImageType(info map[string]any) {
	if api.Text(info["image_source"]) == "" || api.Text(info["image_type"]) != "" {
		return
	}
	info["image_type"] = "whole-disk"
	if api.Text(info["kernel"]) != "" || api.Text(info["ramdisk"]) != "" {
		info["image_type"] = "partition"
	}
}

// serveImage sets the image that the agent gets: the image itself, or a raw copy of a file on the conductor.
func (n *Node) serveImage() {
	info := api.Object(api.Clone(n.Fields["instance_info"]))
	source := api.Text(info["image_source"])
	if source == "" {
		return
	}
	info["image_url"] = source
	if strings.HasPrefix(source, "file://") && info["image_disk_format"] != "raw" {
		info["image_url"] = "http://127.0.0.1/agent_images/" + n.Str("uuid")
		info["image_disk_format"], info["image_checksum"] = "raw", nil
		info["image_os_hash_algo"], info["image_os_hash_value"] = "sha256", strings.Repeat("0f", 32)
	}
	n.Put("instance_info", info)
}

// Published returns the URL of the conductor's copy of an image for the BMC of the node.
func (c *Conductor) Published(n *Node, what string) string {
	extension := ".img"
	if what == machine.DeviceCDROM || what == "boot" {
		extension = ".iso"
	}
	return "http://127.0.0.1/redfish/" + what + "-" + n.Str("uuid") + extension
}

// CheckVmedia makes Ironic's checks of the node before requests about virtual media.
func (c *Conductor) CheckVmedia(n *Node) error {
	if err := c.CheckInterfaces(n); err != nil {
		return err
	}
	if reason := n.BMCFault("management"); reason != "" {
		return api.Fault(http.StatusBadRequest, "%s", reason)
	}
	if n.HasVmedia() && !PublishesImages(n) {
		return api.UnexpectedRPC()
	}
	return nil
}

// HasVmedia reports whether the node's management interface supports virtual media.
func (n *Node) HasVmedia() bool { return strings.HasSuffix(n.Uses("management"), "redfish") }
