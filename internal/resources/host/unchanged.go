package host

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// noteUnchanged records in private state that the returned state needs no change, if so.
func (h *host) noteUnchanged(ctx context.Context, m *model, p noted, diags *diag.Diagnostics) {
	if !diags.HasError() && h.Pool == nil && m.nothingToDecide(ctx, readManaged(ctx, p), readNotes(ctx, p)) {
		diags.Append(framework.NothingToDecide(ctx, p)...)
	}
}

// sight is what Ironic has of a host.
type sight struct {
	node   *ironic.Node
	ports  map[string]ironic.Port      // by MAC address
	groups map[string]ironic.PortGroup // by key; empty if they were not read
}

// groupOf returns the key of the group that a port belongs to; "" if it belongs to none, or the groups were not read.
func (s sight) groupOf(port ironic.Port) string {
	for key, group := range s.groups {
		if group.UUID == port.PortGroupUUID {
			return key
		}
	}
	return ""
}

// look reads the node of a state with its ports, and with its port groups if they matter, from the lists that refreshes share. If
// the node is gone, ironic.IsNotFound recognises the error.
func (h *host) look(ctx context.Context, m *model) (sight, error) {
	h.Client.HostInState(m.ID.ValueString())
	return framework.Once(ctx, func() (sight, error) {
		node, err := h.Client.NodeForRefresh(ctx, m.ID.ValueString())
		if err != nil {
			return sight{}, err
		}
		return h.lookAt(ctx, m, node)
	})
}

// lookAt is look for a node that is read already.
func (h *host) lookAt(ctx context.Context, m *model, node *ironic.Node) (s sight, err error) {
	s.node = node
	if s.ports, err = h.Client.PortsForRefresh(ctx, node.UUID); err != nil {
		return s, err
	}
	if m.PortGroups.IsNull() && (!m.isImported() || !hasGrouped(s.ports)) {
		return s, nil
	}
	groups, err := h.Client.PortGroupsForRefresh(ctx, node.UUID)
	s.groups = groupsByKey(groups)
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
	if err != nil || m.lostSecret(found.node, before) || known.pending != pendingInspection(found.node) || known.quarantine != quarantineOf(found.node) || !known.inspected && !provision.InspectedAt(found.node).IsZero() {
		return false
	}
	was := m
	m.fromNode(ctx, found, false)
	return framework.EqualModels(&was, &m) && m.nothingToDecide(ctx, before, known)
}

// nothingToDecide reports whether ModifyPlan would neither change this state nor warn, if the configuration is the one that was
// applied last. A wrong false only makes the plan slower. before is what that configuration manages.
func (m *model) nothingToDecide(ctx context.Context, before managed, known notes) bool {
	known = known.of(ctx, m)
	goal := m.goals()[0]
	reached := goal == targetEnroll || isOccupied(m.node()) || provision.Settled(goal, ironic.State(m.ProvisionState.ValueString()))
	if known.quarantine != "" || m.isHeldByRetirement() && !before.has("/retired") || !m.PowerManaged.ValueBool() || !reached || stepsFrom(m, m, m, known) != (steps{}) || !m.PendingChanges.Equal(partsValue(known.open)) {
		return false
	}
	if m.DisablePowerOff.ValueBool() && slices.Contains(known.power, framework.PowerOff) {
		return false
	}
	return m.MaintenanceReason.ValueString() != provision.ReasonChanging && m.keepsAll(before) && m.followsBMC(ctx)
}

// keepsAll reports whether settle removes nothing. It removes an attribute along with another one that is managed, such as
// maintenance_reason along with maintenance.
func (m *model) keepsAll(before managed) bool {
	for path, reason := range map[string]types.String{
		"/maintenance": m.MaintenanceReason, "/retired": m.RetiredReason,
	} {
		if before.has(path) && !reason.IsNull() {
			return false
		}
	}
	hintsOnly := before.has("/properties/" + rootDeviceKey)
	for _, key := range before.below("/properties") {
		hintsOnly = hintsOnly && key == rootDeviceKey
	}
	return m.Properties.IsNull() || !hintsOnly
}

// followsBMC reports whether the driver is the one that follows from the BMC address.
func (m *model) followsBMC(ctx context.Context) bool {
	wanted := settings{}
	m.encodeBMC(ctx, wanted)
	driver, asked := wanted["/driver"]
	return !asked || driver == m.Driver.ValueString()
}
