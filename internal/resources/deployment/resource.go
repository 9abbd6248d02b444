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

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/admission"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/images"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/instance"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/marks"
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

// Metadata names the resource.
func (d *deployment) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "metal_deployment"
}

// IdentitySchema describes its identity.
func (d *deployment) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = framework.IdentitySchema("UUID of the node.")
}

// Create reserves the node, records that, and deploys it.
func (d *deployment) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer d.Finish(ctx, &resp.Diagnostics)
	var plan, config model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	limit, diags := plan.Timeouts.Create(ctx, deploymentTimeout)
	resp.Diagnostics.Append(diags...)
	wanted, diags := config.deployment(ctx)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	m, reserved, err := d.reserve(ctx, &plan, wanted, limit, &resp.Diagnostics)
	if err != nil {
		framework.ReportUndone(&resp.Diagnostics, "deploy node "+plan.NodeID.ValueString(), instance.NameHolder(d.Site, err))
		return
	}
	instance.MadeDeployment(d.Site, m.Node().InstanceUUID)
	instanceID := reserved.instance
	if reserved.by != nil && d.Site.Run.Announce(marks.MarkReservation, m.Node().UUID) {
		framework.WarnTakenOver(&resp.Diagnostics, "the reservation of node "+ironic.NodeLabel(m.Node()), reserved.by)
	}
	onDestroy := plan.OnDestroy
	plan.OnDestroy = types.StringNull() // on_destroy applies to finished deployments only: a failed creation is tainted, and undeployed before the next one
	power := plan.PowerState
	plan.record(m.Node(), instanceID, 0)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: plan.ID})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	plan.PowerState = power // what Ironic has now is from before the deployment

	seen := config.firstSeen(ctx, nil, resp.Private, &resp.Diagnostics)
	options := deploy.DeployOptions{
		Instance: instanceID, Creates: true, Attempts: plan.tries(), Timeout: limit, Connections: instance.Connections{Wanted: plan.vifs()},
	}
	steps := deploy.Decide(d.wish(ctx, &plan, &config, &resp.Diagnostics), deploy.Seen{New: true, Now: time.Now()}).Steps // which depend on nothing that was seen
	doing, attempts, err := d.install(ctx, &plan, &config, m, wanted, options, steps, seen)
	quarantined, err := d.endTry(ctx, &plan, m, reserved.try, err, &resp.Diagnostics)
	if quarantined { // nothing is left but the note on the node
		resp.State.RemoveResource(ctx)
		framework.ReportUndone(&resp.Diagnostics, doing, err)
		return
	}
	if err == nil && deploy.Has(steps, deploy.DoProtect) {
		framework.Show(&resp.Diagnostics, deploy.ProtectNew(ctx, m)...)
	}
	err = m.EndCreation(ctx, marks.MarkReservation, err)
	if marks.IsSuperseded(err) || reserved.isOthers(err, &plan, wanted, m.Node()) { // as a tainted resource, it would be undeployed
		resp.State.RemoveResource(ctx)
		framework.ReportUndone(&resp.Diagnostics, doing, err)
		return
	}
	runs := instance.FootprintOf(m.Node()) // the answer to EndCreation contains it
	if err == nil && !m.Ended(marks.MarkReservation) {
		runs = footprint(ctx, m) // before record, which then has what the next refresh has
	}
	framework.Show(&resp.Diagnostics, m.PowerCut()...)
	plan.record(m.Node(), instanceID, attempts)
	if err == nil || failure.IsInterrupted(err) {
		plan.OnDestroy = onDestroy
	} else {
		plan.Protected = types.BoolValue(m.Node().Protected)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(remember(ctx, resp.Private, sightKey, deploy.SightOf(m.Node()))...)
	resp.Diagnostics.Append(noteCreation(ctx, resp.Private, m.Node(), runs, err)...)
	framework.ReportCreation(&resp.Diagnostics, doing, err)
	d.noteUnchanged(ctx, &plan, resp.Private, &resp.Diagnostics)
}

// install deploys a reserved machine for the first time, and switches it as configured. With an error, it returns what it was doing.
func (d *deployment) install(ctx context.Context, plan, config *model, m *machine.Machine, wanted instance.Deployment, o deploy.DeployOptions, steps []deploy.Step, seen time.Time) (doing string, attempts int, err error) {
	label := ironic.NodeLabel(m.Node())
	for _, step := range steps {
		before := doing
		switch doing = step.Do.Phase().Of(label); step.Do { //nolint:exhaustive // the others are those of an update
		case deploy.DoConnect:
			err = instance.Connect(ctx, m, step.Ports)
		case deploy.DoAdopt:
			doing = "adopt node " + label
			err = deploy.Adopt(ctx, m, wanted, o.Instance, o.Timeout)
		case deploy.DoDeploy:
			attempts, err = d.begin(ctx, plan, wanted, m, o, seen)
		case deploy.DoPowerOn, deploy.DoPowerOff:
			err = config.switchPower(ctx, m, o.Timeout)
		default:
			doing = before
		}
		if err != nil {
			break
		}
	}
	return doing, attempts, m.Unwatched(ctx, err)
}

