package machine

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
)

// BIOSSetting is a BIOS setting of a machine, with its registry.
type BIOSSetting struct {
	Name, Value  string
	Type         string   // attribute_type: "Enumeration", "String", "Integer", "Boolean", "Password"; "" means no registry
	Allowed      []string // of an Enumeration
	Lower, Upper any      // bounds of an Integer, lengths of a String; nil means none
	ReadOnly     bool
}

// Component is a part of a machine with firmware.
type Component struct {
	Initial, Current, Flashed string
	Vendor, Model, Serial     string // "" of a BIOS; a BMC has a model only
}

// FirmwareVersion returns the version that the fake's machines report after an update from a URL: what follows the last "-" or "_" of
// the file's name, without its extension. So bios-2.19.1.bin contains version 2.19.1.
func FirmwareVersion(url string) string {
	name := path.Base(url)
	name = strings.TrimSuffix(name, path.Ext(name))
	return name[strings.LastIndexAny(name, "-_")+1:]
}

// SampleBIOS are the BIOS settings of a machine at first.
var SampleBIOS = []BIOSSetting{
	{Name: "AssetTag", Type: "String", Lower: 0, Upper: 63},
	{Name: "BootMode", Value: "Uefi", Type: "Enumeration", Allowed: []string{"Bios", "Uefi"}},
	{Name: "LogicalProc", Value: "Enabled", Type: "Enumeration", Allowed: []string{"Enabled", "Disabled"}},
	{Name: "NumberOfCores", Value: "0", Type: "Integer", Lower: 0, Upper: 64},
	{Name: "ProcVirtualization", Value: "Disabled", Type: "Enumeration", Allowed: []string{"Enabled", "Disabled"}},
	{Name: "SystemServiceTag", Value: "TAG0001", Type: "String", ReadOnly: true},
}

// Registry returns the members that only a registry fills.
func (b BIOSSetting) Registry() api.Ordered {
	entry := map[string]any{"allowable_values": []string{}}
	if b.Type != "" {
		entry["attribute_type"], entry["read_only"], entry["reset_required"], entry["unique"] = b.Type, b.ReadOnly, true, false
	}
	if b.Allowed != nil {
		entry["allowable_values"] = b.Allowed
	}
	switch b.Type {
	case "Integer":
		entry["lower_bound"], entry["upper_bound"] = b.Lower, b.Upper
	case "String":
		entry["min_length"], entry["max_length"] = b.Lower, b.Upper
	}
	var out api.Ordered
	for _, key := range []string{
		"attribute_type", "allowable_values", "lower_bound", "max_length", "min_length", "read_only",
		"reset_required", "unique", "upper_bound",
	} {
		out = append(out, api.Member{key, entry[key]})
	}
	return out
}

// Accepts reports whether a BMC accepts a value, which must have the type of the registry.
func (b BIOSSetting) Accepts(value any) bool {
	within := func(number float64) bool {
		bound := func(limit any, otherwise float64) float64 {
			if limit == nil {
				return otherwise
			}
			parsed, _ := strconv.ParseFloat(fmt.Sprint(limit), 64) // bounds are numbers
			return parsed
		}
		return number >= bound(b.Lower, number) && number <= bound(b.Upper, number)
	}
	switch b.Type {
	case "Enumeration":
		return slices.Contains(b.Allowed, api.Text(value)) && !b.ReadOnly
	case "Integer":
		number, isNumber := api.Number(value)
		return isNumber && within(number) && !b.ReadOnly
	case "Boolean":
		_, isBool := value.(bool)
		return isBool && !b.ReadOnly
	case "String":
		return !b.ReadOnly && within(float64(len(api.Text(value))))
	}
	return !b.ReadOnly
}
