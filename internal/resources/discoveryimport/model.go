package discoveryimport

import (
	"context"
	"net/netip"
	"regexp"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/discovery"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

type discoveryModel struct {
	ID           types.String `tfsdk:"id"`
	Name         types.String `tfsdk:"name"`
	NameTemplate types.Object `tfsdk:"name_template"`
	NameStyle    types.String `tfsdk:"name_style"`
	Filter       types.Object `tfsdk:"filter"`
	Include      types.Set    `tfsdk:"include"`
	Names        types.Map    `tfsdk:"names"`
	Exclude      types.Set    `tfsdk:"exclude"`
	Before       types.String `tfsdk:"discovered_before"`
	MaxHosts     types.Int64  `tfsdk:"max_hosts"`
	OnCollision  types.String `tfsdk:"on_collision"`
	Hosts        types.Map    `tfsdk:"hosts"`
	Pending      types.Map    `tfsdk:"pending"`
}

type templateModel struct {
	Prefix          types.String `tfsdk:"prefix"`
	Suffix          types.String `tfsdk:"suffix"`
	HardwareDetails types.String `tfsdk:"hardware_details"`
}

type filterModel struct {
	Manufacturer types.String `tfsdk:"manufacturer"`
	Product      types.String `tfsdk:"product"`
	BMCCIDR      types.String `tfsdk:"bmc_cidr"`
	Driver       types.String `tfsdk:"driver"`
}

// fullyKnown reports whether all rules are known, so that the plan can apply them.
func (m *discoveryModel) fullyKnown(ctx context.Context) bool {
	return framework.FullyKnown(ctx, m.Name, m.NameTemplate, m.NameStyle, m.Filter, m.Include, m.Names, m.Exclude, m.Before, m.MaxHosts, m.OnCollision)
}

// template returns the name template; the zero value if it is null, as after an import.
func (m *discoveryModel) template(ctx context.Context) (t templateModel, diags diag.Diagnostics) {
	if framework.IsSet(m.NameTemplate) {
		diags = m.NameTemplate.As(ctx, &t, basetypes.ObjectAsOptions{})
	}
	return t, diags
}

// mark returns the mark that this discovery writes into its nodes.
func (m *discoveryModel) mark(ctx context.Context, name string) provision.Discovery {
	t, _ := m.template(ctx)
	return provision.Discovery{
		Version: 1, Owner: m.Name.ValueString(), Name: name, From: t.HardwareDetails.ValueString(), At: time.Now().UTC().Format(time.RFC3339),
	}
}

// rules converts the model to the rules of package discovery.
func (m *discoveryModel) rules(ctx context.Context) (r discovery.Rules, diags diag.Diagnostics) {
	template, problems := m.template(ctx)
	diags.Append(problems...)
	var filter filterModel
	if framework.IsSet(m.Filter) {
		diags.Append(m.Filter.As(ctx, &filter, basetypes.ObjectAsOptions{})...)
	}
	r = discovery.Rules{
		Owner: m.Name.ValueString(),
		Template: discovery.Template{
			Prefix: template.Prefix.ValueString(), Suffix: template.Suffix.ValueString(),
			Detail: discovery.Detail(template.HardwareDetails.ValueString()), Style: discovery.StyleIronic,
		},
		Manufacturer: compile(filter.Manufacturer), Product: compile(filter.Product), Driver: compile(filter.Driver),
		Include: framework.StringSet(m.Include), Exclude: framework.StringSet(m.Exclude), Names: framework.StringMap(m.Names),
		MaxHosts: int(m.MaxHosts.ValueInt64()), OnCollision: discovery.CollisionSkip,
	}
	if framework.IsSet(m.NameStyle) {
		r.Template.Style = discovery.Style(m.NameStyle.ValueString())
	}
	if framework.IsSet(m.OnCollision) {
		r.OnCollision = discovery.OnCollision(m.OnCollision.ValueString())
	}
	if at, err := time.Parse(time.RFC3339, m.Before.ValueString()); err == nil { // a validator has checked it
		r.Before = at
	}
	if framework.IsSet(filter.BMCCIDR) {
		prefix, err := netip.ParsePrefix(filter.BMCCIDR.ValueString())
		if err != nil {
			diags.AddAttributeError(path.Root("filter").AtName("bmc_cidr"), "Not a network", err.Error())
		}
		r.BMC = []netip.Prefix{prefix}
	}
	return r, diags
}

// compile compiles a regular expression that a validator has accepted; nil if it is null.
func compile(text types.String) *regexp.Regexp {
	if !framework.IsSet(text) {
		return nil
	}
	expression, err := regexp.Compile(text.ValueString())
	if err != nil {
		return nil
	}
	return expression
}

// discoveredValue converts a machine to an element of hosts.
func discoveredValue(h discovery.Host) attr.Value {
	return types.ObjectValueMust(discoveredType.AttrTypes, map[string]attr.Value{
		"id": types.StringValue(h.ID), "boot_mac": framework.OrNull(h.BootMAC()), "bmc_address": framework.OrNull(h.BMCAddress), "serial_number": framework.OrNull(h.Serial),
		"manufacturer": framework.OrNull(h.Manufacturer), "product": framework.OrNull(h.Product), "hostname": framework.OrNull(h.Hostname), "ip": framework.OrNull(h.IP()),
		"cpus": framework.Positive(h.CPUs), "memory_mb": framework.Positive(h.MemoryMB),
	})
}