// begin deploys the image of a new deployment, or boots its live ISO.
func (d *deployment) begin(ctx context.Context, plan *model, wanted instance.Deployment, m *machine.Machine, o deploy.DeployOptions, seen time.Time) (attempts int, err error) {
	iso := plan.liveISO(ctx)
	if iso == nil {
		return deploy.Deploy(ctx, m, wanted, o)
	}
	if err := images.Settle(ctx, d.Site, iso.newImage(), seen); err != nil {
		return 0, err
	}
	if err := m.Refresh(ctx); err != nil { // waiting for the image to settle may have taken minutes
		return 0, err
	}
	return deploy.BootISO(ctx, m, wanted, o)
}

// tries returns max_attempts, or its default.
func (m *model) tries() int { return int(max(m.MaxAttempts.ValueInt64(), 1)) }

// reservation is the reservation of a node for a new deployment.
type reservation struct {
	instance string
	by       *marks.Creation // the mark of the killed run that has made it; nil if there is none
	try      *deploy.Try     // nil unless a failure leads to a quarantine
}

// isOthers reports whether a creation has failed on a machine that runs a deployment of another user, or one that another run has
// finished, or one that is adopted.
func (r reservation) isOthers(failed error, plan *model, wanted instance.Deployment, node *ironic.Node) bool {
	switch {
	case failed == nil, failure.IsInterrupted(failed):
		return false
	case plan.adopted():
		return deploy.IsDeployed(node)
	case r.by != nil && !r.by.Done.IsZero():
		return true
	}
	return failure.Is(failed, machine.KindRefused) && framework.IsSet(plan.AllocationID) && !wanted.DeployedWith(node)
}

// reserve makes sure that the node is reserved by the allocation, or reserves it for this resource.
func (d *deployment) reserve(ctx context.Context, plan *model, wanted instance.Deployment, limit time.Duration, diags *diag.Diagnostics) (m *machine.Machine, r reservation, err error) {
	if m, err = d.Site.Machine(ctx, plan.NodeID.ValueString()); err != nil {
		return nil, r, err
	}
	if r.try, err = d.beginTry(ctx, plan, m, diags); err != nil {
		return nil, r, err
	}
	if plan.PowerState.ValueString() == framework.PowerOff { // a deployment that fails at its end is tainted
		if err := m.CheckOff(); err != nil {
			return nil, r, err
		}
	}
	if plan.adopted() {
		r.instance, r.by, err = deploy.ReserveAdopted(ctx, m, plan.AllocationID.ValueString(), time.Now().Add(limit))
		return m, r, err
	}
	if err := m.CheckDeploy(ctx); err != nil {
		return nil, r, err
	}
	r.instance, r.by, err = instance.ReserveNew(ctx, m, wanted, plan.AllocationID.ValueString(), time.Now().Add(limit))
	return m, r, err
}

// switchPower switches the node as configured.
func (m *model) switchPower(ctx context.Context, on *machine.Machine, limit time.Duration) error {
	switch m.PowerState.ValueString() {
	case framework.PowerOn:
		return on.SetPower(ctx, true, limit)
	case framework.PowerOff:
		return on.SwitchOff(ctx, machine.OffMode(m.PowerOffMode.ValueString()), limit)
	}
	return nil
}

