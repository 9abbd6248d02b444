package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/states"
)

// HardwareDifference is a setting of a machine that is not as it was applied.
type HardwareDifference struct {
	Part     HardwarePart `json:"part"`
	Name     string       `json:"name,omitempty"` // of a BIOS setting or a firmware component; "" for the volumes
	Declared string       `json:"declared"`
	Found    string       `json:"found"`
	Gone     bool         `json:"gone,omitempty"`      // Ironic does not list it any more
	ReadOnly bool         `json:"read_only,omitempty"` // the BIOS lets nothing set it now
	Refused  bool         `json:"refused,omitempty"`   // the BIOS does not accept the declared value any more
}

// Correctable reports whether another apply of the part can end the difference. Volumes are never made again because of one: that erases
// data.
func (d HardwareDifference) Correctable() bool { return d.Part != PartRAID && !d.Blocks() }

// Blocks reports whether the machine cannot have the declared BIOS setting. Ironic then gets none, because all are sent together.
func (d HardwareDifference) Blocks() bool { return d.Gone || d.ReadOnly || d.Refused }

// String describes the difference, such as: BIOS setting BootMode is "Bios", not "Uefi".
func (d HardwareDifference) String() string {
	switch {
	case d.Part == PartRAID:
		return fmt.Sprintf("the volumes are %s, not %s", d.Found, d.Declared)
	case d.Gone:
		return fmt.Sprintf("the machine has no BIOS setting %s any more", d.Name)
	case d.Part == PartFirmware:
		return fmt.Sprintf("the firmware of %s has version %q, not %q", d.Name, d.Found, d.Declared)
	case d.ReadOnly:
		return fmt.Sprintf("BIOS setting %s is %q, not %q, and read-only", d.Name, d.Found, d.Declared)
	case d.Refused:
		return fmt.Sprintf("BIOS setting %s is %q, not %q, which the BIOS does not accept any more", d.Name, d.Found, d.Declared)
	}
	return fmt.Sprintf("BIOS setting %s is %q, not %q", d.Name, d.Found, d.Declared)
}

// HardwareComparison is what the last comparison of a machine with its configuration has found. Private state keeps it, because Ironic
// reads the hardware only when the node moves (reference/ironic.md#hardware-that-ironic-has-cached).
type HardwareComparison struct {
	At          time.Time            `json:"at"` // when the node had moved last
	Of          string               `json:"of"` // fingerprint of what was compared
	Differences []HardwareDifference `json:"differences,omitempty"`
	// those that were there again after the provider had applied the setting again
	Repeated []HardwareDifference `json:"repeated,omitempty"`
}

// WasRepeated reports whether the provider has tried to end a difference already, without success.
func (c *HardwareComparison) WasRepeated(d HardwareDifference) bool {
	return slices.Contains(c.Repeated, d)
}

// Holds reports whether the comparison of a configuration is still right: the node has not moved since, or is moving now, so that what
// Ironic has read of it may be out of date.
func (c *HardwareComparison) Holds(node *ironic.Node, h Hardware) bool {
	return !rests(node) || c != nil && c.At.Equal(movedAt(node)) && c.Of == h.fingerprint()
}

// Compare compares a configuration that was applied to a machine with what Ironic has read of the machine since. It asks for BIOS settings
// and versions only if the comparison before does not hold.
func (h Hardware) Compare(ctx context.Context, site *machine.Site, node *ironic.Node,
	before *HardwareComparison,
) (*HardwareComparison, error) {
	if before.Holds(node, h) {
		return before, nil
	}
	seen, err := SeeHardware(ctx, site, node, h.Parts())
	if err != nil {
		return before, err
	}
	now := &HardwareComparison{At: movedAt(node), Of: h.fingerprint(), Differences: h.Differences(seen)}
	if before != nil {
		now.Repeated = slices.DeleteFunc(slices.Clone(before.Repeated), func(d HardwareDifference) bool {
			return !slices.Contains(now.Differences, d)
		})
	}
	return now, nil
}

// Repeat notes that the provider had applied these settings again before the comparison.
func (c *HardwareComparison) Repeat(applied []HardwareDifference) {
	for _, d := range c.Differences {
		same := func(other HardwareDifference) bool {
			return other.Part == d.Part && other.Name == d.Name && other.Declared == d.Declared
		}
		if slices.ContainsFunc(applied, same) && !c.WasRepeated(d) {
			c.Repeated = append(c.Repeated, d)
		}
	}
}

// rests reports whether what Ironic has read of a node is what the machine has, as far as Ironic can know: no operation is in progress, and
// none has failed.
func rests(node *ironic.Node) bool {
	state := ironic.State(node.ProvisionState)
	return node.Fault == "" && !states.InProgress(state) && !states.Failed(state) && !states.Held(state)
}

// movedAt is when the provision state of a node changed, in whole seconds.
func movedAt(node *ironic.Node) time.Time { return node.ProvisionUpdatedAt.UTC().Truncate(time.Second) }

