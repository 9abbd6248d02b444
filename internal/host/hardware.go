package host

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
)

// HardwarePart is a part of a machine's hardware configuration. It has the name of its attribute of metal_host.
type HardwarePart string

// The parts, in the order in which they are applied.
const (
	PartRAID     HardwarePart = "raid"
	PartBIOS     HardwarePart = "bios_settings"
	PartFirmware HardwarePart = "firmware"
)

// HardwarePartNames returns the names of parts.
func HardwarePartNames(parts []HardwarePart) []string {
	names := make([]string, len(parts))
	for i, part := range parts {
		names[i] = string(part)
	}
	return names
}

// Hardware is a configuration of a machine's hardware. Zero parts are not managed.
type Hardware struct {
	RAID     *RAID               `json:"raid,omitempty"`
	BIOS     map[string]string   `json:"bios_settings,omitempty"`
	Firmware map[string]Firmware `json:"firmware,omitempty"` // by component
}

// RAID is the volumes of a machine.
type RAID struct {
	Volumes        []ironic.LogicalDisk `json:"volumes"`
	DeleteExisting bool                 `json:"-"` // delete all other volumes first
}

// isSoftware reports whether Ironic's ramdisk makes the volumes.
func (r *RAID) isSoftware() bool {
	return slices.ContainsFunc(r.Volumes, func(v ironic.LogicalDisk) bool { return v.Controller == SoftwareRAID })
}

// Firmware is the image of a firmware component.
type Firmware struct {
	URL     string `json:"url"`
	Version string `json:"version,omitempty"` // the version that the image has; empty: not known
}

// HardwareSeen is what Ironic knows about a machine's hardware. The zero value means: nothing is known.
type HardwareSeen struct {
	BIOS     map[string]ironic.BIOSSetting
	Firmware map[string]string    // version by component
	RAID     []ironic.LogicalDisk // raid_config
}

// Parts returns the parts that a configuration manages, in the order in which they are applied.
func (h Hardware) Parts() []HardwarePart {
	var parts []HardwarePart
	if h.RAID != nil {
		parts = append(parts, PartRAID)
	}
	if len(h.BIOS) > 0 {
		parts = append(parts, PartBIOS)
	}
	if len(h.Firmware) > 0 {
		parts = append(parts, PartFirmware)
	}
	return parts
}

// Only returns the named parts of a configuration.
func (h Hardware) Only(parts []HardwarePart) Hardware {
	var only Hardware
	if slices.Contains(parts, PartRAID) {
		only.RAID = h.RAID
	}
	if slices.Contains(parts, PartBIOS) {
		only.BIOS = h.BIOS
	}
	if slices.Contains(parts, PartFirmware) {
		only.Firmware = h.Firmware
	}
	return only
}

// Applied returns what is known to be on the machine after a run: the wanted configuration of all parts but the open ones. Of an
// open part, it returns what was applied before and is still wanted.
func (h Hardware) Applied(open []HardwarePart, before Hardware) Hardware {
	now := h.Only(slices.DeleteFunc(h.Parts(), func(part HardwarePart) bool { return slices.Contains(open, part) }))
	if h.RAID != nil && now.RAID == nil {
		now.RAID = before.RAID
	}
	if now.BIOS == nil {
		now.BIOS = maps.Clone(before.BIOS)
		maps.DeleteFunc(now.BIOS, func(name, _ string) bool { _, wanted := h.BIOS[name]; return !wanted })
	}
	if now.Firmware == nil {
		now.Firmware = maps.Clone(before.Firmware)
		maps.DeleteFunc(now.Firmware, func(name string, _ Firmware) bool { _, wanted := h.Firmware[name]; return !wanted })
	}
	return now
}

