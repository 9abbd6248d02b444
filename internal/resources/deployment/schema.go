package deployment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/boolvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
)

func (d *deployment) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	stays := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Deploys a node: writes an image to its disk, or boots it from a live ISO. Destroying the resource " +
			"undeploys and cleans the node, which **erases its data**.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{Computed: true, MarkdownDescription: "UUID of the node.", PlanModifiers: stays},
			"node_id": schema.StringAttribute{
				Required: true, MarkdownDescription: "UUID or name of the node. If you name another node later, the deployment stays " +
					"where it is, and the plan warns: only another `allocation_id` or `terraform apply -replace` moves it.",
				Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"allocation_id": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "UUID of the `metal_allocation` that reserves the node. The provider restores it after the " +
					"deployment is destroyed. A change to another one **replaces** the deployment; one that is not known yet does not. " +
					"Default: the resource reserves the node itself.",
			},
			"image":    imageSchema(),
			"live_iso": liveISOSchema(),
			"adopt": schema.BoolAttribute{
				Optional: true, Validators: []validator.Bool{boolvalidator.Equals(true)},
				MarkdownDescription: "Exactly one of `image`, `live_iso` and `adopt` is required. `true`: takes the machine over as it " +
					"runs; nothing is written to its disks. The node must be deployed or `manageable`. Needs `on_destroy`.",
			},
			"boot_status":  bootStatusSchema(),
			"config_drive": configDriveSchema(),
			"deploy_steps": framework.Steps(framework.ByPriority, schema.ListNestedAttribute{
				Optional: true, MarkdownDescription: "Additional deploy steps of Ironic. A change rebuilds the node. Needs API 1.69.",
			}),
			"capabilities": schema.MapAttribute{
				ElementType: types.StringType, Optional: true, MarkdownDescription: "Capabilities of the instance, such as `boot_mode " +
					"= \"uefi\"`. A change rebuilds the node.",
				Validators: []validator.Map{mapvalidator.SizeAtLeast(1), framework.KnownCapabilities()},
			},
			"traits": schema.SetAttribute{
				ElementType: types.StringType, Optional: true, Validators: framework.TraitValidators(),
				MarkdownDescription: "Traits of the node that select deploy templates. A change rebuilds the node. Default: those of " +
					"the allocation.",
			},
			"root_device": schema.MapAttribute{
				ElementType: types.StringType, Optional: true,
				Validators: []validator.Map{mapvalidator.SizeAtLeast(1), framework.RootDevice()},
				MarkdownDescription: "Hints that select the disk, such as `serial` or `wwn`. Default: those of the host. A change " +
					"rebuilds the node.",
			},
			"instance_info": schema.DynamicAttribute{
				Optional: true, Validators: []validator.Dynamic{framework.JSONObjectValue{}},
				MarkdownDescription: "Additional keys of Ironic's `instance_info`. A change rebuilds the node, except with `adopt`.",
			},
			"instance_name": schema.StringAttribute{
				Optional: true, Computed: true, Validators: []validator.String{stringvalidator.LengthBetween(1, 255)},
				MarkdownDescription: "Name of the instance, at most 255 characters. Needs API 1.104.",
			},
			"vifs": vifsSchema(),
			"on_change": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf(onChangeRebuild, onChangeReplace, onChangeIgnore)},
				MarkdownDescription: "Effect of a change of `image`, `config_drive` or another attribute that rebuilds the node, except " +
					"`rebuild_triggers`. `rebuild`: in place, **wipes the root disk**. `replace`: Terraform destroys and creates the " +
					"deployment; `prevent_destroy` stops it. `ignore`: none; the state keeps the old content. Default: `on_change` of " +
					"the provider block, then `rebuild`.",
			},
			"rebuild_triggers": schema.MapAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "A change from one value to another rebuilds the node, whatever `on_change` is, and **wipes the " +
					"root disk**. The first value, also one that is known only after apply, and removing it do nothing. Example: `{ " +
					"month = \"2026-11\" }`.",
			},
			"restart_triggers": schema.MapAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "A change from one value to another **restarts** the machine as `power_off_mode` says, unless " +
					"`power_state` is `off`. The first value and removing it do nothing, as for `rebuild_triggers`. Example: `{ kernel " +
					"= \"6.12.9\" }`.",
			},
			"rescue": rescueSchema(),
			"protected": schema.BoolAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "`true`: Ironic refuses to rebuild and undeploy the node; the provider sets it after the " +
					"deployment. `false`: the provider clears it before any other change. A plan that would wipe a protected machine is " +
					"an error. Needs API 1.48. Default: not managed; null then means `false`.",
			},
			"power_state": schema.StringAttribute{
				Optional: true, Computed: true, Validators: []validator.String{stringvalidator.OneOf(framework.PowerOn,
					framework.PowerOff)},
				MarkdownDescription: "`on` or `off`. A change switches the machine. Default: not managed.",
			},
			"power_off_mode": framework.PowerOffModeAttribute("How `restart_triggers` and `power_state = \"off\"` switch the machine " +
				"off. `hard` (default): **cuts the power**. `graceful`: asks the operating system, and cuts the power if the machine is " +
				"still on after 3 minutes; the apply warns then. `soft`: asks it, and fails if the machine stays on. Needs API 1.27."),
			"ready_check": readySchema(),
			"max_attempts": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.Between(1, 10)},
				MarkdownDescription: "Attempts of one apply, 1 to 10. Default: `1`.",
			},
			"on_failure": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf(failureKeep, failureQuarantine)},
				MarkdownDescription: "What happens to the node if Ironic fails to deploy or rebuild it. `keep` (default): it stays " +
					"reserved, and the next apply tries it again. `quarantine`: if the machine is to blame, it is retired, undeployed " +
					"and cleaned, and the next apply deploys another node. Needs `allocation_id` of an allocation with a name, and API " +
					"1.61. See [When a machine fails](#when-a-machine-fails).",
			},
			"max_nodes": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.Between(1, 100)},
				MarkdownDescription: "With `on_failure = \"quarantine\"`: on how many nodes the deployment may fail within 24 hours. " +
					"Then no other node is tried. 1 to 100. Default: `3`.",
			},
			"rollout": framework.RolloutAttribute("In which order machines change, and when a run stops. See [Roll out " +
				"a change](../guides/roll-out.md)."),
			"on_destroy": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf(destroyUndeploy, destroyForget)},
				MarkdownDescription: "Required with `adopt`. `undeploy` (default): destroying the resource undeploys and cleans the " +
					"node. `forget`: the machine keeps running and stays reserved. Apply a change before you destroy.",
			},
			"timeouts": framework.TimeoutsAttribute(ctx, timeouts.Opts{
				Create: true, CreateDescription: "Time-out of each attempt, without waiting for a slot. Default: `60m`.",
				Update: true, UpdateDescription: "As for `create`. Default: `60m`.",
				Delete: true, DeleteDescription: "Time-out of undeploying and cleaning, also for a quarantine. Default: `60m`.",
			}),
			"node_name": schema.StringAttribute{
				Computed: true, PlanModifiers: stays,
				MarkdownDescription: "Name of the node; null if it has none.",
			},
			"instance_id": schema.StringAttribute{Computed: true, MarkdownDescription: "UUID of the reservation, which may be the " +
				"allocation.", PlanModifiers: stays},
			"provision_state": schema.StringAttribute{Computed: true, MarkdownDescription: "Provision state of the node."},
			"last_error":      schema.StringAttribute{Computed: true, MarkdownDescription: "Why the last operation failed."},
			"failure":         failureSchema(),
			"attempts":        schema.Int64Attribute{Computed: true, MarkdownDescription: "Attempts of the last deployment."},
			"rebuilds": schema.Int64Attribute{
				Computed: true,
				MarkdownDescription: "Planned writes to the disk after the first. A plan raises it for each machine that it wipes in " +
					"place; `(known after apply)` means that it may.",
			},
			"restarts": schema.Int64Attribute{
				Computed: true, MarkdownDescription: "Planned restarts. A plan raises it for each machine that it restarts.",
			},
			"restores": schema.Int64Attribute{
				Computed: true,
				MarkdownDescription: "How often a plan has announced that Ironic's record is made anew of what runs, because Ironic has " +
					"lost it. Not set: never. See [Ironic has lost its records](../guides/lost-records.md).",
			},
			"ready": schema.BoolAttribute{
				Computed: true, MarkdownDescription: "Whether the last `ready_check` has passed. Null if there was none, or if the " +
					"machine was switched off, rescued or deployed since.",
			},
		},
	}
}

