package deployment

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/decide"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/notes"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/rollout/turns"
)

// update executes the steps of a plan.
type update struct {
	plan, config *model
	prior        *model // the state
	steps        []deploy.Step
	what         deploy.Deployment
	limit        time.Duration
	kept         *private
	seen         time.Time // when the live ISO was first wanted
}

// newUpdate collects the values of an update.
func (d *deployment) newUpdate(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) *update {
	diags := &resp.Diagnostics
	u := &update{plan: &model{}, config: &model{}, prior: &model{}}
	diags.Append(req.Plan.Get(ctx, u.plan)...)
	diags.Append(req.Config.Get(ctx, u.config)...)
	diags.Append(req.State.Get(ctx, u.prior)...)
	limit, problems := u.plan.Timeouts.Update(ctx, deploymentTimeout)
	diags.Append(problems...)
	u.limit = limit
	u.what, problems = u.wanted(ctx).deployment(ctx)
	diags.Append(problems...)
	u.steps = framework.PlannedSteps[deploy.Step](ctx, req.Private, diags)
	return u
}

// wanted returns the configuration with the planned content, which may be that of the state with on_change = "ignore". The write-only
// values are in the configuration only.
func (u *update) wanted(ctx context.Context) *model {
	m := *u.config
	m.takeContent(u.plan, deploy.ContentNames())
	if image, configured := m.image(ctx), u.config.image(ctx); image != nil && configured != nil && framework.IsSet(image.PullSecretWOVersion) {
		image.PullSecretWO = configured.PullSecretWO
		m.Image, _ = types.ObjectValueFrom(ctx, m.Image.AttributeTypes(ctx), image)
	}
	if drive, configured := m.configDrive(ctx), u.config.configDrive(ctx); drive != nil && configured != nil && framework.IsSet(drive.UserDataWOVersion) {
		drive.UserDataWO = configured.UserDataWO
		m.ConfigDrive, _ = types.ObjectValueFrom(ctx, m.ConfigDrive.AttributeTypes(ctx), drive)
	}
	return &m
}

// run takes all steps. It returns the phase that failed, together with its error.
func (u *update) run(ctx context.Context, site *machine.Site, machine *machine.Machine) (attempts int, failed deploy.Phase, err error) {
	attempts = int(u.prior.Attempts.ValueInt64())
	if deploy.Has(u.steps, deploy.DoCheck) {
		defer machine.KeepSlot()()
	}
	for phase := deploy.Unprotects; phase <= deploy.EntersRescue; phase++ {
		step, planned := deploy.In(u.steps, phase)
		switch {
		case step.Operates() && step.Do != deploy.DoAdopt:
			attempts, err = u.deploy(ctx, site, machine, step)
		case planned:
			err = u.take(ctx, machine, step)
		case phase == deploy.Deploys:
			err = u.record(ctx, machine)
		}
		if err != nil {
			return attempts, phase, machine.Unwatched(ctx, err)
		}
	}
	return attempts, deploy.Deploys, nil
}

// take takes a step that deploys nothing.
func (u *update) take(ctx context.Context, machine *machine.Machine, step deploy.Step) error {
	instanceID := u.prior.InstanceID.ValueString()
	switch step.Do {
	case deploy.DoUnprotect:
		return deploy.Protect(ctx, machine, false)
	case deploy.DoUnrescue:
		return deploy.LeaveRescue(ctx, machine, instanceID, u.limit)
	case deploy.DoConnect:
		if err := u.isOurs(machine); err != nil {
			return err
		}
		return deploy.ConnectVIFs(ctx, machine, step.Ports)
	case deploy.DoName:
		if err := u.isOurs(machine); err != nil {
			return err
		}
		return deploy.Name(ctx, machine, u.what.Name)
	case deploy.DoAdopt:
		return deploy.Adopt(ctx, machine, u.what, instanceID, u.limit)
	case deploy.DoDescribe:
		return u.describe(ctx, machine)
	case deploy.DoAsk:
		if err := u.check(machine, step); err != nil {
			return err
		}
		return deploy.RecordBoot(ctx, machine, u.what, step.Boot.Obsolete)
	case deploy.DoRestart:
		return machine.Reboot(ctx, u.config.offMode(), u.limit)
	case deploy.DoPowerOn, deploy.DoPowerOff:
		return u.config.switchPower(ctx, machine, u.limit)
	case deploy.DoCheck:
		return u.plan.awaitReady(ctx, machine, afterUpdate)
	case deploy.DoProtect:
		return deploy.Protect(ctx, machine, true)
	case deploy.DoEnterRescue:
		return deploy.EnterRescue(ctx, machine, instanceID, u.config.rescuePassword(ctx), u.limit)
	case deploy.DoDeploy, deploy.DoContinue, deploy.DoRepeat, deploy.DoRebuild, deploy.DoBoot, deploy.DoUndeploy, deploy.DoForget, deploy.DoRelease:
	}
	return nil
}

