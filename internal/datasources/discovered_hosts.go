package datasources

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/found"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/naming"
)

var _ datasource.DataSourceWithConfigure = (*discoveredHosts)(nil)

// NewDiscoveredHosts returns the data source metal_discovered_hosts.
func NewDiscoveredHosts() datasource.DataSource {
	return &discoveredHosts{source{name: "metal_discovered_hosts"}}
}

type discoveredHosts struct{ source }

type discoveredHostsModel struct {
	NameTemplate types.Map    `tfsdk:"name_template"`
	NameStyle    types.String `tfsdk:"name_style"`
	Filter       types.Map    `tfsdk:"filter"`
	Hosts        types.Map    `tfsdk:"hosts"`
	Pending      types.Map    `tfsdk:"pending"`
}

func discoveredAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"proposed_name": text("Name that `name_template` gives."),
		"boot_mac":      text("MAC address from which the machine boots."), "bmc_address": text("Address of the BMC."),
		"serial_number": text("Serial number."), "manufacturer": text("Manufacturer."), "product": text("Product name."),
		"hostname": text("Host name that the machine had during the inspection."),
		"ip":       text("Address of the first network card."), "cpus": number("Number of CPUs."), "memory_mb": number("Memory in MiB."),
		"disks_gb": schema.MapAttribute{
			ElementType: types.Int64Type, Computed: true, MarkdownDescription: "Sizes of its disks in GiB, rounded down, by name, such " +
				"as `/dev/sda`; after an inspection by Redfish `480GB SSD` and `480GB SSD (2)`. Other facts about them are " +
				"in `data.metal_host`.",
		},
	}
}

func (d *discoveredHosts) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	choose := func(description string, validators ...validator.String) schema.Attribute {
		return schema.StringAttribute{Optional: true, MarkdownDescription: description, Validators: validators}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the machines that Ironic has discovered and that are not managed yet, with the names that a rule " +
			"would give them. Reading it changes nothing.\n\n" +
			"Do not create resources from this list: a machine leaves it as soon as it has a name. Use `metal_discovery_import` instead.",
		Attributes: map[string]schema.Attribute{
			"name_template": schema.MapAttribute{
				ElementType: types.StringType, Required: true, Validators: []validator.Map{framework.TemplateKeys},
				MarkdownDescription: framework.TemplateKeys.Markdown("Rule for the proposed names, as in " +
					"[`metal_discovery_import`](../resources/discovery_import.md)."),
			},
			"name_style": choose("Form of the names. `ironic` (the default): every name that Ironic accepts. `dns`: lower case, digits "+
				"and hyphens, at most 63 characters.", stringvalidator.OneOf(string(naming.StyleIronic), string(naming.StyleDNS))),
			"filter": schema.MapAttribute{
				ElementType: types.StringType, Optional: true, Validators: []validator.Map{framework.FilterKeys},
				MarkdownDescription: framework.FilterKeys.Markdown("Only machines that match all of these conditions. Default: " +
					"all machines."),
			},
			"hosts": byName("Machines that a `metal_discovery_import` would take over. The key is the UUID of the node. Facts that the "+
				"inspection has not found are null.", discoveredAttributes()),
			"pending": schema.MapAttribute{ElementType: types.StringType, Computed: true, MarkdownDescription: "Machines that a " +
				"`metal_discovery_import` would not take over. The key is the UUID of the node, the value the reason."},
		},
	}
}

func (d *discoveredHosts) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m discoveredHostsModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	rules := framework.DiscoveryRules(m.NameTemplate, m.NameStyle, m.Filter)
	if err := rules.Template.Validate(); err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("name_template"), "Invalid name template", err.Error()+".")
		return
	}
	seen, err := found.TakeSurvey(ctx, d.Site, "", nil)
	if err != nil {
		report(&resp.Diagnostics, "list discovered machines", err)
		return
	}
	decided := rules.Decide(seen.All())
	hosts, pending := map[string]map[string]attr.Value{}, map[string]attr.Value{}
	for _, named := range decided.Hosts {
		facts := framework.DiscoveredFacts(named.Host)
		facts["proposed_name"] = types.StringValue(named.Name)
		hosts[named.Host.ID] = facts
	}
	for id, reason := range decided.Pending {
		pending[id] = types.StringValue(reason)
	}
	m.Hosts, m.Pending = objects(discoveredAttributes(), hosts), types.MapValueMust(types.StringType, pending)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}