// Work returns the part of a wanted configuration that must be sent: the settings that differ from those that were applied last and,
// as far as these are known, from those of the machine. The BIOS settings are sent either all or not at all, because Ironic forgets
// the settings that a step does not name.
func (h Hardware) Work(applied Hardware, seen HardwareSeen) Hardware {
	var work Hardware
	if h.RAID != nil && (applied.RAID == nil || !ironic.SameJSON(applied.RAID.Volumes, h.RAID.Volumes)) &&
		!sameVolumes(h.RAID.Volumes, seen.RAID) {
		work.RAID = h.RAID
	}
	changed, missing := false, false
	for name, value := range h.BIOS {
		before, known := applied.BIOS[name]
		changed = changed || !known || before != value
		setting, known := seen.BIOS[name]
		missing = missing || !known || !setting.Has(value)
	}
	if changed && missing {
		work.BIOS = h.BIOS
	}
	for component, image := range h.Firmware {
		before := applied.Firmware[component]
		same := before.URL == image.URL
		if image.Version != "" {
			same = before.Version == image.Version || seen.Firmware[component] == image.Version
		}
		if !same {
			if work.Firmware == nil {
				work.Firmware = map[string]Firmware{}
			}
			work.Firmware[component] = image
		}
	}
	return work
}

// sameVolumes reports whether a machine has exactly the wanted volumes. Without volumes it reports false, because an empty
// raid_config may also mean that Ironic has never read it.
func sameVolumes(wanted, have []ironic.LogicalDisk) bool {
	if len(wanted) == 0 || len(wanted) != len(have) {
		return false
	}
	left := slices.Clone(have)
	for _, volume := range slices.SortedStableFunc(slices.Values(wanted), sizedFirst) {
		at := slices.IndexFunc(left, func(other ironic.LogicalDisk) bool {
			sized := volume.SizeGB == MaxSize || ironic.SameJSON(volume.SizeGB, other.SizeGB)
			named := volume.Name == "" || volume.Name == other.Name
			return volume.Level == other.Level && sized && named && volume.Root == other.Root
		})
		if at < 0 {
			return false
		}
		left = slices.Delete(left, at, at+1)
	}
	return true
}

// sizedFirst orders volumes of a given size before those that take the rest of the space, which may have any size.
func sizedFirst(a, b ironic.LogicalDisk) int {
	switch {
	case a.SizeGB == MaxSize && b.SizeGB != MaxSize:
		return 1
	case a.SizeGB != MaxSize && b.SizeGB == MaxSize:
		return -1
	}
	return 0
}

// MaxSize is the size of a volume that uses the rest of the space.
const MaxSize = "MAX"

// SoftwareRAID is the controller of volumes that Ironic's ramdisk makes.
const SoftwareRAID = "software"

// Steps returns the steps that apply a configuration, in order. The types of BIOS values follow from the registry.
func (h Hardware) Steps(seen HardwareSeen) []ironic.CleanStep {
	var steps []ironic.CleanStep
	if h.RAID != nil {
		if h.RAID.DeleteExisting {
			steps = append(steps, ironic.CleanStep{Interface: "raid", Step: "delete_configuration"})
			if h.RAID.isSoftware() {
				steps = append(steps, ironic.CleanStep{Interface: "deploy", Step: "erase_devices_metadata"})
			}
		}
		if len(h.RAID.Volumes) > 0 {
			steps = append(steps, ironic.CleanStep{Interface: "raid", Step: "create_configuration"})
		}
	}
	if len(h.BIOS) > 0 {
		var settings []map[string]any
		for _, name := range slices.Sorted(maps.Keys(h.BIOS)) {
			settings = append(settings, map[string]any{"name": name, "value": typed(h.BIOS[name], seen.BIOS[name].Type)})
		}
		steps = append(steps, ironic.CleanStep{Interface: "bios", Step: "apply_configuration", Args: map[string]any{"settings": settings}})
	}
	if len(h.Firmware) > 0 {
		var settings []map[string]any
		for _, component := range slices.Sorted(maps.Keys(h.Firmware)) {
			settings = append(settings, map[string]any{"component": component, "url": h.Firmware[component].URL})
		}
		steps = append(steps, ironic.CleanStep{Interface: "firmware", Step: "update", Args: map[string]any{"settings": settings}})
	}
	return steps
}

// typed returns a BIOS value in the type of its registry. Older versions of Ironic pass values to the BMC as they are.
func typed(value, kind string) any {
	switch kind {
	case "Integer":
		if number, err := strconv.ParseInt(value, 10, 64); err == nil {
			return number
		}
	case "Boolean":
		return strings.EqualFold(value, "true")
	}
	return value
}

// Unfit is a BIOS setting that the machine cannot have.
type Unfit struct {
	Setting string
	Reason  string // a sentence
}

