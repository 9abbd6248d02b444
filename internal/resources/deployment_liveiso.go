package resources

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/objectvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// defaultQuiet is how long a new image has to be left alone before machines are booted with it.
const defaultQuiet = time.Minute

// liveISOModel is live_iso: what a machine is booted with, and how to deal with a newer one.
type liveISOModel struct {
	URL          types.String `tfsdk:"url"`
	Version      types.String `tfsdk:"version"`
	Shared       types.Map    `tfsdk:"shared"`
	Own          types.Map    `tfsdk:"own"`
	Installing   types.Bool   `tfsdk:"installing"`
	Registered   types.Bool   `tfsdk:"registered"`
	QuietPeriod  types.String `tfsdk:"quiet_period"`
	BuiltAt      types.String `tfsdk:"built_at"`
	RebootPolicy types.String `tfsdk:"reboot_policy"`
}

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
			"are **restarted**, which the plan announces; the others show no change, and one warning says that they run an older image. Setting it where there was an `image`, or removing it, replaces the deployment. " +
			"Needs a boot interface that can boot a ramdisk, such as `redfish-virtual-media` or `ipxe`; the deploy interface is `ramdisk` for as long as the deployment lasts. " +
			"The guide [Live ISO](../guides/live-iso.md) tells it all.",
		Validators: []validator.Object{objectvalidator.ConflictsWith(path.MatchRoot("image"))},
		Attributes: map[string]schema.Attribute{
			"url": schema.StringAttribute{
				Required: true, Validators: []validator.String{imageURL},
				MarkdownDescription: "Where the conductors get the ISO. It may change for all machines at once. What follows `?` may be a token: it is not part of the image's identity, but it is in the state.",
			},
			"version": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
				MarkdownDescription: "Identity of the content, such as its checksum: with the same version the image is the same, whatever `url` says. Default: `url` without user, query and fragment.",
			},
			"shared": values("What all machines with this image share: name to identity, such as `{ infra_env = \"uid/7\" }`. A change makes machines stale, and restarts none. Only hashes are kept on the node."),
			"own": values("What the image has for this machine alone: name to identity, such as `{ nmstate = \"uid/3\" }`. " +
				"An entry that is added, changed or removed concerns the machine: it is restarted if the image is another one than it runs, else as soon as it is. " +
				"So change it together with the image that has it, not before."),
			"installing": schema.BoolAttribute{Optional: true, MarkdownDescription: "`true`: an installation to the machine's disk has begun, and the machine is not restarted for a new image. A node that is `protected` is not either. Default: `false`."},
			"registered": schema.BoolAttribute{Optional: true, MarkdownDescription: "`false`: what the image starts has not reported yet, and the machine is restarted for any new image. Default: `true`."},
			"quiet_period": schema.StringAttribute{
				Optional: true, Validators: []validator.String{notNegativeDuration},
				MarkdownDescription: "How long an image must have been left alone before machines are booted with it, such as `5m`. An apply waits for that, and then looks whether it is still the same image; the time does not count for `timeouts`. `0s`: no wait. Default: `60s`.",
			},
			"built_at": schema.StringAttribute{
				Optional: true, Validators: []validator.String{timestamp},
				MarkdownDescription: "When the image was built (RFC 3339), from which `quiet_period` counts. Default: what its server says (`Last-Modified`); if that is nothing, nobody waits.",
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
		Computed: true, MarkdownDescription: "With `live_iso`: what became of the machine in view of its image. Machines that a plan leaves alone are in the data source `metal_boot_status`.",
		Attributes: map[string]schema.Attribute{
			"stale":    schema.BoolAttribute{Computed: true, MarkdownDescription: "Something that it was booted with is obsolete."},
			"obsolete": schema.ListAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "What: `shared.NAME`, `own.NAME`, `image`, an attribute of the deployment, or `unknown` if nobody knows what it was booted with."},
			"action":   schema.StringAttribute{Computed: true, MarkdownDescription: "What the apply does, or did until the next refresh: `none`, `reboot`, `wait` (for a newer image), or `manual`: restart it by hand, because Ironic cannot switch it. That stays until Ironic sees a restart."},
		},
	}
}

// liveISO is live_iso; nil if it is null or unknown.
func (m *deploymentModel) liveISO(ctx context.Context) *liveISOModel {
	var iso liveISOModel
	if !isSet(m.LiveISO) || m.LiveISO.As(ctx, &iso, basetypes.ObjectAsOptions{}).HasError() {
		return nil
	}
	return &iso
}

// artifacts is what a machine is booted with.
func (m *liveISOModel) artifacts() bootiso.Artifacts {
	return bootiso.Artifacts{URL: m.URL.ValueString(), Version: m.Version.ValueString(), Shared: stringMap(m.Shared), Own: stringMap(m.Own)}
}

// decidable reports whether everything is known that makes one machine restart and another run on, if the image is another one.
func (m *liveISOModel) decidable() bool {
	for _, v := range []attr.Value{m.Installing, m.Registered, m.RebootPolicy} {
		if v.IsUnknown() {
			return false
		}
	}
	return allKnown(m.Own)
}

// known reports whether the image and what it has for all machines are known too.
func (m *liveISOModel) known() bool {
	return !m.URL.IsUnknown() && !m.Version.IsUnknown() && allKnown(m.Shared)
}

// allKnown reports whether a map and all that is in it are known.
func allKnown(entries types.Map) bool {
	for _, v := range entries.Elements() {
		if v.IsUnknown() {
			return false
		}
	}
	return !entries.IsUnknown()
}

