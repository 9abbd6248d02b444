package deploy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// port is a port with a link, in a group, with a VIF; an empty value: without it.
func port(link, group, vif string) (p ironic.Port) {
	if link != "" {
		p.LocalLinkConnection = map[string]any{"switch_id": link, "port_id": "1"}
	}
	if vif != "" {
		p.InternalInfo = map[string]any{"tenant_vif_port_id": vif}
	}
	p.PortGroupUUID = group
	return p
}

// A plan says which ports cannot take the VIFs, by the rules by which Ironic chooses one.
func TestUnattachable(t *testing.T) {
	t.Parallel()
	infiniband := port("", "", "")
	infiniband.Extra = map[string]any{"client-id": "ff:00"}
	free, bare, bonded := port("s", "", ""), port("", "", ""), port("s", "g", "")
	for name, tt := range map[string]struct {
		network string
		ports   []ironic.Port
		wanted  string // IDs of VIFs, with @ and the number of a port
		leaving []string
		want    string
	}{
		"enough": {"neutron", []ironic.Port{free, free}, "a b", nil, ""},
		"too few": {
			"neutron",
			[]ironic.Port{free},
			"a b", nil,
			"Node web has 1 of the 2 free ports or port groups that the VIFs need.",
		},
		"no ports":              {"flat", nil, "a", nil, "has 0 of the 1 "},
		"attached already":      {"neutron", []ironic.Port{port("s", "", "a"), free}, "a b", nil, ""},
		"one of another client": {"neutron", []ironic.Port{port("s", "", "x"), free}, "a b", nil, "has 1 of the 2 "},
		"one that leaves":       {"neutron", []ironic.Port{port("s", "", "x"), free}, "a b", []string{"x"}, ""},
		"without a link": {
			"neutron",
			[]ironic.Port{bare, free},
			"a b", nil,
			"without local_link_connection: 52:54:00:00:00:00.",
		},
		"flat needs none":              {"flat", []ironic.Port{bare, free}, "a b", nil, ""},
		"InfiniBand needs none":        {"neutron", []ironic.Port{infiniband}, "a", nil, ""},
		"a group counts once":          {"neutron", []ironic.Port{bonded, bonded}, "a b", nil, "has 1 of the 2 "},
		"a group and a port":           {"neutron", []ironic.Port{bonded, bonded, free}, "a b", nil, ""},
		"a group with a VIF on a port": {"neutron", []ironic.Port{port("s", "g", "x"), bonded, bonded}, "a b", nil, ""},
		"ids are not known yet":        {"flat", []ironic.Port{free}, "? ?", nil, "has 1 of the 2 "},
		"names a port":                 {"neutron", []ironic.Port{free, free}, "a@1 b@0", nil, ""},
		"names no port of the node":    {"neutron", []ironic.Port{free}, "a@7", nil, "Node web has no port 52:54:00:00:00:07."},
		"names a port of a group": {
			"neutron",
			[]ironic.Port{bonded, free},
			"a@0", nil,
			"Port 52:54:00:00:00:00 of node web is in a port group",
		},
		"names a port without a link": {
			"neutron",
			[]ironic.Port{bare, free},
			"a@0", nil,
			"Port 52:54:00:00:00:00 of node web has no local_link_connection",
		},
		"is where it must be": {"neutron", []ironic.Port{port("s", "", "a")}, "a@0", nil, ""},
	} {
		mac := func(n string) string { return "52:54:00:00:00:0" + n }
		ports, vifs := map[string]ironic.Port{}, []deploy.VIF{}
		for i, p := range tt.ports {
			ports[mac(fmt.Sprint(i))] = p
		}
		for _, text := range strings.Fields(tt.wanted) {
			id, n, named := strings.Cut(text, "@")
			vif := deploy.VIF{ID: strings.TrimPrefix(id, "?")}
			if named {
				vif.MAC = mac(n)
			}
			vifs = append(vifs, vif)
		}
		node := &ironic.Node{}
		node.UUID, node.NetworkInterface = "web", tt.network
		got := deploy.Unattachable(node, ports, vifs, tt.leaving)
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
