package datasources

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/clock"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

var _ datasource.DataSourceWithConfigure = (*capacity)(nil)

// NewCapacity returns the data source metal_capacity.
func NewCapacity() datasource.DataSource { return &capacity{source{name: "metal_capacity"}} }

type capacity struct{ source }

type capacityModel struct {
	MaxConcurrent types.Int64 `tfsdk:"max_concurrent"`
	Busy          types.Int64 `tfsdk:"busy"`
	Own           types.Int64 `tfsdk:"own"`
	Others        types.Int64 `tfsdk:"others"`
	Stuck         types.Int64 `tfsdk:"stuck"`
	Exempt        types.Int64 `tfsdk:"exempt"`
	Classes       types.Map   `tfsdk:"classes"`

	QualifiedWithin types.String `tfsdk:"qualified_within"`
}

func classAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"total": number("All hosts of the class."), "available": number("Hosts that an allocation can reserve."),
		"allocated":      number("Hosts that are reserved or deployed."),
		"in_maintenance": number("Hosts in maintenance."), "failed": number("Hosts in a failed state."),
		"not_qualified": number("Those of `available` that an allocation with the same `qualified_within` does not reserve; null without " +
			"it. Hosts that were inspected since they passed are not among them: only their inventory tells."),
	}
}

func (c *capacity) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Counts the free hosts of each resource class, and the machines with an operation in progress, by the rules " +
			"of `provisioning_limit`, as far as the user can see them.",
		Attributes: map[string]schema.Attribute{
			"max_concurrent": number("Number of slots: `provisioning_limit.max_concurrent`. 0 means no limit."),
			"busy":           number("Number of machines that take a slot now."),
			"own":            number("Those of `busy` on which this run started the operation."),
			"others":         number("Those of `busy` on which another client or an earlier run started the operation."),
			"stuck":          number("Number of machines that are in one state for longer than `stuck_after`, and take no slot any more."),
			"exempt": number("Number of machines with an operation in progress that need no slot, because " +
				"`exempt_boot_interfaces` contains their boot interface."),
			"qualified_within": schema.StringAttribute{
				Optional: true, Validators: []validator.String{framework.Age},
				MarkdownDescription: "Age, such as `90d`, for `not_qualified`.",
			},
			"classes": byName("Numbers of hosts by resource class. The key is `\"\"` for hosts without a class. Besides `total`, a host "+
				"counts in the first number that fits: `in_maintenance`, `failed`, `allocated`, `available`. Hosts that Ironic is "+
				"preparing count only in `total`.", classAttributes()),
		},
	}
}

// Read counts the fleet.
func (c *capacity) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var config capacityModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if err := c.Site.LimitRequires(ctx); err != nil {
		report(&resp.Diagnostics, "count by provisioning_limit", err)
		return
	}
	nodes, err := c.Site.Ironic.NodesForConfiguration(ctx, ironic.NodeFilter{})
	if err != nil {
		report(&resp.Diagnostics, "count the hosts", err)
		return
	}
	now := c.Site.CapacityOf(nodes)
	count := func(n int) types.Int64 { return types.Int64Value(int64(n)) }
	within, counts := clock.ParseAge(config.QualifiedWithin.ValueString())
	isFit := func(n ironic.Node) bool {
		holds, known := notes.QualificationOf(&n).Holds(&n, nil, within, c.Site.Ironic.ServerNow())
		return holds || !known
	}
	unfit := c.Site.CapacityOf(slices.DeleteFunc(slices.Clone(nodes), isFit)).Classes
	classes := map[string]map[string]attr.Value{}
	for name, class := range now.Classes {
		classes[name] = map[string]attr.Value{
			"total": count(class.Total), "available": count(class.Available), "allocated": count(class.Allocated),
			"in_maintenance": count(class.Maintenance), "failed": count(class.Failed),
			"not_qualified": types.Int64Null(),
		}
		if counts {
			classes[name]["not_qualified"] = count(unfit[name].Available)
		}
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &capacityModel{
		MaxConcurrent: count(now.Max), Busy: count(now.Busy), Own: count(now.Own), Others: count(now.Others), Stuck: count(now.Stuck),
		Exempt: count(now.Exempt), Classes: objects(classAttributes(), classes), QualifiedWithin: config.QualifiedWithin,
	})...)
}
