package deployment

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// update has the values that the steps of an update share.
type update struct {
	plan, config, state *model // the state is history.baseline
	prior               *model // the state
	what                provision.Deployment
	limit               time.Duration
	known               provision.Footprint // of the node as of the recorded deployment
	onChange            string              // in force
	past                history
	imported            bool      // by the plan: this apply touches no machine
	seen                time.Time // when the live ISO was first wanted
}

// newUpdate collects the values of an update.
func (d *deployment) newUpdate(ctx context.Context, req resource.UpdateRequest, diags *diag.Diagnostics) *update {
	u := &update{plan: &model{}, config: &model{}, prior: &model{}}
	diags.Append(req.Plan.Get(ctx, u.plan)...)
	diags.Append(req.Config.Get(ctx, u.config)...)
	diags.Append(req.State.Get(ctx, u.prior)...)
	limit, problems := u.plan.Timeouts.Update(ctx, deploymentTimeout)
	diags.Append(problems...)
	u.past = readHistory(ctx, req.Private, diags)
	u.state, _ = u.past.baseline(ctx, u.plan, u.prior)
	u.limit, u.imported, u.onChange = limit, u.past.Phase == importing, d.onChangeOf(u.config, diags)
	u.what, problems = u.wanted(ctx).deployment(ctx)
	diags.Append(problems...)
	u.known = readFootprint(ctx, req.Private, diags)
	return u
}

// wanted returns the configuration with the planned content, which may be that of the state with on_change = "ignore". The write-only
// values are in the configuration only.
func (u *update) wanted(ctx context.Context) *model {
	m := *u.config
	m.Image, m.ConfigDrive, m.DeploySteps, m.Capabilities = u.plan.Image, u.plan.ConfigDrive, u.plan.DeploySteps, u.plan.Capabilities
	m.Traits, m.RootDevice, m.InstanceInfo = u.plan.Traits, u.plan.RootDevice, u.plan.InstanceInfo
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

// updateStep is a step of an update. Steps that the plan does not ask for do nothing.
type updateStep int

// The steps, in order.
const (
	updateUnprotects updateStep = iota
	updateLeavesRescue
	updateConnects
	updateDeploys
	updateRestarts
	updateSwitches
	updateProtects
	updateEntersRescue
)

// of returns the step as an infinitive, for messages.
func (s updateStep) of(node string) string {
	return fmt.Sprintf([...]string{"end the protection of node %s", "end the rescue of node %s", "connect node %s", "deploy node %s", "restart node %s", "switch node %s", "protect node %s", "rescue node %s"}[s], node)
}

// run takes all steps. It returns the step that failed, together with its error.
func (u *update) run(ctx context.Context, client *provision.Site, machine *provision.Machine) (attempts int, failed updateStep, err error) {
	attempts = int(u.state.Attempts.ValueInt64())
	for step := updateUnprotects; step <= updateEntersRescue; step++ {
		switch {
		case step == updateUnprotects && framework.IsFalse(u.config.Protected):
			err = machine.Protect(ctx, false)
		case step == updateLeavesRescue && u.leavesRescue():
			err = machine.LeaveRescue(ctx, u.state.InstanceID.ValueString(), u.limit)
		case step == updateConnects:
			err = u.connect(ctx, machine)
		case step == updateDeploys && u.what.LiveISO != nil:
			attempts, err = u.boot(ctx, client, machine)
		case step == updateDeploys:
			attempts, err = u.deploy(ctx, machine)
		case step == updateRestarts && u.restarts():
			err = machine.Reboot(ctx, u.limit)
		case step == updateSwitches && u.switches():
			err = u.config.switchPower(ctx, machine, u.limit)
		case step == updateProtects && u.config.Protected.ValueBool():
			err = machine.Protect(ctx, true)
		case step == updateEntersRescue && u.entersRescue():
			err = machine.EnterRescue(ctx, u.state.InstanceID.ValueString(), u.config.rescuePassword(ctx), u.limit)
		}
		if err != nil {
			return attempts, step, machine.Unwatched(ctx, err)
		}
	}
	return attempts, updateDeploys, nil
}

// isOurs returns a ReservedError if another user has deployed or reserved the machine since the plan.
func (u *update) isOurs(machine *provision.Machine) error {
	return provision.CheckReservation(machine.Node(), u.state.InstanceID.ValueString())
}

// restarts reports whether the plan has announced a restart by power, besides those of a deployment and of rescue mode.
func (u *update) restarts() bool {
	return !u.leavesRescue() && !u.entersRescue() && !u.plan.ProvisionState.IsUnknown() && u.plan.Restarts.ValueInt64() > u.state.Restarts.ValueInt64()
}

// switches reports whether the plan has announced that the apply switches the power. The first apply after an import does not.
func (u *update) switches() bool {
	return framework.IsSet(u.config.PowerState) && (u.plan.ProvisionState.IsUnknown() || (!u.imported && !u.config.PowerState.Equal(u.state.PowerState)))
}

// deploy continues an interrupted deployment of an image, or rebuilds the node, as planned.
func (u *update) deploy(ctx context.Context, machine *provision.Machine) (attempts int, err error) {
	planned := u.plan.ProvisionState.IsUnknown() // ModifyPlan has planned an operation
	if attempts = int(u.state.Attempts.ValueInt64()); u.plan.adopted() {
		return attempts, u.adopt(ctx, machine, planned)
	}
	if !planned {
		return attempts, u.isOurs(machine)
	}
	options := provision.DeployOptions{
		Instance: u.state.InstanceID.ValueString(), Other: provision.KeepOther, Attempts: u.plan.tries(), Timeout: u.limit, Known: u.known, Connections: u.connections(),
	}
	if u.plan.Rebuilds.ValueInt64() > u.state.Rebuilds.ValueInt64() && u.plan.redeploys(ctx, u.state, u.onChange) != same {
		options.Other = provision.RebuildOther
	}
	return machine.Deploy(ctx, u.what, options)
}

// adopt continues an interrupted adoption, if planned, or gives the adopted machine a changed instance_info.
func (u *update) adopt(ctx context.Context, machine *provision.Machine, planned bool) error {
	if planned {
		return machine.Adopt(ctx, u.what, u.state.InstanceID.ValueString(), u.limit)
	}
	if err := u.isOurs(machine); err != nil || u.plan.InstanceInfo.IsNull() || u.plan.InstanceInfo.Equal(u.state.InstanceInfo) {
		return err
	}
	var former []string
	if u.state.adopted() {
		former = slices.Collect(maps.Keys(framework.JSONObject(u.state.InstanceInfo)))
	}
	return machine.Describe(ctx, u.what, former)
}

// footprint returns the footprint of the node after an update of the content. A machine that was adopted keeps what it runs, and so the
// next refresh must not show that as a change by others.
func (u *update) footprint(ctx context.Context, machine *provision.Machine, err error) provision.Footprint {
	switch {
	case err == nil && u.what.DeployedWith(machine.Node()):
		return footprint(ctx, machine)
	case err == nil && (u.state.adopted() || u.plan.adopted()):
		return provision.FootprintOf(machine.Node())
	}
	return provision.Footprint{}
}
