package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// enrolled is the node of a new host.
type enrolled struct {
	node  *ironic.Node
	found bool                // this run has not created it: it takes over a discovered node, or one of a killed run
	by    *provision.Creation // the mark of the killed run; nil if there is none
}

// enroll creates the node of a new host, or takes over a discovered one: the node with the configured name, or an unnamed node
// with the configured BMC or port. It also takes over a node that a killed run has begun to create. If another node gets the name
// meanwhile, enroll tries once more to take it over.
func (h *host) enroll(ctx context.Context, config *model, limit time.Duration) (*enrolled, error) {
	enrollment := config.enrollment(ctx)
	candidate := config.candidate(ctx, enrollment)
	deadline := time.Now().Add(limit)
	for try := 1; ; try++ {
		found, err := h.Client.Admit(ctx, candidate, deadline)
		switch {
		case err != nil:
			return nil, err
		case found != nil && found.By != nil:
			return &enrolled{found.Node, true, found.By}, nil
		case found != nil:
			node, err := h.takeOver(ctx, found.Node, config.Name.ValueString())
			if err != nil {
				h.Client.NotMade(node.UUID)
				return nil, err
			}
			return &enrolled{node, true, nil}, nil
		}
		node, err := h.Client.Enroll(ctx, enrollment)
		if err == nil {
			return &enrolled{node, false, nil}, nil
		}
		h.Client.NotMade(candidate.UUID)
		if !isDuplicate(err) || try > 1 {
			return nil, err
		}
		h.Client.Refused()
	}
}

// candidate returns what no other node may have too.
func (m *model) candidate(ctx context.Context, e ironic.Enrollment) provision.Candidate {
	return provision.Candidate{
		UUID: e.UUID, Name: e.Name, Driver: e.Driver, DriverInfo: e.DriverInfo, Addresses: slices.Sorted(maps.Keys(m.ports(ctx))),
		Bonds: m.bonds(ctx), Tenant: m.tenant(),
	}
}

// planTakeOver warns of a node that the apply would take over now. Terraform plans again during the apply, and shows that warning too.
func (h *host) planTakeOver(ctx context.Context, plan, config *model, diags *diag.Diagnostics) {
	if found := h.takesOver(ctx, config); found != nil {
		h.warnTakeOver(diags, plan, found)
	}
}

// takesOver returns the node that a new host would take over now; nil if there is none, or it is not known yet. A node that discovery names
// in this run is known by its name alone.
func (h *host) takesOver(ctx context.Context, config *model) *provision.Found {
	if !h.Known() || !framework.FullyKnown(ctx, config.Name, config.Owner, config.Lessee) {
		return nil
	}
	who := provision.Candidate{Name: config.Name.ValueString(), Tenant: config.tenant()}
	if framework.FullyKnown(ctx, config.BMC, config.Driver, config.DriverInfo, config.PowerControl, config.Ports) {
		who = config.candidate(ctx, config.enrollment(ctx))
	}
	return h.Client.WouldTakeOver(ctx, who)
}

// tenant returns for whom the node is enrolled.
func (m *model) tenant() provision.Tenant {
	return provision.Tenant{Owner: m.Owner.ValueString(), Lessee: m.Lessee.ValueString()}
}

// warnTakeOver warns of a node that a new host takes over, once in a run.
func (h *host) warnTakeOver(diags *diag.Diagnostics, plan *model, found *provision.Found) {
	switch label := ironic.NodeLabel(found.Node); {
	case found.Obstacle != "":
		diags.AddWarning("Node is not taken over", fmt.Sprintf("The apply for host %s fails if Ironic still has node %s then: the provider does not take that node over, because %s. "+
			"If the machine is yours, import it: terraform import <address of the metal_host> %s", plan.describe(), label, found.Obstacle, found.Node.UUID))
	case !h.Client.Announce(provision.MarkCreation, found.Node.UUID):
	case found.By != nil:
		framework.WarnTakenOver(diags, "node "+label, found.By)
	default:
		does := plan.preparation(plan.mayBeInspected(), plan.mayBeCleaned())
		effect := ""
		switch {
		case plan.mayBeCleaned():
			effect = fmt.Sprintf(" Ironic %s it: the machine boots, and loses the data that the site's clean steps erase.", does)
		case does != "":
			effect = fmt.Sprintf(" Ironic %s it: the machine boots.", does)
		}
		diags.AddWarning("Discovered node is taken over", fmt.Sprintf("Ironic has node %s already, which discovery has created. Host %s takes it over instead of creating another.%s", label, plan.describe(), effect))
	}
}

// isDuplicate reports whether Ironic refused because another node has the name, the BMC or the port.
func isDuplicate(err error) bool { return ironic.IsStatus(err, http.StatusConflict, "already exists") }

// takeOver names a discovered node after the host, unless it has a name, and returns the changed node.
func (h *host) takeOver(ctx context.Context, node *ironic.Node, name string) (*ironic.Node, error) {
	if provision.DiscoveryOf(node) != nil || name == "" {
		return node, nil
	}
	err := h.Client.ClaimDiscovered(ctx, node.UUID, provision.Discovery{
		Version: 1, Owner: "metal_host", Name: name, From: "boot-mac", At: time.Now().UTC().Format(time.RFC3339),
	})
	if err != nil {
		return node, err
	}
	claimed, err := h.Client.Node(ctx, node.UUID)
	if err != nil {
		return node, err
	}
	return claimed, nil
}

// unmake deletes the node that this run has created, because another node has the MAC address of one of its ports, and returns
// the reason. gone is false if it could not delete the node.
func (h *host) unmake(ctx context.Context, machine *provision.Machine, refused *portError) (gone bool, why error) {
	h.Client.Refused()
	ctx, node := context.WithoutCancel(ctx), machine.Node()
	if err := machine.CheckCreation(ctx); err != nil {
		return false, err
	}
	if err := h.Client.DeleteNode(ctx, node.UUID); err != nil {
		return false, errors.Join(refused, err)
	}
	h.Client.NotMade(node.UUID)
	if other, err := h.Client.FindNode(ctx, refused.address); err == nil {
		return true, &provision.TakenError{What: provision.SharedAddress, Value: refused.address, Node: other}
	}
	return true, refused
}