// Read refreshes the state, and removes the resource if the node does not run its deployment any more.
func (d *deployment) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: state.ID})...)
	twice := instance.DeploymentInState(d.Site, state.ID.ValueString())
	node, err := d.Site.Ironic.NodeForRefresh(ctx, state.ID.ValueString())
	if d.RefuseHidden(ctx, req.Private, "node "+state.ID.ValueString(), func(context.Context) error { return err }, &resp.Diagnostics) {
		return
	}
	if api.IsNotFound(err) {
		d.warnGone(&resp.Diagnostics, state.ID.ValueString())
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		framework.Report(&resp.Diagnostics, "read the deployment of node "+state.ID.ValueString(), err)
		return
	}
	if twice {
		framework.Show(&resp.Diagnostics, deploy.Twin(node, "This state has two deployments of the node. Destroying either of them undeploys the machine. Take one of them out of the state with terraform state rm, and then out of the configuration."))
	}
	imported := state.isImported()
	if imported && node.InstanceUUID == "" {
		reportUnreserved(&resp.Diagnostics, node, node.UUID)
		return
	}
	if imported {
		state.importNode(node)
	}
	if reason := instance.LossReason(node, state.InstanceID.ValueString(), state.AllocationID.ValueString()); reason != "" {
		framework.Show(&resp.Diagnostics, deploy.Gone(ironic.NodeLabel(node), reason))
		resp.State.RemoveResource(ctx)
		return
	}
	before := seen(ctx, &state, deploy.Wish{}, req.Private, &resp.Diagnostics)
	switch {
	case !instance.RunsInstance(node), d.ignoresContent(&state):
	case imported:
		state.importImage(ctx, node)
	case before.Runs.Image == "" && d.runs(ctx, &state, node): // the last run has deployed it without storing the footprint
		resp.Diagnostics.Append(remember(ctx, resp.Private, footprintKey, instance.FootprintOf(node))...)
	case before.Runs.OtherImage(node):
		state.showImage(ctx, node)
	}
	d.readVIFs(ctx, &state, node, &resp.Diagnostics)
	state.readBoot(ctx, node, before.Last, imported)
	resp.Diagnostics.Append(noteNames(ctx, req.Private, resp.Private, node, false)...)
	resp.Diagnostics.Append(remember(ctx, resp.Private, sightKey, deploy.SightOf(node))...)
	resp.Diagnostics.Append(remember(ctx, resp.Private, historyKey, before.Past.AfterRead(node, imported))...)
	state.volatile(node)
	if deploy.Begun(ironic.State(node.ProvisionState)) {
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, unbegunKey, nil)...)
	}
	state.readRescue(node, &resp.Diagnostics)
	state.Protected = types.BoolValue(node.Protected)
	framework.Show(&resp.Diagnostics, deploy.WarnHealth(node)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	d.noteUnchanged(ctx, &state, resp.Private, &resp.Diagnostics)
}

// warnGone says that a deployment leaves the state, because Ironic does not have its node.
func (d *deployment) warnGone(diags *diag.Diagnostics, id string) {
	if d.Site.Ironic.Project() == "" {
		framework.Show(diags, deploy.Gone(id, "does not exist in Ironic any more"))
	}
	framework.WarnUnseen(diags, d.Site.Ironic.Project(), "The deployment of node "+id)
}

// noteUnchanged records in private state that the returned state needs no change, if so: as long as the configuration is the one that was
// applied last, the plan is empty.
func (d *deployment) noteUnchanged(ctx context.Context, state *model, private privateState, diags *diag.Diagnostics) {
	if diags.HasError() {
		return
	}
	was := d.wishOf(ctx, state, diags)
	if now := seen(ctx, state, was, private, diags); deploy.Decide(was, now).Empty(now) {
		diags.Append(framework.NothingToDecide(ctx, private)...)
	}
}

// runs reports whether the node's last deployment, finished or in progress, has the content of a state or configuration.
func (d *deployment) runs(ctx context.Context, m *model, node *ironic.Node) bool {
	wanted, diags := m.deployment(ctx)
	return !diags.HasError() && wanted.DeployedWith(node)
}

// Update continues an interrupted deployment, rebuilds the node if its content changes, restarts it, switches the power, and sets or
// ends the protection.
func (d *deployment) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer d.Finish(ctx, &resp.Diagnostics)
	u := d.newUpdate(ctx, req, resp)
	if resp.Diagnostics.HasError() {
		return
	}
	plan, state := u.plan, u.prior
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: state.ID})...)
	u.seen = u.config.firstSeen(ctx, req.Private, resp.Private, &resp.Diagnostics)
	m, err := d.Site.Machine(ctx, state.ID.ValueString())
	if err != nil {
		framework.ReportUndone(&resp.Diagnostics, "deploy node "+state.ID.ValueString(), err)
		return
	}
	node := m.Node
	attempts, failed, err := u.run(ctx, d.Site, m)
	framework.Show(&resp.Diagnostics, m.PowerCut()...)
	restarts := failed == deploy.Restarts && failure.IsInterrupted(err) && m.Switched() // the next apply must not restart it again
	arrived := err == nil || failed > deploy.Restarts || restarts || (failed == deploy.Deploys && u.what.DeployedWith(node()))
	planned := *plan
	switch {
	case err == nil:
	case !arrived: // the node still runs the former content: the state must say so
		planned = *state
		planned.ProvisionState = types.StringUnknown()
	case failed == deploy.Deploys && !failure.IsInterrupted(err): // it has to be repeated, and counts then
		planned.Rebuilds, planned.Restarts = state.Rebuilds, state.Restarts
	}
	if err == nil {
		m.ForgetCreation(ctx, marks.MarkReservation)
	}
	planned.Rescue = u.rescueAfter(node(), failed, err)
	rescueIsDue := err != nil && !planned.Rescue.Equal(plan.Rescue)
	if rescueIsDue {
		planned.ProvisionState, planned.LastError, planned.Restarts = types.StringUnknown(), types.StringUnknown(), state.Restarts
	}
	next := planned
	next.record(node(), state.InstanceID.ValueString(), attempts)
	framework.Keep(&next.ProvisionState, planned.ProvisionState)
	framework.Keep(&next.LastError, planned.LastError)
	framework.Keep(&next.Attempts, planned.Attempts)
	if err != nil && !failure.IsInterrupted(err) {
		next.Protected = types.BoolValue(node().Protected)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &next)...)
	resp.Diagnostics.Append(noteNames(ctx, req.Private, resp.Private, node(), err == nil && u.wipes())...)
	resp.Diagnostics.Append(remember(ctx, resp.Private, sightKey, deploy.SightOf(node()))...)
	if deploy.Begun(ironic.State(node().ProvisionState)) {
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, unbegunKey, nil)...)
	}
	doing := failed.Of(ironic.NodeLabel(node()))
	if err != nil && !arrived {
		framework.ReportUndone(&resp.Diagnostics, doing, err)
		return
	}
	resp.Diagnostics.Append(remember(ctx, resp.Private, historyKey, u.past.AfterApply(d.wishOf(ctx, &next, &resp.Diagnostics), u.what.DeployedWith(node())))...)
	if plan.recordsContent(state) {
		resp.Diagnostics.Append(remember(ctx, resp.Private, footprintKey, u.footprint(ctx, m, err))...)
	}
	if rescueIsDue { // after Ctrl-C, too: the state is not the planned one
		framework.ReportUndone(&resp.Diagnostics, doing, err)
	} else {
		framework.Report(&resp.Diagnostics, doing, err)
	}
	d.noteUnchanged(ctx, &next, resp.Private, &resp.Diagnostics)
}

