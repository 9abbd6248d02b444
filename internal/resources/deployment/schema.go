package deployment

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/boolvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// Schema describes metal_deployment.
func (d *deployment) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	stays := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	resp.Schema = schema.Schema{
		MarkdownDescription: "What runs on a node. Creating it writes the machine's disk; changing image, config drive or other content " +
			"rebuilds it in place, **which wipes the root disk** and is announced in the plan; destroying it undeploys the node, which cleans it. The plan warns of each, except of `terraform apply -replace`: Terraform shows no warnings of the provider for it.\n\n" +
			"The node must be `available`. It is reserved by the allocation, or by this resource itself.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{Computed: true, MarkdownDescription: "UUID of the node.", PlanModifiers: stays},
			"node_id": schema.StringAttribute{
				Required: true, MarkdownDescription: "UUID or name of the node. Another node undeploys this one and deploys the other.",
				Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"allocation_id": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "UUID of the allocation that has reserved the node. The provider checks it before it touches anything, and keeps it: when the deployment is destroyed " +
					"or replaced, the provider makes the same allocation again as soon as the node is free. Without it, the resource reserves the node itself.",
				Validators: []validator.String{stringvalidator.RegexMatches(framework.UUIDPattern, "must be the UUID of an allocation")},
			},
			"image":    imageSchema(),
			"live_iso": liveISOSchema(),
			"adopt": schema.BoolAttribute{
				Optional: true, Validators: []validator.Bool{boolvalidator.Equals(true)},
				MarkdownDescription: "`true`: the machine is deployed already, and runs on as it is. The node must be reserved, by `allocation_id` or otherwise. If `adopt` becomes an `image`, that is recorded and not deployed, " +
					"as in the first apply after an import; a change of `rebuild_triggers` or `terraform apply -replace` deploys it. Exactly one of `image`, `live_iso` and `adopt` must be set.",
			},
			"boot_status":  bootStatusSchema(),
			"config_drive": configDriveSchema(),
			"deploy_steps": schema.ListNestedAttribute{
				Optional: true, MarkdownDescription: "Further steps of the deployment. A change rebuilds. Needs API 1.69.",
				Validators: []validator.List{listvalidator.SizeAtLeast(1)},
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"interface": schema.StringAttribute{
						Required: true, MarkdownDescription: "Interface that has the step, such as `deploy`, `bios` or `raid`.",
						Validators: []validator.String{stringvalidator.OneOf("bios", "deploy", "firmware", "management", "power", "raid", "vendor")},
					},
					"step": schema.StringAttribute{Required: true, MarkdownDescription: "Name of the step.", Validators: []validator.String{stringvalidator.LengthAtLeast(1)}},
					"args": schema.StringAttribute{Optional: true, CustomType: jsontypes.NormalizedType{}, MarkdownDescription: "Arguments, as a JSON object. Default: none."},
					"priority": schema.Int64Attribute{
						Required: true, MarkdownDescription: "Order among the steps, highest first. `0` disables a step.", Validators: []validator.Int64{int64validator.AtLeast(0)},
					},
				}},
			},
			"capabilities": schema.MapAttribute{
				ElementType: types.StringType, Optional: true, MarkdownDescription: "`instance_info.capabilities`, such as `boot_mode = \"uefi\"`. A change rebuilds.",
				Validators: []validator.Map{mapvalidator.SizeAtLeast(1)},
			},
			"traits": schema.SetAttribute{
				ElementType: types.StringType, Optional: true, Validators: framework.TraitValidators(),
				MarkdownDescription: "Traits of the instance, which select deploy templates; the node must have them. Default: those of the allocation. A change rebuilds.",
			},
			"root_device": schema.MapAttribute{
				ElementType: types.StringType, Optional: true, Validators: append(framework.KeyValidators(), mapvalidator.SizeAtLeast(1)),
				MarkdownDescription: "Hints that select the disk, such as `serial` or `wwn`; they win over those of the host. A change rebuilds.",
			},
			"instance_info": schema.DynamicAttribute{
				Optional: true, Validators: []validator.Dynamic{framework.JSONObjectValue{}},
				MarkdownDescription: "Further keys of Ironic's `instance_info`, as an object of JSON values. A change rebuilds.",
			},
			"on_change": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf(onChangeRebuild, onChangeReplace, onChangeIgnore)},
				MarkdownDescription: "What a change of `image`, `config_drive`, `deploy_steps` and the other content does: `rebuild` (in place; **wipes the root disk**), `replace` (Terraform destroys and creates the deployment: **undeploys and " +
					"cleans the machine**; the plan shows `-/+`, and `prevent_destroy` stops it), or `ignore` (nothing: the state keeps the old content, and the plan shows no change). Changes of `live_iso` obey `reboot_policy` instead. " +
					"Default: that of the provider block, then `rebuild`. It must be known during plan.",
			},
			"rebuild_triggers": schema.MapAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "Any change of this map deploys the same node anew, also with `on_change = \"ignore\"`: an image is written again, which **wipes the root disk**; a live ISO is booted again. Example: `{ month = \"2026-11\" }`.",
			},
			"restart_triggers": schema.MapAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "Any change of this map **restarts** the machine: Ironic switches it off and on, and its disk stays. A machine with `power_state = \"off\"` is not restarted. Example: `{ kernel = \"6.12.9\" }`.",
			},
			"protected": schema.BoolAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "Ironic's flag that the node is protected: Ironic refuses to rebuild and undeploy it. `true` sets it as soon as the machine runs; `false` clears it before any other change in place. Not managed when unset; the attribute then shows the flag. " +
					"A plan that would rebuild, replace or destroy the deployment of a protected node is an error, unless it only changes the deployment in place and sets `protected = false`, or destroys it with `on_destroy = \"forget\"`. Destroying never clears the flag. Needs API 1.48.",
			},
			"power_state": schema.StringAttribute{
				Optional: true, Computed: true, Validators: []validator.String{stringvalidator.OneOf(framework.PowerOn, framework.PowerOff)},
				MarkdownDescription: "`on` or `off`. Not managed when unset; the attribute then shows the present state. A change switches the machine.",
			},
			"max_attempts": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.Between(1, 10)},
				MarkdownDescription: "Number of attempts before a failed deployment is an error. Default: 1.",
			},
			"on_destroy": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf(destroyUndeploy, destroyForget)},
				MarkdownDescription: "What destroying this resource does: `undeploy` (the default: the node is cleaned) or `forget` (the machine runs on, and keeps its reservation). A creation that failed is undeployed in either case, and so shows no `on_destroy` in the state.",
			},
			"timeouts": framework.TimeoutsAttribute(ctx, timeouts.Opts{
				Create: true, CreateDescription: "Time for each attempt to deploy, without the time in the queue. Default: `60m`.",
				Update: true, UpdateDescription: "As for create, for a rebuild. Default: `60m`.",
				Delete: true, DeleteDescription: "Time for undeploying and cleaning. Default: `60m`.",
			}),
			"instance_id":     schema.StringAttribute{Computed: true, MarkdownDescription: "The reservation: UUID of the allocation, or one of its own.", PlanModifiers: stays},
			"provision_state": schema.StringAttribute{Computed: true, MarkdownDescription: "Ironic's provision state of the node."},
			"last_error":      schema.StringAttribute{Computed: true, MarkdownDescription: "Why the node's last operation failed."},
			"attempts":        schema.Int64Attribute{Computed: true, MarkdownDescription: "How often the last deployment was tried."},
			"rebuilds": schema.Int64Attribute{
				Computed:            true,
				MarkdownDescription: "How many writes to the disk of this deployment were planned after the first one. A plan raises it for each machine that it wipes in place, so a policy can check it: `after` is higher than `before`, or not known yet (`after_unknown`).",
			},
			"restarts": schema.Int64Attribute{
				Computed: true, MarkdownDescription: "How many restarts were planned, for a live ISO or `restart_triggers`. A plan raises it for each machine that it restarts, as `rebuilds`.",
			},
		},
	}
}

