package seed

import (
	"fmt"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic/api"
)

// settlePorts checks the ports, and leaves out those of other nodes.
func (s *Seed) settlePorts(nodes map[string]map[string]any) error {
	macs, others := map[string]bool{}, 0
	var kept []map[string]any
	for _, port := range s.Ports {
		mac, err := api.ReadMAC(port["address"])
		switch {
		case err != nil:
			return fmt.Errorf("port %s: its address is not a MAC address", label(port))
		case api.Text(port["node_uuid"]) == "":
			return fmt.Errorf("port %s does not name its node: list ports with baremetal port list --long -f json", mac)
		case macs[mac]:
			return fmt.Errorf("port %s: its address is there twice", mac)
		case nodes[api.Text(port["node_uuid"])] == nil:
			others++
			continue
		}
		if api.Text(port["uuid"]) == "" {
			port["uuid"] = api.NewUUID()
		}
		port["address"], macs[mac] = mac, true
		delete(port, "portgroup_uuid") // port groups are not seeded
		kept = append(kept, port)
	}
	if others > 0 {
		s.note("left out: ports of nodes that are not in the seed: %d", others)
	}
	s.Ports = kept
	return nil
}

// settleAllocations keeps the allocations that reserve a node of the seed, and adds one without a name for each node whose allocation is
// not there.
func (s *Seed) settleAllocations(nodes map[string]map[string]any) error {
	found, others := map[string]bool{}, 0
	var kept []map[string]any
	for _, allocation := range s.Allocations {
		uuid := api.Text(allocation["uuid"])
		node := nodes[api.Text(allocation["node_uuid"])]
		switch {
		case !api.IsUUID(uuid):
			return fmt.Errorf("allocation %s: its uuid %q is not a UUID", label(allocation), uuid)
		case found[uuid]:
			return fmt.Errorf("allocation %s: its UUID is there twice", label(allocation))
		case node == nil || api.Text(node["instance_uuid"]) != uuid:
			others++
			continue
		}
		node["allocation_uuid"], found[uuid] = uuid, true
		kept = append(kept, allocation)
	}
	if others > 0 {
		s.note("left out: allocations that reserve no node of the seed: %d", others)
	}
	for _, node := range s.Nodes {
		if uuid := api.Text(node["allocation_uuid"]); uuid != "" && !found[uuid] {
			found[uuid], node["instance_uuid"] = true, uuid
			kept = append(kept, map[string]any{"uuid": uuid, "node_uuid": node["uuid"], "resource_class": node["resource_class"]})
		}
	}
	s.Allocations = kept
	return nil
}
