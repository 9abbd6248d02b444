// Package deployment implements the resource metal_deployment: the image or live ISO that runs on a node.
package deployment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/host"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout/turns"
)

var (
	_ resource.ResourceWithConfigure      = (*deployment)(nil)
	_ resource.ResourceWithIdentity       = (*deployment)(nil)
	_ resource.ResourceWithImportState    = (*deployment)(nil)
	_ resource.ResourceWithMoveState      = (*deployment)(nil)
	_ resource.ResourceWithModifyPlan     = (*deployment)(nil)
	_ resource.ResourceWithValidateConfig = (*deployment)(nil)
)

const deploymentTimeout = 60 * time.Minute

// New returns metal_deployment.
func New() resource.Resource { return &deployment{} }

type deployment struct{ framework.WithClient }

func (d *deployment) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "metal_deployment"
}

func (d *deployment) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = framework.IdentitySchema("UUID of the node.")
}

// Delete undeploys the node and keeps the allocation, or leaves the machine running.
func (d *deployment) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	defer d.Finish(ctx, &resp.Diagnostics)
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if d.RefuseHidden(ctx, req.Private, "node "+state.machine(), d.AskNode(state.ID.ValueString()), &resp.Diagnostics) {
		return
	}
	end := deploy.EndOf(deploy.Wish{Adopt: state.adopted(), OnDestroy: framework.TextOf[deploy.OnDestroy](state.OnDestroy)})
	switch end.Do { //nolint:exhaustive // it ends something
	case deploy.DoRelease:
		d.endAdoption(ctx, &state, &resp.Diagnostics)
		return
	case deploy.DoForget:
		if !d.Site.Run.HasTakenOver(notes.MarkReservation, state.ID.ValueString()) {
			d.forget(ctx, &state)
		}
		return
	}
	limit, diags := state.Timeouts.Delete(ctx, deploymentTimeout)
	resp.Diagnostics.Append(diags...)
	m, err := d.Site.Machine(ctx, state.ID.ValueString())
	if api.IsNotFound(err) {
		return
	}
	label, lost := state.ID.ValueString(), ""
	if d.Site.Run.HasTakenOver(notes.MarkReservation, label) {
		if !framework.LoadPrivate[private](ctx, req.Private).Superseded {
			framework.WarnKept(&resp.Diagnostics, "the deployment of node "+label)
			return
		}
		state.OnDestroy = types.StringValue(destroyForget) // of what another resource has in state now
		resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
		framework.ReportKept(&resp.Diagnostics, "the deployment of node "+label, "a deployment on the same node")
		return
	}
	if err == nil {
		label = ironic.NodeLabel(m.Node())
		lost, err = d.undeploy(ctx, &state, m, framework.LoadPrivate[private](ctx, req.Private), limit)
	}
	if api.IsInterrupted(err) && !failure.Is(err, failure.KindQueued) {
		resp.Diagnostics.AddError("Interrupted: undeploy node "+label, "The run was interrupted. Ironic continues the operation. Run the "+
			"same command again to finish it. As long as the resource is in the configuration, terraform apply deploys the node "+
			"again afterwards.")
		return
	}
	if err != nil {
		framework.ReportUndone(&resp.Diagnostics, "undeploy node "+label, err)
		return
	}
	if lost != "" {
		framework.Show(&resp.Diagnostics, deploy.LostAllocation(label, state.AllocationID.ValueString(), lost))
	}
}

