package deployment

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
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
		MarkdownDescription: "Live ISO to boot instead of writing an image: nothing is written to a disk. When the image changes, only the machines that the change concerns " +
			"are **restarted**, which the plan announces; the others show no change, and one warning says that they run an older image. Setting it where there was an `image`, or the other way round, replaces the deployment. " +
			"Needs a boot interface that can boot a ramdisk, such as `redfish-virtual-media` or `ipxe`; the deploy interface is `ramdisk` for as long as the deployment lasts. " +
			"See the guide [Live ISO](../guides/live-iso.md).",
		Attributes: map[string]schema.Attribute{
			"url": schema.StringAttribute{
				Required: true, Validators: []validator.String{framework.ImageURL},
				MarkdownDescription: "Where the conductors get the ISO. It may change for all machines at once. What follows `?` may be a token: it is not part of the image's identity, but it is in the state.",
			},
			"version": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
				MarkdownDescription: "Identity of the content, such as its checksum: with the same version the image is the same, whatever `url` says. Default: `url` without user, query and fragment.",
			},
			"shared_content": values("What all machines with this image share: name to identity, such as `{ infra_env = \"uid/7\" }`. A change makes machines stale, and restarts none. Only hashes are kept on the node."),
			"host_content": values("What the image has for this machine alone: name to identity, such as `{ nmstate = \"uid/3\" }`. " +
				"An entry that is added, changed or removed concerns the machine: it is restarted if the image is another one than it runs, else as soon as it is. " +
				"So change it together with the image that has it, not before, or set `contains`."),
			"contains": values("What the image was built with: name to identity, for example decoded from a manifest beside the image. If an entry of `shared_content` or `host_content` is missing here, or differs, " +
				"the machine waits for a newer image instead of being restarted with this one, and a first boot is refused in the plan. Default: the image is taken to contain all that is wanted."),
			"installing": schema.BoolAttribute{Optional: true, MarkdownDescription: "`true`: an installation to the machine's disk has begun, and the machine is not restarted for a new image. A node that is `protected` is not either. Default: `false`."},
			"registered": schema.BoolAttribute{Optional: true, MarkdownDescription: "`false`: what the image starts has not reported yet, and the machine is **restarted for any new image**, whether or not that concerns it. `true` (the default): a machine that has hung since its boot is not restarted either, unless the change concerns it. " +
				"So set it from where machines report, such as `registered = contains(data.http.agents…, each.key)`; while it is wrong, a machine is restarted once too often, or stays without a repair."},
			"quiet_period": schema.StringAttribute{
				Optional: true, Validators: []validator.String{framework.NotNegativeDuration},
				MarkdownDescription: "How long an image must have been left alone before machines are booted with it, such as `5m`. An apply waits for that, and then checks that the image is still the same; the time does not count against `timeouts`. `0s`: no wait. Default: `60s`.",
			},
			"built_at": schema.StringAttribute{
				Optional: true, Validators: []validator.String{framework.Timestamp},
				MarkdownDescription: "When the image was built (RFC 3339), from which `quiet_period` counts. Default: what its server says (`Last-Modified`); without either, the period counts from the first apply that wants the image.",
			},
			"reboot_policy": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.OneOf(string(bootiso.PolicyAffected), string(bootiso.PolicyAlways), string(bootiso.PolicyNever))},
				MarkdownDescription: "Which changes restart the machine: `affected` (the default), those that concern it; `always`, any new image, unless `installing`; `never`, none.",
			},
		},
	}
}

func bootStatusSchema() schema.Attribute {
	return schema.SingleNestedAttribute{
		Computed: true, MarkdownDescription: "With `live_iso`: what the last apply did, and from the next refresh on what the data source `metal_boot_status` says of the `live_iso` in the state. A plan that keeps a machine running with an older image changes neither: give that data source the configured `live_iso` to see such machines.",
		Attributes: map[string]schema.Attribute{
			"stale":    schema.BoolAttribute{Computed: true, MarkdownDescription: "Something that it was booted with is obsolete."},
			"obsolete": schema.ListAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "What: `shared.NAME`, `host.NAME`, `image`, an attribute of the deployment, or `unknown` if there is no record of what it was booted with."},
			"action":   schema.StringAttribute{Computed: true, MarkdownDescription: "What the apply does, or did until the next refresh: `none`, `restart`, `wait` (for a newer image), or `manual`: restart it by hand, because Ironic cannot switch it. That stays until Ironic sees a restart."},
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

// wanted is when an apply first wanted an image.
type wanted struct {
	Image string    `json:"image"` // bootiso.Artifacts.Digest without named content: a hash of the image's identity
	At    time.Time `json:"at"`
}

// firstSeen returns when an apply first wanted the live ISO, and records that. The result is zero without a live ISO. before is nil if
// there is no private state yet.
func (m *model) firstSeen(ctx context.Context, before framework.GettablePrivate, private framework.SettablePrivate, diags *diag.Diagnostics) time.Time {
	iso := m.liveISO(ctx)
	if iso == nil {
		return time.Time{}
	}
	now := wanted{Image: bootiso.Artifacts{URL: iso.URL.ValueString(), Version: iso.Version.ValueString()}.Digest(), At: time.Now().UTC()}
	if before != nil {
		var last wanted
		if text, _ := before.GetKey(ctx, seenKey); json.Unmarshal(text, &last) == nil && last.Image == now.Image {
			return last.At
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

// readBoot sets live_iso of an imported deployment, and boot_status, from a node that was read. The data source metal_boot_status says the
// same of the same live_iso.
func (m *model) readBoot(ctx context.Context, node *ironic.Node, imported bool) {
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
	switch {
	case iso == nil:
		m.BootStatus = types.ObjectNull(bootStatusTypes)
	case provision.RunsInstance(node):
		answer := bootiso.Decide(bootiso.Input{Machine: provision.BootFacts(node), Want: iso.Want(), Now: time.Now()})
		m.BootStatus = bootStatus(ctx, answer.Now)
	}
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

// hideQuery keeps the token of a URL out of messages.
func (m *liveISOModel) hideQuery(client *provision.Site) {
	if u, err := url.Parse(m.URL.ValueString()); err == nil && u.RawQuery != "" {
		client.Hide(u.RawQuery)
	}
}
