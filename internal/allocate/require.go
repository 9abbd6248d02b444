package allocate

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/document"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/cabling"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/hardware"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// Requirements are demands on a node that Ironic does not match itself. A zero value demands nothing.
type Requirements struct {
	MinCPUs, MinMemoryMB, MinDiskGB, MinNICMbps int64 // memory in MiB, disk in GiB

	DiskType              DiskType
	CPUArch               string
	Manufacturer, Product *regexp.Regexp
	Capabilities          map[string]string
	ConductorGroup        *string  // "" is the group of nodes without one
	Exclude               []string // names or UUIDs
	Cabling               bool     // the cables end where the metal_host of the node expects them
	HardwareAsExpected    bool     // the hardware is what the metal_host of the node expects
	QualifiedWithin       string   // the age that the last qualification may have, such as "90d"
}

// DiskType is a kind of disk.
type DiskType string

// The types of disks. An NVMe disk is also an SSD.
const (
	DiskHDD  DiskType = "hdd"
	DiskSSD  DiskType = "ssd"
	DiskNVMe DiskType = "nvme"
)

// DiskTypes returns all values of DiskType.
func DiskTypes() []string { return []string{string(DiskHDD), string(DiskSSD), string(DiskNVMe)} }

// needsAllFields reports whether the requirements compare notes on nodes, which a list with the usual fields lacks.
func (r *Requirements) needsAllFields() bool {
	return r != nil && (r.Cabling || r.HardwareAsExpected || r.QualifiedWithin != "")
}

// comparedProperties are the properties of a node that requirements compare.
var comparedProperties = []string{"cpus", "memory_mb", "local_gb", "cpu_arch", "capabilities", "manufacturer", "vendor", "product"}

type verdict struct {
	lacks string // the first reason why the node does not fit, as a census counts it
	asks  string // the first attribute that the data of the node do not decide; "" if the result is certain
}

// demand is one requirement, and whether a machine meets it.
type demand struct {
	attribute, lack string
	met             expect.Answer
}

// judge compares a node with the requirements. It uses the inventory for facts that properties lack; inventory is nil if the node has
// none, or if it was not read yet. now is by the clock of the site.
func (r *Requirements) judge(node *ironic.Node, inventory *ironic.Inventory, now time.Time) (v verdict) {
	proven := []demand{r.ofQualification(node, inventory, now), r.ofCables(node, inventory)}
	if inventory == nil {
		inventory = &ironic.Inventory{}
	}
	for _, d := range slices.Concat(r.ofNode(node), r.ofHardware(node.Properties, inventory), proven) {
		switch d.met {
		case expect.No:
			return verdict{lacks: d.lack}
		case expect.Unknown:
			v.asks = cmp.Or(v.asks, d.attribute)
		case expect.Yes:
		}
	}
	return v
}

// ofNode returns the demands that Ironic's record of the node decides.
func (r *Requirements) ofNode(node *ironic.Node) []demand {
	excluded := slices.ContainsFunc(r.Exclude, func(ref string) bool { return ref == node.UUID || ref == node.Name })
	demands := []demand{
		{"exclude", "in exclude", yesIf(!excluded)},
		{
			"conductor_group", "other conductor_group",
			yesIf(r.ConductorGroup == nil || strings.EqualFold(*r.ConductorGroup, node.ConductorGroup)),
		},
	}
	if r.HardwareAsExpected {
		demands = append(demands, proofOf(node))
	}
	have := ironic.Capabilities(node.Properties)
	for _, name := range slices.Sorted(maps.Keys(r.Capabilities)) {
		value, wanted := have[name], r.Capabilities[name]
		demands = append(demands, demand{"capabilities", "without capability " + name + ":" + wanted, yesIf(value == wanted)})
	}
	return demands
}

// ofHardware returns the demands on the hardware. Properties come first: an operator may have corrected them.
func (r *Requirements) ofHardware(properties map[string]any, i *ironic.Inventory) []demand {
	nic := int64(0)
	for _, card := range i.Interfaces {
		nic = max(nic, card.SpeedMbps)
	}
	manufacturer := firstMatch(r.Manufacturer, states.TextOf(properties, "manufacturer"), i.System.Manufacturer)
	if manufacturer == expect.Unknown && r.Manufacturer.MatchString(states.TextOf(properties, "vendor")) {
		manufacturer = expect.Yes // a vendor that does not match proves nothing: Ironic shortens it for some drivers
	}
	return []demand{
		{"min_cpus", "below min_cpus", atLeast(r.MinCPUs, numberOf(properties, "cpus"), i.CPU.Count)},
		{"min_memory_mb", "below min_memory_mb", atLeast(r.MinMemoryMB, numberOf(properties, "memory_mb"), i.Memory.PhysicalMB)},
		{"cpu_arch", "other cpu_arch", isFirst(r.CPUArch, states.TextOf(properties, "cpu_arch"), i.CPU.Architecture)},
		r.ofDisks(numberOf(properties, "local_gb"), i),
		{"min_nic_mbps", "below min_nic_mbps", atLeast(r.MinNICMbps, nic)},
		{"manufacturer", "other manufacturer", manufacturer},
		{"product", "other product", firstMatch(r.Product, states.TextOf(properties, "product"), i.System.Product)},
	}
}

