package fakeironic

import "strings"

// vmediaBoot ends the names of the boot interfaces that insert an ISO into a virtual CD drive.
const vmediaBoot = "virtual-media"

// ramdiskBoots says that a boot interface has the capability ramdisk_boot.
func ramdiskBoots(boot string) bool { return boot != "fake" }

// netboots says that a boot interface lets machines start from the network.
func netboots(boot string) bool { return boot == "ipxe" || boot == "pxe" }

// ramdiskFault says what is missing for booting a ramdisk or an ISO, "" if nothing.
func (s *Server) ramdiskFault(n *node) string {
	if !ramdiskBoots(n.uses("boot")) {
		return "Invalid configuration: The boot interface must have the `ramdisk_boot` capability. You are using an incompatible boot interface."
	}
	return s.bootFault(n)
}

// bootFault says why the boot interface refuses the node, "" if it does not. The fake one takes everything. A ramdisk of Ironic's
// own is always there: the conductor names one for all nodes.
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

// bootImageFault says what is wrong with what instance_info gives to boot: an ISO, or a kernel and a ramdisk. 39 takes an
// image_source, too, in the hope that Glance knows a kernel and a ramdisk for it.
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

// missing complains about the keys that have no value, "" when all have one.
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

// deployRamdisk makes a deployment of one that boots an ISO or a ramdisk: it switches the machine off, fetches what is to
// be booted, prepares the boot and switches the machine on. When that fails the machine stays off.
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
			text = "" // the clean-up switches a machine off that is off, which clears last_error
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

// vmediaDefect says how an attempt to insert an ISO ends on a driver that cannot, "" when it can, and with other boot
// interfaces.
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

// tearDownDefect is the last_error of an undeployment whose boot cannot be cleaned up, "" when it can.
func (s *Server) tearDownDefect(n *node) string {
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

// fetchFault says why an image cannot be fetched, "" when it can.
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

// redfishAddressFault says that nobody knows where the node's Redfish is, "" when somebody does.
func redfishAddressFault(n *node) string {
	if text(object(n.fields["driver_info"])["redfish_address"]) == "" {
		return missingRedfishAddress(n)
	}
	return ""
}

// publishesImages says that Ironic has settings for offering images to the BMCs of this driver.
func publishesImages(n *node) bool { return n.str("driver") == "redfish" || n.str("driver") == "idrac" }

// noSuchOption is how Ironic looks in vain for these settings.
func (s *Server) noSuchOption(n *node) string {
	if s.legacy() {
		return pyRepr(n.str("driver"))
	}
	return "no such option " + n.str("driver") + " in group [DEFAULT]"
}
