package deployment

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout/turns"
)

// Create reserves the node, records that, and deploys it.
func (d *deployment) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer d.Finish(ctx, &resp.Diagnostics)
	kept, store := framework.KeepPrivate[private](ctx, resp.Private, &resp.Diagnostics)
	defer store()
	var plan, config model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	limit, diags := plan.Timeouts.Create(ctx, deploymentTimeout)
	resp.Diagnostics.Append(diags...)
	wish := d.wish(ctx, &plan, &config, &resp.Diagnostics)
	wanted := wish.Deployment
	if resp.Diagnostics.HasError() {
		return
	}
	m, reserved, err := d.reserve(ctx, &plan, wanted, limit, &resp.Diagnostics)
	if err != nil {
		label := plan.NodeID.ValueString()
		if m != nil {
			label = ironic.NodeLabel(m.Node())
		}
		framework.ReportUndone(&resp.Diagnostics, "deploy node "+label, deploy.NameHolder(d.Site, err))
		return
	}
	defer reserved.turn.Abandon(ctx)
	d.announce(m, reserved, &resp.Diagnostics)
	instanceID := reserved.instance
	onDestroy := plan.OnDestroy
	d.recordBegun(ctx, &plan, m, instanceID, resp)

	seen := config.firstSeen(ctx, kept)
	options := deploy.DeployOptions{
		Instance: instanceID, Creates: true, Attempts: plan.tries(), Timeout: limit,
		Connections: deploy.VIFConnections{Wanted: plan.vifs()},
	}
	steps := deploy.Decide(wish, deploy.Seen{New: true, Now: time.Now()}).Steps // which depend on nothing that was seen
	doing, attempts, err := d.install(ctx, &plan, &config, m, wanted, options, steps, seen)
	reserved.turn.End(ctx, err)
	nothing, err := d.endTry(ctx, &plan, m, reserved.try, err, &resp.Diagnostics)
	if nothing { // nothing is left, or only the note on a node in quarantine
		resp.State.RemoveResource(ctx)
		framework.ReportUndone(&resp.Diagnostics, doing, err)
		return
	}
	if err == nil && deploy.Has(steps, deploy.DoProtect) {
		framework.Show(&resp.Diagnostics, deploy.ProtectNew(ctx, m)...)
	}
	err = m.EndCreation(ctx, notes.MarkReservation, err)
	if others := reserved.isOthers(err, &plan, wanted, m.Node()); others || notes.IsSuperseded(err) {
		resp.State.RemoveResource(ctx) // as a tainted resource, it would be undeployed
		if others {
			err = deploy.MeetsDeployment(m.Node(), err)
		}
		framework.ReportUndone(&resp.Diagnostics, doing, err)
		return
	}
	plan.OnDestroy, plan.Ready = onDestroy, readyAfter(plan.Ready, deploy.ReadyAfter(steps, deploy.Checks, err != nil))
	runs := d.recordEnd(ctx, &plan, m, attempts, err, resp) // it may read the node
	kept.created(m.Node(), runs, err)
	store()
	framework.ReportCreation(&resp.Diagnostics, doing, err, plan.afterFailure(m.Node(), err)...)
	d.noteUnchanged(ctx, &plan, resp.Private, &resp.Diagnostics)
}

// recordBegun writes the reservation to the state, before the deployment. on_destroy applies to finished deployments only: a failed
// creation is tainted, and undeployed before the next one. The plan keeps what it says of the time after the deployment.
func (d *deployment) recordBegun(ctx context.Context, plan *model, m *machine.Machine, instance string, resp *resource.CreateResponse) {
	power, name, wrong, failed := plan.PowerState, plan.InstanceName, plan.LastError, plan.Failure
	plan.OnDestroy = types.StringNull()
	if plan.Ready.IsUnknown() {
		plan.Ready = types.BoolValue(false)
	}
	plan.record(m.Node(), instance, 0)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: plan.ID})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
	d.NoteSite(ctx, resp.Private, true, &resp.Diagnostics)
	plan.PowerState, plan.InstanceName, plan.LastError, plan.Failure = power, name, wrong, failed
}