// proofOf returns the demand for the hardware that the host of a node expects. A note of an earlier inspection proves nothing.
func proofOf(node *ironic.Node) demand {
	note := notes.HardwareOf(node)
	switch {
	case note == nil:
		return demand{"hardware_as_expected", "without expect_hardware or inventory", expect.No}
	case !note.Inspected.Equal(machine.InspectedAt(node)):
		return demand{"hardware_as_expected", "not compared with expect_hardware since their inspection", expect.No}
	}
	return demand{"hardware_as_expected", "other hardware than expected", yesIf(len(note.Differences) == 0)}
}

// ofQualification returns the demand for a machine that has proven not long ago that it is fit for work, and is the same since.
func (r *Requirements) ofQualification(node *ironic.Node, i *ironic.Inventory, now time.Time) demand {
	within, isSet := clock.ParseAge(r.QualifiedWithin)
	if !isSet {
		return demand{met: expect.Yes}
	}
	holds, known := notes.QualificationOf(node).Holds(node, i, within, now)
	if !known {
		return demand{attribute: "qualified_within"}
	}
	return demand{"qualified_within", "not qualified within " + r.QualifiedWithin, yesIf(holds)}
}

// ofCables returns the demand for right cables. A node whose host expects nothing of its cables does not meet it.
func (r *Requirements) ofCables(node *ironic.Node, i *ironic.Inventory) demand {
	expected := cabling.Expected(node)
	switch {
	case !r.Cabling:
		return demand{met: expect.Yes}
	case len(expected) == 0:
		return demand{"cabling", "without expect_neighbor", expect.No}
	}
	right, known := cabling.HearingOf(i, machine.InspectedAt(node)).Proves(expected)
	if !known {
		return demand{attribute: "cabling"}
	}
	return demand{"cabling", "wrong cabling", yesIf(right)}
}

// ofDisks returns the demand for one disk of the wanted type and size. localGB is the size in properties; 0 if they have none.
func (r *Requirements) ofDisks(localGB int64, i *ironic.Inventory) demand {
	tooSmall := demand{"min_disk_gb", "below min_disk_gb", expect.No}
	if localGB > 0 && localGB < r.MinDiskGB {
		return tooSmall
	}
	if r.DiskType == "" {
		largest := int64(0)
		for _, disk := range i.Disks {
			largest = max(largest, disk.Size>>30)
		}
		tooSmall.met = atLeast(r.MinDiskGB, localGB, largest)
		return tooSmall
	}
	known, largest := false, int64(-1)
	for _, disk := range i.Disks {
		kind := DiskType(hardware.TypeOf(disk))
		known = known || kind != ""
		if kind == r.DiskType || kind == DiskNVMe && r.DiskType == DiskSSD {
			largest = max(largest, disk.Size>>30)
		}
	}
	switch {
	case !known:
		return demand{attribute: "disk_type"}
	case largest < 0:
		return demand{"disk_type", "other disk_type", expect.No}
	}
	tooSmall.met = yesIf(largest >= r.MinDiskGB)
	return tooSmall
}

func yesIf(met bool) expect.Answer {
	if met {
		return expect.Yes
	}
	return expect.No
}

// atLeast compares the first known number with a minimum; 0 demands nothing, and an unknown number is not positive.
func atLeast(least int64, numbers ...int64) expect.Answer {
	if least == 0 {
		return expect.Yes
	}
	for _, number := range numbers {
		if number > 0 {
			return yesIf(number >= least)
		}
	}
	return expect.Unknown
}

// isFirst compares the first known text with the wanted one; "" demands nothing.
func isFirst(wanted string, texts ...string) expect.Answer {
	if wanted == "" {
		return expect.Yes
	}
	for _, text := range texts {
		if text != "" {
			return yesIf(text == wanted)
		}
	}
	return expect.Unknown
}

// firstMatch matches the first known text against a pattern; nil demands nothing.
func firstMatch(pattern *regexp.Regexp, texts ...string) expect.Answer {
	if pattern == nil {
		return expect.Yes
	}
	for _, text := range texts {
		if text != "" {
			return yesIf(pattern.MatchString(text))
		}
	}
	return expect.Unknown
}

// numberOf returns a number of properties, which may be a text; 0 if there is none.
func numberOf(properties map[string]any, key string) int64 {
	if text, is := properties[key].(string); is {
		number, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		return number
	}
	number, _ := document.Number(properties[key])
	return int64(number)
}

// withoutData is the reason for rejecting a node if its data do not tell whether it meets an attribute.
func withoutData(attribute string) string { return fmt.Sprintf("without data for %s", attribute) }
