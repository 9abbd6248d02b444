package deployment

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// liveISOModel is live_iso: what a machine boots, and how to deal with a newer image.
type liveISOModel struct{ framework.LiveISO }

type bootStatusModel struct {
	Stale    types.Bool   `tfsdk:"stale"`
	Obsolete types.List   `tfsdk:"obsolete"`
	Action   types.String `tfsdk:"action"`
}

var bootStatusTypes = map[string]attr.Type{
	"stale": types.BoolType, "obsolete": types.ListType{ElemType: types.StringType}, "action": types.StringType,
}

func liveISOSchema() schema.Attribute {
	values := func(description string) schema.MapAttribute {
		return schema.MapAttribute{
			Optional: true, ElementType: types.StringType, MarkdownDescription: description,
			Validators: []validator.Map{mapvalidator.KeysAre(stringvalidator.LengthAtLeast(1)), mapvalidator.ValueStringsAre(stringvalidator.LengthAtLeast(1))},
		}
	}
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "Exactly one of `image`, `live_iso` and `adopt` is required. ISO that the machine boots instead of its disk. A new ISO **restarts** only the machines that it affects: " +
			"see [Live ISO](../guides/live-iso.md).",
		Attributes: map[string]schema.Attribute{
			"url": schema.StringAttribute{
				Required: true, Validators: []validator.String{framework.ImageURL},
				MarkdownDescription: "URL of the ISO, which Ironic's conductors must reach. Stored in the state.",
			},
			"version": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
				MarkdownDescription: "Identity of the image, such as a checksum. Default: `url` without user, query and fragment. The first `version` counts as a new image.",
			},
			"shared_content": values("Content for all machines: name to identity, such as `{ infra_env = \"uid/7\" }`. A change restarts no machine. Do not use secrets."),
			"host_content":   values("Content for this machine: name to identity. A change **restarts** the machine once the image is new, too."),
			"contains":       values("What the builder put into the image: name to identity. A machine whose content is missing waits for another image; a new one fails. Default: what is wanted, without `host_content` that changed after the image."),
			"installing":     schema.BoolAttribute{Optional: true, MarkdownDescription: "`true`: the machine is being installed, and no new image restarts it. Default: `false`."},
			"registered":     schema.BoolAttribute{Optional: true, MarkdownDescription: "`false`: the software on the image has not reported yet, and **any new image restarts** the machine. Default: `true`."},
			"quiet_period": schema.StringAttribute{
				Optional: true, Validators: []validator.String{framework.NotNegativeDuration},
				MarkdownDescription: "Time for which an image must be unchanged. The apply waits for that. Default: `60s`.",
			},
			"built_at": schema.StringAttribute{
				Optional: true, Validators: []validator.String{framework.Timestamp},
				MarkdownDescription: "Time of the build (RFC 3339). Default: `Last-Modified` of the URL, then the first apply that wants the image.",
			},
			"reboot_policy": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf(string(bootiso.PolicyAffected), string(bootiso.PolicyAlways), string(bootiso.PolicyNever))},
				MarkdownDescription: "New images that restart the machine: `affected` (default: those that affect it), `always` (all, unless `installing`) or `never`.",
			},
		},
	}
}

func bootStatusSchema() schema.Attribute {
	return schema.SingleNestedAttribute{
		Computed: true, MarkdownDescription: "What the machine needs for the live ISO that the last apply wanted, or what that apply did. [`metal_boot_status`](../data-sources/boot_status.md) says the same.",
		Attributes: map[string]schema.Attribute{
			"stale":    schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the machine was booted with something outdated."},
			"obsolete": schema.ListAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "What is outdated: `shared.NAME`, `host.NAME`, `image`, an attribute, or `unknown`."},
			"action":   schema.StringAttribute{Computed: true, MarkdownDescription: "`none`, `restart`, `wait` (for a newer image), or `manual` (restart the machine yourself)."},
		},
	}
}

// liveISO is live_iso; nil if it is null or unknown.
func (m *model) liveISO(ctx context.Context) *liveISOModel {
	var iso liveISOModel
	if !framework.IsSet(m.LiveISO) || m.LiveISO.As(ctx, &iso, basetypes.ObjectAsOptions{}).HasError() {
		return nil
	}
	return &iso
}

// decidable reports whether all settings are known that select the machines that a newer image restarts.
func (m *liveISOModel) decidable() bool {
	for _, v := range []attr.Value{m.Installing, m.Registered, m.RebootPolicy} {
		if v.IsUnknown() {
			return false
		}
	}
	return allKnown(m.HostContent)
}

// built reports whether the image and its shared content are known too.
func (m *liveISOModel) built() bool {
	return !m.URL.IsUnknown() && !m.Version.IsUnknown() && allKnown(m.SharedContent) && allKnown(m.Contains)
}

// allKnown reports whether a map and all its values are known.
func allKnown(entries types.Map) bool {
	for _, v := range entries.Elements() {
		if v.IsUnknown() {
			return false
		}
	}
	return !entries.IsUnknown()
}

