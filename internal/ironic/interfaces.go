package ironic

import (
	"context"
	"errors"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
)

// ReasonChanging is why a node is in maintenance while its interfaces change.
const ReasonChanging = "terraform-provider-metal: changing interfaces"

// PatchHost is PatchNode for what may change interfaces: while something is deployed on a node, Ironic takes that only in maintenance.
// A node that is not in it is put into it for that moment, and taken out of it again also when the patch fails or the run is
// interrupted. So is one that a killed run has left there. A node beside an error means, as with PatchNode, that the patch has
// arrived: only the way out of maintenance may have failed.
func (c *Client) PatchHost(ctx context.Context, node *Node, patch Patch) (*Node, error) {
	ours := node.Maintenance && node.MaintenanceReason == ReasonChanging
	if !ours && (node.Maintenance || !patch.changesInterface() || interfacesChangeable(State(node.ProvisionState))) {
		return c.PatchNode(ctx, node.UUID, patch)
	}
	if !ours {
		if err := c.SetMaintenance(ctx, node.UUID, true, ReasonChanging); err != nil {
			return nil, err
		}
	}
	patched, err := c.PatchNode(ctx, node.UUID, patch)
	stays := c.SetMaintenance(context.WithoutCancel(ctx), node.UUID, false, "")
	if patched != nil && stays == nil {
		patched.Maintenance, patched.MaintenanceReason = false, ""
	}
	return patched, errors.Join(err, stays)
}

func (p Patch) changesInterface() bool {
	for _, op := range p {
		if strings.HasSuffix(op.Path, "_interface") {
			return true
		}
	}
	return false
}

// interfacesChangeable reports whether Ironic takes a change of interfaces in a state (reference ironic-facts.md 1.4).
func interfacesChangeable(state State) bool {
	switch state { //nolint:exhaustive // the states that Ironic names in its refusal
	case nodes.Enroll, nodes.Inspecting, nodes.InspectWait, nodes.Manageable, nodes.Available:
		return true
	}
	return false
}