func imageSchema() schema.Attribute {
	partition := func(description string) schema.StringAttribute {
		return schema.StringAttribute{
			Optional: true, MarkdownDescription: "Partition images only. " + description,
			Validators: []validator.String{framework.ImageReference},
		}
	}
	here := path.MatchRelative().AtParent()
	return schema.SingleNestedAttribute{
		Optional: true, MarkdownDescription: "Exactly one of `image`, `live_iso` and `adopt` is required. Image that Ironic writes to " +
			"the root disk. A change rebuilds the node, which **wipes the root disk**, except of where the same image comes from.",
		Attributes: map[string]schema.Attribute{
			"url": schema.StringAttribute{
				Required: true, MarkdownDescription: "`http://`, `https://`, `file://` or `oci://` URL, or `glance://` and the " +
					"UUID of the image.",
				Validators: []validator.String{framework.ImageURL, framework.Unpacked},
			},
			"checksum": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Required for `http`, `https` and `file` images, unless " +
					"`instance_info.deploy_interface` names an interface that needs none. MD5, SHA-256, SHA-512, or the URL of a " +
					"checksum file. A new `url` with the same checksum, not in a file, rebuilds nothing.",
				Validators: []validator.String{framework.Checksum},
			},
			"disk_format": schema.StringAttribute{
				Optional: true, MarkdownDescription: "`qcow2` or `raw`. [Raw whole-disk images need " +
					"it](../guides/network-boot.md#the-machine).",
				Validators: []validator.String{stringvalidator.OneOf("qcow2", "raw")},
			},
			"type": schema.StringAttribute{
				Optional: true, MarkdownDescription: "`whole-disk` (default) or `partition`.",
				Validators: []validator.String{stringvalidator.OneOf(string(deploy.ImageWholeDisk), string(deploy.ImagePartition))},
			},
			"kernel":  partition("Kernel: URL or image UUID."),
			"ramdisk": partition("Initial ramdisk: URL or image UUID."),
			"root_gb": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Required for partition images, and only allowed there. Root partition in GiB.",
				Validators: []validator.Int64{int64validator.AtLeast(1)},
			},
			"swap_mb": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Partition images only. Swap partition in MiB.",
				Validators: []validator.Int64{int64validator.AtLeast(1)},
			},
			"pull_secret_wo": schema.StringAttribute{
				Optional: true, WriteOnly: true,
				MarkdownDescription: "Token, or `USER:PASSWORD` (Ironic 39), for the registry of an `oci://` image. Not stored. " +
					"Needs Ironic 29.",
				Validators: []validator.String{
					stringvalidator.LengthAtLeast(1), framework.Trimmed,
					stringvalidator.AlsoRequires(here.AtName("pull_secret_wo_version")),
				},
			},
			"pull_secret_wo_version": framework.SecretVersion("pull_secret_wo", ", and touches no machine"),
		},
	}
}

