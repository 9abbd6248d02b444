package discoveryimport

import (
	"net/http"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host/naming"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// stumbling is a transport that panics at changes of one node.
type stumbling struct {
	fake *fakeironic.Server
	node string
}

func (s *stumbling) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && strings.Contains(r.URL.Path, s.node) {
		panic("broken answer")
	}
	return s.fake.RoundTrip(r)
}

func TestDiscoveryImport_panicConcernsOneMachine(t *testing.T) {
	t.Parallel()
	fake := &fakeironic.Server{MaxMicroversion: "1.115"}
	hosts, ids := map[string]attr.Value{}, map[string]string{}
	for _, name := range []string{"r12-1", "r12-2", "r12-3"} {
		ids[name] = fake.Discover(map[string]any{"inventory": map[string]any{
			"interfaces": []any{map[string]any{
				"name": "eth0", "mac_address": "52:54:00:00:00:0" + name[4:],
				"ipv4_address": "192.0.2." + name[4:],
			}},
		}})
		hosts[name] = discoveredValue(naming.Host{ID: ids[name]})
	}
	client := machine.New(machine.Config{Config: api.Config{
		Endpoint: "http://ironic.test", Auth: api.AuthNone,
		Transport: &stumbling{fake, ids["r12-2"]},
	}})
	plan := discoveryModel{Name: types.StringValue("rack12"), Hosts: types.MapValueMust(discoveredType, hosts)}

	var diags diag.Diagnostics
	(&discoveryImport{framework.Resource{WithClient: framework.WithClient{Site: client}}}).settle(t.Context(), &plan, nil, &diags)

	if len(diags) != 1 || diags[0].Summary() != "Could not name 1 machine" ||
		!strings.Contains(diags[0].Detail(), "r12-2 (node "+ids["r12-2"]+")") ||
		!strings.Contains(strings.ToLower(diags[0].Detail()), "the provider has a bug, it panicked: broken answer") {
		t.Errorf("%v", diags)
	}
	if _, named := plan.Hosts.Elements()["r12-2"]; named || len(plan.Hosts.Elements()) != 2 {
		t.Errorf("in state would be %v", plan.Hosts)
	}
	for name, id := range ids {
		node, _ := fake.Node(id)
		if named := node.Name == name; named != (name != "r12-2") {
			t.Errorf("node %s is called %q", name, node.Name)
		}
	}
}
