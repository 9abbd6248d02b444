package resources

import (
	"context"
	"fmt"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// interfaceNames are Ironic's hardware interfaces, each a <name>_interface of the node.
var interfaceNames = []string{
	"bios", "boot", "console", "deploy", "firmware", "inspect", "management", "network", "power", "raid", "rescue", "storage", "vendor",
}

var (
	macPattern   = regexp.MustCompile(`^[0-9a-f]{2}(:[0-9a-f]{2}){5}$`)
	namePattern  = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,255}$`)
	traitPattern = regexp.MustCompile(`^[A-Z0-9_]+$`)
	uuidPattern  = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
)

func nameValidators() []validator.String {
	return []validator.String{
		stringvalidator.RegexMatches(namePattern, "must have 1 to 255 letters, digits and the characters . _ ~ -"),
		stringvalidator.NoneOf("maintenance", "management", "states", "vendor_passthru", "detail", "validate"),
		notUUID,
	}
}

func traitValidators() []validator.Set {
	return []validator.Set{setvalidator.ValueStringsAre(
		stringvalidator.RegexMatches(traitPattern, "must be CUSTOM_ and capital letters, digits or underscores, or a standard trait"))}
}

func keyValidators() []validator.Map { return []validator.Map{mapvalidator.KeysAre(patchableKey)} }

// Schema describes metal_host.
func (h *host) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A physical machine that Ironic knows: a node with its ports. Enrolling it erases nothing; only " +
			"`target_state = \"available\"` cleans it.\n\n" +
			"**What you write is managed; what you leave out is not.** A setting that you remove from the configuration again is " +
			"returned to Ironic's default; one that you never wrote is left as it is, and so are keys of maps, traits and ports that others added.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				Computed: true, MarkdownDescription: "UUID of the node.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"name": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "Name of the node, unique in Ironic: letters, digits and `.`, `_`, `~`, `-`. Renaming costs nothing.",
				Validators:          nameValidators(),
			},
			"bmc": h.bmcSchema(),
			"driver": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "Ironic driver, such as `redfish` or `ipmi`. Give this or `bmc`. A change resets the interfaces that are not set; the machine does not notice.",
				Validators:          []validator.String{stringvalidator.ConflictsWith(path.MatchRoot("bmc")), stringvalidator.LengthAtLeast(1)},
			},
			"driver_info": schema.MapAttribute{
				ElementType: types.StringType, Optional: true, Computed: true, Sensitive: true,
				MarkdownDescription: "Settings of the driver, such as `redfish_address` or `deploy_kernel`. Only these keys are managed. " +
					"It is sensitive, and in the state; secrets belong into `driver_info_wo`.",
				Validators: keyValidators(),
			},
			"driver_info_wo": schema.MapAttribute{
				ElementType: types.StringType, Optional: true, Sensitive: true, WriteOnly: true,
				MarkdownDescription: "Secret settings of the driver, such as `redfish_password`. Write-only: in no plan and no state (Terraform and OpenTofu from 1.11). " +
					"Sent when the host is created and whenever `driver_info_wo_version` changes.",
				Validators: append(keyValidators(), mapvalidator.AlsoRequires(path.MatchRoot("driver_info_wo_version"))),
			},
			"driver_info_wo_version": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Change it to send `driver_info_wo` again. Costs nothing.",
				Validators: []validator.Int64{int64validator.AlsoRequires(path.MatchRoot("driver_info_wo"))},
			},
			"ports":          h.portsSchema(),
			"resource_class": h.text("Class by which allocations find the node, at most 80 characters.", stringvalidator.LengthBetween(1, 80)),
			"traits": schema.SetAttribute{
				ElementType: types.StringType, Optional: true, Computed: true,
				MarkdownDescription: "Traits that allocations may ask for: standard ones, or `CUSTOM_` and capital letters, digits, underscores. Others that the node has stay. A change costs nothing.",
				Validators:          traitValidators(),
			},
			"capabilities": schema.MapAttribute{
				ElementType: types.StringType, Optional: true, Computed: true,
				MarkdownDescription: "Entries of `properties.capabilities`, such as `boot_mode = \"uefi\"`. Others that the node has stay. A change counts from the next deployment.",
				Validators:          []validator.Map{mapvalidator.KeysAre(capability), mapvalidator.ValueStringsAre(capability)},
			},
			"properties": schema.MapAttribute{
				ElementType: types.StringType, Optional: true, Computed: true,
				MarkdownDescription: "Facts about the hardware, such as `cpus`, `memory_mb`, `local_gb`, `cpu_arch`. Merged: what an inspection found stays. " +
					"`capabilities` and `root_device` have attributes of their own. Ironic's units: MiB of memory, GiB of disk. A change costs nothing.",
				Validators: append(keyValidators(), mapvalidator.KeysAre(stringvalidator.NoneOf("capabilities", "root_device"))),
			},
			"root_device": schema.MapAttribute{
				ElementType: types.StringType, Optional: true, Computed: true,
				MarkdownDescription: "Hints that select the disk to deploy to, such as `serial`, `wwn`, `size` (GiB), `rotational`. All must match. A change counts from the next deployment.",
				Validators:          keyValidators(),
			},
			"interfaces": h.interfacesSchema(),
			"extra": schema.DynamicAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "Anything you want to keep with the node, as an object of JSON values. Only these keys are managed.",
				Validators:          []validator.Dynamic{jsonObjectValue{}},
			},
			"description":     h.text("Description, at most 4096 characters.", stringvalidator.LengthBetween(1, 4096)),
			"owner":           h.text("Project (UUID or name) that owns the node.", stringvalidator.LengthBetween(1, 255)),
			"lessee":          h.text("Project (UUID or name) that leases the node.", stringvalidator.LengthBetween(1, 255)),
			"conductor_group": h.text("Group of conductors that serve the node. A conductor of it must run.", stringvalidator.LengthBetween(1, 255)),
			"shard":           h.text("Shard of the node. Needs API 1.82.", stringvalidator.LengthBetween(1, 255)),
			"automated_clean": h.flag("Whether the node is cleaned on its way to `available`. Default: as Ironic is configured."),
			"maintenance":     h.flag("Whether the node is in maintenance: Ironic neither allocates nor deploys it then."),
			"maintenance_reason": schema.StringAttribute{
				Optional: true, Computed: true, MarkdownDescription: "Why the node is in maintenance.",
				Validators: []validator.String{stringvalidator.AlsoRequires(path.MatchRoot("maintenance"))},
			},
			"retired": h.flag("Whether the node is retired: not handed out any more, and undeployed to `manageable`. Ironic refuses the change while the node is `available`."),
			"retired_reason": schema.StringAttribute{
				Optional: true, Computed: true, MarkdownDescription: "Why the node is retired.",
				Validators: []validator.String{stringvalidator.AlsoRequires(path.MatchRoot("retired"))},
			},
			"protected": h.flag("Whether the node is protected from undeploying, rebuilding and deletion. Ironic allows it for deployed nodes only."),
			"protected_reason": schema.StringAttribute{
				Optional: true, Computed: true, MarkdownDescription: "Why the node is protected.",
				Validators: []validator.String{stringvalidator.AlsoRequires(path.MatchRoot("protected"))},
			},
			"target_state": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "How far to prepare the node: `enroll` (known), `manageable` (its BMC answers; the default), or `available` " +
					"(ready to be allocated: **getting there cleans the node, which erases data**). A node that is deployed is left alone.",
				Validators: []validator.String{stringvalidator.OneOf(targetEnroll, string(ironic.GoalManageable), string(ironic.GoalAvailable))},
			},
			"inspect": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Inspect the node once, unless it has been inspected already. The machine boots for it. Default: `false`. " +
					"Turned on for an `available` node, the node becomes manageable for it and is cleaned afterwards.",
			},
			"power_state": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "`on` or `off`. Left alone when unset; the attribute then shows what it is. A change switches the machine. " +
					"While something is deployed on the node, this is ignored, with a warning: its `metal_deployment` decides.",
				Validators: []validator.String{stringvalidator.OneOf(powerOn, powerOff)},
			},
			"on_destroy": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "What destroying this resource does: `delete` (the default) removes the node from Ironic, " +
					"`forget` leaves it there. The machine is not touched. A node that something is deployed on, or that is reserved, is not deleted: that must go first.",
				Validators: []validator.String{stringvalidator.OneOf(destroyDelete, destroyForget)},
			},
			"timeouts": timeoutsAttribute(ctx, timeouts.Opts{
				Create: true, CreateDescription: "Time for verifying, inspecting and cleaning each, without the time in the queue. Default: `60m`.",
				Update: true, UpdateDescription: "As for create. Default: `60m`.",
				Delete: true, DeleteDescription: "Time for the node to become deletable. Default: `30m`.",
			}),
			"provision_state": schema.StringAttribute{Computed: true, MarkdownDescription: "Ironic's provision state of the node."},
			"power_managed": schema.BoolAttribute{
				Computed: true, MarkdownDescription: "Whether Ironic can switch the machine: it knows its BMC. If not, power is left alone and nothing is cleaned.",
			},
			"last_error":    schema.StringAttribute{Computed: true, MarkdownDescription: "Why the node's last operation failed."},
			"fault":         schema.StringAttribute{Computed: true, MarkdownDescription: "Fault that Ironic has detected, such as `power failure`."},
			"instance_uuid": schema.StringAttribute{Computed: true, MarkdownDescription: "Who has reserved the node: the UUID of an allocation or instance."},
			"allocation_id": schema.StringAttribute{Computed: true, MarkdownDescription: "UUID of the allocation that has reserved the node."},
			"inventory":     inventorySchema(),
		},
	}
}

