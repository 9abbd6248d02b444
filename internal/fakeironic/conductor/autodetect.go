package conductor

import (
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fakeironic/machine"
)

// autodetect is the deploy interface in whose place the conductor uses one that fits the instance.
const autodetect = "autodetect"

// keyOriginalDeploy is where the conductor keeps the deploy interface of a node whose field it has rewritten.
const keyOriginalDeploy = "original_deploy_interface"

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

// switchDeploy writes the deploy interface that fits into a node with autodetect. Before a deployment, Ironic does that even if it then refuses it.
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

// restoreDeploy gives a node its own deploy interface back.
func (c *Conductor) restoreDeploy(n *Node) {
	if original := api.Object(n.Fields["driver_internal_info"])[keyOriginalDeploy]; original != nil {
		n.Put("deploy_interface", original)
		n.forgetOriginalDeploy()
	}
}

// forgetOriginalDeploy removes the deploy interface that the conductor keeps.
func (n *Node) forgetOriginalDeploy() {
	info := api.Object(api.Clone(n.Fields["driver_internal_info"]))
	delete(info, keyOriginalDeploy)
	n.Put("driver_internal_info", info)
}

// endsDetection reports whether the end of an operation gives a node its own deploy interface back: cleaning, service, and an adoption that fails.
func endsDetection(before, after State) bool {
	// After others it stays.
	//exhaustive:ignore
	switch before {
	case Cleaning, CleanWait, CleanHold, Servicing, ServiceWait, ServiceHold:
		return after != before && !after.Transient()
	}
	return after == AdoptFail
}
