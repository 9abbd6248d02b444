package resources

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

var (
	_ resource.ResourceWithConfigure      = (*deployment)(nil)
	_ resource.ResourceWithIdentity       = (*deployment)(nil)
	_ resource.ResourceWithImportState    = (*deployment)(nil)
	_ resource.ResourceWithModifyPlan     = (*deployment)(nil)
	_ resource.ResourceWithValidateConfig = (*deployment)(nil)
)

const deploymentTimeout = 60 * time.Minute

// importedKey marks, in private state, a deployment that was imported and not yet applied: what cannot be read back of
// it is then noted from the configuration, and never rebuilt for.
const importedKey = "imported"

// imageKey remembers, in private state, what image_source Ironic had when this provider had deployed the node: Ironic
// follows redirections. While it has the same, the image in state runs.
const imageKey = "image_source"

// markKey remembers, in private state, the node's ironic.Mark at that time: with another one, a run that was killed has deployed it since.
const markKey = "mark"

// bootKey is where private state keeps what of the node decides about a live ISO, as the last refresh has seen it.
const bootKey = "boot"

// NewDeployment returns metal_deployment.
func NewDeployment() resource.Resource { return &deployment{} }

type deployment struct{ withClient }

// Metadata names the resource.
func (d *deployment) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "metal_deployment"
}

// IdentitySchema describes its identity.
func (d *deployment) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identitySchema("node")
}

// Create reserves the node, records that, and deploys it.
func (d *deployment) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer d.finish(ctx, &resp.Diagnostics)
	var plan, config deploymentModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	limit, diags := plan.Timeouts.Create(ctx, deploymentTimeout)
	resp.Diagnostics.Append(diags...)
	what := d.contentOf(ctx, &config, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	doing := "deploy node " + plan.NodeID.ValueString()
	node, instance, err := d.reserve(ctx, &plan)
	if err != nil {
		reportUndone(&resp.Diagnostics, doing, err)
		return
	}
	doing = "deploy node " + ironic.NodeLabel(node)
	onDestroy := plan.OnDestroy
	plan.OnDestroy = types.StringNull() // only what was deployed is detached: a failed creation is tainted, and undeployed before the next
	plan.record(node, instance, 0)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{ID: plan.ID})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)

	options := ironic.DeployOptions{Instance: instance, Attempts: plan.tries(), Limit: limit}
	attempts, deploy := 0, d.client.Deploy
	if iso := plan.liveISO(ctx); iso != nil {
		err, deploy = d.client.Settle(ctx, iso.newImage()), d.client.BootISO
	}
	if err == nil {
		node, attempts, err = deploy(ctx, node.UUID, what, options)
	}
	if err == nil {
		doing = "switch node " + ironic.NodeLabel(node)
		node, err = d.power(ctx, &config, node, limit)
	}
	if node != nil {
		plan.record(node, instance, attempts)
	}
	var refused *ironic.RefusedError
	if errors.As(err, &refused) && isSet(plan.AllocationID) && node != nil && !what.DeployedWith(node) {
		resp.State.RemoveResource(ctx) // it is not ours what runs there: tainted, it would be undeployed before the next try
		reportUndone(&resp.Diagnostics, doing, err)
		return
	}
	if err == nil || ironic.IsInterrupted(err) {
		plan.OnDestroy = onDestroy
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	if err == nil {
		resp.Diagnostics.Append(remember(ctx, resp.Private, node)...)
	}
	report(&resp.Diagnostics, doing, err)
}

// imageNote is what imageKey remembers of a node.
func imageNote(node *ironic.Node) []byte { return quote(ironic.ImageSource(node)) }

// quote is a text for private state, which holds JSON.
func quote(text string) []byte {
	note, _ := json.Marshal(text) // a string always can be
	return note
}