func (h *host) text(description string, validators ...validator.String) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: description + " A change costs nothing.", Validators: validators}
}

func (h *host) flag(description string) schema.BoolAttribute {
	return schema.BoolAttribute{Optional: true, Computed: true, MarkdownDescription: description}
}

func (h *host) bmcSchema() schema.Attribute {
	password := path.MatchRelative().AtParent()
	return schema.SingleNestedAttribute{
		Optional:            true,
		MarkdownDescription: "The machine's BMC, in place of `driver`. Address and credentials change in place; the machine does not notice. Removed, Ironic forgets the address and credentials, and the driver stays.",
		Attributes: map[string]schema.Attribute{
			"address": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "`ipmi://HOST[:PORT]`, `redfish://HOST[:PORT]/SYSTEM` or `redfish-virtualmedia://HOST[:PORT]/SYSTEM`, the last two also " +
					"with `+http` or `+https` (the default) after the scheme. SYSTEM is such as `/redfish/v1/Systems/1`; without it, the BMC must have one system only. A bare `HOST[:PORT]` means IPMI.",
				Validators: []validator.String{bmcAddress},
			},
			"username": schema.StringAttribute{Optional: true, MarkdownDescription: "User name."},
			"password": schema.StringAttribute{
				Optional: true, Sensitive: true,
				MarkdownDescription: "Password. In the state: prefer `password_wo` where the CLI has write-only arguments.",
				Validators:          []validator.String{stringvalidator.ConflictsWith(password.AtName("password_wo"))},
			},
			"password_wo": schema.StringAttribute{
				Optional: true, Sensitive: true, WriteOnly: true,
				MarkdownDescription: "Password, write-only: in no plan and no state (Terraform and OpenTofu from 1.11).",
				Validators:          []validator.String{stringvalidator.AlsoRequires(password.AtName("password_wo_version"))},
			},
			"password_wo_version": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Change it to send `password_wo` again. Costs nothing.",
				Validators: []validator.Int64{int64validator.AlsoRequires(password.AtName("password_wo"))},
			},
			"verify_ca": schema.BoolAttribute{
				Optional: true, MarkdownDescription: "Whether Ironic verifies the BMC's certificate. Default: as the driver does, which is `true` for Redfish.",
			},
		},
	}
}

