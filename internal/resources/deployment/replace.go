package deployment

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// replacedFor returns the attributes whose change replaces the deployment instead of changing it in place.
func (p inPlace) replacedFor(ctx context.Context) (attributes path.Paths) {
	plan, state := p.plan, p.state
	if p.otherNode() && !p.staysOnNode() {
		attributes.Append(path.Root("node_id"))
	}
	if otherReservation(plan, state) {
		attributes.Append(path.Root("allocation_id"))
	}
	adopted := plan.adopted() || state.adopted()
	if plan.LiveISO.IsNull() != state.LiveISO.IsNull() && !adopted {
		attributes.Append(path.Root("live_iso"))
	}
	begun, ran := p.recorded()
	if p.onChange != onChangeReplace || p.imported || adopted || begun || ran {
		return attributes
	}
	prior, configured := state.content(), plan.content()
	for _, name := range slices.Sorted(maps.Keys(configured)) {
		if compare(ctx, configured[name], prior[name]) != same {
			attributes.Append(path.Root(name))
		}
	}
	return attributes
}

// otherNode reports whether node_id, a name or UUID, names another node than the present one.
func (p inPlace) otherNode() bool {
	id := p.plan.NodeID
	return !id.Equal(p.state.NodeID) && !id.Equal(p.state.ID) && (id.IsUnknown() || id.ValueString() != p.seen.Name)
}

// staysOnNode reports whether the deployment keeps its node whatever node_id says. A list from which node_id is taken may change at any
// time, and must not move a machine. Before the first apply after an import, the plan compares instead: the import may have named the wrong node.
// A deployment cannot stay on a node whose host the plan replaces: Ironic deletes no deployed node.
func (p inPlace) staysOnNode() bool {
	return !p.past.keepsMachine() && !p.losesNode && !otherReservation(p.plan, p.state)
}

// losesNode reports whether the plan replaces the host of a deployment. Then node_id, which the host provides, is not known yet.
func (d *deployment) losesNode(plan, state *model, seen sight) bool {
	return state != nil && plan.NodeID.IsUnknown() && d.Known() && d.Client.ReplacesHost(&ironic.Node{UUID: state.ID.ValueString(), Name: seen.Name})
}

// keepPlace plans that a deployment stays on its node, and keeps its name.
func (p inPlace) keepPlace(ctx context.Context, diags *diag.Diagnostics) {
	if p.state != nil {
		p.keepNode(diags)
		p.keepName(ctx, diags)
	}
}

// keepNode plans that node_id stays as it is, if the deployment keeps its node. Also if it is the name that the plan gives to the node: that
// name is known only if Terraform has planned the host before, and the next plan shows it.
func (p inPlace) keepNode(diags *diag.Diagnostics) {
	named := p.plan.NodeID
	if !p.otherNode() || !p.staysOnNode() {
		return
	}
	p.plan.NodeID = p.state.NodeID
	if !named.IsUnknown() && named.ValueString() != p.renamed {
		diags.AddAttributeWarning(path.Root("node_id"), "Deployment stays on its node", fmt.Sprintf("This deployment is on node %s, and node_id says %q now. The plan keeps the node: only another allocation_id moves a deployment. "+
			"To move it on purpose, use terraform apply -replace, which undeploys and cleans the node. Otherwise set node_id to %q.", p.label(), named.ValueString(), p.state.ID.ValueString()))
	}
}

// otherReservation reports whether allocation_id changes to another allocation. Adding the ID of the present reservation, or
// removing it, does not count.
func otherReservation(plan, state *model) bool {
	return plan.AllocationID.IsUnknown() || (!plan.AllocationID.IsNull() && !plan.AllocationID.Equal(state.InstanceID) && !plan.AllocationID.Equal(state.AllocationID))
}

// refuseReplacement refuses to replace a deployment that was imported and not applied since, because an import touches no machine. The error names the attribute that requires the replacement.
func (d *deployment) refuseReplacement(ctx context.Context, plan, state *model, attributes path.Paths, diags *diag.Diagnostics) {
	for _, at := range attributes {
		var why string
		switch {
		case at.Equal(path.Root("node_id")):
			why = fmt.Sprintf("the configuration names node %s", cmp.Or(plan.NodeID.ValueString(), "(known after apply)"))
		case at.Equal(path.Root("allocation_id")):
			why = fmt.Sprintf("it is reserved by %s, and the configuration names allocation %s", state.InstanceID.ValueString(), cmp.Or(plan.AllocationID.ValueString(), "(known after apply)"))
		default:
			why = fmt.Sprintf("it runs %s, and the configuration says %s", state.describeContent(ctx), plan.describeContent(ctx))
		}
		diags.AddAttributeError(at, "Imported deployment is not replaced", fmt.Sprintf("Node %s was imported: %s. That change would undeploy and clean the machine, "+
			"and no apply has recorded its configuration yet. Set node_id, allocation_id, and image or live_iso to what the node has now. "+
			"To replace the deployment, first apply those values with on_destroy = \"undeploy\", which does not touch the machine, and then make this change.", d.label(ctx, state), why))
	}
}

