package datasources

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

var _ datasource.DataSourceWithConfigure = (*bootStatus)(nil)

// NewBootStatus returns the data source metal_boot_status.
func NewBootStatus() datasource.DataSource { return &bootStatus{} }

type bootStatus struct{ withClient }

type bootStatusModel struct {
	LiveISO types.Map  `tfsdk:"live_iso"`
	Hosts   types.Map  `tfsdk:"hosts"`
	Stale   types.List `tfsdk:"stale"`
	Reboot  types.List `tfsdk:"reboot"`
	Manual  types.List `tfsdk:"manual"`
}

// wantedISO is the live_iso of a metal_deployment.
type wantedISO struct {
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

var bootHostType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"node_id": types.StringType, "name": types.StringType, "provision_state": types.StringType, "stale": types.BoolType,
	"obsolete": types.ListType{ElemType: types.StringType}, "action": types.StringType, "reason": types.StringType, "booted_at": types.StringType, "boots": types.Int64Type,
}}

// Metadata names the data source.
func (b *bootStatus) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = "metal_boot_status"
}

// Schema describes the data source.
func (b *bootStatus) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	optional := func(description string, validators ...validator.String) schema.Attribute {
		return schema.StringAttribute{Optional: true, MarkdownDescription: description, Validators: validators}
	}
	values := func(description string) schema.Attribute {
		return schema.MapAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: description}
	}
	keys := func(description string) schema.Attribute {
		return schema.ListAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: description}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Which machines run an obsolete live ISO, what of it is obsolete, and what an apply would do. It changes nothing, and does not look at the image. " +
			"Costs one list of the nodes, however many machines are asked for. See the guide [Live ISO](../guides/live-iso.md).",
		Attributes: map[string]schema.Attribute{
			"live_iso": schema.MapNestedAttribute{
				Required: true, MarkdownDescription: "What the machines shall run: by UUID or name of the node, the `live_iso` of its `metal_deployment`. Keys that are no nodes are left out, with a warning. The same local value can serve both; `metal_deployment.NAME.live_iso` cannot, as it says what the machine runs on with.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"url":          schema.StringAttribute{Required: true, MarkdownDescription: "Where the conductors get the ISO."},
					"version":      optional("Identity of the content. Default: `url` without user, query and fragment."),
					"shared":       values("What all machines with this image share."),
					"own":          values("What the image has for this machine alone."),
					"installing":   schema.BoolAttribute{Optional: true, MarkdownDescription: "An installation has begun."},
					"registered":   schema.BoolAttribute{Optional: true, MarkdownDescription: "What the image starts has reported. Default: `true`."},
					"quiet_period": optional("How long a new image must have been left alone. Default: `60s`.", written{`a duration such as "90s" or "5m"`, isQuiet}),
					"built_at":     optional("When the image was built (RFC 3339).", written{"a time such as 2026-05-01T12:00:00Z (RFC 3339)", isTime}),
					"reboot_policy": optional("`affected` (the default), `always` or `never`.",
						stringvalidator.OneOf(string(bootiso.PolicyAffected), string(bootiso.PolicyAlways), string(bootiso.PolicyNever))),
				}},
			},
			"hosts": schema.MapNestedAttribute{
				Computed: true, MarkdownDescription: "The machines, by the keys of `live_iso`.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"node_id":         schema.StringAttribute{Computed: true, MarkdownDescription: "UUID of the node."},
					"name":            schema.StringAttribute{Computed: true, MarkdownDescription: "Name of the node."},
					"provision_state": schema.StringAttribute{Computed: true, MarkdownDescription: "Ironic's provision state of the node."},
					"stale":           schema.BoolAttribute{Computed: true, MarkdownDescription: "Something that it was booted with is obsolete."},
					"obsolete":        keys("What: `shared.NAME`, `own.NAME`, `image`, or `unknown` if nobody knows what it was booted with, as of a node that is not `active` or that has no live ISO of a `metal_deployment`."),
					"action":          schema.StringAttribute{Computed: true, MarkdownDescription: "What an apply would do: `none`, `reboot`, `wait` (there is no newer image yet, or by `built_at` it has not settled) or `manual` (somebody has to restart it by hand, or had to at the last apply and Ironic has not seen it restarted since)."},
					"reason":          schema.StringAttribute{Computed: true, MarkdownDescription: "Why."},
					"booted_at":       schema.StringAttribute{Computed: true, MarkdownDescription: "When that boot was begun, or what the machine runs was noted (RFC 3339); null if unknown."},
					"boots":           schema.Int64Attribute{Computed: true, MarkdownDescription: "How often in a row it was booted with this image, each time within a day of the last; null if unknown. After four, an apply refuses to restart it once more."},
				}},
			},
			"stale":  keys("Keys of the machines that are stale, sorted."),
			"reboot": keys("Keys of the machines that an apply would restart, at once or after the quiet period, sorted."),
			"manual": keys("Keys of the machines that somebody has to restart by hand, sorted."),
		},
	}
}

