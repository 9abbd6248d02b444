package host

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/enroll"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/hardware"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
)

// noteUnchanged records in private state that the returned state needs no change, if so.
func (h *host) noteUnchanged(ctx context.Context, m *model, p noted, diags *diag.Diagnostics) {
	if !diags.HasError() && h.Pool == nil && m.isSettled(ctx, readManaged(ctx, p), readNotes(ctx, p)) {
		diags.Append(framework.NothingToDecide(ctx, p)...)
	}
}

// sight is what Ironic has of a host.
type sight struct {
	node *ironic.Node
	enroll.Cables
}

// look reads the node of a state with its ports, and with its port groups if they matter, from the lists that refreshes share. If
// the node is gone, ironic.IsNotFound recognises the error.
func (h *host) look(ctx context.Context, m *model) (sight, error) {
	enroll.HostInState(h.Site, m.ID.ValueString())
	return framework.Once(ctx, func() (sight, error) {
		node, err := h.Site.Ironic.NodeForRefresh(ctx, m.ID.ValueString())
		if err != nil {
			return sight{}, err
		}
		return h.lookAt(ctx, m, node)
	})
}

// lookAt is look for a node that is read already.
func (h *host) lookAt(ctx context.Context, m *model, node *ironic.Node) (s sight, err error) {
	s.node = node
	if s.Ports, err = h.Site.Ironic.PortsForRefresh(ctx, node.UUID); err != nil {
		return s, err
	}
	if m.PortGroups.IsNull() && (!m.isImported() || !hasGrouped(s.Ports)) {
		return s, nil
	}
	groups, err := h.Site.Ironic.PortGroupsForRefresh(ctx, node.UUID)
	s.Groups = enroll.GroupsByKey(groups)
	return s, err
}

// hasGrouped reports whether any port belongs to a group.
func hasGrouped(ports map[string]ironic.Port) bool {
	for _, port := range ports {
		if port.PortGroupUUID != "" {
			return true
		}
	}
	return false
}

// UpToDate reports whether Read would change nothing; see framework.Refresher.
func (h *host) UpToDate(ctx context.Context, state tfsdk.State, private framework.Private) bool {
	var m model
	if state.Get(ctx, &m).HasError() {
		return false
	}
	found, err := h.look(ctx, &m)
	known := readNotes(ctx, private)
	before := readManaged(ctx, private)
	if err != nil || m.lostSecret(found.node, before) || known.Pending != hardware.PendingInspection(found.node) || known.Quarantine != quarantineOf(found.node) || !known.Inspected && !machine.InspectedAt(found.node).IsZero() {
		return false
	}
	was := m
	m.fromNode(ctx, found, false)
	return framework.EqualModels(&was, &m) && m.isSettled(ctx, before, known)
}

// isSettled reports whether a plan of the configuration that was applied last is empty. before is what that configuration manages.
func (m *model) isSettled(ctx context.Context, before managed, notes enroll.Notes) bool {
	config, plan := m.applied(before), *m
	plan.settle(ctx, config, m, before)
	decided := enroll.Decide(plan.wish(ctx, config, m), m.seen(ctx, notes))
	plan.foresee(decided.Forecast, m)
	return decided.IsEmpty() && framework.EqualModels(&plan, m)
}

// applied returns the configuration that was applied last, as far as the state and what it manages tell: without values that it has left to
// Ironic.
func (m *model) applied(before managed) *model {
	config := *m
	for _, a := range attributes {
		if a.omit != nil {
			a.omit(&config, before)
		}
	}
	return &config
}