// remember notes in private state what a node was deployed with; nothing of a nil node: what runs is compared with the state then.
func remember(ctx context.Context, private interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}, node *ironic.Node,
) diag.Diagnostics {
	var image, mark []byte
	if node != nil {
		image, mark = imageNote(node), quote(ironic.Mark(node))
	}
	return append(private.SetKey(ctx, imageKey, image), private.SetKey(ctx, markKey, mark)...)
}

// tries is max_attempts, or its default.
func (m *deploymentModel) tries() int { return int(max(m.MaxAttempts.ValueInt64(), 1)) }

// contentOf is the configuration in Ironic's terms; its secrets become unspeakable in errors.
func (d *deployment) contentOf(ctx context.Context, config *deploymentModel, diags *diag.Diagnostics) ironic.Deployment {
	what, problems := config.deployment(ctx)
	diags.Append(problems...)
	if text, ok := what.ConfigDrive["user_data"].(string); ok {
		d.client.Hide(text)
	}
	if what.Image != nil && what.Image.PullSecret != "" {
		d.client.Hide(what.Image.PullSecret)
	}
	if iso := config.liveISO(ctx); iso != nil {
		iso.hideQuery(d.client)
	}
	return what
}

// reserve makes sure that the node is reserved for us: by the allocation, or by a reservation of our own.
func (d *deployment) reserve(ctx context.Context, plan *deploymentModel) (*ironic.Node, string, error) {
	node, err := d.client.Node(ctx, plan.NodeID.ValueString())
	if err == nil {
		err = d.pool.Deployable(ctx, node)
	}
	if isSet(plan.AllocationID) {
		if err == nil {
			err = ironic.CheckReservation(node, plan.AllocationID.ValueString())
		}
		return node, plan.AllocationID.ValueString(), err
	}
	if err != nil {
		return nil, "", err
	}
	instance := ironic.NewUUID()
	node, err = d.client.ReserveNode(ctx, node.UUID, instance)
	return node, instance, err
}

// power switches the node as configured.
func (d *deployment) power(ctx context.Context, config *deploymentModel, node *ironic.Node, limit time.Duration) (*ironic.Node, error) {
	if !isSet(config.PowerState) {
		return node, nil
	}
	now, err := d.client.SetPower(ctx, node.UUID, config.PowerState.ValueString() == powerOn, limit)
	if now == nil {
		now = node
	}
	return now, err
}

// Read refreshes the state, and removes it if the node runs nothing of ours any more.
func (d *deployment) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state deploymentModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{ID: state.ID})...)
	node, err := d.client.NodeForRefresh(ctx, state.ID.ValueString())
	if ironic.IsNotFound(err) {
		resp.Diagnostics.AddWarning("Deployment is gone", fmt.Sprintf("Node %s does not exist in Ironic any more.", state.ID.ValueString()))
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		report(&resp.Diagnostics, "read the deployment of node "+state.ID.ValueString(), err)
		return
	}
	imported := state.InstanceUUID.IsNull()
	if imported {
		state.InstanceUUID, state.AllocationID = orNull(node.InstanceUUID), orNull(node.AllocationUUID)
		state.NodeID, state.Attempts = types.StringValue(node.UUID), types.Int64Value(0)
	}
	if reason := ironic.Lost(node, state.InstanceUUID.ValueString(), state.AllocationID.ValueString()); reason != "" {
		resp.Diagnostics.AddWarning("Deployment is gone", fmt.Sprintf("Node %s %s.", ironic.NodeLabel(node), reason))
		resp.State.RemoveResource(ctx)
		return
	}
	note, diags := req.Private.GetKey(ctx, imageKey)
	resp.Diagnostics.Append(diags...)
	switch {
	case !ironic.RunsInstance(node), state.OnChange.ValueString() == onChangeIgnore:
	case imported:
		state.importImage(ctx, node)
	case note == nil && d.runs(ctx, &state, node): // an interrupted run has deployed it
		resp.Diagnostics.Append(remember(ctx, resp.Private, node)...)
	case !bytes.Equal(note, imageNote(node)):
		state.showImage(ctx, node)
	}
	state.readBoot(ctx, node, imported)
	if !state.LiveISO.IsNull() {
		facts, _ := json.Marshal(ironic.BootFactsOf(node)) // they always can be
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, bootKey, facts)...)
	}
	state.volatile(node)
	warnNode(&resp.Diagnostics, node)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// runs reports whether a node was last deployed, or is being deployed, with what a state or configuration says.
