package selection

import (
	"context"
	"net/url"
	"slices"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

type allocationNames struct {
	known   map[string]string // by UUID; empty: the reservation is not an allocation, or not one that the user may see
	refused bool              // the user may not list allocations
}

// NamesOf returns the names of the allocations that have the nodes, by instance_uuid. A user who may not list allocations gets none. It
// reads the list of allocations only if a node has a reservation that no list before had, so it does not see when an allocation gets
// another name.
func (f *Following) NamesOf(ctx context.Context, client *ironic.Client, listed []ironic.Node) (map[string]string, error) {
	n := &f.names
	isNew := func(node ironic.Node) bool {
		_, known := n.known[node.InstanceUUID]
		return node.InstanceUUID != "" && !known
	}
	if n.refused || !slices.ContainsFunc(listed, isNew) {
		return n.known, nil
	}
	all, err := client.ListAllocations(ctx, url.Values{"fields": {"uuid,name,resource_class,node_uuid"}})
	if api.IsForbidden(err) {
		n.refused = true
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	known := map[string]string{}
	for i := range listed {
		// an undeployment deletes the allocation before the reservation ends
		known[listed[i].InstanceUUID] = n.known[listed[i].InstanceUUID]
	}
	for i := range all {
		known[all[i].UUID] = all[i].Name
	}
	n.known = known
	return known, nil
}