func imageSchema() schema.Attribute {
	partition := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, MarkdownDescription: description + " Partition images only."}
	}
	here := path.MatchRelative().AtParent()
	return schema.SingleNestedAttribute{
		Optional: true, MarkdownDescription: "Image to write to the root disk. A change rebuilds the node, which wipes the root disk, unless `on_change` says otherwise.",
		Attributes: map[string]schema.Attribute{
			"url": schema.StringAttribute{
				Required: true, MarkdownDescription: "Where the image is: `http://`, `https://`, `file://`, `oci://`, or `glance://` with the image's UUID.",
				Validators: []validator.String{framework.ImageURL},
			},
			"checksum": schema.StringAttribute{
				Optional: true, MarkdownDescription: "MD5, SHA-256 or SHA-512 in hexadecimal, or the URL of a file of checksums. Ironic demands one for `http`, `https` and `file` images. For a deploy interface that does without, name that: `instance_info = { deploy_interface = \"anaconda\" }`.",
				Validators: []validator.String{framework.Checksum},
			},
			"disk_format": schema.StringAttribute{
				Optional: true, MarkdownDescription: "`qcow2` or `raw`. Default: Ironic detects it.", Validators: []validator.String{stringvalidator.OneOf("qcow2", "raw")},
			},
			"type": schema.StringAttribute{
				Optional: true, MarkdownDescription: "`whole-disk` (the default) or `partition`.",
				Validators: []validator.String{stringvalidator.OneOf(string(provision.ImageWholeDisk), string(provision.ImagePartition))},
			},
			"kernel":  partition("Kernel, a URL or image UUID."),
			"ramdisk": partition("Initial ramdisk, a URL or image UUID."),
			"root_gb": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Size of the root partition in GiB. Partition images only, and required there.", Validators: []validator.Int64{int64validator.AtLeast(1)},
			},
			"swap_mb": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Size of the swap partition in MiB. Partition images only.", Validators: []validator.Int64{int64validator.AtLeast(1)},
			},
			"pull_secret_wo": schema.StringAttribute{
				Optional: true, WriteOnly: true,
				MarkdownDescription: "What the registry of an `oci://` image demands: a token, or `USER:PASSWORD` (read as such by newer Ironics; 39 does). " +
					"Write-only: in no plan and no state (Terraform and OpenTofu from 1.11). Ironic 29 and later have `oci://` images.",
				Validators: []validator.String{stringvalidator.LengthAtLeast(1), stringvalidator.AlsoRequires(here.AtName("pull_secret_wo_version"))},
			},
			"pull_secret_wo_version": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Change it when `pull_secret_wo` has changed. That rebuilds.",
				Validators: []validator.Int64{int64validator.AlsoRequires(here.AtName("pull_secret_wo"))},
			},
		},
	}
}