// Read compares what machines were booted with with what they shall run.
func (b *bootStatus) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m bootStatusModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	wanted := map[string]wantedISO{}
	resp.Diagnostics.Append(m.LiveISO.ElementsAs(ctx, &wanted, false)...)
	if resp.Diagnostics.HasError() {
		return
	}
	nodes, err := b.client.ListNodes(ctx, ironic.NodeFilter{})
	if err != nil {
		report(&resp.Diagnostics, "read what machines were booted with", err)
		return
	}
	known := map[string]*ironic.Node{}
	for i := range nodes {
		if nodes[i].Name != "" {
			known[nodes[i].Name] = &nodes[i]
		}
		known[nodes[i].UUID] = &nodes[i]
	}
	hosts := map[string]attr.Value{}
	lists := map[string][]string{}
	var missing []string
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		node, exists := known[key]
		if !exists {
			missing = append(missing, key)
			continue
		}
		want := wanted[key]
		wanted := want.boot()
		status := judgeBoot(node, wanted)
		wanted.Settled = true
		if status.Stale {
			lists["stale"] = append(lists["stale"], key)
		}
		action := string(judgeBoot(node, wanted).Action)
		lists[action] = append(lists[action], key)
		hosts[key] = hostBoot(ctx, node, status)
	}
	warnMissing(missing, &resp.Diagnostics)
	list := func(name string) types.List {
		value, diags := types.ListValueFrom(ctx, types.StringType, append([]string{}, lists[name]...))
		resp.Diagnostics.Append(diags...)
		return value
	}
	m.Hosts, m.Stale, m.Reboot, m.Manual = types.MapValueMust(bootHostType, hosts), list("stale"), list(string(bootiso.Reboot)), list(string(bootiso.Manual))
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// warnMissing tells which keys are no nodes.
func warnMissing(keys []string, diags *diag.Diagnostics) {
	const few = 10
	if len(keys) == 0 {
		return
	}
	named := strings.Join(keys[:min(few, len(keys))], ", ")
	if len(keys) > few {
		named += fmt.Sprintf(" and %d more", len(keys)-few)
	}
	diags.AddAttributeWarning(path.Root("live_iso"), "No such node", "There is no node with this UUID or name, and it is left out: "+named+". If this run makes the node, "+
		"give the data source depends_on = [metal_deployment.NAME]: it is then read afterwards.")
}

// judgeBoot decides like a plan, and remembers what somebody had to restart by hand and has not, for all that Ironic has seen.
func judgeBoot(node *ironic.Node, want ironic.WantedBoot) bootiso.Status {
	facts := ironic.BootFactsOf(node)
	status, record := facts.Judge(want), facts.Record
	if status.Action == bootiso.None && record != nil && record.Manual && !ironic.Restarted(node, record.At) {
		return bootiso.Status{
			Stale: true, Obsolete: []string{bootiso.ObsoleteImage}, Action: bootiso.Manual,
			Why: "an apply has asked for a restart by hand, and Ironic has not seen one since",
		}
	}
	return status
}

// boot is what a machine shall run, in Ironic's terms.
func (w wantedISO) boot() ironic.WantedBoot {
	quiet, err := time.ParseDuration(w.QuietPeriod.ValueString())
	if err != nil {
		quiet = time.Minute
	}
	built, err := time.Parse(time.RFC3339, w.BuiltAt.ValueString())
	return ironic.WantedBoot{
		Artifacts: bootiso.Artifacts{URL: w.URL.ValueString(), Version: w.Version.ValueString(), Shared: stringsOf(w.Shared), Own: stringsOf(w.Own)},
		Policy:    bootiso.Policy(w.RebootPolicy.ValueString()), Installing: w.Installing.ValueBool(),
		Registered: w.Registered.IsNull() || w.Registered.ValueBool(),
		Settled:    err != nil || time.Since(built) >= quiet,
	}
}

// stringsOf are the entries of a map of strings.
func stringsOf(m types.Map) map[string]string {
	out := map[string]string{}
	for key, value := range m.Elements() {
		if text, ok := value.(types.String); ok {
			out[key] = text.ValueString()
		}
	}
	return out
}

// hostBoot is a machine for state.
func hostBoot(ctx context.Context, node *ironic.Node, status bootiso.Status) attr.Value {
	obsolete, _ := types.ListValueFrom(ctx, types.StringType, append([]string{}, status.Obsolete...))
	at, boots := types.StringNull(), types.Int64Null()
	if record := ironic.BootRecord(node); record != nil {
		at, boots = types.StringValue(record.At.Format(time.RFC3339)), types.Int64Value(int64(record.Boots))
	}
	return types.ObjectValueMust(bootHostType.AttrTypes, map[string]attr.Value{
		"node_id": types.StringValue(node.UUID), "name": types.StringValue(node.Name), "provision_state": types.StringValue(node.ProvisionState),
		"stale": types.BoolValue(status.Stale), "obsolete": obsolete, "action": types.StringValue(string(status.Action)), "reason": types.StringValue(status.Why),
		"booted_at": at, "boots": boots,
	})
}

// written accepts text that is written in a certain way.
type written struct {
	what  string
	check func(string) error
}

// Description implements validator.String.
func (w written) Description(context.Context) string { return "must be " + w.what }

// MarkdownDescription implements validator.String.
func (w written) MarkdownDescription(ctx context.Context) string { return w.Description(ctx) }

// ValidateString implements validator.String.
func (w written) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if w.check(req.ConfigValue.ValueString()) != nil {
		resp.Diagnostics.AddAttributeError(req.Path, "Wrong value", fmt.Sprintf("%q %s.", req.ConfigValue.ValueString(), w.Description(ctx)))
	}
}

func isQuiet(text string) error {
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		return errors.New("negative")
	}
	return err
}

func isTime(text string) error {
	_, err := time.Parse(time.RFC3339, text)
	return err
}
