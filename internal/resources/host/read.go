package host

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	hosts "github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/lost"
)

var (
	_ list.ListResourceWithConfigure = (*host)(nil)
	_ resource.ResourceWithMoveState = (*host)(nil)
)

// Read refreshes the state, and removes it if the node is gone.
func (h *host) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	kept, store := framework.KeepPrivate[private](ctx, resp.Private, &resp.Diagnostics)
	defer store()
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: state.ID})...)
	found, err := h.look(ctx, &state, kept.Superseded)
	if h.RefuseHidden(ctx, req.Private, "node "+state.label(), func(context.Context) error { return err }, &resp.Diagnostics) {
		return
	}
	if !state.isImported() && h.KeepsLost(ctx, resp.Private, state.lostRecord(), lost.Sight{Node: found.node, Err: err, Seen: kept.Updated},
		&resp.Diagnostics) {
		return
	}
	if api.IsNotFound(err) {
		framework.WarnUnseen(&resp.Diagnostics, h.Site.Ironic.Project(), "Host "+state.label())
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		framework.Report(&resp.Diagnostics, "read host "+state.label(), err)
		return
	}
	node, imported, was, skipped := found.node, state.isImported(), state, state.SkipBlockDevices
	state.refresh(ctx, found)
	framework.Show(&resp.Diagnostics, hosts.WarnDropped(state.label(), hintsOf(ctx, skipped).V, hintsOf(ctx, state.SkipBlockDevices).V)...)
	if state.lostSecret(node, kept.Managed) {
		state.DriverInfoWOVersion = types.StringNull()
	}
	if imported {
		h.seeNew(ctx, node, kept, &resp.Diagnostics)
	}
	kept.see(node)
	if imported || !framework.EqualModels(&was, &state) || lost.IsOther(kept.Updated, node, "") {
		kept.Updated = lost.Seen(kept.Updated, node)
	}
	kept.compare(state.drift(h.HardwareDrift).V, func(before *hosts.HardwareComparison) (*hosts.HardwareComparison, []decide.Notice) {
		return hosts.CompareHardware(ctx, h.Site, node, state.onMachine(ctx, kept.notes()), before)
	}, &resp.Diagnostics)
	h.prove(ctx, &state, node, kept, &resp.Diagnostics)
	kept.Fitness = hosts.SeeFitness(ctx, h.Site, node, state.qualification(ctx), kept.Fitness)
	h.hear(ctx, &state, node, time.Time{}, kept, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	store()
	h.noteUnchanged(ctx, &state, resp.Private, &resp.Diagnostics)
}

// sight is what Ironic has of a host.
type sight struct {
	node *ironic.Node
	hosts.Cables
}

