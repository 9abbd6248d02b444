package provision

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// UnseenError says that what must be unique in Ironic belongs to an object that this user cannot see. Names, UUIDs and MAC addresses are unique over all
// projects (reference/ironic.md#projects).
type UnseenError struct {
	What string // such as "node"
	Err  error  // Ironic's refusal
}

// Error returns Ironic's refusal.
func (e *UnseenError) Error() string { return e.Err.Error() }

// Unwrap returns Ironic's refusal.
func (e *UnseenError) Unwrap() error { return e.Err }

func (e *UnseenError) advice() string {
	return fmt.Sprintf("This user cannot see that %s: it belongs to another project, or to none. Names and MAC addresses are unique in Ironic over all projects. Choose another one, "+
		"or ask an administrator, who sees all. It cannot be imported.", e.What)
}

// unseen returns an UnseenError if Ironic has refused something because an object exists that this user cannot see; else err.
func (s *Site) unseen(ctx context.Context, err error) error {
	if s.Project() == "" || !ironic.IsStatus(err, http.StatusConflict, "already exists") {
		return err
	}
	for _, kind := range []struct {
		text, what string
		find       func(value string) error
	}{
		{"A node with name ", "node", func(name string) error { _, err := s.Node(ctx, name); return err }},
		{"A port with MAC address ", "port", func(address string) error { _, err := s.FindNode(ctx, address); return err }},
		{"A portgroup with MAC address ", "port group", func(address string) error { return s.findBond(ctx, address) }},
		{"An allocation with name ", "allocation", func(name string) error { _, err := s.Allocation(ctx, name); return err }},
	} {
		if _, rest, is := strings.Cut(err.Error(), kind.text); is {
			value, _, _ := strings.Cut(rest, " already exists")
			if ironic.IsNotFound(kind.find(value)) {
				return &UnseenError{What: kind.what, Err: err}
			}
		}
	}
	return err
}

// findBond looks for the port group with a MAC address. Its error is one that IsNotFound recognises if there is none.
func (s *Site) findBond(ctx context.Context, address string) error {
	groups, err := s.ListPortGroupAddresses(ctx)
	if err == nil && !slices.ContainsFunc(groups, func(g ironic.PortGroup) bool { return strings.EqualFold(g.Address, address) }) {
		err = &ironic.StatusError{Status: http.StatusNotFound}
	}
	return err
}

// CreateNode is Client.CreateNode. The error is an UnseenError if a node that this user cannot see has the name.
func (s *Site) CreateNode(ctx context.Context, e ironic.Enrollment) (*ironic.Node, error) {
	node, err := s.Client.CreateNode(ctx, e)
	return node, s.unseen(ctx, err)
}

// CreateAllocation is Client.CreateAllocation. The error is an UnseenError if an allocation that this user cannot see has the name.
func (s *Site) CreateAllocation(ctx context.Context, spec ironic.AllocationSpec) (*ironic.Allocation, error) {
	a, err := s.Client.CreateAllocation(ctx, spec)
	return a, s.unseen(ctx, err)
}

// CreatePort is Client.CreatePort. The error is an UnseenError if a port that this user cannot see has the MAC address.
func (s *Site) CreatePort(ctx context.Context, node string, spec ironic.PortSpec) (*ironic.Port, error) {
	port, err := s.Client.CreatePort(ctx, node, spec)
	return port, s.unseen(ctx, err)
}

// CreatePortGroup is Client.CreatePortGroup. The error is an UnseenError if a port group that this user cannot see has the MAC address.
func (s *Site) CreatePortGroup(ctx context.Context, node string, spec ironic.PortGroupSpec) (*ironic.PortGroup, error) {
	group, err := s.Client.CreatePortGroup(ctx, node, spec)
	return group, s.unseen(ctx, err)
}
