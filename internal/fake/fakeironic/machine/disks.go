package machine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
)

// Disk is a disk of a machine.
type Disk struct {
	Facts     map[string]any // as an inventory has them
	Content   string         // "" after an erasure
	Partition string         // the content of its only partition; "" if it has none, or the signature of a file system was erased
}

// SampleDisk returns the facts of a disk of 894.25 GiB.
func SampleDisk(name, serial string) map[string]any {
	return map[string]any{
		"name": name, "model": "Example SSD", "size": 960197124096.0, "rotational": false, "wwn": nil, "serial": serial,
		"vendor": "EXAMPLE", "wwn_with_extension": nil, "wwn_vendor_extension": nil, "hctl": "0:0:0:0",
		"by_path": "/dev/disk/by-path/pci-0000:3b:00.0-scsi-0:0:0:0",
	}
}

// Serial returns the serial number of a disk.
func (d *Disk) Serial() string { return api.Text(d.Facts["serial"]) }

// partition returns the facts of the partition of a disk: udev gives it the wwn of its disk, as its serial number, too, if there is one,
// and no more.
func (d *Disk) partition() map[string]any {
	facts := map[string]any{
		"name": api.Text(d.Facts["name"]) + "1", "serial": d.Facts["serial"], "wwn": d.Facts["wwn"], "rotational": d.Facts["rotational"],
		"wwn_with_extension": d.Facts["wwn_with_extension"], "wwn_vendor_extension": d.Facts["wwn_vendor_extension"],
	}
	if wwn, scsi := strings.CutPrefix(api.Text(d.Facts["wwn"]), "0x"); scsi {
		facts["serial"] = wwn
	}
	return facts
}

// fits reports whether a device has all values of a hint, in the few forms that tests use.
func fits(facts, hint map[string]any) bool {
	for key, value := range hint {
		text, is := strings.ToLower(fmt.Sprint(value)), facts[key]
		if size, given := api.Number(is); given && key == "size" {
			least, open := strings.CutPrefix(text, ">= ")
			var gib float64
			_, _ = fmt.Sscan(least, &gib)
			if have := size / (1 << 30); open && have < gib || !open && have != gib {
				return false
			}
		} else if is == nil || strings.ToLower(fmt.Sprint(is)) != text {
			return false
		}
	}
	return len(hint) > 0
}

// hintsOf returns the hints of a list. The agent of the fake reads a text as no list; the real one fails.
func hintsOf(list any) (hints []map[string]any) {
	all, _ := list.([]any)
	for _, hint := range all {
		if hint := api.Object(hint); hint["volume_name"] == nil {
			hints = append(hints, hint)
		}
	}
	return hints
}

// kept reports whether skip_block_devices of a node's properties names a device.
func kept(facts, properties map[string]any) bool {
	return slices.ContainsFunc(hintsOf(properties["skip_block_devices"]), func(hint map[string]any) bool { return fits(facts, hint) })
}

// Erase erases the disks that skip_block_devices does not name, as the clean steps of the agent do, and returns the changed ones. The
// step for metadata compares partitions, too: those that no hint names lose the signatures of their file systems.
func Erase(disks []*Disk, properties map[string]any) (changed []*Disk) {
	for _, d := range disks {
		before := *d
		if !kept(d.Facts, properties) {
			d.Content, d.Partition = "", ""
		} else if !kept(d.partition(), properties) {
			d.Partition = ""
		}
		if d.Content != before.Content || d.Partition != before.Partition {
			changed = append(changed, d)
		}
	}
	return changed
}

// Root returns the disk on which the agent deploys: the smallest of those that it does not keep and that have the hints; nil if there is
// none.
func Root(disks []*Disk, properties, instance map[string]any) (root *Disk) {
	hint := api.Object(instance["root_device"])
	if len(hint) == 0 {
		hint = api.Object(properties["root_device"])
	}
	size := func(d *Disk) float64 { bytes, _ := api.Number(d.Facts["size"]); return bytes }
	for _, d := range disks {
		if !kept(d.Facts, properties) && (len(hint) == 0 || fits(d.Facts, hint)) && (root == nil || size(d) < size(root)) {
			root = d
		}
	}
	return root
}

// Clone copies a disk.
func (d *Disk) Clone() *Disk {
	return &Disk{Facts: maps.Clone(d.Facts), Content: d.Content, Partition: d.Partition}
}
