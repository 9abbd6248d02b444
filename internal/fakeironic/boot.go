package fakeironic

import (
	"net/http"
	"slices"
	"strings"
)

// validation answers GET /v1/nodes/{node}/validate.
func (s *Server) validation(c *call, n *node) (reply, error) {
	if err := n.checkInterfaces(); err != nil {
		return reply{}, err
	}
	var out ordered
	for _, kind := range interfaceKinds {
		if kind == "vendor" || kind == "firmware" && c.minor < 86 {
			continue
		}
		result := ordered{{"result", true}}
		if reason := s.interfaceFault(n, kind); reason != "" {
			result = ordered{{"result", false}, {"reason", reason}}
		}
		out = append(out, member{kind, result})
	}
	return ok(http.StatusOK, out), nil
}

// interfaceFault returns why an interface of the node cannot work, "" if it can.
func (s *Server) interfaceFault(n *node, kind string) string {
	if strings.HasPrefix(n.uses(kind), "no-") {
		return "Driver " + n.str("driver") + " does not support " + kind + " (disabled or not implemented)."
	}
	switch kind {
	case "power":
		return s.powerFault(n)
	case "management":
		return n.bmcFault(kind)
	case "boot":
		return s.bootFault(n)
	case "deploy":
		return s.deployFault(n)
	}
	return ""
}

// vmediaBoot is the suffix of the boot interfaces that use virtual media.
const vmediaBoot = "virtual-media"

// ramdiskBoots reports whether a boot interface has the capability ramdisk_boot.
func ramdiskBoots(boot string) bool { return boot != "fake" }

// ramdiskFault returns why the node cannot boot a ramdisk or an ISO, "" if it can.
func (s *Server) ramdiskFault(n *node) string {
	if !ramdiskBoots(n.uses("boot")) {
		return "Invalid configuration: The boot interface must have the `ramdisk_boot` capability. You are using an incompatible boot interface."
	}
	return s.bootFault(n)
}

// bootFault returns why the boot interface refuses the node, "" if it accepts it. The boot interface fake accepts every node.
// Ironic's own ramdisk is always configured.
func (s *Server) bootFault(n *node) string {
	boot := n.uses("boot")
	switch {
	case !ramdiskBoots(boot):
		return ""
	case netboots(boot) && !s.hasPort(n):
		return "Node " + n.str("uuid") + " does not have any port associated with it"
	case n.uses("deploy") == "ramdisk":
		return s.bootImageFault(n)
	}
	return ""
}

// bootImageFault returns the error in what instance_info has to boot, an ISO or a kernel and a ramdisk, or "". 39 also accepts
// an image_source, because Glance may know its kernel and ramdisk.
func (s *Server) bootImageFault(n *node) string {
	info := object(n.fields["instance_info"])
	iso, source := text(info["boot_iso"]), text(info["image_source"])
	switch {
	case iso != "" && source != "":
		complaint := "An 'image_source' and 'boot_iso' parameter may not be specified at the same time"
		if !netboots(n.uses("boot")) {
			complaint += "."
		}
		return complaint
	case iso != "":
		return imageFault(iso)
	case source != "" && !s.legacy() && text(info["kernel"]) == "" && text(info["ramdisk"]) == "":
		return imageFault(source)
	}
	return missing("Cannot validate image information for node "+n.str("uuid")+" because one or more parameters are missing from its "+
		"instance_info and insufficient information is present to boot from a remote volume", info, "kernel", "ramdisk")
}

// missing returns complaint and the keys without a value, "" if all have one.
func missing(complaint string, info map[string]any, keys ...string) string {
	var lacking []string
	for _, key := range keys {
		if text(info[key]) == "" {
			lacking = append(lacking, key)
		}
	}
	if lacking == nil {
		return ""
	}
	return complaint + ". Missing are: " + pyRepr(clone(lacking))
}

func (s *Server) hasPort(n *node) bool {
	for _, p := range s.ports {
		if p.node == n {
			return true
		}
	}
	return false
}

// deployRamdisk makes o the deployment of an ISO or a ramdisk: it switches the machine off, fetches the image, prepares the
// boot and switches the machine on. If that fails, the machine stays off.
func (s *Server) deployRamdisk(n *node, o *operation) {
	boot := n.uses("boot")
	iso := text(object(n.fields["instance_info"])["boot_iso"])
	o.phases = []phase{
		{in: deploying, length: s.StepTime / 2, then: func(n *node) { s.switchPower(n, powerOff) }},
		{in: deploying, length: s.StepTime - s.StepTime/2},
	}
	const step = "Deploy step deploy.deploy failed"
	unfetched := ""
	if reason := s.fetchFault(iso); reason != "" {
		unfetched = step + ": " + reason + "."
	}
	o.defect = unfetched
	if reason := s.vmediaDefect(n, boot); reason != "" {
		o.defect = step + reason
	}
	o.fail = func(n *node, text string) {
		n.machine.empty(boot)
		if text == unfetched && !netboots(boot) && !s.legacy() {
			text = "" // the clean-up switches the machine off again, which clears last_error
		}
		s.rest(n, deployFail, active, text)
	}
	o.done = func(n *node) {
		if netboots(boot) {
			n.machine.network = iso
			n.machine.bootFrom(devicePXE, true)
		} else {
			n.machine.insert(iso, s.published(n, "boot"))
			n.machine.bootFrom(deviceCDROM, true)
		}
		s.switchPower(n, powerOn)
		s.deployed(n)
	}
}