func (d *deployment) runs(ctx context.Context, m *deploymentModel, node *ironic.Node) bool {
	what, diags := m.deployment(ctx)
	return !diags.HasError() && what.DeployedWith(node)
}

// warnNode tells of a deployed node that is not well.
func warnNode(diags *diag.Diagnostics, node *ironic.Node) {
	if node.Fault != "" {
		diags.AddWarning("Node with a fault", fmt.Sprintf("Ironic reports %q for node %s%s", node.Fault, ironic.NodeLabel(node), afterColon(node.MaintenanceReason)))
	} else if node.Maintenance {
		diags.AddWarning("Node in maintenance", fmt.Sprintf("Node %s is in maintenance%s", ironic.NodeLabel(node), afterColon(node.MaintenanceReason)))
	}
}

// afterColon is the end of a sentence that gives a reason; there may be none.
func afterColon(reason string) string {
	if reason == "" {
		return "."
	}
	return ": " + reason
}

// deploymentUpdate is what an update works with.
type deploymentUpdate struct {
	plan, config, state *deploymentModel
	what                ironic.Deployment
	limit               time.Duration
	known               string                                    // ironic.Mark of the node that the state is about; empty: nobody knows
	admit               func(context.Context, *ironic.Node) error // whose hardware it is
}

// own reads the node, and makes sure that it is still ours: since the plan others may have deployed it.
func (u *deploymentUpdate) own(ctx context.Context, client *ironic.Client) (*ironic.Node, error) {
	node, err := client.Node(ctx, u.state.ID.ValueString())
	if err == nil {
		err = ironic.CheckReservation(node, u.state.InstanceUUID.ValueString())
	}
	return node, err
}

// switches reports whether the plan has shown that power is switched, or that the machine is started. The first apply after an import
// touches no machine that runs.
func (u *deploymentUpdate) switches(imported bool) bool {
	return u.plan.ProvisionState.IsUnknown() || (!imported && !u.config.PowerState.Equal(u.state.PowerState))
}

// deploy does what was planned of an image: resumes what was interrupted, or rebuilds.
func (u *deploymentUpdate) deploy(ctx context.Context, client *ironic.Client) (*ironic.Node, int, error) {
	id := u.state.ID.ValueString()
	if !u.plan.ProvisionState.IsUnknown() { // ModifyPlan saw nothing to do
		node, err := u.own(ctx, client)
		return node, int(u.state.Attempts.ValueInt64()), err
	}
	options := ironic.DeployOptions{Instance: u.state.InstanceUUID.ValueString(), Other: ironic.KeepOther, Attempts: u.plan.tries(), Limit: u.limit, Known: u.known, Admit: u.admit}
	if !u.plan.sameContent(u.state) && u.plan.OnChange.ValueString() != onChangeIgnore {
		options.Other = ironic.RebuildOther
	}
	return client.Deploy(ctx, id, u.what, options)
}

// change does what was planned of the content.
func (d *deployment) change(ctx context.Context, u deploymentUpdate) (*ironic.Node, int, error) {
	if u.what.LiveISO != nil {
		return u.boot(ctx, d.client)
	}
	return u.deploy(ctx, d.client)
}

