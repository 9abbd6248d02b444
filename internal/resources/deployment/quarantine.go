package deployment

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/framework"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provision"
)

// Values of on_failure, and the default of max_nodes.
const (
	failureKeep       = "keep"
	failureQuarantine = "quarantine"
	defaultMaxNodes   = 3
)

// quarantines reports whether a node on which the deployment fails is put into quarantine.
func (m *model) quarantines() bool { return m.OnFailure.ValueString() == failureQuarantine }

// validateQuarantine refuses a quarantine without an allocation, which would have no other node, and settings without effect.
func (m *model) validateQuarantine(diags *diag.Diagnostics) {
	if !m.MaxNodes.IsNull() && !m.OnFailure.IsUnknown() && !m.quarantines() {
		diags.AddAttributeError(path.Root("max_nodes"), "Unused setting", "max_nodes has an effect only with on_failure = \"quarantine\". Set that, or remove max_nodes.")
	}
	switch {
	case !m.quarantines():
	case m.adopted():
		diags.AddAttributeError(path.Root("on_failure"), "Unused setting", "on_failure has no effect with adopt = true: there is nothing to deploy. Remove it, or set image.")
	case m.AllocationID.IsNull():
		diags.AddAttributeError(path.Root("on_failure"), "Missing setting", "With on_failure = \"quarantine\", the next apply deploys another node, which only an allocation can choose: "+
			"set allocation_id to the id of a metal_allocation with a name.")
	}
}

// namedAllocation reads the allocation of a deployment, whose name tells on which nodes the deployment has failed. An allocation without a
// name is an error.
func (d *deployment) namedAllocation(ctx context.Context, plan *model) (*ironic.Allocation, error) {
	allocation, err := d.Client.AllocationForRefresh(ctx, plan.AllocationID.ValueString())
	if err == nil && allocation.Name == "" {
		err = errUnnamed
	}
	return allocation, err
}

var errUnnamed = errors.New("on_failure = \"quarantine\" needs an allocation with a name: the note on a failed node names it, so that later runs can count those nodes. Set name on the metal_allocation")

// planTry warns if the allocation has no name, which the same apply may change, if a new deployment may try no more nodes, and if a killed
// run has left the node in quarantine. It reports whether the last is so.
func (d *deployment) planTry(ctx context.Context, plan *model, diags *diag.Diagnostics) (quarantined bool) {
	if !d.Known() || !framework.IsSet(plan.AllocationID) {
		return false
	}
	if framework.IsSet(plan.NodeID) {
		node, err := d.Client.NodeForRefresh(ctx, plan.NodeID.ValueString())
		if err == nil && provision.InQuarantineFor(node, plan.AllocationID.ValueString()) {
			diags.AddAttributeWarning(path.Root("node_id"), "Quarantine is finished", fmt.Sprintf("A deployment has failed on node %s, and an earlier run was interrupted while it put the node into quarantine. "+
				"The apply undeploys the node and ends with an error; the apply after it deploys another node.", ironic.NodeLabel(node)))
			return true
		}
	}
	if !plan.quarantines() {
		return false
	}
	allocation, err := d.namedAllocation(ctx, plan)
	if errors.Is(err, errUnnamed) {
		diags.AddAttributeWarning(path.Root("allocation_id"), "Allocation without a name", "Unless the same apply names the allocation first, it will fail for this deployment: "+provision.Sentence(err))
	}
	if err != nil {
		return false // the apply reports what is wrong with the allocation
	}
	var tried *provision.TriedError
	if _, err := d.Client.CheckTries(ctx, allocation, plan.mostNodes()); errors.As(err, &tried) {
		diags.AddAttributeWarning(path.Root("max_nodes"), "No other node is tried", "The apply fails for this deployment. "+provision.Sentence(tried))
	}
	return false
}

// mostNodes returns max_nodes, or its default.
func (m *model) mostNodes() int {
	if !framework.IsSet(m.MaxNodes) {
		return defaultMaxNodes
	}
	return int(m.MaxNodes.ValueInt64())
}

// beginTry finishes the quarantine of a node that a killed run has left. Otherwise, if a failure leads to a quarantine, it checks that
// the deployment may try another node. The returned value is nil if a failure leaves the node as it is.
func (d *deployment) beginTry(ctx context.Context, plan *model, machine *provision.Machine, diags *diag.Diagnostics) (*provision.Try, error) {
	limit, problems := plan.Timeouts.Delete(ctx, deploymentTimeout)
	diags.Append(problems...)
	if err := machine.FinishQuarantine(ctx, plan.AllocationID.ValueString(), limit); err != nil {
		return nil, errors.Join(err, d.EndTemporary(ctx, machine.Node(), limit))
	}
	if !plan.quarantines() {
		return nil, nil //nolint:nilnil // no try
	}
	allocation, err := d.namedAllocation(ctx, plan)
	if err != nil {
		return nil, err
	}
	try, err := d.Client.CheckTries(ctx, allocation, plan.mostNodes())
	return &try, err
}

// endTry puts the machine of a failed creation into quarantine. It returns the error that the creation ends with, and whether the machine is in
// quarantine. If it cannot be, endTry warns, and the failure is treated as without a quarantine.
func (d *deployment) endTry(ctx context.Context, plan *model, machine *provision.Machine, try *provision.Try, failed error, diags *diag.Diagnostics) (quarantined bool, err error) {
	if try == nil || !provision.IsDeployFailure(failed) || provision.ByAgent(machine.Node()) { // no BMC, no undeploy
		return false, failed
	}
	limit, problems := plan.Timeouts.Delete(ctx, deploymentTimeout)
	diags.Append(problems...)
	label := ironic.NodeLabel(machine.Node())
	err = machine.Quarantine(ctx, *try, failed, limit)
	err = errors.Join(err, d.EndTemporary(ctx, machine.Node(), limit))
	var done *provision.QuarantinedError
	switch {
	case errors.As(err, &done):
		return true, err
	case provision.IsSuperseded(err):
		return false, err
	}
	summary, detail := provision.Explain("put node "+label+" into quarantine", err)
	diags.AddWarning(summary, detail+"\n\nThe node stays reserved, and the next apply deploys it again.")
	return false, failed
}
