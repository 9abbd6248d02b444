package hardware

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// tolerance is how far sizes may differ, in percent. The firmware of a machine reserves up to 1.8 % of its memory, and one of 48 DIMMs has
// 2.1 %. Disks of 960 GB, as their vendors say, differ less.
const tolerance = 2

// Difference is a fact of a machine that is not as expected.
type Difference struct {
	Fact     string `json:"fact"` // such as memory_mb or bios.BootMode
	Expected string `json:"expected"`
	Found    string `json:"found"`
	Text     string `json:"text"` // a clause
}

// Differences compares a machine with the model. What is not known of the machine is no difference, and neither are the order of parts and
// their names.
func (m Model) Differences(is Machine) (all []Difference) {
	differs := func(fact, want, have, format string, args ...any) {
		all = append(all, Difference{fact, want, have, fmt.Sprintf(format, args...)})
	}
	for _, f := range []struct{ fact, what, want, have string }{
		{"manufacturer", "manufacturer", m.Manufacturer, is.Manufacturer},
		{"product", "product", withoutSKU(m.Product), is.Product},
		{"cpu_arch", "architecture", m.CPUArch, is.CPUArch},
	} {
		if f.want != "" && f.have != "" && !strings.EqualFold(strings.TrimSpace(f.want), f.have) {
			differs(f.fact, f.want, f.have, "the %s is %q, not %q", f.what, f.have, f.want)
		}
	}
	if m.CPUs > 0 && is.CPUs > 0 && m.CPUs != is.CPUs {
		differs("cpus", fmt.Sprint(m.CPUs), fmt.Sprint(is.CPUs), "%d of %d CPUs: %s", is.CPUs, m.CPUs,
			less(is.CPUs < m.CPUs, "a processor is missing, or multithreading is off"))
	}
	if m.MemoryMB > 0 && is.MemoryMB > 0 && !alike(m.MemoryMB, is.MemoryMB) {
		differs("memory_mb", fmt.Sprint(m.MemoryMB), fmt.Sprint(is.MemoryMB), "%d of %d GiB of memory: %s", gib(is.MemoryMB),
			gib(m.MemoryMB), less(is.MemoryMB < m.MemoryMB, "a DIMM is missing"))
	}
	all = append(all, partsDiffer("disks", m.Disks, is.Disks)...)
	all = append(all, partsDiffer("nics", m.NICs, is.NICs)...)
	all = append(all, partsDiffer("gpus", m.GPUs, is.GPUs)...)
	for _, name := range slices.Sorted(maps.Keys(m.BIOS)) {
		setting, listed := is.settings[name]
		if want := m.BIOS[name]; listed && setting.Value != nil && setting.Type != "Password" && !setting.Is(want) {
			differs("bios."+name, want, setting.Written(), "BIOS setting %s is %q, not %q", name, setting.Written(), want)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Firmware)) {
		want, have := m.Firmware[name], is.Firmware[name]
		if want != "" && have != "" && want != have {
			differs("firmware."+name, want, have, "the firmware of %s has version %q, not %q", name, have, want)
		}
	}
	return all
}

func less(is bool, why string) string {
	if is {
		return why
	}
	return "more than expected"
}

func gib(mib int64) int64 { return (mib + 512) / 1024 }

// alike reports whether sizes differ within the tolerance.
func alike(want, have int64) bool { return max(want-have, have-want)*100 <= want*tolerance }

// part is a kind of part, such as disks of one size. A machine may have several of a kind.
type part[T any] interface {
	comparable
	counted(n int64) T
	number() int64
	is(found T) bool // what neither says is no difference
	name(n int64) string
}

func (d Disks) counted(n int64) Disks { return Disks{n, d.SizeGB, d.Type} }
func (d Disks) number() int64         { return d.Count }
func (d Disks) name(n int64) string {
	return named(n, "disk", d.SizeGB, "GB") + bracketed(d.Type)
}

func (d Disks) is(found Disks) bool {
	return (d.SizeGB == 0 || found.SizeGB == 0 || alike(d.SizeGB, found.SizeGB)) && open(d.Type, found.Type)
}

