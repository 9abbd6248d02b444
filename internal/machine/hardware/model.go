// Package hardware compares the hardware of a machine with that of its model: what an inspection has found, the BIOS settings and the
// versions of firmware. Only Look makes requests.
package hardware

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// Model is the hardware that a machine must have, or has. What is zero or nil is not compared, or not known.
type Model struct {
	Manufacturer string            `json:"manufacturer,omitempty"`
	Product      string            `json:"product,omitempty"` // without the SKU
	CPUArch      string            `json:"cpu_arch,omitempty"`
	CPUs         int64             `json:"cpus,omitempty"`
	MemoryMB     int64             `json:"memory_mb,omitempty"` // MiB
	Disks        []Disks           `json:"disks,omitzero"`
	NICs         []NICs            `json:"nics,omitzero"`
	GPUs         []GPUs            `json:"gpus,omitzero"`
	BIOS         map[string]string `json:"bios,omitempty"`     // settings by name
	Firmware     map[string]string `json:"firmware,omitempty"` // versions by component
}

// Disks are disks of one kind.
type Disks struct {
	Count  int64  `json:"count"`
	SizeGB int64  `json:"size_gb,omitempty"` // as its vendor counts: 10^9 bytes
	Type   string `json:"type,omitempty"`    // see DiskTypes
}

// DiskTypes are the types of disks.
var DiskTypes = []string{"hdd", "ssd", "nvme"}

// NICs are network cards of one speed.
type NICs struct {
	Count     int64 `json:"count"`
	SpeedMbps int64 `json:"speed_mbps,omitempty"`
}

// GPUs are GPUs and other accelerators of one kind, with the hexadecimal digits of their PCI device.
type GPUs struct {
	Count     int64  `json:"count"`
	VendorID  string `json:"vendor_id,omitempty"`
	ProductID string `json:"product_id,omitempty"`
}

// Keys lists the keys of a Model.
const Keys = "manufacturer, product, cpu_arch, cpus, memory_mb, disks (count, size_gb, type), nics (count, speed_mbps), gpus (count, " +
	"vendor_id, product_id), bios and firmware"

// Parse reads a model from a JSON value. The error says which part of the value is wrong.
func Parse(value any) (m Model, err error) {
	text, err := json.Marshal(value)
	if err != nil {
		return m, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&m)
	if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		return m, fmt.Errorf("%s is a JSON %s, which it cannot be", cmp.Or(wrong.Field, "the value"), wrong.Value)
	}
	if err != nil {
		return m, fmt.Errorf("%s; the keys are %s", strings.Replace(err.Error(), "json: unknown field", "unknown key", 1), Keys)
	}
	return m, m.fault()
}

// fault returns what cannot be so of a model.
func (m Model) fault() error {
	if m.CPUs < 0 || m.MemoryMB < 0 {
		return errors.New("cpus and memory_mb must be positive")
	}
	for _, d := range m.Disks {
		if d.Count < 1 || d.SizeGB < 0 || d.Type != "" && !slices.Contains(DiskTypes, d.Type) {
			return fmt.Errorf("each of disks needs a count of at least 1, and its type must be %s", strings.Join(DiskTypes, ", "))
		}
	}
	if slices.ContainsFunc(m.NICs, func(n NICs) bool { return n.Count < 1 || n.SpeedMbps < 0 }) ||
		slices.ContainsFunc(m.GPUs, func(g GPUs) bool { return g.Count < 1 }) {
		return errors.New("each of nics and gpus needs a count of at least 1")
	}
	return nil
}

// Facts returns each fact of a model as a model of its own, by its name, such as memory_mb or bios.BootMode.
func (m Model) Facts() map[string]Model {
	all := map[string]Model{
		"manufacturer": {Manufacturer: m.Manufacturer}, "product": {Product: m.Product}, "cpu_arch": {CPUArch: m.CPUArch},
		"cpus": {CPUs: m.CPUs}, "memory_mb": {MemoryMB: m.MemoryMB}, "disks": {Disks: m.Disks}, "nics": {NICs: m.NICs},
		"gpus": {GPUs: m.GPUs},
	}
	for name, value := range m.BIOS {
		all["bios."+name] = Model{BIOS: map[string]string{name: value}}
	}
	for name, version := range m.Firmware {
		all["firmware."+name] = Model{Firmware: map[string]string{name: version}}
	}
	maps.DeleteFunc(all, func(_ string, fact Model) bool { return fact.IsEmpty() })
	return all
}

// Value describes the only fact of a model.
func (m Model) Value() string {
	switch {
	case m.Disks != nil:
		return listed(m.Disks)
	case m.NICs != nil:
		return listed(m.NICs)
	case m.GPUs != nil:
		return listed(m.GPUs)
	case m.CPUs+m.MemoryMB > 0:
		return strconv.FormatInt(m.CPUs+m.MemoryMB, 10)
	}
	for _, values := range []map[string]string{m.BIOS, m.Firmware} {
		for _, value := range values {
			return value
		}
	}
	return m.Manufacturer + m.Product + m.CPUArch
}

// IsEmpty reports whether a model says nothing.
func (m Model) IsEmpty() bool { return m.String() == "{}" }