func (h *host) portsSchema() schema.Attribute {
	return schema.MapNestedAttribute{
		Optional: true, Computed: true,
		MarkdownDescription: "Network cards by MAC address (lower case, with colons). Those that others added, such as an inspection, stay. " +
			"Ironic refuses changes of connectivity while the node is `available` or deployed.",
		Validators: []validator.Map{mapvalidator.KeysAre(macAddress)},
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"pxe_enabled":      schema.BoolAttribute{Optional: true, Computed: true, MarkdownDescription: "Whether the machine may boot from it. Ironic's default: `true`."},
			"physical_network": schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: "Physical network that it is plugged into."},
			"local_link_connection": schema.MapAttribute{
				ElementType: types.StringType, Optional: true, Computed: true,
				MarkdownDescription: "Switch and port that it is plugged into: `switch_id`, `port_id`, `switch_info`.",
			},
		}},
	}
}

func (h *host) interfacesSchema() schema.Attribute {
	attributes := map[string]schema.Attribute{}
	for _, name := range interfaceNames {
		description := fmt.Sprintf("The %s interface. Default: the driver's.", name)
		if name == "firmware" {
			description += " Needs API 1.86."
		}
		attributes[name] = schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: description}
	}
	return schema.SingleNestedAttribute{
		Optional: true, Computed: true, Attributes: attributes,
		MarkdownDescription: "Hardware interfaces, such as `deploy = \"direct\"` or `boot = \"ipxe\"`. A change counts from the next operation. " +
			"While something is deployed, Ironic takes it in maintenance only: the apply puts the node into maintenance for that moment, and out again.",
	}
}

