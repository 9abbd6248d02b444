package resources

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// ModifyPlan sees what the node still has to do, and warns of what that costs.
func (d *deployment) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, config deploymentModel
	var state *deploymentModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if req.Plan.Raw.IsNull() { // destroy
		if state != nil {
			d.warnEnd(ctx, state, &resp.Diagnostics)
		}
		return
	}
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	changes := state == nil || !req.Plan.Raw.Equal(req.State.Raw)
	mark, diags := req.Private.GetKey(ctx, importedKey)
	resp.Diagnostics.Append(diags...)
	imported := len(mark) > 0
	known, diags := req.Private.GetKey(ctx, markKey)
	resp.Diagnostics.Append(diags...)
	d.planReplacement(ctx, &plan, state, imported, resp)
	if resp.Diagnostics.HasError() {
		return
	}
	fresh := state == nil || len(resp.RequiresReplace) > 0
	switch {
	case fresh:
		plan.BootStatus = types.ObjectNull(bootStatusTypes)
		if !plan.LiveISO.IsNull() {
			plan.BootStatus = booted(ctx)
		}
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	case !plan.LiveISO.IsNull():
		seen, diags := req.Private.GetKey(ctx, bootKey)
		resp.Diagnostics.Append(diags...)
		d.decideBoot(ctx, bootPlan{plan: &plan, config: &config, state: state, imported: imported}, bootFacts(seen), &resp.Diagnostics)
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	default:
		plan.BootStatus = types.ObjectNull(bootStatusTypes)
		p := inPlace{
			plan: &plan, config: &config, state: state, imported: imported,
			label: func() string { return d.label(ctx, &plan) },
			begun: func() bool { return d.begun(ctx, &config, state) },
			ran:   func() bool { return d.ran(ctx, &config, state, known) },
		}
		p.decide(&resp.Diagnostics)
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	}
	if changes && d.known() {
		d.checkVersions(ctx, &config, &resp.Diagnostics)
		d.checkConfigDrive(ctx, &plan, &resp.Diagnostics)
	}
}

// planReplacement plans whether the deployment is replaced, and tells of what that does.
func (d *deployment) planReplacement(ctx context.Context, plan, state *deploymentModel, imported bool, resp *resource.ModifyPlanResponse) {
	if state == nil {
		d.warnOccupied(ctx, plan, &resp.Diagnostics)
		return
	}
	resp.RequiresReplace = d.replacedFor(ctx, plan, state, &resp.Diagnostics)
	if resp.Diagnostics.HasError() || len(resp.RequiresReplace) == 0 {
		return
	}
	if imported && state.occupied() {
		d.refuseReplacement(ctx, plan, state, resp.RequiresReplace, &resp.Diagnostics)
		return
	}
	plan.ID, plan.InstanceUUID = types.StringUnknown(), types.StringUnknown()
	d.checkReplacement(ctx, plan, state, &resp.Diagnostics)
	if !resp.Diagnostics.HasError() {
		d.warnEnd(ctx, state, &resp.Diagnostics)
	}
}

// checkConfigDrive warns of a config drive that the node could not be given with a live ISO, unless this very run changes its
// boot interface.
func (d *deployment) checkConfigDrive(ctx context.Context, plan *deploymentModel, diags *diag.Diagnostics) {
	if plan.LiveISO.IsNull() || plan.ConfigDrive.IsNull() || !isSet(plan.NodeID) {
		return
	}
	node, err := d.client.NodeForRefresh(ctx, cmp.Or(plan.ID.ValueString(), plan.NodeID.ValueString()))
	if err != nil || ironic.CarriesConfigDrive(node) {
		return // what is wrong with the node, the apply says
	}
	_, detail := ironic.Explain("", &ironic.NoConfigDriveError{Node: node})
	diags.AddAttributeWarning(path.Root("config_drive"), "Config drive that the node cannot have", "As it is now, the apply will fail: "+detail)
}

// label is how a plan's messages call the node: by name if Ironic can be asked.
func (d *deployment) label(ctx context.Context, m *deploymentModel) string {
	id := m.ID.ValueString()
	if !d.known() {
		return id
	}
	node, err := d.client.NodeForRefresh(ctx, id)
	if err != nil {
		return id
	}
	return ironic.NodeLabel(node)
}

// begun reports whether a run that was killed has begun to deploy the node with what the configuration says.
func (d *deployment) begun(ctx context.Context, config, state *deploymentModel) bool {
	if !d.known() || !ironic.BeingDeployed(ironic.State(state.ProvisionState.ValueString())) {
		return false
	}
	node, err := d.client.NodeForRefresh(ctx, state.ID.ValueString())
	return err == nil && d.runs(ctx, config, node)
}

// ran reports whether a run that was killed has deployed the node with what the configuration says, which the state does not know. known
// is what markKey has.
func (d *deployment) ran(ctx context.Context, config, state *deploymentModel, known []byte) bool {
	if !d.known() || len(known) == 0 {
		return false
	}
	node, err := d.client.NodeForRefresh(ctx, state.ID.ValueString())
	return err == nil && ironic.RunsInstance(node) && !bytes.Equal(known, quote(ironic.Mark(node))) && d.runs(ctx, config, node)
}