// String returns the model as JSON on one line, with sorted keys of bios and firmware.
func (m Model) String() string {
	text, err := json.Marshal(m)
	if err != nil {
		return ""
	}
	return string(text)
}

// With returns a model with the facts of another one, which count for more.
func (m Model) With(other Model) Model {
	m.Manufacturer, m.Product = cmp.Or(other.Manufacturer, m.Manufacturer), cmp.Or(other.Product, m.Product)
	m.CPUArch, m.CPUs, m.MemoryMB = cmp.Or(other.CPUArch, m.CPUArch), cmp.Or(other.CPUs, m.CPUs), cmp.Or(other.MemoryMB, m.MemoryMB)
	if other.Disks != nil {
		m.Disks = other.Disks
	}
	if other.NICs != nil {
		m.NICs = other.NICs
	}
	if other.GPUs != nil {
		m.GPUs = other.GPUs
	}
	for _, to := range []struct {
		all  *map[string]string
		more map[string]string
	}{{&m.BIOS, other.BIOS}, {&m.Firmware, other.Firmware}} {
		*to.all = maps.Clone(*to.all)
		for name, value := range to.more {
			*to.all = with(*to.all, name, value)
		}
	}
	return m
}

// Machine is what Ironic knows of the hardware of a machine.
type Machine struct {
	Model     // its bios has the settings that machines may have in common
	Serial    string
	Inspected bool // it has an inventory

	settings map[string]ironic.BIOSSetting
}

// Of returns the hardware of a machine: the inventory of its last inspection, and the BIOS settings and versions of firmware that Ironic
// has read. Each may be nil.
func Of(inventory *ironic.Inventory, bios map[string]ironic.BIOSSetting, firmware map[string]string) Machine {
	m := Machine{settings: bios}
	for name, setting := range bios {
		if common := !setting.ReadOnly && (setting.Unique == nil || !*setting.Unique); common && setting.Value != nil &&
			setting.Type != "Password" {
			m.BIOS = with(m.BIOS, name, setting.Written())
		}
	}
	for component, version := range firmware {
		if version != "" {
			m.Firmware = with(m.Firmware, component, version)
		}
	}
	if inventory == nil {
		return m
	}
	if version := inventory.System.Firmware.Version; version != "" && m.Firmware["bios"] == "" {
		m.Firmware = with(m.Firmware, "bios", version)
	}
	m.Serial, m.Inspected = inventory.System.Serial, true
	m.Manufacturer, m.Product = strings.TrimSpace(inventory.System.Manufacturer), withoutSKU(inventory.System.Product)
	m.CPUArch, m.CPUs, m.MemoryMB = inventory.CPU.Architecture, inventory.CPU.Count, inventory.Memory.PhysicalMB
	m.Disks, m.NICs, m.GPUs = disksOf(inventory), cardsOf(inventory), gpusOf(inventory)
	return m
}

func with(all map[string]string, key, value string) map[string]string {
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	return all
}

// withoutSKU returns a product without what the agent adds in brackets, which differs for machines of a model: PowerEdge R640
// (SKU=NotProvided;ModelName=PowerEdge R640).
func withoutSKU(product string) string {
	if at := strings.LastIndex(product, " ("); at > 0 && strings.HasSuffix(product, ")") {
		product = product[:at]
	}
	return strings.TrimSpace(product)
}

// disksOf groups the disks; nil if the inspection has not looked for them.
func disksOf(inventory *ironic.Inventory) (all []Disks) {
	for _, disk := range inventory.Disks {
		if disk.Size > 0 { // else a reader of cards
			all = append(all, Disks{1, int64(math.Round(float64(disk.Size) / 1e9)), TypeOf(disk)})
		}
	}
	return grouped(all, inventory.Disks != nil)
}

// TypeOf returns the type of a disk; "" if it is not known.
func TypeOf(disk ironic.Disk) string {
	switch {
	case strings.HasPrefix(disk.Name, "/dev/nvme"):
		return "nvme"
	case disk.Rotational == nil:
		return ""
	case *disk.Rotational:
		return "hdd"
	}
	return "ssd"
}

// cardsOf groups the network cards. Devices with the MAC address of another one, such as a VLAN on it, are none.
func cardsOf(inventory *ironic.Inventory) (all []NICs) {
	seen := map[string]bool{}
	for _, card := range inventory.Interfaces {
		if !seen[card.MAC] {
			all = append(all, NICs{1, card.SpeedMbps})
		}
		seen[card.MAC] = card.MAC != ""
	}
	return grouped(all, inventory.Interfaces != nil)
}

// The displays of BMCs are no GPUs.
var displaysOfBMCs = []string{"1a03", "102b"} // ASPEED, Matrox

// gpusOf groups the GPUs: displays and accelerators, by their PCI class; nil if the inspection has not listed PCI devices.
func gpusOf(inventory *ironic.Inventory) (all []GPUs) {
	for _, device := range inventory.PCIDevices {
		is := slices.ContainsFunc([]string{"03", "12", "displaycontroller", "processingaccelerators"}, func(class string) bool {
			return strings.HasPrefix(device.Class, class)
		})
		if is && !slices.Contains(displaysOfBMCs, device.VendorID) {
			all = append(all, GPUs{1, device.VendorID, device.ProductID})
		}
	}
	return grouped(all, inventory.PCIDevices != nil)
}