func (c NICs) counted(n int64) NICs { return NICs{n, c.SpeedMbps} }
func (c NICs) number() int64        { return c.Count }
func (c NICs) is(found NICs) bool   { return open(c.SpeedMbps, found.SpeedMbps) }
func (c NICs) name(n int64) string  { return named(n, "network card", c.SpeedMbps, "Mbit/s") }

func (g GPUs) counted(n int64) GPUs { return GPUs{n, g.VendorID, g.ProductID} }
func (g GPUs) number() int64        { return g.Count }
func (g GPUs) name(n int64) string {
	return named(n, "GPU", 0, "") + bracketed(strings.Trim(g.VendorID+":"+g.ProductID, ":"))
}

func (g GPUs) is(found GPUs) bool {
	return open(digits(g.VendorID), found.VendorID) && open(digits(g.ProductID), found.ProductID)
}

// digits returns the digits of a hexadecimal number as inventories have them.
func digits(id string) string { return strings.TrimPrefix(strings.ToLower(id), "0x") }

// open reports whether values are the same, or one is not known.
func open[T comparable](a, b T) bool {
	var zero T
	return a == zero || b == zero || a == b
}

func named(n int64, what string, size int64, unit string) string {
	if n != 1 {
		what += "s"
	}
	if size == 0 {
		return what
	}
	return fmt.Sprintf("%s of %d %s", what, size, unit)
}

func bracketed(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// grouped counts parts of one kind; nil if they are not known.
func grouped[T part[T]](each []T, known bool) []T {
	if !known {
		return nil
	}
	counts := map[T]int64{}
	for _, one := range each {
		counts[one.counted(0)] += one.number()
	}
	groups := []T{}
	for kind, count := range counts {
		groups = append(groups, kind.counted(count))
	}
	slices.SortFunc(groups, func(a, b T) int {
		return cmp.Compare(fmt.Sprintf("%09v", a.counted(0)), fmt.Sprintf("%09v", b.counted(0)))
	})
	return groups
}

// partsDiffer compares parts; nil are not compared, or not known.
func partsDiffer[T part[T]](fact string, want, have []T) (all []Difference) {
	if want == nil || have == nil {
		return nil
	}
	missing, more := unpaired(want, have)
	expected, found := listed(want), listed(have)
	for _, kind := range missing {
		total := int64(0)
		for _, other := range want {
			if other.counted(0) == kind.counted(0) {
				total += other.number()
			}
		}
		n := kind.number()
		all = append(all, Difference{fact, expected, found, fmt.Sprintf("%d of %d %s: %d missing", total-n, total, kind.name(total), n)})
	}
	for _, kind := range more {
		n := kind.number()
		all = append(all, Difference{fact, expected, found, fmt.Sprintf("%d %s more than expected", n, kind.name(n))})
	}
	return all
}

// unpaired pairs as many expected parts with found ones as can be, and returns the others.
func unpaired[T part[T]](want, have []T) (missing, more []T) {
	wanted, there := each(want), each(have)
	taken := make([]int, len(there)) // by which of wanted, counted from 1
	var pair func(i int, tried []bool) bool
	pair = func(i int, tried []bool) bool {
		for j, one := range there {
			if tried[j] || !wanted[i].is(one) {
				continue
			}
			tried[j] = true
			if taken[j] == 0 || pair(taken[j]-1, tried) {
				taken[j] = i + 1
				return true
			}
		}
		return false
	}
	for i, one := range wanted {
		if !pair(i, make([]bool, len(there))) {
			missing = append(missing, one)
		}
	}
	for j, one := range there {
		if taken[j] == 0 {
			more = append(more, one)
		}
	}
	return grouped(missing, true), grouped(more, true)
}

// each returns each part on its own. An inventory may come from anybody, so there is a limit.
func each[T part[T]](groups []T) (all []T) {
	for _, group := range groups {
		all = append(all, slices.Repeat([]T{group.counted(1)}, int(min(group.number(), mostParts)))...)
	}
	return all
}

const mostParts = 256

// listed describes parts, such as: 2 disks of 480 GB (ssd), 4 disks of 1600 GB (nvme).
func listed[T part[T]](groups []T) string {
	var texts []string
	for _, group := range groups {
		texts = append(texts, fmt.Sprintf("%d %s", group.number(), group.name(group.number())))
	}
	return cmp.Or(strings.Join(texts, ", "), "none")
}
