package deployment

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// liveISOModel is live_iso: what a machine boots, and how to deal with a newer image.
type liveISOModel struct{ framework.LiveISO }

type bootStatusModel struct {
	Stale    types.Bool   `tfsdk:"stale"`
	Obsolete types.Set    `tfsdk:"obsolete"`
	Action   types.String `tfsdk:"action"`
}

var bootStatusTypes = map[string]attr.Type{
	"stale": types.BoolType, "obsolete": types.SetType{ElemType: types.StringType}, "action": types.StringType,
}

func liveISOSchema() schema.Attribute {
	values := func(description string) schema.MapAttribute {
		return schema.MapAttribute{
			Optional: true, ElementType: types.StringType, MarkdownDescription: description,
			Validators: []validator.Map{
				mapvalidator.KeysAre(stringvalidator.LengthAtLeast(1)),
				mapvalidator.ValueStringsAre(stringvalidator.LengthAtLeast(1)),
			},
		}
	}
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "Exactly one of `image`, `live_iso` and `adopt` is required. ISO that the machine boots instead of its " +
			"disk. A new ISO **restarts** only the machines that it affects: see [Live ISO](../guides/live-iso.md).",
		Attributes: map[string]schema.Attribute{
			"url": schema.StringAttribute{
				Required: true, Validators: []validator.String{framework.ImageURL, framework.Unpacked},
				MarkdownDescription: "URL of the ISO, which Ironic's conductors must reach. Stored in the state.",
			},
			"version": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
				MarkdownDescription: "Identity of the image, such as a checksum. Default: `url` without user, query and fragment. The " +
					"first `version` counts as a new image.",
			},
			"shared_content": values("Content for all machines: name to identity, such as `{ infra_env = \"uid/7\" }`. A change restarts " +
				"no machine. Do not use secrets."),
			"host_content": values("Content for this machine: name to identity. A change **restarts** the machine once the " +
				"image is new, too."),
			"contains": values("What the builder put into the image: name to identity. A machine whose content is missing waits " +
				"for another image; a new one fails. Default: what is wanted, without `host_content` that changed after the image."),
			"installing": schema.BoolAttribute{Optional: true, MarkdownDescription: "`true`: the machine is being installed, and no " +
				"new image restarts it. Default: `false`."},
			"registered": schema.BoolAttribute{Optional: true, MarkdownDescription: "`false`: the software on the image has not " +
				"reported yet, and **any new image restarts** the machine. Default: `true`."},
			"quiet_period": schema.StringAttribute{
				Optional: true, Validators: []validator.String{framework.NotNegativeDuration},
				MarkdownDescription: "Time for which an image must be unchanged. The apply waits for that. Default: `60s`.",
			},
			"built_at": schema.StringAttribute{
				Optional: true, Validators: []validator.String{framework.Timestamp},
				MarkdownDescription: "Time of the build (RFC 3339). Default: `Last-Modified` of the URL, then the first apply that " +
					"wants the image.",
			},
			"reboot_policy": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf(string(bootiso.PolicyAffected),
					string(bootiso.PolicyAlways), string(bootiso.PolicyNever))},
				MarkdownDescription: "New images that restart the machine: `affected` (default: those that affect it), `always` (all, " +
					"unless `installing`) or `never`.",
			},
		},
	}
}

func bootStatusSchema() schema.Attribute {
	return schema.SingleNestedAttribute{
		Computed: true, MarkdownDescription: "What the machine needs for the live ISO that the last apply wanted. " +
			"[`metal_boot_status`](../data-sources/boot_status.md) says the same.",
		Attributes: map[string]schema.Attribute{
			"stale": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the machine was booted with " +
				"something outdated."},
			"obsolete": schema.SetAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "What is outdated: `shared.NAME`, `host.NAME`, `image`, an attribute, or `unknown`.",
			},
			"action": schema.StringAttribute{Computed: true, MarkdownDescription: "`none`, `restart`, `wait` (for a newer image), or " +
				"`manual` (restart the machine yourself)."},
		},
	}
}

// liveISO is live_iso; nil if it is null or unknown.
func (m *model) liveISO(ctx context.Context) *liveISOModel {
	return framework.Decoded[liveISOModel](ctx, m.LiveISO)
}

// firstSeen returns when an apply first wanted the live ISO of a configuration, and records what it wants. The result is zero without a
// live ISO.
func (m *model) firstSeen(ctx context.Context, kept *private) time.Time {
	iso := m.liveISO(ctx)
	if iso == nil {
		return time.Time{}
	}
	want := iso.Want()
	now := deploy.Wanted{
		Image: bootiso.Artifacts{URL: want.URL, Version: want.Version}.Digest(), At: time.Now().UTC(),
		Artifacts: want.WithoutURL(),
	}
	if kept.Last.Image == now.Image {
		now.At = kept.Last.At
	}
	kept.Last = now
	return now.At
}

func bootStatus(ctx context.Context, s bootiso.Status) types.Object {
	obsolete, _ := types.SetValueFrom(ctx, types.StringType, append([]string{}, s.Obsolete...))
	return types.ObjectValueMust(bootStatusTypes, map[string]attr.Value{
		"stale": types.BoolValue(s.Stale), "obsolete": obsolete, "action": types.StringValue(string(s.Action)),
	})
}

// readBoot sets live_iso of an imported deployment, and boot_status, from a node that was read. last is what an apply has wanted last;
// the data source metal_boot_status says the same of that.
func (m *model) readBoot(ctx context.Context, node *ironic.Node, last deploy.Wanted, imported bool) {
	if imported && deploy.BootISOURL(node) != "" && deploy.ImageSource(node) == "" {
		object, diags := types.ObjectValueFrom(ctx, m.LiveISO.AttributeTypes(ctx), liveISOModel{
			LiveISO: framework.LiveISO{
				URL: types.StringValue(deploy.BootISOURL(node)), SharedContent: types.MapNull(types.StringType),
				HostContent: types.MapNull(types.StringType),
				Contains:    types.MapNull(types.StringType),
			},
		})
		if !diags.HasError() {
			m.LiveISO = object
		}
	}
	iso := m.liveISO(ctx)
	if iso == nil {
		m.BootStatus = types.ObjectNull(bootStatusTypes)
		return
	}
	want := iso.Want()
	if last.Image != "" {
		want.Artifacts = last.Artifacts
	}
	m.BootStatus = bootStatus(ctx, deploy.BootAnswer(node, want).Now)
}

func validateLiveISO(m *model, diags *diag.Diagnostics) {
	if m.LiveISO.IsNull() {
		return
	}
	for key := range framework.JSONObject(m.InstanceInfo) {
		if deploy.BootKey(key) {
			diags.AddAttributeError(path.Root("instance_info"), "Setting configured twice",
				fmt.Sprintf("live_iso sets %q: remove it here.", key))
		}
	}
}