// bootedAs is a configuration with the image, and all that identifies it, of another: of what the machine runs on with. What only one
// of them has stays as it is configured, because Terraform takes back no value that is set and none that is not.
func (m liveISOModel) bootedAs(ctx context.Context, like types.Object, prior *liveISOModel) types.Object {
	m.URL, m.Version, m.BuiltAt = unlessNull(m.URL, prior.URL), unlessNull(m.Version, prior.Version), unlessNull(m.BuiltAt, prior.BuiltAt)
	m.Shared, m.Own = unlessNull(m.Shared, prior.Shared), unlessNull(m.Own, prior.Own)
	object, _ := types.ObjectValueFrom(ctx, like.AttributeTypes(ctx), m)
	return object
}

// unlessNull is the prior value if there are both.
func unlessNull[T attr.Value](config, prior T) T {
	if config.IsNull() || prior.IsNull() {
		return config
	}
	return prior
}

// newImage is the image for ironic.Client.Settle.
func (m *liveISOModel) newImage() ironic.NewImage {
	image := ironic.NewImage{URL: m.URL.ValueString(), Quiet: defaultQuiet}
	if isSet(m.QuietPeriod) {
		image.Quiet, _ = time.ParseDuration(m.QuietPeriod.ValueString())
	}
	if isSet(m.BuiltAt) {
		image.BuiltAt, _ = time.Parse(time.RFC3339, m.BuiltAt.ValueString())
	}
	return image
}

// settled says when an image will have settled, as far as the configuration tells; "" if it has.
func (m *liveISOModel) settled(now time.Time) string {
	image := m.newImage()
	at := image.BuiltAt.Add(image.Quiet)
	if image.BuiltAt.IsZero() || !at.After(now) {
		return ""
	}
	return fmt.Sprintf(" The apply first waits until %s, when the image has settled.", at.UTC().Format(time.RFC3339))
}

// judge decides what the image asks of a node, and what a change of the rest of the deployment does.
func (m *liveISOModel) judge(node ironic.BootFacts, changed []string) bootiso.Status {
	want := ironic.WantedBoot{
		Artifacts: m.artifacts(), Policy: bootiso.Policy(m.RebootPolicy.ValueString()),
		Installing: m.Installing.ValueBool(), Registered: m.Registered.IsNull() || m.Registered.ValueBool(),
		Settled: true, // the apply waits until it is
	}
	status := node.Judge(want)
	exempt := want.Installing || node.Protected || want.Policy == bootiso.PolicyNever
	if len(changed) == 0 || exempt || node.Record == nil {
		return status
	}
	status.Stale, status.Obsolete = true, append(status.Obsolete, changed...)
	slices.Sort(status.Obsolete)
	if status.Action == bootiso.None || status.Action == bootiso.Wait {
		status.Action, status.Why = bootiso.Reboot, strings.Join(changed, ", ")+" changed"
		if !node.Powered {
			status.Action, status.Why = bootiso.Manual, status.Why+", and Ironic cannot switch its power"
		}
	}
	return status
}

// bootStatus is a status for state.
func bootStatus(ctx context.Context, s bootiso.Status) types.Object {
	obsolete, _ := types.ListValueFrom(ctx, types.StringType, append([]string{}, s.Obsolete...))
	return types.ObjectValueMust(bootStatusTypes, map[string]attr.Value{
		"stale": types.BoolValue(s.Stale), "obsolete": obsolete, "action": types.StringValue(string(s.Action)),
	})
}

// bootAction is the action in a boot_status; empty if it is null or unknown.
func (m *deploymentModel) bootAction(ctx context.Context) bootiso.Action {
	var status bootStatusModel
	if !isSet(m.BootStatus) || m.BootStatus.As(ctx, &status, basetypes.ObjectAsOptions{}).HasError() {
		return ""
	}
	return bootiso.Action(status.Action.ValueString())
}

// readBoot shows what a node that was read is booted with.
func (m *deploymentModel) readBoot(ctx context.Context, node *ironic.Node, imported bool) {
	if imported && ironic.BootISOURL(node) != "" && ironic.ImageSource(node) == "" {
		object, diags := types.ObjectValueFrom(ctx, m.LiveISO.AttributeTypes(ctx), liveISOModel{
			URL: types.StringValue(ironic.BootISOURL(node)), Shared: types.MapNull(types.StringType), Own: types.MapNull(types.StringType),
		})
		if !diags.HasError() {
			m.LiveISO = object
		}
	}
	iso := m.liveISO(ctx)
	record := ironic.BootRecord(node)
	switch {
	case iso == nil:
		m.BootStatus = types.ObjectNull(bootStatusTypes)
	case record != nil && record.Manual && !ironic.Restarted(node, record.At) && m.bootAction(ctx) == bootiso.Manual:
		// nobody has seen a restart yet
	case ironic.RunsInstance(node):
		m.BootStatus = bootStatus(ctx, iso.judge(ironic.BootFactsOf(node), nil))
	}
}

// validateLiveISO checks what attributes cannot check alone.
func validateLiveISO(m *deploymentModel, diags *diag.Diagnostics) {
	if m.LiveISO.IsNull() {
		return
	}
	for key := range jsonObject(m.InstanceInfo) {
		if ironic.BootKey(key) {
			diags.AddAttributeError(path.Root("instance_info"), "Setting given twice", fmt.Sprintf("live_iso sets %q: remove it here.", key))
		}
	}
}

// hideQuery keeps the token of a URL out of messages.
func (m *liveISOModel) hideQuery(client *ironic.Client) {
	if u, err := url.Parse(m.URL.ValueString()); err == nil && u.RawQuery != "" {
		client.Hide(u.RawQuery)
	}
}
