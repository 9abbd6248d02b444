package conductor

import (
	"fmt"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/machine"
)

// DisksOf returns the disks of the machine of a node.
func (c *Conductor) DisksOf(n *Node) []*machine.Disk {
	if n.Machine.Disks == nil && c.Disks != nil {
		n.Machine.Disks = c.Disks(n)
	}
	if n.Machine.Disks == nil {
		n.Machine.Disks = []*machine.Disk{{Facts: machine.SampleDisk("/dev/sda", fmt.Sprintf("DISK-SN%06d", n.Order))}}
	}
	return n.Machine.Disks
}

// tellWrites tells the user of the fake which disks a node's verb has changed.
func (c *Conductor) tellWrites(n *Node, what string, disks ...*machine.Disk) {
	for _, d := range disks {
		if c.Writes != nil {
			c.Writes(n, d.Serial(), what)
		}
	}
}

// eraseDisks does what the agent's clean steps do to disks.
func (c *Conductor) eraseDisks(n *Node) {
	c.tellWrites(n, "erased", machine.Erase(c.DisksOf(n), api.Object(n.Fields["properties"]))...)
}

// rootDisk returns the disk on which a node is deployed; nil if there is none.
func (c *Conductor) rootDisk(n *Node) *machine.Disk {
	return machine.Root(c.DisksOf(n), api.Object(n.Fields["properties"]), api.Object(n.Fields["instance_info"]))
}

// rootFault returns why the agent finds no disk for an image; "" if it finds one. Hints that no disk has at all are not checked: tests give
// machines any root_device.
func (c *Conductor) rootFault(n *Node) string {
	free := api.Object(api.Clone(n.Fields["properties"]))
	delete(free, "skip_block_devices")
	if c.rootDisk(n) != nil || machine.Root(c.DisksOf(n), free, api.Object(n.Fields["instance_info"])) == nil {
		return ""
	}
	return "Agent returned error for deploy step {'interface': 'deploy', 'step': 'write_image'} on node " + n.Str("uuid") + ": Error " +
		"finding the disk or partition device to deploy the image onto: No suitable device was found for deployment using these hints."
}

// writeImage writes an image to the root disk.
func (c *Conductor) writeImage(n *Node) {
	if root := c.rootDisk(n); root != nil {
		root.Content = "image " + api.Text(api.Object(n.Fields["instance_info"])["image_source"])
		root.Partition = root.Content
		c.tellWrites(n, "deployed on", root)
	}
}

// changeVolumes does what a RAID step does to disks. The agent makes software volumes of all disks, and deletes all: of
// skip_block_devices it heeds names of volumes alone, and a BMC heeds nothing.
func (c *Conductor) changeVolumes(n *Node, step string) {
	disks := slices.Clone(c.DisksOf(n))
	software := n.Uses("raid") == "agent"
	for _, d := range disks {
		switch {
		case step == "create_configuration" && software:
			d.Content, d.Partition = "RAID", ""
		case step == "delete_configuration" && (!software || d.Content == "RAID"):
			d.Content, d.Partition = "", ""
		default:
			continue
		}
		c.tellWrites(n, step, d)
	}
}