// bootedAs returns the configuration with the image and content of prior, which the machine keeps running with. An attribute that only
// one of them sets stays as configured, because Terraform accepts no other planned value.
func (m liveISOModel) bootedAs(ctx context.Context, like types.Object, prior *liveISOModel) types.Object {
	m.URL, m.Version, m.BuiltAt = unlessNull(m.URL, prior.URL), unlessNull(m.Version, prior.Version), unlessNull(m.BuiltAt, prior.BuiltAt)
	m.SharedContent, m.HostContent = unlessNull(m.SharedContent, prior.SharedContent), unlessNull(m.HostContent, prior.HostContent)
	m.Contains = unlessNull(m.Contains, prior.Contains)
	object, _ := types.ObjectValueFrom(ctx, like.AttributeTypes(ctx), m)
	return object
}

// unlessNull returns prior, or config if one of them is null.
func unlessNull[T attr.Value](config, prior T) T {
	if config.IsNull() || prior.IsNull() {
		return config
	}
	return prior
}

// newImage returns the image that an apply gives time to settle.
func (m *liveISOModel) newImage() provision.NewImage {
	want := m.Want()
	return provision.NewImage{URL: want.URL, BuiltAt: want.BuiltAt, Quiet: want.Quiet}
}

// wanted is the live ISO that an apply has wanted last. The machine may run an older one.
type wanted struct {
	Image     string            `json:"image"` // bootiso.Artifacts.Digest without named content: a hash of the image's identity
	At        time.Time         `json:"at"`    // when an apply first wanted that image
	Artifacts bootiso.Artifacts `json:"artifacts"`
}

// readWanted returns what firstSeen has recorded; zero if that is nothing.
func readWanted(ctx context.Context, private framework.GettablePrivate, diags *diag.Diagnostics) (last wanted) {
	text, problems := private.GetKey(ctx, seenKey)
	diags.Append(problems...)
	_ = json.Unmarshal(text, &last) // a zero value is fine if there is none
	return last
}

// wants reports whether the apply has wanted the same.
func (w wanted) wants(want bootiso.Want) bool {
	return w.Image != "" && w.Artifacts.Digest() == want.Digest() && maps.Equal(w.Artifacts.Contains, want.Contains) && (w.Artifacts.Contains == nil) == (want.Contains == nil)
}

// firstSeen returns when an apply first wanted the live ISO of a configuration, and records what it wants. The result is zero without a
// live ISO. before is nil if there is no private state yet.
func (m *model) firstSeen(ctx context.Context, before framework.GettablePrivate, private framework.SettablePrivate, diags *diag.Diagnostics) time.Time {
	iso := m.liveISO(ctx)
	if iso == nil {
		return time.Time{}
	}
	want := iso.Want()
	now := wanted{Image: bootiso.Artifacts{URL: want.URL, Version: want.Version}.Digest(), At: time.Now().UTC(), Artifacts: want.WithoutURL()}
	if before != nil {
		if last := readWanted(ctx, before, diags); last.Image == now.Image {
			now.At = last.At
		}
	}
	record, err := json.Marshal(now)
	if err != nil {
		diags.AddError("The provider has a bug", err.Error())
	}
	diags.Append(private.SetKey(ctx, seenKey, record)...)
	return now.At
}

// bootStatus returns a status as boot_status.
func bootStatus(ctx context.Context, s bootiso.Status) types.Object {
	obsolete, _ := types.ListValueFrom(ctx, types.StringType, append([]string{}, s.Obsolete...))
	return types.ObjectValueMust(bootStatusTypes, map[string]attr.Value{
		"stale": types.BoolValue(s.Stale), "obsolete": obsolete, "action": types.StringValue(string(s.Action)),
	})
}

// plannedBoot returns the action in boot_status, and the names of what is obsolete; both are empty if boot_status is null or unknown.
func (m *model) plannedBoot(ctx context.Context) (action bootiso.Action, obsolete []string) {
	var status bootStatusModel
	if !framework.IsSet(m.BootStatus) || m.BootStatus.As(ctx, &status, basetypes.ObjectAsOptions{}).HasError() {
		return "", nil
	}
	status.Obsolete.ElementsAs(ctx, &obsolete, false) // the schema says that they are strings
	return bootiso.Action(status.Action.ValueString()), obsolete
}

// readBoot sets live_iso of an imported deployment, and boot_status, from a node that was read. last is what an apply has wanted last;
// the data source metal_boot_status says the same of that.
func (m *model) readBoot(ctx context.Context, node *ironic.Node, last wanted, imported bool) {
	if imported && provision.BootISOURL(node) != "" && provision.ImageSource(node) == "" {
		object, diags := types.ObjectValueFrom(ctx, m.LiveISO.AttributeTypes(ctx), liveISOModel{
			LiveISO: framework.LiveISO{
				URL: types.StringValue(provision.BootISOURL(node)), SharedContent: types.MapNull(types.StringType), HostContent: types.MapNull(types.StringType),
				Contains: types.MapNull(types.StringType),
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
	m.BootStatus = bootStatus(ctx, provision.BootAnswer(node, want).Now)
}

// validateLiveISO checks what attributes cannot check alone.
func validateLiveISO(m *model, diags *diag.Diagnostics) {
	if m.LiveISO.IsNull() {
		return
	}
	for key := range framework.JSONObject(m.InstanceInfo) {
		if provision.BootKey(key) {
			diags.AddAttributeError(path.Root("instance_info"), "Setting configured twice", fmt.Sprintf("live_iso sets %q: remove it here.", key))
		}
	}
}
