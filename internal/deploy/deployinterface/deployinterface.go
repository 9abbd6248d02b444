// Package deployinterface knows Ironic's deploy interfaces: what each needs of a deployment, and which one autodetect chooses. It sends no
// request.
package deployinterface

import (
	"fmt"
	"slices"
	"strings"
)

// Name is the name of a deploy interface.
type Name string

// The deploy interfaces of Ironic 39.0 that do something.
const (
	Direct      Name = "direct"
	Ramdisk     Name = "ramdisk"
	Anaconda    Name = "anaconda"
	Bootc       Name = "bootc"
	CustomAgent Name = "custom-agent"
	Noop        Name = "noop"
	Autodetect  Name = "autodetect"
)

// Keys of instance_info.
const (
	KeyOverride = "deploy_interface" // the deploy interface of this instance
	keySource   = "image_source"
	keyRamdisk  = "ironic_ramdisk_deploy" // autodetect may choose ramdisk
)

// Deployment is what a deploy interface gets.
type Deployment struct {
	Info  map[string]any // instance_info
	Boot  string         // the boot interface; "": not known
	Steps bool           // deploy steps, or traits that may choose a deploy template
}

func (d Deployment) has(keys ...string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { return d.Info[key] == nil || d.Info[key] == "" })
}

// scheme returns the scheme of the image's URL; "" if there is no image, or if it is not a URL.
func (d Deployment) scheme() string {
	scheme, _, found := strings.Cut(d.source(), "://")
	if !found {
		return ""
	}
	return strings.ToLower(scheme)
}

func (d Deployment) source() string {
	source, _ := d.Info[keySource].(string)
	return source
}

// Override returns the deploy interface that instance_info names; "" if it names none.
func (d Deployment) Override() Name {
	name, _ := d.Info[KeyOverride].(string)
	return Name(name)
}

// Chosen returns the deploy interface that autodetect chooses by Ironic's default list (ramdisk, bootc, direct). With certain = false, only
// the registry of the image tells.
func (d Deployment) Chosen() (name Name, certain bool) {
	switch {
	case d.has(keyRamdisk) && d.Info[keyRamdisk] != false && (d.has("boot_iso") || d.has("kernel", "ramdisk")):
		return Ramdisk, true
	case d.scheme() == "oci":
		return Bootc, false
	case d.scheme() == "" || d.scheme() == "glance": // Glance may say that it is a ramdisk
		return Direct, false
	}
	return Direct, true
}

// Problem is something that a deployment lacks, or that has no effect.
type Problem struct {
	Attribute       string // of the metal_deployment
	Summary, Detail string
	Refused         bool // Ironic refuses the deployment
}

func problem(attribute, summary, detail string) []Problem {
	return []Problem{{Attribute: attribute, Summary: summary, Detail: detail}}
}

// Problems returns what stands in the way of a deployment with an interface (reference/deploy-interfaces.md#what-each-needs). What Ironic
// refuses for every interface is not among it.
func Problems(name Name, d Deployment) []Problem {
	switch name {
	case Direct:
		return direct(d)
	case Ramdisk:
		return ramdisk(d)
	case Anaconda:
		return anaconda(d)
	case Bootc:
		return bootc(d)
	case CustomAgent:
		return customAgent(d)
	case Noop:
		return noop(d)
	case Autodetect:
		if chosen, certain := d.Chosen(); certain {
			return Problems(chosen, d)
		}
	}
	return nil
}

func direct(d Deployment) []Problem {
	fetched := slices.Contains([]string{"http", "https"}, d.scheme())
	if !fetched || d.has("image_checksum") || d.has("image_os_hash_algo", "image_os_hash_value") {
		return nil
	}
	return problem("image", "Image needs a checksum", "The deploy interface direct writes an image from a web server only with its "+
		"checksum. Set image.checksum.")
}

func bootsRamdisk(boot string) bool {
	for _, part := range []string{"pxe", "http", "virtual-media"} {
		if strings.Contains(boot, part) {
			return true
		}
	}
	return boot == ""
}