// Delete undeploys the node and keeps the allocation, or leaves the machine running.
func (d *deployment) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	defer d.Finish(ctx, &resp.Diagnostics)
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if d.RefuseHidden(ctx, req.Private, "node "+state.ID.ValueString(), d.AskNode(state.ID.ValueString()), &resp.Diagnostics) {
		return
	}
	switch deploy.EndOf(deploy.Wish{Adopt: state.adopted(), OnDestroy: plain[deploy.OnDestroy](state.OnDestroy)}).Do { //nolint:exhaustive // it ends something
	case deploy.DoRelease:
		d.endAdoption(ctx, &state, &resp.Diagnostics)
		return
	case deploy.DoForget:
		if !d.Site.Run.HasTakenOver(marks.MarkReservation, state.ID.ValueString()) {
			d.Site.ForgetDeployment(ctx, state.ID.ValueString(), state.InstanceID.ValueString())
		}
		return
	}
	limit, diags := state.Timeouts.Delete(ctx, deploymentTimeout)
	resp.Diagnostics.Append(diags...)
	m, err := d.Site.Machine(ctx, state.ID.ValueString())
	if api.IsNotFound(err) {
		return
	}
	if d.Site.Run.HasTakenOver(marks.MarkReservation, state.ID.ValueString()) {
		framework.WarnKept(&resp.Diagnostics, "the deployment of node "+state.ID.ValueString())
		return
	}
	label, lost := state.ID.ValueString(), ""
	if err == nil {
		defer admission.Deleting(d.Site, state.ID.ValueString())(false)
		if err = instance.Disconnect(ctx, m, state.InstanceID.ValueString(), state.vifs()); err == nil {
			lost, err = deploy.Undeploy(ctx, m, state.InstanceID.ValueString(), state.AllocationID.ValueString(), limit)
			err = errors.Join(err, d.EndTemporary(ctx, m.Node(), limit))
		}
		label = ironic.NodeLabel(m.Node())
	}
	if api.IsInterrupted(err) {
		resp.Diagnostics.AddError("Interrupted: undeploy node "+label, "The run was interrupted. Ironic continues the operation. "+
			"Run the same command again to finish it. As long as the resource is in the configuration, terraform apply deploys the node again afterwards.")
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

// ImportState finds the node by UUID, name, MAC address or "bmc:ADDRESS". The node must be deployed.
func (d *deployment) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	id, ok := framework.ImportID(ctx, req, resp)
	if !ok {
		return
	}
	node, err := d.Site.Ironic.FindNode(ctx, id)
	if err != nil {
		framework.Report(&resp.Diagnostics, "import the deployment of node "+id, err)
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
	diags.AddError("Could not import the deployment of node "+id, fmt.Sprintf("Node %s is in state %q and not reserved: there is no deployment to import. "+
		"If its state is active, reserve it first, with a metal_allocation whose backfill_node is %q.", ironic.NodeLabel(node), node.ProvisionState, id))
}

// MoveState takes over deployments of terraform-provider-ironic and its fork. As after an import, the first apply deploys nothing.
func (d *deployment) MoveState(context.Context) []resource.StateMover {
	return []resource.StateMover{framework.MoveFrom("ironic_deployment")}
}