// isOurs returns an error of KindReserved if another user has deployed or reserved the machine since the plan.
func (u *update) isOurs(on *machine.Machine) error {
	return machine.CheckReservation(on.Node(), u.prior.InstanceID.ValueString())
}

// check returns an error if a live ISO asks for something else than planned, as the node is now.
func (u *update) check(machine *machine.Machine, step deploy.Step) error {
	if err := u.isOurs(machine); err != nil {
		return err
	}
	return step.CheckISO(u.what, machine.Node(), time.Now())
}

// record notes on the node what is wanted of a machine that keeps running with a live ISO.
func (u *update) record(ctx context.Context, machine *machine.Machine) error {
	err := u.isOurs(machine)
	switch {
	case err != nil || u.what.LiveISO == nil:
		return err
	case deploy.RunsInstance(machine.Node()) && deploy.BootRecord(machine.Node()) == nil:
		return deploy.RecordBoot(ctx, machine, u.what, nil)
	}
	return deploy.NoteWanted(ctx, machine, u.what.LiveISO.Artifacts)
}

// describe gives an adopted machine another instance_info.
func (u *update) describe(ctx context.Context, machine *machine.Machine) error {
	if err := u.isOurs(machine); err != nil {
		return err
	}
	var former []string
	if u.prior.adopted() {
		former = slices.Collect(maps.Keys(framework.JSONObject(u.prior.InstanceInfo)))
	}
	return deploy.Describe(ctx, machine, u.what, former)
}

// deploy continues an interrupted deployment, rebuilds the node, or boots it with another live ISO.
func (u *update) deploy(ctx context.Context, site *machine.Site, machine *machine.Machine, step deploy.Step) (attempts int, err error) {
	o := deploy.DeployOptions{
		Instance: u.prior.InstanceID.ValueString(), Other: deploy.KeepOther, Attempts: u.plan.tries(), Timeout: u.limit,
		Known: u.kept.Runs, Connections: step.Ports,
	}
	if step.Do == deploy.DoRebuild || step.Do == deploy.DoBoot {
		o.Other = deploy.RebuildOther
	}
	if u.what.LiveISO == nil {
		return deploy.Deploy(ctx, machine, u.what, o)
	}
	attempts = int(u.prior.Attempts.ValueInt64())
	check := func() error { return nil } // what an unfinished boot has booted is for the next plan to judge
	if step.Do == deploy.DoBoot {
		check = func() error { return u.check(machine, step) }
	}
	if err := check(); err != nil {
		return attempts, err
	}
	if err := deploy.Settle(ctx, site, *u.what.LiveISO, u.seen); err != nil {
		return attempts, err
	}
	if err := machine.Refresh(ctx); err != nil { // giving the image time to settle may have taken minutes
		return attempts, err
	}
	if step.Do == deploy.DoBoot {
		if err := deploy.AwaitRest(ctx, machine, u.limit); err != nil {
			return attempts, err
		}
	}
	if err := check(); err != nil {
		return attempts, err
	}
	return deploy.BootISO(ctx, machine, u.what, o)
}

// endRebuild puts the machine of a failed rebuild into quarantine if on_failure says so: see deploy.EndRebuild. A machine that boots a live
// ISO stays: it has lost nothing. The next refresh removes the deployment from the state.
func (d *deployment) endRebuild(ctx context.Context, u *update, on *machine.Machine, at deploy.Phase, failed error, diags *diag.Diagnostics) error {
	if failed == nil || at != deploy.Deploys || u.what.LiveISO != nil || !u.plan.quarantines() {
		return failed
	}
	limit, problems := u.plan.Timeouts.Delete(ctx, deploymentTimeout)
	diags.Append(problems...)
	notices, err := deploy.EndRebuild(ctx, on, u.plan.AllocationID.ValueString(), u.plan.mostNodes(), failed, limit, d.EndTemporary)
	framework.Show(diags, notices...)
	return err
}

// footprint returns the footprint of the node after an update of the content. A machine that was adopted keeps what it runs, and so the
// next refresh must not show that as a change by others.
func (u *update) footprint(ctx context.Context, machine *machine.Machine, err error) deploy.Footprint {
	switch {
	case err == nil && u.what.DeployedWith(machine.Node()):
		return footprint(ctx, machine)
	case err == nil && (u.prior.adopted() || u.plan.adopted()):
		return deploy.FootprintOf(machine.Node())
	}
	return deploy.Footprint{}
}

// wipes reports whether a step writes the disk of the machine.
func (u *update) wipes() bool {
	return slices.ContainsFunc(u.steps, func(s deploy.Step) bool { return s.Cost == decide.Wipe })
}

