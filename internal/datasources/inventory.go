package datasources

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

func diskAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name":       text("Device name, such as `/dev/sda`. An inspection by Redfish gives the model, which disks share."),
		"size_bytes": number("Size in bytes."), "model": text("Model."),
		"vendor": text("Vendor."), "serial": text("Serial number."), "wwn": text("World wide name."),
		"by_path":    text("Path by the disk's place in the machine, such as `/dev/disk/by-path/pci-0000:18:00.0-scsi-0:2:0:0`."),
		"rotational": flag("Whether the disk rotates."),
		"hctl":       text("SCSI address: host, channel, target and LUN, such as `0:2:0:0`."),
		"wwn_with_extension": text("World wide name with the extension of the vendor, which differs for each volume of a RAID " +
			"controller."),
		"wwn_vendor_extension": text("That extension."),
	}
}

func interfaceAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name": text("Device name, such as `eno1`."), "mac": text("MAC address, in lower case."), "ipv4_address": text("IPv4 address."),
		"ipv6_address": text("IPv6 address."), "has_carrier": flag("Whether the link was up."), "speed_mbps": number("Speed in Mbit/s."),
		"pci_address": text("PCI address, such as `0000:18:00.0`."), "product": text("Product."), "vendor": text("Vendor."),
		"switch_id": text("Switch that the card is connected to, by LLDP: usually its MAC address. Null if the ramdisk did not collect " +
			"LLDP (`ipa-collect-lldp=1`)."),
		"switch_name": text("Name of that switch."), "switch_port_id": text("Port of that switch, such as `Ethernet1/18`."),
	}
}

func inventoryAttributes() map[string]schema.Attribute {
	list := func(description string, attributes map[string]schema.Attribute) schema.Attribute {
		return schema.ListNestedAttribute{
			Computed: true, MarkdownDescription: description,
			NestedObject: schema.NestedAttributeObject{Attributes: attributes},
		}
	}
	return map[string]schema.Attribute{
		"hostname": text("Host name that the machine had during the inspection."), "serial_number": text("Serial number."),
		"manufacturer": text("Manufacturer."), "product": text("Product name."), "bios_version": text("Version of the BIOS."),
		"cpu_arch": text("Architecture, such as `x86_64`."), "cpu_model": text("Model of the CPU."), "cpus": number("Number of CPUs."),
		"memory_mb": number("Memory in MiB."), "boot_mac": text("MAC address of the card from which the machine booted."),
		"bmc_address": text("Address of the BMC."), "bmc_mac": text("MAC address of the BMC."),
		"disks": list("Disks.", diskAttributes()), "interfaces": list("Network interfaces.", interfaceAttributes()),
	}
}

func inventorySchema() schema.Attribute {
	return schema.SingleNestedAttribute{
		Computed: true, Attributes: inventoryAttributes(),
		MarkdownDescription: "What the last inspection found (`include = [\"inventory\"]`, API 1.81, and without `include`); null if the " +
			"node was never inspected, and if the user may not read it (rule `baremetal:node:inventory:get`), such as a lessee. Facts " +
			"that the inspection has not found are null.",
	}
}

// inventoryValue returns an inventory for state; null if there is none. Facts that are missing in it are null.
func inventoryValue(i *ironic.Inventory) types.Object {
	kinds := typesOf(inventoryAttributes())
	if i == nil {
		return types.ObjectNull(kinds)
	}
	diskType := types.ObjectType{AttrTypes: typesOf(diskAttributes())}
	interfaceType := types.ObjectType{AttrTypes: typesOf(interfaceAttributes())}
	disks := []attr.Value{}
	for _, d := range i.Disks {
		disks = append(disks, types.ObjectValueMust(diskType.AttrTypes, map[string]attr.Value{
			"name": orNull(d.Name), "size_bytes": framework.Positive(d.Size), "model": orNull(d.Model), "vendor": orNull(d.Vendor),
			"serial": orNull(d.Serial), "wwn": orNull(d.WWN), "by_path": orNull(d.ByPath),
			"rotational": types.BoolPointerValue(d.Rotational), "hctl": orNull(d.HCTL),
			"wwn_with_extension": orNull(d.WWNWithExtension), "wwn_vendor_extension": orNull(d.WWNVendorExtension),
		}))
	}
	interfaces := []attr.Value{}
	for _, n := range i.Interfaces {
		neighbour := i.Neighbours[n.Name]
		interfaces = append(interfaces, types.ObjectValueMust(interfaceType.AttrTypes, map[string]attr.Value{
			"name": orNull(n.Name), "mac": orNull(n.MAC), "ipv4_address": orNull(n.IPv4), "ipv6_address": orNull(n.IPv6),
			"has_carrier": types.BoolPointerValue(n.HasCarrier), "speed_mbps": framework.Positive(n.SpeedMbps),
			"pci_address": orNull(n.PCIAddress), "product": orNull(n.Product), "vendor": orNull(n.Vendor),
			"switch_id": orNull(neighbour.SwitchID), "switch_name": orNull(neighbour.SwitchName),
			"switch_port_id": orNull(neighbour.PortID),
		}))
	}
	return types.ObjectValueMust(kinds, map[string]attr.Value{
		"hostname": orNull(i.Hostname), "serial_number": orNull(i.System.Serial), "manufacturer": orNull(i.System.Manufacturer),
		"product": orNull(i.System.Product), "bios_version": orNull(i.System.Firmware.Version),
		"cpu_arch": orNull(i.CPU.Architecture), "cpu_model": orNull(i.CPU.Model), "cpus": framework.Positive(i.CPU.Count),
		"memory_mb": framework.Positive(i.Memory.PhysicalMB), "boot_mac": orNull(i.BootMAC()), "bmc_address": orNull(i.BMC()),
		"bmc_mac": orNull(i.BMCMAC),
		"disks":   types.ListValueMust(diskType, disks), "interfaces": types.ListValueMust(interfaceType, interfaces),
	})
}