// vmediaDefect returns the error of inserting an ISO with a driver that cannot, "" if it can or if the boot interface does
// not use virtual media.
func (s *Server) vmediaDefect(n *node, boot string) string {
	if !strings.HasSuffix(boot, vmediaBoot) {
		return ""
	}
	if reason := redfishAddressFault(n); reason != "" {
		return ": " + reason + ".. Also failed to clean up due to: " + reason
	}
	if publishesImages(n) {
		return ""
	}
	exception := "KeyError"
	if !s.legacy() {
		exception = "NoSuchOptError"
	}
	return " with " + exception + ": " + s.noSuchOption(n) +
		".. An unhandled exception was encountered while aborting. More information may be found in the log file."
}

// tearDownDefect returns the last_error of an undeploy that cannot clean up the boot, "" if it can.
func (s *Server) tearDownDefect(n *node) string {
	if n.byAgent() {
		return "Failed to tear down: Failed to set node power state to power off."
	}
	if !strings.HasSuffix(n.uses("boot"), vmediaBoot) {
		return ""
	}
	reason := redfishAddressFault(n)
	if reason == "" && !publishesImages(n) {
		reason = s.noSuchOption(n)
	}
	if reason == "" {
		return ""
	}
	return "Failed to tear down: " + reason
}

// fetchFault returns why the conductor cannot fetch an image, "" if it can.
func (s *Server) fetchFault(url string) string {
	if url == "" || s.ImageFault == nil {
		return ""
	}
	reason := s.ImageFault(url)
	if reason == "" {
		return ""
	}
	return "Validation of image href " + url + " failed, reason: " + reason
}

// redfishAddressFault returns the error of a node without redfish_address, "" if the node has one.
func redfishAddressFault(n *node) string {
	if text(object(n.fields["driver_info"])["redfish_address"]) == "" {
		return missingRedfishAddress(n)
	}
	return ""
}

// publishesImages reports whether Ironic can publish images for the BMCs of the node's driver.
func publishesImages(n *node) bool { return n.str("driver") == "redfish" || n.str("driver") == "idrac" }

// noSuchOption is Ironic's error if it has no settings to publish images for the driver.
func (s *Server) noSuchOption(n *node) string {
	if s.legacy() {
		return pyRepr(n.str("driver"))
	}
	return "no such option " + n.str("driver") + " in group [DEFAULT]"
}

// deployFault returns why the deploy interface refuses the node, "" if it accepts it. The deploy interface fake accepts every
// node.
func (s *Server) deployFault(n *node) string {
	switch n.uses("deploy") {
	case "ramdisk":
		return s.ramdiskFault(n)
	case "direct":
		if reason := s.bootFault(n); reason != "" {
			return reason
		}
		return directFault(n)
	}
	return ""
}

// directFault returns the error in the image to write to the disk, or "".
func directFault(n *node) string {
	info := object(n.fields["instance_info"])
	source := text(info["image_source"])
	switch {
	case source == "":
		return "Node " + n.str("uuid") + " failed to validate deploy image info. Some parameters were missing. Missing are: " +
			"['instance_info.image_source']"
	case imageFault(source) != "":
		return imageFault(source)
	case isURL(source) && text(info["image_checksum"]) == "" &&
		(text(info["image_os_hash_algo"]) == "" || text(info["image_os_hash_value"]) == ""):
		return "image_source's \"image_checksum\", or \"image_os_hash_algo\" and \"image_os_hash_value\" must be provided in " +
			"instance_info for node " + n.str("uuid")
	}
	return ""
}

// imageFault returns why a text cannot refer to an image, "" if it can.
func imageFault(reference string) string {
	scheme, _, found := strings.Cut(reference, "://")
	switch {
	case isURL(reference) || isUUID(reference):
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
	if text(info["image_source"]) == "" || text(info["image_type"]) != "" {
		return
	}
	info["image_type"] = "whole-disk"
	if text(info["kernel"]) != "" || text(info["ramdisk"]) != "" {
		info["image_type"] = "partition"
	}
}

// serveImage sets the image that the agent gets: the image itself, or a raw copy of a file on the conductor.
func (n *node) serveImage() {
	info := object(clone(n.fields["instance_info"]))
	source := text(info["image_source"])
	if source == "" {
		return
	}
	info["image_url"] = source
	if strings.HasPrefix(source, "file://") && info["image_disk_format"] != "raw" {
		info["image_url"] = "http://127.0.0.1/agent_images/" + n.str("uuid")
		info["image_disk_format"], info["image_checksum"] = "raw", nil
		info["image_os_hash_algo"], info["image_os_hash_value"] = "sha256", strings.Repeat("0f", 32)
	}
	n.put("instance_info", info)
}

// published returns the URL of the conductor's copy of an image for the BMC of the node.
func (s *Server) published(n *node, what string) string {
	extension := ".img"
	if what == deviceCDROM || what == "boot" {
		extension = ".iso"
	}
	return "http://127.0.0.1/redfish/" + what + "-" + n.str("uuid") + extension
}
