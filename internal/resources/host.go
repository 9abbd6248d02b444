package resources

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

var (
	_ resource.ResourceWithConfigure      = (*host)(nil)
	_ resource.ResourceWithIdentity       = (*host)(nil)
	_ resource.ResourceWithImportState    = (*host)(nil)
	_ resource.ResourceWithModifyPlan     = (*host)(nil)
	_ resource.ResourceWithValidateConfig = (*host)(nil)
)

// Default times for a host; each step of a walk may take that long.
const (
	hostTimeout       = 60 * time.Minute
	hostDeleteTimeout = 30 * time.Minute
)

// inspectedKey is where private state keeps when the inventory in state was found.
const inspectedKey = "inspected_at"

// NewHost returns metal_host.
func NewHost() resource.Resource { return &host{} }

type host struct{ withClient }

// Metadata names the resource.
func (h *host) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "metal_host"
}

// IdentitySchema describes its identity.
func (h *host) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identitySchema("node")
}

// Create enrolls the node and prepares it as far as the configuration says.
func (h *host) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer h.finish(ctx, &resp.Diagnostics)
	var plan, config hostModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	h.hide(ctx, &config)
	limit, diags := plan.Timeouts.Create(ctx, hostTimeout)
	resp.Diagnostics.Append(diags...)
	change := &hostChange{config: &config, plan: &plan, steps: stepsOfNew(&plan, &config), limit: limit}
	node, err := h.adopt(ctx, &config)
	if node != nil {
		change.written, change.sendSecrets = map[string]any{}, true // nothing of the configuration is there yet
	} else if err == nil {
		node, err = h.client.Enroll(ctx, config.enrollment(ctx))
	}
	if err != nil {
		reportUndone(&resp.Diagnostics, "enroll node "+plan.Name.ValueString(), err)
		return
	}
	recorded := plan
	recorded.recordNode(ctx, node)
	plan.ID = recorded.ID // all else that is unknown stays so until the node is prepared
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{ID: plan.ID})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &recorded)...)
	resp.Diagnostics.Append(config.managedBy(ctx).write(ctx, resp.Private)...)

	doing, err := h.bring(ctx, node, change)
	h.record(ctx, &plan, resp.Private, &resp.State, &resp.Diagnostics)
	report(&resp.Diagnostics, doing, err)
}

// adopt takes over a node that was discovered: the one of the configured name, or with one of the configured ports. nil
// means that there is none, and the host has to be enrolled.
func (h *host) adopt(ctx context.Context, config *hostModel) (*ironic.Node, error) {
	name := config.Name.ValueString()
	node, err := h.client.FindDiscovered(ctx, name, slices.Sorted(maps.Keys(config.ports(ctx))))
	if err != nil || node == nil || ironic.DiscoveryOf(node) != nil || name == "" {
		return node, err
	}
	err = h.client.ClaimDiscovered(ctx, node.UUID, ironic.Discovery{
		Version: 1, Owner: "metal_host", Name: name, From: "boot-mac", At: time.Now().UTC().Format(time.RFC3339),
	})
	if err != nil {
		return nil, err
	}
	return h.client.Node(ctx, node.UUID)
}

