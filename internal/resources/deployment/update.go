package deployment

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/failure"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/machine/lost"
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
	if image, configured := m.image(ctx), u.config.image(ctx); image != nil && configured != nil &&
		framework.IsSet(image.PullSecretWOVersion) {
		image.PullSecretWO = configured.PullSecretWO
		m.Image, _ = types.ObjectValueFrom(ctx, m.Image.AttributeTypes(ctx), image)
	}
	if drive, configured := m.configDrive(ctx), u.config.configDrive(ctx); drive != nil && configured != nil {
		if framework.IsSet(drive.UserDataWOVersion) {
			drive.UserDataWO = configured.UserDataWO
		}
		if framework.IsSet(drive.MetaDataWOVersion) {
			drive.MetaDataWO = configured.MetaDataWO
		}
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
			return attempts, phase, errors.Join(machine.Unwatched(ctx, err), u.protectAgain(ctx, machine, err))
		}
	}
	return attempts, deploy.Deploys, nil
}

// protectAgain protects a machine that was not deployed because that would have been in vain.
func (u *update) protectAgain(ctx context.Context, m *machine.Machine, failed error) error {
	if !failure.Is(failed, machine.KindInVain) || !deploy.Has(u.steps, deploy.DoUnprotect) {
		return nil
	}
	return deploy.Protect(ctx, m, true)
}

