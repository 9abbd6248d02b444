package resources

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
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

type discoveryModel struct {
	ID           types.String `tfsdk:"id"`
	Name         types.String `tfsdk:"name"`
	NameTemplate types.Object `tfsdk:"name_template"`
	Style        types.String `tfsdk:"style"`
	Filter       types.Object `tfsdk:"filter"`
	Only         types.Set    `tfsdk:"only"`
	Names        types.Map    `tfsdk:"names"`
	Exclude      types.Set    `tfsdk:"exclude"`
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

// fullyKnown reports whether the rules are known, so that one can decide by them.
func (m *discoveryModel) fullyKnown(ctx context.Context) bool {
	return fullyKnown(ctx, m.Name, m.NameTemplate, m.Style, m.Filter, m.Only, m.Names, m.Exclude, m.MaxHosts, m.OnCollision)
}

// template is the name template; the zero one if it is null, as after an import.
func (m *discoveryModel) template(ctx context.Context) (t templateModel, diags diag.Diagnostics) {
	if isSet(m.NameTemplate) {
		diags = m.NameTemplate.As(ctx, &t, basetypes.ObjectAsOptions{})
	}
	return t, diags
}

// mark is what a node of this discovery remembers.
func (m *discoveryModel) mark(ctx context.Context, name string) ironic.Discovery {
	t, _ := m.template(ctx)
	return ironic.Discovery{
		Version: 1, Owner: m.Name.ValueString(), Name: name, From: t.HardwareDetails.ValueString(), At: time.Now().UTC().Format(time.RFC3339),
	}
}

// rules are the model in the terms of the engine.
func (m *discoveryModel) rules(ctx context.Context) (r discovery.Rules, diags diag.Diagnostics) {
	template, problems := m.template(ctx)
	diags.Append(problems...)
	var filter filterModel
	if isSet(m.Filter) {
		diags.Append(m.Filter.As(ctx, &filter, basetypes.ObjectAsOptions{})...)
	}
	r = discovery.Rules{
		Owner: m.Name.ValueString(),
		Template: discovery.Template{
			Prefix: template.Prefix.ValueString(), Suffix: template.Suffix.ValueString(),
			Detail: discovery.Detail(template.HardwareDetails.ValueString()), Style: discovery.StyleIronic,
		},
		Manufacturer: compile(filter.Manufacturer), Product: compile(filter.Product), Driver: compile(filter.Driver),
		Only: stringSet(m.Only), Exclude: stringSet(m.Exclude), Names: stringMap(m.Names),
		MaxHosts: int(m.MaxHosts.ValueInt64()), OnCollision: discovery.CollisionSkip,
	}
	if isSet(m.Style) {
		r.Template.Style = discovery.Style(m.Style.ValueString())
	}
	if isSet(m.OnCollision) {
		r.OnCollision = discovery.OnCollision(m.OnCollision.ValueString())
	}
	if isSet(filter.BMCCIDR) {
		prefix, err := netip.ParsePrefix(filter.BMCCIDR.ValueString())
		if err != nil {
			diags.AddAttributeError(path.Root("filter").AtName("bmc_cidr"), "Not a network", err.Error())
		}
		r.BMC = []netip.Prefix{prefix}
	}
	return r, diags
}

// compile is a regular expression that a validator has accepted; nil for none.
func compile(text types.String) *regexp.Regexp {
	if !isSet(text) {
		return nil
	}
	expression, err := regexp.Compile(text.ValueString())
	if err != nil {
		return nil
	}
	return expression
}

// discoveredValue is a machine for hosts.
func discoveredValue(h discovery.Host) attr.Value {
	return types.ObjectValueMust(discoveredType.AttrTypes, map[string]attr.Value{
		"id": types.StringValue(h.ID), "boot_mac": orNull(h.BootMAC()), "bmc_address": orNull(h.BMCAddress), "serial_number": orNull(h.Serial),
		"manufacturer": orNull(h.Manufacturer), "product": orNull(h.Product), "hostname": orNull(h.Hostname), "ip": orNull(h.IP()),
		"cpus": positive(h.CPUs), "memory_mb": positive(h.MemoryMB),
	})
}