// Read refreshes the state, and removes it if the node is gone.
func (h *host) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state hostModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{ID: state.ID})...)
	node, err := h.client.NodeForRefresh(ctx, state.ID.ValueString())
	if ironic.IsNotFound(err) {
		resp.State.RemoveResource(ctx)
		return
	}
	var ports map[string]ironic.Port
	if err == nil {
		ports, err = h.client.PortsForRefresh(ctx, node.UUID)
	}
	if err != nil {
		report(&resp.Diagnostics, "read host "+state.label(), err)
		return
	}
	imported := state.Driver.IsNull()
	state.fromNode(ctx, node, ports, imported)
	stamp, _ := req.Private.GetKey(ctx, inspectedKey)
	if imported || string(stamp) != inspectedStamp(node) {
		h.readInventory(ctx, &state, node, resp.Private, &resp.Diagnostics)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// Update brings the node to what the plan says, in place.
func (h *host) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer h.finish(ctx, &resp.Diagnostics)
	var plan, config, state hostModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	h.hide(ctx, &config)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{ID: state.ID})...)
	limit, diags := plan.Timeouts.Update(ctx, hostTimeout)
	resp.Diagnostics.Append(diags...)
	node, err := h.client.Node(ctx, state.ID.ValueString())
	if err != nil {
		reportUndone(&resp.Diagnostics, "update host "+state.label(), err)
		return
	}
	change := &hostChange{
		config: &config, plan: &plan, state: &state, steps: stepsFrom(&state, &plan, &config, wasInspected(ctx, req.Private)),
		limit: limit, before: readManaged(ctx, req.Private), written: state.settings(ctx),
		sendSecrets: plan.secretsVersion(ctx) != state.secretsVersion(ctx),
	}
	doing, err := h.bring(ctx, node, change)
	switch {
	case change.complete:
		resp.Diagnostics.Append(config.managedBy(ctx).write(ctx, resp.Private)...)
	case change.patched: // what was to go may still be there: it stays managed, and in state
		resp.Diagnostics.Append(config.managedBy(ctx).and(change.before).write(ctx, resp.Private)...)
		plan.addParts(ctx, &state)
	default: // nothing of the new configuration has arrived
		plan = state
		plan.ProvisionState = types.StringUnknown()
	}
	h.record(ctx, &plan, resp.Private, &resp.State, &resp.Diagnostics)
	if err != nil && !change.complete {
		reportUndone(&resp.Diagnostics, doing, err)
		return
	}
	report(&resp.Diagnostics, doing, err)
}

// Delete removes the node from Ironic, unless something is deployed on it, or forgets it. It forgets also a discovered node
// that was never changed.
func (h *host) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	defer h.finish(ctx, &resp.Diagnostics)
	var state hostModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() || state.OnDestroy.ValueString() == destroyForget {
		return
	}
	somebodys, err := h.isSomebodys(ctx, state.ID.ValueString(), readManaged(ctx, req.Private))
	if err != nil {
		reportUndone(&resp.Diagnostics, "delete host "+state.label(), err)
		return
	}
	if somebodys {
		resp.Diagnostics.AddWarning("A discovered node is left alone", "Host "+state.label()+" was imported, but nothing was ever applied to it, so that it may "+
			"belong to another discovery by now. Terraform forgets it; the node stays in Ironic.")
		return
	}
	limit, diags := state.Timeouts.Delete(ctx, hostDeleteTimeout)
	resp.Diagnostics.Append(diags...)
	err = h.endTemporary(ctx, state.ID.ValueString(), h.pool.Vacate)
	if err == nil || ironic.IsNotFound(err) {
		err = h.client.Withdraw(ctx, state.ID.ValueString(), limit)
	}
	if err != nil {
		reportUndone(&resp.Diagnostics, "delete host "+state.label(), err)
	}
}

// isSomebodys reports whether a node was discovered, so that whoever has merely imported it must not delete it: an import
// happens even when metal_discovery_import has lost the machine to another one.
func (h *host) isSomebodys(ctx context.Context, id string, ours managed) (bool, error) {
	if ours != nil {
		return false, nil
	}
	node, err := h.client.Node(ctx, id)
	if ironic.IsNotFound(err) {
		return false, nil
	}
	return err == nil && ironic.Discovered(node), err
}

// reportUndone is report for what must not count as done, even when it was the user who stopped it: a deletion, an update of
// which nothing has arrived, a creation of which there is nothing to record.
func reportUndone(diags *diag.Diagnostics, doing string, err error) {
	summary, detail := ironic.Explain(doing, err)
	diags.AddError(summary, detail)
}

