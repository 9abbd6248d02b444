package host

import (
	"encoding/json"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
)

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
	if refused := hosts.DecidePorts(config.cablingWish(t.Context(), &plan), state.cablingSeen(t.Context(), private{})); len(refused) > 0 {
		t.Error(refused)
	}
}

// Numbers of extra reach Ironic as they are written: an asset number may have more digits than a float64.
func TestSetKeys_keepsDigits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"asset":9007199254740993,"list":[1.50,null],"none":null}`: `{"asset":9007199254740993,"list":[1.50,null]}`,
		`{}`: `{}`,
	} {
		if got, err := json.Marshal(setKeys(framework.JSONValue(text))); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	if got := setKeys(framework.JSONNull()); got != nil {
		t.Errorf("null: %v", got)
	}
}