// inPlace plans a deployment that stays on its node.
type inPlace struct {
	plan, config, state *deploymentModel
	imported            bool          // and not applied since
	label               func() string // of the node; costs a request
	begun, ran          func() bool   // likewise
}

// decide plans what happens, and warns of what it does to the machine.
func (p inPlace) decide(diags *diag.Diagnostics) {
	m := p.plan
	m.LastError, m.Attempts, m.ProvisionState = p.state.LastError, p.state.Attempts, p.state.ProvisionState
	if p.config.PowerState.IsNull() {
		m.PowerState = p.state.PowerState
	}
	changed := !m.sameContent(p.state)
	rebuilds := changed && m.OnChange.ValueString() != onChangeIgnore
	resumes := !ironic.Finished(ironic.State(p.state.ProvisionState.ValueString()))
	switch {
	case p.imported && changed:
		diags.AddWarning("Imported deployment is left as it is", fmt.Sprintf("What the configuration says of node %s is noted, and the machine is not touched. "+
			"If its image turns out to be another one, the plan after this shows that; what cannot be read back, such as a config drive, is taken as it is written. "+
			"To deploy the node anew, use terraform apply -replace.", p.label()))
		p.warnPower(diags)
		return
	case rebuilds && p.begun():
		p.warnResume(diags)
	case rebuilds && p.ran():
		rebuilds = false
		diags.AddWarning("Deployment of an earlier run is noted", fmt.Sprintf("Node %s runs what the configuration says: an earlier run has deployed it, and was killed before it "+
			"could say so. The machine is not touched.", p.label()))
	case rebuilds:
		diags.AddWarning("Rebuild wipes the root disk", fmt.Sprintf("The content of node %s changes: it is rebuilt in place, and what is on its root disk is lost. "+
			"Its reservation stays. Set on_change = \"ignore\" to leave the machine as it is.", p.label()))
	case changed && !resumes:
		diags.AddWarning("Change without effect", fmt.Sprintf("on_change is \"ignore\": the new content of node %s is noted, and the machine runs on as it is.", p.label()))
	case resumes:
		p.warnResume(diags)
	}
	if resumes || rebuilds {
		m.ProvisionState, m.LastError, m.Attempts = types.StringUnknown(), types.StringUnknown(), types.Int64Unknown()
		if p.config.PowerState.IsNull() {
			m.PowerState = types.StringUnknown()
		}
	}
	if !resumes {
		p.warnPower(diags)
	}
}

// warnPower warns that the machine is switched. The first apply after an import switches none: power_state is noted then, and the plan
// after shows what the machine is.
func (p inPlace) warnPower(diags *diag.Diagnostics) {
	if !isSet(p.config.PowerState) || p.config.PowerState.Equal(p.state.PowerState) {
		return
	}
	summary, detail := "Power is switched", "Node %s is switched %s."
	if p.imported {
		summary, detail = "Power is not switched yet", "Node %s was imported, which touches no machine. The plan after this apply shows what its power is, and switches it %s."
	}
	diags.AddAttributeWarning(path.Root("power_state"), summary, fmt.Sprintf(detail, p.label(), p.config.PowerState.ValueString()))
}

// warnResume warns of a deployment that an earlier run has not finished.
func (p inPlace) warnResume(diags *diag.Diagnostics) {
	state := p.state.ProvisionState.ValueString()
	writes := "which writes its root disk"
	if !p.plan.LiveISO.IsNull() {
		writes = "which boots its live ISO"
	}
	if ironic.Failed(ironic.State(state)) {
		diags.AddWarning("Failed deployment is repeated", fmt.Sprintf("Node %s is in state %q (%s). It is deployed again, %s.",
			p.label(), state, p.state.LastError.ValueString(), writes))
		return
	}
	if ironic.BeingDeployed(ironic.State(state)) {
		diags.AddWarning("Unfinished deployment is continued", fmt.Sprintf("Node %s is in state %q: what an earlier run has begun is waited for.", p.label(), state))
		return
	}
	if ironic.Settled(ironic.GoalUndeployed, ironic.State(state)) {
		diags.AddWarning("Unfinished deployment is continued", fmt.Sprintf("Node %s is reserved, and still in state %q: it is deployed, %s.", p.label(), state, writes))
		return
	}
	diags.AddWarning("Undeployed node is deployed again", fmt.Sprintf("Node %s is in state %q: what it ran is lost. What an earlier run has begun is brought to its end, "+
		"then the node is deployed again. To finish undeploying it instead, destroy it.", p.label(), state))
}

// checkVersions refuses what the server's API does not have.
func (d *deployment) checkVersions(ctx context.Context, config *deploymentModel, diags *diag.Diagnostics) {
	drive := config.configDrive(ctx)
	d.requires(ctx, diags,
		feature{drive != nil, 56, path.Root("config_drive")},
		feature{drive != nil && !drive.VendorData.IsNull(), 59, path.Root("config_drive").AtName("vendor_data")},
		feature{!config.DeploySteps.IsNull(), 69, path.Root("deploy_steps")},
	)
}
