package expect_test

import (
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/expect"
)

// A plan that creates a host under the name of a node replaces the host of the node, unless it renames that.
func TestSite_ReplacesHost(t *testing.T) {
	t.Parallel()
	node := &ironic.Node{UUID: ironic.NewUUID(), Name: "n1"}
	for name, tt := range map[string]struct {
		planned []expect.ExpectedHost
		want    bool
	}{
		"nothing":                     {nil, false},
		"a new host of that name":     {[]expect.ExpectedHost{{Name: "n1"}}, true},
		"a new host of another name":  {[]expect.ExpectedHost{{Name: "n2"}}, false},
		"a new host without a name":   {[]expect.ExpectedHost{{}}, false},
		"a change of the host":        {[]expect.ExpectedHost{{ID: node.UUID, Name: "n1"}}, false},
		"a rename, and its successor": {[]expect.ExpectedHost{{ID: node.UUID, Name: "n2"}, {Name: "n1"}}, false},
	} {
		client := machine.New(machine.Config{Config: api.Config{Endpoint: "http://ironic.test", Auth: api.AuthNone}})
		for _, h := range tt.planned {
			expect.ExpectHost(client, h)
		}
		if got := expect.ReplacesHost(client, node); got != tt.want {
			t.Errorf("%s: the plan replaces the host: %v, want %v", name, got, tt.want)
		}
	}
}
