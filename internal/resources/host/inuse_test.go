package host_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/acctest/site"
)

// A list with count that gains or loses an entry before its end would give deployed nodes the machines of others. The plan is an error for
// each host that shifts, whatever tells the hosts apart; at the end, the list may grow and shrink.
func TestFakeHost_listsWithCountDoNotShiftDeployedMachines(t *testing.T) {
	t.Parallel()
	for apart, says := range map[string]string{
		`bmc = { address = "redfish-virtualmedia://192.0.2.${each}/redfish/v1/Systems/1" }`: "control the machine of node",
		"driver = \"fake-hardware\"\n  ports = { \"52:54:00:00:00:${each}\" = {} }":         "which has the MAC address",
		`driver = "fake-hardware"`: "the name of node",
	} {
		s := site.StartFake(t, nil)
		config := func(machines string) string {
			return s.Provider() + fmt.Sprintf(`
				locals { machines = [%s] }
				resource "metal_host" "h" {
				  count          = length(local.machines)
				  name           = "%s-${local.machines[count.index]}"
				  resource_class = %q
				  target_state   = "available"
				  %s
				}
				resource "metal_deployment" "d" {
				  count   = length(local.machines)
				  node_id = metal_host.h[count.index].id
				  %s
				}`, machines, s.Name("r"), s.Class(), strings.ReplaceAll(apart, "${each}", "${local.machines[count.index]}"),
				acctest.Image("a"))
		}
		w := acctest.NewWorkspace(t, config("71, 72, 73"))
		w.Must(acctest.Apply()...)
		for _, shifted := range []string{"74, 71, 72, 73", "71, 74, 72, 73", "72, 73", "71, 73", "73, 71, 72", "72, 71, 73"} {
			w.Configure(config(shifted))
			acctest.Fails(t, w, []string{"plan"}, "Machine in use would change hands", "is deployed; this change would", says,
				"use for_each, or moved blocks")
		}
		for machines, want := range map[string]string{"71, 72, 73, 74": "2 to add, 0 to change, 0 to destroy", "71, 72": "2 to destroy"} {
			w.Configure(config(machines))
			acctest.Mention(t, w.Must("plan"), want)
		}
		w.Configure(config("71, 72, 73"))
		acctest.NoChanges(t, w)
		acctest.Destroy(t, s, w)
	}
}

// A deployed host gets an address that no node has, in place; no other host gets what it has, also in another workspace.
func TestFakeHost_onlyFreeAddressesRenumberADeployedHost(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	host := func(name, bmc, mac string) string {
		return fmt.Sprintf("resource \"metal_host\" %q {\n  name = %q\n  ports = { %q = {} }\n  target_state = \"available\"\n  "+
			"bmc = { address = \"ipmi://192.0.2.%s\" }\n}\n", name, s.Name(name), mac, bmc)
	}
	deployed := func(bmc, mac string) string {
		return s.Provider() + host("a", bmc, mac) + "resource \"metal_deployment\" \"a\" {\n  node_id = metal_host.a.id\n  " +
			acctest.Image("a") + "\n}\n"
	}
	w := acctest.NewWorkspace(t, deployed("71", s.MAC(1)))
	w.Must(acctest.Apply()...)
	w.Configure(deployed("72", s.MAC(1)))
	acctest.Mention(t, w.Must(acctest.Apply()...), "0 added, 1 changed, 0 destroyed")

	other := acctest.NewWorkspace(t, s.Provider()+host("b", "72", s.MAC(2)))
	acctest.Fails(t, other, []string{"plan"}, "Node "+s.Name("a")+" is deployed; this plan would create another node for its machine, "+
		"which has the BMC 192.0.2.72")
	other.Configure(s.Provider() + host("b", "73", s.MAC(2)))
	other.Must(acctest.Apply()...)
	other.Configure(s.Provider() + host("b", "72", s.MAC(2)))
	acctest.Fails(t, other, []string{"plan"}, "this change would make node "+s.Name("b")+" control its machine")
	w.Configure(deployed("73", s.MAC(1)))
	acctest.Fails(t, w, []string{"plan"}, "Node "+s.Name("a")+" is deployed; this change would make it control the machine of node "+
		s.Name("b"))
	w.Configure(deployed("74", s.MAC(4)))
	acctest.Fails(t, w, []string{"plan"}, "the BMC 192.0.2.74 and other MAC addresses at once")
}

// Two hosts for one node would undo each other.
func TestFakeHost_twoHostsForOneNode(t *testing.T) {
	t.Parallel()
	s := site.StartFake(t, nil)
	host := func(label string) string {
		return fmt.Sprintf("resource \"metal_host\" %q {\n  name = %q\n  driver = \"fake-hardware\"\n  target_state = \"enroll\"\n  "+
			"description = %q\n}\n", label, s.Name("a"), label)
	}
	w := acctest.NewWorkspace(t, s.Provider()+host("one"))
	w.Must(acctest.Apply()...)
	id := site.Text(s.Node(s.Name("a"))["uuid"])
	w.Configure(s.Provider() + host("one") + host("two") + "import {\n  to = metal_host.two\n  id = " + acctest.Quoted(id) + "\n}\n")
	acctest.Fails(t, w, []string{"plan"}, "Two hosts for one node", "terraform state rm")
	w.Configure(s.Provider() + host("one"))
	acctest.NoChanges(t, w)
}
