package resources

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

var (
	diskType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"name": types.StringType, "size_bytes": types.Int64Type, "model": types.StringType, "vendor": types.StringType,
		"serial": types.StringType, "wwn": types.StringType, "rotational": types.BoolType,
	}}
	interfaceType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"name": types.StringType, "mac": types.StringType, "ipv4_address": types.StringType, "ipv6_address": types.StringType,
		"has_carrier": types.BoolType, "product": types.StringType, "vendor": types.StringType,
	}}
	inventoryType = map[string]attr.Type{
		"hostname": types.StringType, "serial_number": types.StringType, "manufacturer": types.StringType, "product": types.StringType,
		"cpu_arch": types.StringType, "cpus": types.Int64Type, "memory_mb": types.Int64Type, "boot_mac": types.StringType,
		"bmc_address": types.StringType, "disks": types.ListType{ElemType: diskType}, "interfaces": types.ListType{ElemType: interfaceType},
	}
)

// inventoryValue is an inventory for state; null if there is none, and so is what was not found.
func inventoryValue(i *ironic.Inventory) types.Object {
	if i == nil {
		return types.ObjectNull(inventoryType)
	}
	disks := []attr.Value{}
	for _, d := range i.Disks {
		disks = append(disks, types.ObjectValueMust(diskType.AttrTypes, map[string]attr.Value{
			"name": orNull(d.Name), "size_bytes": positive(d.Size), "model": orNull(d.Model), "vendor": orNull(d.Vendor),
			"serial": orNull(d.Serial), "wwn": orNull(d.WWN), "rotational": types.BoolPointerValue(d.Rotational),
		}))
	}
	interfaces := []attr.Value{}
	for _, n := range i.Interfaces {
		interfaces = append(interfaces, types.ObjectValueMust(interfaceType.AttrTypes, map[string]attr.Value{
			"name": orNull(n.Name), "mac": orNull(n.MAC), "ipv4_address": orNull(n.IPv4), "ipv6_address": orNull(n.IPv6),
			"has_carrier": types.BoolPointerValue(n.HasCarrier), "product": orNull(n.Product), "vendor": orNull(n.Vendor),
		}))
	}
	return types.ObjectValueMust(inventoryType, map[string]attr.Value{
		"hostname": orNull(i.Hostname), "serial_number": orNull(i.System.Serial), "manufacturer": orNull(i.System.Manufacturer),
		"product": orNull(i.System.Product), "cpu_arch": orNull(i.CPU.Architecture), "cpus": positive(i.CPU.Count),
		"memory_mb": positive(i.Memory.PhysicalMB), "boot_mac": orNull(i.BootMAC()), "bmc_address": orNull(i.BMC()),
		"disks": types.ListValueMust(diskType, disks), "interfaces": types.ListValueMust(interfaceType, interfaces),
	})
}

// positive is a number for state: what is not found, and so 0, is null.
func positive(n int64) types.Int64 {
	if n <= 0 {
		return types.Int64Null()
	}
	return types.Int64Value(n)
}