// Unfit returns the BIOS settings that the registry of the machine refuses, in order. Without a registry it returns none.
func (h Hardware) Unfit(seen HardwareSeen) []Unfit {
	registry := false
	names := map[string]int{}
	for name, setting := range seen.BIOS {
		registry = registry || setting.Type != ""
		names[name]++
	}
	if !registry {
		return nil
	}
	var unfit []Unfit
	for _, name := range slices.Sorted(maps.Keys(h.BIOS)) {
		reason := ""
		if setting, known := seen.BIOS[name]; known {
			reason = misfit(setting, h.BIOS[name])
		} else {
			reason = "The machine has no BIOS setting " + name
			if like := expect.Similar(name, names); len(like) > 0 {
				reason += "; similar: " + strings.Join(like, ", ")
			}
		}
		if reason != "" {
			unfit = append(unfit, Unfit{name, failure.Ended(reason)})
		}
	}
	return unfit
}

// misfit says why a BIOS setting cannot have a value; "" if it can.
func misfit(s ironic.BIOSSetting, value string) string {
	number, err := strconv.ParseInt(value, 10, 64)
	length := int64(len(value))
	switch {
	case s.Has(value):
	case s.ReadOnly:
		return fmt.Sprintf("%s is read-only; its value is %q", s.Name, s.Text())
	case s.Type == "Password":
		return s.Name + " is a password, which Terraform would keep in the state"
	case len(s.Allowed) > 0 && !slices.Contains(s.Allowed, value):
		return fmt.Sprintf("%s cannot be %q. It can be %s", s.Name, value, strings.Join(s.Allowed, ", "))
	case s.Type == "Boolean" && !strings.EqualFold(value, "true") && !strings.EqualFold(value, "false"):
		return fmt.Sprintf("%s cannot be %q. It can be true or false", s.Name, value)
	case s.Type == "Integer" && err != nil:
		return fmt.Sprintf("%s must be a whole number, not %q", s.Name, value)
	case s.Type == "Integer" && (s.Lower != nil && number < *s.Lower || s.Upper != nil && number > *s.Upper):
		return fmt.Sprintf("%s cannot be %d. It must be %s", s.Name, number, between(s.Lower, s.Upper))
	case s.Type == "String" && (s.MinLength != nil && length < *s.MinLength || s.MaxLength != nil && length > *s.MaxLength):
		return fmt.Sprintf("%s has %d characters. It must have %s", s.Name, length, between(s.MinLength, s.MaxLength))
	}
	return ""
}

// between describes the range from lower to upper; either may be nil.
func between(lower, upper *int64) string {
	switch {
	case lower == nil:
		return fmt.Sprintf("at most %d", *upper)
	case upper == nil:
		return fmt.Sprintf("at least %d", *lower)
	}
	return fmt.Sprintf("%d to %d", *lower, *upper)
}

// lack is a part that the machine does not have although Ironic reported success.
type lack struct {
	part HardwarePart
	fact string
}

// lacks compares what was sent with what the machine has afterwards.
func (h Hardware) lacks(seen HardwareSeen) []lack {
	var lacks []lack
	if h.RAID != nil {
		switch wanted, have := len(h.RAID.Volumes), len(seen.RAID); {
		case wanted > 0 && have == 0:
			lacks = append(lacks, lack{PartRAID, "raid_config is empty"})
		case have < wanted, wanted == 0 && have > 0:
			lacks = append(lacks, lack{PartRAID, fmt.Sprintf("raid_config has %d volumes, not %d", have, wanted)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.BIOS)) {
		setting, known := seen.BIOS[name]
		switch {
		case !known:
			lacks = append(lacks, lack{PartBIOS, "it lists no BIOS setting " + name})
		case !setting.Has(h.BIOS[name]):
			lacks = append(lacks, lack{PartBIOS, fmt.Sprintf("the BIOS setting %s is %q, not %q", name, setting.Text(), h.BIOS[name])})
		}
	}
	for _, component := range slices.Sorted(maps.Keys(h.Firmware)) {
		version, known := seen.Firmware[component]
		switch want := h.Firmware[component].Version; {
		case !known:
			lacks = append(lacks, lack{PartFirmware, "it lists no firmware component " + component})
		case want != "" && version != want:
			lacks = append(lacks, lack{PartFirmware, fmt.Sprintf("the firmware of %s has version %q, not %q", component, version, want)})
		}
	}
	return lacks
}