// ImportState finds the node by UUID, name, MAC address or "bmc:ADDRESS".
func (h *host) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	id, ok := importID(ctx, req, resp)
	if !ok {
		return
	}
	node, err := h.client.FindNode(ctx, id)
	if err != nil {
		report(&resp.Diagnostics, "import host "+id, err)
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), node.UUID)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{ID: types.StringValue(node.UUID)})...)
}

// importID is what to import: an import id, or the id of an identity.
func importID(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) (string, bool) {
	if req.ID != "" {
		return req.ID, true
	}
	var who identity
	resp.Diagnostics.Append(req.Identity.Get(ctx, &who)...)
	return who.ID.ValueString(), !resp.Diagnostics.HasError()
}

// recordNode puts a node that was just created into a planned state, with everything known.
func (m *hostModel) recordNode(ctx context.Context, node *ironic.Node) {
	wanted := *m
	m.fromNode(ctx, node, nil, false)
	m.keepPlanned(ctx, &wanted)
	if m.Inventory.IsUnknown() || m.Inventory.IsNull() {
		m.Inventory = types.ObjectNull(inventoryType)
	}
}

// record writes what is known of the host after all into state; what was planned stays as planned.
func (h *host) record(ctx context.Context, plan *hostModel, private settablePrivate, state *tfsdk.State, diags *diag.Diagnostics) {
	ctx = context.WithoutCancel(ctx) // also after an interruption the state shall be complete
	node, err := h.client.Node(ctx, plan.ID.ValueString())
	var ports map[string]ironic.Port
	if err == nil {
		ports, err = h.client.Ports(ctx, node.UUID)
	}
	if err != nil {
		diags.AddWarning("State may be out of date", "The host was changed, but could not be read afterwards: "+err.Error())
		wanted := *plan
		plan.fromNode(ctx, &ironic.Node{UUID: plan.ID.ValueString()}, nil, false)
		plan.keepPlanned(ctx, &wanted)
	} else {
		wanted := *plan
		plan.fromNode(ctx, node, ports, false)
		plan.keepPlanned(ctx, &wanted)
		if wanted.Inventory.IsUnknown() || wanted.Inventory.IsNull() {
			h.readInventory(ctx, plan, node, private, diags)
		}
	}
	diags.Append(state.Set(ctx, plan)...)
}

// readInventory reads what the last inspection found.
func (h *host) readInventory(ctx context.Context, m *hostModel, node *ironic.Node, private settablePrivate, diags *diag.Diagnostics) {
	inventory, err := h.client.Inventory(ctx, node.UUID)
	if err != nil {
		diags.AddWarning("Inventory not read", "The inventory of "+m.label()+" could not be read: "+err.Error())
		return
	}
	m.Inventory = inventoryValue(inventory)
	diags.Append(private.SetKey(ctx, inspectedKey, []byte(inspectedStamp(node)))...)
}

// inspectedStamp is when a node was inspected, as JSON for private state.
func inspectedStamp(node *ironic.Node) string {
	return `"` + ironic.InspectedAt(node).Format(time.RFC3339) + `"`
}

// wasInspected reports whether the node had been inspected when its inventory was read last.
func wasInspected(ctx context.Context, p private) bool {
	stamp, _ := p.GetKey(ctx, inspectedKey)
	return len(stamp) > 0 && string(stamp) != inspectedStamp(&ironic.Node{})
}

// hide makes the secrets of a configuration unspeakable in errors.
func (h *host) hide(ctx context.Context, config *hostModel) {
	for _, secret := range config.secrets(ctx) {
		if text, ok := secret.(string); ok {
			h.client.Hide(text)
		}
	}
	if block := config.bmc(ctx); block != nil {
		h.client.Hide(block.Password.ValueString())
	}
	for key, value := range stringMap(config.DriverInfo) {
		if ironic.IsSecretKey(key) {
			h.client.Hide(value)
		}
	}
}