// checkReplacement refuses a replacement that cannot succeed, before the apply undeploys the present node. If the same apply may
// still remove the obstacle, it warns. It does not check values that are not known yet.
func (d *deployment) checkReplacement(ctx context.Context, plan, state *model, diags *diag.Diagnostics) {
	if !d.Known() || !framework.IsSet(plan.NodeID) {
		return
	}
	at, stays := path.Root("node_id"), fmt.Sprintf("\n\nWithout this change, node %s keeps running.", d.label(ctx, state))
	node, err := d.Client.Node(ctx, plan.NodeID.ValueString())
	switch {
	case ironic.IsNotFound(err):
		diags.AddAttributeError(at, "Node does not exist", fmt.Sprintf("Ironic has no node %q. If a metal_host of this configuration makes it, or gives it that name, refer to its id: "+
			"node_id = metal_host.<name>.id.%s", plan.NodeID.ValueString(), stays))
		return
	case err != nil:
		summary, detail := provision.Explain("read node "+plan.NodeID.ValueString(), err)
		diags.AddAttributeError(at, summary, detail)
		return
	case node.UUID == state.ID.ValueString() && state.OnDestroy.ValueString() == destroyForget:
		diags.AddAttributeError(path.Root("on_destroy"), "Forgotten machine cannot be replaced", fmt.Sprintf("on_destroy is \"forget\": node %s would keep running, and could not be deployed again. "+
			"To replace its deployment, apply on_destroy = \"undeploy\" first.", ironic.NodeLabel(node)))
		return
	case plan.AllocationID.IsUnknown() || !d.checkAllocation(ctx, plan, node, stays, diags) || node.UUID == state.ID.ValueString():
		return
	}
	if plan.adopted() {
		d.checkAdoption(ctx, plan, diags)
		return
	}
	err = provision.Deployable(node, plan.AllocationID.ValueString())
	if err == nil || provision.Deployable(d.Client.AsPlanned(node), plan.AllocationID.ValueString()) == nil {
		return
	}
	_, detail := provision.Explain("", err)
	if provision.Occupied(node) {
		diags.AddAttributeError(at, "Node cannot be deployed", detail+stays)
		return
	}
	diags.AddAttributeWarning(at, "Node cannot be deployed as it is now", fmt.Sprintf("Unless another change in this apply removes the cause, the apply will undeploy node %s and then fail: %s", d.label(ctx, state), detail))
}

// checkAllocation refuses an allocation that reserves another node. It reports whether the allocation is known, so that
// checkReplacement can compare the node's reservation with it.
func (d *deployment) checkAllocation(ctx context.Context, plan *model, node *ironic.Node, stays string, diags *diag.Diagnostics) bool {
	if plan.AllocationID.IsNull() {
		return true
	}
	id, at := plan.AllocationID.ValueString(), path.Root("allocation_id")
	if suspended := provision.SuspendedAllocation(node); suspended != nil && suspended.UUID == id {
		return false // the provider creates it again when the node is free
	}
	allocation, err := d.Client.Allocation(ctx, id)
	switch {
	case ironic.IsNotFound(err):
		diags.AddAttributeError(at, "Allocation does not exist", fmt.Sprintf("Ironic has no allocation %s.%s", id, stays))
		return false
	case err != nil:
		summary, detail := provision.Explain("read allocation "+id, err)
		diags.AddAttributeError(at, summary, detail)
		return false
	case allocation.NodeUUID != "" && allocation.NodeUUID != node.UUID:
		diags.AddAttributeError(at, "Allocation of another node", fmt.Sprintf("Allocation %s reserves node %s, not node %s.%s", id, allocation.NodeUUID, ironic.NodeLabel(node), stays))
		return false
	}
	return allocation.NodeUUID != ""
}

// All nodes have the same summary, so that Terraform folds their warnings into one.
const (
	undeploysSummary = "Destroying undeploys the machine"
	forgetsSummary   = "Destroying leaves the machine running"
)

// warnEnd warns how destroying or replacing a deployment affects its machine.
func (d *deployment) warnEnd(ctx context.Context, state *model, diags *diag.Diagnostics) {
	label, loss := state.ID.ValueString(), cleanedLoss
	if d.Known() {
		node, err := d.Client.NodeForRefresh(ctx, state.ID.ValueString())
		switch {
		case ironic.IsNotFound(err):
			return
		case err == nil && provision.LossReason(node, state.InstanceID.ValueString(), state.AllocationID.ValueString()) != "":
			return // another user has it now: Delete does not touch it
		case err == nil && provision.NeedsCleaning(node, state.InstanceID.ValueString()) && state.OnDestroy.ValueString() != destroyForget:
			label, loss = ironic.NodeLabel(node), "cleaned, because an earlier run has undeployed it without cleaning: the data on its disks is lost"
		case err == nil && state.adopted() && !provision.Occupied(node) && (state.endsAdoption() || !provision.InProgress(node)):
			return // its adoption has not succeeded: it goes back to manageable
		case err == nil && provision.Settled(provision.GoalUndeployed, ironic.State(node.ProvisionState)):
			return // the node is not deployed
		case err == nil:
			label, loss = ironic.NodeLabel(node), lossOf(node)
		}
	}
	switch {
	case state.OnDestroy.ValueString() == destroyForget:
		diags.AddWarning(forgetsSummary, fmt.Sprintf("on_destroy is \"forget\": node %s keeps running and stays reserved. Terraform does not manage it any more.", label))
	case state.endsAdoption():
		diags.AddWarning(forgetsSummary, fmt.Sprintf("Ironic has adopted node %s after the apply that asked for it had failed. The node keeps running and stays reserved.", label))
	default:
		diags.AddWarning(undeploysSummary, fmt.Sprintf("Node %s is %s.", label, loss))
	}
}

