package deployment

import (
	"cmp"
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// ModifyPlan plans the operations that the node needs, and warns of their effects.
func (d *deployment) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, config model
	var state *model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if state != nil && state.isImported() {
		framework.RefuseUnread(&resp.Diagnostics, "the deployment of node "+state.ID.ValueString())
		return
	}
	if req.Plan.Raw.IsNull() { // destroy
		if state != nil && !d.refuseEnd(ctx, state, "destroy", &resp.Diagnostics) {
			d.warnEnd(ctx, state, &resp.Diagnostics)
			d.foreseeEnd(ctx, state, &resp.Diagnostics)
			d.checkAgent(ctx, nil, nil, state, false, &resp.Diagnostics)
		}
		return
	}
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	changes := state == nil || !req.Plan.Raw.Equal(req.State.Raw)
	p := d.newInPlace(ctx, &plan, &config, state, req.Private, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	p.keepPlace(ctx, &resp.Diagnostics)
	d.planReplacement(ctx, p, resp)
	if resp.Diagnostics.HasError() {
		return
	}
	fresh := state == nil || len(resp.RequiresReplace) > 0
	switch {
	case fresh:
		plan.Rebuilds, plan.Restarts = types.Int64Value(0), types.Int64Value(0)
		plan.BootStatus = types.ObjectNull(bootStatusTypes)
		if !plan.LiveISO.IsNull() {
			plan.BootStatus = booted(ctx)
			config.refuseFirst(ctx, &resp.Diagnostics)
		}
	case !plan.LiveISO.IsNull():
		b := bootPlan{inPlace: p, iso: config.liveISO(ctx), prior: state.liveISO(ctx)}
		b.decide(ctx, &resp.Diagnostics)
	default:
		plan.BootStatus = types.ObjectNull(bootStatusTypes)
		p.waitForRescue(ctx, &resp.Diagnostics)
		p.decide(ctx, &resp.Diagnostics)
	}
	if fresh {
		refuseRescueOfNew(&config, &resp.Diagnostics)
	} else {
		p.warnRecorded(&resp.Diagnostics)
		p.planRescue(ctx, &resp.Diagnostics)
	}
	d.checkAgent(ctx, &plan, &config, state, state != nil && fresh, &resp.Diagnostics)
	d.refuseOff(ctx, &plan, &config, state, fresh, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	if changes && d.Known() {
		d.checkServer(ctx, &plan, &config, state, fresh, &resp.Diagnostics)
		d.foreseeRefusals(ctx, &plan, &config, state, fresh, &resp.Diagnostics)
	}
}

// checkServer refuses what Ironic does not support, and warns of what the node or the image lacks.
func (d *deployment) checkServer(ctx context.Context, plan, config, state *model, fresh bool, diags *diag.Diagnostics) {
	d.checkVersions(ctx, config, diags)
	d.checkConfigDrive(ctx, plan, diags)
	d.checkVIFs(ctx, plan, state, diags)
	d.checkRescue(ctx, plan, state, diags)
	d.checkFormat(ctx, plan, config, fresh, diags)
	d.checkBoot(ctx, plan, state, fresh, diags)
}

// refuseOff refuses a plan that has to switch off a machine which Ironic never switches off.
func (d *deployment) refuseOff(ctx context.Context, plan, config, state *model, fresh bool, diags *diag.Diagnostics) {
	ref := cmp.Or(plan.ID.ValueString(), plan.NodeID.ValueString())
	if config.PowerState.ValueString() != framework.PowerOff || ref == "" || !d.Known() {
		return
	}
	if !fresh && state.PowerState.ValueString() == framework.PowerOff && !plan.ProvisionState.IsUnknown() {
		return // it is off, and stays off
	}
	if err := d.Client.CheckOff(ctx, ref); err != nil {
		_, detail := provision.Explain("", err)
		diags.AddAttributeError(path.Root("power_state"), "Power-off is disabled", detail)
	}
}

// newInPlace collects what the plan of a deployment depends on.
func (d *deployment) newInPlace(ctx context.Context, plan, config, state *model, private framework.GettablePrivate, diags *diag.Diagnostics) inPlace {
	wanted, problems := config.deployment(ctx)
	diags.Append(problems...)
	p := inPlace{
		plan: plan, config: config, state: state, past: readHistory(ctx, private, diags), onChange: d.onChangeOf(config, diags), wanted: wanted.Digest(),
		seen: readSight(ctx, private, diags), known: readFootprint(ctx, private, diags), last: readWanted(ctx, private, diags), label: func() string { return d.label(ctx, plan) },
	}
	p.imported, p.names = p.past.Phase == importing, readNames(ctx, private, diags)
	unbegun, problems := private.GetKey(ctx, unbegunKey)
	diags.Append(problems...)
	p.unbegun = len(unbegun) > 0
	p.losesNode = d.losesNode(plan, state, p.seen)
	if state != nil && d.Known() {
		p.renamed = d.Client.PlannedName(&ironic.Node{UUID: state.ID.ValueString(), Name: p.seen.Name})
	}
	if state != nil {
		p.state, p.records = p.past.baseline(ctx, plan, state)
	}
	return p
}

// planReplacement plans whether the deployment is replaced, and warns of the effects.
func (d *deployment) planReplacement(ctx context.Context, p inPlace, resp *resource.ModifyPlanResponse) {
	plan, state := p.plan, p.state
	if state == nil && plan.adopted() {
		d.checkAdoption(ctx, plan, &resp.Diagnostics)
		return
	}
	if state == nil {
		if !d.planTry(ctx, plan, &resp.Diagnostics) {
			d.checkOccupied(ctx, plan, p.wanted, &resp.Diagnostics)
		}
		return
	}
	resp.RequiresReplace = p.replacedFor(ctx)
	if len(resp.RequiresReplace) == 0 {
		return
	}
	if p.past.keepsMachine() && state.occupied() {
		d.refuseReplacement(ctx, plan, state, resp.RequiresReplace, &resp.Diagnostics)
		return
	}
	if d.refuseEnd(ctx, state, "replace", &resp.Diagnostics) {
		return
	}
	plan.ID, plan.NodeName, plan.InstanceID = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
	d.checkReplacement(ctx, plan, state, &resp.Diagnostics)
	if !resp.Diagnostics.HasError() {
		d.warnEnd(ctx, state, &resp.Diagnostics)
	}
}

// checkConfigDrive warns if the node's boot interface cannot pass a config drive with a live ISO, because the apply fails unless
// it changes that interface first.
func (d *deployment) checkConfigDrive(ctx context.Context, plan *model, diags *diag.Diagnostics) {
	if plan.LiveISO.IsNull() || plan.ConfigDrive.IsNull() || !framework.IsSet(plan.NodeID) {
		return
	}
	node, err := d.Client.NodeForRefresh(ctx, cmp.Or(plan.ID.ValueString(), plan.NodeID.ValueString()))
	if err != nil || provision.CarriesConfigDrive(d.Client.AsPlanned(node)) {
		return // the apply reports what is wrong with the node
	}
	_, detail := provision.Explain("", &provision.NoConfigDriveError{Node: node})
	diags.AddAttributeWarning(path.Root("config_drive"), "Node cannot use the config drive", "Unless the node changes first, the apply will fail: "+detail)
}

// label names the node in a plan's messages: by its name if Ironic answers.
func (d *deployment) label(ctx context.Context, m *model) string {
	id := m.ID.ValueString()
	if !d.Known() {
		return id
	}
	node, err := d.Client.NodeForRefresh(ctx, id)
	if err != nil {
		return id
	}
	return ironic.NodeLabel(node)
}

// inPlace plans a change of a deployment that stays on its node. It decides from the configuration, the state and the private state
// alone: Terraform plans again during apply, and that plan must agree with the first.
type inPlace struct {
	plan, config, state *model // the state is history.baseline
	past                history
	imported            bool   // by this plan: its apply touches no machine
	unbegun             bool   // by the creation that was interrupted
	losesNode           bool   // because the plan replaces its host
	renamed             string // the name that the plan gives to the node; "" if none
	records             bool   // values of an imported machine for which nothing is deployed
	onChange            string // in force
	wanted              string // digest of the configured deployment
	seen                sight
	names               []string // that the node had since it was deployed, besides the present one
	known               provision.Footprint
	last                wanted        // live ISO of the last apply
	label               func() string // names the node in messages; costs a request
}

// resumes reports whether the apply finishes or repeats a deployment, and first whether nothing is deployed a second time by that: Ironic
// is at work on it, or has never begun.
func (p inPlace) resumes() (resumes, first bool) {
	state := ironic.State(p.state.ProvisionState.ValueString())
	return !provision.Finished(state), p.waits() || p.neverBegun()
}

// recorded reports whether an earlier run has begun to deploy the configured content, or has deployed it, and was killed before it
// recorded that in the state.
func (p inPlace) recorded() (begun, ran bool) {
	if p.seen.Content == "" || p.seen.Content != p.wanted {
		return false, false
	}
	resumes, _ := p.resumes()
	return p.waits(), !resumes && p.known.Mark != "" && p.known.Mark != p.seen.Content
}

// keep plans no change of the values that come from Ironic.
func (p inPlace) keep() {
	m := p.plan
	m.LastError, m.Attempts, m.ProvisionState = p.state.LastError, p.state.Attempts, p.state.ProvisionState
	m.Rebuilds, m.Restarts = raise(p.state.Rebuilds, same), raise(p.state.Restarts, same)
	if p.config.PowerState.IsNull() {
		m.PowerState = p.state.PowerState
	}
	if p.config.Protected.IsNull() {
		m.Protected = p.state.Protected
	}
}

// starts plans an operation of Ironic that deploys the node.
func (p inPlace) starts() {
	m := p.plan
	m.ProvisionState, m.LastError, m.Attempts = types.StringUnknown(), types.StringUnknown(), types.Int64Unknown()
	if p.config.PowerState.IsNull() {
		m.PowerState = types.StringUnknown()
	}
}

// decide plans the operation, and warns of its effects on the machine.
func (p inPlace) decide(ctx context.Context, diags *diag.Diagnostics) {
	p.keep()
	resumes, first := p.resumes()
	switch {
	case p.plan.adopted():
		if provision.Adoptable(ironic.State(p.state.ProvisionState.ValueString())) {
			p.starts()
			p.warnAdopting(diags)
			return
		}
		p.warnAdopted(resumes, diags)
		p.warnPower(diags)
		p.restart(ctx, same, diags)
		return
	case p.imported && p.records:
		p.warnPower(diags)
		return
	}
	p.ignore(ctx, diags)
	writes := p.writes(ctx, diags)
	if resumes || writes != same {
		p.starts()
	}
	if resumes && !first {
		writes = differs
	}
	p.plan.Rebuilds = raise(p.state.Rebuilds, writes)
	if writes == differs && p.plan.staysProtected(p.state) {
		refuseInPlace(diags, p.label(), "rebuild it")
	}
	if !resumes {
		p.warnPower(diags)
		p.restart(ctx, writes, diags)
	}
}

// writes says whether the plan rebuilds the node, and warns of that or says why it does not.
func (p inPlace) writes(ctx context.Context, diags *diag.Diagnostics) change {
	writes := p.plan.redeploys(ctx, p.state, p.onChange)
	begun, ran := p.recorded()
	resumes, _ := p.resumes()
	switch {
	case p.neverBegun():
		p.warnResume(diags)
		return same
	case writes == unclear:
		diags.AddWarning(rebuildSummary, fmt.Sprintf("The content of node %s may change: something in it is not known yet. If it does, Ironic rebuilds the node in place, and the data on its root disk is lost. "+
			"The plan says so with an unknown value of rebuilds.", p.label()))
	case writes == differs && begun:
		p.warnResume(diags)
		return same
	case writes == differs && ran:
		diags.AddWarning("Deployment of an earlier run is recorded", fmt.Sprintf("Node %s runs the configured content: an earlier run has deployed it, and was killed before it "+
			"recorded that. The apply does not touch the machine.", p.label()))
		return same
	case writes == differs && p.past.Phase == unapplied:
		diags.AddWarning(rebuildSummary, fmt.Sprintf("Node %s was imported with %s, and the configuration says otherwise: Ironic rebuilds it in place, and the data on its root disk is lost. "+
			"To keep the machine as it is, correct the configuration, or set on_change = \"ignore\".", p.label(), p.state.describeContent(ctx)))
	case writes == differs:
		diags.AddWarning(rebuildSummary, fmt.Sprintf("The content of node %s changes: Ironic rebuilds it in place, and the data on its root disk is lost. "+
			"Its reservation stays. Each machine that this plan rebuilds shows a higher number in rebuilds. Set on_change = \"ignore\" to leave the machine as it is.", p.label()))
	case resumes:
		p.warnResume(diags)
	case p.plan.contentChange(ctx, p.state) != same && p.state.adopted():
		diags.AddWarning("Adopted deployment is recorded only", fmt.Sprintf("The apply records the content of node %s in the state, and does not touch the machine, which was adopted. "+
			"To deploy that content, change rebuild_triggers.", p.label()))
	case p.plan.contentChange(ctx, p.state) != same:
		diags.AddWarning("Change without effect", fmt.Sprintf("on_change is \"ignore\": the apply records the new content of node %s, and does not touch the machine.", p.label()))
	}
	return writes
}

// rebuildSummary is the same for all nodes, so that Terraform folds their warnings into one.
const rebuildSummary = "Rebuild wipes the root disk"

// ignore plans that the content stays as it is, with on_change = "ignore" and without a trigger.
func (p inPlace) ignore(ctx context.Context, diags *diag.Diagnostics) {
	resumes, _ := p.resumes()
	if p.onChange != onChangeIgnore || p.imported || p.state.adopted() || (resumes && !p.waits()) {
		return
	}
	switch compare(ctx, p.plan.RebuildTriggers, p.state.RebuildTriggers) {
	case same:
		p.plan.keepContent(p.state)
	case unclear:
		if p.plan.contentChange(ctx, p.state) != same {
			diags.AddAttributeError(path.Root("rebuild_triggers"), "Value must be known during plan", "on_change is \"ignore\" and the content has changed: "+
				"rebuild_triggers decides whether the plan shows the new content, so the plan must know it. Use values that do not depend on a resource, or apply that resource first (-target).")
		}
	case differs:
	}
}

// restart plans a restart for restart_triggers. A machine that is deployed or booted anew, or is to be off, is not restarted.
func (p inPlace) restart(ctx context.Context, deploys change, diags *diag.Diagnostics) {
	m, power := p.plan, p.config.PowerState
	restarts := compare(ctx, m.RestartTriggers, p.state.RestartTriggers)
	if restarts == same || deploys == differs || p.imported || power.ValueString() == framework.PowerOff {
		return
	}
	if deploys == unclear || power.IsUnknown() {
		restarts = unclear
	}
	m.Restarts = raise(p.state.Restarts, restarts)
	if power.IsNull() && p.state.PowerState.ValueString() != framework.PowerOn {
		m.PowerState = types.StringUnknown()
	}
	if restarts == unclear {
		diags.AddWarning(restartSummary, fmt.Sprintf("Node %s may be restarted: whether restart_triggers changes is not known yet. The plan says so with an unknown value of restarts.", p.label()))
		return
	}
	diags.AddWarning(restartSummary, fmt.Sprintf("Node %s is switched off and on: restart_triggers changes. Each machine that this plan restarts shows a higher number in restarts.", p.label()))
}

const restartSummary = "Machine is restarted"

// warnAdopting warns that the apply continues an adoption.
func (p inPlace) warnAdopting(diags *diag.Diagnostics) {
	diags.AddWarning("Unfinished adoption is continued", fmt.Sprintf("Node %s is in state %q%s Ironic adopts the machine as it runs: nothing is written to its disks.",
		p.label(), p.state.ProvisionState.ValueString(), afterColon(p.state.LastError.ValueString())))
}

// warnAdopted warns if an adopted machine does not run. There is nothing to deploy on it.
func (p inPlace) warnAdopted(stopped bool, diags *diag.Diagnostics) {
	if stopped {
		diags.AddWarning("Adopted machine does not run", fmt.Sprintf("Node %s is in state %q. With adopt = true there is nothing to deploy on it: set image and change rebuild_triggers, or destroy the deployment.",
			p.label(), p.state.ProvisionState.ValueString()))
	}
}

// warnPower warns that the apply switches the machine. The first apply after an import does not: it records power_state, and the
// next plan shows the difference.
func (p inPlace) warnPower(diags *diag.Diagnostics) {
	if !framework.IsSet(p.config.PowerState) || p.config.PowerState.Equal(p.state.PowerState) {
		return
	}
	summary, detail := "Power is switched", "Node %s is switched %s."
	if p.imported {
		summary, detail = "Power is not switched yet", "Node %s was imported, so this apply does not touch the machine. The next plan shows its power state, and its apply switches it %s."
	}
	diags.AddAttributeWarning(path.Root("power_state"), summary, fmt.Sprintf(detail, p.label(), p.config.PowerState.ValueString()))
}

// warnResume warns that the apply finishes the deployment of an earlier run.
func (p inPlace) warnResume(diags *diag.Diagnostics) {
	state := p.state.ProvisionState.ValueString()
	writes := "which writes its root disk"
	if !p.plan.LiveISO.IsNull() {
		writes = "which boots its live ISO"
	}
	if provision.Failed(ironic.State(state)) {
		diags.AddWarning("Failed deployment is repeated", fmt.Sprintf("Node %s is in state %q (%s). It is deployed again, %s.",
			p.label(), state, p.state.LastError.ValueString(), writes))
		return
	}
	if provision.BeingDeployed(ironic.State(state)) {
		diags.AddWarning("Unfinished deployment is continued", fmt.Sprintf("Node %s is in state %q: the apply waits for the operation that an earlier run has started.", p.label(), state))
		return
	}
	if provision.Settled(provision.GoalUndeployed, ironic.State(state)) {
		diags.AddWarning("Unfinished deployment is continued", fmt.Sprintf("Node %s is reserved, and still in state %q: it is deployed, %s.", p.label(), state, writes))
		return
	}
	diags.AddWarning("Undeployed node is deployed again", fmt.Sprintf("Node %s is in state %q: an earlier run has undeployed it, and its data is lost. The apply finishes that, "+
		"then deploys the node again. To leave it undeployed, destroy the resource.", p.label(), state))
}

// checkVersions refuses settings that the server's API does not have.
func (d *deployment) checkVersions(ctx context.Context, config *model, diags *diag.Diagnostics) {
	drive := config.configDrive(ctx)
	d.Requires(ctx, diags, append(framework.StepFeatures(path.Root("deploy_steps"), config.DeploySteps),
		framework.Feature{Used: drive != nil && drive.isReady(), Since: ironic.VersionRebuildDrive, Name: path.Root("config_drive")},
		framework.Feature{Used: drive != nil && !drive.isReady(), Since: 56, Name: path.Root("config_drive")},
		framework.Feature{Used: drive != nil && !drive.VendorData.IsNull(), Since: 59, Name: path.Root("config_drive").AtName("vendor_data")},
		framework.Feature{Used: config.adopted(), Since: ironic.VersionAdopt, Name: path.Root("adopt")},
		framework.Feature{Used: !config.VIFs.IsNull(), Since: ironic.VersionVIFs, Name: path.Root("vifs")},
		framework.Feature{Used: config.namesPorts(), Since: ironic.VersionVIFPort, Name: path.Root("vifs")},
		framework.Feature{Used: !config.DeploySteps.IsNull(), Since: 69, Name: path.Root("deploy_steps")},
		framework.Feature{Used: !config.Rescue.IsNull(), Since: ironic.VersionRescue, Name: path.Root("rescue")},
		framework.Feature{Used: config.Protected.ValueBool(), Since: 48, Name: path.Root("protected")},
		framework.Feature{Used: config.quarantines(), Since: provision.VersionRetired, Name: path.Root("on_failure")},
		framework.Feature{Used: !config.PowerOffMode.IsNull(), Since: ironic.VersionSoftPower, Name: path.Root("power_off_mode")},
	)...)
}
