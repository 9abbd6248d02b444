// Package disks tells which disks of a machine Ironic's agent leaves alone: those that skip_block_devices of the node names.
package disks

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// KeySkip is the key of a node's properties with the hints.
const KeySkip = "skip_block_devices"

// KeyVolume is the key of a hint that names a RAID volume. It has no other key then.
const KeyVolume = "volume_name"

// HintKeys are the keys that Ironic's agent accepts in a hint.
var HintKeys = []string{
	"by_path", "hctl", "model", "name", "rotational", "serial", "size", "vendor", KeyVolume, "wwn", "wwn_vendor_extension",
	"wwn_with_extension",
}

// Hint describes disks: a disk fits if it has all the values. With KeyVolume it names a RAID volume.
type Hint map[string]string

// String writes a hint for messages.
func (h Hint) String() string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(h)) {
		parts = append(parts, fmt.Sprintf("%s = %q", key, h[key]))
	}
	return strings.Join(parts, ", ")
}

// Names writes hints for messages.
func Names(hints []Hint) string {
	var all []string
	for _, hint := range hints {
		all = append(all, hint.String())
	}
	return strings.Join(all, "; ")
}

// HintsOf returns the hints in a node's properties. The agent cannot read a text or another thing in their place.
func HintsOf(properties map[string]any) (hints []Hint) {
	list, _ := properties[KeySkip].([]any)
	for _, element := range list {
		values, _ := element.(map[string]any)
		hint := Hint{}
		for key, value := range values {
			hint[key], _ = ironic.Scalar(value)
		}
		if len(hint) > 0 {
			hints = append(hints, hint)
		}
	}
	return hints
}

// Fits reports whether a disk fits a hint, and whether that is known: the inventory lacks some values, and operators are left to the agent.
func (h Hint) Fits(d ironic.Disk) (fits, known bool) {
	has := map[string]string{
		"name": d.Name, "serial": d.Serial, "wwn": d.WWN, "model": d.Model, "vendor": d.Vendor, "by_path": d.ByPath,
		"size": strconv.FormatInt(d.Size>>30, 10),
	}
	if d.Rotational != nil {
		has["rotational"] = strconv.FormatBool(*d.Rotational)
	}
	fits = len(h) > 0
	for key, text := range h {
		is, comparable := has[key]
		if !comparable || strings.ContainsAny(text, "<>= ") && !strings.EqualFold(is, text) {
			return false, false
		}
		fits = fits && strings.EqualFold(is, text)
	}
	return fits, len(h) > 0
}

// Split is what hints make of the disks of an inventory.
type Split struct {
	Kept, Others []ironic.Disk
	Useless      []Hint // that no disk fits
	Open         bool   // a hint is left to the agent, so that it may keep more
}

// SplitBy splits disks by hints. A hint that names a RAID volume says nothing of a disk.
func SplitBy(hints []Hint, all []ironic.Disk) (s Split) {
	useful := make([]bool, len(hints))
	for _, disk := range all {
		kept := false
		for i, hint := range hints {
			fits, known := hint.Fits(disk)
			useful[i] = useful[i] || fits || !known
			s.Open = s.Open || !known
			kept = kept || fits
		}
		if kept {
			s.Kept = append(s.Kept, disk)
		} else {
			s.Others = append(s.Others, disk)
		}
	}
	for i, hint := range hints {
		if !useful[i] {
			s.Useless = append(s.Useless, hint)
		}
	}
	return s
}

// Lacking returns the hints of one list that another one lacks.
func Lacking(from, in []Hint) []Hint {
	return slices.DeleteFunc(slices.Clone(from), func(hint Hint) bool {
		return slices.ContainsFunc(in, func(other Hint) bool { return maps.Equal(hint, other) })
	})
}

// Labels names disks in messages.
func Labels(all []ironic.Disk) string {
	var names []string
	for _, d := range all {
		name := d.Name
		if id := cmp.Or(d.Serial, d.WWN); id != "" {
			name += " (" + id + ")"
		}
		names = append(names, name)
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}
