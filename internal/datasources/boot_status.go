package datasources

import (
	"context"
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

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy/bootiso"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

var _ datasource.DataSourceWithConfigure = (*bootStatus)(nil)

// NewBootStatus returns the data source metal_boot_status.
func NewBootStatus() datasource.DataSource { return &bootStatus{source{name: "metal_boot_status"}} }

type bootStatus struct{ source }

type bootStatusModel struct {
	LiveISO types.Map `tfsdk:"live_iso"`
	Hosts   types.Map `tfsdk:"hosts"`
	Stale   types.Set `tfsdk:"stale"`
	Older   types.Set `tfsdk:"older"`
	Restart types.Set `tfsdk:"restart"`
	Manual  types.Set `tfsdk:"manual"`
}

func bootAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"node_id": text("UUID of the node."), "name": text("Name of the node."),
		"provision_state": text("Ironic's provision state of the node."),
		"older": flag("Whether the machine runs another image than the wanted one. All content that the machine uses may be current " +
			"nevertheless."),
		"stale": flag("Whether the machine was booted with something that is obsolete now."),
		"obsolete": keys("What the machine was booted with and is no longer wanted: `shared.NAME` or `host.NAME` for content, `image` " +
			"if the machine needs the new image itself. `unknown` if the node has no record of the image that it runs, for example " +
			"because it is not `active`."),
		"action": text("What an apply would do. `none`: nothing. `restart`: **restart the machine**. `wait`: nothing yet, because " +
			"there is no newer image or the quiet period after `built_at` has not ended. `manual`: ask you to restart the machine. It " +
			"stays `manual` until Ironic notices the restart."),
		"reason":    text("Reason for `action`, and whether the machine runs an older image meanwhile."),
		"booted_at": text("Time (RFC 3339) at which the provider booted the machine or recorded what it runs; null if unknown."),
		"boots": number("Number of consecutive boots with this image, each within a day of the previous one; null if unknown. After " +
			"four, an apply refuses another restart."),
	}
}

func keys(description string) schema.SetAttribute {
	return schema.SetAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: description}
}

func (b *bootStatus) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	optional := func(description string, validators ...validator.String) schema.Attribute {
		return schema.StringAttribute{Optional: true, MarkdownDescription: description, Validators: validators}
	}
	values := func(description string) schema.Attribute {
		return schema.MapAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: description}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Reports which machines run an older live ISO than the wanted one, which of its content is obsolete, and " +
			"what an apply would do. It restarts no machine and does not download the image.\n\n" +
			"The guide [Live ISO](../guides/live-iso.md) explains the terms.",
		Attributes: map[string]schema.Attribute{
			"live_iso": schema.MapNestedAttribute{
				Required: true, MarkdownDescription: "Wanted live ISO of each machine. The key is the UUID or name of the node, the " +
					"value the `live_iso` of its `metal_deployment`. Use one local value for both. Do not refer to " +
					"`metal_deployment.NAME.live_iso`, which is the ISO that the machine runs now. A key that matches no " +
					"node is a warning.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"url": schema.StringAttribute{
						Required: true, MarkdownDescription: "URL from which Ironic's conductors download the ISO.",
						Validators: []validator.String{framework.ImageURL},
					},
					"version":        optional("Identity of the content. Default: `url` without user, query and fragment."),
					"shared_content": values("Content that all machines with this image use: identity by name."),
					"host_content":   values("Content that only this machine uses: identity by name."),
					"contains": values("Content that the image was built with: identity by name. If wanted content is missing, " +
						"`action` is `wait`."),
					"installing": schema.BoolAttribute{Optional: true, MarkdownDescription: "Whether an installation has begun, so " +
						"that the machine must not restart. Default: `false`."},
					"registered": schema.BoolAttribute{Optional: true, MarkdownDescription: "Whether the software in the image has " +
						"registered with its service. Default: `true`."},
					"quiet_period": optional("How long a new image must be unchanged before an apply restarts machines. Default: `60s`.",
						framework.NotNegativeDuration),
					"built_at": optional("When the image was built (RFC 3339).", framework.Timestamp),
					"reboot_policy": optional("Which machines a new image restarts: `affected` (the default), `always` or `never`.",
						stringvalidator.OneOf(string(bootiso.PolicyAffected), string(bootiso.PolicyAlways), string(bootiso.PolicyNever))),
				}},
			},
			"hosts": byName("Status of each machine. The keys are those of `live_iso`, without keys that match no node.",
				bootAttributes()),
			"older": keys("Keys of the machines that run another image than the wanted one."),
			"stale": keys("Keys of the machines that run something obsolete. They may run the wanted image, if only the wanted " +
				"content has changed."),
			"restart": keys("Keys of the machines that an apply would restart, at once or after the quiet period."),
			"manual":  keys("Keys of the machines that you must restart."),
		},
	}
}

