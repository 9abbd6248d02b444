package operate

import (
	"context"
	"net/http"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// fewReads is up to how many reservations are read one by one, instead of in lists of all nodes and allocations.
const fewReads = 8

// Reader reads nodes and allocations, by name or UUID. One that does not exist is an error that api.IsNotFound recognises.
type Reader interface {
	Node(ctx context.Context, ref string) (*ironic.Node, error)
	Allocation(ctx context.Context, ref string) (*ironic.Allocation, error)
}

// ReaderOf returns a Reader for a number of reservations, which has read the lists of a site if there are many.
func ReaderOf(ctx context.Context, client *ironic.Client, count int) (Reader, error) {
	if count <= fewReads {
		return client, nil
	}
	allocations, err := client.ListAllocations(ctx, nil)
	if err != nil {
		return nil, err
	}
	nodes, err := client.ListNodes(ctx, ironic.NodeFilter{})
	if err != nil {
		return nil, err
	}
	all := &lists{map[string]*ironic.Node{}, map[string]*ironic.Allocation{}}
	for i := range nodes {
		all.nodes[nodes[i].Name], all.nodes[nodes[i].UUID] = &nodes[i], &nodes[i]
	}
	for i := range allocations {
		all.allocations[allocations[i].Name], all.allocations[allocations[i].UUID] = &allocations[i], &allocations[i]
	}
	return all, nil
}

// lists are the nodes and the allocations of a site by their names and UUIDs.
type lists struct {
	nodes       map[string]*ironic.Node
	allocations map[string]*ironic.Allocation
}

// Node returns a node.
func (l *lists) Node(_ context.Context, ref string) (*ironic.Node, error) { return known(l.nodes, ref) }

// Allocation returns an allocation.
func (l *lists) Allocation(_ context.Context, ref string) (*ironic.Allocation, error) {
	return known(l.allocations, ref)
}

func known[T any](all map[string]*T, ref string) (*T, error) {
	if one := all[ref]; one != nil && ref != "" {
		return one, nil
	}
	return nil, &api.StatusError{Status: http.StatusNotFound, Message: "there is no " + ref, Ours: true}
}
