package resources

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/oneview"
)

// ModifyPlan sees what an earlier run has not finished and what the template has changed, and warns of what a change costs.
func (o *oneviewProfile) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, config oneviewProfileModel
	var state *oneviewProfileModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if req.Plan.Raw.IsNull() && !resp.Diagnostics.HasError() {
		o.warnRemoval(ctx, state, &resp.Diagnostics)
	}
	if req.Plan.Raw.IsNull() || o.pool == nil || !o.configured(&resp.Diagnostics) {
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
	if !o.known() || !o.hasOneView() || plan.NodeID.IsUnknown() {
		return
	}
	node, err := o.client.NodeForRefresh(ctx, plan.NodeID.ValueString())
	if err != nil {
		switch {
		case ironic.IsNotFound(err) && state == nil:
			noSuchNode(&plan, &resp.Diagnostics)
		case !ironic.IsNotFound(err) && state != nil: // an apply plans again, and must not forget what was to be done
			report(&resp.Diagnostics, "plan the server profile of node "+plan.NodeID.ValueString(), err)
		}
		return // other trouble the refresh has told, or the apply will
	}
	if state == nil || len(resp.RequiresReplace) > 0 {
		var taken *oneview.InUseError
		if err := o.pool.Admit(ctx, node); errors.As(err, &taken) {
			resp.Diagnostics.AddWarning("Server hardware is in use", fmt.Sprintf("As it is now, the apply will fail: %s.", taken.Why()))
		}
		return // other trouble comes up in the apply
	}
	plan.planInPlace(state, node, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// planReplacement plans another profile in the place of this one if it is for another node or other hardware, and warns of the
// removal. Another spelling of a URI means nothing, and stays as it is.
func (o *oneviewProfile) planReplacement(ctx context.Context, plan, config, state *oneviewProfileModel, resp *resource.ModifyPlanResponse) {
	if !plan.NodeID.Equal(state.NodeID) {
		other, err := o.otherNode(ctx, plan, state)
		if ironic.IsNotFound(err) {
			noSuchNode(plan, &resp.Diagnostics)
			return
		}
		if err != nil {
			report(&resp.Diagnostics, "tell whether node "+plan.NodeID.ValueString()+" is node "+state.NodeID.ValueString(), err)
			return
		}
		if other {
			resp.RequiresReplace.Append(path.Root("node_id"))
		}
	}
	plan.HardwareURI, plan.TemplateURI = keepSpelling(plan.HardwareURI, state.HardwareURI), keepSpelling(plan.TemplateURI, state.TemplateURI)
	if !config.HardwareURI.IsNull() && !plan.HardwareURI.Equal(state.HardwareURI) {
		resp.RequiresReplace.Append(path.Root("server_hardware_uri"))
	}
	if len(resp.RequiresReplace) > 0 {
		o.warnRemoval(ctx, state, &resp.Diagnostics)
	}
}

// keepSpelling is a planned URI, as it is in the state if it means the same.
func keepSpelling(planned, present types.String) types.String {
	if isSet(planned) && isSet(present) && sameURI(planned.ValueString(), present.ValueString()) {
		return present
	}
	return planned
}

func noSuchNode(plan *oneviewProfileModel, diags *diag.Diagnostics) {
	diags.AddAttributeError(path.Root("node_id"), "No such node", fmt.Sprintf("Ironic has no node %s.", plan.NodeID.ValueString()))
}

// warnRemoval warns of the removal of a profile, unless another one is on the server, or none: then nothing is done to it. Of
// what is not in the configuration any more the state is not refreshed before, so the appliance is asked.
func (o *oneviewProfile) warnRemoval(ctx context.Context, state *oneviewProfileModel, diags *diag.Diagnostics) {
	label := state.NodeID.ValueString()
	if o.known() && o.hasOneView() {
		node, err := o.client.NodeForRefresh(ctx, label)
		if err == nil {
			label = ironic.NodeLabel(node)
			h, err := o.pool.Inspect(ctx, node)
			if err == nil && (h.Profile == nil || !strings.EqualFold(h.Profile.URI, state.ID.ValueString())) {
				return
			}
		}
	}
	diags.AddWarning("Server profile is removed", fmt.Sprintf("Server profile %s of node %s is removed. For that its server is switched off; then it is free for all users of OneView. "+
		"While something may run on the node, the removal is refused.", state.Name.ValueString(), label))
}

// otherNode reports whether a changed node_id names another node than the present one: a node has a name and a UUID.
func (o *oneviewProfile) otherNode(ctx context.Context, plan, state *oneviewProfileModel) (bool, error) {
	if plan.NodeID.IsUnknown() || state.NodeID.IsNull() || !o.known() {
		return true, nil
	}
	wanted, err := o.client.NodeForRefresh(ctx, plan.NodeID.ValueString())
	if err != nil {
		return false, err
	}
	present, err := o.client.NodeForRefresh(ctx, state.NodeID.ValueString())
	if ironic.IsNotFound(err) {
		return true, nil
	}
	return err == nil && wanted.UUID != present.UUID, err
}

// planInPlace plans a profile that stays.
func (m *oneviewProfileModel) planInPlace(state *oneviewProfileModel, node *ironic.Node, diags *diag.Diagnostics) {
	m.Ownership, m.Compliance, m.Status = state.Ownership, state.Compliance, state.Status
	parked := ironic.Parked(ironic.State(node.ProvisionState))
	label := ironic.NodeLabel(node)
	template := !m.TemplateURI.Equal(state.TemplateURI)
	strays := state.Compliance.ValueString() == string(oneview.NonCompliant)
	if strays && !parked && !template && state.Status.ValueString() != statusUnfinished && state.Ownership.ValueString() == string(oneview.UsedByIronic) {
		warnNotApplied(node, diags)
	}
	switch {
	case state.Ownership.ValueString() == string(oneview.UsedByOneView) && state.Status.ValueString() != statusUnfinished:
		return // not ours to touch; the refresh has said so
	case state.Status.ValueString() == statusUnfinished:
		diags.AddWarning("Unfinished server profile is completed", fmt.Sprintf("An interrupted run has not finished the server profile of node %s.", label))
		m.ID = types.StringUnknown() // if it was about to be removed, it is made anew
	case template && !parked:
		diags.AddAttributeError(path.Root("server_profile_template_uri"), "Template cannot be changed now", fmt.Sprintf("Node %s is in state %q: applying another template switches the server off. Undeploy it first.", label, node.ProvisionState))
	case template || (strays && parked):
		diags.AddWarning("Server profile template is applied", fmt.Sprintf("The server profile of node %s is brought in line with its template; if that needs it, the server is switched off.", label))
	case !m.Name.Equal(state.Name):
	default:
		return
	}
	m.Ownership, m.Compliance, m.Status = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
}

// warnNotApplied warns of a template that is not applied. An apply plans again, and by then something may run on the node.
func warnNotApplied(node *ironic.Node, diags *diag.Diagnostics) {
	diags.AddWarning("Server profile template is not applied", fmt.Sprintf("The server profile of node %s is not brought in line with its template while something may run on the node, "+
		"which is in state %q.", ironic.NodeLabel(node), node.ProvisionState))
}