func configDriveSchema() schema.Attribute {
	document := func(description string, validators ...validator.String) schema.StringAttribute {
		return schema.StringAttribute{
			Optional: true, CustomType: framework.JSONType{}, MarkdownDescription: description,
			Validators: validators,
		}
	}
	here := path.MatchRelative().AtParent()
	ready := func(description string, valid validator.String) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, Sensitive: true, MarkdownDescription: description +
			" Excludes all other attributes of `config_drive`.", Validators: []validator.String{valid}}
	}
	return schema.SingleNestedAttribute{
		Optional: true, MarkdownDescription: "Config drive for cloud-init. A change rebuilds the node, which **wipes the root disk**. " +
			"Needs API 1.56, except for a ready-made one.",
		Attributes: map[string]schema.Attribute{
			"hostname": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Host name, added to `meta_data`.", Validators: []validator.String{framework.Hostname},
			},
			"user_data": schema.StringAttribute{
				Optional: true, Sensitive: true,
				MarkdownDescription: "User data, such as a cloud-config. Stored in the state.",
				Validators:          []validator.String{framework.UserData, stringvalidator.ConflictsWith(here.AtName("user_data_wo"))},
			},
			"user_data_wo": schema.StringAttribute{
				Optional: true, WriteOnly: true,
				MarkdownDescription: "User data that is not stored.",
				Validators: []validator.String{
					framework.UserData, stringvalidator.AlsoRequires(here.AtName("user_data_wo_version")),
				},
			},
			"user_data_wo_version": framework.SecretVersion("user_data_wo", ""),
			"meta_data":            document("Meta data, as a JSON object."),
			"meta_data_wo": schema.StringAttribute{
				Optional: true, WriteOnly: true, CustomType: framework.JSONType{},
				MarkdownDescription: "Meta data that is not stored, such as `admin_pass` of cloudbase-init. Added to `meta_data`.",
				Validators:          []validator.String{stringvalidator.AlsoRequires(here.AtName("meta_data_wo_version"))},
			},
			"meta_data_wo_version": framework.SecretVersion("meta_data_wo", ""),
			"network_data": document("Network settings as JSON in OpenStack's format, which the [function "+
				"`network_data`](../functions/network_data.md) writes.", framework.ConfigDriveNetworkData{}),
			"vendor_data": document("Vendor data, as a JSON object. Needs API 1.59."),
			"url": ready("URL of a ready-made config drive: an ISO 9660 or VFAT image, compressed with gzip and encoded as base64. "+
				"Ironic fetches it for each deployment.",
				framework.DriveURL),
			"content_base64": ready("Ready-made config drive: the image itself, such as `filebase64(\"drive.iso.gz\")`. At most 64 MiB. "+
				"Stored in the state.", framework.ConfigDriveContent{}),
		},
	}
}