func configDriveSchema() schema.Attribute {
	document := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, CustomType: jsontypes.NormalizedType{}, MarkdownDescription: description}
	}
	here := path.MatchRelative().AtParent()
	return schema.SingleNestedAttribute{
		Optional: true, MarkdownDescription: "What cloud-init finds on the config drive. A change rebuilds the node, which wipes the root disk.",
		Attributes: map[string]schema.Attribute{
			"hostname": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Host name; a short way to write it into `meta_data`.", Validators: []validator.String{framework.Hostname},
			},
			"user_data": schema.StringAttribute{
				Optional: true, Sensitive: true,
				MarkdownDescription: "User data, such as a cloud-config; stored in state. Prefer `user_data_wo` for secrets.",
				Validators:          []validator.String{stringvalidator.ConflictsWith(here.AtName("user_data_wo"))},
			},
			"user_data_wo": schema.StringAttribute{
				Optional: true, WriteOnly: true,
				MarkdownDescription: "User data, write-only: in no plan and no state (Terraform and OpenTofu from 1.11).",
				Validators:          []validator.String{stringvalidator.AlsoRequires(here.AtName("user_data_wo_version"))},
			},
			"user_data_wo_version": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Change it when `user_data_wo` has changed. That rebuilds.",
				Validators: []validator.Int64{int64validator.AlsoRequires(here.AtName("user_data_wo"))},
			},
			"meta_data":    document("Meta data, as a JSON object."),
			"network_data": document("Network data in OpenStack's format, as a JSON object."),
			"vendor_data":  document("Vendor data, as a JSON object. Needs API 1.59."),
		},
	}
}