const cleanedLoss = "undeployed and cleaned: it stops, and the data on its disks is lost"

// lossOf describes how undeploying a node affects its data.
func lossOf(node *ironic.Node) string {
	if provision.StaysUncleaned(node) {
		return "undeployed, and not cleaned (automated_clean is false): it stops, and its disks keep their data"
	}
	return cleanedLoss
}

// warnUnknown warns that Ironic has no node of a name or UUID, unless this plan creates or changes a host that may be meant.
func (d *deployment) warnUnknown(ctx context.Context, ref string, diags *diag.Diagnostics) {
	unknown, err := d.Client.UnknownNode(ctx, ref)
	if err != nil || unknown == "" {
		return // the apply reports what is wrong with the node
	}
	diags.AddAttributeWarning(path.Root("node_id"), "Ironic does not know this node", unknown+" The apply fails for this deployment, unless that changes before. "+
		"For a host of the same configuration, write the id of the metal_host, so that Terraform creates the host first.")
}

// plannedNode reads the node of a plan.
func (d *deployment) plannedNode(ctx context.Context, plan *model) (*ironic.Node, error) {
	if id := plan.NodeID.ValueString(); framework.UUIDPattern.MatchString(id) {
		return d.Client.NodeForRefresh(ctx, id) // one list serves all nodes
	}
	return d.Client.Node(ctx, plan.NodeID.ValueString())
}

// checkOccupied warns if the node of a new deployment is deployed already, and refuses a node that is protected. If a killed run has
// begun the deployment, checkOccupied says that the apply continues it. Terraform does not tell the provider that it replaces a
// tainted resource: the provider sees only a creation. For -replace there is no warning, because Terraform drops those of the creation.
func (d *deployment) checkOccupied(ctx context.Context, plan *model, wanted string, diags *diag.Diagnostics) {
	if !d.Known() || !framework.IsSet(plan.NodeID) {
		return
	}
	node, err := d.plannedNode(ctx, plan)
	if ironic.IsNotFound(err) {
		d.warnUnknown(ctx, plan.NodeID.ValueString(), diags)
	}
	if err != nil {
		return // the apply reports what is wrong with the node
	}
	again, inState := d.Client.PlansDeployment(node.UUID)
	if again {
		warnTwin(diags, node, "This plan creates two deployments on the node: the apply fails for one of them. Give one of them another node_id.")
	}
	if !provision.Occupied(node) {
		return
	}
	if by := d.Client.LostDeployment(node, wanted, plan.AllocationID.ValueString(), !plan.AllocationID.IsUnknown()); by != nil {
		d.Client.Announce(provision.MarkReservation, node.UUID)
		framework.WarnTakenOver(diags, "this deployment on node "+ironic.NodeLabel(node), by,
			"After -refresh=false, the plan may instead replace a deployment that is tainted: then the node is "+lossOf(node)+".")
		return
	}
	if node.Protected {
		refuseCreation(node, diags)
		return
	}
	if !inState {
		diags.AddAttributeWarning(path.Root("node_id"), "Node is deployed already", fmt.Sprintf("Node %s is in state %q, and this state has no deployment of it. The provider deploys no node on which something "+
			"else runs, so the apply fails. To manage what runs, import it; otherwise name another node. With -refresh=false, the plan may be replacing a tainted deployment instead: then the node is %s.",
			ironic.NodeLabel(node), node.ProvisionState, lossOf(node)))
		return
	}
	warnTwin(diags, node, "The state has a deployment of the node already. Unless this plan replaces that one, the apply fails for this one. Give one of them another node_id, and do not import the node a second time.")
	diags.AddWarning(undeploysSummary, fmt.Sprintf("Node %s is deployed already, in state %q. If this plan replaces that deployment because it is tainted, the node is %s. "+
		"With on_destroy = \"forget\" in the state, it would keep running, and could not be deployed again.", ironic.NodeLabel(node), node.ProvisionState, lossOf(node)))
}

// warnTwin warns of a second deployment of a node.
func warnTwin(diags *diag.Diagnostics, node *ironic.Node, detail string) {
	diags.AddAttributeWarning(path.Root("node_id"), "Two deployments for one node", fmt.Sprintf("Node %s runs only one deployment. %s This command names the resource in the state: terraform state list -id=%s.",
		ironic.NodeLabel(node), detail, node.UUID))
}