// afterFailure says what the next apply does because Terraform taints the resource of a failed creation; nothing if it cleans nothing.
func (m *model) afterFailure(node *ironic.Node, failed error) []string {
	if failed == nil || m.adopted() || failure.Is(failed, failure.KindNotReady) || !deploy.IsDeployed(node) || deploy.StaysUncleaned(node) {
		return nil
	}
	return []string{"Terraform marks this resource as tainted: the next apply first undeploys the machine, which cleans it, and then " +
		"deploys it again. To skip the cleaning, run terraform untaint with the address of this resource before that."}
}

// recordEnd writes to the state what has become of a new deployment, and returns its footprint. err is its failure.
func (d *deployment) recordEnd(
	ctx context.Context, plan *model, m *machine.Machine, attempts int, err error, resp *resource.CreateResponse,
) deploy.Footprint {
	runs := deploy.FootprintOf(m.Node()) // the answer to EndCreation contains it
	if err == nil && !m.Ended(notes.MarkReservation) {
		runs = footprint(ctx, m) // before record, which then has what the next refresh has
	}
	framework.Show(&resp.Diagnostics, m.PowerCut()...)
	plan.record(m.Node(), plan.InstanceID.ValueString(), attempts)
	if err != nil && !failure.IsInterrupted(err) {
		plan.OnDestroy = types.StringNull()
		plan.Protected = framework.QuietFlag(plan.Protected, m.Node().Protected)
		plan.LastError, plan.Failure = framework.OrNull(m.Node().LastError), framework.FailureValue(m.Node())
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, plan)...)
	return runs
}