// look reads the node of a state with its ports, and with its port groups if they matter, from the lists that refreshes share. If
// the node is gone, api.IsNotFound recognises the error. superseded: see private.
func (h *host) look(ctx context.Context, m *model, superseded bool) (sight, error) {
	return framework.Once(ctx, func() (sight, error) {
		if !superseded { // a deposed object that a later apply forgets has the node of its successor
			hosts.InState(h.Site, m.ID.ValueString())
		}
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
	if s.Ports, err = h.Site.Ironic.PortsForRefresh(ctx, node.UUID, slices.Collect(maps.Keys(m.Ports.Elements()))...); err != nil {
		return s, err
	}
	if m.PortGroups.IsNull() && (!m.isImported() || !hasGrouped(s.Ports)) {
		return s, nil
	}
	groups, err := h.Site.Ironic.PortGroupsForRefresh(ctx, node.UUID)
	s.Groups = hosts.GroupsByKey(groups)
	return s, err
}

func hasGrouped(ports map[string]ironic.Port) bool {
	for _, port := range ports {
		if port.PortGroupUUID != "" {
			return true
		}
	}
	return false
}

// UpToDate reports whether Read would change nothing; see framework.Refresher.
func (h *host) UpToDate(ctx context.Context, state tfsdk.State, noted framework.Private) bool {
	var m model
	if state.Get(ctx, &m).HasError() {
		return false
	}
	kept := framework.LoadPrivate[private](ctx, noted)
	found, err := h.look(ctx, &m, kept.Superseded)
	if err != nil || hosts.HasTwin(h.Site, m.ID.ValueString()) || m.lostSecret(found.node, kept.Managed) || !kept.hasSeen(found.node) ||
		lost.IsOther(kept.Updated, found.node, "") {
		return false
	}
	was := m
	m.fromNode(ctx, found, false)
	return framework.EqualModels(&was, &m) && kept.Proof.Holds(found.node, m.expectedHardware(ctx).V) &&
		h.isFitAs(ctx, &m, found.node, kept.Fitness) &&
		h.isCompared(ctx, &m, found.node, kept.notes()) && kept.hasHeard(ctx, &m, found.node) &&
		h.isSettled(ctx, &m, kept)
}

// noteUnchanged records in private state that the returned state needs no change, if so.
func (h *host) noteUnchanged(ctx context.Context, m *model, noted framework.PrivateState, diags *diag.Diagnostics) {
	kept := framework.LoadPrivate[private](ctx, noted)
	grouped := h.Turns(ctx, m.rollout()).Group != "" // each plan compares the members of a group
	settled := !diags.HasError() && h.Pool == nil && !grouped && !hosts.HasTwin(h.Site, m.ID.ValueString()) && h.isSettled(ctx, m, kept)
	if settled && len(hosts.DecidePorts(m.cablingWish(ctx, m), m.cablingSeen(ctx, kept))) == 0 {
		diags.Append(framework.NothingToDecide(ctx, noted)...)
	}
}

// isSettled reports whether a plan of the configuration that was applied last is empty.
func (h *host) isSettled(ctx context.Context, m *model, kept private) bool {
	config, plan := m.applied(kept.Managed), *m
	plan.settle(ctx, config, m, kept.Managed)
	decided := hosts.Decide(h.wishOf(ctx, &plan, config, m), h.seenOf(ctx, m, kept.notes()))
	plan.foresee(decided.Forecast, m)
	return kept.Restored == nil && decided.IsEmpty() && framework.EqualModels(&plan, m) && !m.hasStrays(ctx)
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

// ImportState finds the node by UUID, name, MAC address or "bmc:ADDRESS".
func (h *host) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	id, ok := framework.ImportID(ctx, req, resp)
	if !ok {
		return
	}
	node, err := h.Site.Ironic.FindNode(ctx, id)
	if err != nil {
		framework.ReportImport(&resp.Diagnostics, "import host "+id, err)
		return
	}
	framework.RecordImport(ctx, resp, node.UUID)
}

// MoveState takes over nodes of terraform-provider-ironic and its fork.
func (h *host) MoveState(context.Context) []resource.StateMover {
	return []resource.StateMover{framework.MoveFrom("ironic_node_v1", "ironic_node")}
}

// NewList returns the list resource metal_host.
func NewList() list.ListResource { return &host{} }

type filter struct {
	framework.NodeFilter
	Associated types.Bool `tfsdk:"associated"`
}

func (h *host) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists the nodes of Ironic that match all given filters, or all nodes.",
		Attributes: framework.NodeFilterAttributes("hosts", map[string]schema.Attribute{
			"associated": schema.BoolAttribute{Optional: true, MarkdownDescription: framework.OnlyIf("hosts", framework.IfReserved)},
		}),
	}
}

// List streams the nodes. Without their resources, it asks Ironic for their names only.
func (h *host) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var f filter
	if diags := req.Config.Get(ctx, &f); diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	asked, names, limit := f.Filter(), framework.NamePattern(f.NameRegex), req.Limit
	asked.Associated = f.Associated.ValueBoolPointer()
	if !f.NameRegex.IsNull() {
		limit = 0 // Ironic cannot count the hosts with such names
	}
	var fields []string
	if !req.IncludeResource {
		fields = []string{"uuid", "name"}
	}
	stream.Results = framework.Listing[ironic.Node]{
		Doing: "list hosts", Objects: h.Site.Ironic.StreamNodes(ctx, asked, limit, fields...),
		Chosen: func(n *ironic.Node) bool { return names.MatchString(n.Name) },
		Label:  func(n *ironic.Node) (id, name string) { return n.UUID, n.Name },
		Fill:   h.fill,
	}.Results(ctx, req)
}

// fill sets a listed host. Its ports come from the lists that refreshes share.
func (h *host) fill(ctx context.Context, node *ironic.Node, to *tfsdk.Resource) diag.Diagnostics {
	var m model
	diags := framework.Listed(ctx, to, node.UUID, &m)
	if diags.HasError() {
		return diags
	}
	found, err := h.lookAt(ctx, &m, node)
	if err != nil {
		framework.Report(&diags, "read host "+ironic.NodeLabel(node), err)
		return diags
	}
	m.refresh(ctx, found)
	diags.Append(to.Set(ctx, &m)...)
	return diags
}
