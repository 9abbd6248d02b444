package discoveryimport

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/found"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/naming"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
)

type discoveryModel struct {
	ID           types.String `tfsdk:"id"`
	Name         types.String `tfsdk:"name"`
	NameTemplate types.Map    `tfsdk:"name_template"`
	NameStyle    types.String `tfsdk:"name_style"`
	Filter       types.Map    `tfsdk:"filter"`
	Include      types.Set    `tfsdk:"include"`
	Names        types.Map    `tfsdk:"names"`
	Exclude      types.Set    `tfsdk:"exclude"`
	Before       types.String `tfsdk:"discovered_before"`
	MaxHosts     types.Int64  `tfsdk:"max_hosts"`
	OnCollision  types.String `tfsdk:"on_collision"`
	Hosts        types.Map    `tfsdk:"hosts"`
	Pending      types.Map    `tfsdk:"pending"`
}

// fullyKnown reports whether all rules are known, so that the plan can apply them.
func (m *discoveryModel) fullyKnown(ctx context.Context) bool {
	return framework.FullyKnown(ctx, m.Name, m.NameTemplate, m.NameStyle, m.Filter, m.Include, m.Names, m.Exclude, m.Before,
		m.MaxHosts, m.OnCollision)
}

// mark returns the mark that this discovery writes into its nodes.
func (m *discoveryModel) mark(name string) notes.Discovery {
	return notes.Discovery{
		Version: 1, Owner: m.Name.ValueString(), Name: name, From: framework.KeyOf(m.NameTemplate, "hardware_details").ValueString(),
		At: time.Now().UTC().Format(time.RFC3339),
	}
}

// importHosts takes all machines that have the mark of this discovery.
func (m *discoveryModel) importHosts(seen *found.Survey) {
	hosts := map[string]attr.Value{}
	for _, h := range seen.Hosts {
		if h.Owner == m.Name.ValueString() {
			hosts[h.OwnerName] = discoveredValue(h)
		}
	}
	m.Hosts, m.Pending = types.MapValueMust(discoveredType, hosts), types.MapValueMust(types.StringType, nil)
}

func (m *discoveryModel) rules() naming.Rules {
	r := framework.DiscoveryRules(m.NameTemplate, m.NameStyle, m.Filter)
	r.Owner, r.MaxHosts = m.Name.ValueString(), int(m.MaxHosts.ValueInt64())
	r.Include, r.Exclude, r.Names = framework.StringSet(m.Include), framework.StringSet(m.Exclude), framework.StringMap(m.Names)
	if framework.IsSet(m.OnCollision) {
		r.OnCollision = naming.OnCollision(m.OnCollision.ValueString())
	}
	if at, err := time.Parse(time.RFC3339, m.Before.ValueString()); err == nil { // a validator has checked it
		r.Before = at
	}
	return r
}

func discoveredValue(h naming.Host) attr.Value {
	facts := framework.DiscoveredFacts(h)
	facts["id"] = types.StringValue(h.ID)
	return types.ObjectValueMust(discoveredType.AttrTypes, facts)
}
