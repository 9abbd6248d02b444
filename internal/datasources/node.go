package datasources

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/driverinfo"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

func nodeAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id": text("UUID of the node."), "name": text("Name of the node."), "driver": text("Ironic driver."),
		"bmc_address":     text("Host name or IP address of the BMC."),
		"boot_mode":       text("`uefi` or `bios`, as the BMC has told Ironic last; null if it does not, as with the driver `ipmi`."),
		"secure_boot":     flag("Whether secure boot is on; null if the BMC does not tell."),
		"console_enabled": flag("Whether the console of the node is enabled."),
		"raid":            raidSchema(),
		"provision_state": text("Ironic's provision state of the node, such as `available` or `active`."),
		"power_state":     text("`on` or `off`; null if Ironic does not know."),
		"resource_class":  text("Class by which allocations select the node."), "description": text("Description."),
		"owner": text("Project that owns the node."), "lessee": text("Project that leases the node."),
		"conductor_group": text("Group of conductors that manage the node."), "shard": text("Shard of the node."),
		"instance_id":   text("UUID of the allocation or instance that has reserved the node; null if it is free."),
		"instance_name": text("Name of the instance on the node; null without one, and below API 1.104."),
		"allocation_id": text("UUID of the allocation that has reserved the node; null without one."),
		"maintenance":   flag("Whether the node is in maintenance."), "maintenance_reason": text("Reason of the maintenance."),
		"fault": text("Fault that Ironic has detected, such as `power failure`; null without one."),
		"health": text("Health of the hardware that the BMC reports: `OK`, `Warning` or `Critical`; null if it reports none, and " +
			"below API 1.109."),
		"retired": flag("Whether the node is retired."), "protected": flag("Whether the node is protected: Ironic then refuses to " +
			"rebuild or undeploy it."), "last_error": text("Last error that Ironic reports for the node; null without one."),
		"failure":          failureSchema(),
		"qualification":    qualificationSchema(),
		"traits":           keys("Traits of the node."),
		"properties_json":  jsonAttribute("Properties of the node, as JSON. Decode it with `jsondecode`."),
		"extra_json":       jsonAttribute("Data that clients stored with the node, as JSON. Notes of this provider are left out."),
		"driver_info_json": jsonAttribute("Settings of the driver, as JSON. Ironic masks the secrets."),
		"capabilities": schema.MapAttribute{
			ElementType: types.StringType, Computed: true,
			MarkdownDescription: "Entries of `properties.capabilities`, such as `boot_mode`.",
		},
	}
}

func jsonAttribute(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, CustomType: framework.JSONType{}, MarkdownDescription: description}
}

func nodeValues(node *ironic.Node) map[string]attr.Value {
	return map[string]attr.Value{
		"id": types.StringValue(node.UUID), "name": orNull(node.Name), "driver": orNull(node.Driver),
		"bmc_address": orNull(driverinfo.BMCAddress(node.DriverInfo)),
		"boot_mode":   orNull(node.BootMode), "secure_boot": types.BoolPointerValue(node.SecureBoot),
		"console_enabled": types.BoolValue(node.ConsoleEnabled),
		"raid":            raidValue(node), "instance_name": orNull(node.InstanceName),
		"provision_state": types.StringValue(node.ProvisionState), "power_state": orNull(machine.Power(node)),
		"resource_class": orNull(node.ResourceClass), "description": orNull(node.Description), "owner": orNull(node.Owner),
		"lessee": orNull(node.Lessee), "conductor_group": orNull(node.ConductorGroup), "shard": orNull(node.Shard),
		"instance_id": orNull(node.InstanceUUID), "allocation_id": orNull(node.AllocationUUID),
		"maintenance": types.BoolValue(node.Maintenance), "maintenance_reason": orNull(node.MaintenanceReason),
		"fault": orNull(node.Fault), "health": orNull(node.Health), "retired": types.BoolValue(node.Retired),
		"protected": types.BoolValue(node.Protected), "last_error": orNull(node.LastError), "failure": framework.FailureValue(node),
		"qualification":   qualificationValue(node),
		"traits":          setValue(node.Traits),
		"properties_json": jsonText(node.Properties), "extra_json": jsonText(node.Extra), "driver_info_json": driverInfo(node),
		"capabilities": capabilities(node),
	}
}

func driverInfo(node *ironic.Node) framework.JSON {
	if node.Hidden.DriverInfo {
		return framework.JSONNull()
	}
	return jsonText(node.DriverInfo)
}

// jsonText encodes an object as JSON, without this provider's notes.
func jsonText(m map[string]any) framework.JSON {
	shown := map[string]any{}
	for key, value := range m {
		if !notes.OwnKey(key) {
			shown[key] = value
		}
	}
	return framework.JSONText(shown)
}

func capabilities(node *ironic.Node) types.Map {
	values := map[string]attr.Value{}
	for name, value := range ironic.Capabilities(node.Properties) {
		values[name] = types.StringValue(value)
	}
	return types.MapValueMust(types.StringType, values)
}