func ramdisk(d Deployment) []Problem {
	switch {
	case !bootsRamdisk(d.Boot):
		found := problem("node_id", "Boot interface boots no ramdisk",
			fmt.Sprintf("The deploy interface ramdisk, also of a live_iso, needs a boot interface that boots a ramdisk or an ISO, and %s "+
				"does not. Set hardware_interfaces = { boot = \"ipxe\" }, or one with virtual media, on the metal_host.", d.Boot))
		found[0].Refused = true
		return found
	case d.has("boot_iso"), d.has("kernel", "ramdisk"), d.scheme() == "" && d.has(keySource), d.scheme() == "glance":
		return nil
	case d.has(keySource):
		return problem("image", "Image is not written", "The deploy interface ramdisk writes no image: it boots a kernel and a ramdisk, "+
			"or an ISO. Ironic 39 accepts the image, and the node becomes active without it. Use live_iso, or instance_info = { kernel "+
			"= ..., ramdisk = ... }, or another deploy interface.")
	}
	return nil
}

// networkBoots reports whether a boot interface boots from the network, as kickstart needs it.
func networkBoots(boot string) bool {
	return boot == "" || strings.HasSuffix(boot, "pxe") || boot == "http"
}

func anaconda(d Deployment) (found []Problem) {
	if !networkBoots(d.Boot) {
		found = append(found, problem("node_id", "Boot interface boots no installer",
			fmt.Sprintf("The deploy interface anaconda boots the installer from the network, and the boot interface %s does not. Set "+
				"hardware_interfaces = { boot = \"ipxe\" } on the metal_host.", d.Boot))...)
	}
	if d.scheme() == "" || d.scheme() == "glance" { // Glance knows the kernel
		return found
	}
	need := []string{"kernel", "ramdisk"}
	if !strings.HasSuffix(d.source(), "/") {
		need = append(need, "stage2")
	}
	need = slices.DeleteFunc(need, func(key string) bool { return d.has(key) })
	if len(need) > 0 {
		found = append(found, problem("instance_info", "Installer is not complete",
			fmt.Sprintf("The deploy interface anaconda boots the installer of a distribution, and instance_info lacks %s. Ironic 39 "+
				"accepts the deployment all the same, and it fails later. Set instance_info = { kernel = ..., ramdisk = ..., stage2 = "+
				"... }; an image whose URL ends in a slash is an installation tree, and needs no stage2.", strings.Join(need, ", ")))...)
	}
	return found
}

func bootc(d Deployment) []Problem {
	if d.scheme() == "oci" {
		return nil
	}
	return problem("image", "Image is not in a registry", "The deploy interface bootc installs a bootable container from a registry. Set "+
		"image.url to oci://..., or use another deploy interface: instance_info = { deploy_interface = \"direct\" }.")
}

func customAgent(d Deployment) []Problem {
	if d.Steps {
		return nil
	}
	return problem("deploy_steps", "No step writes the disk", "The deploy interface custom-agent writes nothing, only deploy steps "+
		"write. The deployment has no deploy_steps, and no traits that choose a deploy template. Unless the ramdisk has deploy steps "+
		"that always run, the machine becomes active with the disk as it was.")
}

func noop(d Deployment) []Problem {
	if !d.has(keySource) {
		return nil
	}
	return problem("image", "Image has no effect", "The deploy interface noop writes nothing: Ironic only records that the machine is "+
		"active. Use adopt = true in place of image, or another deploy interface.")
}

// Reinstalls reports whether the end of a rescue boots the installer again, which writes the disk
// (reference/deploy-interfaces.md#rescue-with-anaconda).
func Reinstalls(name Name) bool { return name == Anaconda }

// Outlives returns the interface that a rebuild needs, if a node whose interface autodetect has chosen keeps another one. Ironic chooses
// again only after the node was undeployed. maybe: only the registry of the image tells whether it does.
func Outlives(acting Name, d Deployment) (needs Name, maybe bool) {
	chosen, certain := d.Chosen()
	known := slices.Contains([]Name{Direct, Ramdisk, Bootc}, acting) // another one is the site's own choice
	switch {
	case !known || d.Override() != "" || chosen == acting && certain:
		return "", false
	case certain:
		return chosen, false
	case acting == Ramdisk && chosen == Bootc: // neither a disk image nor a bootable container can be booted as a ramdisk
		return Bootc, false
	case chosen == Bootc:
		return Bootc, true
	}
	return "", false
}