func inventorySchema() schema.Attribute {
	text := func(description string) schema.Attribute {
		return schema.StringAttribute{Computed: true, MarkdownDescription: description}
	}
	number := func(description string) schema.Attribute {
		return schema.Int64Attribute{Computed: true, MarkdownDescription: description}
	}
	flag := func(description string) schema.Attribute {
		return schema.BoolAttribute{Computed: true, MarkdownDescription: description}
	}
	return schema.SingleNestedAttribute{
		Computed:            true,
		MarkdownDescription: "What the last inspection found; null without one, and on Ironic below API 1.81. What it did not find is null.",
		Attributes: map[string]schema.Attribute{
			"hostname": text("Host name of the ramdisk."), "serial_number": text("Serial number."), "manufacturer": text("Manufacturer."),
			"product": text("Product name."), "cpu_arch": text("Architecture, such as `x86_64`."), "cpus": number("Number of CPUs."),
			"memory_mb": number("Memory in MiB."), "boot_mac": text("MAC address that it booted from."), "bmc_address": text("Address of the BMC."),
			"disks": schema.ListNestedAttribute{Computed: true, MarkdownDescription: "Disks.", NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"name": text("Device name."), "size_bytes": number("Size in bytes."), "model": text("Model."), "vendor": text("Vendor."),
				"serial": text("Serial number."), "wwn": text("World wide name."), "rotational": flag("Whether it rotates."),
			}}},
			"interfaces": schema.ListNestedAttribute{Computed: true, MarkdownDescription: "Network cards.", NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"name": text("Device name."), "mac": text("MAC address."), "ipv4_address": text("IPv4 address."), "ipv6_address": text("IPv6 address."),
				"has_carrier": flag("Whether the link was up."), "product": text("Product."), "vendor": text("Vendor."),
			}}},
		},
	}
}

// ValidateConfig checks what attributes cannot check alone.
func (h *host) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m hostModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() || m.bmc(ctx) == nil || !isSet(m.bmc(ctx).Address) {
		return
	}
	bmc, err := ironic.ParseBMC(m.bmc(ctx).Address.ValueString())
	if err != nil {
		return // the attribute's validator says so
	}
	if bmc.VerifyCAKey == "" && isSet(m.bmc(ctx).VerifyCA) {
		resp.Diagnostics.AddAttributeError(path.Root("bmc").AtName("verify_ca"), "Setting without use", "IPMI has no certificates: remove verify_ca.")
	}
	for key := range stringMap(m.DriverInfo) {
		if _, twice := bmc.Info[key]; twice || key == bmc.UsernameKey || key == bmc.PasswordKey || key == bmc.VerifyCAKey {
			resp.Diagnostics.AddAttributeError(path.Root("driver_info").AtMapKey(key), "Set twice",
				key+" follows from bmc. Remove it here, or use driver and driver_info without bmc.")
		}
	}
}
