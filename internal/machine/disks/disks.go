// Package disks tells which disks of a machine Ironic's agent leaves alone: those that skip_block_devices of the node names.
package disks

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
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
		if hint := HintOf(values); len(hint) > 0 {
			hints = append(hints, hint)
		}
	}
	return hints
}

// HintOf returns the hint that Ironic has as JSON.
func HintOf(values map[string]any) Hint {
	hint := Hint{}
	for key, value := range values {
		hint[key], _ = ironic.Scalar(value)
	}
	return hint
}

// operator is how a value begins that is not compared as it stands.
var operator = regexp.MustCompile(`^\s*(s?[<>=!]|<(or|in|all-in|range-in)>)`)

// Fits reports whether a disk fits a hint, and whether that is known: the inventory lacks some values, and most operators are left to the
// agent (reference/ironic.md#hints-of-disks).
func (h Hint) Fits(d ironic.Disk) (fits, known bool) {
	has := map[string]string{
		"name": d.Name, "serial": d.Serial, "wwn": d.WWN, "model": d.Model, "vendor": d.Vendor, "by_path": d.ByPath,
	}
	if d.Rotational != nil {
		has["rotational"] = strconv.FormatBool(*d.Rotational)
	}
	fits = len(h) > 0
	for key, text := range h {
		is, comparable := has[key]
		same := strings.EqualFold(is, strings.TrimSpace(text))
		if key == keySize {
			same, comparable = sizeFits(d.Size, text)
			comparable = comparable && d.Size > 0
		} else if operator.MatchString(text) {
			comparable = false
		}
		if !comparable {
			return false, false
		}
		fits = fits && same
	}
	return fits, len(h) > 0
}

const keySize = "size"

// partitionKeys are the keys of hints by which the agent recognises partitions, too: a partition has the numbers of its disk, and else
// nothing of it (reference/ironic.md#hints-of-disks).
var partitionKeys = []string{KeyVolume, "rotational", "serial", "wwn", "wwn_vendor_extension", "wwn_with_extension"}

// WithoutPartitions returns the hints that keep disks, but not the file systems in their partitions. On a disk with a wwn of SCSI, a
// partition has another serial number than its disk.
func WithoutPartitions(hints []Hint, all []ironic.Disk) []Hint {
	return slices.DeleteFunc(slices.Clone(hints), func(h Hint) bool {
		for key := range h {
			if !slices.Contains(partitionKeys, key) || key == "serial" && slices.ContainsFunc(all, func(d ironic.Disk) bool {
				fits, _ := h.Fits(d)
				return fits && strings.HasPrefix(d.WWN, "0x")
			}) {
				return false
			}
		}
		return true
	})
}

// OfDisks reports whether a hint is one of disks, and does not name a RAID volume.
func OfDisks(h Hint) bool { return h[KeyVolume] == "" }

// sizeFits compares a size in bytes with a hint in GiB, to the byte as the agent does: 894 fits no disk of 894.25 GiB, and >= 894 does.
func sizeFits(size int64, hint string) (fits, known bool) {
	how := strings.TrimRight(hint, "0123456789")
	gib, err := strconv.ParseInt(hint[len(how):], 10, 64)
	order := cmp.Compare(size, gib<<30)
	switch strings.TrimSpace(how) {
	case "", "==":
		fits = order == 0
	case ">=", "=":
		fits = order >= 0
	case ">":
		fits = order > 0
	case "<=":
		fits = order <= 0
	case "<":
		fits = order < 0
	case "!=":
		fits = order != 0
	default:
		return false, false
	}
	return fits && err == nil, err == nil
}

// KeepsRoot reports whether hints keep the disk that root_device selects: the agent chooses among the others.
func KeepsRoot(root Hint, hints []Hint, all []ironic.Disk) bool {
	if len(root) == 0 {
		return false
	}
	fits := func(d ironic.Disk) bool { is, _ := root.Fits(d); return is }
	now := SplitBy(hints, all)
	return slices.ContainsFunc(hints, func(h Hint) bool { return maps.Equal(h, root) }) ||
		slices.ContainsFunc(now.Kept, fits) && !slices.ContainsFunc(now.Others, fits)
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

// Tell says which disks of an inventory hints keep, and which they do not; "" if there is no inventory.
func Tell(hints []Hint, all []ironic.Disk) string {
	if all == nil {
		return ""
	}
	s := SplitBy(hints, all)
	text := fmt.Sprintf(" In the last inspection these were %s. Not kept: %s.", Labels(s.Kept), Labels(s.Others))
	if s.Open && len(s.Others) > 0 {
		text += " Of these, operators and volumes may keep some."
	}
	return text
}

// TellUseless says which hints keep nothing; "" if there is none, or no inventory.
func TellUseless(who string, hints []Hint, all []ironic.Disk) string {
	useless := SplitBy(hints, all).Useless
	if all == nil || len(useless) == 0 {
		return ""
	}
	advice := "Correct skip_block_devices, or inspect the machine again."
	if slices.ContainsFunc(useless, func(h Hint) bool { return h[keySize] != "" }) {
		advice = "A size must be exact: to keep larger disks, too, write >= before it."
	}
	return fmt.Sprintf("%s had no disk with %s in its last inspection, so this keeps nothing. It had %s. %s", who, Names(useless),
		Labels(all), advice)
}

// fewDisks are how many disks a message names.
const fewDisks = 8

// Labels names disks in messages.
func Labels(all []ironic.Disk) string {
	var names []string
	for _, d := range all[:min(len(all), fewDisks)] {
		name := d.Name
		if id := cmp.Or(d.Serial, d.WWN); id != "" {
			name += " (" + id + ")"
		}
		names = append(names, name)
	}
	if more := len(all) - fewDisks; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}
