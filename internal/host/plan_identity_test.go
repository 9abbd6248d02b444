package host_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/identity"
)

// What a plan says if a host gets what names a machine. One row: the node that the host has, and another one, both as they are now | what
// names the machine of the host after the apply | where the plan is refused | what it says. A node is its provision state, or "new" for
// none; rN is a name, bN a BMC address, iN the same over IPMI, mN a MAC address, gN that of a port group.
const handovers = `
# A node in use never gets what another node has.
active r2 b2 m2        | available r1 b1 m1 | r1 b1 m1 | bmc.address          | Node r2 is deployed; this change would make it control the machine of node r1, which has the BMC 192.0.2.1. A list with count has shifted: use for_each, or moved blocks.
active r2 b2 m2        | active r1 b1 m1    | r2 b1 m2 | bmc.address          | Node r2 is deployed; this change would make it control the machine of node r1
active r2 b2 m2        | enroll r1 b1 m1    | r2 i1 m2 | bmc.address          | Node r2 is deployed; this change would make it control the machine of node r1
active r2 b2 m2        | enroll r1 b1 m1    | r2 b2 m2 m1 | ports.52:54:00:00:00:01 | Node r2 is deployed; this change would make it control the machine of node r1, which has the MAC address 52:54:00:00:00:01
active r2 m2           | enroll r1 m1       | r1 m1    | ports.52:54:00:00:00:01 | Node r2 is deployed; this change would make it control the machine of node r1
active r2 b2 g2        | enroll r1 b1 g1    | r2 b2 g1 | port_groups.bond0.mac | which has the MAC address of a port group 52:54:01:00:00:01
active r2              | enroll r1          | r1       | name                 | Node r2 is deployed; this change would give it the name of node r1. A list with count
deploying r2 b2        | available r1 b1    | r2 b1    | bmc.address          | Node r2 is being deployed;
wait-call-back r2 b2   | available r1 b1    | r2 b1    | bmc.address          | Node r2 is being deployed;
deploy-failed r2 b2    | available r1 b1    | r2 b1    | bmc.address          | Node r2 is in state deploy failed;
error r2 b2            | available r1 b1    | r2 b1    | bmc.address          | Node r2 is in state error;
adopting r2 b2         | available r1 b1    | r2 b1    | bmc.address          | Node r2 is being adopted;
adopt-failed r2 b2     | available r1 b1    | r2 b1    | bmc.address          | Node r2 is being adopted;
rescue r2 b2           | available r1 b1    | r2 b1    | bmc.address          | Node r2 is in rescue;
service-wait r2 b2     | available r1 b1    | r2 b1    | bmc.address          | Node r2 is in service;
available reserved r2 b2 | available r1 b1  | r2 b1    | bmc.address          | Node r2 is reserved;
available protected r2 b2 | available r1 b1 | r2 b1    | bmc.address          | Node r2 is protected;

# No other node gets what a node in use has.
available r2 b2 m2     | active r1 b1 m1    | r1 b1 m1 | bmc.address          | Node r1 is deployed; this change would make node r2 control its machine, which has the BMC 192.0.2.1. A list with count has shifted: use for_each, or moved blocks.
available r2 b2 m2     | active r1 b1 m1    | r2 b2 m1 | ports.52:54:00:00:00:01 | Node r1 is deployed; this change would make node r2 control its machine, which has the MAC address
enroll r2              | available reserved r1 | r1    | name                 | Node r1 is reserved; this change would give its name to node r2
new                    | active r1 b1 m1    | r1 b1 m1 | bmc.address          | Node r1 is deployed; this plan would create another node for its machine, which has the BMC 192.0.2.1. A list with count has shifted, or a key was renamed: use for_each, or moved blocks.
new                    | active r1 b1 m1    | r9 i1    | bmc.address          | Node r1 is deployed; this plan would create another node for its machine, which has the BMC
new                    | rescue r1 b1 m1    | r9 b9 m1 | ports.52:54:00:00:00:01 | Node r1 is in rescue; this plan would create another node for its machine, which has the MAC address
new                    | available reserved r1 b1 | r1 b9 | name               | Node r1 is reserved; this plan would create another node with its name

# A machine in use is renumbered, renamed and gets a network card in place; all at once make another machine.
active r2 b2 m2        | active r1 b1 m1    | r2 b9 m2 |                      |
active r2 b2 m2        | active r1 b1 m1    | r9 b2 m2 |                      |
active r2 b2 m2        | active r1 b1 m1    | r9 b9 m2 |                      |
active r2 b2 m2        | active r1 b1 m1    | r2 b2 m9 |                      |
active r2 b2 m2        | active r1 b1 m1    | r2 b2    |                      |
active r2 b2 m2        | active r1 b1 m1    | r2 i2 m9 |                      |
active r2 m2           | active r1 b1 m1    | r2 b9 m9 |                      |
active r2 b2 m2        | active r1 b1 m1    | r2 b9 m9 | bmc.address          | Node r2 is deployed; this change would give it the BMC 192.0.2.9 and other MAC addresses at once, as another machine has. A list with count has shifted: use for_each, or moved blocks.
active r2 b2           | active r1 b1 m1    | r9 b9    | bmc.address          | Node r2 is deployed; this change would give it the BMC 192.0.2.9 and another name at once, as another machine has. A list with count has shifted: use for_each, or moved blocks.
active r2 b2 m2        | active r1 b1 m1    | r9 b9    | bmc.address          | would give it the BMC 192.0.2.9 and another name at once
active r2 m2           | active r1 b1 m1    | r9 m9    | ports.52:54:00:00:00:09 | would give it the MAC address 52:54:00:00:00:09 and another name at once
active r2 b2 m2        | active r1 b1 m1    | r9 b2 m9 |                      |
active r2 b2           | active r1 b1 m1    | r9 b9 m9 | bmc.address          | would give it the BMC 192.0.2.9 and other MAC addresses at once
available r2 b2 m2     | active r1 b1 m1    | r2 b9 m9 |                      |
available r2 b2        | active r1 b1 m1    | r9 b9    |                      |

# What two nodes share already is not new, and free machines change hands as the order of the run allows.
active r2 b1 m2        | active r1 b1 m1    | r9 b1 m2 |                      |
available r2 b2 m2     | available r1 b1 m1 | r1 b1 m1 |                      |
manageable r2 b2 m2    | cleaning r1 b1 m1  | r1 b1 m1 |                      |
new                    | available r1 b1 m1 | r1 b1 m1 |                      |
new                    | enroll claimed b1  | r9 b1    |                      |
`