// Read compares the wanted live ISO of each machine with the one that it was booted with.
func (b *bootStatus) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m bootStatusModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	wanted := map[string]framework.LiveISO{}
	resp.Diagnostics.Append(m.LiveISO.ElementsAs(ctx, &wanted, false)...)
	if resp.Diagnostics.HasError() {
		return
	}
	nodes, err := b.Site.Ironic.NodesForConfiguration(ctx, ironic.NodeFilter{})
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
	hosts := map[string]map[string]attr.Value{}
	lists := map[string][]string{}
	var missing []string
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		node, exists := known[key]
		if !exists {
			missing = append(missing, key)
			continue
		}
		answer := deploy.BootAnswer(node, wanted[key].Want())
		if answer.Now.Stale {
			lists["stale"] = append(lists["stale"], key)
		}
		if older(answer) {
			lists["older"] = append(lists["older"], key)
		}
		action := answer.Now.Action
		if action == bootiso.Wait { // an apply waits until the image has settled, and may restart the machine then
			action = answer.Apply.Action
		}
		lists[string(action)] = append(lists[string(action)], key)
		hosts[key] = hostBoot(node, answer)
	}
	warnMissing(missing, &resp.Diagnostics)
	m.Hosts, m.Stale, m.Older = objects(bootAttributes(), hosts), setValue(lists["stale"]), setValue(lists["older"])
	m.Restart, m.Manual = setValue(lists[string(bootiso.Restart)]), setValue(lists[string(bootiso.Manual)])
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func warnMissing(keys []string, diags *diag.Diagnostics) {
	const few = 10
	if len(keys) == 0 {
		return
	}
	named := strings.Join(keys[:min(few, len(keys))], ", ")
	if len(keys) > few {
		named += fmt.Sprintf(" and %d more", len(keys)-few)
	}
	diags.AddAttributeWarning(path.Root("live_iso"), "No such node", "The data source omits these keys, because Ironic has no node with "+
		"such a UUID or name: "+named+". If this run creates the node, set depends_on = [metal_deployment.NAME] on the data source, so "+
		"that Terraform reads it afterwards.")
}

// older reports whether a machine runs another image than the wanted one. The record of a machine that waits for a restart by hand
// has the wanted image already.
func older(answer bootiso.Answer) bool { return answer.Newer || answer.Now.Action == bootiso.Manual }

func hostBoot(node *ironic.Node, answer bootiso.Answer) map[string]attr.Value {
	status, reason := answer.Now, answer.Now.Why
	if older(answer) && status.Action == bootiso.None {
		reason = "it runs an older image, and is not restarted: " + reason
	}
	at, boots := types.StringNull(), types.Int64Null()
	if record := deploy.BootRecord(node); record != nil {
		at, boots = types.StringValue(record.At.Format(time.RFC3339)), types.Int64Value(int64(record.Boots))
	}
	return map[string]attr.Value{
		"node_id": types.StringValue(node.UUID), "name": types.StringValue(node.Name),
		"provision_state": types.StringValue(node.ProvisionState), "older": types.BoolValue(older(answer)),
		"stale": types.BoolValue(status.Stale), "obsolete": setValue(status.Obsolete), "action": types.StringValue(string(status.Action)),
		"reason": types.StringValue(reason), "booted_at": at, "boots": boots,
	}
}
