package failure

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
)

// kindUnseen is the kind of an error which says that what must be unique in Ironic belongs to an object that this user cannot see. Names,
// UUIDs and MAC addresses are unique over all projects (reference/ironic.md#projects).
const kindUnseen Kind = "unseen"

// Unseen returns an error of kindUnseen if Ironic has refused something because an object exists that this user cannot see; else err.
func Unseen(ctx context.Context, s *ironic.Client, err error) error {
	if s.Project() == "" || !api.IsStatus(err, http.StatusConflict, "already exists") {
		return err
	}
	for _, kind := range []struct {
		text, what string
		find       func(value string) error
	}{
		{"A node with name ", "node", func(name string) error { _, err := s.Node(ctx, name); return err }},
		{"A port with MAC address ", "port", func(address string) error { _, err := s.FindNode(ctx, address); return err }},
		{"A portgroup with MAC address ", "port group", func(address string) error { return findBond(ctx, s, address) }},
		{"An allocation with name ", "allocation", func(name string) error { _, err := s.Allocation(ctx, name); return err }},
	} {
		if _, rest, is := strings.Cut(err.Error(), kind.text); is {
			value, _, _ := strings.Cut(rest, " already exists")
			if api.IsNotFound(kind.find(value)) {
				return &Error{
					Kind: kindUnseen, Fact: err.Error(), Err: err,
					Advice: fmt.Sprintf("This user cannot see that %s: it belongs to another project, or to none. Names and MAC "+
						"addresses are unique in Ironic over all projects. Choose another one, or ask an administrator, who sees all. "+
						"It cannot be imported.", kind.what),
				}
			}
		}
	}
	return err
}

// findBond looks for the port group with a MAC address. Its error is one that IsNotFound recognises if there is none.
func findBond(ctx context.Context, s *ironic.Client, address string) error {
	groups, err := s.ListPortGroupAddresses(ctx)
	if err == nil && !slices.ContainsFunc(groups, func(g ironic.PortGroup) bool { return strings.EqualFold(g.Address, address) }) {
		err = &api.StatusError{Status: http.StatusNotFound}
	}
	return err
}

// CreateNode is Client.CreateNode. The error is of kindUnseen if a node that this user cannot see has the name.
func CreateNode(ctx context.Context, s *ironic.Client, id string, settings ironic.Settings) (*ironic.Node, error) {
	node, err := s.CreateNode(ctx, id, settings)
	return node, Unseen(ctx, s, err)
}

// CreateAllocation is Client.CreateAllocation. The error is of kindUnseen if an allocation that this user cannot see has the name.
func CreateAllocation(ctx context.Context, s *ironic.Client, spec ironic.AllocationSpec) (*ironic.Allocation, error) {
	a, err := s.CreateAllocation(ctx, spec)
	return a, Unseen(ctx, s, err)
}

// CreatePort is Client.CreatePort. The error is of kindUnseen if a port that this user cannot see has the MAC address.
func CreatePort(ctx context.Context, s *ironic.Client, node string, spec ironic.PortSpec) (*ironic.Port, error) {
	port, err := s.CreatePort(ctx, node, spec)
	return port, Unseen(ctx, s, err)
}

// CreatePortGroup is Client.CreatePortGroup. The error is of kindUnseen if a port group that this user cannot see has the MAC address.
func CreatePortGroup(ctx context.Context, s *ironic.Client, node string, spec ironic.PortGroupSpec) (*ironic.PortGroup, error) {
	group, err := s.CreatePortGroup(ctx, node, spec)
	return group, Unseen(ctx, s, err)
}