// Update resumes what was interrupted, rebuilds for another content, and switches power.
func (d *deployment) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer d.finish(ctx, &resp.Diagnostics)
	var plan, config, state deploymentModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	limit, diags := plan.Timeouts.Update(ctx, deploymentTimeout)
	resp.Diagnostics.Append(diags...)
	what := d.contentOf(ctx, &config, &resp.Diagnostics)
	imported, diags := req.Private.GetKey(ctx, importedKey)
	resp.Diagnostics.Append(diags...)
	mark, diags := req.Private.GetKey(ctx, markKey)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{ID: state.ID})...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, bootKey, nil)...) // the node is about to change
	u := deploymentUpdate{plan: &plan, config: &config, state: &state, what: what, limit: limit, admit: d.pool.Admit}
	_ = json.Unmarshal(mark, &u.known) // what does not parse was not noted
	doing, instance := "deploy node "+state.ID.ValueString(), state.InstanceUUID.ValueString()
	switches := u.switches(len(imported) > 0)
	node, attempts, err := d.change(ctx, u)
	if node != nil {
		doing = "deploy node " + ironic.NodeLabel(node)
	}
	arrived := err == nil || (node != nil && what.DeployedWith(node))
	if err == nil && switches {
		doing = "switch node " + ironic.NodeLabel(node)
		node, err = d.power(ctx, &config, node, limit)
	}
	if !arrived { // what runs is what ran before: the state must not say otherwise
		plan = state
		plan.ProvisionState = types.StringUnknown()
	}
	wanted := plan
	if node != nil {
		plan.record(node, instance, attempts)
	}
	keep(&plan.ProvisionState, wanted.ProvisionState)
	keep(&plan.LastError, wanted.LastError)
	keep(&plan.Attempts, wanted.Attempts)
	if node != nil {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
	if err != nil && !arrived {
		reportUndone(&resp.Diagnostics, doing, err)
		return
	}
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, importedKey, nil)...)
	if !plan.sameContent(&state) {
		var runs *ironic.Node
		if err == nil && what.DeployedWith(node) {
			runs = node
		}
		resp.Diagnostics.Append(remember(ctx, resp.Private, runs)...)
	}
	report(&resp.Diagnostics, doing, err)
}

// Delete undeploys the node and keeps the allocation, or leaves the machine running.
func (d *deployment) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	defer d.finish(ctx, &resp.Diagnostics)
	var state deploymentModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() || state.OnDestroy.ValueString() == destroyDetach {
		return
	}
	limit, diags := state.Timeouts.Delete(ctx, deploymentTimeout)
	resp.Diagnostics.Append(diags...)
	done, err := d.client.Undeploy(ctx, state.ID.ValueString(), state.InstanceUUID.ValueString(), state.AllocationID.ValueString(), limit)
	label := state.ID.ValueString()
	if done != nil && done.Node != nil {
		label = ironic.NodeLabel(done.Node)
	}
	if ironic.IsInterrupted(err) {
		resp.Diagnostics.AddError("Interrupted: undeploy node "+label, "The run was interrupted. What was started goes on in Ironic. "+
			"Destroy again to finish it; an apply would deploy the node again.")
		return
	}
	if err != nil {
		reportUndone(&resp.Diagnostics, "undeploy node "+label, err)
		return
	}
	if done.Lost != "" {
		resp.Diagnostics.AddWarning("Allocation not kept", fmt.Sprintf("Node %s was undeployed, but allocation %s could not be made again: %s. The next plan shows it as gone.",
			label, state.AllocationID.ValueString(), done.Lost))
	}
}

// ImportState finds the node by UUID, name, MAC address or "bmc:ADDRESS". Something must run on it.
func (d *deployment) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	id, ok := importID(ctx, req, resp)
	if !ok {
		return
	}
	node, err := d.client.FindNode(ctx, id)
	if err != nil {
		report(&resp.Diagnostics, "import the deployment of node "+id, err)
		return
	}
	if node.InstanceUUID == "" {
		resp.Diagnostics.AddError("Could not import the deployment of node "+id, fmt.Sprintf("Node %s is in state %q and reserved by nobody: there is no deployment to import. "+
			"If something runs on it, reserve it first, with a metal_allocation whose node is %q.", ironic.NodeLabel(node), node.ProvisionState, id))
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), node.UUID)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, identity{ID: types.StringValue(node.UUID)})...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, importedKey, []byte("true"))...)
}
