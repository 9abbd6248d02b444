package resources

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
)

// replacedFor are the attributes whose change replaces the deployment instead of changing it in place.
func (d *deployment) replacedFor(ctx context.Context, plan, state *deploymentModel, diags *diag.Diagnostics) (attributes path.Paths) {
	if d.otherNode(ctx, plan, state, diags) {
		attributes.Append(path.Root("node_id"))
	}
	if otherReservation(plan, state) {
		attributes.Append(path.Root("allocation_id"))
	}
	if plan.LiveISO.IsNull() != state.LiveISO.IsNull() {
		attributes.Append(path.Root("live_iso"))
	}
	return attributes
}

// otherNode reports whether node_id names another node than the present one, which it may call by name or UUID.
func (d *deployment) otherNode(ctx context.Context, plan, state *deploymentModel, diags *diag.Diagnostics) bool {
	if plan.NodeID.Equal(state.NodeID) || plan.NodeID.Equal(state.ID) {
		return false
	}
	if plan.NodeID.IsUnknown() || !d.known() {
		return true
	}
	node, err := d.client.NodeForRefresh(ctx, state.ID.ValueString())
	if ironic.IsNotFound(err) {
		return true
	}
	if err != nil {
		summary, detail := ironic.Explain("read node "+state.ID.ValueString(), err)
		diags.AddAttributeError(path.Root("node_id"), summary, fmt.Sprintf("Whether %q still names it is not known. %s", plan.NodeID.ValueString(), detail))
		return false
	}
	return node.Name != plan.NodeID.ValueString()
}

// otherReservation reports whether the allocation becomes another one. Naming the present reservation, or not naming it any
// more, changes nothing on the machine.
func otherReservation(plan, state *deploymentModel) bool {
	return plan.AllocationID.IsUnknown() || (!plan.AllocationID.IsNull() && !plan.AllocationID.Equal(state.InstanceUUID) && !plan.AllocationID.Equal(state.AllocationID))
}

// refuseReplacement refuses to replace what was imported and not applied since, and names what asks for it: an import touches no machine.
func (d *deployment) refuseReplacement(ctx context.Context, plan, state *deploymentModel, attributes path.Paths, diags *diag.Diagnostics) {
	for _, at := range attributes {
		var why string
		switch {
		case at.Equal(path.Root("node_id")):
			why = fmt.Sprintf("the configuration names node %s", cmp.Or(plan.NodeID.ValueString(), "that is not known yet"))
		case at.Equal(path.Root("allocation_id")):
			why = fmt.Sprintf("it is reserved by %s, and the configuration names allocation %s", state.InstanceUUID.ValueString(), cmp.Or(plan.AllocationID.ValueString(), "that is not known yet"))
		default:
			why = fmt.Sprintf("it runs %s, and the configuration says %s", state.what(ctx), plan.what(ctx))
		}
		diags.AddAttributeError(at, "Imported deployment is not replaced", fmt.Sprintf("Node %s was imported: %s. To have that, the machine would be undeployed and cleaned, "+
			"and the first apply after an import touches none. Write what is there. If it shall be replaced after all, apply that with on_destroy = \"undeploy\", which touches nothing, "+
			"and then make this change: its plan announces what it does.", d.label(ctx, state), why))
	}
}

// checkReplacement refuses a replacement that cannot succeed, before anything is undeployed for it. Of what is not known yet it
// says nothing, and of what this very apply may put right it warns.
func (d *deployment) checkReplacement(ctx context.Context, plan, state *deploymentModel, diags *diag.Diagnostics) {
	if !d.known() || !isSet(plan.NodeID) {
		return
	}
	at, stays := path.Root("node_id"), fmt.Sprintf("\n\nWithout this change, node %s runs on.", d.label(ctx, state))
	node, err := d.client.Node(ctx, plan.NodeID.ValueString())
	switch {
	case ironic.IsNotFound(err):
		diags.AddAttributeError(at, "Node does not exist", fmt.Sprintf("Ironic has no node %q. If a metal_host of this configuration makes it, or gives it that name, refer to its id: "+
			"node_id = metal_host.<name>.id.%s", plan.NodeID.ValueString(), stays))
		return
	case err != nil:
		summary, detail := ironic.Explain("read node "+plan.NodeID.ValueString(), err)
		diags.AddAttributeError(at, summary, detail)
		return
	case node.UUID == state.ID.ValueString() && state.OnDestroy.ValueString() == destroyDetach:
		diags.AddAttributeError(path.Root("on_destroy"), "Detached machine cannot be replaced", fmt.Sprintf("on_destroy is \"detach\": node %s would be left running, and could not be deployed again. "+
			"To replace what it runs, apply on_destroy = \"undeploy\" first.", ironic.NodeLabel(node)))
		return
	case plan.AllocationID.IsUnknown() || !d.checkAllocation(ctx, plan, node, stays, diags) || node.UUID == state.ID.ValueString():
		return
	}
	err = ironic.Deployable(node, plan.AllocationID.ValueString())
	if err == nil {
		return
	}
	_, detail := ironic.Explain("", err)
	var reserved *ironic.ReservedError
	if errors.As(err, &reserved) && node.InstanceUUID != "" {
		detail = fmt.Sprintf("Node %s is reserved by %s: somebody else uses it, or another deployment of yours. Destroy that first, or choose another node.", ironic.NodeLabel(node), node.InstanceUUID)
	}
	if reserved != nil || ironic.Occupied(node) {
		diags.AddAttributeError(at, "Node cannot be deployed", detail+stays)
		return
	}
	diags.AddAttributeWarning(at, "Node cannot be deployed as it is now", fmt.Sprintf("Unless this apply puts that right, it will undeploy node %s and then fail: %s", d.label(ctx, state), detail))
}

