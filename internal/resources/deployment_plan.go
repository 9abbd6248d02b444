package resources

import (
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
	if req.Plan.Raw.IsNull() {
		return // destroy
	}
	var plan, config deploymentModel
	var state *deploymentModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	changes := state == nil || !req.Plan.Raw.Equal(req.State.Raw)
	if state != nil && d.otherNode(ctx, &plan, state) {
		resp.RequiresReplace.Append(path.Root("node_id"))
		plan.ID, plan.InstanceUUID = types.StringUnknown(), types.StringUnknown()
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	}
	if state != nil && len(resp.RequiresReplace) == 0 {
		mark, diags := req.Private.GetKey(ctx, importedKey)
		resp.Diagnostics.Append(diags...)
		plan.planInPlace(&config, state, len(mark) > 0, &resp.Diagnostics)
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	}
	if changes && d.known() {
		d.checkVersions(ctx, &config, &resp.Diagnostics)
	}
}

// otherNode reports whether node_id names another node than the present one, which it may call by name or UUID.
func (d *deployment) otherNode(ctx context.Context, plan, state *deploymentModel) bool {
	if plan.NodeID.Equal(state.NodeID) || plan.NodeID.Equal(state.ID) {
		return false
	}
	if plan.NodeID.IsUnknown() || !d.known() {
		return true
	}
	node, err := d.client.NodeForRefresh(ctx, state.ID.ValueString())
	return err != nil || node.Name != plan.NodeID.ValueString()
}

// planInPlace plans what happens to a deployment that stays.
func (m *deploymentModel) planInPlace(config, state *deploymentModel, imported bool, diags *diag.Diagnostics) {
	m.LastError, m.Attempts, m.ProvisionState = state.LastError, state.Attempts, state.ProvisionState
	if config.PowerState.IsNull() {
		m.PowerState = state.PowerState
	}
	changed := !m.sameContent(state)
	resumes := !ironic.Finished(ironic.State(state.ProvisionState.ValueString()))
	switch {
	case imported:
		if changed {
			diags.AddWarning("Imported deployment is left as it is", fmt.Sprintf("What the configuration says of node %s is noted, and the machine is not touched. "+
				"If its image turns out to be another one, the plan after this shows that.", m.label()))
		}
		return
	case changed && m.OnChange.ValueString() == onChangeIgnore:
		diags.AddWarning("Change without effect", fmt.Sprintf("on_change is \"ignore\": the new content of node %s is noted, and the machine runs on as it is.", m.label()))
	case changed:
		diags.AddWarning("Rebuild wipes the root disk", fmt.Sprintf("The content of node %s changes: it is rebuilt in place, and what is on its root disk is lost. "+
			"Its reservation stays. Set on_change = \"ignore\" to leave the machine as it is.", m.label()))
	case resumes:
		m.warnResume(state, diags)
	}
	if resumes || (changed && m.OnChange.ValueString() != onChangeIgnore) {
		m.ProvisionState, m.LastError, m.Attempts = types.StringUnknown(), types.StringUnknown(), types.Int64Unknown()
		if config.PowerState.IsNull() {
			m.PowerState = types.StringUnknown()
		}
	}
	if isSet(config.PowerState) && !config.PowerState.Equal(state.PowerState) && !resumes {
		diags.AddAttributeWarning(path.Root("power_state"), "Power is switched", fmt.Sprintf("Node %s is switched %s.", m.label(), config.PowerState.ValueString()))
	}
}

// warnResume warns of a deployment that an earlier run has not finished.
func (m *deploymentModel) warnResume(state *deploymentModel, diags *diag.Diagnostics) {
	if ironic.Failed(ironic.State(state.ProvisionState.ValueString())) {
		diags.AddWarning("Failed deployment is repeated", fmt.Sprintf("Node %s is in state %q (%s). It is deployed again, which writes its root disk.",
			m.label(), state.ProvisionState.ValueString(), state.LastError.ValueString()))
		return
	}
	diags.AddWarning("Unfinished deployment is continued", fmt.Sprintf("Node %s is in state %q: what an earlier run has begun is waited for and brought to its end.",
		m.label(), state.ProvisionState.ValueString()))
}

// checkVersions refuses what the server's API does not have.
func (d *deployment) checkVersions(ctx context.Context, config *deploymentModel, diags *diag.Diagnostics) {
	drive := config.configDrive(ctx)
	for _, feature := range []struct {
		used  bool
		since ironic.Microversion
		name  path.Path
	}{
		{drive != nil, 56, path.Root("config_drive")},
		{drive != nil && !drive.VendorData.IsNull(), 59, path.Root("config_drive").AtName("vendor_data")},
		{!config.DeploySteps.IsNull(), 69, path.Root("deploy_steps")},
	} {
		if feature.used {
			d.requires(ctx, diags, feature.since, feature.name)
		}
	}
}