// undeploy undeploys the machine, when it is its turn if another deployment replaces this one. lost is the error of making the allocation
// again.
func (d *deployment) undeploy(
	ctx context.Context, state *model, m *machine.Machine, kept private, limit time.Duration,
) (lost string, err error) {
	if _, err := m.Thawed(ctx, limit); err != nil { // before it loses its networks
		return "", err
	}
	turn, next, err := d.turnToReplace(ctx, m, kept.Replaces, limit)
	if err != nil {
		return "", err
	}
	defer turn.Abandon(ctx)
	defer host.Deleting(d.Site, state.ID.ValueString())(false)
	was := machine.Assumed{State: ironic.State(state.ProvisionState.ValueString()), Maintenance: kept.Sight.Maintenance}
	if err = deploy.CheckEnd(was, m.Node()); err != nil {
		return "", err
	}
	if err = deploy.DisconnectVIFs(ctx, m, state.InstanceID.ValueString(), state.vifs()); err == nil {
		lost, err = deploy.Undeploy(ctx, m, state.InstanceID.ValueString(), state.AllocationID.ValueString(), limit)
		err = errors.Join(err, d.EndTemporary(ctx, m.Node(), limit))
	}
	switch {
	case err != nil:
		turn.End(ctx, err)
	case turn != nil:
		turn.Hand(ctx, next)
	default:
		turns.Clear(ctx, m, false)
	}
	return lost, err
}

// ImportState finds the node by UUID, name, MAC address or "bmc:ADDRESS". The node must be deployed.
func (d *deployment) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	id, ok := framework.ImportID(ctx, req, resp)
	if !ok {
		return
	}
	node, err := d.Site.Ironic.FindNode(ctx, id)
	if err != nil {
		framework.ReportImport(&resp.Diagnostics, "import the deployment of node "+id, err)
		return
	}
	if node.InstanceUUID == "" {
		reportUnreserved(&resp.Diagnostics, node, id)
		return
	}
	framework.RecordImport(ctx, resp, node.UUID)
}

// reportUnreserved says that a node, which the user calls id, has no deployment to import.
func reportUnreserved(diags *diag.Diagnostics, node *ironic.Node, id string) {
	diags.AddError("Could not import the deployment of node "+id,
		fmt.Sprintf("Node %s is in state %q and not reserved: there is no deployment to import. If its state is active, reserve it "+
			"first, with a metal_allocation whose backfill_node is %q.", ironic.NodeLabel(node), node.ProvisionState, id))
}

// MoveState takes over deployments of terraform-provider-ironic and its fork. As after an import, the first apply deploys nothing.
func (d *deployment) MoveState(context.Context) []resource.StateMover {
	return []resource.StateMover{framework.MoveFrom("ironic_deployment")}
}

// endAdoption is Delete for such a state.
func (d *deployment) endAdoption(ctx context.Context, state *model, diags *diag.Diagnostics) {
	limit, problems := state.Timeouts.Delete(ctx, deploymentTimeout)
	diags.Append(problems...)
	id, reserved := state.ID.ValueString(), state.InstanceID.ValueString()
	machine, err := d.Site.Machine(ctx, id)
	if api.IsNotFound(err) || d.Site.Run.HasTakenOver(notes.MarkReservation, id) {
		return
	}
	runs := false
	if err == nil {
		err = deploy.DisconnectVIFs(ctx, machine, reserved, state.vifs())
	}
	if err == nil {
		runs, err = deploy.EndAdoption(ctx, machine, reserved, limit)
	}
	if err != nil {
		framework.ReportUndone(diags, "end the adoption of node "+state.machine(), err)
		return
	}
	if runs {
		d.forget(ctx, state)
	}
}

// forget leaves the machine running, and ends what it has to do with the others.
func (d *deployment) forget(ctx context.Context, state *model) {
	d.Site.ForgetDeployment(ctx, state.ID.ValueString(), state.InstanceID.ValueString())
	if framework.IsSet(state.Ready) && !state.Ready.ValueBool() { // no later apply checks the machine
		if m, err := d.Site.Machine(ctx, state.ID.ValueString()); err == nil {
			deploy.ForgetCheck(ctx, m)
		}
	}
	if d.Turns(ctx, state.Rollout).Group != "" {
		turns.Forget(ctx, d.Site, state.ID.ValueString(), false)
	}
}