func (h Hardware) fingerprint() string {
	text, err := json.Marshal(h) // sorted by key
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Both returns the settings that two configurations have in common.
func (h Hardware) Both(other Hardware) (both Hardware) {
	if h.RAID != nil && other.RAID != nil && ironic.SameJSON(h.RAID.Volumes, other.RAID.Volumes) {
		both.RAID = h.RAID
	}
	if both.BIOS = maps.Clone(h.BIOS); both.BIOS != nil {
		maps.DeleteFunc(both.BIOS, func(name, value string) bool {
			applied, has := other.BIOS[name]
			return !has || applied != value
		})
	}
	if both.Firmware = maps.Clone(h.Firmware); both.Firmware != nil {
		maps.DeleteFunc(both.Firmware, func(name string, image Firmware) bool {
			return image.Version == "" || other.Firmware[name].Version != image.Version
		})
	}
	return both
}

// Has reports whether a configuration has the setting of a difference, with the value that was compared.
func (h Hardware) Has(d HardwareDifference) bool {
	switch d.Part {
	case PartRAID:
		return h.RAID != nil && volumesText(h.RAID.Volumes) == d.Declared
	case PartBIOS:
		value, has := h.BIOS[d.Name]
		return has && value == d.Declared
	case PartFirmware:
		return h.Firmware[d.Name].Version == d.Declared
	}
	return false
}

// Without returns a configuration without the settings of differences.
func (h Hardware) Without(differences []HardwareDifference) Hardware {
	h.BIOS, h.Firmware = maps.Clone(h.BIOS), maps.Clone(h.Firmware)
	for _, d := range differences {
		switch d.Part {
		case PartBIOS:
			delete(h.BIOS, d.Name)
		case PartFirmware:
			delete(h.Firmware, d.Name)
		case PartRAID:
		}
	}
	return h
}

// Differences compares a configuration that was applied with what Ironic has read. What Ironic does not know is no difference.
func (h Hardware) Differences(seen HardwareSeen) (all []HardwareDifference) {
	if d, differs := h.volumesDiffer(seen.RAID); differs {
		all = append(all, d)
	}
	for _, name := range slices.Sorted(maps.Keys(h.BIOS)) {
		setting, listed := seen.BIOS[name]
		d := HardwareDifference{
			Part: PartBIOS, Name: name, Declared: h.BIOS[name], Found: setting.Text(), ReadOnly: setting.ReadOnly,
			Gone: !listed, Refused: listed && misfit(setting, h.BIOS[name]) != "",
		}
		switch {
		case len(seen.BIOS) == 0, listed && (setting.Value == nil || setting.Type == "Password"):
		case !listed, !setting.Is(d.Declared):
			all = append(all, d)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.Firmware)) {
		found, want := seen.Firmware[name], h.Firmware[name].Version
		if want != "" && found != "" && found != want {
			all = append(all, HardwareDifference{Part: PartFirmware, Name: name, Declared: want, Found: found})
		}
	}
	return all
}

// volumesDiffer compares the volumes, as far as the RAID interface reports them.
func (h Hardware) volumesDiffer(found []ironic.LogicalDisk) (d HardwareDifference, differs bool) {
	if h.RAID == nil || len(found) == 0 {
		return d, false
	}
	named := slices.ContainsFunc(found, func(v ironic.LogicalDisk) bool { return v.Name != "" })
	rooted := slices.ContainsFunc(found, func(v ironic.LogicalDisk) bool { return v.Root })
	left := slices.Clone(found)
	for _, want := range slices.SortedStableFunc(slices.Values(h.RAID.Volumes), sizedFirst) {
		at := slices.IndexFunc(left, func(have ironic.LogicalDisk) bool {
			return have.Level == want.Level && sameSize(want.SizeGB, have.SizeGB) &&
				(!named || want.Name == "" || want.Name == have.Name) && (!rooted || want.Root == have.Root)
		})
		if at < 0 {
			differs = true
			break
		}
		left = slices.Delete(left, at, at+1)
	}
	differs = differs || h.RAID.DeleteExisting && len(left) > 0
	return HardwareDifference{Part: PartRAID, Declared: volumesText(h.RAID.Volumes), Found: volumesText(found)}, differs
}

// sameSize compares the size of a volume. Ironic rounds what the controller reports down, and the controller may round, too.
func sameSize(want, have any) bool {
	if want == MaxSize || have == MaxSize {
		return true
	}
	a, err := strconv.ParseFloat(fmt.Sprint(want), 64)
	b, bad := strconv.ParseFloat(fmt.Sprint(have), 64)
	return err == nil && bad == nil && (b == a || b == a-1)
}

// volumesText describes volumes, such as: RAID 1 of 100 GiB.
func volumesText(volumes []ironic.LogicalDisk) string {
	var texts []string
	for _, v := range volumes {
		level, size := "RAID "+v.Level, ironic.BIOSSetting{Value: v.SizeGB}.Text()+" GiB"
		if v.Level == "JBOD" {
			level = v.Level
		}
		if v.SizeGB == MaxSize {
			size = "the rest of the space"
		}
		texts = append(texts, level+" of "+size)
	}
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, " and ")
}