// checkAllocation refuses a known allocation that is not the node's, and reports whether the node can be judged by it.
func (d *deployment) checkAllocation(ctx context.Context, plan *deploymentModel, node *ironic.Node, stays string, diags *diag.Diagnostics) bool {
	if plan.AllocationID.IsNull() {
		return true
	}
	id, at := plan.AllocationID.ValueString(), path.Root("allocation_id")
	if suspended := ironic.SuspendedAllocation(node); suspended != nil && suspended.UUID == id {
		return false // it is made again when the node is free
	}
	allocation, err := d.client.Allocation(ctx, id)
	switch {
	case ironic.IsNotFound(err):
		diags.AddAttributeError(at, "Allocation does not exist", fmt.Sprintf("Ironic has no allocation %s.%s", id, stays))
		return false
	case err != nil:
		summary, detail := ironic.Explain("read allocation "+id, err)
		diags.AddAttributeError(at, summary, detail)
		return false
	case allocation.NodeUUID != "" && allocation.NodeUUID != node.UUID:
		diags.AddAttributeError(at, "Allocation of another node", fmt.Sprintf("Allocation %s reserves node %s, not node %s.%s", id, allocation.NodeUUID, ironic.NodeLabel(node), stays))
		return false
	}
	return allocation.NodeUUID != ""
}

// The summaries say the same of every node, so that Terraform folds the warnings of many.
const (
	undeploysSummary = "Destroying undeploys the machine"
	detachesSummary  = "Destroying leaves the machine running"
)

// warnEnd warns of what destroying or replacing a deployment does to its machine.
func (d *deployment) warnEnd(ctx context.Context, state *deploymentModel, diags *diag.Diagnostics) {
	label, loss := state.ID.ValueString(), cleanedLoss
	if d.known() {
		node, err := d.client.NodeForRefresh(ctx, state.ID.ValueString())
		switch {
		case ironic.IsNotFound(err):
			return
		case err == nil && ironic.Lost(node, state.InstanceUUID.ValueString(), state.AllocationID.ValueString()) != "":
			return // it is not ours any more, and is left alone
		case err == nil && ironic.Dirty(node, state.InstanceUUID.ValueString()) && state.OnDestroy.ValueString() != destroyDetach:
			label, loss = ironic.NodeLabel(node), "cleaned: an earlier run has undeployed it without that, and what is on its disks is lost"
		case err == nil && ironic.Settled(ironic.GoalUndeployed, ironic.State(node.ProvisionState)):
			return // nothing runs there
		case err == nil:
			label, loss = ironic.NodeLabel(node), lossOf(node)
		}
	}
	if state.OnDestroy.ValueString() == destroyDetach {
		diags.AddWarning(detachesSummary, fmt.Sprintf("on_destroy is \"detach\": node %s is left running and keeps its reservation, and nobody manages it.", label))
		return
	}
	diags.AddWarning(undeploysSummary, fmt.Sprintf("Node %s is %s.", label, loss))
}

const cleanedLoss = "undeployed and cleaned: what it runs ends, and what is on its disks is lost"

// lossOf says what becomes of a node that is undeployed.
func lossOf(node *ironic.Node) string {
	if ironic.StaysUncleaned(node) {
		return "undeployed, and not cleaned (automated_clean is false): what it runs ends, and its disks keep their data"
	}
	return cleanedLoss
}

// warnOccupied warns of a node that a new deployment finds occupied. A provider is not told when Terraform replaces what is
// tainted: it sees a creation, on a node that runs what is to be replaced. Of -replace it can say nothing: until the second half
// of its plan, the creation, nobody tells it, and of that Terraform drops the warnings.
func (d *deployment) warnOccupied(ctx context.Context, plan *deploymentModel, diags *diag.Diagnostics) {
	if !d.known() || !isSet(plan.NodeID) {
		return
	}
	look := d.client.Node
	if uuidPattern.MatchString(plan.NodeID.ValueString()) {
		look = d.client.NodeForRefresh // which costs little for many
	}
	node, err := look(ctx, plan.NodeID.ValueString())
	if err != nil || !ironic.Occupied(node) {
		return // what is wrong with the node, the apply says
	}
	diags.AddWarning(undeploysSummary, fmt.Sprintf("Something is on node %s, which is in state %q. If that is what this plan replaces, because it is tainted, the node is %s. "+
		"With on_destroy = \"detach\" in the state it would be left running, and could not be deployed again.", ironic.NodeLabel(node), node.ProvisionState, lossOf(node)))
}