// Update continues an interrupted deployment, rebuilds the node if its content changes, restarts it, switches the power, and sets or
// ends the protection.
func (d *deployment) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer d.Finish(ctx, &resp.Diagnostics)
	u := d.newUpdate(ctx, req, resp)
	kept, store := framework.KeepPrivate[private](ctx, resp.Private, &resp.Diagnostics)
	defer store()
	if u.kept = kept; resp.Diagnostics.HasError() {
		return
	}
	plan, state := u.plan, u.prior
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: state.ID})...)
	u.seen = u.config.firstSeen(ctx, kept)
	m, err := d.Site.Machine(ctx, state.ID.ValueString())
	if err != nil {
		framework.ReportUndone(&resp.Diagnostics, "deploy node "+state.ID.ValueString(), err)
		return
	}
	node := m.Node
	turn, err := u.turn(ctx, m, d.Turns(ctx, u.plan.Rollout))
	if err != nil {
		framework.ReportUndone(&resp.Diagnostics, "deploy node "+ironic.NodeLabel(node()), err)
		return
	}
	defer turn.Abandon(ctx)
	attempts, failed, err := u.run(ctx, d.Site, m)
	if turn.End(ctx, err); turn == nil && err == nil {
		turns.ClearDeployment(ctx, m)
	}
	if err == nil {
		deploy.ForgetCheck(ctx, m)
	}
	err = d.endRebuild(ctx, u, m, failed, err, &resp.Diagnostics)
	framework.Show(&resp.Diagnostics, m.PowerCut()...)
	restarts := failed == deploy.Restarts && failure.IsInterrupted(err) && m.Started() // the next apply must not restart it again
	arrived := err == nil || failed > deploy.Restarts || restarts || (failed == deploy.Deploys && u.what.DeployedWith(node()))
	if err == nil {
		m.ForgetCreation(ctx, notes.MarkReservation)
	}
	next, unfinished := u.next(node(), attempts, failed, arrived, err)
	resp.Diagnostics.Append(resp.State.Set(ctx, &next)...)
	deployed := err
	if failed == deploy.Checks {
		deployed = nil
	}
	kept.see(node(), deployed == nil && u.wipes())
	kept.begun(node())
	doing := failed.Of(ironic.NodeLabel(node()))
	if err != nil && !arrived {
		framework.ReportUndone(&resp.Diagnostics, doing, err)
		return
	}
	kept.Past = kept.Past.AfterApply(d.wishOf(ctx, &next, &resp.Diagnostics), u.what.DeployedWith(node()))
	checked := deploy.Has(u.steps, deploy.DoCheck) && u.what.DeployedWith(node()) // a killed run may have deployed it without storing the footprint
	if plan.recordsContent(state) || checked {
		kept.Runs = u.footprint(ctx, m, deployed)
	}
	if unfinished { // after Ctrl-C, too: the state is not the planned one
		framework.ReportUndone(&resp.Diagnostics, doing, err)
	} else {
		framework.Report(&resp.Diagnostics, doing, err)
	}
	store()
	d.noteUnchanged(ctx, &next, resp.Private, &resp.Diagnostics)
}

// next returns the state after an update, and whether it differs from the planned one, because the rescue or the ready check is planned
// again. failed is the phase that has failed with err; arrived: the machine runs what was planned.
func (u *update) next(node *ironic.Node, attempts int, failed deploy.Phase, arrived bool, err error) (next model, unfinished bool) {
	planned := *u.plan
	switch {
	case err == nil:
	case !arrived: // the node still runs the former content: the state must say so
		planned = *u.prior
		planned.ProvisionState = types.StringUnknown()
	case failed == deploy.Deploys && !failure.IsInterrupted(err): // it has to be repeated, and counts then
		planned.Rebuilds, planned.Restarts = u.prior.Rebuilds, u.prior.Restarts
	}
	planned.Rescue = u.rescueAfter(node, failed, err)
	rescueIsDue := err != nil && !planned.Rescue.Equal(u.plan.Rescue)
	if rescueIsDue {
		planned.ProvisionState, planned.LastError, planned.Restarts = types.StringUnknown(), types.StringUnknown(), u.prior.Restarts
	}
	if arrived {
		planned.Ready = readyAfter(planned.Ready, u.steps, failed, err)
	}
	next = planned
	next.record(node, u.prior.InstanceID.ValueString(), attempts)
	framework.Keep(&next.ProvisionState, planned.ProvisionState)
	framework.Keep(&next.LastError, planned.LastError)
	framework.Keep(&next.Attempts, planned.Attempts)
	if err != nil && !failure.IsInterrupted(err) {
		next.Protected = types.BoolValue(node.Protected)
	}
	return next, rescueIsDue || err != nil && !u.plan.Ready.IsUnknown() && !next.Ready.Equal(u.plan.Ready)
}