// install deploys a reserved machine for the first time, and switches it as configured. With an error, it returns what it was doing.
func (d *deployment) install(ctx context.Context, plan, config *model, m *machine.Machine, wanted deploy.Deployment, o deploy.DeployOptions,
	steps []deploy.Step, seen time.Time,
) (doing string, attempts int, err error) {
	label := ironic.NodeLabel(m.Node())
	if deploy.Has(steps, deploy.DoCheck) {
		defer m.KeepSlot()()
	}
	for _, step := range steps {
		before := doing
		switch doing = step.Do.Phase().Of(label); step.Do { //nolint:exhaustive // the others are those of an update
		case deploy.DoConnect:
			err = deploy.ConnectVIFs(ctx, m, step.Ports)
		case deploy.DoName:
			err = deploy.Name(ctx, m, wanted.Name)
		case deploy.DoAdopt:
			doing = "adopt node " + label
			err = deploy.Adopt(ctx, m, wanted, o.Instance, o.Timeout)
		case deploy.DoDeploy:
			attempts, err = d.begin(ctx, wanted, m, o, seen)
		case deploy.DoPowerOn, deploy.DoPowerOff:
			err = config.switchPower(ctx, m, o.Timeout)
		case deploy.DoCheck:
			err = plan.awaitReady(ctx, m, afterCreation)
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
func (d *deployment) begin(ctx context.Context, wanted deploy.Deployment, m *machine.Machine, o deploy.DeployOptions,
	seen time.Time,
) (attempts int, err error) {
	if wanted.LiveISO == nil {
		return deploy.Deploy(ctx, m, wanted, o)
	}
	if err := deploy.Settle(ctx, d.Site, *wanted.LiveISO, seen); err != nil {
		return 0, err
	}
	if err := m.Refresh(ctx); err != nil { // waiting for the image to settle may have taken minutes
		return 0, err
	}
	return deploy.BootISO(ctx, m, wanted, o)
}

type reservation struct {
	instance string
	by       *notes.Creation // the mark of the killed run that has made it; nil if there is none
	try      *deploy.Try     // nil unless a failure leads to a quarantine
	turn     *turns.Turn     // of the rollout
}

// isOthers reports whether a creation has failed on a machine that runs a deployment of another user, or one that another run has
// finished, or one that is adopted.
func (r reservation) isOthers(failed error, plan *model, wanted deploy.Deployment, node *ironic.Node) bool {
	switch {
	case failed == nil, failure.IsInterrupted(failed), failure.Is(failed, failure.KindNotReady): // it runs what is wanted
		return false
	case plan.adopted():
		return deploy.IsDeployed(node)
	case r.by != nil && !r.by.Done.IsZero():
		return true
	}
	return failure.Is(failed, machine.KindRefused) && framework.IsSet(plan.AllocationID) && !wanted.DeployedWith(node)
}

// reserve makes sure that the node is reserved by the allocation, or reserves it for this resource.
func (d *deployment) reserve(ctx context.Context, plan *model, wanted deploy.Deployment, limit time.Duration,
	diags *diag.Diagnostics,
) (m *machine.Machine, r reservation, err error) {
	if m, err = d.Site.Machine(ctx, plan.NodeID.ValueString()); err != nil {
		return nil, r, err
	}
	if _, err = m.Thawed(ctx, limit); err != nil { // a deployment that fails later is tainted
		return nil, r, err
	}
	if r.turn, err = d.turn(ctx, plan, m, wanted, limit); err != nil {
		return nil, r, err
	}
	defer func() {
		if err != nil {
			r.turn.End(ctx, err)
		}
	}()
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
	r.instance, r.by, err = deploy.ReserveNew(ctx, m, wanted, plan.AllocationID.ValueString(), time.Now().Add(limit))
	return m, r, err
}

// announce tells the other deployments of the run of a new one, and the user if it takes over the reservation of a killed run.
func (d *deployment) announce(m *machine.Machine, r reservation, diags *diag.Diagnostics) {
	deploy.MadeDeployment(d.Site, m.Node().InstanceUUID)
	if r.by != nil && d.Site.Run.Announce(notes.MarkReservation, m.Node().UUID) {
		framework.WarnTakenOver(diags, "the reservation of node "+ironic.NodeLabel(m.Node()), r.by)
	}
}

// beginTry finishes the quarantine of a node that a killed run has left. Otherwise, if a failure leads to a quarantine, it checks that
// the deployment may try another node. The returned value is nil if a failure leaves the node as it is.
func (d *deployment) beginTry(ctx context.Context, plan *model, machine *machine.Machine, diags *diag.Diagnostics) (*deploy.Try, error) {
	limit, problems := plan.Timeouts.Delete(ctx, deploymentTimeout)
	diags.Append(problems...)
	if err := deploy.FinishQuarantine(ctx, machine, plan.AllocationID.ValueString(), limit); err != nil {
		return nil, errors.Join(err, d.EndTemporary(ctx, machine.Node(), limit))
	}
	if !plan.quarantines() {
		return nil, nil //nolint:nilnil // no try
	}
	allocation, err := deploy.NamedAllocation(ctx, d.Site, plan.AllocationID.ValueString())
	if err != nil {
		return nil, err
	}
	try, err := deploy.CheckTries(ctx, d.Site, allocation, plan.mostNodes())
	return &try, err
}

// endTry puts the machine of a failed creation into quarantine: see deploy.EndTry. It takes back what Ironic never got: see
// deploy.TakeBack.
func (d *deployment) endTry(ctx context.Context, plan *model, on *machine.Machine, try *deploy.Try, failed error,
	diags *diag.Diagnostics,
) (nothing bool, err error) {
	limit, _ := plan.Timeouts.Delete(ctx, deploymentTimeout) // beginTry has reported what is wrong with it
	if deploy.TakeBack(ctx, on, plan.InstanceID.ValueString(), plan.vifs(), failed, limit) {
		if left := d.EndTemporary(ctx, on.Node(), limit); left != nil {
			failed = errors.Join(failed, left)
		}
		return true, failed
	}
	nothing, notices, err := deploy.EndTry(ctx, on, try, failed, limit, d.EndTemporary)
	framework.Show(diags, notices...)
	return nothing, err
}