// neighbour reads a node of the table; nil for a new one.
func neighbour(words, id string) *host.Neighbour {
	if words == "new" {
		return nil
	}
	node := &ironic.Node{UUID: id}
	for word := range strings.FieldsSeq(words) {
		switch {
		case word == "reserved":
			node.InstanceUUID = "0b5be5de-0000-4000-8000-000000000001"
		case word == "claimed":
			node.InstanceUUID = "0b5be5de-0000-4000-" + ironic.UUID5("0c1a1a5e-6d65-5461-9f3a-636c61696d73", id)[19:]
		case word == "protected":
			node.Protected = true
		case len(word) > 2:
			node.ProvisionState = strings.NewReplacer("call-back", "call-back", "-", " ").Replace(word)
		}
	}
	is := names(words)
	node.Name = is.Name
	return &host.Neighbour{Identity: is, Node: node, Use: host.UseOf(node)}
}

// names reads what names a machine in a row of the table.
func names(words string) identity.Identity {
	var name string
	var macs, bonds []string
	info := map[string]any{}
	for word := range strings.FieldsSeq(words) {
		if len(word) != 2 {
			continue
		}
		switch n := word[1:]; word[0] {
		case 'r':
			name = word
		case 'b':
			info["redfish_address"], info["redfish_system_id"] = "https://192.0.2."+n, "/redfish/v1/Systems/1"
		case 'i':
			info["ipmi_address"] = "192.0.2." + n
		case 'm':
			macs = append(macs, "52:54:00:00:00:0"+n)
		case 'g':
			bonds = append(bonds, "52:54:01:00:00:0"+n)
		}
	}
	return identity.Of(name, info, macs, bonds)
}

func TestDecide_machinesInUseNeverChangeHands(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(handovers) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		own, other := neighbour(cells[0], "own"), neighbour(cells[1], "other")
		seen := host.Seen{New: own == nil}
		site := &host.Neighbours{Own: own, All: []host.Neighbour{*other}}
		if own != nil {
			site.All = append(site.All, *own)
			seen.State = ironic.State(own.Node.ProvisionState)
		}
		seen.Neighbours = site
		gets := host.Identified{Identity: names(cells[2]), Moves: true, ByBMC: true, Bonds: map[string]string{"bond0": "52:54:01:00:00:01"}}
		wish, _ := tell(t, "", "")
		wish.Identity = gets
		at, says := "", ""
		for _, n := range host.Decide(wish, seen).Notices {
			if n.Summary == "Machine in use would change hands" {
				at, says = strings.Trim(strings.ReplaceAll(fmt.Sprint([]any(n.At)), " ", "."), "[]"), n.Detail
				if n.Severity != decide.Refusal {
					t.Errorf("%s: it is no refusal", line)
				}
			}
		}
		if at != cells[3] || !strings.Contains(says, cells[4]) || cells[4] == "" && says != "" {
			t.Errorf("%s\tsaid at %q: %s", line, at, says)
		}
	}
}

// A plan asks for the nodes of the site only if a host gets what names a machine, and says once what the user's rights hide.
func TestDecide_asksForNeighboursOfChangedHosts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		moves bool
		site  *host.Neighbours
		asks  bool
		says  string
	}{
		{moves: false},
		{moves: true, asks: true},
		{moves: true, site: &host.Neighbours{}},
		{
			moves: true, site: &host.Neighbours{Hidden: "Ironic shows project p only nodes that it owns or leases."},
			says: "Not all machines are compared",
		},
	} {
		wish, seen := tell(t, "", "")
		wish.Identity.Moves, seen.Neighbours = tt.moves, tt.site
		p := host.Decide(wish, seen)
		asks := false
		for _, ask := range p.Asks {
			asks = asks || ask == host.AskNeighbours
		}
		if asks != tt.asks || said(p) != tt.says {
			t.Errorf("%+v: asks %v, says %q", tt, asks, said(p))
		}
	}
}
