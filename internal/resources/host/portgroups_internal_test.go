package host

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Ironic refuses a port without a physical network in a group that has one, at each apply.
func TestPorts_ofAGroupNeedItsNetwork(t *testing.T) {
	t.Parallel()
	port := func(group string, network types.String) portModel {
		p := noPort()
		p.PhysicalNetwork = network
		if group != "" {
			p.PortGroup = types.StringValue(group)
		}
		return p
	}
	const first, second = "52:54:00:00:00:01", "52:54:00:00:00:02"
	prov, other, none := types.StringValue("prov"), types.StringValue("other"), types.StringNull()
	for name, tt := range map[string]struct {
		first, second portModel
		refused       bool
	}{
		"the same":       {port("bond0", prov), port("bond0", prov), false},
		"none":           {port("bond0", none), port("bond0", none), false},
		"missing":        {port("bond0", prov), port("bond0", none), true},
		"not known yet":  {port("bond0", prov), port("bond0", types.StringUnknown()), false},
		"other group":    {port("bond0", prov), port("bond1", other), false},
		"without group":  {port("bond0", prov), port("", none), false},
		"kept, not same": {port("bond0", prov), port("bond0", other), true},
	} {
		m := &model{Ports: portsValue(t.Context(), map[string]portModel{first: tt.first, second: tt.second})}
		var diags diag.Diagnostics
		m.refuseOtherNetworks(t.Context(), &diags)
		if diags.HasError() != tt.refused {
			t.Errorf("%s: %v", name, diags)
			continue
		}
		if !tt.refused {
			continue
		}
		at, _ := diags[0].(diag.DiagnosticWithPath)
		if one := path.Root("ports").AtMapKey(first).AtName("physical_network"); !at.Path().Equal(path.Root("ports").AtMapKey(second).AtName("physical_network")) && !at.Path().Equal(one) {
			t.Errorf("%s: the error is at %s", name, at.Path())
		}
	}
}

// A port whose configuration omits the network keeps the one that it has in Ironic.
func TestPorts_ofAGroupKeepTheirNetwork(t *testing.T) {
	t.Parallel()
	const first, second = "52:54:00:00:00:01", "52:54:00:00:00:02"
	ports := func(network types.String) types.Map {
		all := map[string]portModel{}
		for mac, of := range map[string]types.String{first: types.StringValue("prov"), second: network} {
			p := noPort()
			p.PortGroup, p.PhysicalNetwork = types.StringValue("bond0"), of
			all[mac] = p
		}
		return portsValue(t.Context(), all)
	}
	config, state := &model{Ports: ports(types.StringNull())}, &model{Ports: ports(types.StringValue("prov"))}
	plan := *config
	plan.planPorts(t.Context(), config, state, nil)
	var diags diag.Diagnostics
	plan.refuseOtherNetworks(t.Context(), &diags)
	if diags.HasError() {
		t.Error(diags)
	}
}