// take takes a step that deploys nothing.
func (u *update) take(ctx context.Context, machine *machine.Machine, step deploy.Step) error {
	instanceID := u.prior.InstanceID.ValueString()
	if err := step.CheckAssumed(machine.Node(), instanceID); err != nil {
		return err
	}
	switch step.Do {
	case deploy.DoUnprotect:
		return deploy.Protect(ctx, machine, false)
	case deploy.DoUnrescue:
		return deploy.LeaveRescue(ctx, machine, instanceID, u.limit)
	case deploy.DoConnect:
		return deploy.ConnectVIFs(ctx, machine, step.Ports)
	case deploy.DoName:
		return deploy.Name(ctx, machine, u.what.Name)
	case deploy.DoAdopt:
		return deploy.Adopt(ctx, machine, u.what, instanceID, u.limit)
	case deploy.DoRestore:
		return deploy.Restore(ctx, machine, u.what, u.restoration())
	case deploy.DoDescribe:
		return u.describe(ctx, machine)
	case deploy.DoAddress:
		return deploy.Readdress(ctx, machine, u.what)
	case deploy.DoAsk:
		if err := u.check(machine, step); err != nil {
			return err
		}
		if u.what.DeployedWith(machine.Node()) { // another run has asked, and a person may have restarted it since
			return nil
		}
		return deploy.RecordBoot(ctx, machine, u.what, step.Boot.Obsolete)
	case deploy.DoRestart:
		return deploy.Restart(ctx, machine, step, u.config.offMode(), u.limit)
	case deploy.DoPowerOn, deploy.DoPowerOff:
		return u.config.switchPower(ctx, machine, u.limit)
	case deploy.DoCheck:
		return u.plan.awaitReady(ctx, machine, afterUpdate)
	case deploy.DoProtect:
		return deploy.Protect(ctx, machine, true)
	case deploy.DoEnterRescue:
		return deploy.EnterRescue(ctx, machine, instanceID, u.config.rescuePassword(ctx), u.limit)
	case deploy.DoDeploy, deploy.DoContinue, deploy.DoRepeat, deploy.DoRebuild, deploy.DoBoot, deploy.DoUndeploy, deploy.DoForget,
		deploy.DoRelease:
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

// endRebuild does what on_failure says of a machine whose rebuild has failed: see deploy.EndRebuild.
func (d *deployment) endRebuild(
	ctx context.Context, u *update, on *machine.Machine, at deploy.Phase, failed error, diags *diag.Diagnostics,
) error {
	limit, problems := u.plan.Timeouts.Delete(ctx, deploymentTimeout)
	diags.Append(problems...)
	notices, err := deploy.EndRebuild(ctx, on, deploy.Rebuild{
		Phase: at, Wanted: u.what, Quarantines: u.plan.quarantines(), Allocation: u.plan.AllocationID.ValueString(),
		MaxNodes: u.plan.mostNodes(), Timeout: limit, EndTemporary: d.EndTemporary,
	}, failed)
	framework.Show(diags, notices...)
	return err
}

// ending says how the steps have ended. at is the phase that has failed with err.
func (u *update) ending(m *machine.Machine, at deploy.Phase, err error) deploy.Ending {
	return deploy.Ending{
		Steps: u.steps, Phase: at, Failed: err != nil, Interrupted: failure.IsInterrupted(err), Restarting: m.Started(),
		Runs: u.what.DeployedWith(m.Node()), State: m.State(), Rescues: !u.plan.Rescue.Equal(u.prior.Rescue),
		NewContent: u.plan.recordsContent(u.prior), Adopts: u.prior.adopted() || u.plan.adopted(), Ready: framework.FlagOf(u.plan.Ready),
	}
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
	state := u.prior
	resp.Diagnostics.Append(resp.Identity.Set(ctx, framework.Identity{ID: state.ID})...)
	u.seen = u.config.firstSeen(ctx, kept)
	m, err := d.Site.Machine(ctx, state.ID.ValueString())
	if d.ReportLost(ctx, req.Private, state.lostRecord(), err, &resp.Diagnostics) {
		return
	}
	if err != nil {
		framework.ReportUndone(&resp.Diagnostics, "deploy node "+state.machine(), err)
		return
	}
	turn, err := u.turn(ctx, m, d.Turns(ctx, u.plan.Rollout))
	if err != nil {
		framework.ReportUndone(&resp.Diagnostics, "deploy node "+ironic.NodeLabel(m.Node()), err)
		return
	}
	defer turn.Abandon(ctx)
	attempts, failed, err := u.run(ctx, d.Site, m)
	if turn.End(ctx, err); turn == nil && err == nil {
		turns.Clear(ctx, m, false)
	}
	if err == nil {
		deploy.ForgetCheck(ctx, m)
	}
	if restores := deploy.Has(u.steps, deploy.DoRestore); restores && d.reportRestored(ctx, m, err, resp) {
		return
	} else if !restores {
		err = d.endRebuild(ctx, u, m, failed, err, &resp.Diagnostics)
	}
	framework.Show(&resp.Diagnostics, m.PowerCut()...)
	if err == nil {
		m.ForgetCreation(ctx, notes.MarkReservation)
	}
	end := u.ending(m, failed, err)
	outcome, report := deploy.After(end), framework.Report
	if outcome.Undone {
		report = framework.ReportUndone
	}
	next, doing := u.next(m.Node(), attempts, end, outcome), failed.Of(ironic.NodeLabel(m.Node()))
	resp.Diagnostics.Append(resp.State.Set(ctx, &next)...)
	kept.see(m.Node(), outcome.ForgetNames)
	kept.begun(m.Node())
	kept.Updated = lost.Seen(kept.Updated, m.Node())
	d.NoteSite(ctx, resp.Private, false, &resp.Diagnostics)
	if outcome.Arrived {
		kept.Past = kept.Past.AfterApply(d.wishOf(ctx, &next, &resp.Diagnostics), end.Runs)
		kept.noteFootprint(ctx, m, outcome.Footprint)
		kept.Restart = deploy.NotedRestart(m.Node())
	}
	report(&resp.Diagnostics, doing, err)
	store()
	d.noteUnchanged(ctx, &next, resp.Private, &resp.Diagnostics)
}

func (u *update) next(node *ironic.Node, attempts int, end deploy.Ending, outcome deploy.Outcome) model {
	planned := *u.plan
	if end.Failed && (outcome.Undone || !end.Interrupted) { // the plan has forecast a success, and Terraform compares it after no error
		planned.ProvisionState, planned.LastError, planned.Attempts = types.StringUnknown(), types.StringUnknown(), types.Int64Unknown()
		planned.Failure = unknownFailure
		if u.config.PowerState.IsNull() {
			planned.PowerState = types.StringUnknown()
		}
	}
	if !outcome.Arrived {
		planned = *u.prior
		planned.ProvisionState = types.StringUnknown()
	}
	if outcome.KeepsRebuilds {
		planned.Rebuilds = u.prior.Rebuilds
	}
	if outcome.KeepsRestarts {
		planned.Restarts = u.prior.Restarts
	}
	planned.Rescue = map[deploy.RescueValue]types.Object{
		deploy.RescuePlanned: u.plan.Rescue, deploy.RescueFormer: u.prior.Rescue, deploy.RescueUnsure: unsureRescue(),
	}[outcome.Rescue]
	if outcome.RescueAgain {
		planned.ProvisionState, planned.LastError, planned.Failure = types.StringUnknown(), types.StringUnknown(), unknownFailure
	}
	planned.Ready = readyAfter(planned.Ready, outcome.Ready)
	next := planned
	next.record(node, u.prior.InstanceID.ValueString(), attempts)
	framework.Keep(&next.ProvisionState, planned.ProvisionState)
	framework.Keep(&next.Attempts, planned.Attempts)
	if outcome.ReadProtected {
		next.Protected = framework.QuietFlag(next.Protected, node.Protected)
	}
	return next
}
