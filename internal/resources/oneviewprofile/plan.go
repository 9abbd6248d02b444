package oneviewprofile

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/sharing"
)

// ModifyPlan plans to complete a profile that an earlier run has not finished, and to apply a changed template, and warns of the
// effects.
func (o *oneviewProfile) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, config oneviewProfileModel
	var state *oneviewProfileModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if req.Plan.Raw.IsNull() && !resp.Diagnostics.HasError() {
		o.warnRemoval(ctx, state, &resp.Diagnostics)
	}
	if req.Plan.Raw.IsNull() || o.Client == nil || !o.configured(&resp.Diagnostics) {
		return
	}
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if state != nil {
		o.planReplacement(ctx, &plan, &config, state, resp)
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if !o.Known() || !o.HasOneView() || plan.NodeID.IsUnknown() {
		return
	}
	node, err := o.Client.NodeForRefresh(ctx, plan.NodeID.ValueString())
	if err != nil {
		switch {
		case ironic.IsNotFound(err) && state == nil:
			noSuchNode(&plan, &resp.Diagnostics)
		case !ironic.IsNotFound(err) && state != nil: // Terraform plans again during the apply, and that plan must not differ
			framework.Report(&resp.Diagnostics, "plan the server profile of node "+plan.NodeID.ValueString(), err)
		}
		return // the refresh has reported other errors, or the apply will
	}
	if state == nil || len(resp.RequiresReplace) > 0 {
		var taken *sharing.InUseError
		if err := o.Pool.CheckUsable(ctx, node); errors.As(err, &taken) {
			resp.Diagnostics.AddWarning("Server hardware is in use", fmt.Sprintf("As things are now, the apply will fail: %s.", taken.Why()))
		}
		return // the apply reports other errors
	}
	plan.planInPlace(state, node, notedDifferences(ctx, req.Private), &resp.Diagnostics)
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// planReplacement plans to replace the profile if node or hardware changes, and warns of the removal. It ignores another spelling
// of the same URI.
func (o *oneviewProfile) planReplacement(ctx context.Context, plan, config, state *oneviewProfileModel, resp *resource.ModifyPlanResponse) {
	named := plan.NodeID
	if !named.Equal(state.NodeID) {
		other, gone, err := o.otherNode(ctx, plan, state)
		if ironic.IsNotFound(err) {
			noSuchNode(plan, &resp.Diagnostics)
			return
		}
		if err != nil {
			framework.Report(&resp.Diagnostics, "find out whether node "+plan.NodeID.ValueString()+" is node "+state.NodeID.ValueString(), err)
			return
		}
		switch {
		case other && (gone || named.IsUnknown()):
			resp.RequiresReplace.Append(path.Root("node_id"))
		case other: // a list from which node_id is taken may have changed
			plan.NodeID = state.NodeID
		}
	}
	plan.HardwareURI, plan.TemplateURI = keepSpelling(plan.HardwareURI, state.HardwareURI), keepSpelling(plan.TemplateURI, state.TemplateURI)
	if !config.HardwareURI.IsNull() && !plan.HardwareURI.Equal(state.HardwareURI) {
		resp.RequiresReplace.Append(path.Root("server_hardware_uri"))
	}
	if len(resp.RequiresReplace) > 0 {
		plan.NodeID = named
		o.warnRemoval(ctx, state, &resp.Diagnostics)
	} else if plan.NodeID.Equal(state.NodeID) && !named.Equal(state.NodeID) {
		resp.Diagnostics.AddAttributeWarning(path.Root("node_id"), "Server profile stays on its node", fmt.Sprintf("This profile is on node %s, and node_id says %q now. The plan keeps the node. "+
			"To move the profile on purpose, use terraform apply -replace, which switches the server off. Otherwise set node_id to %q.", state.NodeID.ValueString(), named.ValueString(), state.NodeID.ValueString()))
	}
}

// keepSpelling returns the state's URI if the planned one means the same, else the planned one.
func keepSpelling(planned, present types.String) types.String {
	if framework.IsSet(planned) && framework.IsSet(present) && oneview.SameURI(planned.ValueString(), present.ValueString()) {
		return present
	}
	return planned
}

func noSuchNode(plan *oneviewProfileModel, diags *diag.Diagnostics) {
	diags.AddAttributeError(path.Root("node_id"), "No such node", fmt.Sprintf("Ironic has no node %s. Check node_id: it must be the UUID or name of a node.", plan.NodeID.ValueString()))
}

// warnRemoval warns of the removal of a profile. It does not warn if the server has another profile or none, because Delete then
// does nothing. It asks the appliance, because Terraform has not refreshed a resource that is not in the configuration any more.
func (o *oneviewProfile) warnRemoval(ctx context.Context, state *oneviewProfileModel, diags *diag.Diagnostics) {
	label := state.NodeID.ValueString()
	if o.Known() && o.HasOneView() {
		node, err := o.Client.NodeForRefresh(ctx, label)
		if err == nil {
			label = ironic.NodeLabel(node)
			h, err := o.Pool.Inspect(ctx, node)
			if err == nil && (h.Profile == nil || !oneview.SameURI(h.Profile.URI, state.ID.ValueString())) {
				return
			}
		}
	}
	diags.AddWarning("Server profile is removed", fmt.Sprintf("Server profile %s of node %s is removed. OneView switches the server off for that. Afterwards every user of OneView can take it. "+
		"The removal fails while the node is deployed or an operation on it is in progress.", state.Name.ValueString(), label))
}

// otherNode reports whether a changed node_id, a name or UUID, names another node than the present one, and whether that is gone.
func (o *oneviewProfile) otherNode(ctx context.Context, plan, state *oneviewProfileModel) (other, gone bool, err error) {
	if plan.NodeID.IsUnknown() || state.NodeID.IsNull() || !o.Known() {
		return true, state.NodeID.IsNull(), nil
	}
	wanted, err := o.Client.NodeForRefresh(ctx, plan.NodeID.ValueString())
	if err != nil {
		return false, false, err
	}
	present, err := o.Client.NodeForRefresh(ctx, state.NodeID.ValueString())
	if ironic.IsNotFound(err) {
		return true, true, nil
	}
	return err == nil && wanted.UUID != present.UUID, false, err
}

// planInPlace plans a change of a profile that stays. differences is a sentence about its differences from the template; may be empty.
func (m *oneviewProfileModel) planInPlace(state *oneviewProfileModel, node *ironic.Node, differences string, diags *diag.Diagnostics) {
	m.Ownership, m.Compliance, m.Status = state.Ownership, state.Compliance, state.Status
	parked := provision.Parked(ironic.State(node.ProvisionState))
	label := ironic.NodeLabel(node)
	template := !m.TemplateURI.Equal(state.TemplateURI)
	strays := state.Compliance.ValueString() == string(oneview.NonCompliant)
	if strays && !parked && !template && state.Status.ValueString() != statusUnfinished && state.Ownership.ValueString() == string(sharing.UsedByIronic) {
		warnNotApplied(node, differences, diags)
	}
	switch {
	case state.Ownership.ValueString() == string(sharing.UsedByOneView) && state.Status.ValueString() != statusUnfinished:
		return // another user has the hardware, and the refresh has reported it
	case state.Status.ValueString() == statusUnfinished:
		diags.AddWarning("Unfinished server profile is completed", fmt.Sprintf("An interrupted run has not finished the server profile of node %s. The apply completes it.", label))
		m.ID = types.StringUnknown() // after an interrupted removal the apply creates another profile
	case template && !parked:
		diags.AddAttributeError(path.Root("server_profile_template_uri"), "Template cannot be changed now", fmt.Sprintf("Node %s is in state %q, and applying another template switches the server off. Destroy the metal_deployment of the node first.", label, node.ProvisionState))
	case template || (strays && parked):
		diags.AddWarning("Server profile template is applied", fmt.Sprintf("The server profile of node %s is updated from its template.%s OneView switches the server off if the change requires that.", label, differences))
	case !m.Name.Equal(state.Name):
	default:
		return
	}
	m.Ownership, m.Compliance, m.Status = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
}

// warnNotApplied warns that the apply does not apply the template, because the node may run a deployment.
func warnNotApplied(node *ironic.Node, differences string, diags *diag.Diagnostics) {
	diags.AddWarning("Server profile template is not applied", fmt.Sprintf("The server profile of node %s is not updated from its template while the node may run a deployment: "+
		"it is in state %q.%s To apply the template, destroy the metal_deployment of the node.", ironic.NodeLabel(node), node.ProvisionState, differences))
}
